//! One level: where the bits of a node lie, setting them and asking for them: for one node, or for up to eight beside one another.

use tamis_bits::kernel::{self, Step, place};
use tamis_bits::line;

use super::layout::{BitLayout, FULL_DEPTH, Level};
use crate::mix64;

/// Bits of a prefix that tell siblings apart; the bits before them are digested.
pub(super) const SIBLING_BITS: u32 = 3;

/// Most nodes whose bits are set at once.
pub(super) const BATCH_NODES: usize = 512;

/// Patterns of up to so many bits are compared one by one.
const SCALAR_PROBES: u32 = 2;

/// How many of a node's last bits are not digested.
pub(super) const fn sibling_bits(depth: u32) -> u32 {
    if depth < SIBLING_BITS { depth } else { SIBLING_BITS }
}

impl Level {
    /// The last bits of a node, which tell it apart from its siblings.
    #[inline]
    pub(super) const fn sibling(&self, node: u64) -> u64 {
        if self.depth == FULL_DEPTH { 0 } else { node & ((1 << sibling_bits(self.depth)) - 1) }
    }

    /// Whether bits of a level may hold a node: `digest` is that of its group of siblings, or of the whole key.
    #[inline]
    pub(super) fn may_hold(&self, bits: &[u8], digest: u64, sibling: u64) -> bool {
        let value = self.value(digest, sibling);
        match self.layout {
            BitLayout::Blocked => {
                let Some(line) = line::line_at(bits, self.line_count(), digest) else { return true };
                let pattern = value as u32;
                if self.probe_count <= SCALAR_PROBES {
                    line::contains(line, pattern, self.probe_count)
                } else {
                    kernel::line_contains(line, pattern, self.probe_count)
                }
            }
            BitLayout::Standard => {
                let bit_count = self.byte_count * 8;
                let has = |value| has_bit(bits, place(value, bit_count));
                if self.probe_count == 1 {
                    return has(value);
                }
                // Two at once: which of them fails is not worth a mispredicted branch.
                let step = Step::Mixed.of(value);
                if !(has(value) & has(value.wrapping_add(step))) {
                    return false;
                }
                (2..self.probe_count)
                    .all(|number| has(value.wrapping_add(step.wrapping_mul(u64::from(number)))))
            }
        }
    }

    /// Which of eight siblings, given by the digest of all, bits of a level may hold; those not wanted are not asked for.
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

    /// Which of eight whole keys, given by their digests, bits of the full level may hold.
    #[inline]
    pub(super) fn held_keys(&self, bits: &[u8], digests: &[u64; 8], wanted: u8) -> u8 {
        match self.layout {
            BitLayout::Blocked => filtered(wanted, |number| {
                digests.get(number as usize).is_none_or(|digest| self.may_hold(bits, *digest, 0))
            }),
            BitLayout::Standard => {
                self.held_values(bits, wanted, |number| digests.get(number as usize).copied().unwrap_or(0))
            }
        }
    }

    /// First two bits of each, without a branch on what they are: so no read waits for another. Then the further ones of
    /// those that are left.
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

    /// Sets the bits of a batch of nodes, given by their digests and siblings; the digests are changed.
    pub(super) fn insert_all(&self, bits: &mut [u8], digests: &mut [u64], siblings: &[u64]) {
        match self.layout {
            BitLayout::Blocked if self.depth == FULL_DEPTH => {
                kernel::lines_insert(bits, self.line_count(), digests, self.probe_count);
            }
            BitLayout::Blocked => {
                let mut room = [0; BATCH_NODES];
                let values = room.get_mut(..digests.len()).unwrap_or_default();
                values.copy_from_slice(digests);
                kernel::mix64_each(values, siblings);
                kernel::lines_insert_values(bits, self.line_count(), digests, values, self.probe_count);
            }
            BitLayout::Standard => {
                if self.depth != FULL_DEPTH {
                    kernel::mix64_each(digests, siblings);
                }
                kernel::places_insert(bits, self.byte_count * 8, digests, self.probe_count, Step::Mixed);
            }
        }
    }

    /// Asks for the line where a node's first bit lies.
    #[inline]
    pub(super) fn prefetch(&self, bits: &[u8], digest: u64, sibling: u64) {
        match self.layout {
            BitLayout::Blocked => line::prefetch_line(bits, self.line_count(), digest),
            BitLayout::Standard => {
                let place = place(self.value(digest, sibling), self.byte_count * 8);
                tamis_bits::prefetch(bits, (place / 8) as usize);
            }
        }
    }

    /// What the places of the bits follow from. A whole key has no siblings: its value is its digest.
    #[inline]
    const fn value(&self, digest: u64, sibling: u64) -> u64 {
        if self.depth == FULL_DEPTH { digest } else { mix64(digest, sibling) }
    }

    #[inline]
    const fn line_count(&self) -> u64 {
        self.byte_count / line::LINE_BYTES as u64
    }
}

/// The set bits of a byte whose number is kept.
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
