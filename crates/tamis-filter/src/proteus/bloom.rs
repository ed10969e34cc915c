//! Bloom filters of digests in two layouts, and their false positive rates.

use tamis_bits::kernel::{self, Step, place};
use tamis_bits::line::{LINE_BYTES, LINE_PROBE_MAX};
use tamis_bits::scatter_bits;

use super::design::BloomLayout;
use crate::bloom::formula::{blocked_fpr, standard_best_k, standard_fpr};
use crate::bloom::{LINE_BITS, best_probe_count};

/// Most bits per digest in the spread layout.
const SPREAD_PROBE_MAX: u32 = 32;
/// Most bits of the filter per digest; more hardly lower the rate.
const BITS_PER_PREFIX_MAX: u64 = 64;
/// Digests that are inserted together.
const INSERT_BATCH: usize = 256;
/// Most digests that are tested together, so that their cache misses overlap.
pub(super) const BATCH: usize = 32;

/// The size of a filter and its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BloomPlan {
    pub(super) layout: BloomLayout,
    pub(super) bytes: u64,
    /// Bits per digest.
    pub(super) probe_count: u32,
    pub(super) rate: f64,
}

/// The filter of at most `bytes` bytes with the lowest rate for `count` digests; `None` if the bytes are too few.
pub(super) fn best_rate(layout: BloomLayout, bytes: u64, count: u64) -> Option<BloomPlan> {
    let useful = count.max(1).saturating_mul(BITS_PER_PREFIX_MAX / 8);
    match layout {
        BloomLayout::Spread => {
            let bytes = bytes.min(useful);
            let bits_per_digest = bytes as f64 * 8.0 / count.max(1) as f64;
            let probe_count = standard_best_k(bits_per_digest, SPREAD_PROBE_MAX);
            let rate = standard_fpr(bits_per_digest, probe_count).min(1.0);
            (bytes > 0).then_some(BloomPlan { layout, bytes, probe_count, rate })
        }
        BloomLayout::Lines => {
            let line_count = (bytes / LINE_BYTES as u64).min(useful.div_ceil(LINE_BYTES as u64));
            let digests_per_line = count as f64 / (line_count as f64).max(1.0);
            let probe_count = best_probe_count(digests_per_line);
            let rate = blocked_fpr(LINE_BITS, digests_per_line, probe_count);
            let bytes = line_count * LINE_BYTES as u64;
            (bytes > 0).then_some(BloomPlan { layout, bytes, probe_count, rate })
        }
    }
}

/// Whether a builder can write this number of bits per digest.
pub(super) const fn is_possible_probe_count(layout: BloomLayout, count: u32) -> bool {
    let max = match layout {
        BloomLayout::Spread => SPREAD_PROBE_MAX,
        BloomLayout::Lines => LINE_PROBE_MAX,
    };
    count >= 1 && count <= max
}

/// Factor of digests in the first of two Bloom filters. Prefixes of two lengths with equal bytes have digests that differ in their marks
/// only; without the factor, their false positives in both filters would be correlated.
const FIRST_FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// The number of the first bit of a digest in the spread layout, and the step from each bit to the next.
#[inline(always)]
const fn start_and_step(digest: u64) -> (u64, u64) {
    (digest, Step::Halves.of(digest))
}

/// Inserts digests in batches.
pub(super) struct Inserter<'a> {
    bytes: &'a mut [u8],
    plan: &'a BloomPlan,
    factor: u64,
    batch: [u64; INSERT_BATCH],
    count: usize,
}

impl<'a> Inserter<'a> {
    pub(super) fn new(bytes: &'a mut [u8], plan: &'a BloomPlan) -> Self {
        Self { bytes, plan, factor: 1, batch: [0; INSERT_BATCH], count: 0 }
    }

    /// For the first of two Bloom filters.
    pub(super) fn first(bytes: &'a mut [u8], plan: &'a BloomPlan) -> Self {
        Self { factor: FIRST_FACTOR, ..Self::new(bytes, plan) }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, digest: u64) {
        if let Some(slot) = self.batch.get_mut(self.count) {
            *slot = digest.wrapping_mul(self.factor);
        }
        self.count += 1;
        if self.count == INSERT_BATCH {
            self.finish();
        }
    }

    /// Inserts the digests of the last, incomplete batch.
    pub(super) fn finish(&mut self) {
        let digests = self.batch.get(..self.count).unwrap_or_default();
        self.count = 0;
        let probe_count = self.plan.probe_count;
        let line_count = (self.bytes.len() / LINE_BYTES) as u64;
        match self.plan.layout {
            BloomLayout::Spread => {
                let bit_count = self.bytes.len() as u64 * 8;
                kernel::places_insert(self.bytes, bit_count, digests, probe_count, Step::Halves);
            }
            BloomLayout::Lines => kernel::lines_insert(self.bytes, line_count, digests, probe_count),
        }
    }
}

/// Bits that are tested together.
pub(super) const LEAST_TOGETHER: u32 = 4;

/// Whether all bits of a digest are set, which are at least [`LEAST_TOGETHER`]; tests the first ones without a branch between them.
#[inline(always)]
pub(super) fn has_many_spread(bytes: &[u8], probe_count: u32, digest: u64) -> bool {
    let (value, step) = start_and_step(digest);
    let nth = |number: u64| value.wrapping_add(step.wrapping_mul(number));
    scatter_bits::are_set(bytes, [value, nth(1), nth(2), nth(3)])
        && has_spread_from(bytes, probe_count - LEAST_TOGETHER, nth(4), step)
}

