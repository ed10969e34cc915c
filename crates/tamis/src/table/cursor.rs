//! A cursor over a table.
//!
//! The cursor owns its block (an `Arc` of the mapped file, or of the block in memory) and its layout. A step within a block
//! decodes one entry: two offsets, one head, and the rest of the key, which is copied after the block's prefix in the key
//! buffer. The value is not copied. A step uses the index only when it leaves the block.
//!
//! Sorted views move cursors to entries by their numbers: within a block this is a step, too.

use std::{
    ops::{Bound, Range},
    sync::Arc,
    time::Duration,
};

use tamis_filter::{Candidate, Direction, RangeProbe};

use super::{
    block::{Block, Layout},
    data::BlockRef,
    environment::ReadCost,
    key_buffer::KeyBuffer,
    read_ahead::{Limits, ReadAhead},
    reader::TableReader,
};
use crate::{
    cache::block::CachedBlock,
    cursor::{Cursor, SeekHint},
    error::Result,
    key::{BoundKind, Kind, Sequence, prefix_successor},
    observe::metrics::{ReadKind, ReadPlace},
    slice::Slice,
};

/// The current block: in the mapping of its table, or in owned bytes.
#[derive(Debug)]
enum CurrentBlock {
    None,
    Mapped { start: usize, length: usize },
    Memory(CachedBlock),
}

impl CurrentBlock {
    #[inline(always)]
    fn content<'a>(&'a self, table: &'a TableReader) -> &'a [u8] {
        match self {
            Self::None => &[],
            Self::Mapped { start, length } => {
                let bytes = table.data().mapping();
                bytes.and_then(|bytes| bytes.get(*start..*start + *length)).unwrap_or_default()
            }
            Self::Memory(block) => block.content(),
        }
    }

