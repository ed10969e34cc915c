//! The queries that a filter is designed for: their positions in the tree, and the number of bits that they share with
//! keys.

use super::bounds::Bounds;
use super::keys::key_bytes;
use super::layout::DEPTH_MAX;
use crate::bit_string::advance;
use crate::{KeyRange, KeySet};

/// With fewer usable queries than this, generated ones are added.
const SAMPLES_MIN: usize = 32;

/// Samples of more than one query per this number of keys, and of more than this number of queries, are thinned.
const KEYS_PER_SAMPLE: usize = 4;
const SAMPLES_MAX_MIN: usize = 2048;

/// Number of generated queries: as many as have this number of bytes in total, within these limits.
const SYNTHETIC_BYTES: usize = 1 << 17;
const SYNTHETIC_MIN: usize = 8;
const SYNTHETIC_FEW: usize = 64;
const SYNTHETIC_MAX: usize = 512;

/// Longest generated range of integers, in keys: the longest of the paper's short ranges.
const SYNTHETIC_SIZE_MAX: u64 = 64;

/// A query whose range contains no key.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleQuery<'a> {
    pub(super) bounds: Bounds<'a>,
    /// Depths down to which the nodes of the lower and of the upper bound contain a key.
    pub(super) present: (u32, u32),
    pub(super) is_point: bool,
    pub(super) weight: f64,
}

impl<'a> SampleQuery<'a> {
    /// `None` for a range that contains a key, and for one that no key of the table's length can be in.
    pub(super) fn new(keys: &KeySet, range: &KeyRange<'a>) -> Option<Self> {
        let bounds = Bounds::new(range, key_bytes(keys))?;
        let index = keys.lower_index(range);
        let before = index.checked_sub(1).and_then(|index| keys.get(index));
        let behind = keys.get(index);
        if behind.is_some_and(|key| range.contains(key)) {
            return None;
        }
        let present = bounds.shared_bits([before, behind]);
        let is_point = range.as_point().is_some();
        Some(Self { bounds, present, is_point, weight: 1.0 })
    }
}

/// The usable queries of a sample. Takes every n-th query if the sample is large in relation to the keys, since each
/// query costs a binary search.
pub(super) fn sampled_cases<'a>(keys: &KeySet, queries: &'a [KeyRange<'a>]) -> Vec<SampleQuery<'a>> {
    let most = (keys.len() / KEYS_PER_SAMPLE).max(SAMPLES_MAX_MIN);
    let step = queries.len().div_ceil(most).max(1);
    queries.iter().step_by(step).filter_map(|range| SampleQuery::new(keys, range)).collect()
}

/// The usable queries of all.
pub(super) fn cases<'a>(keys: &KeySet, queries: &'a [KeyRange<'a>]) -> Vec<SampleQuery<'a>> {
    queries.iter().filter_map(|range| SampleQuery::new(keys, range)).collect()
}

/// Whether a number of queries suffices to design a filter.
pub(super) const fn is_enough(case_count: usize) -> bool {
    case_count >= SAMPLES_MIN
}

/// Bounds of generated queries.
#[derive(Debug, Default)]
pub(super) struct SyntheticQueries {
    bounds: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl SyntheticQueries {
    /// As many points as ranges, each right after a key: the most difficult queries. Ranges of integers have up to 64
    /// keys, other ranges are prefixes next to a key.
    pub(super) fn new(keys: &KeySet) -> Self {
        let mut bounds = Vec::new();
        let mut random = 0x5eed_u64;
        let mut next = || {
            random = random.wrapping_add(1);
            crate::mix64(random, 0)
        };
        let longest = keys.get(0).map_or(0, <[u8]>::len);
        let most = if keys.len() < 4000 { SYNTHETIC_FEW } else { SYNTHETIC_MAX };
        let count = (SYNTHETIC_BYTES / (longest + 1)).clamp(SYNTHETIC_MIN, most);
        for number in 0..count {
            let Some(index) = next().checked_rem(keys.len() as u64) else { break };
            let Some(key) = keys.get(index as usize) else { break };
            let is_range = number % 2 == 0;
            let (distance, size) = (1 + next() % SYNTHETIC_SIZE_MAX, 2 + next() % (SYNTHETIC_SIZE_MAX - 1));
            let mut lower = key.to_vec();
            advance(&mut lower, 0, if key_bytes(keys) == 0 { 1 } else { distance });
            let upper = (is_range && key_bytes(keys) != 0).then(|| {
                let mut upper = lower.clone();
                advance(&mut upper, 0, size - 1);
                upper
            });
            match (is_range, upper) {
                (false, _) => bounds.push((lower.clone(), Some(lower))),
                (true, upper) => bounds.push((lower, upper)),
            }
        }
        Self { bounds }
    }

    pub(super) fn ranges(&self) -> Vec<KeyRange<'_>> {
        self.bounds
            .iter()
            .map(|(lower, upper)| match upper {
                Some(upper) => KeyRange::closed(lower, upper),
                None => KeyRange::prefix(lower),
            })
            .collect()
    }
}

/// The greatest depth that is useful for the queries: a few bits deeper than the bits that they share with keys.
pub(super) fn useful_depth(cases: &[SampleQuery<'_>]) -> u32 {
    let deepest =
        cases.iter().map(|case| case.present.0.max(case.present.1)).filter(|depth| *depth < DEPTH_MAX);
    deepest.max().unwrap_or(0).saturating_add(32)
}

/// The number of bits that a query shares with keys.
fn depth(case: &SampleQuery<'_>) -> u32 {
    case.present.0.max(case.present.1)
}

/// Maximum numbers of queries of a group.
const GROUP_MAX: [usize; 5] = [14, 7, 4, 2, 1];

/// A group of queries: those of equal kind (points or ranges) and depth. Depths of more than 64 bits are in one group if
/// their quotients by `unit` are equal.
fn group(case: &SampleQuery<'_>, unit: u32) -> (bool, u32) {
    let depth = depth(case);
    (case.is_point, if depth > 64 { 64 + depth / unit } else { depth })
}

/// Thins queries to about `count_max`: some of each group, spread over its sizes and weighted so that the expected cost
/// stays the same. Rare queries, those next to a key, are kept. The deepest come first: they cost most, so that the
/// evaluation of a bad design ends early.
pub(super) fn thinned<'a>(cases: &[SampleQuery<'a>], count_max: u64) -> Vec<SampleQuery<'a>> {
    let size = |case: &SampleQuery<'_>| {
        let (first, last) = case.bounds.span(64).unwrap_or((0, u64::MAX));
        last.wrapping_sub(first)
    };
    let mut sorted = cases.to_vec();
    // Levels deeper than 64 bits end at whole bytes: depths within one byte are equivalent.
    sorted.sort_by_key(|case| (group(case, 8), size(case)));
    let groups = |unit: u32| sorted.chunk_by(move |left, right| group(left, unit) == group(right, unit));
    let fits = |(group_max, unit): &(usize, u32)| {
        groups(*unit).map(|group| group.len().min(*group_max) as u64).sum::<u64>() <= count_max
    };
    // Few of each group, and then larger groups of depths.
    let precisions = GROUP_MAX.map(|group_max| (group_max, 8)).into_iter();
    let (group_max, unit) =
        precisions.chain((4..31).map(|exponent| (1, 1 << exponent))).find(fits).unwrap_or((1, 1 << 31));
    let mut thinned = Vec::new();
    for (number, group) in groups(unit).enumerate() {
        let step = (group.len() as f64 / group_max as f64).max(1.0);
        // Different offsets per group: together they cover the sizes evenly.
        let start = (number as f64 * 0.618_034 + 0.5).fract();
        let taken = (0..(group.len() as f64 / step).round() as usize)
            .filter_map(|index| group.get(((index as f64 + start) * step) as usize));
        thinned.extend(taken.map(|case| SampleQuery { weight: case.weight * step, ..*case }));
    }
    thinned.reverse();
    thinned
}

