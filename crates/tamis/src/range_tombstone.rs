//! Range tombstones: one write that deletes all older entries of a range of keys.
//!
//! A range tombstone covers the keys from `lower` (included) up to `upper` (excluded, empty: no end), and deletes the entries of
//! these keys whose sequence numbers are below its own.
//!
//! Tombstones that overlap are cut into [`Fragments`]: disjoint spans in key order, each with the sequence numbers of all
//! tombstones that cover it. A key is then looked up by one binary search.
//!
//! ```text
//! tombstones   [a ------------ h)@7         fragments   [a - c)@7  [c ---- f)@9,7  [f - h)@7
//!                  [c ---- f)@9
//! ```
//!
//! Of the sequence numbers of a fragment only those that some reader can distinguish are kept: the newest of each stratum
//! between two read points (`compaction/drop_rules.rs`). Nested tombstones therefore take memory in proportion to their
//! number, not to its square.

mod fragmenter;

use std::{borrow::Cow, cmp::Ordering, iter::Peekable, mem, ops::Bound, vec};

pub(crate) use fragmenter::fragment;
use tamis_bits::key_head;

use crate::{
    key::{KEY_LENGTH_MAX, Sequence, prefix_successor},
    observe::steps::{self, Step},
};

/// See the head of this file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeTombstone {
    pub(crate) lower: Vec<u8>,
    pub(crate) upper: Vec<u8>,
    pub(crate) sequence: Sequence,
}

/// The least key.
pub(crate) const KEY_LEAST: &[u8] = &[0];

/// Whether a key is below an excluded upper bound; an empty bound is above all keys.
#[inline]
pub(crate) fn is_below_upper(key: &[u8], upper: &[u8]) -> bool {
    upper.is_empty() || key < upper
}

/// The order of two excluded upper bounds.
pub(crate) fn compare_uppers(left: &[u8], right: &[u8]) -> Ordering {
    // An empty bound is the greatest.
    left.is_empty().cmp(&right.is_empty()).then_with(|| left.cmp(right))
}

/// The smaller of two excluded upper bounds.
pub(crate) fn least_upper<'a>(left: &'a [u8], right: &'a [u8]) -> &'a [u8] {
    if compare_uppers(left, right).is_le() { left } else { right }
}

/// An included lower and an excluded upper bound.
pub(crate) type HalfOpen<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// Any bounds as an included lower bound and an excluded upper bound, both of them possible keys (an empty upper bound is no
/// bound); `None` if no key is between them.
pub(crate) fn half_open<'a>(lower: Bound<&'a [u8]>, upper: Bound<&'a [u8]>) -> Option<HalfOpen<'a>> {
    // No key is longer: a longer bound is above its truncated form, and below the next key.
    let shortened = |key: &'a [u8]| key.get(..KEY_LENGTH_MAX).filter(|short| short.len() < key.len());
    let lower = match lower {
        Bound::Unbounded | Bound::Included([]) => Cow::Borrowed(KEY_LEAST),
        Bound::Included(key) => match shortened(key) {
            Some(key) => Cow::Owned(key_after(key)?),
            None => Cow::Borrowed(key),
        },
        Bound::Excluded(key) => Cow::Owned(key_after(shortened(key).unwrap_or(key))?),
    };
    let upper = match upper {
        Bound::Unbounded => Cow::Borrowed(&[][..]),
        // No key is below the empty one.
        Bound::Excluded([]) => return None,
        Bound::Excluded(key) => match shortened(key) {
            Some(key) => Cow::Owned(key_after(key).unwrap_or_default()),
            None => Cow::Borrowed(key),
        },
        Bound::Included(key) => Cow::Owned(key_after(shortened(key).unwrap_or(key)).unwrap_or_default()),
    };
    is_below_upper(&lower, &upper).then_some((lower, upper))
}

/// The least key above `key`; `None` if `key` is the greatest.
pub(crate) fn key_after(key: &[u8]) -> Option<Vec<u8>> {
    if key.len() < KEY_LENGTH_MAX { Some([key, &[0]].concat()) } else { prefix_successor(key) }
}

/// A span of keys that the same tombstones cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) lower: Vec<u8>,
    pub(crate) upper: Vec<u8>,
    /// Descending, at least one.
    pub(crate) sequences: Vec<Sequence>,
}

