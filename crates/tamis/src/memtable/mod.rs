//! The memtable: the newest entries, sorted, in memory.
//!
//! A memtable is a skip list (`skip_list.rs`) of nodes (`node.rs`) in an arena (`arena.rs`). Any number of threads may
//! insert and read at once; only the growth of the arena takes a lock.
//!
//! Invariants: (1) entries are never changed or removed: the bytes of an entry live as long as the memtable; (2) a search
//! finds each entry whose `insert` returned before the search began; (3) no entry is inserted twice: sequence numbers are
//! unique. (An entry that is inserted twice would be in the list twice, which is harmless.) (4) all older memtables and tables have
//! only older entries of its keys; all of their entries, of any key, are below the smallest number of [`Memtable::sequence_range`].
//!
//! Cost: a search visits about three nodes after one of a sample (`sample.rs`), and compares the first eight key bytes. If
//! long sequences of keys share these bytes, it visits one node for every two levels, ten for a million entries. An insert
//! next to the previous one visits a few. An entry takes its key and value and 54 bytes on average.
//!
//! Why our own: the map must be insert-only, with versions, with bytes in place and counted exactly, and iterate in both
//! directions during writes. The crates for concurrent maps have an allocation and a reference count per entry.

mod arena;
mod chunk;
mod cursor;
mod lookup;
mod node;
mod range_tombstones;
mod sample;
mod skip_list;
mod span_tree;
mod sync;

use std::{ops::Bound, sync::Arc};

pub(crate) use self::{
    chunk::ChunkPool,
    cursor::MemtableCursor,
    range_tombstones::RangeTombstones,
    span_tree::{Span, SpanTree},
};
use self::{
    node::HEIGHT_MAX,
    sample::Samples,
    skip_list::{Place, SkipList},
    sync::{AtomicU64, Ordering},
};
use crate::{
    cursor::Cursor,
    error::Result,
    key::{Kind, SEQUENCE_MAX, Sequence},
    range_tombstone::{RangeTombstone, is_below_upper},
};

/// Entries up to which [`Memtable::sample_within`] returns all. A sample has at least about half as many: the error of a count is about
/// 6 % (one standard deviation).
const SAMPLE_COUNT_MAX: usize = 512;

/// Entries between two keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct EntrySizes {
    pub(crate) count: u64,
    /// Of keys and values.
    pub(crate) bytes: u64,
}

/// See the head of this file.
pub(crate) struct Memtable {
    list: SkipList,
    range_tombstones: RangeTombstones,
    counters: Counters,
}

/// Written by each insert, so not on the cache lines that readers need.
#[repr(align(128))]
struct Counters {
    entry_count: AtomicU64,
    sequence_least: AtomicU64,
    sequence_greatest: AtomicU64,
}

impl Memtable {
    /// An empty memtable that takes its memory from `pool` and returns it there.
    pub(crate) fn new(pool: &Arc<ChunkPool>) -> Arc<Self> {
        let counters = Counters {
            entry_count: AtomicU64::new(0),
            sequence_least: AtomicU64::new(u64::MAX),
            sequence_greatest: AtomicU64::new(0),
        };
        let range_tombstones = RangeTombstones::new();
        Arc::new(Self { list: SkipList::new(pool), range_tombstones, counters })
    }

    /// Adds an entry. The caller has checked key and value ([`crate::key::check_key`], [`crate::key::check_value`]). Those of a
    /// range tombstone are its bounds.
    pub(crate) fn insert(&self, key: &[u8], sequence: Sequence, kind: Kind, value: &[u8]) {
        if kind == Kind::RangeTombstone {
            self.insert_range_tombstone(key, value, sequence);
            return;
        }
        self.note_sequence(sequence);
        self.insert_retained(key, sequence, kind, value);
    }

    /// Adds a put or a tombstone that an older memtable had: its sequence number does not count for [`Memtable::sequence_range`].
    #[inline(always)]
    pub(crate) fn insert_retained(&self, key: &[u8], sequence: Sequence, kind: Kind, value: &[u8]) {
        let ordinal = self.counters.entry_count.fetch_add(1, Ordering::Relaxed);
        self.list.insert(height_of(ordinal), key, sequence, kind, value);
        if Samples::is_due(ordinal + 1) {
            self.list.take_sample(ordinal + 1);
        }
        if kind.sets_value() && !self.range_tombstones.is_empty() {
            self.range_tombstones.note_newer_put(key);
        }
    }

    fn insert_range_tombstone(&self, lower: &[u8], upper: &[u8], sequence: Sequence) {
        let newest = self.sequence_range().map_or(0, |(_, newest)| newest);
        self.note_sequence(sequence);
        let tombstone = RangeTombstone { lower: lower.to_vec(), upper: upper.to_vec(), sequence };
        self.range_tombstones.add(tombstone, newest);
    }