    /// A part of the content.
    #[inline(always)]
    fn part<'a>(&'a self, table: &'a TableReader, (start, end): (usize, usize)) -> &'a [u8] {
        match self {
            Self::None => &[],
            Self::Mapped { start: base, .. } => {
                let bytes = table.data().mapping();
                bytes.and_then(|bytes| bytes.get(base + start..base + end)).unwrap_or_default()
            }
            Self::Memory(block) => block.content().get(start..end).unwrap_or_default(),
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

/// Answers of the filter of a table to open seeks.
#[derive(Debug, Default)]
struct CandidateCounts {
    /// Those that named a key, which the table may have.
    admitted: u32,
    rejected: u32,
    true_positives: u32,
    false_positives: u32,
}

/// The part of an entry to prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryPart {
    /// The head of its block, which has the position of the entry.
    Block,
    /// The entry, after the head of the block was prefetched.
    Entry,
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct TableCursor {
    table: Arc<TableReader>,
    /// Made for tables that are not mapped.
    ahead: Option<Box<ReadAhead>>,
    cost: ReadCost,
    /// Where the cost is counted; `None` for a cursor of no query.
    place: Option<ReadPlace>,
    /// The candidate of the filter for an open seek, until the table is read.
    candidate: Option<Vec<u8>>,
    candidates: CandidateCounts,
    current: CurrentBlock,
    /// Number of the current block; meaningless without one.
    block: usize,
    /// Start and end of the current block in the file.
    offset: u64,
    end: u64,
    /// The numbers in the table of the block's entries; empty if the block was not found by a number.
    numbers: Range<u64>,
    /// The block that was prefetched for a move to a number: its own number, its start, and the numbers of its entries.
    prefetched: Option<(usize, u64, Range<u64>)>,
    /// The block that the seek reads which [`Cursor::prepare_seek`] has prepared.
    prepared: Option<usize>,
    /// The next block was prefetched.
    is_next_prefetched: bool,
    layout: Layout,
    /// Of a plain block: no sequence number of it is greater.
    plain_up_to: Option<Sequence>,
    entry: usize,
    is_valid: bool,
    key: KeyBuffer,
    sequence: Sequence,
    kind: Kind,
    value: (usize, usize),
}

impl TableReader {
    /// A cursor whose blocks are cached.
    pub(crate) fn cursor(self: &Arc<Self>) -> TableCursor {
        TableCursor::new(Arc::clone(self), None, None)
    }

    /// As [`TableReader::cursor`], for a scan that may stay within limits, and whose reads are counted at a place.
    #[inline(always)]
    pub(crate) fn cursor_of_scan(
        self: &Arc<Self>,
        limits: Option<Arc<dyn Limits>>,
        place: Option<ReadPlace>,
    ) -> TableCursor {
        let ahead = limits.map(|limits| Box::new(ReadAhead::of_scan(Some(limits))));
        TableCursor::new(Arc::clone(self), ahead, place)
    }

    /// A cursor for a job that reads the whole table once: with long reads, and without caching the blocks.
    pub(crate) fn cursor_once(self: &Arc<Self>) -> TableCursor {
        TableCursor::new(Arc::clone(self), Some(Box::new(ReadAhead::of_job())), None)
    }

    /// Prefetches a part of the n-th entry, if the table is mapped. Nothing is read or verified: invalid bytes only make it useless.
    pub(crate) fn prefetch_entry(&self, number: u64, part: EntryPart) {
        if !self.data().is_mapped() {
            return;
        }
        let Ok(index) = self.index() else { return };
        let Some((block, entry)) = index.block_of_entry(number) else { return };
        let Some((start, _)) = index.extent(block) else { return };
        match part {
            EntryPart::Block => self.data().prefetch(start),
            EntryPart::Entry => self.data().prefetch_entry(block, start, entry),
        }
    }
}

impl TableCursor {
    #[inline(always)]
    fn new(table: Arc<TableReader>, ahead: Option<Box<ReadAhead>>, place: Option<ReadPlace>) -> Self {
        Self {
            table,
            ahead,
            cost: ReadCost::default(),
            place,
            candidate: None,
            candidates: CandidateCounts::default(),
            current: CurrentBlock::None,
            block: 0,
            offset: 0,
            end: 0,
            numbers: 0..0,
            prefetched: None,
            prepared: None,
            is_next_prefetched: false,
            layout: Layout::default(),
            plain_up_to: None,
            entry: 0,
            is_valid: false,
            key: KeyBuffer::new(),
            sequence: 0,
            kind: Kind::Put,
            value: (0, 0),
        }
    }

    /// Counts the answer of the filter to an open seek: the bytes with which the next key begins, if there is one.
    fn count_candidate(&mut self, candidate: Option<Vec<u8>>) {
        if self.place.is_some_and(|place| place.kind == ReadKind::Seek) {
            let is_rejected = candidate.is_none();
            self.candidates.rejected += u32::from(is_rejected);
            self.candidates.admitted += u32::from(!is_rejected);
            self.candidate = candidate;
        }
    }

    /// Counts whether the table has the key that its filter named, after a seek.
    #[cold]
    fn count_outcome(&mut self) {
        let Some(candidate) = self.candidate.take() else { return };
        let is_right = self.is_valid && self.key.as_slice().starts_with(&candidate);
        self.candidates.true_positives += u32::from(is_right);
        self.candidates.false_positives += u32::from(!is_right);
    }

    /// Makes it a cursor over another table, not valid. Its memory is reused.
    pub(crate) fn change_table(&mut self, table: &Arc<TableReader>) {
        self.is_valid = false;
        self.prepared = None;
        if Arc::ptr_eq(&self.table, table) {
            return;
        }
        self.current = CurrentBlock::None;
        self.numbers = 0..0;
        self.prefetched = None;
        self.candidate = None;
        if let Some(ahead) = &mut self.ahead {
            ahead.reset();
        }
        // After so many blocks a cursor that moves from table to table adds its counts to the database's.
        if self.cost.blocks_read + self.cost.cache_hits >= 64 {
            self.cost.add_to(&self.table.environment().metrics, self.place);
        }
        self.table = Arc::clone(table);
    }

    /// Begins the first read of a table by a query that measures it.
    #[inline]
    fn begin_timed(&mut self) -> Option<Duration> {
        let place = self.place.as_mut().filter(|place| place.is_timed)?;
        place.is_timed = false;
        self.table.environment().metrics.read_times.begin()
    }

    #[inline]
    fn end_timed(&self, began: Option<Duration>) {
        if let Some((began, place)) = began.zip(self.place) {
            self.table.environment().metrics.read_times.end(place.level(), began);
        }
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
        self.numbers = 0..0;
        let index = self.table.index()?;
        let extent = self.table.extent(&index, block)?;
        let data = self.table.data();
        let (environment, cost) = (self.table.environment(), &mut self.cost);
        let loaded = match &mut self.ahead {
            None if data.is_mapped() => data.load(environment, block, extent, cost)?,
            ahead => {
                let ahead = ahead.get_or_insert_with(|| Box::new(ReadAhead::of_scan(None)));
                data.load_ahead(environment, &index, block, extent, (ahead, cost))?
            }
        };
        let layout = Layout::parse(loaded.content()).ok_or_else(|| self.table.malformed(extent.0))?;
        self.key.set_prefix(layout.over(loaded.content()).prefix());
        self.current = match loaded {
            BlockRef::Mapped { content, start } => CurrentBlock::Mapped { start, length: content.len() },
            BlockRef::Memory(block) => CurrentBlock::Memory(block),
        };
        (self.block, self.offset, self.end, self.layout) = (block, extent.0, extent.1, layout);
        self.is_next_prefetched = false;
        let bound = layout.sequence_bound().saturating_add(self.table.sequence_shift);
        let largest = self.table.properties().summary.largest_sequence;
        self.plain_up_to = layout.is_plain().then(|| bound.min(largest));
        Ok(())
    }

    /// Moves to an entry of the current block.
    #[inline]
    fn move_within(&mut self, entry_index: usize) -> Result<()> {
        self.move_within_and_prefetch(entry_index, None)
    }

    /// As [`TableCursor::move_within`]; prefetches another entry first.
    #[inline(always)]
    fn move_within_and_prefetch(&mut self, entry_index: usize, next: Option<usize>) -> Result<()> {
        let block = self.layout.over(self.current.content(&self.table));
        if let Some(next) = next {
            block.prefetch(next);
        }
        let Some(entry) = block.entry(entry_index) else { return Err(self.table.malformed(self.offset)) };
        if block.set_key(entry_index, &entry, &mut self.key).is_none() {
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

    /// Moves to the entry before `entry_index` of `block`; before its start to the last entry of the previous block.
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

    /// Moves to the n-th entry of the table, counted from 0; not valid past the last one. A move within the block prefetches what a next
    /// move in the same direction will read.
    #[inline]
    pub(crate) fn seek_number(&mut self, number: u64) -> Result<()> {
        let was_valid = std::mem::replace(&mut self.is_valid, false);
        if !self.numbers.contains(&number) {
            return self.seek_number_elsewhere(number);
        }
        let entry_index = (number - self.numbers.start) as usize;
        if was_valid && entry_index == self.entry {
            self.is_valid = true;
            return Ok(());
        }
        let direction = if entry_index > self.entry { Direction::Forward } else { Direction::Backward };
        if !self.is_next_prefetched {
            self.prefetch_next_block(direction);
        }
        let next = next_entry(entry_index, direction);
        self.move_within_and_prefetch(entry_index, Some(next))
    }

    #[inline(never)]
    fn seek_number_elsewhere(&mut self, number: u64) -> Result<()> {
        let (block, numbers) = match self.prefetched.take() {
            Some((block, _, numbers)) if numbers.contains(&number) => (block, numbers),
            _ => match self.find_number(number)? {
                Some(found) => found,
                None => return Ok(()),
            },
        };
        self.load_block(block)?;
        let entry_index = (number - numbers.start) as usize;
        self.numbers = numbers;
        self.move_within(entry_index)
    }

    /// The block of the n-th entry, and the numbers of its entries.
    fn find_number(&self, number: u64) -> Result<Option<(usize, Range<u64>)>> {
        let index = self.table.index()?;
        let block = match &self.numbers {
            known if known.is_empty() => index.block_of_entry(number).map(|(block, _)| block),
            known if known.end == number => Some(self.block + 1),
            known if known.start == number + 1 => self.block.checked_sub(1),
            _ => index.block_of_entry(number).map(|(block, _)| block),
        };
        let with_numbers = |block: usize| (block, index.numbers_of(block));
        Ok(block.map(with_numbers).filter(|(_, numbers)| numbers.contains(&number)))
    }

    /// Prefetches a part of the n-th entry, if the table is mapped and the cursor is not near. Nothing is read or verified: invalid bytes
    /// make it useless, no more.
    pub(crate) fn prefetch_number(&mut self, number: u64, part: EntryPart) {
        let is_near = self.numbers.start <= number + 1 && number <= self.numbers.end;
        if is_near && !self.numbers.is_empty() || !self.table.data().is_mapped() {
            return;
        }
        let is_known = self.prefetched.as_ref().is_some_and(|(_, _, numbers)| numbers.contains(&number));
        if !is_known {
            let Ok(Some((block, numbers))) = self.find_number(number) else { return };
            let start = self.table.index().ok().and_then(|index| index.extent(block)).map(|(start, _)| start);
            self.prefetched = start.map(|start| (block, start, numbers));
        }
        if let Some((block, start, numbers)) = &self.prefetched {
            match part {
                EntryPart::Block => self.table.data().prefetch(*start),
                EntryPart::Entry => {
                    let entry_index = (number - numbers.start) as usize;
                    self.table.data().prefetch_entry(*block, *start, entry_index);
                }
            }
        }
    }

    /// Prefetches the next block, or the previous one: a cursor that takes a second entry mostly continues, and the hardware prefetcher
    /// stays within a page.
    fn prefetch_next_block(&mut self, direction: Direction) {
        self.is_next_prefetched = true;
        // The previous block usually has the same length.
        let start = match direction {
            Direction::Forward => self.end,
            Direction::Backward => self.offset.saturating_sub(self.end - self.offset),
        };
        self.table.data().prefetch(start);
    }

    /// Prefetches the entry after the current one in its block; backward, the previous one.
    #[inline]
    pub(crate) fn prefetch_step(&self, direction: Direction) {
        self.entries().prefetch(next_entry(self.entry, direction));
    }

    /// How many entries follow the current one in its block and are before an end of a range.
    pub(crate) fn entries_before(&self, end: Bound<&[u8]>, direction: Direction) -> Result<usize> {
        let newest = Some(Sequence::MAX);
        Ok(match (direction, end) {
            (Direction::Forward, Bound::Unbounded) => {
                self.layout.entry_count().saturating_sub(self.entry + 1)
            }
            (Direction::Forward, Bound::Included(key)) => {
                self.rank(key, None)?.saturating_sub(self.entry + 1)
            }
            (Direction::Forward, Bound::Excluded(key)) => {
                self.rank(key, newest)?.saturating_sub(self.entry + 1)
            }
            (Direction::Backward, Bound::Unbounded) => self.entry,
            (Direction::Backward, Bound::Included(key)) => self.entry.saturating_sub(self.rank(key, newest)?),
            (Direction::Backward, Bound::Excluded(key)) => self.entry.saturating_sub(self.rank(key, None)?),
        })
    }

    /// Whether the table has another block in a direction.
    pub(crate) fn has_block_behind(&self, direction: Direction) -> bool {
        match direction {
            Direction::Forward => self.block + 1 < self.table.block_count(),
            Direction::Backward => self.block > 0,
        }
    }

    /// The bytes with which all keys of the current block begin.
    pub(crate) fn block_prefix(&self) -> &[u8] {
        self.entries().prefix()
    }

    /// Prefetches the block behind the current one, once.
    pub(crate) fn prefetch_behind(&mut self, direction: Direction) {
        if !self.is_next_prefetched {
            self.prefetch_next_block(direction);
        }
    }

    /// Moves to the next entry of a plain block, which has one: to its key and its value.
    #[inline]
    pub(crate) fn step_within(&mut self, direction: Direction) -> Result<()> {
        let entry_index = next_entry(self.entry, direction);
        let block = self.layout.over(self.current.content(&self.table));
        let entry = block.key_and_value(entry_index);
        let Some(entry) = entry else { return Err(self.table.malformed(self.offset)) };
        if block.set_key(entry_index, &entry, &mut self.key).is_none() {
            return Err(self.table.malformed(self.offset));
        }
        self.value = entry.value;
        self.entry = entry_index;
        Ok(())
    }

    /// Completes the entry to which [`TableCursor::step_within`] has moved.
    pub(crate) fn end_stretch(&mut self) -> Result<()> {
        self.is_valid = false;
        self.move_within(self.entry)
    }

    fn rank(&self, key: &[u8], sequence: Option<Sequence>) -> Result<usize> {
        self.entries().rank(key, sequence).ok_or_else(|| self.table.malformed(self.offset))
    }
}

/// The entry behind another one in a direction; the first one has none before it.
const fn next_entry(entry: usize, direction: Direction) -> usize {
    match direction {
        Direction::Forward => entry + 1,
        Direction::Backward => entry.saturating_sub(1),
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
        let began = self.begin_timed();
        // If the subtraction fails, all versions of the key are newer: the table was ingested later.
        let stored = sequence.checked_sub(self.table.sequence_shift);
        let block = match self.prepared.take() {
            Some(block) => block,
            None => self.table.index_for_search()?.block_of(key, stored.unwrap_or(0)),
        };
        self.load_block(block)?;
        let rank = self.rank(key, stored)?;
        self.move_to(block, rank)?;
        self.end_timed(began);
        if self.candidate.is_some() {
            self.count_outcome();
        }
        Ok(())
    }

    fn prepare_seek(
        &mut self,
        needed: &RangeProbe<'_>,
        sequence: Sequence,
        bound: &mut Vec<u8>,
    ) -> Result<SeekHint> {
        self.is_valid = false;
        self.prepared = None;
        let key = needed.range().lower_bytes();
        match self.table.candidate(needed, Direction::Forward) {
            Candidate::Absent => {
                self.count_candidate(None);
                return Ok(SeekHint::End);
            }
            Candidate::Bytes(bytes) => {
                let is_behind = bytes.as_slice() > key;
                if is_behind {
                    bound.extend_from_slice(&bytes);
                }
                self.count_candidate(Some(bytes));
                if is_behind {
                    return Ok(SeekHint::Bound);
                }
            }
            Candidate::Unknown => {}
        }
        if !self.table.data().is_mapped() {
            return Ok(SeekHint::Unknown);
        }
        let stored = sequence.saturating_sub(self.table.sequence_shift);
        let index = self.table.index_for_search()?;
        let block = index.block_of(key, stored);
        if let Some((start, _)) = index.extent(block) {
            self.table.data().prefetch(start);
        }
        self.prepared = Some(block);
        Ok(SeekHint::Unknown)
    }

    fn forget_prepared(&mut self) {
        self.prepared = None;
    }

    fn prepare_seek_for_prev(&mut self, needed: &RangeProbe<'_>, bound: &mut Vec<u8>) -> Result<SeekHint> {
        self.is_valid = false;
        let key = needed.range().upper_bytes().unwrap_or_default();
        let below = match self.table.candidate(needed, Direction::Backward) {
            Candidate::Absent => {
                self.count_candidate(None);
                return Ok(SeekHint::End);
            }
            Candidate::Bytes(bytes) => {
                let below = prefix_successor(&bytes);
                self.count_candidate(Some(bytes));
                below
            }
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

    fn seek_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<()> {
        self.is_valid = false;
        self.prepared = None;
        let began = self.begin_timed();
        let block = self.table.index_for_search()?.block_for_prev(key, kind);
        self.load_block(block)?;
        let rank = match kind {
            BoundKind::Included => self.rank(key, None)?,
            BoundKind::Excluded => self.rank(key, Some(Sequence::MAX))?,
        };
        self.move_before(block, rank)?;
        self.end_timed(began);
        if self.candidate.is_some() {
            self.count_outcome();
        }
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.is_valid = false;
        if !self.is_next_prefetched {
            self.prefetch_next_block(Direction::Forward);
        }
        self.move_to(self.block, self.entry + 1)
    }

    fn prev(&mut self) -> Result<()> {
        self.is_valid = false;
        if !self.is_next_prefetched {
            self.prefetch_next_block(Direction::Backward);
        }
        self.move_before(self.block, self.entry)
    }

    #[inline]
    fn is_only_version(&self, snapshot: Sequence) -> bool {
        self.plain_up_to.is_some_and(|largest| largest <= snapshot)
    }

    #[inline]
    fn is_at_edge(&self) -> bool {
        self.block == 0 || self.block + 1 == self.table.block_count()
    }

    #[inline]
    fn is_valid(&self) -> bool {
        self.is_valid
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.key.as_slice()
    }

    #[inline]
    fn sequence(&self) -> Sequence {
        self.sequence
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.kind
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.current.part(&self.table, self.value)
    }

    fn value_slice(&self) -> Slice {
        self.current.slice(&self.table, self.value)
    }
}

impl Drop for TableCursor {
    fn drop(&mut self) {
        let metrics = &self.table.environment().metrics;
        self.cost.add_to(metrics, self.place);
        let CandidateCounts { admitted, rejected, true_positives, false_positives } = self.candidates;
        if admitted + rejected > 0
            && let Some(reads) = self.place.and_then(|place| metrics.reads(place))
        {
            reads.admitted.add(admitted.into());
            reads.rejected.add(rejected.into());
            reads.true_positives.add(true_positives.into());
            reads.false_positives.add(false_positives.into());
        }
    }
}
