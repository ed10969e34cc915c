//! Both ends of a range as strings of bits, and the prefixes of a length between them.
//!
//! The number of a prefix of `d` bits is the integer of these bits. Of prefixes longer than 64 bits, only the last 64
//! bits are kept (the *window*), and both bounds must have the bits before the window in common. Otherwise the range
//! has no span of that length: the prefixes between the bounds exceed any budget, or the range crosses the border of a
//! window. The filter then answers "may contain".

use tamis_bits::key_head;

use crate::KeyRange;
use crate::bit_string::{BitString, HEAD_BITS};
use crate::fixed_keys::FixedKeys;

/// Both ends of a range that can contain a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bounds<'a> {
    /// Keys of one length up to eight bytes: the smallest and the largest of them, as integers in the top bits.
    Words {
        /// The smallest key.
        lower: u64,
        /// The largest key.
        upper: u64,
        /// Kind of the keys.
        keys: FixedKeys,
    },
    /// Other keys.
    Bytes(Ends<'a>),
}

/// Both ends as infinite strings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends<'a> {
    lower: BitString<'a>,
    upper: BitString<'a>,
    /// Number of equal leading bits.
    shared_bits: u32,
}

impl<'a> Bounds<'a> {
    /// `key_bytes` is the length of all keys, 0 for keys of several lengths. `None` if no such key can be in the
    /// range.
    #[inline]
    pub(crate) fn new(range: &KeyRange<'a>, key_bytes: u32) -> Option<Self> {
        if (1..=8).contains(&key_bytes) {
            let keys = FixedKeys::new(key_bytes as u8);
            let (lower, upper) = keys.bounds(range)?;
            return Some(Self::Words { lower, upper, keys });
        }
        let (lower, upper) = (BitString::lower(range, key_bytes as usize), BitString::upper(range));
        if range.is_empty() || lower.is_incremented() && lower.is_above(&upper) {
            return None;
        }
        Some(Self::Bytes(Ends { lower, upper, shared_bits: lower.common_bits(&upper) }))
    }

    /// The first and the last node that the range touches at a depth; `None` if they have no common window.
    #[inline]
    pub(crate) fn span(&self, depth: u32) -> Option<(u64, u64)> {
        let (lower, upper) = match self {
            Self::Words { lower, upper, .. } => (*lower, *upper),
            Self::Bytes(ends) if depth <= 64 => (ends.lower.word(0), ends.upper.word(0)),
            Self::Bytes(ends) => {
                let start = depth - 64;
                return (ends.shared_bits >= start).then(|| (ends.lower.word(start), ends.upper.word(start)));
            }
        };
        let shift = 64_u32.saturating_sub(depth);
        Some((lower.checked_shr(shift).unwrap_or(0), upper.checked_shr(shift).unwrap_or(0)))
    }

    /// The bytes before the window of a node deeper than 64 bits: those of the lower bound.
    pub(crate) fn copy_front(&self, byte_count: usize, target: &mut Vec<u8>) {
        target.clear();
        if let Self::Bytes(ends) = self {
            target.extend((0..byte_count).map(|index| ends.lower.byte(index)));
        }
    }

    /// The number of leading bits that the lower bound has in common with a key, and the upper bound with another one; `u32::MAX` if
    /// all are equal.
    pub(crate) fn shared_bits(&self, left: Option<&[u8]>, right: Option<&[u8]>) -> (u32, u32) {
        match self {
            Self::Words { lower, upper, keys } => {
                let shared = |bound: u64, key: &[u8]| keys.shared_bits(key_head(key), bound);
                (left.map_or(0, |key| shared(*lower, key)), right.map_or(0, |key| shared(*upper, key)))
            }
            Self::Bytes(Ends { lower, upper, .. }) => {
                let shared = |bound: &BitString<'_>, key| bound.common_bits(&BitString::key(key));
                (left.map_or(0, |key| shared(lower, key)), right.map_or(0, |key| shared(upper, key)))
            }
        }
    }

    /// The number of leading bits that both bounds have in common; `u32::MAX` if all are equal.
    pub(crate) fn shared_ends(&self) -> u32 {
        match self {
            Self::Words { lower, upper, keys } => keys.shared_bits(*lower, *upper),
            Self::Bytes(ends) => ends.shared_bits,
        }
    }

