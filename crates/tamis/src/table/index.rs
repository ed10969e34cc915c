//! The block index of a table: built while blocks are written, read at open and used in place.
//!
//! A search compares 8-byte heads of the separators as integers: first every 16th head, which is copied at open so that it
//! stays in the L1 and L2 caches, then 16 neighbours. These are in two or three cache lines, which are prefetched together
//! with those of the positions next to them: a search waits for memory once. Whole separators are compared only if heads
//! are equal.
//!
//! Invariant: separators ascend. Equal separators are those of blocks that continue the versions of one key ("continued").

use std::ops::Range;

use super::{
    format::{INDEX_CONTINUED_LENGTH, INDEX_HEAD_LENGTH, INDEX_HEADER_LENGTH, INDEX_PACKED},
    section::SectionBytes,
};
use crate::{
    coding::{Decoder, length_u32, put_u32, put_u64},
    key::{BoundKind, Sequence},
};

/// One head of this many is copied into the sample.
const SAMPLE_INTERVAL: usize = 16;
/// Where the blocks of a table begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockPositions {
    /// At multiples of the block size: each block is padded to it.
    Aligned,
    /// Right after the previous block.
    Packed,
}

/// Collects one record per block.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    separators: Vec<u8>,
    separator_ends: Vec<usize>,
    positions: Vec<u64>,
    entries_before: Vec<u32>,
    continued: Vec<(u32, Sequence)>,
}

impl IndexBuilder {
    pub(super) fn block_count(&self) -> usize {
        self.positions.len()
    }

    /// Approximate bytes of the section so far.
    pub(super) fn estimated_bytes(&self) -> usize {
        INDEX_HEADER_LENGTH + self.positions.len() * 24 + self.separators.len()
    }

    /// Adds a block that begins at `position` with this entry; `last_key` is the last key of the previous block.
    pub(super) fn add_block(
        &mut self,
        last_key: Option<&[u8]>,
        first: (&[u8], Sequence),
        position: u64,
        entries_before: u32,
    ) {
        let (key, sequence) = first;
        if let Some(last) = last_key {
            let shared = tamis_bits::common_prefix_length(last, key);
            self.separators.extend_from_slice(key.get(..=shared).unwrap_or(key));
            if last == key {
                self.continued.push((length_u32(self.positions.len()), sequence));
            }
        }
        self.separator_ends.push(self.separators.len());
        self.positions.push(position);
        self.entries_before.push(entries_before);
    }

    /// The section's body. All keys of the table begin with the first `prefix_length` bytes of `smallest_key`.
    pub(super) fn finish(
        &self,
        smallest_key: &[u8],
        prefix_length: usize,
        block_bytes: u32,
        positions: BlockPositions,
        end: (u64, u32),
    ) -> Vec<u8> {
        let (data_end, entry_count) = end;
        let is_packed = positions == BlockPositions::Packed;
        let mut heads = Vec::new();
        let mut ends = vec![0_u32];
        let mut suffixes = Vec::new();
        let mut start = 0;
        for &separator_end in &self.separator_ends {
            let separator = self.separators.get(start..separator_end).unwrap_or_default();
            let suffix = separator.get(prefix_length..).unwrap_or_default();
            put_u64(&mut heads, head_of(suffix));
            suffixes.extend_from_slice(suffix);
            ends.push(length_u32(suffixes.len()));
            start = separator_end;
        }
        let mut body = Vec::with_capacity(self.estimated_bytes());
        put_u32(&mut body, length_u32(self.positions.len()));
        put_u32(&mut body, prefix_length as u32);
        put_u32(&mut body, if is_packed { INDEX_PACKED } else { 0 });
        put_u32(&mut body, block_bytes);
        put_u32(&mut body, length_u32(self.continued.len()));
        body.resize(INDEX_HEADER_LENGTH, 0);
        body.extend_from_slice(&heads);
        for &position in self.positions.iter().chain([&data_end]) {
            if is_packed {
                put_u64(&mut body, position);
            } else {
                put_u32(&mut body, (position / u64::from(block_bytes)) as u32);
            }
        }
        self.entries_before.iter().chain([&entry_count]).for_each(|&count| put_u32(&mut body, count));
        ends.iter().for_each(|&end| put_u32(&mut body, end));
        for &(block, sequence) in &self.continued {
            put_u32(&mut body, block);
            put_u64(&mut body, sequence);
        }
        body.extend_from_slice(smallest_key.get(..prefix_length).unwrap_or_default());
        body.extend_from_slice(&suffixes);
        body
    }
}

