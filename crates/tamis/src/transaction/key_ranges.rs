//! A set of keys and key ranges that a transaction has read, in bounded memory.
//!
//! Ranges that overlap are joined. If the set outgrows [`BYTES_MAX`], each two neighbours become one range, with the keys between them: a
//! long transaction may then conflict with a write to a key that it has not read, and never misses one that it has.

use std::{collections::BTreeMap, ops::Bound};

use crate::range_tombstone::{compare_uppers, is_below_upper, key_after};

/// The memory of a set in bytes, and that of the commits that are kept for transactions.
pub(super) const BYTES_MAX: usize = 1 << 20;

/// Where a range ends.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    /// It is one key.
    Point,
    /// Excluded; empty: no end.
    Below(Vec<u8>),
}

/// A key or a range, borrowed from a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys<'a> {
    One(&'a [u8]),
    /// The lower bound is included, the upper one excluded; empty: no end.
    Range(&'a [u8], &'a [u8]),
}

/// See the head of this file.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyRanges {
    /// By their lower bounds; disjoint.
    ends: BTreeMap<Vec<u8>, End>,
    bytes: usize,
}

impl KeyRanges {
    /// Adds a key.
    pub(crate) fn add_key(&mut self, key: &[u8]) {
        if !self.has_key(key) {
            self.insert(key.to_vec(), End::Point);
            self.bound_memory();
        }
    }

    /// Adds the keys from `lower` (included) up to `upper` (excluded; empty: no end).
    pub(crate) fn add_range(&mut self, lower: &[u8], upper: &[u8]) {
        if !is_below_upper(lower, upper) {
            return;
        }
        let (mut lower, mut upper) = (lower.to_vec(), upper.to_vec());
        if let Some((before, End::Below(end))) = self.last_at_or_before(&lower)
            && (end.is_empty() || *end >= lower)
        {
            lower.clone_from(before);
        }
        // A key at the excluded bound is not in the range; a range that begins there is joined.
        while let Some((next, end)) = self.ends.range(lower.clone()..).next()
            && (is_below_upper(next, &upper) || *next == upper && *end != End::Point)
        {
            if let End::Below(end) = end
                && compare_uppers(end, &upper).is_gt()
            {
                upper.clone_from(end);
            }
            let next = next.clone();
            self.remove(&next);
        }
        self.insert(lower, End::Below(upper));
        self.bound_memory();
    }

    fn last_at_or_before(&self, key: &[u8]) -> Option<(&Vec<u8>, &End)> {
        self.ends.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()
    }

    /// Whether the set has the key.
    pub(crate) fn has_key(&self, key: &[u8]) -> bool {
        self.last_at_or_before(key).is_some_and(|(lower, end)| match end {
            End::Point => lower == key,
            End::Below(upper) => is_below_upper(key, upper),
        })
    }

    /// Whether the set has keys from `lower` (included) up to `upper` (excluded; empty: no end).
    pub(crate) fn meets(&self, lower: &[u8], upper: &[u8]) -> bool {
        let next = self.ends.range::<[u8], _>((Bound::Included(lower), Bound::Unbounded)).next();
        self.has_key(lower) || next.is_some_and(|(next, _)| is_below_upper(next, upper))
    }

    /// The keys and ranges in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Keys<'_>> {
        self.ends.iter().map(|(lower, end)| match end {
            End::Point => Keys::One(lower),
            End::Below(upper) => Keys::Range(lower, upper),
        })
    }

    fn insert(&mut self, lower: Vec<u8>, end: End) {
        self.bytes += bytes_of(&lower, &end);
        self.ends.insert(lower, end);
    }

    fn remove(&mut self, lower: &[u8]) {
        if let Some(end) = self.ends.remove(lower) {
            self.bytes -= bytes_of(lower, &end);
        }
    }

    /// Joins neighbours while the set is too large. One range of the two longest keys is small enough.
    fn bound_memory(&mut self) {
        while self.bytes > BYTES_MAX && self.ends.len() > 1 {
            let mut all = std::mem::take(&mut self.ends).into_iter();
            self.bytes = 0;
            while let Some((lower, end)) = all.next() {
                let end = match all.next() {
                    None => end,
                    Some((_, End::Below(upper))) => End::Below(upper),
                    Some((key, End::Point)) => End::Below(key_after(&key).unwrap_or_default()),
                };
                self.insert(lower, end);
            }
        }
    }
}

fn bytes_of(lower: &[u8], end: &End) -> usize {
    let upper = match end {
        End::Point => 0,
        End::Below(upper) => upper.len(),
    };
    // About the memory of a range without its keys.
    64 + lower.len() + upper
}

#[cfg(test)]
mod tests;
