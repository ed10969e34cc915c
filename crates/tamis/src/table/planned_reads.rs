//! The reads of several ranges, planned together before the first block is read.
//!
//! Ranges that a program gives at once often need the same blocks of a table, or adjacent ones. Blocks that are needed twice and adjacent
//! blocks become one planned read. The first scan that needs one of its blocks reads them all; the others take their blocks from there. So
//! each block is read once without a cache, too, and with fewer reads.
//!
//! Only for tables that are not mapped. Blocks that are cached already are left out, and so are ranges of more than [`RANGE_BLOCKS_MAX`]
//! blocks, which may not be read to their ends: the usual read-ahead serves them.
//!
//! Each block is verified when a scan uses it. A planned read that fails is ignored, and each of its blocks is read alone.
//!
//! Memory: at most [`PLAN_BYTES_MAX`] for all ranges of a call, twice that while blocks are compressed. A planned read is dropped with the last
//! scan that needs it.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use super::{
    index::Index,
    long_read::{LongRead, PlannedRead},
    read_ahead::{Limits, SCAN_BYTES},
    reader::TableReader,
};

/// A range with more blocks of a table is not planned.
const RANGE_BLOCKS_MAX: usize = 4;
/// Bytes of all planned reads of a call; further ranges are read as if each was alone.
const PLAN_BYTES_MAX: u64 = 16 << 20;

/// The entries of a table that the scan of a range may read.
#[derive(Clone)]
enum Needed<'a> {
    /// Those within its bounds.
    Within(&'a dyn Limits),
    /// Those with these numbers: a sorted view knows them.
    Numbered(Range<u64>),
}

impl Needed<'_> {
    fn blocks(&self, index: &Index) -> Range<usize> {
        match self {
            Self::Within(limits) => index.blocks_within(limits.lower(), limits.upper()),
            Self::Numbered(numbers) => {
                let block = |number| index.block_of_entry(number).map(|(block, _)| block);
                let last = numbers.end.checked_sub(1).and_then(block);
                match (block(numbers.start), last) {
                    (Some(first), Some(last)) => first..last + 1,
                    _ => 0..0,
                }
            }
        }
    }
}

/// A table with the numbers of the ranges that may read it, and what each of them needs.
struct SharedTable<'a> {
    table: &'a Arc<TableReader>,
    ranges: Vec<(usize, Needed<'a>)>,
}

impl SharedTable<'_> {
    /// The blocks that ranges need, each with the number of a range, in order.
    fn needed_blocks(&self, index: &Index) -> Vec<(usize, usize)> {
        let (file_number, cache) = (self.table.data().file_number, &self.table.environment().cache);
        let is_cached =
            |&block: &usize| index.extent(block).is_none_or(|(start, _)| cache.contains(file_number, start));
        let mut needed = Vec::new();
        for (range_number, entries) in &self.ranges {
            let (range_number, blocks) = (*range_number, entries.blocks(index));
            if blocks.len() <= RANGE_BLOCKS_MAX {
                needed.extend(blocks.filter(|block| !is_cached(block)).map(|block| (block, range_number)));
            }
        }
        needed.sort_unstable();
        needed
    }
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct ReadPlanner<'a> {
    /// By the numbers of their files.
    tables: BTreeMap<u64, SharedTable<'a>>,
}

impl<'a> ReadPlanner<'a> {
    /// Adds a table that the scan of a range may read.
    pub(crate) fn add(&mut self, table: &'a Arc<TableReader>, range_number: usize, limits: &'a dyn Limits) {
        self.add_entries(table, range_number, Needed::Within(limits));
    }

    /// As [`ReadPlanner::add`], for a table of which the scan may read the entries with these numbers.
    pub(crate) fn add_numbered(
        &mut self,
        table: &'a Arc<TableReader>,
        range_number: usize,
        numbers: Range<u64>,
    ) {
        self.add_entries(table, range_number, Needed::Numbered(numbers));
    }

    fn add_entries(&mut self, table: &'a Arc<TableReader>, range_number: usize, entries: Needed<'a>) {
        if !table.is_mapped() {
            let new = || SharedTable { table, ranges: Vec::new() };
            let shared = self.tables.entry(table.data().file_number).or_insert_with(new);
            shared.ranges.push((range_number, entries));
        }
    }

    /// The planned reads of each range. A table that can't be read reports its error to the scan.
    pub(crate) fn finish(self, range_count: usize) -> Vec<Vec<Arc<PlannedRead>>> {
        let mut reads: Vec<Vec<Arc<PlannedRead>>> = vec![Vec::new(); range_count];
        let mut bytes_left = PLAN_BYTES_MAX;
        for shared in self.tables.into_values().filter(|shared| shared.ranges.len() > 1) {
            let Ok(index) = shared.table.index() else { continue };
            let data = shared.table.data();
            let needed = shared.needed_blocks(&index);
            let mut rest = needed.as_slice();
            while !rest.is_empty() {
                let (count, read) = next_read(&index, rest);
                let (together, others) = rest.split_at(count);
                rest = others;
                let length = read.bytes.end - read.bytes.start;
                if count < 2 || length > bytes_left || read.bytes.end > data.source.length {
                    continue;
                }
                bytes_left -= length;
                let read = Arc::new(PlannedRead::new(data.file_number, read));
                for &(_, range_number) in together {
                    if let Some(of_range) = reads.get_mut(range_number)
                        && !of_range.last().is_some_and(|last| Arc::ptr_eq(last, &read))
                    {
                        of_range.push(Arc::clone(&read));
                    }
                }
            }
        }
        reads
    }
}

/// The read that begins with the first needed block, and how many of the needed blocks, which are in order, it has.
fn next_read(index: &Index, needed: &[(usize, usize)]) -> (usize, LongRead) {
    let first = needed.first().map_or(0, |(block, _)| *block);
    let (mut blocks, mut bytes, mut count) = (first..first, 0..0, 0);
    for &(block, _) in needed {
        if block > blocks.end {
            break;
        }
        if block == blocks.end {
            let Some((start, end)) = index.extent(block) else { break };
            if blocks.is_empty() {
                bytes.start = start;
            } else if end - bytes.start > SCAN_BYTES {
                break;
            }
            (blocks.end, bytes.end) = (block + 1, end);
        }
        count += 1;
    }
    (count.max(1), LongRead::new(blocks, bytes))
}
