//! Runs as a sorted view reads them: entries by ordinal.
//!
//! Contract: the entries of a run are numbered from 0 in entry order and never change. `seek_ordinal` reads the block of the entry,
//! `next` and `prev` one when they leave a block. A cursor that is not moved reads nothing.
//!
//! Builders need keys and kinds only. If the sequence numbers of runs do not overlap, one number per run orders the entries of a
//! key, and builders read the key columns of tables instead of their blocks ([`OrdinalRun::keys_only`]).

use std::sync::Arc;

use tamis_filter::Direction;

use crate::{
    cursor::Cursor,
    error::Result,
    key::{BoundKind, Kind, Sequence},
    slice::Slice,
    table::{
        cursor::{EntryPart, TableCursor},
        key_column::{KeyColumn, KeyColumnKeys},
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
    /// The smallest sequence number, known without a read.
    fn smallest_sequence(&self) -> Sequence;
    /// A cursor that is not valid; reads nothing.
    fn cursor(&self) -> Self::Cursor;
    /// As [`OrdinalRun::cursor`], for a job that reads all entries once, in order.
    fn cursor_once(&self) -> Self::Cursor {
        self.cursor()
    }
    /// The run for a reader that needs no values, and for which all entries of the run may have its largest sequence number. Its
    /// cursors hold at most `memory` bytes, or a block.
    fn keys_only(&self, _memory: u64) -> Self {
        self.clone()
    }
}

/// Memory for the key columns that a builder reads at the same time.
pub(super) const KEY_COLUMN_MEMORY: u64 = 48 << 20;

/// The sequence numbers of the runs of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SequenceOrder {
    /// Those of all runs with entries are above the older ones and do not overlap: the order of the runs is that of their entries.
    Disjoint,
    Overlapping,
}

/// The order of the sequence numbers of runs. `floor`: the largest older one.
pub(super) fn sequence_order<'a, R: OrdinalRun + 'a>(
    floor: Option<Sequence>,
    runs: impl Iterator<Item = &'a R>,
) -> SequenceOrder {
    let spans = runs.filter(|run| run.entry_count() > 0);
    let mut spans: Vec<_> = spans.map(|run| (run.smallest_sequence(), run.largest_sequence())).collect();
    spans.sort_unstable();
    let is_above = |(smallest, _): &(Sequence, Sequence)| floor.is_none_or(|floor| *smallest > floor);
    match spans.first().is_none_or(is_above) && spans.is_sorted_by(|before, after| before.1 < after.0) {
        true => SequenceOrder::Disjoint,
        false => SequenceOrder::Overlapping,
    }
}

/// Runs for a builder that needs no values.
pub(super) fn for_builder<R: OrdinalRun>(runs: &[R], run_count: usize, order: SequenceOrder) -> Vec<R> {
    let memory = KEY_COLUMN_MEMORY / (run_count as u64).max(1);
    let for_builder = |run: &R| match order {
        SequenceOrder::Disjoint => run.keys_only(memory),
        SequenceOrder::Overlapping => run.clone(),
    };
    runs.iter().map(for_builder).collect()
}

/// The parts of a table that cursors read.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// Blocks, which are cached.
    Blocks,
    /// Blocks in order, which are not cached.
    BlocksOnce,
    /// Key columns that take at most this much memory; blocks of other tables. All entries have this sequence number.
    Keys { memory: u64, sequence: Sequence },
}

/// The tables of a run in key order, with cumulative entry counts.
#[derive(Debug, Clone)]
pub(crate) struct TableRun {
    tables: Arc<[Arc<TableReader>]>,
    /// Entries before each table, and all entries.
    entries_before: Arc<[u64]>,
    reading: Reading,
}

impl TableRun {
    pub(crate) fn new(tables: Vec<Arc<TableReader>>) -> Self {
        let mut count = 0;
        let mut entries_before = vec![0];
        for table in &tables {
            count += table.properties().summary.entry_count;
            entries_before.push(count);
        }
        Self { tables: tables.into(), entries_before: entries_before.into(), reading: Reading::Blocks }
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

    fn smallest_sequence(&self) -> Sequence {
        self.tables.iter().map(|table| table.properties().summary.smallest_sequence).min().unwrap_or_default()
    }

    fn cursor(&self) -> TableRunCursor {
        self.cursor_reading(self.reading)
    }

    fn cursor_once(&self) -> TableRunCursor {
        match self.reading {
            Reading::Blocks => self.cursor_reading(Reading::BlocksOnce),
            other => self.cursor_reading(other),
        }
    }

    fn keys_only(&self, memory: u64) -> Self {
        let sequence = self.largest_sequence();
        Self { reading: Reading::Keys { memory, sequence }, ..self.clone() }
    }
}

impl TableRun {
    fn cursor_reading(&self, reading: Reading) -> TableRunCursor {
        TableRunCursor {
            tables: Arc::clone(&self.tables),
            entries_before: Arc::clone(&self.entries_before),
            reading,
            table: 0,
            open: None,
        }
    }
}

/// The keys of a table by number, from its key column.
#[derive(Debug)]
struct KeyCursor {
    table: Arc<TableReader>,
    keys: KeyColumnKeys<KeyColumn>,
    number: u64,
    kind: Kind,
    sequence: Sequence,
    is_valid: bool,
}

impl KeyCursor {
    fn seek_number(&mut self, number: u64) -> Result<()> {
        self.is_valid = false;
        self.keys.seek(number as usize);
        let Some(found) = self.keys.advance() else { return Ok(()) };
        let kind = found.and_then(|(_, kind)| Kind::from_block_byte(kind));
        self.kind = kind.ok_or_else(|| self.table.key_column_error())?;
        self.number = number;
        self.is_valid = true;
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.is_valid = false;
        self.number.checked_sub(1).map_or(Ok(()), |before| self.seek_number(before))
    }
}

/// A cursor in one table.
#[derive(Debug)]
enum Open {
    Entries(Box<TableCursor>),
    Keys(Box<KeyCursor>),
}

/// A cursor over the tables of a run. Tables are disjoint: a move past the end of one continues in the next.
#[derive(Debug)]
pub(crate) struct TableRunCursor {
    tables: Arc<[Arc<TableReader>]>,
    entries_before: Arc<[u64]>,
    reading: Reading,
    table: usize,
    open: Option<Open>,
}

impl TableRunCursor {
    /// Opens the key column of a table, if the cursor may read it.
    fn open_keys(&self, table: &Arc<TableReader>) -> Result<Option<KeyCursor>> {
        let Reading::Keys { memory, sequence } = self.reading else { return Ok(None) };
        if table.key_column_memory().is_none_or(|bytes| bytes > memory) {
            return Ok(None);
        }
        let keys = |column: KeyColumn| KeyCursor {
            table: Arc::clone(table),
            keys: column.into_keys(),
            number: 0,
            kind: Kind::Put,
            sequence,
            is_valid: false,
        };
        Ok(table.key_column()?.map(keys))
    }

