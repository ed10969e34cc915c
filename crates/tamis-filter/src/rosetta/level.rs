//! One level: the positions of a node's bits; sets and tests them, for one node or for up to eight at a time.

use tamis_bits::kernel::{self, Step, place};
use tamis_bits::line;

use super::layout::{BitLayout, FULL_DEPTH, Level};
use crate::mix64;

/// The last bits of a prefix, which distinguish siblings; only the bits before them are digested.
pub(super) const SIBLING_BITS: u32 = 3;

/// Maximum number of nodes of a batch.
pub(super) const BATCH_NODES: usize = 512;

/// The number of a node's last bits that are not digested.
pub(super) const fn sibling_bits(depth: u32) -> u32 {
    if depth < SIBLING_BITS { depth } else { SIBLING_BITS }
}

impl Level {
    /// Whether the full level may contain a key, given its digest.
    #[inline]
    pub(super) fn may_hold_key(&self, bits: &[u8], digest: u64) -> bool {
        match self.layout {
            BitLayout::Blocked => kernel::may_contain(bits, self.line_count(), digest, self.probe_count),
            BitLayout::Standard => self.held_values(bits, 1, |_| digest) != 0,
        }
    }

    /// Tests up to eight siblings with a common digest; `wanted` selects them.
    #[inline]
    pub(super) fn held_siblings(&self, bits: &[u8], digest: u64, wanted: u8) -> u8 {
        if self.layout == BitLayout::Blocked {
            let Some(line) = line::line_at(bits, self.line_count(), digest) else { return wanted };
            let holds = |sibling| {
                let pattern = mix64(digest, sibling) as u32;
                match self.probe_count {
                    1 => line::holds::<1>(line, pattern),
                    2 => line::holds::<2>(line, pattern),
                    3 => line::holds::<3>(line, pattern),
                    4 => line::holds::<4>(line, pattern),
                    count => kernel::line_contains(line, pattern, count),
                }
            };
            return filtered(wanted, |number| holds(u64::from(number)));
        }
        self.held_values(bits, wanted, |number| mix64(digest, u64::from(number)))
    }

    /// Tests up to eight whole keys of the full level, given their digests.
    #[inline]
    pub(super) fn held_keys(&self, bits: &[u8], digests: &[u64; 8], wanted: u8) -> u8 {
        match self.layout {
            BitLayout::Blocked => filtered(wanted, |number| {
                digests.get(number as usize).is_none_or(|digest| self.may_hold_key(bits, *digest))
            }),
            BitLayout::Standard => {
                self.held_values(bits, wanted, |number| digests.get(number as usize).copied().unwrap_or(0))
            }
        }
    }

    /// First two bits of each node without a branch, so that the reads overlap; then the further bits of the remaining
    /// nodes.
    #[inline]
    fn held_values(&self, bits: &[u8], wanted: u8, value: impl Fn(u32) -> u64) -> u8 {
        let bit_count = self.byte_count * 8;
        let has = |value| has_bit(bits, place(value, bit_count));
        let held = filtered(wanted, |number| {
            let value = value(number);
            if self.probe_count == 1 {
                return has(value);
            }
            let step = Step::Mixed.of(value);
            has(value) & has(value.wrapping_add(step))
        });
        if self.probe_count <= 2 || held == 0 {
            return held;
        }
        filtered(held, |number| {
            let value = value(number);
            let step = Step::Mixed.of(value);
            (2..self.probe_count).all(|number| has(value.wrapping_add(step.wrapping_mul(u64::from(number)))))
        })
    }

    /// Sets the bits of a batch of nodes, given their digests and sibling numbers.
    pub(super) fn insert_all(&self, bits: &mut [u8], digests: &[u64], siblings: &[u64]) {
        let mut room = [0; BATCH_NODES];
        let values = room.get_mut(..digests.len()).unwrap_or_default();
        for (value, (digest, sibling)) in values.iter_mut().zip(digests.iter().zip(siblings)) {
            // A whole key has no siblings.
            *value = if self.depth == FULL_DEPTH { *digest } else { mix64(*digest, *sibling) };
        }
        match self.layout {
            BitLayout::Blocked => {
                kernel::lines_insert_values(bits, self.line_count(), digests, values, self.probe_count);
            }
            BitLayout::Standard => {
                kernel::places_insert(bits, self.byte_count * 8, values, self.probe_count, Step::Mixed);
            }
        }
    }

    /// Prefetches the line of a key's first bit in the full level.
    #[inline]
    pub(super) fn prefetch_key(&self, bits: &[u8], digest: u64) {
        match self.layout {
            BitLayout::Blocked => line::prefetch_line(bits, self.line_count(), digest),
            BitLayout::Standard => {
                tamis_bits::prefetch(bits, (place(digest, self.byte_count * 8) / 8) as usize);
            }
        }
    }

    #[inline]
    const fn line_count(&self) -> u64 {
        self.byte_count / line::LINE_BYTES as u64
    }
}

/// The set bits of `wanted` for whose number `is_kept` returns `true`.
#[inline(always)]
fn filtered(mut wanted: u8, is_kept: impl Fn(u32) -> bool) -> u8 {
    let mut kept = 0;
    while wanted != 0 {
        let number = wanted.trailing_zeros();
        wanted &= wanted - 1;
        kept |= u8::from(is_kept(number)) << number;
    }
    kept
}

#[inline]
fn has_bit(bits: &[u8], place: u64) -> bool {
    bits.get((place / 8) as usize).is_none_or(|byte| byte >> (place % 8) & 1 == 1)
}

#[cfg(test)]
mod tests;
