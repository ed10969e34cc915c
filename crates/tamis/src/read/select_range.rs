//! Selects the runs and views that a scan reads: probes the filters of the runs.
//!
//! It needs no cursor. So a closed range for which nothing is selected, and in which the memtables have no entry, ends before a scan of it
//! is created ([`super::scan`]).

use std::{ops::Bound, sync::Arc};

use tamis_filter::{Digester, RangeProbe};

use super::{
    ReadTools,
    scan_query::ScanQuery,
    select_runs::{RunSelector, SelectedRun},
    select_views::{SelectedView, Selection, ViewContext, is_covered, open_views},
    touched_range::TouchedRange,
    view_opener::ViewOpener,
};
use crate::{
    cache::table::TableCache,
    cursor::{Cursor as _, bounded::as_slice},
    error::Result,
    key::{AFTER_ALL, SEQUENCE_MAX},
    keyspace_state::ReadState,
    version::level::Run,
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
        let Self { tables, digester, views } = self;
        RangeSelector { touched, read_state, tables, digester, views: *views, query }
    }
}

impl<'a> RangeSelector<'a> {
    /// A probe for the filters of all runs.
    pub(super) fn range_probe(&self) -> RangeProbe<'a> {
        RangeProbe::new(self.touched.filter_range(), self.digester)
    }

    /// The runs of the partitions that the range touches, newest first in each.
    pub(super) fn runs_within(&self) -> impl Iterator<Item = (usize, &'a Arc<Run>)> {
        let partitions =
            self.read_state.version.partitions.get(self.touched.positions.clone()).unwrap_or_default();
        partitions.iter().flat_map(|partition| partition.runs())
    }

    /// The runs and views to read.
    pub(super) fn select(&self) -> Selection {
        if self.touched.range.is_empty() {
            return Selection::default();
        }
        let views = self.open_views();
        let is_open = self.query.kind().is_none();
        if is_open && matches!(views.as_slice(), [view] if view.bound.is_complete) {
            return Selection::of_open(Vec::new(), views);
        }
        let probe = self.range_probe();
        let runs = self.runs_within().enumerate().filter(|(rank, _)| !is_open || !is_covered(&views, *rank));
        let runs = runs.filter_map(|(rank, run)| self.select_one(rank, run, &probe)).collect();
        self.tables.metrics().digests.add(u64::from(probe.digest_count()));
        if is_open { Selection::of_open(runs, views) } else { Selection::of_closed(runs, views) }
    }

    /// The selection for a closed range of which these runs were selected. Views replace some of them.
    pub(super) fn with_views(&self, runs: Vec<SelectedRun>) -> Selection {
        Selection::of_closed(runs, self.open_views())
    }

    /// The run at a position among those that the range touches, if it is read; its filter is checked now.
    pub(super) fn select_run(&self, rank: usize, probe: &RangeProbe<'_>) -> Option<SelectedRun> {
        self.runs_within().nth(rank).and_then(|run| self.select_one(rank, run, probe))
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

    fn open_views(&self) -> Vec<SelectedView> {
        let (environment, keyspace_id) = (self.tables.environment(), self.read_state.version.id);
        let context = ViewContext { views: self.views, environment, keyspace_id };
        open_views(self.read_state, self.touched.positions.clone(), &context)
    }

    /// Whether a memtable has an entry of the range, in any version.
    pub(super) fn has_memtable_entries(&self) -> Result<bool> {
        let filled = self.read_state.memtables().filter(|memtable| memtable.memtable.entry_count() > 0);
        for memtable in filled {
            let mut cursor = memtable.memtable.cursor();
            match &self.touched.range.lower {
                Bound::Unbounded => cursor.seek_first()?,
                Bound::Included(key) => cursor.seek(key, SEQUENCE_MAX)?,
                Bound::Excluded(key) => cursor.seek(key, AFTER_ALL)?,
            }
            if cursor.is_valid() && !self.touched.range.is_above(cursor.key()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
