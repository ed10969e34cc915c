//! The bounds of a range query, stored as given.
//!
//! An excluded string bound has no equivalent included bound, and a prefix has no upper end that is a key (`b"\xff"*`
//! has no successor): so bounds are never rewritten, and each family interprets them as they are.

use std::ops::Bound;

use tamis_bits::key_head;

/// The upper end of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upper<'a> {
    /// No upper end.
    Open,
    /// Up to this key, included.
    Included(&'a [u8]),
    /// Up to this key, excluded.
    Excluded(&'a [u8]),
    /// Up to the last key that begins with these bytes, included.
    Prefix(&'a [u8]),
}

/// A range of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRange<'a> {
    /// The lower end.
    pub lower: Bound<&'a [u8]>,
    /// The upper end.
    pub upper: Upper<'a>,
}

impl<'a> KeyRange<'a> {
    /// All keys.
    pub const ALL: Self = Self { lower: Bound::Unbounded, upper: Upper::Open };

    /// Between two bounds of `std::ops`.
    pub fn new(lower: Bound<&'a [u8]>, upper: Bound<&'a [u8]>) -> Self {
        let upper = match upper {
            Bound::Unbounded => Upper::Open,
            Bound::Included(key) => Upper::Included(key),
            Bound::Excluded(key) => Upper::Excluded(key),
        };
        Self { lower, upper }
    }

    /// From one key to another, both included.
    pub const fn closed(lower: &'a [u8], upper: &'a [u8]) -> Self {
        Self { lower: Bound::Included(lower), upper: Upper::Included(upper) }
    }

    /// One key.
    pub const fn point(key: &'a [u8]) -> Self {
        Self::closed(key, key)
    }

    /// All keys that begin with these bytes.
    pub const fn prefix(prefix: &'a [u8]) -> Self {
        Self { lower: Bound::Included(prefix), upper: Upper::Prefix(prefix) }
    }

    /// Whether the range contains a key.
    pub fn contains(&self, key: &[u8]) -> bool {
        let above_lower = match self.lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => key >= lower,
            Bound::Excluded(lower) => key > lower,
        };
        above_lower
            && match self.upper {
                Upper::Open => true,
                Upper::Included(upper) => key <= upper,
                Upper::Excluded(upper) => key < upper,
                Upper::Prefix(prefix) => key < prefix || key.starts_with(prefix),
            }
    }

    /// Whether the range contains no byte string at all: reversed bounds, or two without a string between them.
    pub fn is_empty(&self) -> bool {
        let (lower, excluded) = match self.lower {
            Bound::Unbounded => (&b""[..], false),
            Bound::Included(lower) => (lower, false),
            Bound::Excluded(lower) => (lower, true),
        };
        // The least byte string of the range is `lower`, or `lower` followed by one zero byte.
        match self.upper {
            Upper::Open => false,
            Upper::Included(upper) => upper < lower || (excluded && upper == lower),
            Upper::Excluded(upper) => upper <= lower || (excluded && is_successor(lower, upper)),
            Upper::Prefix(prefix) => prefix < lower && !lower.starts_with(prefix),
        }
    }

    /// The only byte string in the range, if there is exactly one.
    pub fn as_point(&self) -> Option<&'a [u8]> {
        // The least byte string of the range, if it is one of the given bounds, must be the greatest too.
        match (self.lower, self.upper) {
            (Bound::Excluded(lower), Upper::Included(upper)) => is_successor(lower, upper).then_some(upper),
            (Bound::Excluded(lower), Upper::Excluded(upper)) => {
                let point = upper.strip_suffix(&[0])?;
                is_successor(lower, point).then_some(point)
            }
            (_, Upper::Included(upper)) => (self.lower_bytes() == upper).then_some(upper),
            (_, Upper::Excluded(upper)) => {
                let point = upper.strip_suffix(&[0])?;
                (self.lower_bytes() == point).then_some(point)
            }
            (_, Upper::Open | Upper::Prefix(_)) => None,
        }
    }

    /// If all keys have this length, and the lower bound is not below the first of them that may be in the range: bytes that end with the
    /// byte of that key that is one greater than theirs; after it the key has zeros. `None` also for 0, keys of several lengths: the key
    /// after `a` is then `a` and a zero byte, which continues with the same bits as `a`.
    #[inline]
    pub(crate) fn lower_to_increment(&self, key_bytes: usize) -> Option<&'a [u8]> {
        let (lower, is_above) = match self.lower {
            Bound::Unbounded => return None,
            Bound::Included(lower) => (lower, lower.len() > key_bytes),
            Bound::Excluded(lower) => (lower, lower.len() >= key_bytes),
        };
        if key_bytes == 0 || !is_above {
            return None;
        }
        let lower = lower.get(..key_bytes)?;
        let last = lower.iter().rposition(|byte| *byte != 0xff)?;
        lower.get(..=last)
    }

    /// The bytes of the lower bound, empty if it is open.
    pub fn lower_bytes(&self) -> &'a [u8] {
        match self.lower {
            Bound::Unbounded => b"",
            Bound::Included(key) | Bound::Excluded(key) => key,
        }
    }

    /// The bytes of the upper bound, `None` if it is open.
    pub fn upper_bytes(&self) -> Option<&'a [u8]> {
        match self.upper {
            Upper::Open => None,
            Upper::Included(key) | Upper::Excluded(key) | Upper::Prefix(key) => Some(key),
        }
    }
}

impl KeyRange<'_> {
    /// The least and the greatest first eight bytes ([`tamis_bits::key_head`]) of a key in the range. `None` if no key
    /// can be in the range.
    pub fn word_bounds(&self) -> Option<(u64, u64)> {
        let lower = key_head(self.lower_bytes());
        let upper = match self.upper {
            Upper::Open => u64::MAX,
            Upper::Included(upper) => key_head(upper),
            Upper::Prefix(prefix) => {
                key_head(prefix) | u64::MAX.checked_shr(prefix.len().min(8) as u32 * 8).unwrap_or(0)
            }
            // A smaller key has the same word only if it is `upper` without zero bytes at its end, or if both agree in
            // more than eight bytes.
            Upper::Excluded(upper) if upper.len() <= 8 && !upper.ends_with(&[0]) => {
                key_head(upper).checked_sub(1)?
            }
            Upper::Excluded(upper) => key_head(upper),
        };
        (lower <= upper && !self.is_empty()).then_some((lower, upper))
    }
}

/// Whether `next` is the byte string right after `key`: `key` and a zero byte.
fn is_successor(key: &[u8], next: &[u8]) -> bool {
    next.split_last() == Some((&0, key))
}

#[cfg(test)]
mod tests;
