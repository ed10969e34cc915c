//! Reads several blocks of a table with one read, for those who go through it in order.
//!
//! Only where tables are not mapped: the system reads ahead in mappings by itself. Two ways:
//!
//! 1. A **job** (compaction, refilter, verify, salvage) reads the whole table and knows it: it reads [`JOB_BYTES`] at once from
//!    the first block on, into memory that it keeps from table to table. Uncompressed blocks are used where they lie in it.
//! 2. A **scan** may end after any step. Its first two blocks are read alone, as a point read does it; from the third
//!    neighbour on a read is twice as long as what the scan used of the read before, at most [`SCAN_BYTES`]: 1, 1, 2, 4, ... blocks.
//!    So a scan that stops early has read at most about as much in vain as it used, and blocks that are in the cache anyway
//!    make the reads shorter again. The same backward.
//!
//! A scan that has bounds reads nothing ahead that lies behind them.
//!
//! Invariants: only whole data blocks are read ahead; each block is verified by itself when it is used, so damage is found where it
//! is and never earlier; a long read that fails is passed over, and each of its blocks is then read alone, so that the error names the
//! right one and all others stay readable.
//!
//! Memory: at most [`JOB_BYTES`] or [`SCAN_BYTES`] and three pages for each cursor over a table, and none before a scan's third
//! neighbour; larger blocks are read alone. A compaction has as many cursors as it has runs for input.

use std::{fmt::Debug, ops::Range, sync::Arc};

use super::{environment::ReadCost, format::FILE_ALIGNMENT, index::Index, section::Source};
use crate::key::Sequence;

/// Bytes that a job reads at once.
pub(super) const JOB_BYTES: u64 = 512 << 10;
/// The most bytes that a scan reads at once.
pub(super) const SCAN_BYTES: u64 = 256 << 10;

/// The keys between which a scan goes.
pub(crate) trait Limits: Debug + Send + Sync {
    /// The least key, if there is a bound.
    fn lower(&self) -> Option<&[u8]>;
    /// The greatest key, if there is a bound.
    fn upper(&self) -> Option<&[u8]>;
}

/// See the head of this file. It belongs to one table at a time.
#[derive(Debug)]
pub(super) struct ReadAhead {
    is_job: bool,
    limits: Option<Arc<dyn Limits>>,
    /// The blocks of the table within the limits, once they were looked for.
    within: Option<Range<usize>>,
    /// Memory of the last long read, with room to begin at an aligned address; none before the first.
    buffer: Option<Arc<[u8]>>,
    /// The blocks that were read last, alone or together, and how many bytes of them were used.
    blocks: Range<usize>,
    used_bytes: u64,
    /// How those lay to the ones before.
    order: Order,
    /// Of those blocks, the bytes of the file that lie in `buffer`, and where they begin in it.
    held: Range<u64>,
    held_start: usize,
    /// Blocks of a read that failed: they are read alone.
    failed: Range<usize>,
}

/// How a read lies to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    None,
    Forward,
    Backward,
}

/// The raw bytes of a block within shared memory.
#[derive(Debug)]
pub(super) struct RawBlock<'a> {
    pub(super) bytes: &'a Arc<[u8]>,
    pub(super) start: usize,
    pub(super) length: usize,
}

impl ReadAhead {
    /// For one who reads all of a table.
    pub(super) fn of_job() -> Self {
        Self::new(true, None)
    }

    /// For one who may stop at any block, and does so at the limits.
    pub(super) fn of_scan(limits: Option<Arc<dyn Limits>>) -> Self {
        Self::new(false, limits)
    }

    fn new(is_job: bool, limits: Option<Arc<dyn Limits>>) -> Self {
        Self {
            is_job,
            limits,
            within: None,
            buffer: None,
            blocks: 0..0,
            used_bytes: 0,
            order: Order::None,
            held: 0..0,
            held_start: 0,
            failed: 0..0,
        }
    }

    pub(super) const fn is_job(&self) -> bool {
        self.is_job
    }

    /// Another table follows. The memory is kept.
    pub(super) fn forget(&mut self) {
        (self.blocks, self.held, self.failed) = (0..0, 0..0, 0..0);
        (self.used_bytes, self.order, self.within) = (0, Order::None, None);
    }

