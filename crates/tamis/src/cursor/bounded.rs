//! The key range of a scan: two bounds, kept as given.
//!
//! Reversed bounds are an empty range, not an error.

use std::ops::Bound;

use tamis_filter::{Digester, Direction};

use crate::{
    key::prefix_successor, key_range_bounds::KeyRangeBounds, sync::sim_fault, table::read_ahead::Limits,
};

/// Lower and upper bound, owned.
pub(crate) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The keys of a scan, as the caller gave them.
pub(crate) enum ScanRange {
    Bounds(Bounds),
    /// All keys that begin with these bytes.
    Prefix(Vec<u8>),
}

/// The bounds of all keys that begin with `prefix`.
pub(crate) fn prefix_bounds(prefix: &[u8]) -> Bounds {
    let upper = prefix_successor(prefix).map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(prefix.to_vec()), upper)
}

/// The bounds of a range, copied.
pub(crate) fn range_bounds(range: &impl KeyRangeBounds) -> Bounds {
    let (lower, upper) = range.key_bounds();
    (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec))
}

/// A bound, borrowed.
pub(crate) fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// See the head of this file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) lower: Bound<Vec<u8>>,
    pub(crate) upper: Bound<Vec<u8>>,
}

impl KeyRange {
    /// All keys.
    #[cfg(test)]
    pub(crate) const ALL: Self = Self { lower: Bound::Unbounded, upper: Bound::Unbounded };

    /// Whether the bounds allow no key.
    pub(crate) fn is_empty(&self) -> bool {
        match (&self.lower, &self.upper) {
            (Bound::Unbounded, Bound::Excluded(upper)) => upper.is_empty(),
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (
                Bound::Included(lower) | Bound::Excluded(lower),
                Bound::Included(upper) | Bound::Excluded(upper),
            ) => lower >= upper,
        }
    }

    /// Whether the key is below the range.
    #[inline]
    pub(crate) fn is_below(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => false,
            Bound::Included(lower) => key < lower.as_slice(),
            Bound::Excluded(lower) => key <= lower.as_slice(),
        }
    }

    /// Whether the key is above the range.
    #[inline]
    pub(crate) fn is_above(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Unbounded => false,
            Bound::Included(upper) => key > upper.as_slice(),
            Bound::Excluded(upper) => {
                key > upper.as_slice() || key == upper.as_slice() && !sim_fault!("include-excluded-bound")
            }
        }
    }

    /// Whether no key of the range is before `key`.
    pub(crate) fn begins_at_or_behind(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => key.is_empty(),
            Bound::Included(lower) | Bound::Excluded(lower) => lower.as_slice() >= key,
        }
    }

    /// Whether a key of the range is the last one that the bounds allow.
    #[inline]
    pub(crate) fn is_at_upper(&self, key: &[u8]) -> bool {
        matches!(&self.upper, Bound::Included(upper) if key == upper.as_slice())
    }

    /// Whether a key of the range is the first that the bounds allow.
    #[inline]
    pub(crate) fn is_at_lower(&self, key: &[u8]) -> bool {
        matches!(&self.lower, Bound::Included(lower) if key == lower.as_slice())
    }
}

impl AsRef<Self> for KeyRange {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// The keys that the reader of a merge needs: entries outside of them are not read.
pub(crate) trait Needed: AsRef<KeyRange> + Send + Sync {
    fn range(&self) -> &KeyRange {
        self.as_ref()
    }
    /// For the filters of tables.
    fn digester(&self) -> &Digester;
}

/// Whether a key is before an end in a direction.
#[inline]
pub(super) fn is_before(key: &[u8], end: Bound<&[u8]>, direction: Direction) -> bool {
    match (end, direction) {
        (Bound::Unbounded, _) => true,
        (Bound::Included(end), Direction::Forward) => key <= end,
        (Bound::Excluded(end), Direction::Forward) => key < end,
        (Bound::Included(end), Direction::Backward) => key >= end,
        (Bound::Excluded(end), Direction::Backward) => key > end,
    }
}

/// The end that is reached first.
pub(super) fn nearer<'a>(
    left: Bound<&'a [u8]>,
    right: Bound<&'a [u8]>,
    direction: Direction,
) -> Bound<&'a [u8]> {
    match (left, right) {
        (Bound::Unbounded, end) | (end, Bound::Unbounded) => end,
        (Bound::Excluded(key), Bound::Included(end) | Bound::Excluded(end)) if key == end => left,
        (Bound::Included(key) | Bound::Excluded(key), end) if is_before(key, end, direction) => left,
        _ => right,
    }
}

impl Limits for KeyRange {
    fn lower(&self) -> Option<&[u8]> {
        key_of(&self.lower)
    }

    fn upper(&self) -> Option<&[u8]> {
        key_of(&self.upper)
    }
}

fn key_of(bound: &Bound<Vec<u8>>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

#[cfg(test)]
mod tests;
