//! Runs as a sorted view reads them: entries by ordinal.
//!
//! Contract: the entries of a run are numbered from 0 in entry order and never change. `seek_ordinal` reads the block of the entry,
//! `next` and `prev` one when they leave a block. A cursor that is not moved reads nothing.

use std::sync::Arc;

use crate::{
    cursor::Cursor,
    error::Result,
    key::{Kind, Sequence},
    slice::Slice,
    table::{cursor::TableCursor, reader::TableReader},
};

/// A cursor that also moves to entries by ordinal.
pub(crate) trait OrdinalCursor: Cursor {
    /// Moves to the entry with this ordinal; not valid past the last one.
    fn seek_ordinal(&mut self, ordinal: u64) -> Result<()>;
}

/// A run of a view. See the head of this file.
pub(crate) trait OrdinalRun: Send + Sync {
    type Cursor: OrdinalCursor;

    fn entry_count(&self) -> u64;
    /// The largest sequence number, known without a read.
    fn largest_sequence(&self) -> Sequence;
    /// A cursor that is not valid; reads nothing.
    fn cursor(&self) -> Self::Cursor;
}

/// The tables of a run in key order, with cumulative entry counts.
#[derive(Debug)]
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

/// The table of an ordinal; past the last entry, the number of tables.
fn table_of(entries_before: &[u64], ordinal: u64) -> usize {
    entries_before.partition_point(|&before| before <= ordinal).saturating_sub(1)
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
        TableRunCursor {
            tables: Arc::clone(&self.tables),
            entries_before: Arc::clone(&self.entries_before),
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
    table: usize,
    open: Option<TableCursor>,
}

impl TableRunCursor {
    /// The cursor in a table; `None` past the last table.
    fn at_table(&mut self, number: usize) -> Option<&mut TableCursor> {
        let table = self.tables.get(number)?;
        let cursor = self.open.get_or_insert_with(|| table.cursor());
        // Without effect for the table that it is in.
        cursor.change_table(table);
        self.table = number;
        Some(cursor)
    }

    /// Leaves the cursor not valid.
    fn end(&mut self) {
        self.open = None;
    }

    /// Moves to the first entry of the next tables, if the cursor ended in its table.
    fn settle_forward(&mut self) -> Result<()> {
        while !self.is_valid() {
            match self.at_table(self.table + 1) {
                Some(cursor) => cursor.seek_first()?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn settle_backward(&mut self) -> Result<()> {
        while !self.is_valid() {
            let Some(before) = self.table.checked_sub(1) else { return Ok(()) };
            match self.at_table(before) {
                Some(cursor) => cursor.seek_last()?,
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

impl OrdinalCursor for TableRunCursor {
    fn seek_ordinal(&mut self, ordinal: u64) -> Result<()> {
        let number = table_of(&self.entries_before, ordinal);
        let before = self.entries_before.get(number).copied().unwrap_or_default();
        match self.at_table(number) {
            Some(cursor) => cursor.seek_number(ordinal - before),
            None => {
                self.end();
                Ok(())
            }
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
        match self.at_table(number) {
            Some(cursor) => cursor.seek(key, sequence)?,
            None => {
                self.end();
                return Ok(());
            }
        }
        self.settle_forward()
    }

    fn seek_for_prev(&mut self, key: &[u8], is_inclusive: bool) -> Result<()> {
        let is_before = |table: &Arc<TableReader>| {
            let smallest = table.properties().summary.smallest_key.as_slice();
            smallest < key || is_inclusive && smallest == key
        };
        let number = self.tables.partition_point(is_before);
        match number.checked_sub(1).and_then(|number| self.at_table(number)) {
            Some(cursor) => cursor.seek_for_prev(key, is_inclusive)?,
            None => {
                self.end();
                return Ok(());
            }
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
        self.open.as_ref().is_some_and(Cursor::is_valid)
    }

    fn key(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], |cursor| cursor.key())
    }

    fn sequence(&self) -> Sequence {
        self.open.as_ref().map_or(0, Cursor::sequence)
    }

    fn kind(&self) -> Kind {
        self.open.as_ref().map_or(Kind::Put, Cursor::kind)
    }

    fn value(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], |cursor| cursor.value())
    }

    fn value_slice(&self) -> Slice {
        self.open.as_ref().map_or_else(|| Slice::from([].as_slice()), Cursor::value_slice)
    }
}
