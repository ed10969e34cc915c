//! Bounds of keys that all have the same length of at most eight bytes, as integers in the top bits of a word.
//!
//! A bound of another length lies between two such keys, or beside one of them, and becomes the nearest one inside the range:
//! nothing is lost, and nothing is added.

use std::ops::Bound;

use tamis_bits::key_head;

use crate::{KeyRange, Upper};

/// A key of eight bytes as an integer.
#[inline(always)]
pub(super) fn word(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

/// The bounds of a range, if both are inclusive and keys of eight bytes. The lower one may be greater.
#[inline(always)]
pub(super) fn closed_words(range: &KeyRange<'_>) -> Option<(u64, u64)> {
    match (range.lower, range.upper) {
        (Bound::Included(lower), Upper::Included(upper)) => Some((word(lower)?, word(upper)?)),
        _ => None,
    }
}

/// Keys of `byte_count` bytes, 1 to 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FixedKeys {
    pub(super) byte_count: u8,
}

impl FixedKeys {
    pub(super) const fn new(byte_count: u8) -> Self {
        Self { byte_count }
    }

    /// Bits of a key.
    #[inline(always)]
    pub(super) const fn bit_count(self) -> u32 {
        self.byte_count as u32 * 8
    }

    /// The step from one key to the next.
    #[inline(always)]
    const fn unit(self) -> u64 {
        1 << (64 - self.bit_count())
    }

    #[inline(always)]
    const fn mask(self) -> u64 {
        u64::MAX << (64 - self.bit_count())
    }

    /// A key as a word; `None` where it has another length and so is none of the keys.
    #[inline(always)]
    pub(super) fn point(self, key: &[u8]) -> Option<u64> {
        (key.len() == usize::from(self.byte_count)).then(|| key_head(key))
    }

    /// The least and the greatest key in a range; `None` where it has none.
    #[inline(always)]
    pub(super) fn bounds(self, range: &KeyRange<'_>) -> Option<(u64, u64)> {
        if let Some((lower, upper)) = self.closed(range) {
            return (lower <= upper).then_some((lower, upper));
        }
        self.other_bounds(range)
    }

    /// Lower and upper bound, in whichever order, where both are keys and belong to the range.
    #[inline(always)]
    pub(super) fn closed(self, range: &KeyRange<'_>) -> Option<(u64, u64)> {
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
            // A key that begins like a longer bound is a prefix of it, and so smaller.
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
            // A key that begins with a shorter bound is longer, and so greater.
            Upper::Included(key) => (key, key.len() < length),
            Upper::Excluded(key) => (key, key.len() <= length),
        };
        let word = key_head(key) & self.mask();
        if is_below { word.checked_sub(self.unit()) } else { Some(word) }
    }
}
