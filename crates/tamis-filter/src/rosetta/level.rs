//! One level: where the bits of a node lie, setting them and asking for them.

use tamis_bits::{kernel, line};

use super::layout::{FULL_DEPTH, Level, Spread};
use crate::remix;

/// Bits of a prefix that tell siblings apart; the bits before them are digested.
pub(super) const SIBLING_BITS: u32 = 3;

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
        match self.spread {
            Spread::Line => {
                let Some(line) = line::line_at(bits, self.line_count(), digest) else { return true };
                let pattern = value as u32;
                if self.probe_count <= SCALAR_PROBES {
                    line::contains(line, pattern, self.probe_count)
                } else {
                    kernel::line_contains(line, pattern, self.probe_count)
                }
            }
            Spread::Everywhere => {
                let bit_count = self.byte_count * 8;
                let has = |value| has_bit(bits, place(value, bit_count));
                if self.probe_count == 1 {
                    return has(value);
                }
                // Two at once: which of them fails is not worth a mispredicted branch.
                let step = remix(value, 0) | 1;
                if !(has(value) & has(value.wrapping_add(step))) {
                    return false;
                }
                (2..self.probe_count)
                    .all(|number| has(value.wrapping_add(step.wrapping_mul(u64::from(number)))))
            }
        }
    }

    /// Sets the bits of nodes, given by their digests and siblings; the digests are changed.
    pub(super) fn insert_all(&self, bits: &mut [u8], digests: &mut [u64], siblings: &[u64]) {
        match self.spread {
            Spread::Line if self.depth == FULL_DEPTH => {
                kernel::lines_insert(bits, self.line_count(), digests, self.probe_count);
            }
            Spread::Line => {
                let line_count = self.line_count();
                for (digest, sibling) in digests.iter().zip(siblings) {
                    if let Some(line) = line::line_at_mut(bits, line_count, *digest) {
                        line::insert(line, remix(*digest, *sibling) as u32, self.probe_count);
                    }
                }
            }
            Spread::Everywhere => {
                if self.depth != FULL_DEPTH {
                    digests
                        .iter_mut()
                        .zip(siblings)
                        .for_each(|(digest, sibling)| *digest = remix(*digest, *sibling));
                }
                self.insert_values(bits, digests);
            }
        }
    }

    /// Sets the bits of values in a standard level. The lines are not asked for beforehand: values hang on nothing, so that
    /// the processor itself has as many of them on their way as it can.
    fn insert_values(&self, bits: &mut [u8], values: &[u64]) {
        let bit_count = self.byte_count * 8;
        for value in values {
            let step = remix(*value, 0) | 1;
            let mut next = *value;
            for _ in 0..self.probe_count {
                let place = place(next, bit_count);
                if let Some(byte) = bits.get_mut((place / 8) as usize) {
                    *byte |= 1 << (place % 8);
                }
                next = next.wrapping_add(step);
            }
        }
    }

    /// Asks for the line where a node's first bit lies.
    #[inline]
    pub(super) fn prefetch(&self, bits: &[u8], digest: u64, sibling: u64) {
        match self.spread {
            Spread::Line => line::prefetch_line(bits, self.line_count(), digest),
            Spread::Everywhere => {
                let place = place(self.value(digest, sibling), self.byte_count * 8);
                tamis_bits::prefetch(bits, (place / 8) as usize);
            }
        }
    }

    /// What the places of the bits follow from. A whole key has no siblings: its value is its digest.
    #[inline]
    const fn value(&self, digest: u64, sibling: u64) -> u64 {
        if self.depth == FULL_DEPTH { digest } else { remix(digest, sibling) }
    }

    #[inline]
    const fn line_count(&self) -> u64 {
        self.byte_count / line::LINE_BYTES as u64
    }
}

/// The bit that a value means among `bit_count`: its high bits decide.
#[inline]
const fn place(value: u64, bit_count: u64) -> u64 {
    ((value as u128 * bit_count as u128) >> 64) as u64
}

#[inline]
fn has_bit(bits: &[u8], place: u64) -> bool {
    bits.get((place / 8) as usize).is_none_or(|byte| byte >> (place % 8) & 1 == 1)
}
