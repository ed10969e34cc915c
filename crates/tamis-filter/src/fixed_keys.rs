//! Bounds of keys of one length of at most eight bytes, as integers in the top bits of a `u64`.
//!
//! A bound of another length becomes the nearest key inside the range, so that the range contains the same keys.

use std::ops::Bound;

use tamis_bits::key_head;

use crate::{KeyRange, Upper};

/// A key of eight bytes as an integer.
#[inline(always)]
pub(crate) fn word(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

/// The bounds of a range, if both are inclusive and keys of eight bytes. The lower one may be greater.
#[inline(always)]
pub(crate) fn closed_words(range: &KeyRange<'_>) -> Option<(u64, u64)> {
    match (range.lower, range.upper) {
        (Bound::Included(lower), Upper::Included(upper)) => Some((word(lower)?, word(upper)?)),
        _ => None,
    }
}

/// Keys of `byte_count` bytes, 1 to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FixedKeys {
    pub(crate) byte_count: u8,
}

impl FixedKeys {
    pub(crate) const fn new(byte_count: u8) -> Self {
        Self { byte_count }
    }

    /// Bits of a key.
    #[inline(always)]
    pub(crate) const fn bit_count(self) -> u32 {
        self.byte_count as u32 * 8
    }

    /// The difference between consecutive keys.
    #[inline(always)]
    const fn unit(self) -> u64 {
        1 << (64 - self.bit_count())
    }

    #[inline(always)]
    const fn mask(self) -> u64 {
        u64::MAX << (64 - self.bit_count())
    }

    /// Length of the common prefix of two keys in bits.
    #[inline(always)]
    pub(crate) fn shared_bits(self, one: u64, other: u64) -> u32 {
        (one ^ other).leading_zeros().min(self.bit_count())
    }

    /// A key as an integer; `None` for another length, which no key of the filter has.
    #[inline(always)]
    pub(crate) fn point(self, key: &[u8]) -> Option<u64> {
        (key.len() == usize::from(self.byte_count)).then(|| key_head(key))
    }

    /// The least and the greatest key in a range; `None` if it is empty.
    #[inline(always)]
    pub(crate) fn bounds(self, range: &KeyRange<'_>) -> Option<(u64, u64)> {
        if let Some((lower, upper)) = self.closed(range) {
            return (lower <= upper).then_some((lower, upper));
        }
        self.other_bounds(range)
    }

    /// The bounds of a range, if both are inclusive and keys of this length. The lower one may be greater.
    #[inline(always)]
    pub(crate) fn closed(self, range: &KeyRange<'_>) -> Option<(u64, u64)> {
        match (range.lower, range.upper) {
            (Bound::Included(lower), Upper::Included(upper)) => {
                Some((self.point(lower)?, self.point(upper)?))
            }
            _ => None,
        }
    }

    #[inline(never)]
    fn other_bounds(self, range: &KeyRange<'_>) -> Option<(u64, u64)> {
        let (lower, upper) = (self.lower(range.lower)?, self.upper(range.upper)?);
        (lower <= upper).then_some((lower, upper))
    }

    fn lower(self, bound: Bound<&[u8]>) -> Option<u64> {
        let length = usize::from(self.byte_count);
        let (key, is_above) = match bound {
            Bound::Unbounded => return Some(0),
            // A key that is a prefix of a longer bound is smaller.
            Bound::Included(key) => (key, key.len() > length),
            Bound::Excluded(key) => (key, key.len() >= length),
        };
        let word = key_head(key) & self.mask();
        if is_above { word.checked_add(self.unit()) } else { Some(word) }
    }

    fn upper(self, bound: Upper<'_>) -> Option<u64> {
        let length = usize::from(self.byte_count);
        let (key, is_below) = match bound {
            Upper::Open => return Some(self.mask()),
            Upper::Prefix(prefix) => {
                let rest = u64::MAX.checked_shr(prefix.len().min(8) as u32 * 8).unwrap_or(0);
                return Some((key_head(prefix) | rest) & self.mask());
            }
            // A key that has a shorter bound as prefix is greater.
            Upper::Included(key) => (key, key.len() < length),
            Upper::Excluded(key) => (key, key.len() <= length),
        };
        let word = key_head(key) & self.mask();
        if is_below { word.checked_sub(self.unit()) } else { Some(word) }
    }
}
