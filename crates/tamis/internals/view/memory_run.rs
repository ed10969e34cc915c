//! A run in memory that counts the entries that are read, for tests and fuzz targets.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use super::run::{OrdinalCursor, OrdinalRun};
use crate::{
    cursor::Cursor,
    error::Result,
    key::{BoundKind, Kind, Sequence, compare_entries},
    slice::Slice,
};

pub(crate) type Entry = (Vec<u8>, Sequence, Kind, Vec<u8>);

/// A run in memory that counts the entries that are read.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryRun {
    pub(crate) entries: Arc<Vec<Entry>>,
    pub(crate) read_count: Arc<AtomicU64>,
}

impl MemoryRun {
    pub(crate) fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|left, right| compare_entries((&left.0, left.1), (&right.0, right.1)));
        Self { entries: Arc::new(entries), read_count: Arc::default() }
    }
}

impl OrdinalRun for MemoryRun {
    type Cursor = MemoryCursor;

    fn entry_count(&self) -> u64 {
        self.entries.len() as u64
    }

    fn largest_sequence(&self) -> Sequence {
        self.entries.iter().map(|entry| entry.1).max().unwrap_or_default()
    }

    fn cursor(&self) -> MemoryCursor {
        MemoryCursor { run: self.clone(), at: usize::MAX }
    }
}

#[derive(Debug)]
pub(crate) struct MemoryCursor {
    run: MemoryRun,
    at: usize,
}

impl MemoryCursor {
    fn move_to(&mut self, at: usize) -> Result<()> {
        self.at = at;
        self.run.read_count.fetch_add(u64::from(self.is_valid()), Ordering::Relaxed);
        Ok(())
    }

    fn entry(&self) -> &Entry {
        &self.run.entries[self.at]
    }
}

impl OrdinalCursor for MemoryCursor {
    fn seek_ordinal(&mut self, ordinal: u64) -> Result<()> {
        self.move_to(ordinal as usize)
    }
}

impl Cursor for MemoryCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.move_to(0)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.move_to(self.run.entries.len().wrapping_sub(1))
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        let at = first_at(&self.run.entries, key, sequence);
        self.move_to(at)
    }

    fn seek_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<()> {
        let count = count_before(&self.run.entries, key, kind);
        self.move_to(count.wrapping_sub(1))
    }

    fn next(&mut self) -> Result<()> {
        self.move_to(self.at + 1)
    }

    fn prev(&mut self) -> Result<()> {
        self.move_to(self.at.wrapping_sub(1))
    }

    fn is_valid(&self) -> bool {
        self.at < self.run.entries.len()
    }

    fn key(&self) -> &[u8] {
        &self.entry().0
    }

    fn sequence(&self) -> Sequence {
        self.entry().1
    }

    fn kind(&self) -> Kind {
        self.entry().2
    }

    fn value(&self) -> &[u8] {
        &self.entry().3
    }

    fn value_slice(&self) -> Slice {
        Slice::from(self.value())
    }
}

/// The first entry at or after a key and sequence number.
pub(crate) fn first_at(entries: &[Entry], key: &[u8], sequence: Sequence) -> usize {
    entries.partition_point(|entry| compare_entries((&entry.0, entry.1), (key, sequence)).is_lt())
}

/// Entries below a key, or at it.
pub(crate) fn count_before(entries: &[Entry], key: &[u8], kind: BoundKind) -> usize {
    entries.partition_point(|entry| kind.is_within(&entry.0, key))
}
