//! A cursor over a table.
//!
//! The cursor owns its block (an `Arc` of the mapped file, or of the block in memory) and its layout. A step within a block
//! decodes one entry: two offsets, one head, and the rest of the key, which is copied after the block's prefix in the key
//! buffer. The value is not copied. A step uses the index only when it leaves the block.

use std::sync::Arc;

use tamis_filter::{Candidate, Upper};

use super::{
    block::{Block, Layout},
    data::BlockRef,
    environment::ReadCost,
    read_ahead::{Limits, ReadAhead},
    reader::TableReader,
};
use crate::{
    cache::block::CachedBlock,
    cursor::{Cursor, SeekHint},
    error::Result,
    key::{Kind, Sequence, prefix_successor},
    slice::Slice,
};

/// Room for a key of usual length, so that it is assembled without a reallocation.
const KEY_CAPACITY: usize = 48;
/// Blocks after which a cursor that moves from table to table adds its counts to the database's.
const COUNTED_BLOCKS: u64 = 64;

/// The current block: in the mapping of its table, or in owned bytes.
#[derive(Debug)]
enum CurrentBlock {
    None,
    Mapped { start: usize, length: usize },
    Memory(CachedBlock),
}

impl CurrentBlock {
    fn content<'a>(&'a self, table: &'a TableReader) -> &'a [u8] {
        match self {
            Self::None => &[],
            Self::Mapped { start, length } => {
                let bytes = table.data().source.file.mapping();
                bytes.and_then(|bytes| bytes.get(*start..*start + *length)).unwrap_or_default()
            }
            Self::Memory(block) => block.content(),
        }
    }

