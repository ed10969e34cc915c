//! The range tombstones of a memtable, and the spans that they cover for readers.
//!
//! Tombstones are added in the order of their sequence numbers, under the log's lock. There is a list of
//! all tombstones for the flush, and a map of disjoint spans with the newest tombstone of each: a later tombstone replaces
//! the spans that it covers. So readers of the newest entries read one span; readers of older snapshots scan the list.
//!
//! A span also has the keys between which entries were added after its tombstone. A scan jumps over the rest of the span in
//! this memtable: all entries there are older, so they are deleted or newer than the scan's snapshot.
//!
//! Invariants: (1) spans are disjoint and not empty; (2) an entry above the sequence number of its span is within the
//! span's `newer` keys.
//!
//! Cost: without tombstones one load per read and insert. With tombstones a lookup or insert takes a read lock and O(log
//! spans); an insert whose key is within a span also takes a write lock; a scan takes O(spans) if they changed since the
//! last one.

use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use parking_lot::RwLock;

use super::sync::{AtomicU64, Ordering};
use crate::{
    key::Sequence,
    range_tombstone::{Cover, RangeTombstone, compare_uppers, is_below_upper},
    steps::{self, Step},
};

/// Bytes of a tombstone in addition to its bounds, which are in the list and in the map.
const OVERHEAD_BYTES: usize = 160;

/// Tombstones of one memtable that scans record.
const RECORDED_COUNT_MAX: usize = 1_000;

fn bytes_of(tombstone: &RangeTombstone) -> u64 {
    (2 * (tombstone.lower.len() + tombstone.upper.len()) + OVERHEAD_BYTES) as u64
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct RangeTombstones {
    count: AtomicU64,
    bytes: AtomicU64,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order of their sequence numbers.
    all: Vec<RangeTombstone>,
    /// By lower bound.
    newest: BTreeMap<Vec<u8>, Newest>,
    /// The last of `all` that a scan recorded.
    recorded: Option<RangeTombstone>,
    recorded_count: usize,
    /// The spans of `newest` as a list, while they are unchanged.
    shared: Option<Arc<Spans>>,
}

#[derive(Debug, Clone)]
struct Newest {
    upper: Vec<u8>,
    sequence: Sequence,
    newer: Newer,
}

/// The part of a span in which entries may be newer than its tombstone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Newer {
    Nowhere,
    /// At these keys and between them.
    Between(Vec<u8>, Vec<u8>),
    Anywhere,
}

/// A span that a tombstone covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) lower: Vec<u8>,
    pub(crate) upper: Vec<u8>,
    pub(crate) sequence: Sequence,
    pub(crate) newer: Newer,
}

/// Disjoint spans in key order.
#[derive(Debug, Default)]
pub(crate) struct Spans(Vec<Span>);

impl Spans {
    fn of(newest: &BTreeMap<Vec<u8>, Newest>) -> Self {
        let spans = newest.iter().map(|(lower, newest)| Span {
            lower: lower.clone(),
            upper: newest.upper.clone(),
            sequence: newest.sequence,
            newer: newest.newer.clone(),
        });
        Self(spans.collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Span> {
        self.0.iter()
    }

    /// Whether a span has keys between these bounds (included, excluded; empty: no end).
    pub(crate) fn overlap(&self, lower: &[u8], upper: &[u8]) -> bool {
        let ended = self.0.partition_point(|span| {
            steps::count(Step::ComparedTombstone, 1);
            !is_below_upper(lower, &span.upper)
        });
        self.0.get(ended).is_some_and(|span| is_below_upper(&span.lower, upper))
    }

    /// The span of `key`.
    pub(crate) fn span_of(&self, key: &[u8]) -> Option<&Span> {
        let begun = self.0.partition_point(|span| span.lower.as_slice() <= key);
        let span = self.0.get(begun.checked_sub(1)?)?;
        is_below_upper(key, &span.upper).then_some(span)
    }

    /// The key (excluded; empty: no end) up to which no entry from `key` on is newer than the tombstone over it; `None` if an entry
    /// at `key` may be newer.
    pub(crate) fn unchanged_until(&self, key: &[u8]) -> Option<&[u8]> {
        let span = self.span_of(key)?;
        match &span.newer {
            Newer::Between(first, _) if key < first.as_slice() => Some(first),
            Newer::Between(_, last) if key <= last.as_slice() => None,
            Newer::Nowhere | Newer::Between(..) => Some(&span.upper),
            Newer::Anywhere => None,
        }
    }

    /// The cover of `key`, which may be empty.
    pub(crate) fn cover_at(&self, key: &[u8]) -> Cover<'_> {
        let begun = self.0.partition_point(|span| span.lower.as_slice() <= key);
        let before = begun.checked_sub(1).and_then(|index| self.0.get(index));
        match before {
            Some(span) if is_below_upper(key, &span.upper) => {
                Cover { sequence: span.sequence, lower: &span.lower, upper: &span.upper }
            }
            _ => Cover {
                sequence: 0,
                lower: before.map_or(&[], |span| &span.upper),
                upper: self.0.get(begun).map_or(&[], |span| &span.lower),
            },
        }
    }
}

impl State {
    /// Adds a tombstone newer than all others to the map.
    fn add_newest(&mut self, tombstone: &RangeTombstone) {
        let RangeTombstone { lower, upper, sequence } = tombstone;
        self.shared = None;
        self.split(lower);
        if !upper.is_empty() {
            self.split(upper);
        }
        let end = if upper.is_empty() { Bound::Unbounded } else { Bound::Excluded(upper.as_slice()) };
        let covered: Vec<Vec<u8>> = self
            .newest
            .range::<[u8], _>((Bound::Included(lower.as_slice()), end))
            .map(|(key, _)| key.clone())
            .collect();
        for key in covered {
            self.newest.remove(&key);
        }
        let newest = Newest { upper: upper.clone(), sequence: *sequence, newer: Newer::Nowhere };
        self.newest.insert(lower.clone(), newest);
    }

