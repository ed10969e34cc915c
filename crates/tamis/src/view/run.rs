//! Runs as a sorted view reads them: entries by ordinal.
//!
//! Contract: the entries of a run are numbered from 0 in entry order and never change. `seek_ordinal` reads the block of the entry,
//! `next` and `prev` one when they leave a block. A cursor that is not moved reads nothing.

use std::sync::Arc;

use tamis_filter::Direction;

use crate::{
    cursor::Cursor,
    error::Result,
    key::{BoundKind, Kind, Sequence},
    slice::Slice,
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

/// The tables of a run in key order, with cumulative entry counts.
#[derive(Debug, Clone)]
pub(crate) struct TableRun {
    tables: Arc<[Arc<TableReader>]>,
    /// Entries before each table, and all entries.
    entries_before: Arc<[u64]>,
}

impl TableRun {
    pub(crate) fn new(tables: Vec<Arc<TableReader>>) -> Self {
        let mut count = 0;
        let mut entries_before = vec![0];
        for table in &tables {
            count += table.properties().summary.entry_count;
            entries_before.push(count);
        }
        Self { tables: tables.into(), entries_before: entries_before.into() }
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
    type Cursor = TableRunCursor;

    fn entry_count(&self) -> u64 {
        self.entries_before.last().copied().unwrap_or_default()
    }

    fn largest_sequence(&self) -> Sequence {
        self.tables.iter().map(|table| table.properties().summary.largest_sequence).max().unwrap_or_default()
    }

    fn cursor(&self) -> TableRunCursor {
        self.new_cursor(false)
    }

    fn cursor_once(&self) -> TableRunCursor {
        self.new_cursor(true)
    }
}

impl TableRun {
    fn new_cursor(&self, reads_once: bool) -> TableRunCursor {
        TableRunCursor {
            tables: Arc::clone(&self.tables),
            entries_before: Arc::clone(&self.entries_before),
            reads_once,
            table: 0,
            open: None,
        }
    }
}

/// A cursor over the tables of a run. Tables are disjoint: a move past the end of one continues in the next.
#[derive(Debug)]
pub(crate) struct TableRunCursor {
    tables: Arc<[Arc<TableReader>]>,
    entries_before: Arc<[u64]>,
    /// Blocks are read in order, and are not cached.
    reads_once: bool,
    table: usize,
    open: Option<Box<TableCursor>>,
}

impl TableRunCursor {
    /// Opens a table; `false` past the last one.
    fn open_table(&mut self, number: usize) -> Result<bool> {
        let Some(table) = self.tables.get(number) else { return Ok(false) };
        match &mut self.open {
            // No effect if it is the current table.
            Some(cursor) => cursor.change_table(table),
            None if self.reads_once => self.open = Some(Box::new(table.cursor_once())),
            None => self.open = Some(Box::new(table.cursor())),
        }
        self.table = number;
        Ok(true)
    }

    /// The cursor in a table; `None` past the last table.
    fn entries_of(&mut self, number: usize) -> Result<Option<&mut TableCursor>> {
        let is_open = self.open_table(number)?;
        Ok(self.open.as_deref_mut().filter(|_| is_open))
    }

    /// Makes the cursor not valid.
    fn end(&mut self) {
        self.open = None;
    }

    /// Moves to the n-th entry of the open table.
    fn seek_number(&mut self, number: u64) -> Result<()> {
        self.open.as_mut().map_or(Ok(()), |cursor| cursor.seek_number(number))
    }

    /// Moves to the first entry of the next tables, if the cursor ended in its table.
    fn settle_forward(&mut self) -> Result<()> {
        while !self.is_valid() {
            if !self.open_table(self.table + 1)? {
                return Ok(());
            }
            self.seek_number(0)?;
        }
        Ok(())
    }

    fn settle_backward(&mut self) -> Result<()> {
        while !self.is_valid() {
            let Some(before) = self.table.checked_sub(1) else { return Ok(()) };
            self.open_table(before)?;
            let count = self.tables.get(before).map_or(0, |table| table.properties().summary.entry_count);
            self.seek_number(count.saturating_sub(1))?;
        }
        Ok(())
    }
}

impl OrdinalCursor for TableRunCursor {
    fn seek_ordinal(&mut self, ordinal: u64) -> Result<()> {
        let (table, number) = entry_at(&self.entries_before, ordinal);
        if self.open_table(table)? {
            return self.seek_number(number);
        }
        self.end();
        Ok(())
    }

    fn prefetch_ordinal(&mut self, ordinal: u64, part: EntryPart) {
        let (table, number) = entry_at(&self.entries_before, ordinal);
        if let (false, Some(table)) = (self.reads_once, self.tables.get(table)) {
            table.prefetch_entry(number, part);
        }
    }

    fn prefetch_step(&self, direction: Direction) {
        if let Some(cursor) = &self.open {
            cursor.prefetch_step(direction);
        }
    }
}

impl Cursor for TableRunCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.seek_ordinal(0)
    }

    fn seek_last(&mut self) -> Result<()> {
        match self.entries_before.last().and_then(|count| count.checked_sub(1)) {
            Some(last) => self.seek_ordinal(last),
            None => Ok(()),
        }
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        let is_before = |table: &Arc<TableReader>| table.properties().summary.largest_key.as_slice() < key;
        let number = self.tables.partition_point(is_before);
        match self.entries_of(number)? {
            Some(cursor) => cursor.seek(key, sequence)?,
            None => {
                self.end();
                return Ok(());
            }
        }
        self.settle_forward()
    }

    fn seek_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<()> {
        let is_before = |table: &Arc<TableReader>| {
            let smallest = table.properties().summary.smallest_key.as_slice();
            kind.is_within(smallest, key)
        };
        let Some(number) = self.tables.partition_point(is_before).checked_sub(1) else {
            self.end();
            return Ok(());
        };
        if let Some(cursor) = self.entries_of(number)? {
            cursor.seek_for_prev(key, kind)?;
        }
        self.settle_backward()
    }

    fn next(&mut self) -> Result<()> {
        if let Some(cursor) = &mut self.open {
            cursor.next()?;
        }
        self.settle_forward()
    }

    fn prev(&mut self) -> Result<()> {
        if let Some(cursor) = &mut self.open {
            cursor.prev()?;
        }
        self.settle_backward()
    }

    fn is_valid(&self) -> bool {
        self.open.as_ref().is_some_and(|cursor| cursor.is_valid())
    }

    fn key(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], |cursor| cursor.key())
    }

    fn sequence(&self) -> Sequence {
        self.open.as_ref().map_or(0, |cursor| cursor.sequence())
    }

    fn kind(&self) -> Kind {
        self.open.as_ref().map_or(Kind::Put, |cursor| cursor.kind())
    }

    fn value(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], |cursor| cursor.value())
    }

    fn value_slice(&self) -> Slice {
        self.open.as_ref().map_or_else(|| Slice::from([].as_slice()), |cursor| cursor.value_slice())
    }
}