/// An index over verified bytes.
#[derive(Debug)]
pub(crate) struct Index {
    bytes: SectionBytes,
    block_count: usize,
    is_packed: bool,
    block_bytes: u32,
    continued_count: usize,
    prefix: Box<[u8]>,
    positions_start: usize,
    counts_start: usize,
    ends_start: usize,
    continued_start: usize,
    separators_start: usize,
    sample: Box<[u64]>,
}

impl Index {
    /// Checks that all parts are within the bytes; `None` otherwise.
    pub(super) fn open(bytes: SectionBytes) -> Option<Self> {
        let body = bytes.as_ref();
        let mut source = Decoder::new(body);
        let (block_count, prefix_length) = (source.take_u32()? as usize, source.take_u32()? as usize);
        let (flags, block_bytes) = (source.take_u32()?, source.take_u32()?);
        let continued_count = source.take_u32()? as usize;
        let is_packed = flags & INDEX_PACKED != 0;
        if block_count == 0 || flags > INDEX_PACKED || !block_bytes.is_power_of_two() {
            return None;
        }
        let positions_start = INDEX_HEADER_LENGTH.checked_add(block_count.checked_mul(INDEX_HEAD_LENGTH)?)?;
        let position_width = if is_packed { 8 } else { 4 };
        let counts_start = positions_start + position_width * (block_count + 1);
        let ends_start = counts_start + 4 * (block_count + 1);
        let continued_start = ends_start + 4 * (block_count + 1);
        let prefix_start = continued_start + INDEX_CONTINUED_LENGTH * continued_count;
        let separators_start = prefix_start + prefix_length;
        let prefix = body.get(prefix_start..separators_start)?.into();
        let heads = body.get(INDEX_HEADER_LENGTH..positions_start)?.as_chunks::<INDEX_HEAD_LENGTH>().0;
        let sample = heads.iter().step_by(SAMPLE_INTERVAL).map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let index = Self {
            block_count,
            is_packed,
            block_bytes,
            continued_count,
            prefix,
            positions_start,
            counts_start,
            ends_start,
            continued_start,
            separators_start,
            sample,
            bytes,
        };
        (index.separator_end(block_count)? == index.bytes.as_ref().len()).then_some(index)
    }

    pub(crate) const fn block_count(&self) -> usize {
        self.block_count
    }