/// Tests the remaining bits. A separate function, because most queries end before it and need not save registers for it.
#[inline(never)]
fn has_spread_from(bytes: &[u8], count: u32, mut value: u64, step: u64) -> bool {
    for _ in 0..count {
        if !scatter_bits::is_set(bytes, value) {
            return false;
        }
        value = value.wrapping_add(step);
    }
    true
}

/// An encoded filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct BloomView<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) layout: BloomLayout,
    pub(super) probe_count: u32,
}

impl BloomView<'_> {
    /// Whether all bits of a digest are set; bits beyond the end count as set.
    #[inline(always)]
    pub(super) fn may_contain(&self, digest: u64) -> bool {
        match self.layout {
            BloomLayout::Spread => self.has_spread(digest),
            BloomLayout::Lines => {
                let line_count = (self.bytes.len() / LINE_BYTES) as u64;
                kernel::may_contain(self.bytes, line_count, digest, self.probe_count)
            }
        }
    }

    #[inline(always)]
    fn is_set(&self, value: u64) -> bool {
        let bit = place(value, self.bytes.len() as u64 * 8);
        self.bytes.get((bit / 8) as usize).is_none_or(|byte| byte >> (bit % 8) & 1 == 1)
    }

    /// [`BloomView::may_contain`] for the first of two Bloom filters.
    #[inline(always)]
    pub(super) fn may_contain_first(&self, digest: u64) -> bool {
        self.may_contain(digest.wrapping_mul(FIRST_FACTOR))
    }

    /// Tests the first bits together: one branch that is predicted nearly always, and cache misses that overlap.
    #[inline(always)]
    pub(super) fn has_spread(&self, digest: u64) -> bool {
        let (value, step) = start_and_step(digest);
        let nth = |number: u64| value.wrapping_add(step.wrapping_mul(number));
        if self.probe_count >= LEAST_TOGETHER {
            return has_many_spread(self.bytes, self.probe_count, digest);
        }
        match self.probe_count {
            1 => self.is_set(value),
            2 => scatter_bits::are_set(self.bytes, [value, nth(1)]),
            _ => scatter_bits::are_set(self.bytes, [value, nth(1), nth(2)]),
        }
    }

    /// The index of the first digest that the filter may contain.
    #[inline(always)]
    pub(super) fn first_of(&self, digests: &[u64]) -> Option<usize> {
        match digests {
            [] => None,
            [digest] => self.may_contain(*digest).then_some(0),
            _ if self.layout == BloomLayout::Lines => {
                digests.iter().for_each(|digest| self.prefetch(*digest));
                digests.iter().position(|digest| self.may_contain(*digest))
            }
            // A few are faster one by one.
            [_, _] | [_, _, _] | [_, _, _, _] => digests.iter().position(|digest| self.has_spread(*digest)),
            _ => self.first_of_spread(digests),
        }
    }

    /// Tests the first three bits of all digests without a branch on a result; about one in eight remains for [`BloomView::has_rest`].
    #[inline(always)]
    fn first_of_spread(&self, digests: &[u64]) -> Option<usize> {
        let mut alive = 0_u32;
        let (second, third) = (u64::from(self.probe_count > 1), u64::from(self.probe_count > 2));
        for (number, digest) in digests.iter().take(BATCH).enumerate() {
            let (value, step) = start_and_step(*digest);
            // A digest of fewer bits repeats the first one.
            let (next, last) = (step.wrapping_mul(second), step.wrapping_mul(2 * third));
            let is_left = self.is_set(value)
                & self.is_set(value.wrapping_add(next))
                & self.is_set(value.wrapping_add(last));
            alive |= u32::from(is_left) << number;
        }
        while alive != 0 {
            let index = alive.trailing_zeros() as usize;
            if digests.get(index).is_none_or(|digest| self.has_rest(*digest)) {
                return Some(index);
            }
            alive &= alive - 1;
        }
        None
    }

    /// Whether the bits after the third are set.
    #[inline(always)]
    fn has_rest(&self, digest: u64) -> bool {
        let (value, step) = start_and_step(digest);
        let nth = |number: u64| value.wrapping_add(step.wrapping_mul(number));
        let all = |from: u64| (from..u64::from(self.probe_count)).all(|number| self.is_set(nth(number)));
        if self.probe_count < 6 {
            return all(3);
        }
        (self.is_set(nth(3)) & self.is_set(nth(4)) & self.is_set(nth(5))) && all(6)
    }

    /// Prefetches the cache line of the first bit of a digest.
    #[inline]
    pub(super) fn prefetch(&self, digest: u64) {
        match self.layout {
            BloomLayout::Spread => {
                let bit = place(digest, self.bytes.len() as u64 * 8);
                tamis_bits::prefetch(self.bytes, (bit / 8) as usize);
            }
            BloomLayout::Lines => {
                let line_count = (self.bytes.len() / LINE_BYTES) as u64;
                tamis_bits::line::prefetch_line(self.bytes, line_count, digest);
            }
        }
    }
}
