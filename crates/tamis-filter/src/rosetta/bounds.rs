//! The bounds of a range as node numbers at a depth.
//!
//! The number of a node of depth `d` is the integer of its `d` bits. Of nodes deeper than 64 bits, only the last 64
//! bits are kept (the *window*), and both bounds must have the bits before the window in common. Otherwise the range
//! has no span at that depth: the nodes between the bounds exceed any budget, or the range crosses the border of a
//! window. The filter then answers "may contain".

use crate::KeyRange;
use crate::bit_string::BitString;
use crate::fixed_keys::FixedKeys;

/// Both ends of a range that can contain a key.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bounds<'a> {
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
pub(super) struct Ends<'a> {
    lower: BitString<'a>,
    upper: BitString<'a>,
    /// Number of equal leading bits.
    shared_bits: u32,
}

impl<'a> Bounds<'a> {
    /// `key_bytes` is the length of all keys, 0 for keys of several lengths. `None` if no such key can be in the
    /// range.
    #[inline]
    pub(super) fn new(range: &KeyRange<'a>, key_bytes: u32) -> Option<Self> {
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
    pub(super) fn span(&self, depth: u32) -> Option<(u64, u64)> {
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
    pub(super) fn copy_front(&self, byte_count: usize, target: &mut Vec<u8>) {
        target.clear();
        if let Self::Bytes(ends) = self {
            target.extend((0..byte_count).map(|index| ends.lower.byte(index)));
        }
    }

    /// The number of leading bits that the lower and the upper bound have in common with one of two keys.
    pub(super) fn shared_bits(&self, neighbours: [Option<&[u8]>; 2]) -> (u32, u32) {
        let mut shared = (0, 0);
        for key in neighbours.into_iter().flatten() {
            let (lower, upper) = match self {
                Self::Words { lower, upper, keys } => {
                    let shared = |bound: &u64| keys.point(key).map_or(0, |key| keys.shared_bits(key, *bound));
                    (shared(lower), shared(upper))
                }
                Self::Bytes(ends) => {
                    let key = BitString::key(key);
                    (ends.lower.common_bits(&key), ends.upper.common_bits(&key))
                }
            };
            shared = (lower.max(shared.0), upper.max(shared.1));
        }
        shared
    }
}

#[cfg(test)]
mod tests;
