//! The spans of keys that range tombstones cover, as a persistent tree: adding a tombstone returns another tree, which shares
//! all nodes with the first one but those on the paths to the tombstone's bounds. So a reader keeps the spans of its snapshot
//! while others are added, without a lock or a copy.
//!
//! The tree is a treap: nodes are ordered by the lower bounds of their spans, and no node has a higher priority than its parent.
//! Priorities are hashes of sequence numbers, so that equal writes make equal trees.
//!
//! A tombstone replaces the spans that it covers. It joins a span next to it in which nothing was put since the span's own
//! tombstone: all entries of this span in the memtable are older than both tombstones, and so are those of older sources. The span
//! then has the newer sequence number, which readers of older snapshots don't see: they have an older tree.
//!
//! Invariants: (1) spans are disjoint and not empty; (2) a put above the sequence number of its span has marked it.
//!
//! Cost: O(log spans) expected for a lookup, and for the nodes that adding a tombstone makes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tamis_bits::{key_head, mix64};

use crate::{
    key::Sequence,
    observe::steps::{self, Step},
    range_tombstone::{Cover, RangeTombstone, compare_uppers, is_below_upper},
};

/// The memtable's entries in the range of a tombstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeEntries {
    /// All are older than the tombstone.
    Older,
    /// Some may be newer.
    MaybeNewer,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) lower: Vec<u8>,
    /// Excluded; empty: no end.
    pub(crate) upper: Vec<u8>,
    pub(crate) sequence: Sequence,
    has_newer: AtomicBool,
    priority: u64,
}

impl Span {
    /// Whether the memtable may have a put in the span that is newer than its tombstone.
    pub(crate) fn has_newer(&self) -> bool {
        self.has_newer.load(Ordering::Relaxed)
    }

    pub(super) fn mark(&self) {
        if !self.has_newer() {
            self.has_newer.store(true, Ordering::Relaxed);
        }
    }

    /// The part of the span between two bounds within it; `ordinal` differs for all parts that one tombstone makes.
    fn part(&self, (lower, upper): (&[u8], &[u8]), newest: Sequence, ordinal: u64) -> Self {
        Self {
            lower: lower.to_vec(),
            upper: upper.to_vec(),
            sequence: self.sequence,
            has_newer: AtomicBool::new(self.has_newer()),
            priority: priority(newest, ordinal),
        }
    }
}

fn priority(sequence: Sequence, ordinal: u64) -> u64 {
    mix64(sequence, ordinal)
}

#[derive(Debug)]
struct Node {
    /// The first eight bytes of the span's lower bound: most searches compare nothing else, and do not read the span.
    head: u64,
    span: Arc<Span>,
    left: SpanTree,
    right: SpanTree,
}

/// See the head of this file.
#[derive(Debug, Clone, Default)]
pub(crate) struct SpanTree(Option<Arc<Node>>);

impl SpanTree {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn of(span: Arc<Span>, left: Self, right: Self) -> Self {
        Self(Some(Arc::new(Node { head: key_head(&span.lower), span, left, right })))
    }

    /// The spans that begin below `key`, and the others.
    fn split(&self, key: &[u8]) -> (Self, Self) {
        let Some(node) = &self.0 else { return (Self(None), Self(None)) };
        if node.span.lower.as_slice() < key {
            let (left, right) = node.right.split(key);
            (Self::of(Arc::clone(&node.span), node.left.clone(), left), right)
        } else {
            let (left, right) = node.left.split(key);
            (left, Self::of(Arc::clone(&node.span), right, node.right.clone()))
        }
    }

    /// The spans of two trees, of which the first has the smaller keys.
    fn join(left: &Self, right: &Self) -> Self {
        match (&left.0, &right.0) {
            (_, None) => left.clone(),
            (None, _) => right.clone(),
            (Some(top), Some(other)) if top.span.priority >= other.span.priority => {
                Self::of(Arc::clone(&top.span), top.left.clone(), Self::join(&top.right, right))
            }
            (Some(_), Some(top)) => {
                Self::of(Arc::clone(&top.span), Self::join(left, &top.left), top.right.clone())
            }
        }
    }

    fn first(&self) -> Option<&Arc<Span>> {
        let node = self.0.as_ref()?;
        node.left.first().or(Some(&node.span))
    }

    fn last(&self) -> Option<&Arc<Span>> {
        let node = self.0.as_ref()?;
        node.right.last().or(Some(&node.span))
    }

