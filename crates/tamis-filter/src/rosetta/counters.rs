//! Counters of the queries of a filter and their outcomes; always on.
//!
//! The counters are kept in a few stripes, so that threads seldom write the same cache line. The address of a probe,
//! which is on the stack of its thread, selects the stripe. The first query allocates the stripes. A range updates a
//! few counters when it ends and none before. The counts are exact for one thread; threads that share a stripe may
//! lose a few.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::LEVELS_MAX;
use super::bounds::Bounds;
use super::layout::{FULL_DEPTH, Level};
use super::walk::Tally;

const STRIPES: usize = 4;

/// Buckets of range sizes: bucket `i` counts ranges of `2^i` to `2^(i+1) - 1` nodes at the depth of 64 bits, or of
/// whole keys if those are shorter. The last bucket also counts ranges of unknown size.
pub const SIZE_BUCKETS: usize = 65;

/// Buckets of ranges of byte strings within one node of 64 bits: bucket `i` counts ranges whose bounds begin with `8 +
/// i` equal bytes; the last one also counts those with more.
pub const SHARED_BUCKETS: usize = 64;

/// Buckets of the same ranges: bucket `i` counts those that span `2^i` to `2^(i+1) - 1` values of the first byte in
/// which their bounds differ.
pub const SPAN_BUCKETS: usize = 9;

/// Bounds that share fewer bytes differ within 64 bits.
pub(super) const SHARED_BYTES_MIN: usize = 8;

/// Number of counters before those of sizes and levels.
const FIXED: usize = 6;

/// The outcome of a range query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Rejected = 0,
    Passed = 1,
    ProbeLimit = 2,
}

/// Indexes of counters in a stripe: three outcomes, then these.
const PROBES: usize = 3;
const POINTS: usize = 4;
const POINTS_PASSED: usize = 5;

/// The queries of one level.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelUsage {
    /// Bits of its prefixes; `None` for the level of whole keys.
    pub bit_count: Option<u32>,
    /// Its false-positive rate.
    pub rate: f64,
    /// Nodes that ranges probed.
    pub asked: u64,
    /// Probed nodes that the level did not reject.
    pub positive: u64,
    /// Probed nodes at an edge of the range, which are partly outside of it.
    pub edge_asked: u64,
    /// Nodes at an edge that the level did not reject.
    pub edge_positive: u64,
    /// Range queries of filters that have this level, whether or not they probed it.
    pub ranges: u64,
}

/// The queries of a filter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    /// From the shallowest on.
    pub levels: Vec<LevelUsage>,
    /// Point queries.
    pub points: u64,
    /// Points that were not rejected.
    pub points_passed: u64,
    /// Ranges that were rejected.
    pub ranges_rejected: u64,
    /// Ranges that a node of the deepest level let pass.
    pub ranges_passed: u64,
    /// Ranges that passed because of the probe limit.
    pub ranges_probe_limited: u64,
    /// Nodes that ranges probed.
    pub probes: u64,
    /// Ranges by size; see [`SIZE_BUCKETS`].
    pub sizes: Vec<u64>,
    /// Ranges of byte strings within one node of 64 bits, by the number of bytes that their bounds share; see
    /// [`SHARED_BUCKETS`]. Empty for integers.
    pub shared_bytes: Vec<u64>,
    /// The same ranges by the number of values of the first byte in which their bounds differ; see [`SPAN_BUCKETS`].
    pub spans: Vec<u64>,
}

impl Usage {
    /// Range queries.
    pub const fn ranges(&self) -> u64 {
        self.ranges_rejected + self.ranges_passed + self.ranges_probe_limited
    }

    /// Adds the counters of another filter: for a table that merges the keys of both, or where the levels of an
    /// earlier filter know what those of this one do not.
    pub fn merge(&mut self, other: &Self) {
        self.points += other.points;
        self.points_passed += other.points_passed;
        self.ranges_rejected += other.ranges_rejected;
        self.ranges_passed += other.ranges_passed;
        self.ranges_probe_limited += other.ranges_probe_limited;
        self.probes += other.probes;
        merge_buckets(&mut self.sizes, &other.sizes);
        merge_buckets(&mut self.shared_bytes, &other.shared_bytes);
        merge_buckets(&mut self.spans, &other.spans);
        for level in &other.levels {
            match self.levels.iter_mut().find(|known| known.bit_count == level.bit_count) {
                Some(known) => known.merge(level),
                None => self.levels.push(level.clone()),
            }
        }
        // `None`, whole keys, sorts last.
        self.levels.sort_by_key(|level| level.bit_count.unwrap_or(FULL_DEPTH));
    }
}

