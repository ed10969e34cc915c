//! The range tombstones that delete entries of a scan.

use std::{ops::Bound, sync::Arc};

use crate::{
    cache::table::TableCache,
    cursor::{
        bounded::KeyRange,
        coverage::{CoverSource, Coverage, FIRST_RANK},
    },
    empty_ranges::KnownRanges,
    key::Sequence,
    store::keyspace_state::ReadState,
    version::level::Run,
};

/// The range tombstones of the memtables and of `runs`, which are in the order of their ranks, and the ranges without entries if some of
/// them are in `range`.
pub(super) fn coverage_of<'a>(
    read_state: &ReadState,
    range: &KeyRange,
    runs: impl Iterator<Item = &'a Arc<Run>>,
    tables: &Arc<TableCache>,
    sequence: Sequence,
) -> Option<Coverage> {
    let mut sources = Vec::new();
    let lower = match &range.lower {
        Bound::Unbounded => &[][..],
        Bound::Included(key) | Bound::Excluded(key) => key,
    };
    let is_within =
        |known: &Arc<KnownRanges>| known.first_from(lower).is_some_and(|first| !range.is_above(&first.lower));
    let known = read_state.empty_ranges.load().filter(is_within);
    sources.extend(known.map(|known| (0, CoverSource::Empty(known))));
    for (rank, memtable) in (FIRST_RANK..).zip(read_state.memtables()) {
        let tombstones = memtable.memtable.range_tombstones();
        if !tombstones.is_empty() {
            let spans = tombstones.spans_at(sequence);
            sources.extend((!spans.is_empty()).then_some((rank, CoverSource::Memtable(spans))));
        }
    }
    let first_run = FIRST_RANK + read_state.memtables().count();
    let runs = runs.enumerate().filter(|(_, run)| run.has_range_tombstones());
    sources.extend(runs.map(|(rank, run)| (first_run + rank, CoverSource::Run(Arc::clone(run)))));
    Coverage::new(sources, tables, sequence)
}