    /// Splits the span of `key`, unless it begins there.
    fn split(&mut self, key: &[u8]) {
        let Some((lower, span)) =
            self.newest.range_mut::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()
        else {
            return;
        };
        if lower.as_slice() == key || !is_below_upper(key, &span.upper) {
            return;
        }
        let mut second = span.clone();
        span.upper = key.to_vec();
        if let Newer::Between(first, last) = &span.newer {
            let (first, last) = (first.clone(), last.clone());
            let is_before = first.as_slice() < key;
            let is_behind = last.as_slice() >= key;
            span.newer = match (is_before, is_behind) {
                (false, _) => Newer::Nowhere,
                (true, true) => Newer::Between(first.clone(), key.to_vec()),
                (true, false) => Newer::Between(first.clone(), last.clone()),
            };
            second.newer = match (is_before, is_behind) {
                (_, false) => Newer::Nowhere,
                (true, true) => Newer::Between(key.to_vec(), last),
                (false, true) => Newer::Between(first, last),
            };
        }
        self.newest.insert(key.to_vec(), second);
    }

    fn newest_of(&self, key: &[u8]) -> Option<&Newest> {
        let below = (Bound::Unbounded, Bound::Included(key));
        let (_, span) = self.newest.range::<[u8], _>(below).next_back()?;
        is_below_upper(key, &span.upper).then_some(span)
    }

    /// The newest spans for readers at `snapshot`, if it is unknown which entries are newer.
    fn newest_at(&self, snapshot: Sequence) -> BTreeMap<Vec<u8>, Newest> {
        let mut earlier = Self::default();
        for tombstone in self.all.iter().filter(|tombstone| tombstone.sequence <= snapshot) {
            earlier.add_newest(tombstone);
        }
        earlier.newest.values_mut().for_each(|span| span.newer = Newer::Anywhere);
        earlier.newest
    }

    fn newest_sequence(&self) -> Sequence {
        self.all.last().map_or(0, |tombstone| tombstone.sequence)
    }
}

impl RangeTombstones {
    pub(super) fn new() -> Self {
        Self { count: AtomicU64::new(0), bytes: AtomicU64::new(0), state: RwLock::default() }
    }

    /// Whether there are no range tombstones.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Approximate memory of the tombstones.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Adds a tombstone; `entries_newest` is the greatest sequence number of the memtable's entries.
    pub(super) fn add(&self, tombstone: RangeTombstone, entries_newest: Sequence) {
        let bytes = bytes_of(&tombstone);
        let mut state = self.state.write();
        if tombstone.sequence >= state.newest_sequence().max(entries_newest) {
            state.add_newest(&tombstone);
            state.all.push(tombstone);
        } else {
            // Entries of an older segment keep their own sequence numbers.
            let place = state.all.partition_point(|other| other.sequence <= tombstone.sequence);
            state.all.insert(place, tombstone);
            state.newest = state.newest_at(Sequence::MAX);
            state.shared = None;
        }
        let count = state.all.len() as u64;
        drop(state);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.count.store(count, Ordering::Release);
    }

