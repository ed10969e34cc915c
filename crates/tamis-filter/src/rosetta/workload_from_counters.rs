//! Reconstructs queries from a filter's counters, for builds without a sample.

use super::counters::{SHARED_BYTES_MIN, Usage};
use super::keys::{Keys, PrefixCounts};
use super::sample::SampleQuery;
use crate::{KeyRange, mix64};

/// Where nothing was counted, bounds are assumed to share bits with keys down to nodes of this many bits.
const UNKNOWN_BITS: u32 = 4;

/// A level has counted ranges of up to two to the power of this number of its nodes.
const COUNTED_BITS: u32 = 10;

/// Number of reconstructed queries.
const QUERIES: usize = 512;

/// Queries reconstructed from counters: ranges of the counted sizes at random positions. The nodes at edges that were
/// found present determine how many bits the bounds share with keys.
///
/// Ranges that the probe limit ended are the widest. If no level counted them, they are assumed to be anywhere; among
/// byte strings they share with keys as many bits as these share with each other. So the next filter has a level for
/// them, and its counters show whether the assumption was right.
#[derive(Debug, Default)]
pub(super) struct CountedWorkload {
    queries: Vec<Query>,
}

/// Inclusive bounds.
#[derive(Debug)]
struct Query {
    lower: Vec<u8>,
    upper: Vec<u8>,
    /// How many bits the bounds share with keys; `None` if they must be searched among the keys.
    depth: Option<u32>,
}

impl CountedWorkload {
    pub(super) fn new(keys: &Keys, counts: &PrefixCounts, usage: &Usage) -> Self {
        let key_bits = keys.key_bytes() * 8;
        // Beyond the depth at which all keys differ, bounds share nothing.
        let deepest = if (1..=64).contains(&key_bits) { key_bits } else { counts.depth_max() + 1 };
        let is_text = key_bits == 0 || key_bits > 64;
        let asked = usage.points + usage.ranges();
        if deepest < 8 || asked == 0 {
            return Self::default();
        }
        let depths = PresentDepths::new(usage, deepest, is_text);
        let point_count = (QUERIES as u64 * usage.points).div_ceil(asked) as usize;
        let counted_share = 1.0 - usage.ranges_probe_limited as f64 / (usage.ranges() as f64).max(1.0);
        let sizes = Sizes { usage, word_bits: if key_bits == 0 { 64 } else { key_bits.min(64) } };
        let query = |number: usize| {
            let random = mix64(number as u64, 1);
            // Depths and sizes are drawn independently.
            let share = (number as f64 + 0.5) / QUERIES as f64;
            let other = (random >> 11) as f64 / (1_u64 << 53) as f64;
            let is_point = number < point_count;
            let (lower, upper, unit_depth) = sizes.bounds((!is_point).then_some(other), random);
            let depth = if is_point || other < counted_share || is_counted(usage, unit_depth) {
                Some(depths.at((share * 7919.0).fract()).min(deepest - 1))
            } else {
                is_text.then(|| keys.shared_bits(mix64(random, 3)).min(unit_depth.saturating_sub(1)))
            };
            Query { lower, upper, depth }
        };
        Self { queries: (0..QUERIES).map(query).collect() }
    }

    pub(super) fn cases<'a>(&'a self, keys: &Keys) -> Vec<SampleQuery<'a>> {
        let case = |query: &'a Query| {
            let range = KeyRange::closed(&query.lower, &query.upper);
            match query.depth {
                Some(depth) => SampleQuery::at_depth(keys, &range, depth),
                None => SampleQuery::new(keys, &range),
            }
        };
        self.queries.iter().filter_map(case).collect()
    }
}

/// Whether a level counted ranges of about one node at a depth: they have not too many nodes at the level, and the
/// level is not so shallow that nearly all of them are in nodes with keys.
fn is_counted(usage: &Usage, unit_depth: u32) -> bool {
    let depths = unit_depth.saturating_sub(COUNTED_BITS)..=unit_depth + COUNTED_BITS;
    usage.levels.iter().any(|level| level.bit_count.is_some_and(|depth| depths.contains(&depth)))
}

/// Quantiles of the sizes of ranges.
struct Sizes<'a> {
    usage: &'a Usage,
    /// Bits of the nodes in which sizes are counted.
    word_bits: u32,
}