    fn slice(&self, table: &TableReader, (start, end): (usize, usize)) -> Slice {
        match self {
            Self::None => Slice::from([].as_slice()),
            Self::Mapped { start: base, .. } => {
                Slice::mapped(&table.data().source.file, base + start, end - start)
            }
            Self::Memory(block) => Slice::shared(&block.bytes, block.start as usize + start, end - start),
        }
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct TableCursor {
    table: Arc<TableReader>,
    ahead: ReadAhead,
    cost: ReadCost,
    current: CurrentBlock,
    /// Number of the current block; meaningless without one.
    block: usize,
    /// Start and end of the current block in the file.
    offset: u64,
    end: u64,
    /// The next block was prefetched.
    is_next_prefetched: bool,
    layout: Layout,
    entry: usize,
    is_valid: bool,
    key: Vec<u8>,
    sequence: Sequence,
    kind: Kind,
    value: (usize, usize),
}

impl TableReader {
    /// A cursor whose blocks are cached.
    pub(crate) fn cursor(self: &Arc<Self>) -> TableCursor {
        TableCursor::new(Arc::clone(self), ReadAhead::of_scan(None))
    }

    /// As [`TableReader::cursor`], for a scan that stays within the limits.
    pub(crate) fn cursor_within(self: &Arc<Self>, limits: Arc<dyn Limits>) -> TableCursor {
        TableCursor::new(Arc::clone(self), ReadAhead::of_scan(Some(limits)))
    }

    /// A cursor for a job that reads the whole table once: with long reads, and without caching the blocks.
    pub(crate) fn cursor_once(self: &Arc<Self>) -> TableCursor {
        TableCursor::new(Arc::clone(self), ReadAhead::of_job())
    }

    /// A cursor at the n-th entry of the table; not valid past the last one.
    #[cfg_attr(not(test), expect(dead_code, reason = "views reach entries by number"))]
    pub(crate) fn cursor_at(self: &Arc<Self>, number: u64) -> Result<TableCursor> {
        let mut cursor = self.cursor();
        cursor.seek_number(number)?;
        Ok(cursor)
    }
}

impl TableCursor {
    fn new(table: Arc<TableReader>, ahead: ReadAhead) -> Self {
        Self {
            table,
            ahead,
            cost: ReadCost::default(),
            current: CurrentBlock::None,
            block: 0,
            offset: 0,
            end: 0,
            is_next_prefetched: false,
            layout: Layout::default(),
            entry: 0,
            is_valid: false,
            key: Vec::with_capacity(KEY_CAPACITY),
            sequence: 0,
            kind: Kind::Put,
            value: (0, 0),
        }
    }

    /// Makes it a cursor over another table, not valid. Its memory is reused.
    pub(crate) fn change_table(&mut self, table: &Arc<TableReader>) {
        self.is_valid = false;
        if Arc::ptr_eq(&self.table, table) {
            return;
        }
        self.current = CurrentBlock::None;
        self.ahead.reset();
        if self.cost.blocks_read + self.cost.cache_hits >= COUNTED_BLOCKS {
            std::mem::take(&mut self.cost).add_to(&self.table.environment().metrics);
        }
        self.table = Arc::clone(table);
    }

    fn entries(&self) -> Block<'_> {
        self.layout.over(self.current.content(&self.table))
    }

    /// Makes a block the current one, unless it is already.
    fn load_block(&mut self, block: usize) -> Result<()> {
        if self.block == block && !matches!(self.current, CurrentBlock::None) {
            return Ok(());
        }
        self.current = CurrentBlock::None;
        let index = self.table.index()?;
        let extent = self.table.extent(&index, block)?;
        let data = self.table.data();
        let reading = (&mut self.ahead, &mut self.cost);
        let loaded = data.load_ahead(self.table.environment(), &index, block, extent, reading)?;
        let layout = Layout::parse(loaded.content()).ok_or_else(|| self.table.malformed(extent.0))?;
        self.key.clear();
        self.key.extend_from_slice(layout.over(loaded.content()).prefix());
        self.current = match loaded {
            BlockRef::Mapped { content, start } => CurrentBlock::Mapped { start, length: content.len() },
            BlockRef::Memory(block) => CurrentBlock::Memory(block),
        };
        (self.block, self.offset, self.end, self.layout) = (block, extent.0, extent.1, layout);
        self.is_next_prefetched = false;
        Ok(())
    }

    /// Moves to an entry of the current block.
    #[inline]
    fn move_within(&mut self, entry_index: usize) -> Result<()> {
        let block = self.layout.over(self.current.content(&self.table));
        let Some(entry) = block.entry(entry_index) else { return Err(self.table.malformed(self.offset)) };
        if block.assemble_key(entry_index, &entry, &mut self.key).is_none() {
            return Err(self.table.malformed(self.offset));
        }
        self.kind = match Kind::from_block_byte(entry.kind) {
            Some(kind) => kind,
            None => return self.table.kind(entry.kind, self.offset).map(|_| ()),
        };
        self.sequence = entry.sequence.wrapping_add(self.table.sequence_shift);
        self.value = entry.value;
        self.entry = entry_index;
        self.is_valid = true;
        Ok(())
    }

    /// Moves to an entry of `block`; past its end to the first entry of the next block, if there is one.
    fn move_to(&mut self, block: usize, entry_index: usize) -> Result<()> {
        if entry_index < self.layout.entry_count() {
            return self.move_within(entry_index);
        }
        if block + 1 < self.table.block_count() {
            self.load_block(block + 1)?;
            return self.move_within(0);
        }
        Ok(())
    }

    /// Moves to the entry before `entry_index` of `block`; before its start to the last entry of the block before.
    fn move_before(&mut self, block: usize, entry_index: usize) -> Result<()> {
        if let Some(before) = entry_index.checked_sub(1) {
            return self.move_within(before);
        }
        match block.checked_sub(1) {
            Some(previous) => {
                self.load_block(previous)?;
                self.move_within(self.layout.entry_count() - 1)
            }
            None => Ok(()),
        }
    }

    /// Moves to the n-th entry of the table, counted from 0; not valid past the last one.
    pub(crate) fn seek_number(&mut self, number: u64) -> Result<()> {
        self.is_valid = false;
        let Some((block, entry_index)) = self.table.index()?.block_of_entry(number) else { return Ok(()) };
        self.load_block(block)?;
        self.move_within(entry_index)
    }

    /// Whether the entry after the current one is in the same block.
    pub(crate) fn has_next_in_block(&self) -> bool {
        self.entry + 1 < self.layout.entry_count()
    }

    /// Counts no hits of the cache, for a cursor that uses blocks which the read has counted.
    pub(crate) fn discard_hits(&mut self) {
        self.cost.cache_hits = 0;
    }

    fn rank(&self, key: &[u8], sequence: Option<Sequence>) -> Result<usize> {
        self.entries().rank(key, sequence).ok_or_else(|| self.table.malformed(self.offset))
    }
}

impl Cursor for TableCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.is_valid = false;
        self.load_block(0)?;
        self.move_within(0)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.is_valid = false;
        self.load_block(self.table.block_count().saturating_sub(1))?;
        self.move_within(self.layout.entry_count().saturating_sub(1))
    }

    fn seek(&mut self, key: &[u8], sequence: Sequence) -> Result<()> {
        self.is_valid = false;
        // If the subtraction fails, all versions of the key are newer: the table was ingested later.
        let stored = sequence.checked_sub(self.table.sequence_shift);
        let block = self.table.index()?.block_of(key, stored.unwrap_or(0));
        self.load_block(block)?;
        let rank = self.rank(key, stored)?;
        self.move_to(block, rank)
    }

    fn prepare_seek(&mut self, key: &[u8], sequence: Sequence, bound: &mut Vec<u8>) -> Result<SeekHint> {
        self.is_valid = false;
        match self.table.least_candidate(key) {
            Candidate::Absent => return Ok(SeekHint::End),
            Candidate::Bytes(bytes) if bytes.as_slice() > key => {
                bound.extend_from_slice(&bytes);
                return Ok(SeekHint::Bound);
            }
            Candidate::Bytes(_) | Candidate::Unknown => {}
        }
        if !self.table.data().is_mapped() {
            return Ok(SeekHint::Unknown);
        }
        let index = self.table.index()?;
        let block = index.block_of(key, sequence);
        if let Some((start, _)) = index.extent(block) {
            self.table.data().prefetch(start);
        }
        Ok(SeekHint::Unknown)
    }

    fn prepare_seek_for_prev(
        &mut self,
        key: &[u8],
        is_inclusive: bool,
        bound: &mut Vec<u8>,
    ) -> Result<SeekHint> {
        self.is_valid = false;
        let upper = if is_inclusive { Upper::Included(key) } else { Upper::Excluded(key) };
        let below = match self.table.greatest_candidate(upper) {
            Candidate::Absent => return Ok(SeekHint::End),
            Candidate::Bytes(bytes) => prefix_successor(&bytes),
            Candidate::Unknown => None,
        };
        match below.filter(|below| below.as_slice() <= key) {
            Some(below) => {
                bound.extend_from_slice(&below);
                Ok(SeekHint::Below)
            }
            None => Ok(SeekHint::Unknown),
        }
    }

    fn seek_for_prev(&mut self, key: &[u8], is_inclusive: bool) -> Result<()> {
        self.is_valid = false;
        let block = self.table.index()?.block_for_prev(key, is_inclusive);
        self.load_block(block)?;
        let rank = self.rank(key, if is_inclusive { None } else { Some(Sequence::MAX) })?;
        self.move_before(block, rank)
    }

    fn next(&mut self) -> Result<()> {
        self.is_valid = false;
        if !self.is_next_prefetched {
            // A cursor that takes a second entry mostly continues; the hardware prefetcher stays within a page.
            self.is_next_prefetched = true;
            self.table.data().prefetch(self.end);
        }
        self.move_to(self.block, self.entry + 1)
    }

    fn prev(&mut self) -> Result<()> {
        self.is_valid = false;
        if !self.is_next_prefetched {
            self.is_next_prefetched = true;
            // The block before mostly has the same length.
            self.table.data().prefetch(self.offset.saturating_sub(self.end - self.offset));
        }
        self.move_before(self.block, self.entry)
    }

    fn is_valid(&self) -> bool {
        self.is_valid
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn sequence(&self) -> Sequence {
        self.sequence
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn value(&self) -> &[u8] {
        self.current.content(&self.table).get(self.value.0..self.value.1).unwrap_or_default()
    }

    fn value_slice(&self) -> Slice {
        self.current.slice(&self.table, self.value)
    }
}

impl Drop for TableCursor {
    fn drop(&mut self) {
        self.cost.add_to(&self.table.environment().metrics);
    }
}