/// Shares and numbers of queries from which on a depth is statistically reliable.
const BELIEVED_SHARE: f64 = 0.05;
const BELIEVED_MIN: usize = 200;

/// Deviations from evenly distributed distances, in standard deviations, that are still attributed to chance. The
/// limit is high because several depths are tested, and a few outliers in the sample do more harm than a slightly
/// wrong model.
const DEVIATIONS_MAX: f64 = 4.0;

/// Smooths the depths of the few queries that are closest to keys.
///
/// The number of bits that a bound shares with a key decides rare false positives, and the deepest queries are too few
/// to be counted. If the reliable ones (`m` queries deeper than some depth) look as if distances to keys were evenly
/// distributed, this assigns depths by that distribution: of the queries in a common node of `s` keys, a part of `(t -
/// 1) / (s - 1)` is in a common node of `t` keys.
pub(super) fn smooth(cases: &mut [SampleQuery<'_>]) {
    let Some(Bounds::Words { keys, .. }) = cases.first().map(|case| case.bounds) else { return };
    let bit_count = keys.bit_count();
    let enough = ((cases.len() as f64 * BELIEVED_SHARE) as usize).max(BELIEVED_MIN);
    let reach = |from: u32| cases.iter().filter(|case| !case.is_point && depth(case) >= from).count();
    let Some(from) = (0..bit_count).rev().find(|from| reach(*from) >= enough) else { return };
    let total = reach(from) as f64;
    let node = |depth: u32| 2.0_f64.powi((bit_count - depth).cast_signed()) - 1.0;
    let law = |depth: u32| node(depth) / node(from);
    let is_even = (from..=bit_count).all(|depth| {
        let expected = law(depth) * total;
        (reach(depth) as f64 - expected).abs() <= DEVIATIONS_MAX * expected.sqrt() + 1.0
    });
    if !is_even {
        return;
    }
    let deep = cases.iter_mut().filter(|case| !case.is_point && depth(case) >= from);
    for (number, case) in deep.enumerate() {
        // Golden-ratio steps are evenly distributed and independent of the order of the queries.
        let part = ((number as f64 + 0.5) * 0.618_033_988_749_895).fract();
        let drawn = (from..bit_count).rev().find(|depth| law(*depth) >= part).unwrap_or(from);
        let both = match case.bounds {
            Bounds::Words { lower, upper, keys } => keys.shared_bits(lower, upper),
            Bounds::Bytes(_) => 0,
        };
        let (lower, upper) = case.present;
        // Beyond the bits that both bounds share, the depth belongs to one bound only.
        let shared = drawn.min(both);
        let lower_own = lower >= upper;
        let other = |own: u32| if own < from { own.max(shared) } else { shared };
        case.present = if lower_own { (drawn, other(upper)) } else { (other(lower), drawn) };
    }
}

#[cfg(test)]
mod tests;