    /// Whether a put of a range (included, excluded; empty: no end) is newer than `sequence`. `known_end` returns for some keys up to
    /// which key (excluded; empty: no end) none is.
    ///
    /// Cost: visits the entries of the range outside of the known parts, if an entry of the memtable is newer.
    pub(crate) fn has_newer_put(
        self: &Arc<Self>,
        (lower, upper): (&[u8], &[u8]),
        sequence: Sequence,
        known_end: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<bool> {
        if self.sequence_range().is_none_or(|(_, newest)| newest <= sequence) {
            return Ok(false);
        }
        let mut cursor = self.cursor();
        cursor.seek(lower, SEQUENCE_MAX)?;
        while cursor.is_valid() && is_below_upper(cursor.key(), upper) {
            match known_end(cursor.key()) {
                Some(end) if end.is_empty() => return Ok(false),
                Some(end) => cursor.seek(&end, SEQUENCE_MAX)?,
                None if cursor.kind().sets_value() && cursor.sequence() > sequence => return Ok(true),
                None => cursor.next()?,
            }
        }
        Ok(false)
    }

    /// Counts a sequence number for [`Memtable::sequence_range`].
    #[inline]
    pub(crate) fn note_sequence(&self, sequence: Sequence) {
        let counters = &self.counters;
        if sequence < counters.sequence_least.load(Ordering::Relaxed) {
            counters.sequence_least.fetch_min(sequence, Ordering::Relaxed);
        }
        if sequence > counters.sequence_greatest.load(Ordering::Relaxed) {
            counters.sequence_greatest.fetch_max(sequence, Ordering::Relaxed);
        }
    }

    /// The range tombstones.
    #[inline]
    pub(crate) fn range_tombstones(&self) -> &RangeTombstones {
        &self.range_tombstones
    }

    /// The newest version of `key` with at most this sequence number, tombstones included.
    pub(crate) fn get(&self, key: &[u8], sequence: Sequence) -> Option<(Kind, Sequence, &[u8])> {
        let place = Place::before_entry(key, sequence);
        let node = self.list.find(&place)?;
        place.has_key_of(node).then(|| (node.kind(), node.sequence(), node.value()))
    }

    /// The approximate number of entries with keys below `key`: accurate to some hundreds.
    ///
    /// Cost: visits one of 64 entries.
    pub(crate) fn count_before(&self, key: &[u8]) -> u64 {
        self.list.count_before(&Place::before_key(key))
    }

    /// The entries between the bounds, or a random sample of them if they are more than [`SAMPLE_COUNT_MAX`]: key, sequence number
    /// and kind, in order, and the number of entries that each of them represents.
    ///
    /// Cost: a search, and at most a few times [`SAMPLE_COUNT_MAX`] nodes.
    pub(crate) fn sample_within<'a>(
        &'a self,
        (lower, upper): (Bound<&'a [u8]>, Bound<&'a [u8]>),
    ) -> (impl Iterator<Item = (&'a [u8], Sequence, Kind)>, f64) {
        let from = match lower {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(Place::before_key(key)),
            Bound::Excluded(key) => Some(Place::after_key(key)),
        };
        let to = match upper {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(Place::after_key(key)),
            Bound::Excluded(key) => Some(Place::before_key(key)),
        };
        let (nodes, level) = self.list.sample_between(from, to, SAMPLE_COUNT_MAX);
        let weight = (1_u64 << level) as f64;
        (nodes.into_iter().map(|node| (node.key(), node.sequence(), node.kind())), weight)
    }

    /// The approximate sizes of the entries below each of these keys, which ascend, from the key before it on; the last one is of the
    /// entries after all of them. Small memtables are counted exactly.
    ///
    /// Cost: visits one of eight entries.
    pub(crate) fn sizes_between<'k>(&self, uppers: impl Iterator<Item = &'k [u8]>) -> Vec<EntrySizes> {
        // Larger memtables are counted by a sample: nodes with more than three levels, one of 2^3.
        let level = if self.entry_count() <= 4096 { 0 } else { 3 };
        let mut uppers = uppers.peekable();
        let (mut sizes, mut current) = (Vec::new(), EntrySizes::default());
        for node in self.list.nodes(level) {
            while uppers.next_if(|upper| *upper <= node.key()).is_some() {
                sizes.push(std::mem::take(&mut current));
            }
            current.count += 1 << level;
            current.bytes += ((node.key().len() + node.value().len()) as u64) << level;
        }
        sizes.push(current);
        sizes.extend(uppers.map(|_| EntrySizes::default()));
        sizes
    }

    /// A key with about as many entries before as after it; `None` if there are few entries.
    pub(crate) fn middle_key(&self) -> Option<Vec<u8>> {
        self.list.nth_of_counted(self.entry_count() / 2).map(|node| node.key().to_vec())
    }

    /// A cursor over all versions. It sees entries that were inserted before its last seek, and may see later ones.
    pub(crate) fn cursor(self: &Arc<Self>) -> MemtableCursor {
        MemtableCursor::new(Arc::clone(self))
    }

    /// Memory of the entries in bytes, including those that are being inserted.
    pub(crate) fn bytes(&self) -> usize {
        self.list.bytes() + self.range_tombstones.bytes() as usize
    }

    /// Number of entries, including those that are being inserted.
    pub(crate) fn entry_count(&self) -> u64 {
        self.counters.entry_count.load(Ordering::Relaxed)
    }

    /// The smallest and the largest sequence number, including entries that are being inserted, without those of retained entries;
    /// `None` when empty.
    pub(crate) fn sequence_range(&self) -> Option<(Sequence, Sequence)> {
        let least = self.counters.sequence_least.load(Ordering::Relaxed);
        let greatest = self.counters.sequence_greatest.load(Ordering::Relaxed);
        (least <= greatest).then_some((least, greatest))
    }

    /// Whether no insert has begun.
    pub(crate) fn is_empty(&self) -> bool {
        self.sequence_range().is_none()
    }
}

/// The number of levels of the n-th node: each further level has a chance of a half. A function of the insert's ordinal
/// alone, so that the same inserts make the same list.
fn height_of(ordinal: u64) -> usize {
    // The odd constant of SplitMix64; mixed multiples of it are the random numbers of the levels.
    let mut mixed = ordinal.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    HEIGHT_MAX.min(1 + mixed.trailing_zeros() as usize)
}

#[cfg(all(test, loom))]
#[path = "../../internals/loom/memtable.rs"]
mod loom;
#[cfg(all(test, not(loom)))]
mod tests;