impl Fragment {
    /// The newest sequence number that a reader at `snapshot` sees; 0 if it sees none.
    #[inline]
    pub(crate) fn newest_at(&self, snapshot: Sequence) -> Sequence {
        let newer = self.sequences.partition_point(|&sequence| sequence > snapshot);
        self.sequences.get(newer).copied().unwrap_or(0)
    }

    /// The oldest sequence number above that of an entry; `None` if it deletes no such entry.
    pub(crate) fn oldest_above(&self, sequence: Sequence) -> Option<Sequence> {
        let newer = self.sequences.partition_point(|&other| other > sequence);
        newer.checked_sub(1).and_then(|last| self.sequences.get(last)).copied()
    }
}

/// The cover of a key: the newest sequence number (0 for none), and the keys for which it is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cover<'a> {
    pub(crate) sequence: Sequence,
    /// Included; empty before the first tombstone.
    pub(crate) lower: &'a [u8],
    /// Excluded; empty: no end.
    pub(crate) upper: &'a [u8],
}

/// Disjoint fragments in key order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Fragments {
    list: Vec<Fragment>,
    /// The length of the prefix that all lower bounds have in common.
    shared: usize,
    /// Of each lower bound the eight bytes behind this prefix, filled up with zeros: a search reads them from a few cache lines.
    heads: Vec<u64>,
}

impl Fragments {
    /// `None` for fragments that are not ascending, disjoint and not empty, or without descending sequence numbers.
    pub(crate) fn new(list: Vec<Fragment>) -> Option<Self> {
        let is_whole = |fragment: &Fragment| {
            is_below_upper(&fragment.lower, &fragment.upper)
                && !fragment.sequences.is_empty()
                && fragment.sequences.is_sorted_by(|newer, older| newer > older)
        };
        let are_apart = list.is_sorted_by(|left, right| !left.upper.is_empty() && left.upper <= right.lower);
        (are_apart && list.iter().all(is_whole)).then(|| Self::of(list))
    }