fn merge_buckets(sums: &mut Vec<u64>, counts: &[u64]) {
    sums.resize(sums.len().max(counts.len()), 0);
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

impl LevelUsage {
    fn merge(&mut self, other: &Self) {
        let weight = |level: &Self| level.asked as f64;
        let total = weight(self) + weight(other);
        if total > 0.0 {
            self.rate = (self.rate * weight(self) + other.rate * weight(other)) / total;
        }
        self.asked += other.asked;
        self.positive += other.positive;
        self.edge_asked += other.edge_asked;
        self.edge_positive += other.edge_positive;
        self.ranges += other.ranges;
    }

    /// The estimated number of nodes at edges that hold a key: the positive ones beyond the level's false-positive
    /// rate, plus three standard deviations of that number. Small counts are thus estimated pessimistically.
    pub(super) fn edge_present(&self) -> f64 {
        let (asked, positive) = (self.edge_asked as f64, self.edge_positive as f64);
        let chance = 3.0 * (asked * self.rate * (1.0 - self.rate)).max(0.0).sqrt() + 1.0;
        ((positive - self.rate * asked + chance) / (1.0 - self.rate).max(1e-9)).clamp(0.0, asked + 1.0)
    }
}

/// The counters of one filter.
#[derive(Debug, Default)]
pub(super) struct Counters {
    level_count: usize,
    /// Counters of sizes; for byte strings also those of shared bytes and spans.
    bucket_count: usize,
    stripes: OnceLock<Box<[AtomicU64]>>,
}

/// A copy of a filter counts on its own, from zero.
impl Clone for Counters {
    fn clone(&self) -> Self {
        Self { stripes: OnceLock::new(), ..*self }
    }
}

impl Counters {
    pub(super) const fn new(level_count: usize, has_words: bool) -> Self {
        let bucket_count = SIZE_BUCKETS + if has_words { 0 } else { SHARED_BUCKETS + SPAN_BUCKETS };
        Self { level_count, bucket_count, stripes: OnceLock::new() }
    }

    /// Counters of a stripe, rounded up to whole cache lines.
    const fn stride(&self) -> usize {
        self.level_place(self.level_count).next_multiple_of(8)
    }

    /// Index of the first counter of a level.
    const fn level_place(&self, level: usize) -> usize {
        FIXED + self.bucket_count + 4 * level
    }

    #[inline]
    fn stripe(&self, address: usize) -> &[AtomicU64] {
        let stride = self.stride();
        let all = self.stripes.get_or_init(|| (0..stride * STRIPES).map(|_| AtomicU64::new(0)).collect());
        // Stacks are some hundred kibibytes apart.
        let number = (address >> 16).wrapping_mul(0x9e37_79b9) >> 16 & (STRIPES - 1);
        all.get(number * stride..(number + 1) * stride).unwrap_or_default()
    }

    #[inline]
    pub(super) fn add_point(&self, address: usize, is_positive: bool) {
        let stripe = self.stripe(address);
        add(stripe, POINTS, 1);
        if is_positive {
            add(stripe, POINTS_PASSED, 1);
        }
    }

    #[inline]
    pub(super) fn add_range(
        &self,
        bounds: &Bounds<'_>,
        outcome: Outcome,
        probe_count: u32,
        tallies: &[Tally; LEVELS_MAX],
    ) {
        let stripe = self.stripe(std::ptr::from_ref(tallies).addr());
        add(stripe, outcome as usize, 1);
        add(stripe, PROBES, u64::from(probe_count));
        let bucket = size_bucket(bounds);
        add(stripe, FIXED + bucket, 1);
        if bucket == 0 && self.bucket_count > SIZE_BUCKETS {
            let (shared, span) = bounds.first_difference();
            let shared = shared.saturating_sub(SHARED_BYTES_MIN).min(SHARED_BUCKETS - 1);
            add(stripe, FIXED + SIZE_BUCKETS + shared, 1);
            add(stripe, FIXED + SIZE_BUCKETS + SHARED_BUCKETS + span.ilog2() as usize, 1);
        }
        for (level, tally) in tallies.iter().take(self.level_count).enumerate() {
            if tally.asked == 0 {
                break;
            }
            let place = self.level_place(level);
            add(stripe, place, u64::from(tally.asked));
            add(stripe, place + 1, u64::from(tally.positive));
            add(stripe, place + 2, u64::from(tally.edge_asked));
            add(stripe, place + 3, u64::from(tally.edge_positive));
        }
    }

    pub(super) fn usage(&self, levels: &[Level], rate: impl Fn(&Level) -> f64) -> Usage {
        let stride = self.stride();
        let mut sums = vec![0_u64; stride];
        for stripe in self.stripes.get().map_or(&[][..], |all| all).chunks(stride) {
            sums.iter_mut().zip(stripe).for_each(|(sum, count)| *sum += count.load(Ordering::Relaxed));
        }
        let at = |place: usize| sums.get(place).copied().unwrap_or(0);
        let level_usage = |(index, level): (usize, &Level)| {
            let place = self.level_place(index);
            LevelUsage {
                bit_count: (level.depth != FULL_DEPTH).then_some(level.depth),
                rate: rate(level),
                asked: at(place),
                positive: at(place + 1),
                edge_asked: at(place + 2),
                edge_positive: at(place + 3),
                ranges: at(Outcome::Rejected as usize) + at(Outcome::Passed as usize),
            }
        };
        let text_counts = |buckets: Range<usize>| match self.bucket_count {
            SIZE_BUCKETS => Vec::new(),
            _ => buckets.map(|bucket| at(FIXED + SIZE_BUCKETS + bucket)).collect(),
        };
        Usage {
            levels: levels.iter().enumerate().map(level_usage).collect(),
            points: at(POINTS),
            points_passed: at(POINTS_PASSED),
            ranges_rejected: at(Outcome::Rejected as usize),
            ranges_passed: at(Outcome::Passed as usize),
            ranges_probe_limited: at(Outcome::ProbeLimit as usize),
            probes: at(PROBES),
            sizes: (0..SIZE_BUCKETS).map(|bucket| at(FIXED + bucket)).collect(),
            shared_bytes: text_counts(0..SHARED_BUCKETS),
            spans: text_counts(SHARED_BUCKETS..SHARED_BUCKETS + SPAN_BUCKETS),
        }
    }
}

/// A plain load and store: an atomic addition would delay the reads of the next query. Two threads with one stripe may
/// lose a count.
#[inline]
fn add(stripe: &[AtomicU64], place: usize, count: u64) {
    if count != 0
        && let Some(counter) = stripe.get(place)
    {
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }
}

#[inline]
fn size_bucket(bounds: &Bounds<'_>) -> usize {
    match bounds.span(64) {
        Some((first, last)) => ((last - first).saturating_add(1) | 1).ilog2() as usize,
        None => SIZE_BUCKETS - 1,
    }
}

#[cfg(test)]
mod tests;
