//! The queries that a filter is designed for: where each lies in the tree, and how deep it shares bits with keys.

use super::bounds::Bounds;
use super::counters::Usage;
use super::keys::Keys;
use super::layout::DEPTH_MAX;
use crate::KeyRange;

/// Fewer usable queries than this are filled up with invented ones.
const SAMPLES_MIN: usize = 32;

/// Queries invented where there are none: as many as have so many bytes together, between these numbers.
const INVENTED_BYTES: usize = 1 << 17;
const INVENTED_MIN: usize = 8;
const INVENTED_FEW: usize = 64;
const INVENTED_MAX: usize = 512;

/// Longest of the invented ranges of integers, in keys: what the paper takes for the longest short range.
const INVENTED_SIZE_MAX: u64 = 64;

/// A query that holds no key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) bounds: Bounds<'a>,
    /// Depth down to which the node of the lower bound holds a key; and of the upper bound.
    pub(super) present: (u32, u32),
    pub(super) is_point: bool,
    pub(super) weight: f64,
}

impl<'a> Case<'a> {
    /// `None` for a range that holds a key, or that no key of the table's length could lie in.
    fn new(keys: &Keys, range: &KeyRange<'a>) -> Option<Self> {
        let bounds = Bounds::new(range, keys.key_bytes())?;
        let (index, is_held) = keys.find(range);
        if is_held {
            return None;
        }
        let mut buffers = [[0; 8]; 2];
        let [first, second] = &mut buffers;
        let before = index.checked_sub(1).and_then(|index| keys.get(index, first));
        let behind = keys.get(index, second);
        let present = bounds.shared_bits([before, behind]);
        let is_point = range.as_point().is_some();
        Some(Self { bounds, present, is_point, weight: 1.0 })
    }

    /// The same of integers, whose bounds borrow nothing.
    const fn without_bytes(self) -> Option<Case<'static>> {
        let Bounds::Words { lower, upper, bit_count } = self.bounds else { return None };
        let bounds = Bounds::Words { lower, upper, bit_count };
        Some(Case { bounds, present: self.present, is_point: self.is_point, weight: self.weight })
    }
}

