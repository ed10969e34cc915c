//! Selects the runs and views that a scan reads: probes the filters of the runs.
//!
//! It needs no cursor. So a closed range for which nothing is selected, and in which the memtables have no entry, ends before a scan of it
//! is created ([`super::scan`]).

use std::sync::Arc;

use tamis_filter::{Digester, RangeProbe};

use super::{
    ReadTools,
    scan_query::ScanQuery,
    select_runs::{RunSelector, SelectedRun},
    select_views::Selection,
    touched_range::TouchedRange,
    view_opener::ViewOpener,
};
use crate::{
    cache::table::TableCache,
    cursor::bounded::as_slice,
    error::Result,
    store::keyspace_state::ReadState,
    transaction::own_writes::has_entries,
    version::{bound_view::BoundView, level::Run, partition::Partition},
};

/// See the head of this file.
pub(super) struct RangeSelector<'a> {
    pub(super) touched: &'a TouchedRange,
    pub(super) read_state: &'a ReadState,
    pub(super) tables: &'a TableCache,
    pub(super) digester: &'a Digester,
    pub(super) views: ViewOpener,
    pub(super) query: &'a ScanQuery,
}

impl ReadTools {
    /// The selector of a scan.
    pub(super) fn selector<'a>(
        &'a self,
        read_state: &'a ReadState,
        touched: &'a TouchedRange,
        query: &'a ScanQuery,
    ) -> RangeSelector<'a> {
        let Self { tables, digester, views, .. } = self;
        RangeSelector { touched, read_state, tables, digester, views: *views, query }
    }
}

impl<'a> RangeSelector<'a> {
    /// A probe for the filters of all runs.
    pub(super) fn range_probe(&self) -> RangeProbe<'a> {
        RangeProbe::new(self.touched.filter_range(), self.digester)
    }

    /// The partition that the range touches, and its position. Of several, each is selected for itself ([`super::partition_walk`]).
    fn partition(&self) -> Option<(usize, &'a Partition)> {
        let position = self.touched.positions.start;
        self.read_state.version.partitions.get(position).map(|partition| (position, &**partition))
    }

    /// The runs of the partition, newest first.
    pub(super) fn runs(&self) -> impl Iterator<Item = (usize, &'a Arc<Run>)> {
        self.partition().into_iter().flat_map(|(_, partition)| partition.runs())
    }

    /// The runs and the view to read.
    pub(super) fn select(&self) -> Selection {
        let Some((_, partition)) = self.partition().filter(|_| !self.touched.range.is_empty()) else {
            return Selection::default();
        };
        let view = self.view();
        let is_open = self.query.kind().is_none();
        if is_open && view.as_ref().is_some_and(|view| view.is_complete) {
            return Selection { runs: Vec::new(), view };
        }
        let probe = self.range_probe();
        let mut runs = Vec::new();
        for (rank, (level, run)) in partition.runs().enumerate() {
            if !is_open || view.as_ref().is_none_or(|view| !view.covers(rank)) {
                runs.extend(self.select_one(rank, (level, run), &probe));
            }
        }
        self.tables.metrics().digests.add(u64::from(probe.digest_count()));
        if is_open { Selection { runs, view } } else { Selection::of_closed(runs, view) }
    }

    /// The selection for a closed range of which these runs were selected. The view replaces some of them.
    pub(super) fn with_view(&self, runs: Vec<SelectedRun>) -> Selection {
        Selection::of_closed(runs, self.view())
    }

    /// The run at a position in the partition, if it is read; its filter is checked now.
    pub(super) fn select_run(&self, rank: usize, probe: &RangeProbe<'_>) -> Option<SelectedRun> {
        self.runs().nth(rank).and_then(|run| self.select_one(rank, run, probe))
    }

    fn select_one(
        &self,
        rank: usize,
        (level, run): (usize, &Arc<Run>),
        probe: &RangeProbe<'_>,
    ) -> Option<SelectedRun> {
        let bounds = (as_slice(&self.touched.range.lower), as_slice(&self.touched.range.upper));
        let Self { tables, query, .. } = *self;
        RunSelector { tables, range: &self.touched.range, probe, query }.select(rank, level, run, bounds)
    }

    /// The view of the partition, if it has one that can be used now.
    fn view(&self) -> Option<Arc<BoundView>> {
        let (position, partition) = self.partition()?;
        let named = partition.view.as_ref()?;
        let version = &self.read_state.version;
        let view = self.views.reader(named, partition, self.tables.environment(), version.id)?;
        self.read_state.views.get(version, position, view).map(Arc::clone)
    }

    /// Whether a memtable has an entry of the range, in any version.
    pub(super) fn has_memtable_entries(&self) -> Result<bool> {
        for memtable in self.read_state.memtables() {
            if has_entries(&memtable.memtable, &self.touched.range)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
