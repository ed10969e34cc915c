//! A partition of a keyspace: a range of keys, its levels, runs and tables.

use std::sync::{Arc, OnceLock};

use super::{
    handle::{FileHandle, Table},
    level::{Level, Run},
    losses::Losses,
    named_view::NamedView,
    search_order::SearchOrder,
    totals::Totals,
};
use crate::{
    key::Sequence,
    observe::steps::{self, Step},
    view::writer::RunSummary,
};

/// A range of keys and its tables.
#[derive(Debug, Clone)]
pub(crate) struct Partition {
    /// Never reused within the database.
    pub(crate) id: u64,
    /// Inclusive; the upper bound is the lower bound of the next partition.
    pub(crate) lower: Vec<u8>,
    /// Every entry of this range that was logged up to this sequence number is in tables, or in the log under a greater number.
    pub(crate) flushed_sequence: Sequence,
    /// L0 first. There are no empty levels at the end.
    levels: Vec<Level>,
    /// Made by the first read, dropped by every change of a level.
    search_order: OnceLock<SearchOrder>,
    /// Made by the first search for compactions, dropped by every change of a level.
    totals: OnceLock<Totals>,
    /// A sorted view over some of the runs.
    pub(crate) view: Option<Arc<NamedView>>,
    /// The time that its reads have lost; shared by all of its versions.
    pub(crate) losses: Arc<Losses>,
}

impl Partition {
    pub(crate) fn new(id: u64, lower: Vec<u8>, flushed_sequence: Sequence) -> Self {
        Self {
            id,
            lower,
            flushed_sequence,
            levels: Vec::new(),
            search_order: OnceLock::new(),
            totals: OnceLock::new(),
            view: None,
            losses: Arc::default(),
        }
    }

    /// L0 first.
    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels
    }

    fn levels_mut(&mut self) -> &mut Vec<Level> {
        (self.search_order, self.totals) = (OnceLock::new(), OnceLock::new());
        &mut self.levels
    }

    pub(crate) fn level(&self, index: usize) -> Option<&Level> {
        self.levels.get(index)
    }

    pub(crate) fn level0_run_count(&self) -> usize {
        self.level(0).map_or(0, |level| level.runs().len())
    }

    /// The level; created if it is missing.
    pub(crate) fn level_or_new(&mut self, index: usize) -> &mut Level {
        let levels = self.levels_mut();
        if levels.len() <= index {
            levels.resize_with(index + 1, Level::default);
        }
        levels.get_mut(index).expect("the vector was made long enough")
    }

    pub(super) fn level_mut(&mut self, index: usize) -> Option<&mut Level> {
        self.levels_mut().get_mut(index)
    }

    /// Removes empty runs, and empty levels at the end.
    pub(crate) fn prune_empty(&mut self) {
        let levels = self.levels_mut();
        for level in &mut *levels {
            level.drop_empty_runs();
        }
        while levels.last().is_some_and(Level::is_empty) {
            levels.pop();
        }
    }

    /// All runs with their levels, newest entries first: the order of point reads.
    #[inline]
    pub(crate) fn runs(&self) -> impl Iterator<Item = (usize, &Arc<Run>)> {
        self.search_order().runs()
    }

    /// The tables that can have an entry of `key`, with their levels and runs, newest entries first.
    #[inline]
    pub(crate) fn tables_of(
        &self,
        key: &[u8],
    ) -> impl Iterator<Item = (usize, &Arc<Run>, &Arc<Table>)> + Clone {
        self.search_order().tables_of(key)
    }

    #[inline]
    fn search_order(&self) -> &SearchOrder {
        self.search_order.get_or_init(|| SearchOrder::new(&self.levels))
    }

    /// Sums over all tables.
    pub(crate) fn totals(&self) -> &Totals {
        self.totals.get_or_init(|| Totals::of(&self.levels))
    }

    pub(super) fn runs_mut(&mut self) -> impl Iterator<Item = &mut Arc<Run>> {
        self.levels_mut().iter_mut().flat_map(Level::runs_mut)
    }

    /// The run with this id. Cost: O(runs).
    pub(crate) fn run_with_id(&self, id: u64) -> Option<&Arc<Run>> {
        let runs = self.levels.iter().flat_map(Level::runs);
        runs.inspect(|_| steps::count(Step::SearchedRun, 1)).find(|run| run.id() == id)
    }

    /// Whether the view covers a run that no longer exists.
    pub(super) fn has_stale_view(&self) -> bool {
        let mut ids = self.view.iter().flat_map(|view| view.runs());
        ids.any(|&id| self.run_with_id(id).is_none())
    }

    /// The runs with these ids as their view names them; `None` if one is missing.
    pub(crate) fn runs_of_view(&self, ids: &[u64]) -> Option<Vec<RunSummary>> {
        ids.iter().map(|&id| self.run_with_id(id).map(|run| run.summarize())).collect()
    }

    /// Whether some table has range tombstones.
    #[inline]
    pub(crate) fn has_range_tombstones(&self) -> bool {
        self.search_order().has_range_tombstones
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.levels.iter().flat_map(Level::tables)
    }

    /// The tables whose range tombstones were not loaded yet ([`Table::range_tombstones`]).
    pub(crate) fn tables_to_load(&self) -> impl Iterator<Item = &Arc<Table>> {
        let runs = self.has_range_tombstones().then(|| self.runs()).into_iter().flatten();
        let runs = runs.filter(|(_, run)| run.has_range_tombstones());
        runs.flat_map(|(_, run)| run.tables()).filter(|table| table.needs_range_tombstones())
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<FileHandle>> {
        let tables = self.tables().flat_map(|table| std::iter::once(table.file()).chain(table.filter()));
        tables.chain(self.view.iter().map(|view| view.file()))
    }
}