/// The cases of sampled queries.
pub(super) fn cases<'a>(keys: &Keys, queries: &'a [KeyRange<'a>]) -> Vec<Case<'a>> {
    queries.iter().filter_map(|range| Case::new(keys, range)).collect()
}

/// Whether so many cases are enough to design a filter for.
pub(super) const fn is_enough(case_count: usize) -> bool {
    case_count >= SAMPLES_MIN
}

/// Bounds of queries that nobody asked.
#[derive(Debug, Default)]
pub(super) struct Invented {
    bounds: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Invented {
    /// As many points as ranges, all right behind a key: what is asked where nothing is known, at its hardest. Ranges of
    /// integers have up to 64 keys, other ranges are prefixes beside a key.
    pub(super) fn new(keys: &Keys) -> Self {
        let mut bounds = Vec::new();
        let mut random = 0x5eed_u64;
        let mut next = || {
            random = random.wrapping_add(1);
            crate::remix(random, 0)
        };
        let mut buffer = [0; 8];
        let longest = keys.get(0, &mut buffer).map_or(0, <[u8]>::len);
        let most = if keys.len() < 4000 { INVENTED_FEW } else { INVENTED_MAX };
        let count = (INVENTED_BYTES / (longest + 1)).clamp(INVENTED_MIN, most);
        for number in 0..count {
            let Some(index) = next().checked_rem(keys.len() as u64) else { break };
            let Some(key) = keys.get(index as usize, &mut buffer) else { break };
            let is_range = number % 2 == 0;
            let (distance, size) = (1 + next() % INVENTED_SIZE_MAX, 2 + next() % (INVENTED_SIZE_MAX - 1));
            let mut lower = key.to_vec();
            add(&mut lower, if keys.key_bytes() == 0 { 1 } else { distance });
            let upper = (is_range && keys.key_bytes() != 0).then(|| {
                let mut upper = lower.clone();
                add(&mut upper, size - 1);
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

/// Adds to a key as to a big-endian integer; what runs over is lost.
fn add(key: &mut [u8], amount: u64) {
    let mut carry = amount;
    for byte in key.iter_mut().rev() {
        let sum = u64::from(*byte) + (carry & 0xff);
        *byte = sum as u8;
        carry = (carry >> 8) + (sum >> 8);
    }
}

/// The greatest depth that is of use to the cases: a few bits beyond what they share with keys.
pub(super) fn depth_of_use(cases: &[Case<'_>]) -> u32 {
    let deepest =
        cases.iter().map(|case| case.present.0.max(case.present.1)).filter(|depth| *depth < DEPTH_MAX);
    deepest.max().unwrap_or(0).saturating_add(32)
}

/// The depth at which a case shares no more bits with keys.
fn depth(case: &Case<'_>) -> u32 {
    case.present.0.max(case.present.1)
}

/// Fewer cases with the same expectation: of those that share equally many bits with keys, at most `count`, spread over all
/// sizes and weighed accordingly. So rare cases, those that lie next to a key, are kept.
pub(super) fn thinned<'a>(cases: &[Case<'a>], count: usize) -> Vec<Case<'a>> {
    let size = |case: &Case<'_>| {
        let (first, last) = case.bounds.span(64).unwrap_or((0, u64::MAX));
        last.wrapping_sub(first)
    };
    let mut sorted: Vec<(bool, u32, u64, &Case<'a>)> =
        cases.iter().map(|case| (case.is_point, depth(case), size(case), case)).collect();
    sorted.sort_by_key(|(is_point, depth, size, _)| (*is_point, *depth, *size));
    let mut thinned = Vec::new();
    for (number, group) in sorted.chunk_by(|left, right| (left.0, left.1) == (right.0, right.1)).enumerate() {
        let step = (group.len() as f64 / count as f64).max(1.0);
        // Each group begins elsewhere in its step, so that together they cover the sizes closely.
        let start = (number as f64 * 0.618_034 + 0.5).fract();
        let taken = (0..(group.len() as f64 / step).round() as usize)
            .filter_map(|index| group.get(((index as f64 + start) * step) as usize));
        thinned.extend(taken.map(|(_, _, _, case)| Case { weight: case.weight * step, ..**case }));
    }
    thinned
}

/// Shares of all cases, and numbers of them, from which on a depth is believed.
const BELIEVED_SHARE: f64 = 0.05;
const BELIEVED_MIN: usize = 200;

/// Standard deviations from the law of even distances that are still chance: several depths are looked at, and to take few cases as
/// they are because one depth of them stands out does more harm than a law that is a little wrong.
const DEVIATIONS_MAX: f64 = 4.0;

/// Makes good for chance in the few cases that lie closest to keys.
///
/// How deep a bound shares bits with a key decides rare false positives, and the deepest cases are too few to be counted. Where
/// those that are enough (`m` cases deeper than some depth) look as if distances to keys were spread evenly, as many as the
/// law of even distances says are given to each depth below: of those in a common node of `s` keys, a part of `(t - 1) / (s - 1)`
/// is in a common node of `t` keys.
pub(super) fn smooth(cases: &mut [Case<'_>]) {
    let Some(Bounds::Words { bit_count, .. }) = cases.first().map(|case| case.bounds) else { return };
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
        // Golden steps go through all parts evenly, in no order that has to do with the cases.
        let part = ((number as f64 + 0.5) * 0.618_033_988_749_895).fract();
        let drawn = (from..bit_count).rev().find(|depth| law(*depth) >= part).unwrap_or(from);
        let both = match case.bounds {
            Bounds::Words { lower, upper, .. } => (lower ^ upper).leading_zeros() + bit_count - 64,
            Bounds::Bytes(_) => 0,
        };
        let (lower, upper) = case.present;
        // What lies beyond the part that both bounds have in common is one bound's own.
        let shared = drawn.min(both);
        let lower_own = lower >= upper;
        let other = |own: u32| if own < from { own.max(shared) } else { shared };
        case.present = if lower_own { (drawn, other(upper)) } else { (other(lower), drawn) };
    }
}

/// Nodes of so many bits are the least of which presence is taken for granted where nothing was counted.
const UNKNOWN_BITS: u32 = 4;

/// Ranges of up to two to the power of this many nodes of a level are taken to have been asked there.
const TOLD_BITS: u32 = 10;

/// Cases that a usage stands for.
const USAGE_CASES: usize = 512;

/// Cases as a filter's counters tell them: ranges of the sizes that were counted, at random places, whose bounds share with
/// keys as many bits as the nodes at edges that were found present say. Only for keys of one length up to eight bytes; the
/// counts of others do not tell enough.
///
/// Ranges that the budget cut off are the widest. Where no level told anything of them they are taken to lie anywhere, so that the next filter
/// has a level that they can be asked in, and its counters tell whether that was right.
pub(super) fn cases_of_usage(keys: &Keys, usage: &Usage) -> Vec<Case<'static>> {
    let bit_count = keys.key_bytes() * 8;
    let asked = usage.points + usage.ranges();
    if !(8..=64).contains(&bit_count) || asked == 0 {
        return Vec::new();
    }
    let depths = PresentDepths::new(usage, bit_count);
    let point_count = (USAGE_CASES as u64 * usage.points).div_ceil(asked) as usize;
    let told_share = 1.0 - usage.ranges_cut as f64 / (usage.ranges() as f64).max(1.0);
    // A level told where such a range has not too many nodes there.
    let depth_max = |size: u64| bit_count.saturating_sub(size.ilog2()) + TOLD_BITS;
    let is_told =
        |size| usage.levels.iter().any(|level| level.bit_count.is_some_and(|depth| depth <= depth_max(size)));
    let mut sizes = Quantiles::new(&usage.sizes);
    let case = |number: usize| {
        let random = crate::remix(number as u64, 1);
        let is_point = number < point_count;
        // Depths and sizes go through their distributions independently of each other.
        let share = (number as f64 + 0.5) / USAGE_CASES as f64;
        let other = (random >> 11) as f64 / (1_u64 << 53) as f64;
        let size = if is_point { 1 } else { sizes.at(other) };
        let last = u64::MAX >> (64 - bit_count);
        let lower = crate::remix(random, 2) % (last - (size - 1).min(last)).max(1);
        let upper = lower.saturating_add(size - 1).min(last);
        if !is_point && other >= told_share && !is_told(size) {
            let bytes = [lower, upper].map(|word| (word << (64 - bit_count)).to_be_bytes());
            let [lower, upper] = bytes.each_ref().map(|bytes| bytes.get(..bit_count as usize / 8));
            return Case::new(keys, &KeyRange::closed(lower?, upper?))?.without_bytes();
        }
        let depth = depths.at((share * 7919.0).fract()).min(bit_count - 1);
        let bounds = Bounds::Words { lower, upper, bit_count };
        Some(Case { bounds, present: (depth, depth), is_point, weight: 1.0 })
    };
    (0..USAGE_CASES).filter_map(case).collect()
}

/// Sizes of ranges by their share.
struct Quantiles<'a> {
    buckets: &'a [u64],
    total: u64,
}

impl<'a> Quantiles<'a> {
    fn new(buckets: &'a [u64]) -> Self {
        Self { buckets, total: buckets.iter().sum() }
    }

    /// The size below which a share of all lie; evenly spread within a bucket.
    fn at(&mut self, share: f64) -> u64 {
        let mut rest = share * self.total as f64;
        for (bucket, count) in self.buckets.iter().enumerate() {
            let count = *count as f64;
            if rest < count {
                let size = 2.0_f64.powi(bucket as i32) * (1.0 + rest / count);
                return (size as u64).max(1);
            }
            rest -= count;
        }
        1
    }
}

/// How deep bounds share bits with keys, as far as counters tell.
struct PresentDepths {
    /// Depth, and the share of queries that are present there; falling.
    points: Vec<(f64, f64)>,
}

impl PresentDepths {
    fn new(usage: &Usage, bit_count: u32) -> Self {
        let mut points = vec![(0.0, 1.0)];
        let levels = usage.levels.iter().filter_map(|level| Some((level.bit_count?, level)));
        for (depth, level) in levels {
            let above = points.last().map_or(1.0, |(_, share)| *share);
            let ranges = (level.ranges as f64).max(1.0);
            points.push((f64::from(depth), (level.edge_present() / ranges).clamp(1e-9, above)));
        }
        // What no level told is taken for the worst: that nothing changes down to the nodes of a few keys.
        let (deepest, share) = points.last().copied().unwrap_or((0.0, 1.0));
        let unknown = f64::from(bit_count.saturating_sub(UNKNOWN_BITS));
        if unknown > deepest {
            points.push((unknown, share));
        }
        Self { points }
    }

    /// The depth that a share of all queries reaches: above and below a level that told, each bit halves it.
    fn at(&self, share: f64) -> u32 {
        let share = share.max(1e-9);
        let mut before = (0.0, 1.0);
        for (depth, present) in &self.points {
            if *present < share {
                return (depth - (share / present).log2()).max(before.0) as u32;
            }
            before = (*depth, *present);
        }
        (before.0 + (before.1 / share).log2()) as u32
    }
}

#[cfg(test)]
mod tests;
