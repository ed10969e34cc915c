//! The tables of a keyspace at one moment: partitions, levels, runs, tables.
//!
//! `invariants.rs` lists and checks the invariants. A version is immutable once it is installed, and is shared by `Arc`.

use std::{
    ops::{Bound, Range},
    sync::{Arc, OnceLock},
};

use super::{
    filter_memory::{FilterMemory, FilterSums},
    handle::{FileHandle, Table},
    key_bounds::KeyBounds,
    level::{Level, Run},
    named_view::NamedView,
    partitions::Partitions,
    search_order::SearchOrder,
    totals::Totals,
};
use crate::{
    key::Sequence,
    options::KeyspaceOptions,
    steps::{self, Step},
    view::writer::RunSummary,
};

/// A keyspace: a named, ordered map.
#[derive(Debug, Clone)]
pub(crate) struct KeyspaceVersion {
    /// Never reused.
    pub(crate) id: u64,
    pub(crate) name: Arc<str>,
    pub(crate) options: Arc<KeyspaceOptions>,
    /// In order of lower bounds.
    pub(crate) partitions: Partitions,
}

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
    /// The same for their filters.
    filter_sums: Arc<FilterSums>,
    /// A filter over all tables of the partition.
    pub(crate) filter: Option<Arc<FileHandle>>,
    /// A sorted view over some of the runs.
    pub(crate) view: Option<Arc<NamedView>>,
}

impl KeyspaceVersion {
    /// Position of the partition of `key`. No key is below the first partition.
    #[inline]
    pub(crate) fn partition_index(&self, key: &[u8]) -> usize {
        self.partitions
            .get(1..)
            .map_or(0, |rest| rest.partition_point(|partition| partition.lower.as_slice() <= key))
    }

    /// The partition of `key`; `None` only in a version without partitions.
    #[inline]
    pub(crate) fn partition_of(&self, key: &[u8]) -> Option<&Arc<Partition>> {
        self.partitions.get(self.partition_index(key))
    }

    /// The partitions that overlap the bounds.
    pub(crate) fn partitions_within(&self, bounds: KeyBounds<'_>) -> &[Arc<Partition>] {
        self.partitions.get(self.positions_within(bounds)).unwrap_or_default()
    }

    /// The positions of the partitions that overlap the bounds.
    pub(crate) fn positions_within(&self, (lower, upper): KeyBounds<'_>) -> Range<usize> {
        let from = match lower {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => self.partition_index(key),
        };
        let to = match upper {
            Bound::Unbounded => self.partitions.len(),
            Bound::Included(key) => self.partition_index(key) + 1,
            Bound::Excluded(key) => {
                self.partitions.get(1..).map_or(0, |rest| rest.partition_point(|p| p.lower.as_slice() < key))
                    + 1
            }
        };
        from..to.max(from)
    }

    /// The upper bound (exclusive) of the partition at `index`; `None` for the last one.
    pub(crate) fn upper_of(&self, index: usize) -> Option<&[u8]> {
        self.partitions.get(index + 1).map(|next| next.lower.as_slice())
    }

    /// Every entry of the keyspace up to this sequence number is in tables.
    #[cfg(test)]
    pub(crate) fn flushed_sequence(&self) -> Sequence {
        self.partitions.iter().map(|partition| partition.flushed_sequence).min().unwrap_or(0)
    }

    /// The number of L0 runs of the partition that has the most. Computed once for a version.
    #[inline]
    pub(crate) fn level0_run_count(&self) -> usize {
        self.partitions.level0_run_count()
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.partitions.iter().flat_map(|partition| partition.tables())
    }

    /// Keys and filter bits of all tables.
    pub(crate) fn filter_memory(&self) -> FilterMemory {
        let sums = self.partitions.iter().map(|partition| partition.filter_memory());
        sums.fold(FilterMemory::default(), |all, sum| all.plus(&sum))
    }

    /// Those of the tables with these file numbers. They are searched from the partition of `near` on.
    pub(crate) fn filter_memory_of(&self, numbers: &[u64], near: &[u8]) -> FilterMemory {
        let mut found = FilterMemory::default();
        let mut missing = numbers.len();
        let first = self.partition_index(near);
        let partitions = self.partitions.iter().skip(first).chain(self.partitions.iter().take(first));
        for (level, table) in partitions.flat_map(|partition| partition.tables_with_levels()) {
            if missing == 0 {
                break;
            }
            if numbers.contains(&table.number()) {
                found.add_table(level, table);
                missing -= 1;
            }
        }
        found
    }

    /// The files of the version: tables, filters, views.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<FileHandle>> {
        self.partitions.iter().flat_map(|partition| partition.files())
    }
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
            filter_sums: Arc::default(),
            filter: None,
            view: None,
        }
    }

    /// L0 first.
    pub(crate) fn levels(&self) -> &[Level] {
        &self.levels
    }

    fn levels_mut(&mut self) -> &mut Vec<Level> {
        (self.search_order, self.totals) = (OnceLock::new(), OnceLock::new());
        self.filter_sums = Arc::default();
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

    fn tables_with_levels(&self) -> impl Iterator<Item = (usize, &Arc<Table>)> {
        let levels = self.levels.iter().enumerate();
        levels.flat_map(|(number, level)| level.tables().map(move |table| (number, table)))
    }

    /// All runs with their levels, newest entries first: the order of point reads.
    #[inline]
    pub(crate) fn runs(&self) -> impl Iterator<Item = (usize, &Arc<Run>)> {
        self.search_order().runs()
    }

    /// The tables that can have an entry of `key`, with their levels and runs, newest entries first.
    #[inline]
    pub(crate) fn tables_of(&self, key: &[u8]) -> impl Iterator<Item = (usize, &Arc<Run>, &Arc<Table>)> {
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

    /// Keys and filter bits of all tables.
    pub(crate) fn filter_memory(&self) -> FilterMemory {
        self.filter_sums.get(&self.levels)
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
        tables.chain(&self.filter).chain(self.view.iter().map(|view| view.file()))
    }
}

#[cfg(test)]
mod tests;
