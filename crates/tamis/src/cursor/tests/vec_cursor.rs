//! A cursor over a sorted vector that counts its calls, and a run of such vectors.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::{
    cursor::{Cursor, run::RunSource},
    error::{Error, Result},
    key::{BoundKind, Kind, Sequence, compare_entries},
    slice::Slice,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: Vec<u8>,
    pub(super) sequence: Sequence,
    pub(super) kind: Kind,
    pub(super) value: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) steps: AtomicU64,
    pub(super) seeks: AtomicU64,
    pub(super) keys: AtomicU64,
    pub(super) opens: AtomicU64,
    /// Moves until one fails; 0 for never.
    pub(super) moves_left: AtomicU64,
}

pub(super) struct VecCursor {
    entries: Arc<Vec<Entry>>,
    position: Option<usize>,
    counts: Arc<Counts>,
}

impl VecCursor {
    pub(super) fn new(mut entries: Vec<Entry>, counts: &Arc<Counts>) -> Self {
        entries
            .sort_by(|left, right| compare_entries((&left.key, left.sequence), (&right.key, right.sequence)));
        Self { entries: Arc::new(entries), position: None, counts: Arc::clone(counts) }
    }

    fn entry(&self) -> &Entry {
        self.entries.get(self.position.expect("valid")).expect("position")
    }

    fn go(&mut self, count: &AtomicU64, position: Option<usize>) -> Result<()> {
        count.fetch_add(1, Relaxed);
        self.position = None;
        if self.counts.moves_left.load(Relaxed) > 0 && self.counts.moves_left.fetch_sub(1, Relaxed) == 1 {
            return Err(Error::Closed);
        }
        self.position = position.filter(|&position| position < self.entries.len());
        Ok(())
    }

    fn seek_to(&mut self, position: Option<usize>) -> Result<()> {
        let counts = Arc::clone(&self.counts);
        self.go(&counts.seeks, position)
    }

    fn step_to(&mut self, position: Option<usize>) -> Result<()> {
        let counts = Arc::clone(&self.counts);
        self.go(&counts.steps, position)
    }
}

impl Cursor for VecCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.seek_to(Some(0))
    }

    fn seek_last(&mut self) -> Result<()> {
        self.seek_to(self.entries.len().checked_sub(1))
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        let position = self
            .entries
            .partition_point(|entry| compare_entries((&entry.key, entry.sequence), (key, sequence)).is_lt());
        self.seek_to(Some(position))
    }

    fn seek_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<()> {
        let count = self.entries.partition_point(|entry| kind.is_within(&entry.key, key));
        self.seek_to(count.checked_sub(1))
    }

    fn next(&mut self) -> Result<()> {
        self.step_to(Some(self.position.expect("next while valid") + 1))
    }

    fn prev(&mut self) -> Result<()> {
        self.step_to(self.position.expect("prev while valid").checked_sub(1))
    }

    fn is_valid(&self) -> bool {
        self.position.is_some()
    }

    fn key(&self) -> &[u8] {
        self.counts.keys.fetch_add(1, Relaxed);
        &self.entry().key
    }

    fn sequence(&self) -> Sequence {
        self.entry().sequence
    }

    fn kind(&self) -> Kind {
        self.entry().kind
    }

    fn value(&self) -> &[u8] {
        &self.entry().value
    }

    fn value_slice(&self) -> Slice {
        Slice::from(self.value())
    }
}

pub(super) struct VecRun {
    pub(super) tables: Vec<Vec<Entry>>,
    pub(super) counts: Arc<Counts>,
}

impl RunSource for VecRun {
    type Cursor = VecCursor;

    fn table_count(&self) -> usize {
        self.tables.len()
    }

    fn smallest_key(&self, table_index: usize) -> &[u8] {
        &self.tables.get(table_index).and_then(|table| table.first()).expect("tables have entries").key
    }

    fn largest_key(&self, table_index: usize) -> &[u8] {
        &self.tables.get(table_index).and_then(|table| table.last()).expect("tables have entries").key
    }

    fn open_cursor(&self, table_index: usize) -> Result<Box<VecCursor>> {
        self.counts.opens.fetch_add(1, Relaxed);
        let table = self.tables.get(table_index).expect("the position is below the table count");
        Ok(Box::new(VecCursor::new(table.clone(), &self.counts)))
    }
}
