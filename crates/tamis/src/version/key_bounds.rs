//! Bounds of keys of tables, plans and jobs: a lower bound, and an upper bound that is included (the last entry) or
//! excluded (the end of a range tombstone).

use std::{cmp::Ordering, ops::Bound};

/// A lower and an upper bound of keys, as the caller gave them.
pub(crate) type KeyBounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// A place between keys, in the order of places: whether it is after all keys, else a key, and whether it is after that key.
pub(crate) type EndEdge<'a> = (bool, &'a [u8], bool);

/// The place at which an upper bound ends.
pub(crate) const fn end_edge(end: Bound<&[u8]>) -> EndEdge<'_> {
    match end {
        Bound::Excluded(key) => (false, key, false),
        Bound::Included(key) => (false, key, true),
        Bound::Unbounded => (true, &[], false),
    }
}

/// The bounds of the keys from `lower` up to `upper`, which is excluded; empty: no end.
pub(crate) const fn span_bounds<'a>(lower: &'a [u8], upper: &'a [u8]) -> KeyBounds<'a> {
    (Bound::Included(lower), if upper.is_empty() { Bound::Unbounded } else { Bound::Excluded(upper) })
}

/// The order of two upper bounds. Of two with one key, the excluded one comes first.
pub(crate) fn compare_ends(left: Bound<&[u8]>, right: Bound<&[u8]>) -> Ordering {
    end_edge(left).cmp(&end_edge(right))
}

/// Whether a key is at or before an upper bound.
pub(crate) fn is_within_end(key: &[u8], end: Bound<&[u8]>) -> bool {
    match end {
        Bound::Included(upper) => key <= upper,
        Bound::Excluded(upper) => key < upper,
        Bound::Unbounded => true,
    }
}

/// Bounds that own their keys: a lower bound, which is included, and an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeySpan {
    pub(crate) lower: Vec<u8>,
    pub(crate) end: Bound<Vec<u8>>,
}

impl KeySpan {
    /// The least span that contains all bounds; `None` for none. Their lower bounds are included ones.
    pub(crate) fn around<'a>(all: impl Iterator<Item = KeyBounds<'a>> + Clone) -> Option<Self> {
        let lower = all.clone().map(|(lower, _)| key_of(lower)).min()?;
        let end = all.map(|(_, end)| end).max_by(|left, right| compare_ends(*left, *right))?;
        Some(Self { lower: lower.to_vec(), end: end.map(<[u8]>::to_vec) })
    }

    pub(crate) fn bounds(&self) -> KeyBounds<'_> {
        (Bound::Included(&self.lower), self.end.as_ref().map(Vec::as_slice))
    }
}

/// Whether two bounds have keys in common; their lower bounds are included ones.
pub(crate) fn overlap(left: KeyBounds<'_>, right: KeyBounds<'_>) -> bool {
    is_within_end(key_of(left.0), right.1) && is_within_end(key_of(right.0), left.1)
}

const fn key_of(lower: Bound<&[u8]>) -> &[u8] {
    match lower {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => &[],
    }
}