    /// Adds a tombstone that deletes nothing, which a scan found. Entries above its sequence number are within `newer`. Returns
    /// whether it was added: not if there is a newer tombstone, or if scans have recorded many.
    ///
    /// A tombstone that the last recorded one is a part of replaces it.
    pub(super) fn record(&self, tombstone: RangeTombstone, newer: Newer) -> bool {
        let mut state = self.state.write();
        if tombstone.sequence < state.newest_sequence() {
            return false;
        }
        let is_part = |recorded: &&RangeTombstone| {
            tombstone.lower <= recorded.lower && compare_uppers(&recorded.upper, &tombstone.upper).is_le()
        };
        let replaced = state.recorded.as_ref().filter(is_part);
        let place = replaced.and_then(|replaced| state.all.iter().rposition(|other| other == replaced));
        if place.is_none() && state.recorded_count >= RECORDED_COUNT_MAX {
            return false;
        }
        let bytes = bytes_of(&tombstone);
        state.add_newest(&tombstone);
        if let Some(span) = state.newest.get_mut(&tombstone.lower) {
            span.newer = newer;
        }
        state.recorded = Some(tombstone.clone());
        match place {
            Some(place) => {
                let replaced = state.all.remove(place);
                self.bytes.fetch_sub(bytes_of(&replaced), Ordering::Relaxed);
            }
            None => state.recorded_count += 1,
        }
        state.all.push(tombstone);
        let count = state.all.len() as u64;
        drop(state);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.count.store(count, Ordering::Release);
        true
    }

    /// Records that an entry was added after all tombstones.
    pub(super) fn note_newer_entry(&self, key: &[u8]) {
        let is_noted = |newer: &Newer| match newer {
            Newer::Nowhere => false,
            Newer::Between(first, last) => first.as_slice() <= key && key <= last.as_slice(),
            Newer::Anywhere => true,
        };
        if self.state.read().newest_of(key).is_none_or(|span| is_noted(&span.newer)) {
            return;
        }
        let mut state = self.state.write();
        let below = (Bound::Unbounded, Bound::Included(key));
        if let Some((_, span)) = state.newest.range_mut::<[u8], _>(below).next_back() {
            span.newer = match std::mem::replace(&mut span.newer, Newer::Anywhere) {
                Newer::Nowhere => Newer::Between(key.to_vec(), key.to_vec()),
                Newer::Between(first, last) => Newer::Between(
                    if first.as_slice() <= key { first } else { key.to_vec() },
                    if last.as_slice() >= key { last } else { key.to_vec() },
                ),
                Newer::Anywhere => Newer::Anywhere,
            };
        }
        state.shared = None;
    }

    /// The newest tombstone at or below `snapshot` that covers `key`; 0 for none.
    pub(crate) fn sequence_at(&self, key: &[u8], snapshot: Sequence) -> Sequence {
        if self.is_empty() {
            return 0;
        }
        let state = self.state.read();
        if state.newest_sequence() <= snapshot {
            return state.newest_of(key).map_or(0, |span| span.sequence);
        }
        let covers = |tombstone: &&RangeTombstone| {
            tombstone.sequence <= snapshot
                && tombstone.lower.as_slice() <= key
                && is_below_upper(key, &tombstone.upper)
        };
        state.all.iter().rev().find(covers).map_or(0, |tombstone| tombstone.sequence)
    }

    /// The spans that readers at `snapshot` see.
    pub(crate) fn spans_at(&self, snapshot: Sequence) -> Arc<Spans> {
        let state = self.state.read();
        if state.newest_sequence() > snapshot {
            return Arc::new(Spans::of(&state.newest_at(snapshot)));
        }
        if let Some(shared) = &state.shared {
            return Arc::clone(shared);
        }
        drop(state);
        let mut state = self.state.write();
        if state.newest_sequence() > snapshot {
            return Arc::new(Spans::of(&state.newest_at(snapshot)));
        }
        let spans = state.shared.take().unwrap_or_else(|| Arc::new(Spans::of(&state.newest)));
        state.shared = Some(Arc::clone(&spans));
        spans
    }

    /// All tombstones, in the order of their sequence numbers.
    pub(crate) fn all(&self) -> Vec<RangeTombstone> {
        self.state.read().all.clone()
    }
}
