//! The newest data, sorted, in memory.
//!
//! A memtable is a skip list (`skip_list.rs`) over nodes (`node.rs`) in an arena (`arena.rs`). Any number of threads
//! may insert and read at once; nothing takes a lock but the growth of the arena.
//!
//! Invariants: (1) entries are never changed or removed: the bytes of an entry live as long as the memtable; (2) an
//! entry whose `insert` returned before a search began is found by it; (3) no entry is inserted twice: sequence numbers
//! are used once. (An entry inserted twice would be in the list twice, and do no harm.)
//!
//! Cost: a search steps onto about three nodes behind one of a sample (`sample.rs`), and decides by the first eight key
//! bytes; where those are equal over long stretches it steps onto one node for every two levels, ten for a million entries.
//! An insert next to the one before it steps onto a handful. An entry takes its key and value and 54 bytes on average.
//!
//! Why our own: the map has to be insert only, with versions, with bytes held in place and counted exactly, and
//! iterated in both directions while writers go on; the crates for it keep an allocation and a reference count per
//! entry.

mod arena;
mod chunk;
mod cursor;
mod node;
mod range_tombstones;
mod sample;
mod skip_list;
mod sync;

use std::sync::Arc;

pub(crate) use self::{
    chunk::ChunkPool,
    cursor::MemtableCursor,
    range_tombstones::{Newer, RangeTombstones, Spans},
};
use self::{
    node::HEIGHT_MAX,
    sample::Samples,
    skip_list::{Place, SkipList},
    sync::{AtomicU64, Ordering},
};
use crate::{
    key::{Kind, Sequence},
    range_tombstone::RangeTombstone,
};

/// The odd constant of SplitMix64; multiples of it, mixed, are the random numbers of the levels.
const SPLIT_MIX_INCREMENT: u64 = 0x9E37_79B9_7F4A_7C15;

/// See the head of this file.
pub(crate) struct Memtable {
    list: SkipList,
    range_tombstones: RangeTombstones,
    counters: Counters,
}

/// Written by each insert, so apart from what readers need.
#[repr(align(128))]
struct Counters {
    entry_count: AtomicU64,
    sequence_least: AtomicU64,
    sequence_greatest: AtomicU64,
}

impl Memtable {
    /// An empty one, its memory taken from `pool` and given back to it.
    pub(crate) fn new(pool: &Arc<ChunkPool>) -> Arc<Self> {
        let counters = Counters {
            entry_count: AtomicU64::new(0),
            sequence_least: AtomicU64::new(u64::MAX),
            sequence_greatest: AtomicU64::new(0),
        };
        let range_tombstones = RangeTombstones::new();
        Arc::new(Self { list: SkipList::new(pool), range_tombstones, counters })
    }

    /// Adds an entry, whose key and value have been checked ([`crate::key::check_key`], [`crate::key::check_value`]); of a range
    /// tombstone these are its bounds.
    pub(crate) fn insert(&self, key: &[u8], sequence: Sequence, kind: Kind, value: &[u8]) {
        if kind == Kind::RangeTombstone {
            self.insert_range_tombstone(key, value, sequence);
            return;
        }
        let counters = &self.counters;
        let ordinal = counters.entry_count.fetch_add(1, Ordering::Relaxed);
        self.note_sequence(sequence);
        self.list.insert(height_of(ordinal), key, sequence, kind, value);
        if Samples::is_due(ordinal + 1) {
            self.list.take_sample(ordinal + 1);
        }
        if !self.range_tombstones.is_empty() {
            self.range_tombstones.note_newer_entry(key);
        }
    }

    fn insert_range_tombstone(&self, lower: &[u8], upper: &[u8], sequence: Sequence) {
        let newest = self.sequence_range().map_or(0, |(_, newest)| newest);
        self.note_sequence(sequence);
        let tombstone = RangeTombstone { lower: lower.to_vec(), upper: upper.to_vec(), sequence };
        self.range_tombstones.add(tombstone, newest);
    }

    #[inline]
    fn note_sequence(&self, sequence: Sequence) {
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
        let node = self.list.find(&Place::before_entry(key, sequence))?;
        (node.key() == key).then(|| (node.kind(), node.sequence(), node.value()))
    }

    /// About how many entries have keys below `key`: to within some hundreds of them.
    ///
    /// Cost: looks at one of 64 entries.
    pub(crate) fn count_before(&self, key: &[u8]) -> u64 {
        self.list.count_before(&Place::before_key(key))
    }

    /// A key with about as many entries before as behind it; `None` where there are few.
    pub(crate) fn middle_key(&self) -> Option<Vec<u8>> {
        self.list.nth_of_counted(self.entry_count() / 2).map(|node| node.key().to_vec())
    }

    /// A cursor over all versions. It sees what was inserted before its last seek, and may see later entries.
    pub(crate) fn cursor(self: &Arc<Self>) -> MemtableCursor {
        MemtableCursor::new(Arc::clone(self))
    }

    /// Memory in bytes that the entries take, those being inserted included.
    pub(crate) fn bytes(&self) -> usize {
        self.list.bytes() + self.range_tombstones.bytes() as usize
    }

    /// Entries, those being inserted included.
    pub(crate) fn entry_count(&self) -> u64 {
        self.counters.entry_count.load(Ordering::Relaxed)
    }

    /// The least and the greatest sequence number, of entries being inserted too; `None` when empty.
    pub(crate) fn sequence_range(&self) -> Option<(Sequence, Sequence)> {
        let least = self.counters.sequence_least.load(Ordering::Relaxed);
        let greatest = self.counters.sequence_greatest.load(Ordering::Relaxed);
        (least <= greatest).then_some((least, greatest))
    }

    /// Whether no insert has begun.
    pub(crate) fn is_empty(&self) -> bool {
        self.entry_count() == 0 && self.range_tombstones.is_empty()
    }
}

/// The number of levels of the n-th node: one more with a chance of a half, again and again. A function of the
/// insert's ordinal alone, so that the same inserts make the same list.
fn height_of(ordinal: u64) -> usize {
    let mut mixed = ordinal.wrapping_add(1).wrapping_mul(SPLIT_MIX_INCREMENT);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^= mixed >> 31;
    HEIGHT_MAX.min(1 + mixed.trailing_zeros() as usize)
}

#[cfg(all(test, loom))]
mod loom;
#[cfg(all(test, not(loom)))]
mod tests;