    /// Bytes of memory that it uses.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.bytes.memory_bytes() + (self.sample.len() * 8 + self.prefix.len()) as u64
    }

    fn u32_at(&self, offset: usize) -> Option<u32> {
        self.bytes.as_ref().get(offset..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn u64_at(&self, offset: usize) -> Option<u64> {
        self.bytes.as_ref().get(offset..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn heads(&self) -> &[[u8; INDEX_HEAD_LENGTH]] {
        let bytes = self.bytes.as_ref().get(INDEX_HEADER_LENGTH..self.positions_start);
        bytes.unwrap_or_default().as_chunks().0
    }

    fn separator_end(&self, number: usize) -> Option<usize> {
        Some(self.separators_start + self.u32_at(self.ends_start + 4 * number)? as usize)
    }

    /// The separator of a block, without the prefix.
    fn suffix(&self, block: usize) -> &[u8] {
        let range = self.separator_end(block).zip(self.separator_end(block + 1));
        range.and_then(|(start, end)| self.bytes.as_ref().get(start..end)).unwrap_or_default()
    }

    /// Start and end of a block in the file; `None` past the last block, and if they do not ascend.
    pub(super) fn extent(&self, block: usize) -> Option<(u64, u64)> {
        if block >= self.block_count {
            return None;
        }
        let (start, end) = if self.is_packed {
            let offset = self.positions_start + 8 * block;
            (self.u64_at(offset)?, self.u64_at(offset + 8)?)
        } else {
            let offset = self.positions_start + 4 * block;
            let unit = u64::from(self.block_bytes);
            (u64::from(self.u32_at(offset)?) * unit, u64::from(self.u32_at(offset + 4)?) * unit)
        };
        (start < end).then_some((start, end))
    }

    /// Entries in all blocks before this one. For the block count: all entries.
    pub(crate) fn entries_before(&self, block: usize) -> u64 {
        self.u32_at(self.counts_start + 4 * block).unwrap_or_default().into()
    }

    /// The numbers in the table of the entries of a block; empty past the last block.
    pub(super) fn numbers_of(&self, block: usize) -> Range<u64> {
        if block < self.block_count {
            self.entries_before(block)..self.entries_before(block + 1)
        } else {
            0..0
        }
    }

    /// A range of blocks around the n-th entry, which exists. Blocks have similar numbers of entries, so the block in proportion
    /// is near; the steps from there double.
    fn blocks_near(&self, number: u64) -> (usize, usize) {
        let count = self.entries_before(self.block_count).max(1);
        let block = (u128::from(number) * self.block_count as u128 / u128::from(count)) as usize;
        let mut step = 1;
        if self.entries_before(block) <= number {
            let mut low = block;
            while low + step < self.block_count && self.entries_before(low + step) <= number {
                low += step;
                step *= 2;
            }
            return (low, (low + step).min(self.block_count));
        }
        let mut high = block;
        while step < high && self.entries_before(high - step) > number {
            high -= step;
            step *= 2;
        }
        (high.saturating_sub(step), high)
    }

    /// The block of the n-th entry of the table, and the entry's number in the block.
    pub(super) fn block_of_entry(&self, number: u64) -> Option<(usize, usize)> {
        if number >= self.entries_before(self.block_count) {
            return None;
        }
        let (mut low, mut high) = self.blocks_near(number);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.entries_before(middle) <= number { low = middle } else { high = middle }
        }
        let within = number.checked_sub(self.entries_before(low))?;
        Some((low, usize::try_from(within).ok()?))
    }

    /// Prefetches the heads and positions of the sample interval that begins with block `start`.
    #[inline]
    fn prefetch_window(&self, start: usize) {
        let bytes = self.bytes.as_ref();
        let width = if self.is_packed { 8 } else { 4 };
        let heads = INDEX_HEADER_LENGTH + INDEX_HEAD_LENGTH * start;
        let positions = self.positions_start + width * start;
        for (from, length) in
            [(heads, INDEX_HEAD_LENGTH * SAMPLE_INTERVAL), (positions, width * SAMPLE_INTERVAL)]
        {
            for offset in (0..=length).step_by(tamis_bits::CACHE_LINE) {
                tamis_bits::prefetch(bytes, from + offset);
            }
        }
    }

    /// The number of separators below `key`, or at most `key` if it is included.
    fn rank(&self, key: &[u8], kind: BoundKind) -> usize {
        let Some(suffix) = key.strip_prefix(&*self.prefix) else {
            return if *key < *self.prefix { 0 } else { self.block_count };
        };
        let head = head_of(suffix);
        // Heads at or below `head` end within one sample interval.
        let samples = self.sample.partition_point(|&sample| sample <= head);
        let start = samples.saturating_sub(1) * SAMPLE_INTERVAL;
        self.prefetch_window(start);
        let heads = self.heads();
        let window = heads.get(start..(start + SAMPLE_INTERVAL).min(heads.len())).unwrap_or_default();
        let count = |bytes: &[u8; INDEX_HEAD_LENGTH]| usize::from(u64::from_le_bytes(*bytes) <= head);
        let upper = start + window.iter().map(count).sum::<usize>();
        let is_equal =
            |block: usize| heads.get(block).is_some_and(|bytes| u64::from_le_bytes(*bytes) == head);
        if upper == 0 || !is_equal(upper - 1) {
            return upper;
        }
        let mut low = start + window.partition_point(|bytes| u64::from_le_bytes(*bytes) < head);
        if low == start {
            // Equal heads may begin before the window.
            low = heads.partition_point(|bytes| u64::from_le_bytes(*bytes) < head);
        }
        let mut high = upper;
        while low < high {
            let middle = low + (high - low) / 2;
            let separator = self.suffix(middle);
            if kind.is_within(separator, suffix) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The block that contains (`key`, `sequence`), or would contain it. If all entries of that block are before it, the
    /// first entry of the next block is the first one after it.
    pub(super) fn block_of(&self, key: &[u8], sequence: Sequence) -> usize {
        let block = self.rank(key, BoundKind::Included).saturating_sub(1);
        if self.continued_count == 0 || key.strip_prefix(&*self.prefix) != Some(self.suffix(block)) {
            return block;
        }
        self.first_continued(block, sequence)
    }

    /// The blocks that may have keys from `lower` to `upper`.
    pub(super) fn blocks_within(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Range<usize> {
        let first = lower.map_or(0, |key| self.block_of(key, Sequence::MAX));
        first..upper.map_or(self.block_count, |key| self.block_of(key, 0) + 1)
    }

    /// `block` is the last one of the blocks that continue the key of its separator. Of these blocks, the last one that
    /// does not begin below `sequence`.
    fn first_continued(&self, block: usize, sequence: Sequence) -> usize {
        let mut block = block;
        // The continued blocks of a key are adjacent, so the records of the last one lead to the others.
        let Some(mut record) = self.continued_record(block) else { return block };
        while let Some((number, first)) = self.continued_at(record) {
            if number != block || first >= sequence {
                break;
            }
            block -= 1;
            match record.checked_sub(1) {
                Some(before) if self.suffix(block) == self.suffix(block + 1) => record = before,
                _ => break,
            }
        }
        block
    }

    fn continued_at(&self, record: usize) -> Option<(usize, Sequence)> {
        let offset = self.continued_start + INDEX_CONTINUED_LENGTH * record;
        Some((self.u32_at(offset)? as usize, self.u64_at(offset + 4)?))
    }

    /// The record of a block that continues the key of the block before it.
    fn continued_record(&self, block: usize) -> Option<usize> {
        let (mut low, mut high) = (0, self.continued_count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.continued_at(middle)?.0 < block { low = middle + 1 } else { high = middle }
        }
        (low < self.continued_count && self.continued_at(low)?.0 == block).then_some(low)
    }

    /// Whether a block begins with the key that the block before it ends with.
    pub(super) fn is_continued(&self, block: usize) -> bool {
        self.continued_count > 0 && self.continued_record(block).is_some()
    }

    /// The last block that may have a key below `key` (or at it, if it is included). If it has none, the last entry of the previous block
    /// is the result.
    pub(super) fn block_for_prev(&self, key: &[u8], kind: BoundKind) -> usize {
        self.rank(key, kind).saturating_sub(1)
    }

    /// Whether the separator of the block is above the last key before it and not above its first key. For `verify`.
    pub(super) fn separates(&self, block: usize, last_key_before: Option<&[u8]>, first_key: &[u8]) -> bool {
        let Some(first) = first_key.strip_prefix(&*self.prefix) else { return false };
        let separator = self.suffix(block);
        let before = last_key_before.and_then(|key| key.strip_prefix(&*self.prefix));
        let is_above = match before {
            None => block == 0,
            Some(before) if self.is_continued(block) => before == separator,
            Some(before) => before < separator,
        };
        is_above && separator <= first
    }
}

/// The first 8 bytes as a number, padded with zeros.
fn head_of(suffix: &[u8]) -> u64 {
    match suffix.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            suffix.iter().fold(0, |head, &byte| head << 8 | u64::from(byte))
                << (8 * (INDEX_HEAD_LENGTH - suffix.len()).min(7))
        }
    }
}
