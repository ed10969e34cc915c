//! The range tombstones of a memtable, and the spans that they cover for readers.
//!
//! Each tombstone makes a version of the spans ([`super::span_tree`]), and all versions are kept: a reader searches the one of its
//! snapshot, so that readers of old and of new snapshots find a key by the same two binary searches.
//!
//! Tombstones and entries are added by one thread at a time, under the log's lock, in the order of their sequence numbers. Readers
//! take no lock: the list of versions is immutable and published by one atomic pointer. It consists of chunks that are merged
//! when the later ones have as many versions, so that a tombstone copies O(log n) references to versions on average.
//!
//! Cost: without tombstones one load per read and insert. With tombstones O(log n) per lookup and insert.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{
    span_tree::{RangeEntries, SpanTree},
    sync::{AtomicU64, Ordering},
};
use crate::{key::Sequence, range_tombstone::RangeTombstone};

fn bytes_of(tombstone: &RangeTombstone) -> u64 {
    // The bounds are in the list and in a span; the nodes of its version take about 1 KiB.
    (2 * (tombstone.lower.len() + tombstone.upper.len()) + 1_024) as u64
}

/// A tombstone, and the spans of all tombstones up to it.
#[derive(Debug, Clone)]
struct Version {
    tombstone: Arc<RangeTombstone>,
    spans: SpanTree,
}

/// In the order of their sequence numbers. Chunks are not empty, and each has more versions than the next.
#[derive(Debug, Clone, Default)]
struct Versions {
    chunks: Vec<Arc<[Version]>>,
}

impl Versions {
    fn newest(&self) -> Option<&Version> {
        self.chunks.last()?.last()
    }

    /// The last version that readers at `snapshot` see.
    fn at(&self, snapshot: Sequence) -> Option<&Version> {
        let is_visible = |version: &Version| version.tombstone.sequence <= snapshot;
        if let Some(newest) = self.newest().filter(|newest| is_visible(newest)) {
            return Some(newest);
        }
        let begun = self.chunks.partition_point(|chunk| chunk.first().is_some_and(is_visible));
        let chunk = self.chunks.get(begun.checked_sub(1)?)?;
        chunk.get(chunk.partition_point(is_visible).checked_sub(1)?)
    }

    fn all(&self) -> impl Iterator<Item = &Version> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// Adds a tombstone newer than all others.
    fn push(&mut self, tombstone: RangeTombstone, entries: RangeEntries) {
        let spans = self.newest().map_or_else(SpanTree::default, |newest| newest.spans.clone());
        let spans = spans.with_newest(&tombstone, entries);
        let mut merged = vec![Version { tombstone: Arc::new(tombstone), spans }];
        while let Some(last) = self.chunks.pop_if(|last| last.len() <= merged.len()) {
            merged.splice(..0, last.iter().cloned());
        }
        self.chunks.push(merged.into());
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct RangeTombstones {
    count: AtomicU64,
    bytes: AtomicU64,
    versions: ArcSwap<Versions>,
}

impl RangeTombstones {
    pub(super) fn new() -> Self {
        Self { count: AtomicU64::new(0), bytes: AtomicU64::new(0), versions: ArcSwap::default() }
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
        let mut versions = Versions::clone(&self.versions.load());
        let newest = versions.newest().map_or(0, |newest| newest.tombstone.sequence);
        if tombstone.sequence >= newest.max(entries_newest) {
            versions.push(tombstone, RangeEntries::Older);
        } else {
            // Entries of an older segment keep their own sequence numbers: which entries are newer is unknown.
            let mut all: Vec<_> = versions.all().map(|version| (*version.tombstone).clone()).collect();
            let place = all.partition_point(|other| other.sequence <= tombstone.sequence);
            all.insert(place, tombstone);
            versions = Versions::default();
            all.into_iter().for_each(|tombstone| versions.push(tombstone, RangeEntries::MaybeNewer));
        }
        self.versions.store(Arc::new(versions));
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// Records that a put was added after all tombstones.
    pub(super) fn note_newer_put(&self, key: &[u8]) {
        if let Some(span) = self.versions.load().newest().and_then(|newest| newest.spans.span_of(key)) {
            span.mark();
        }
    }

    /// The newest tombstone at or below `snapshot` that covers `key`; 0 for none.
    #[inline]
    pub(crate) fn sequence_at(&self, key: &[u8], snapshot: Sequence) -> Sequence {
        if self.is_empty() { 0 } else { self.sequence_in_spans(key, snapshot) }
    }

    fn sequence_in_spans(&self, key: &[u8], snapshot: Sequence) -> Sequence {
        let versions = self.versions.load();
        let span = versions.at(snapshot).and_then(|version| version.spans.span_of(key));
        span.map_or(0, |span| span.sequence)
    }

    /// The spans that readers at `snapshot` see.
    pub(crate) fn spans_at(&self, snapshot: Sequence) -> SpanTree {
        self.versions.load().at(snapshot).map_or_else(SpanTree::default, |version| version.spans.clone())
    }

    /// All tombstones, in the order of their sequence numbers.
    pub(crate) fn all(&self) -> Vec<RangeTombstone> {
        self.versions.load().all().map(|version| (*version.tombstone).clone()).collect()
    }
}

#[cfg(test)]
mod tests;
