//! Cuts overlapping range tombstones into disjoint fragments: a sweep over their bounds.
//!
//! Cost: O(n log n) for n tombstones, times the number of read points.

use std::collections::BTreeSet;

use super::{Fragment, Fragments, RangeTombstone, compare_uppers};
use crate::{
    key::Sequence,
    observe::steps::{self, Step},
};

/// The fragments of some tombstones. Of the tombstones that cover a span, the newest of each stratum between two `read_points`
/// (ascending) is kept, and all above the last point.
pub(crate) fn fragment(
    tombstones: impl IntoIterator<Item = RangeTombstone>,
    read_points: &[Sequence],
) -> Fragments {
    let mut starting: Vec<RangeTombstone> = tombstones.into_iter().collect();
    steps::count(Step::FragmentedTombstone, starting.len());
    starting.sort_unstable_by(|left, right| left.lower.cmp(&right.lower));
    let mut ending: Vec<(Vec<u8>, Sequence)> =
        starting.iter().map(|tombstone| (tombstone.upper.clone(), tombstone.sequence)).collect();
    ending.sort_unstable_by(|left, right| compare_uppers(&left.0, &right.0));
    let mut starting = starting.into_iter().map(|tombstone| (tombstone.lower, tombstone.sequence)).peekable();
    let mut ending = ending.into_iter().filter(|(upper, _)| !upper.is_empty()).peekable();

    let mut list: Vec<Fragment> = Vec::new();
    // Two tombstones may have one sequence number: parts of one that was cut at the bounds of tables.
    let mut active: BTreeSet<(Sequence, usize)> = BTreeSet::new();
    let mut ordinal = 0;
    let mut lower: Vec<u8> = Vec::new();
    loop {
        let next = match (starting.peek(), ending.peek()) {
            (Some((start, _)), Some((end, _))) => start.min(end).clone(),
            (Some((bound, _)), None) | (None, Some((bound, _))) => bound.clone(),
            (None, None) => break,
        };
        push(&mut list, &lower, &next, &active, read_points);
        while let Some((_, sequence)) = ending.next_if(|(end, _)| *end == next) {
            if let Some(&ended) = active.range((sequence, 0)..=(sequence, usize::MAX)).next() {
                active.remove(&ended);
            }
        }
        while let Some((_, sequence)) = starting.next_if(|(start, _)| *start == next) {
            active.insert((sequence, ordinal));
            ordinal += 1;
        }
        lower = next;
    }
    // The tombstones that are still active have no upper bound.
    push(&mut list, &lower, &[], &active, read_points);
    Fragments::of(list)
}

/// Adds the span between two bounds; a span that continues the previous one extends it.
fn push(
    list: &mut Vec<Fragment>,
    lower: &[u8],
    upper: &[u8],
    active: &BTreeSet<(Sequence, usize)>,
    read_points: &[Sequence],
) {
    if active.is_empty() || (lower >= upper && !upper.is_empty()) {
        return;
    }
    let sequences = kept(active, read_points);
    match list.last_mut() {
        Some(last) if last.upper == lower && !lower.is_empty() && last.sequences == sequences => {
            last.upper = upper.to_vec();
        }
        _ => list.push(Fragment { lower: lower.to_vec(), upper: upper.to_vec(), sequences }),
    }
}

/// Descending: all above the last read point, and the newest of each stratum below.
fn kept(active: &BTreeSet<(Sequence, usize)>, read_points: &[Sequence]) -> Vec<Sequence> {
    let last = read_points.last().copied().unwrap_or(0);
    let mut sequences: Vec<Sequence> =
        active.range((last + 1, 0)..).rev().map(|&(sequence, _)| sequence).collect();
    for (index, &point) in read_points.iter().enumerate().rev() {
        let below = index.checked_sub(1).and_then(|index| read_points.get(index)).copied().unwrap_or(0);
        let newest = active.range(..=(point, usize::MAX)).next_back();
        sequences.extend(newest.map(|&(sequence, _)| sequence).filter(|&sequence| sequence > below));
    }
    sequences.dedup();
    sequences
}
