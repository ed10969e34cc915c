//! Bloom filters of digests in one of two layouts, and the rate that each has.

use tamis_bits::kernel;
use tamis_bits::line::{LINE_BYTES, LINE_PROBE_MAX};

use super::design::BloomLayout;
use crate::bloom::formula::{blocked_fpr, standard_best_k, standard_fpr};
use crate::bloom::standard::{Scheme, place};
use crate::bloom::{LINE_BITS, best_probe_count};

/// Most bits that a prefix sets where they are spread.
const SPREAD_PROBE_MAX: u32 = 32;
/// More bits than this for a prefix would hardly be asked for.
const BITS_PER_PREFIX_MAX: u64 = 64;
/// Digests that are put in at once.
const BATCH: usize = 1024;

/// A filter for so many digests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BloomPlan {
    pub(super) layout: BloomLayout,
    pub(super) bytes: u64,
    /// Bits that a digest sets.
    pub(super) probe_count: u32,
    pub(super) rate: f64,
}

/// The filter of a layout with the least rate within some bytes; `None` where they are too few.
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

/// Whether a builder writes such a number of bits.
pub(super) const fn is_possible_probe_count(layout: BloomLayout, count: u32) -> bool {
    let max = match layout {
        BloomLayout::Spread => SPREAD_PROBE_MAX,
        BloomLayout::Lines => LINE_PROBE_MAX,
    };
    count >= 1 && count <= max
}

/// Sets the bits of digests.
pub(super) fn insert_all(bytes: &mut [u8], plan: &BloomPlan, mut digests: impl Iterator<Item = u64>) {
    let line_count = (bytes.len() / LINE_BYTES) as u64;
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        batch.clear();
        batch.extend(digests.by_ref().take(BATCH));
        if batch.is_empty() {
            return;
        }
        match plan.layout {
            BloomLayout::Spread => {
                kernel::run(Insert { bytes, digests: &batch, probe_count: plan.probe_count });
            }
            BloomLayout::Lines => kernel::lines_insert(bytes, line_count, &batch, plan.probe_count),
        }
    }
}

/// Sets spread bits, compiled for the processor.
struct Insert<'a> {
    bytes: &'a mut [u8],
    digests: &'a [u64],
    probe_count: u32,
}

impl kernel::Task for Insert<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: kernel::Steps>(self, _: S) {
        let Self { bytes, digests, probe_count } = self;
        let bit_count = bytes.len() as u64 * 8;
        for digest in digests {
            let (mut value, step) = Scheme::Double.start_and_step(*digest);
            for _ in 0..probe_count {
                let bit = place(value, bit_count);
                if let Some(byte) = bytes.get_mut((bit / 8) as usize) {
                    *byte |= 1 << (bit % 8);
                }
                value = value.wrapping_add(step);
            }
        }
    }
}

/// A filter at rest.
#[derive(Debug, Clone, Copy)]
pub(super) struct BloomView<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) layout: BloomLayout,
    pub(super) probe_count: u32,
}

impl BloomView<'_> {
    /// Whether all bits of a digest are set; `true` where they lie outside the bytes.
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

    /// The first bits are looked at together: one jump that is nearly always foreseen, and misses that overlap.
    #[inline(always)]
    fn has_spread(&self, digest: u64) -> bool {
        let (value, step) = Scheme::Double.start_and_step(digest);
        let nth = |number: u64| value.wrapping_add(step.wrapping_mul(number));
        match self.probe_count {
            1 => self.is_set(value),
            2 | 3 => {
                self.is_set(value) & self.is_set(nth(1)) && (self.probe_count == 2 || self.is_set(nth(2)))
            }
            _ => {
                (self.is_set(value) & self.is_set(nth(1)) & self.is_set(nth(2)) & self.is_set(nth(3)))
                    && (4..u64::from(self.probe_count)).all(|number| self.is_set(nth(number)))
            }
        }
    }

    /// Number of the first digest that may be there.
    #[inline(always)]
    pub(super) fn first_of(&self, digests: &[u64]) -> Option<usize> {
        match digests {
            [] => None,
            [digest] => self.may_contain(*digest).then_some(0),
            _ if self.layout == BloomLayout::Lines => {
                digests.iter().for_each(|digest| self.prefetch(*digest));
                digests.iter().position(|digest| self.may_contain(*digest))
            }
            // For a few, one after the other is faster than setting up rounds.
            [_, _] | [_, _, _] | [_, _, _, _] => digests.iter().position(|digest| self.has_spread(*digest)),
            _ => self.first_of_spread(digests),
        }
    }

    /// Round by round: those of which a bit is not set drop out, without a jump for each.
    #[inline(always)]
    fn first_of_spread(&self, digests: &[u64]) -> Option<usize> {
        let mut alive = [(0_u64, 0_u64, 0_usize); 16];
        let mut count = 0;
        for (index, digest) in digests.iter().take(16).enumerate() {
            if let Some(slot) = alive.get_mut(count) {
                *slot = (*digest, 0, index);
            }
            count += usize::from(self.is_set(*digest));
        }
        for (value, step, _) in alive.iter_mut().take(count) {
            *step = Scheme::Double.start_and_step(*value).1;
        }
        for _ in 1..self.probe_count {
            if count == 0 {
                return None;
            }
            let mut kept = 0;
            for place in 0..count {
                let Some((value, step, index)) = alive.get(place).copied() else { break };
                let next = value.wrapping_add(step);
                if let Some(slot) = alive.get_mut(kept) {
                    *slot = (next, step, index);
                }
                kept += usize::from(self.is_set(next));
            }
            count = kept;
        }
        alive.get(..count).and_then(<[_]>::first).map(|(_, _, index)| *index)
    }

    /// Brings the first bytes that a digest needs into the cache.
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
