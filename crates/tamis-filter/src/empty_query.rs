//! Sampled queries that contain no key, as the models of filters need them.
//!
//! An empty query is between two adjacent keys. A prefix that the query shares with a key has at most the bits that its lower end shares with
//! the key before it, or its upper end with the key after it.

use crate::bounds::Bounds;
use crate::{KeyRange, KeySet};

/// An empty query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EmptyQuery<'a> {
    pub(crate) bounds: Bounds<'a>,
    /// Common bits of its lower end and the key before it, and of its upper end and the key after it, at most those of the longest key.
    pub(crate) shared_left: u32,
    pub(crate) shared_right: u32,
    /// Common bits of its ends, at most those of the longest key.
    pub(crate) shared_ends: u32,
    pub(crate) is_point: bool,
    /// The number of sampled queries that it represents.
    pub(crate) weight: f64,
}

impl<'a> EmptyQuery<'a> {
    /// `None` for a range that contains a key, and for one that no key of the set's length can be in. Costs a binary search.
    pub(crate) fn new(keys: &KeySet, range: &KeyRange<'a>) -> Option<Self> {
        let bounds = Bounds::new(range, keys.common_length().unwrap_or(0) as u32)?;
        let index = keys.lower_index(range);
        let after = keys.get(index);
        if after.is_some_and(|key| range.contains(key)) {
            return None;
        }
        let before = index.checked_sub(1).and_then(|index| keys.get(index));
        let (shared_left, shared_right) = bounds.shared_bits(before, after);
        let is_point = match bounds {
            Bounds::Words { lower, upper, .. } => lower == upper,
            Bounds::Bytes(_) => range.as_point().is_some(),
        };
        let [shared_left, shared_right, shared_ends] =
            [shared_left, shared_right, bounds.shared_ends()].map(|bits| bits.min(keys.bit_count()));
        Some(Self { bounds, shared_left, shared_right, shared_ends, is_point, weight: 1.0 })
    }

    /// The empty ones of some ranges.
    pub(crate) fn all_of(keys: &KeySet, ranges: &[KeyRange<'a>]) -> Vec<Self> {
        ranges.iter().filter_map(|range| Self::new(keys, range)).collect()
    }

    /// The longest common prefix of a string of the query and a key.
    #[inline]
    pub(crate) const fn near(&self) -> u32 {
        if self.shared_left > self.shared_right { self.shared_left } else { self.shared_right }
    }

    /// Number of prefixes of `bits` bits that cover the query, or `u64::MAX` if it is larger.
    #[inline]
    pub(crate) fn prefix_count(&self, bits: u32) -> u64 {
        if bits <= self.shared_ends { 1 } else { self.bounds.prefix_count(bits) }
    }
}

/// A group of queries: those of equal kind (points or ranges) and [`EmptyQuery::near`]. Those with more than 64 bits are in one group if
/// their quotients by `unit` are equal.
fn group(query: &EmptyQuery<'_>, unit: u32) -> (bool, u32) {
    let near = query.near();
    (query.is_point, if near > 64 { 64 + near / unit } else { near })
}

/// Thins queries to about `count_max`, unless there are fewer: at most `group_max` of each group, spread over its sizes and weighted so that the expected cost
/// stays the same. Rare queries, those next to a key, are kept. The nearest come first: they cost most, so that the
/// evaluation of a bad design ends early.
pub(crate) fn thinned<'a>(
    queries: &[EmptyQuery<'a>],
    count_max: u64,
    group_max: usize,
) -> Vec<EmptyQuery<'a>> {
    let size = |query: &EmptyQuery<'_>| {
        let (first, last) = query.bounds.span(64).unwrap_or((0, u64::MAX));
        last.wrapping_sub(first)
    };
    let mut sorted = queries.to_vec();
    sorted.sort_by_key(|query| (group(query, 8), query.near(), size(query)));
    let groups = |unit: u32| sorted.chunk_by(move |left, right| group(left, unit) == group(right, unit));
    let fits = |(group_max, unit): &(usize, u32)| {
        groups(*unit).map(|group| group.len().min(*group_max) as u64).sum::<u64>() <= count_max
    };
    // Few of each group, and then larger groups.
    let halves = std::iter::successors(Some(group_max), |max| Some(max / 2).filter(|max| *max > 0));
    let precisions = std::iter::once(usize::MAX).filter(|_| queries.len() as u64 <= count_max).chain(halves);
    let precisions = precisions.map(|group_max| (group_max, 8));
    let (group_max, unit) =
        precisions.chain((4..31).map(|exponent| (1, 1 << exponent))).find(fits).unwrap_or((1, 1 << 31));
    let mut thinned = Vec::new();
    for (number, group) in groups(unit).enumerate() {
        let step = (group.len() as f64 / group_max as f64).max(1.0);
        // Different offsets per group: together they cover the sizes evenly.
        let start = (number as f64 * 0.618_034 + 0.5).fract();
        let taken = (0..(group.len() as f64 / step).round() as usize)
            .filter_map(|index| group.get(((index as f64 + start) * step) as usize));
        thinned.extend(taken.map(|query| EmptyQuery { weight: query.weight * step, ..*query }));
    }
    thinned.reverse();
    thinned
}

#[cfg(test)]
mod tests;