    /// As [`Fragments::new`], for fragments that are ascending, disjoint and not empty.
    fn of(list: Vec<Fragment>) -> Self {
        let ends = list.first().zip(list.last());
        let equal = |(first, last): (&Fragment, &Fragment)| {
            tamis_bits::common_prefix_length(&first.lower, &last.lower)
        };
        let shared = ends.map_or(0, equal);
        let lower = |fragment: &Fragment| fragment.lower.get(shared..).map_or(0, key_head);
        let heads = list.iter().map(lower).collect();
        Self { list, shared, heads }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// In key order.
    pub(crate) fn list(&self) -> &[Fragment] {
        &self.list
    }

    /// The tombstones that the fragments represent. Adjacent fragments with a sequence number in common give one tombstone.
    ///
    /// Cost: in proportion to the sequence numbers of all fragments.
    pub(crate) fn tombstones(&self) -> Vec<RangeTombstone> {
        let mut tombstones = Vec::new();
        // The tombstones that the last fragment ends, newest first, with their lower bounds.
        let mut open: Vec<(Sequence, &[u8])> = Vec::new();
        let mut upper: &[u8] = &[];
        for fragment in &self.list {
            let is_adjacent = upper == fragment.lower;
            let mut previous = mem::take(&mut open).into_iter().peekable();
            for &sequence in &fragment.sequences {
                let ended =
                    std::iter::from_fn(|| previous.next_if(|(newer, _)| *newer > sequence || !is_adjacent));
                tombstones.extend(ended.map(|(sequence, lower)| ended_at(upper, lower, sequence)));
                let continued = previous.next_if(|(other, _)| *other == sequence);
                open.push((sequence, continued.map_or(fragment.lower.as_slice(), |(_, lower)| lower)));
            }
            tombstones.extend(previous.map(|(sequence, lower)| ended_at(upper, lower, sequence)));
            upper = &fragment.upper;
        }
        tombstones.extend(open.into_iter().map(|(sequence, lower)| ended_at(upper, lower, sequence)));
        tombstones
    }

    /// Divides the fragments among parts of the key space, in key order.
    pub(crate) fn into_parts(self) -> FragmentParts {
        FragmentParts { rest: self.list.into_iter().peekable() }
    }

    /// The fragments with keys between two bounds (included, excluded; empty: no end).
    pub(crate) fn within(&self, lower: &[u8], upper: &[u8]) -> &[Fragment] {
        let from = self.list.partition_point(|fragment| !is_below_upper(lower, &fragment.upper));
        let to = self.list.partition_point(|fragment| is_below_upper(&fragment.lower, upper));
        self.list.get(from..to).unwrap_or_default()
    }

    /// How many fragments begin at or below `key`.
    fn count_begun(&self, key: &[u8]) -> usize {
        let prefix = self.list.first().and_then(|first| first.lower.get(..self.shared)).unwrap_or_default();
        let Some(rest) = key.strip_prefix(prefix) else {
            return if key < prefix { 0 } else { self.list.len() };
        };
        let head = key_head(rest);
        let from = self.heads.partition_point(|&other| other < head);
        let equal = self.heads.get(from..).unwrap_or_default();
        let to = from
            + if equal.first() == Some(&head) { equal.partition_point(|&other| other == head) } else { 0 };
        let candidates = self.list.get(from..to).unwrap_or_default();
        from + candidates.partition_point(|fragment| fragment.lower.as_slice() <= key)
    }

    /// The newest tombstone at or below `snapshot` that covers `key`; 0 for none.
    ///
    /// Cost: one binary search.
    pub(crate) fn sequence_at(&self, key: &[u8], snapshot: Sequence) -> Sequence {
        self.cover_at(key, snapshot).sequence
    }

    /// The cover of `key` for a reader at `snapshot`. `key` may be empty.
    ///
    /// Cost: one binary search.
    pub(crate) fn cover_at(&self, key: &[u8], snapshot: Sequence) -> Cover<'_> {
        let begun = self.count_begun(key);
        let before = begun.checked_sub(1).and_then(|index| self.list.get(index));
        match before {
            Some(fragment) if is_below_upper(key, &fragment.upper) => Cover {
                sequence: fragment.newest_at(snapshot),
                lower: &fragment.lower,
                upper: &fragment.upper,
            },
            _ => Cover {
                sequence: 0,
                lower: before.map_or(&[], |fragment| &fragment.upper),
                upper: self.list.get(begun).map_or(&[], |fragment| &fragment.lower),
            },
        }
    }

    /// Whether tombstones at or below `snapshot` and above `sequence` cover every key of a range.
    pub(crate) fn cover_all(
        &self,
        lower: &[u8],
        upper: &[u8],
        sequence: Sequence,
        snapshot: Sequence,
    ) -> bool {
        let mut reached = lower;
        loop {
            let cover = self.cover_at(reached, snapshot);
            if cover.sequence <= sequence {
                return false;
            }
            if compare_uppers(upper, cover.upper).is_le() {
                return true;
            }
            reached = cover.upper;
        }
    }
}

fn ended_at(upper: &[u8], lower: &[u8], sequence: Sequence) -> RangeTombstone {
    RangeTombstone { lower: lower.to_vec(), upper: upper.to_vec(), sequence }
}

/// Fragments that have not been given to a part of the key space yet.
#[derive(Debug)]
pub(crate) struct FragmentParts {
    rest: Peekable<vec::IntoIter<Fragment>>,
}

impl FragmentParts {
    /// Takes the rest of the fragments below `upper` (empty: all). One that extends beyond it is cut there.
    ///
    /// Cost: in proportion to the fragments that are taken, whose sequence numbers are moved, not copied.
    pub(crate) fn next_below(&mut self, upper: &[u8]) -> Fragments {
        let mut list = Vec::new();
        let ends_below = |fragment: &Fragment| {
            steps::count(Step::ComparedTombstone, 1);
            compare_uppers(&fragment.upper, upper).is_le()
        };
        list.extend(std::iter::from_fn(|| self.rest.next_if(ends_below)));
        if let Some(next) = self.rest.peek_mut()
            && is_below_upper(&next.lower, upper)
        {
            let lower = mem::replace(&mut next.lower, upper.to_vec());
            list.push(Fragment { lower, upper: upper.to_vec(), sequences: next.sequences.clone() });
        }
        Fragments::of(list)
    }
}

#[cfg(test)]
mod tests;