impl Sizes<'_> {
    /// Bounds at a random position, with the distance at quantile `share` (`None` for a point), and the depth at which
    /// the range is about one node.
    fn bounds(&self, share: Option<f64>, random: u64) -> (Vec<u8>, Vec<u8>, u32) {
        let size = share.map_or(1, |share| size_at(&self.usage.sizes, share));
        if let Some(share) = share.filter(|_| size == 1 && self.usage.spans.iter().any(|count| *count > 0)) {
            let (bucket, _) = bucket_at(&self.usage.shared_bytes, (share * 7919.0).fract());
            let values = size_at(&self.usage.spans, (share * 104_729.0).fract());
            return bounds_alike(SHARED_BYTES_MIN + bucket, values, random);
        }
        let last = u64::MAX >> (64 - self.word_bits);
        let lower = mix64(random, 2) % (last - (size - 1).min(last)).max(1);
        let upper = lower.saturating_add(size - 1).min(last);
        let bytes = |word: u64| {
            let all = (word << (64 - self.word_bits)).to_be_bytes();
            all.iter().copied().take(self.word_bits as usize / 8).collect()
        };
        (bytes(lower), bytes(upper), self.word_bits.saturating_sub(size.ilog2()))
    }
}

/// Bounds with a number of equal leading bytes and a number of values of the next byte.
fn bounds_alike(byte_count: usize, values: u64, random: u64) -> (Vec<u8>, Vec<u8>, u32) {
    let front = (0..byte_count).map(|index| mix64(random, index as u64) as u8);
    let further = (values - 1).min(u64::from(u8::MAX)) as u8;
    let first = (mix64(random, byte_count as u64) % (256 - u64::from(further))) as u8;
    let with = |last: u8| front.clone().chain([last]).collect();
    (with(first), with(first + further), byte_count as u32 * 8 + 8 - values.ilog2().min(8))
}

/// The bucket at a quantile, and the position within it.
fn bucket_at(buckets: &[u64], share: f64) -> (usize, f64) {
    let mut rest = share * buckets.iter().sum::<u64>() as f64;
    for (bucket, count) in buckets.iter().enumerate() {
        let count = *count as f64;
        if rest < count {
            return (bucket, rest / count);
        }
        rest -= count;
    }
    (0, 0.0)
}

/// The size at a quantile; linear within a bucket.
fn size_at(buckets: &[u64], share: f64) -> u64 {
    let (bucket, rest) = bucket_at(buckets, share);
    ((2.0_f64.powi(bucket as i32) * (1.0 + rest)) as u64).max(1)
}

/// How many bits bounds share with keys, as far as counters show it.
struct PresentDepths {
    /// Whether the share falls by the same factor with each bit between two levels, as in text, whose bits carry
    /// little information; otherwise it halves with each bit right above a level with counts, as for evenly
    /// distributed numbers.
    is_even: bool,
    /// Depth, and the share of queries that are present there; descending.
    points: Vec<(f64, f64)>,
}

impl PresentDepths {
    fn new(usage: &Usage, bit_count: u32, is_even: bool) -> Self {
        let mut points = vec![(0.0, 1.0)];
        let levels = usage.levels.iter().filter_map(|level| Some((level.bit_count?, level)));
        for (depth, level) in levels {
            let above = points.last().map_or(1.0, |(_, share)| *share);
            let ranges = (level.ranges as f64).max(1.0);
            points.push((f64::from(depth), (level.edge_present() / ranges).clamp(1e-9, above)));
        }
        // Without counts the worst is assumed: that the share stays the same down to nodes of a few keys.
        let (deepest, share) = points.last().copied().unwrap_or((0.0, 1.0));
        let unknown = f64::from(bit_count.saturating_sub(UNKNOWN_BITS));
        if unknown > deepest {
            points.push((unknown, share));
        }
        Self { is_even, points }
    }

    /// The depth at a quantile.
    fn at(&self, share: f64) -> u32 {
        let share = share.max(1e-9);
        let mut before = (0.0, 1.0);
        for (depth, present) in &self.points {
            if *present < share && self.is_even {
                let part = (share / before.1).ln() / (present / before.1).ln();
                return (before.0 + (depth - before.0) * part) as u32;
            }
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
