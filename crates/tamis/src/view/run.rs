//! Runs as a sorted view reads them: entries by ordinal.
//!
//! Contract: the entries of a run are numbered from 0 in entry order and never change. `seek_ordinal` reads the block of the entry,
//! `next` and `prev` one when they leave a block. A cursor that is not moved reads nothing.

use std::sync::Arc;

use tamis_filter::Direction;

use crate::{
    cursor::{
        Cursor,
        run::{RunCursor, RunSource},
    },
    error::Result,
    key::Sequence,
    table::{
        cursor::{EntryPart, TableCursor},
        reader::TableReader,
    },
};

/// A cursor that also moves to entries by ordinal.
pub(crate) trait OrdinalCursor: Cursor {
    /// Moves to the entry with this ordinal; not valid past the last one.
    fn seek_ordinal(&mut self, ordinal: u64) -> Result<()>;

    /// Prefetches what [`OrdinalCursor::seek_ordinal`] will read. Reads no file, and counts as no read.
    fn prefetch_ordinal(&mut self, _ordinal: u64, _part: EntryPart) {}

    /// Prefetches the entry of the next step. Only while valid.
    fn prefetch_step(&self, _direction: Direction) {}
}

/// A run of a view. See the head of this file.
pub(crate) trait OrdinalRun: Clone + Send + Sync {
    type Cursor: OrdinalCursor;

    fn entry_count(&self) -> u64;
    /// The largest sequence number, known without a read.
    fn largest_sequence(&self) -> Sequence;
    /// A cursor that is not valid; reads nothing.
    fn cursor(&self) -> Self::Cursor;
    /// As [`OrdinalRun::cursor`], for a job that reads all entries once, in order.
    fn cursor_once(&self) -> Self::Cursor {
        self.cursor()
    }
}

/// The open tables of a run in key order, with cumulative entry counts.
#[derive(Debug, Clone)]
pub(crate) struct TableRun {
    tables: Arc<[Arc<TableReader>]>,
    /// Entries before each table, and all entries.
    entries_before: Arc<[u64]>,
    /// Blocks are read in order, and are not cached.
    reads_once: bool,
}

impl TableRun {
    pub(crate) fn new(tables: Vec<Arc<TableReader>>) -> Self {
        let mut count = 0;
        let mut entries_before = vec![0];
        for table in &tables {
            count += table.properties().summary.entry_count;
            entries_before.push(count);
        }
        Self { tables: tables.into(), entries_before: entries_before.into(), reads_once: false }
    }

    fn table(&self, table_index: usize) -> &Arc<TableReader> {
        self.tables.get(table_index).expect("the run cursor uses positions below the table count")
    }
}

/// The table of an ordinal in a run, and the number of the entry in the table; past the last entry, the number of tables.
/// `entries_before`: the entries before each table, and all entries.
pub(crate) fn entry_at(entries_before: &[u64], ordinal: u64) -> (usize, u64) {
    // If empty tables have the same number of entries before them, the last of these tables has the entry.
    let table = entries_before.partition_point(|&before| before <= ordinal).saturating_sub(1);
    let before = entries_before.get(table).copied().unwrap_or_default();
    (table, ordinal - before)
}

impl OrdinalRun for TableRun {
    type Cursor = RunCursor<Self>;

    fn entry_count(&self) -> u64 {
        self.entries_before.last().copied().unwrap_or_default()
    }

    fn largest_sequence(&self) -> Sequence {
        self.tables.iter().map(|table| table.properties().summary.largest_sequence).max().unwrap_or_default()
    }

    fn cursor(&self) -> RunCursor<Self> {
        RunCursor::new(self.clone())
    }

    fn cursor_once(&self) -> RunCursor<Self> {
        RunCursor::new(Self { reads_once: true, ..self.clone() })
    }
}

impl RunSource for TableRun {
    type Cursor = TableCursor;

    fn table_count(&self) -> usize {
        self.tables.len()
    }

    fn smallest_key(&self, table_index: usize) -> &[u8] {
        &self.table(table_index).properties().summary.smallest_key
    }

    fn largest_key(&self, table_index: usize) -> &[u8] {
        &self.table(table_index).properties().summary.largest_key
    }

    fn open_cursor(&self, table_index: usize) -> Result<Box<TableCursor>> {
        let table = self.table(table_index);
        Ok(Box::new(if self.reads_once { table.cursor_once() } else { table.cursor() }))
    }

    fn change_cursor(&self, cursor: &mut TableCursor, table_index: usize) -> Result<()> {
        cursor.change_table(self.table(table_index));
        Ok(())
    }
}

impl OrdinalCursor for RunCursor<TableRun> {
    fn seek_ordinal(&mut self, ordinal: u64) -> Result<()> {
        let (table, number) = entry_at(&self.source().entries_before, ordinal);
        if table < self.source().table_count() {
            return self.enter(table, |cursor| cursor.seek_number(number));
        }
        self.close();
        Ok(())
    }

    fn prefetch_ordinal(&mut self, ordinal: u64, part: EntryPart) {
        let run = self.source();
        let (table, number) = entry_at(&run.entries_before, ordinal);
        if let (false, Some(table)) = (run.reads_once, run.tables.get(table)) {
            table.prefetch_entry(number, part);
        }
    }

    fn prefetch_step(&self, direction: Direction) {
        if let Some(cursor) = self.open_cursor() {
            cursor.prefetch_step(direction);
        }
    }
}