    /// Opens a table; `false` past the last one.
    fn open_table(&mut self, number: usize) -> Result<bool> {
        let Some(table) = self.tables.get(number).cloned() else { return Ok(false) };
        match &mut self.open {
            Some(Open::Keys(_)) if self.table == number => return Ok(true),
            Some(Open::Entries(cursor)) if !matches!(self.reading, Reading::Keys { .. }) => {
                // No effect if it is the current table.
                cursor.change_table(&table);
                self.table = number;
                return Ok(true);
            }
            Some(Open::Entries(_)) if self.table == number => return Ok(true),
            _ => {}
        }
        // Drops the column of the previous table before the next one is read.
        self.open = None;
        self.open = Some(match self.open_keys(&table)? {
            Some(keys) => Open::Keys(Box::new(keys)),
            None if matches!(self.reading, Reading::BlocksOnce) => {
                Open::Entries(Box::new(table.cursor_once()))
            }
            None => Open::Entries(Box::new(table.cursor())),
        });
        self.table = number;
        Ok(true)
    }

    /// Switches the cursor to reading blocks, for seeks to keys.
    fn read_blocks(&mut self) {
        if let Reading::Keys { .. } = self.reading {
            self.reading = Reading::Blocks;
            self.open = None;
        }
    }

    /// The cursor in the blocks of a table; `None` past the last table.
    fn entries_of(&mut self, number: usize) -> Result<Option<&mut TableCursor>> {
        self.read_blocks();
        self.open_table(number)?;
        Ok(match &mut self.open {
            Some(Open::Entries(cursor)) if number < self.tables.len() => Some(cursor),
            _ => None,
        })
    }

    /// Makes the cursor not valid.
    fn end(&mut self) {
        self.open = None;
    }

    /// Moves to the n-th entry of the open table.
    fn seek_number(&mut self, number: u64) -> Result<()> {
        match &mut self.open {
            Some(Open::Entries(cursor)) => cursor.seek_number(number),
            Some(Open::Keys(cursor)) => cursor.seek_number(number),
            None => Ok(()),
        }
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
        if let (Reading::Blocks, Some(table)) = (self.reading, self.tables.get(table)) {
            table.prefetch_entry(number, part);
        }
    }

    fn prefetch_step(&self, direction: Direction) {
        if let Some(Open::Entries(cursor)) = &self.open {
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
        match &mut self.open {
            Some(Open::Entries(cursor)) => cursor.next()?,
            Some(Open::Keys(cursor)) => cursor.seek_number(cursor.number + 1)?,
            None => {}
        }
        self.settle_forward()
    }

    fn prev(&mut self) -> Result<()> {
        match &mut self.open {
            Some(Open::Entries(cursor)) => cursor.prev()?,
            Some(Open::Keys(cursor)) => cursor.prev()?,
            None => {}
        }
        self.settle_backward()
    }

    fn is_valid(&self) -> bool {
        match &self.open {
            Some(Open::Entries(cursor)) => cursor.is_valid(),
            Some(Open::Keys(cursor)) => cursor.is_valid,
            None => false,
        }
    }

    fn key(&self) -> &[u8] {
        match &self.open {
            Some(Open::Entries(cursor)) => cursor.key(),
            Some(Open::Keys(cursor)) => cursor.keys.key(),
            None => &[],
        }
    }

    fn sequence(&self) -> Sequence {
        match (&self.open, self.reading) {
            (Some(Open::Keys(cursor)), _) => cursor.sequence,
            (_, Reading::Keys { sequence, .. }) => sequence,
            (Some(Open::Entries(cursor)), _) => cursor.sequence(),
            (None, _) => 0,
        }
    }

    fn kind(&self) -> Kind {
        match &self.open {
            Some(Open::Entries(cursor)) => cursor.kind(),
            Some(Open::Keys(cursor)) => cursor.kind,
            None => Kind::Put,
        }
    }

    fn value(&self) -> &[u8] {
        match &self.open {
            Some(Open::Entries(cursor)) => cursor.value(),
            _ => &[],
        }
    }

    fn value_slice(&self) -> Slice {
        match &self.open {
            Some(Open::Entries(cursor)) => cursor.value_slice(),
            _ => Slice::from([].as_slice()),
        }
    }
}
