//! Scans of several ranges at one point in time.
//!
//! The filters are probed before the first block is read: run by run, and in each run in the order of the ranges, so that a filter is
//! in the CPU cache for all ranges of its table. The runs of a range share the digests of its probe. A range that all filters
//! reject reads nothing later.

use std::{ops::Bound, sync::Arc};

use tamis_filter::RangeProbe;

use super::{
    ReadPath,
    scan::Scan,
    scan_source::{ScanPoint, ScanSource},
    select_runs::SelectedRun,
    select_views::Selection,
    snapshot::SnapshotPoint,
    touched_range::TouchedRange,
};
use crate::{
    cursor::bounded::{Bounds, ScanRange},
    store::keyspace_state::KeyspaceState,
};

impl ReadPath {
    /// A scan for each of `ranges`, in their order, at `snapshot`, or now.
    pub(crate) fn multi_scan(
        &self,
        keyspace: &KeyspaceState,
        ranges: Vec<Bounds>,
        snapshot: Option<SnapshotPoint>,
    ) -> Vec<Scan> {
        if let Err(error) = self.context.check_open().and_then(|()| keyspace.check()) {
            return ranges.iter().map(|_| Scan::new(Err(error.clone()))).collect();
        }
        let (read_state, visible) = keyspace.read_point(&self.snapshots);
        let snapshot = snapshot.unwrap_or(SnapshotPoint::now(visible)).with_time(&self.context.expiry);
        let source = |bounds| {
            let touched = TouchedRange::new(ScanRange::Bounds(bounds), &read_state);
            let query = self.scan_query(&touched, &read_state);
            let point = ScanPoint::at(snapshot);
            self.scan_source(Arc::clone(&read_state), touched, point, query, Selection::default())
        };
        let mut sources: Vec<ScanSource> = ranges.into_iter().map(source).collect();
        // No filter can reject a range that crosses partitions.
        let is_checked = |source: &&mut ScanSource| {
            !source.touched.range.is_empty() && source.several_partitions().is_none()
        };
        let mut order: Vec<&mut ScanSource> = sources.iter_mut().filter(is_checked).collect();
        order.sort_by(|left, right| lower_of(left).cmp(&lower_of(right)));
        self.select_runs_of(&mut order);
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

/// The order of ranges: by their lower bounds.
fn lower_of(source: &ScanSource) -> (&[u8], bool) {
    match &source.touched.range.lower {
        Bound::Unbounded => (&[], false),
        Bound::Included(key) => (key, false),
        Bound::Excluded(key) => (key, true),
    }
}