    /// [`RangeEnd::prefixes_to`] from the lower bound to the upper one.
    #[inline]
    pub(crate) fn prefix_count(&self, bits: u32) -> u64 {
        match self {
            Self::Words { lower, upper, .. } => lower.prefixes_to(upper, bits),
            Self::Bytes(Ends { lower, upper, shared_bits }) => match bits.saturating_sub(*shared_bits) {
                0 => 1,
                rest @ 1..=64 => {
                    let [lower, upper] = [lower, upper].map(|end| end.bits(*shared_bits, rest));
                    upper.saturating_sub(lower).saturating_add(1)
                }
                _ => u64::MAX,
            },
        }
    }

    /// Numbers of prefixes of `bits` bits in the range below its first and below its last prefix of `depth` bits, which differ.
    pub(crate) fn end_counts(&self, depth: u32, bits: u32) -> (u64, u64) {
        match self {
            Self::Words { lower, upper, .. } => {
                (lower.prefixes_below(depth, bits).0, upper.prefixes_below(depth, bits).1)
            }
            Self::Bytes(Ends { lower, upper, .. }) => {
                (lower.prefixes_below(depth, bits).0, upper.prefixes_below(depth, bits).1)
            }
        }
    }
}

/// The number of a key's prefix.
pub(crate) fn node_of_key(key: &[u8], depth: u32) -> u64 {
    if depth <= 64 {
        return key_head(key).checked_shr(64 - depth).unwrap_or(0);
    }
    let end = depth as usize / 8;
    (end - 8..end).fold(0, |window, index| window << 8 | u64::from(key.get(index).copied().unwrap_or(0)))
}

/// An end of a range in one representation of keys: an integer in the top bits of a `u64`, or a string of bits.
pub(crate) trait RangeEnd: Copy {
    /// Number of prefixes of `bits` bits (at least 1) from this end to `upper`, inclusive; `u64::MAX` if it is larger.
    fn prefixes_to(&self, upper: &Self, bits: u32) -> u64;

    /// Number of prefixes of `bits` bits below this end's prefix of `depth` bits: from this end on, and up to this end.
    fn prefixes_below(&self, depth: u32, bits: u32) -> (u64, u64);

    /// Whether both ends have the same prefix of `depth` bits.
    fn has_same_prefix(&self, other: &Self, depth: u32) -> bool;
}

impl RangeEnd for u64 {
    #[inline(always)]
    fn prefixes_to(&self, upper: &Self, bits: u32) -> u64 {
        let shift = 64 - bits;
        (upper >> shift).saturating_sub(self >> shift).saturating_add(1)
    }

    #[inline(always)]
    fn prefixes_below(&self, depth: u32, bits: u32) -> (u64, u64) {
        let mask = (1 << (bits - depth)) - 1;
        let own = self >> (64 - bits) & mask;
        (mask - own + 1, own + 1)
    }

    #[inline(always)]
    fn has_same_prefix(&self, other: &Self, depth: u32) -> bool {
        (self ^ other) >> (64 - depth) == 0
    }
}

impl RangeEnd for BitString<'_> {
    #[inline(always)]
    fn prefixes_to(&self, upper: &Self, bits: u32) -> u64 {
        if bits <= HEAD_BITS {
            let prefix = |string: &Self| string.head().checked_shr(HEAD_BITS - bits).unwrap_or(0);
            let count = prefix(upper).saturating_sub(prefix(self));
            return u64::try_from(count).unwrap_or(u64::MAX).saturating_add(1);
        }
        let shared = self.shared_bits(upper, bits);
        match bits - shared {
            0 => 1,
            rest @ 1..=64 => {
                upper.bits(shared, rest).saturating_sub(self.bits(shared, rest)).saturating_add(1)
            }
            _ => u64::MAX,
        }
    }

    #[inline(always)]
    fn prefixes_below(&self, depth: u32, bits: u32) -> (u64, u64) {
        let rest = bits - depth;
        if rest > 63 {
            return (u64::MAX, u64::MAX);
        }
        let own = self.bits(depth, rest);
        ((1 << rest) - own, own + 1)
    }

    #[inline(always)]
    fn has_same_prefix(&self, other: &Self, depth: u32) -> bool {
        self.shared_bits(other, depth) == depth
    }
}

#[cfg(test)]
mod tests;
