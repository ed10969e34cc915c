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
    transaction::own_writes::OwnWrites,
    version::level::Run,
};

/// The range tombstones of the memtables and of `runs`, which are in the order of their ranks, and the ranges without entries if some of
/// them are in `range`.
pub(super) fn coverage_of<'a>(
    (read_state, own): (&ReadState, Option<&OwnWrites>),
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
    // A transaction may have put entries there.
    let known = read_state.empty_ranges.load().filter(|known| own.is_none() && is_within(known));
    sources.extend(known.map(|known| (0, CoverSource::Empty(known))));
    let memtables = read_state.memtables().map(|memtable| (&memtable.memtable, sequence));
    let memtables = own.map(|own| (&own.memtable, own.newest)).into_iter().chain(memtables);
    let mut first_run = FIRST_RANK;
    for (rank, (memtable, newest)) in (FIRST_RANK..).zip(memtables) {
        first_run += 1;
        let tombstones = memtable.range_tombstones();
        if !tombstones.is_empty() {
            let spans = tombstones.spans_at(newest);
            sources.extend((!spans.is_empty()).then_some((rank, CoverSource::Memtable(spans))));
        }
    }
    let runs = runs.enumerate().filter(|(_, run)| run.has_range_tombstones());
    sources.extend(runs.map(|(rank, run)| (first_run + rank, CoverSource::Run(Arc::clone(run)))));
    Coverage::new(sources, tables, sequence)
}