    /// The spans with a tombstone that is newer than all others.
    pub(super) fn with_newest(&self, tombstone: &RangeTombstone, entries: RangeEntries) -> Self {
        let has_newer = entries == RangeEntries::MaybeNewer;
        let RangeTombstone { lower, upper, sequence } = tombstone;
        let (mut left, rest) = self.split(lower);
        let (covered, mut right) = if upper.is_empty() { (rest, Self(None)) } else { rest.split(upper) };
        // The last span that begins before the end of the tombstone may end behind it.
        let behind = covered.last().or_else(|| left.last()).filter(|last| is_past(&last.upper, upper));
        let behind = behind.map(|last| last.part((upper, &last.upper), *sequence, 1));
        if let Some(last) = left.last().filter(|last| is_below_upper(lower, &last.upper)).cloned() {
            let before = last.part((&last.lower, lower), *sequence, 2);
            left = Self::join(&left.split(&last.lower).0, &Self::leaf(before));
        }
        if let Some(behind) = behind {
            right = Self::join(&Self::leaf(behind), &right);
        }
        let mut span = Span {
            lower: lower.clone(),
            upper: upper.clone(),
            sequence: *sequence,
            has_newer: AtomicBool::new(has_newer),
            priority: priority(*sequence, 0),
        };
        let is_joined = |other: &&Arc<Span>| !has_newer && !other.has_newer();
        if let Some(last) = left.last().filter(|last| last.upper == *lower).filter(is_joined).cloned() {
            left = left.split(&last.lower).0;
            span.lower.clone_from(&last.lower);
        }
        if let Some(first) = right.first().filter(|first| first.lower == *upper).filter(is_joined).cloned() {
            right = right.without_first();
            span.upper.clone_from(&first.upper);
        }
        Self::join(&Self::join(&left, &Self::leaf(span)), &right)
    }

    fn leaf(span: Span) -> Self {
        Self::of(Arc::new(span), Self(None), Self(None))
    }

    fn without_first(&self) -> Self {
        match &self.0 {
            None => Self(None),
            Some(node) if node.left.is_empty() => node.right.clone(),
            Some(node) => Self::of(Arc::clone(&node.span), node.left.without_first(), node.right.clone()),
        }
    }

    /// The last span that begins at or before `key`, and the next span.
    fn around(&self, key: &[u8]) -> (Option<&Span>, Option<&Span>) {
        let head = key_head(key);
        let (mut before, mut next, mut tree): (Option<&Arc<Span>>, Option<&Arc<Span>>, _) =
            (None, None, self);
        while let Some(node) = &tree.0 {
            steps::count(Step::ComparedTombstone, 1);
            if node.head < head || node.head == head && node.span.lower.as_slice() <= key {
                (before, tree) = (Some(&node.span), &node.right);
            } else {
                (next, tree) = (Some(&node.span), &node.left);
            }
        }
        (before.map(Arc::as_ref), next.map(Arc::as_ref))
    }

    /// The span of `key`.
    pub(crate) fn span_of(&self, key: &[u8]) -> Option<&Span> {
        self.around(key).0.filter(|span| is_below_upper(key, &span.upper))
    }

    /// The cover of `key`, which may be empty, and whether the memtable may have newer puts there.
    pub(crate) fn cover_at(&self, key: &[u8]) -> (Cover<'_>, bool) {
        match self.around(key) {
            (Some(span), _) if is_below_upper(key, &span.upper) => {
                let cover = Cover { sequence: span.sequence, lower: &span.lower, upper: &span.upper };
                (cover, span.has_newer())
            }
            (before, next) => {
                let lower = before.map_or(&[][..], |span| &span.upper);
                (Cover { sequence: 0, lower, upper: next.map_or(&[], |span| &span.lower) }, false)
            }
        }
    }

    /// Whether a span has keys between these bounds (included, excluded; empty: no end).
    pub(crate) fn overlap(&self, lower: &[u8], upper: &[u8]) -> bool {
        let (before, next) = self.around(lower);
        before.is_some_and(|span| is_below_upper(lower, &span.upper))
            || next.is_some_and(|span| is_below_upper(&span.lower, upper))
    }

    /// The spans in key order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Span> {
        let mut path = Vec::new();
        let mut descend = self;
        std::iter::from_fn(move || {
            while let Some(node) = &descend.0 {
                path.push(node);
                descend = &node.left;
            }
            let node = path.pop()?;
            descend = &node.right;
            Some(&*node.span)
        })
    }
}

/// Whether an excluded upper bound is behind another.
fn is_past(bound: &[u8], upper: &[u8]) -> bool {
    compare_uppers(bound, upper).is_gt()
}
