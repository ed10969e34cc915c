//! Scans of several ranges at one point in time.
//!
//! The filters are probed before the first block is read: run by run, and in each run in the order of the ranges, so that a filter is
//! in the CPU cache for all ranges of its table. The runs of a range share the digests of its probe. A range that all filters
//! reject reads nothing later.
//!
//! After the filters, the blocks that the ranges may read are known. Blocks that several ranges need are read once, and adjacent blocks
//! together ([`crate::table::planned_reads`]), when a scan first needs one of them.

use std::{ops::Bound, sync::Arc};

use tamis_filter::RangeProbe;

use super::{
    ReadPath, scan::Scan, scan_source::ScanSource, select_runs::SelectedRun, select_views::Selection,
    touched_range::TouchedRange,
};
use crate::{
    cursor::bounded::{Bounds, ScanRange},
    key::Sequence,
    store::keyspace_state::KeyspaceState,
    table::{lazy_reader::NamedTable as _, planned_reads::ReadPlanner},
    version::bound_view::BoundView,
    view::run::entry_at,
};

/// A range of more tables of a run is not planned together with other ranges.
const TABLES_PLANNED_MAX: usize = 2;

impl ReadPath {
    /// A scan for each of `ranges`, in their order, at `snapshot`, or now.
    pub(crate) fn multi_scan(
        &self,
        keyspace: &KeyspaceState,
        ranges: Vec<Bounds>,
        snapshot: Option<Sequence>,
    ) -> Vec<Scan> {
        if let Err(error) = self.context.check_open().and_then(|()| keyspace.check()) {
            return ranges.iter().map(|_| Scan::new(Err(error.clone()))).collect();
        }
        let (read_state, visible) = keyspace.read_point(&self.snapshots);
        let sequence = snapshot.unwrap_or(visible);
        let source = |bounds| {
            let touched = TouchedRange::new(ScanRange::Bounds(bounds), &read_state);
            let query = self.scan_query(&touched);
            self.scan_source(Arc::clone(&read_state), touched, sequence, query, Selection::default())
        };
        let mut sources: Vec<ScanSource> = ranges.into_iter().map(source).collect();
        // No filter can reject a range that crosses partitions.
        let is_checked = |source: &&mut ScanSource| {
            !source.touched.range.is_empty() && source.several_partitions().is_none()
        };
        let mut order: Vec<&mut ScanSource> = sources.iter_mut().filter(is_checked).collect();
        order.sort_by(|left, right| lower_of(left).cmp(&lower_of(right)));
        self.select_runs_of(&mut order);
        plan_reads(&mut order);
        sources.into_iter().map(|source| Scan::new(Ok(Some(Arc::new(source))))).collect()
    }

    /// Probes the filters for ranges in key order.
    fn select_runs_of(&self, order: &mut [&mut ScanSource]) {
        let probes: Vec<RangeProbe<'_>> =
            order.iter().map(|source| source.selector().range_probe()).collect();
        let run_count = order.iter().map(|source| source.selector().runs().count()).max().unwrap_or(0);
        let mut selected: Vec<Vec<SelectedRun>> = order.iter().map(|_| Vec::new()).collect();
        for rank in 0..run_count {
            for ((source, probe), selected) in order.iter().zip(&probes).zip(&mut selected) {
                selected.extend(source.selector().select_run(rank, probe));
            }
        }
        for probe in probes {
            self.metrics.digests.add(u64::from(probe.digest_count()));
        }
        for (source, runs) in order.iter_mut().zip(selected) {
            let selection = source.selector().with_view(runs);
            source.set_selection(selection);
        }
    }
}

/// Lets ranges in key order share the reads of their blocks.
fn plan_reads(order: &mut [&mut ScanSource]) {
    if order.len() < 2 {
        return;
    }
    let mut planner = ReadPlanner::default();
    order.iter().enumerate().for_each(|(number, source)| source.add_reads(number, &mut planner));
    let reads = planner.finish(order.len());
    for (source, reads) in order.iter_mut().zip(reads) {
        source.set_planned_reads(reads);
    }
}

impl ScanSource {
    /// Adds the blocks of open tables that the scan may read, if they are few.
    fn add_reads<'a>(&'a self, range_number: usize, planner: &mut ReadPlanner<'a>) {
        let few = self.selection().runs.iter().filter(|selected| selected.tables.len() <= TABLES_PLANNED_MAX);
        let tables = few.filter_map(|selected| selected.run.tables().get(selected.tables.clone())).flatten();
        for table in tables.filter_map(|table| table.slot().get()) {
            planner.add(table, range_number, self);
        }
        if let Some(bound) = &self.selection().view {
            self.add_reads_of_view(bound, range_number, planner);
        }
    }

    /// Those of the runs that a sorted view covers: the view knows which entries are in the range. A view that can't be searched reports
    /// its error to the scan.
    fn add_reads_of_view<'a>(
        &'a self,
        bound: &'a BoundView,
        range_number: usize,
        planner: &mut ReadPlanner<'a>,
    ) {
        let (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) = (&self.touched.range.lower, &self.touched.range.upper)
        else {
            return;
        };
        let Ok(all) = bound.view.ordinals_within(lower, upper) else { return };
        for ((_, run), ordinals) in bound.runs.iter().zip(all).filter(|(_, all)| !all.is_empty()) {
            let before = run.entries_before();
            let tables = entry_at(before, ordinals.start).0..=entry_at(before, ordinals.end - 1).0;
            if tables.clone().count() > TABLES_PLANNED_MAX {
                continue;
            }
            for index in tables {
                let Some(&[start, end]) = before.get(index..).and_then(<[u64]>::first_chunk) else {
                    continue;
                };
                let numbers = ordinals.start.max(start) - start..ordinals.end.min(end) - start;
                if let Some(table) = run.tables().get(index).and_then(|table| table.slot().get()) {
                    planner.add_numbered(table, range_number, numbers);
                }
            }
        }
    }
}

/// The order of ranges: by their lower bounds.
fn lower_of(source: &ScanSource) -> (&[u8], bool) {
    match &source.touched.range.lower {
        Bound::Unbounded => (&[], false),
        Bound::Included(key) => (key, false),
        Bound::Excluded(key) => (key, true),
    }
}