    /// The bytes of a block at `extent`, read with its neighbours now or before; `None` where it is to be read alone. `cost` is
    /// that of the reads made here.
    pub(super) fn block(
        &mut self,
        source: &Source,
        index: &Index,
        block: usize,
        extent: (u64, u64),
        cost: &mut ReadCost,
    ) -> Option<RawBlock<'_>> {
        let length = extent.1 - extent.0;
        if !(self.held.start <= extent.0 && extent.1 <= self.held.end) {
            self.blocks = self.plan(index, block, extent);
            self.used_bytes = 0;
            self.held = 0..0;
            if self.blocks.len() > 1 || self.is_job && length <= JOB_BYTES {
                self.read(source, index, cost);
            }
        }
        self.used_bytes += length;
        let is_held = self.held.start <= extent.0 && extent.1 <= self.held.end;
        let bytes = self.buffer.as_ref().filter(|_| is_held)?;
        let start = self.held_start + (extent.0 - self.held.start) as usize;
        Some(RawBlock { bytes, start, length: length as usize })
    }

    /// Which blocks to read with `block`.
    fn plan(&mut self, index: &Index, block: usize, extent: (u64, u64)) -> Range<usize> {
        let order = match &self.blocks {
            blocks if blocks.is_empty() || self.failed.contains(&block) => Order::None,
            blocks if blocks.end == block => Order::Forward,
            blocks if blocks.start == block + 1 => Order::Backward,
            _ => Order::None,
        };
        let is_third = std::mem::replace(&mut self.order, order) == order && order != Order::None;
        let bytes = match self.is_job {
            _ if self.failed.contains(&block) => 0,
            true => JOB_BYTES,
            false if is_third => (2 * self.used_bytes).min(SCAN_BYTES),
            false => 0,
        };
        if bytes == 0 {
            return block..block + 1;
        }
        let within = self.within(index);
        if order == Order::Backward {
            let is_before =
                |other| index.extent(other).is_none_or(|(start, _)| start.saturating_add(bytes) < extent.1);
            return partition_point(within.start.min(block)..block, is_before)..block + 1;
        }
        let fits = |other| index.extent(other).is_some_and(|(_, end)| end <= extent.0.saturating_add(bytes));
        block..partition_point(block + 1..within.end.max(block + 1), fits)
    }

    /// The blocks that can hold keys within the limits.
    fn within(&mut self, index: &Index) -> Range<usize> {
        if let Some(within) = &self.within {
            return within.clone();
        }
        let (lower, upper) =
            self.limits.as_ref().map_or((None, None), |limits| (limits.lower(), limits.upper()));
        let first = lower.map_or(0, |key| index.block_of(key, Sequence::MAX));
        let end = upper.map_or(index.block_count(), |key| index.block_of(key, 0) + 1);
        self.within.insert(first..end).clone()
    }

    /// Reads `self.blocks` into the buffer.
    fn read(&mut self, source: &Source, index: &Index, cost: &mut ReadCost) {
        let ends = index.extent(self.blocks.start).zip(index.extent(self.blocks.end - 1));
        let Some(((start, _), (_, end))) = ends.filter(|((start, _), (_, end))| start < end) else { return };
        if end > source.length {
            return;
        }
        let Ok(length) = usize::try_from(end - start) else { return };
        let needed = length + 3 * FILE_ALIGNMENT;
        let may_keep = |buffer: &mut Arc<[u8]>| buffer.len() >= needed && Arc::get_mut(buffer).is_some();
        if !self.buffer.as_mut().is_some_and(may_keep) {
            // Too short, or somebody holds a part of it.
            let whole = if self.is_job { JOB_BYTES as usize + 3 * FILE_ALIGNMENT } else { needed };
            self.buffer = Some(std::iter::repeat_n(0, whole).collect());
        }
        let Some(bytes) = self.buffer.as_mut().and_then(Arc::get_mut) else { return };
        let aligned = bytes.as_ptr().align_offset(FILE_ALIGNMENT).min(FILE_ALIGNMENT);
        let Some(target) = bytes.get_mut(aligned..) else { return };
        match source.read_aligned(start, length, target) {
            Ok((skipped, read)) => {
                cost.bytes_read += read as u64;
                self.held = start..end;
                self.held_start = aligned + skipped;
            }
            Err(_) => self.failed = self.blocks.clone(),
        }
    }
}

/// The first number of the range that the predicate does not hold for; its end where it holds for all.
fn partition_point(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start.midpoint(end);
        if is_before(middle) { start = middle + 1 } else { end = middle }
    }
    start
}
