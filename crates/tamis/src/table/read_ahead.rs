//! Read-ahead: reads several blocks of a table with one read, for sequential readers.
//!
//! Only for tables that are not mapped: the system reads ahead in mappings. There are two modes:
//!
//! 1. A **job** (compaction, refilter, scrub) reads the whole table: [`JOB_BYTES`] at once from the first block
//!    on, into a buffer that it reuses from table to table. Uncompressed blocks are used in place in that buffer.
//! 2. A **scan** may end after any step. Its first two blocks are read alone, as for a point read. From the third adjacent
//!    block on, a read is as long as the bytes that the scan used of all earlier reads, at most [`SCAN_BYTES`]: 1, 1, 2, 4,
//!    ... blocks. So a scan that stops early has read at most as many unused bytes as used ones. Cached blocks in between
//!    make the reads shorter again. Backward scans do the same.
//!
//! A scan with bounds does not read ahead beyond them.
//!
//! Invariants: only whole data blocks are read ahead. Each block is verified separately when it is used, so damage is found
//! in the damaged block and not earlier. A failed long read is ignored, and each of its blocks is then read alone, so that
//! the error names the right block and all others stay readable.
//!
//! Memory: at most [`JOB_BYTES`] or [`SCAN_BYTES`] and three pages for each cursor over a table, and none before a scan's third
//! adjacent block. Larger blocks are read alone. A compaction has one cursor for each input run.

use std::{fmt::Debug, ops::Range, sync::Arc};

use super::{environment::ReadCost, format::FILE_ALIGNMENT, index::Index, section::Source};

/// Bytes that a job reads at once.
pub(super) const JOB_BYTES: u64 = 512 << 10;
/// The most bytes that a scan reads at once.
pub(super) const SCAN_BYTES: u64 = 256 << 10;

/// The key bounds of a scan.
pub(crate) trait Limits: Debug + Send + Sync {
    /// The least key, if there is a bound.
    fn lower(&self) -> Option<&[u8]>;
    /// The greatest key, if there is a bound.
    fn upper(&self) -> Option<&[u8]>;
}

/// The bytes of several adjacent blocks, which were read at once.
#[derive(Debug)]
struct LongRead {
    /// Their range in the file.
    bytes: Range<u64>,
    content: Arc<[u8]>,
    /// The offset of the blocks in the content.
    start: usize,
}

impl LongRead {
    const fn covers(&self, extent: (u64, u64)) -> bool {
        self.bytes.start <= extent.0 && extent.1 <= self.bytes.end
    }
}

/// See the head of this file. It is for one table at a time.
#[derive(Debug)]
pub(super) struct ReadAhead {
    is_job: bool,
    limits: Option<Arc<dyn Limits>>,
    /// The blocks of the table within the limits, once they are known.
    within: Option<Range<usize>>,
    /// The last long read.
    long: Option<LongRead>,
    /// A buffer for the next long read.
    reusable: Option<Arc<[u8]>>,
    /// The blocks that were read last, alone or together.
    blocks: Range<usize>,
    /// Their order relative to the blocks before, and the bytes that were used of all reads in that order.
    order: Order,
    used_bytes: u64,
    /// Blocks of a failed read: they are read alone.
    failed: Range<usize>,
}

/// The order of a read relative to the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    None,
    Forward,
    Backward,
}

/// The raw bytes of a block in a shared buffer.
#[derive(Debug)]
pub(super) struct RawBlock<'a> {
    pub(super) bytes: &'a Arc<[u8]>,
    pub(super) start: usize,
    pub(super) length: usize,
}

impl ReadAhead {
    /// For a job, which reads the whole table.
    pub(super) fn of_job() -> Self {
        Self::new(true, None)
    }

    /// For a scan, which may stop at any block, and stops at the limits.
    pub(super) fn of_scan(limits: Option<Arc<dyn Limits>>) -> Self {
        Self::new(false, limits)
    }

    fn new(is_job: bool, limits: Option<Arc<dyn Limits>>) -> Self {
        Self {
            is_job,
            limits,
            within: None,
            long: None,
            reusable: None,
            blocks: 0..0,
            order: Order::None,
            used_bytes: 0,
            failed: 0..0,
        }
    }

    pub(super) const fn is_job(&self) -> bool {
        self.is_job
    }

    /// Prepares for another table. The buffer is reused.
    pub(super) fn reset(&mut self) {
        self.drop_read();
        (self.blocks, self.failed) = (0..0, 0..0);
        (self.used_bytes, self.order, self.within) = (0, Order::None, None);
    }

    /// The bytes of the block at `extent`, read with its neighbours now or before; `None` if it must be read alone. `cost`
    /// counts the reads made here.
    pub(super) fn block(
        &mut self,
        (source, index): (&Source, &Index),
        block: usize,
        extent: (u64, u64),
        cost: &mut ReadCost,
    ) -> Option<RawBlock<'_>> {
        let length = extent.1 - extent.0;
        if !self.long.as_ref().is_some_and(|read| read.covers(extent)) {
            self.drop_read();
            self.blocks = self.plan(index, block, extent);
            if self.blocks.len() > 1 || self.is_job && length <= JOB_BYTES {
                self.long = self.read(source, index, cost);
                if self.long.is_none() {
                    self.failed = self.blocks.clone();
                }
            }
        }
        self.use_bytes(length);
        let read = self.long.as_ref().filter(|read| read.covers(extent))?;
        let start = read.start + (extent.0 - read.bytes.start) as usize;
        Some(RawBlock { bytes: &read.content, start, length: length as usize })
    }

    /// Whether the used bytes allow reads of the greatest length.
    pub(super) const fn is_long_scan(&self) -> bool {
        !self.is_job && self.used_bytes >= SCAN_BYTES
    }

    /// Records a block that was found in the cache.
    pub(super) fn record_cached(&mut self, block: usize, extent: (u64, u64)) {
        let length = extent.1 - extent.0;
        if self.long.as_ref().is_some_and(|read| read.covers(extent)) {
            self.use_bytes(length);
            return;
        }
        let order = self.order_of(block);
        if order != Order::None {
            self.used_bytes = if order == self.order { self.used_bytes.saturating_sub(length) } else { 0 };
            (self.order, self.blocks) = (order, block..block + 1);
        }
    }

    /// Capped, so that the length of reads adapts soon.
    fn use_bytes(&mut self, length: u64) {
        self.used_bytes = (self.used_bytes + length).min(2 * SCAN_BYTES);
    }

    /// Drops the last read. Its buffer is reused.
    fn drop_read(&mut self) {
        if let Some(read) = self.long.take() {
            self.reusable = Some(read.content);
        }
    }

    /// The order of a block relative to the blocks that were read last.
    fn order_of(&self, block: usize) -> Order {
        match &self.blocks {
            blocks if blocks.is_empty() || self.failed.contains(&block) => Order::None,
            blocks if blocks.end == block => Order::Forward,
            blocks if blocks.start == block + 1 => Order::Backward,
            _ => Order::None,
        }
    }

    /// The blocks to read with `block`.
    fn plan(&mut self, index: &Index, block: usize, extent: (u64, u64)) -> Range<usize> {
        let order = self.order_of(block);
        let before = std::mem::replace(&mut self.order, order);
        // The first step in a direction follows a single block.
        if order != before && (before != Order::None || order == Order::None) {
            self.used_bytes = 0;
        }
        let is_third = order == before && order != Order::None;
        let bytes = match self.is_job {
            _ if self.failed.contains(&block) => 0,
            true => JOB_BYTES,
            false if is_third => self.used_bytes.min(SCAN_BYTES),
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
        let fitting = blocks_from(index, block, within.end, bytes);
        block..fitting.end.max(block + 1)
    }

    /// The blocks that may have keys within the limits.
    fn within(&mut self, index: &Index) -> Range<usize> {
        if let Some(within) = &self.within {
            return within.clone();
        }
        let (lower, upper) =
            self.limits.as_ref().map_or((None, None), |limits| (limits.lower(), limits.upper()));
        let within = index.blocks_within(lower, upper);
        self.within.insert(within).clone()
    }

    /// Reads the planned blocks at once; `None` if that fails.
    fn read(&mut self, source: &Source, index: &Index, cost: &mut ReadCost) -> Option<LongRead> {
        let ends = index.extent(self.blocks.start).zip(index.extent(self.blocks.end - 1));
        let ((start, _), (_, end)) = ends.filter(|((start, _), (_, end))| start < end)?;
        if end > source.length {
            return None;
        }
        let length = usize::try_from(end - start).ok()?;
        let mut content = self.buffer(length + 3 * FILE_ALIGNMENT);
        let bytes = Arc::get_mut(&mut content)?;
        let aligned = bytes.as_ptr().align_offset(FILE_ALIGNMENT).min(FILE_ALIGNMENT);
        let (skipped, bytes_read) = source.read_aligned(start, length, bytes.get_mut(aligned..)?).ok()?;
        cost.bytes_read += bytes_read as u64;
        Some(LongRead { bytes: start..end, content, start: aligned + skipped })
    }

    /// A buffer of at least `needed` bytes: that of the last read, unless it is too short or a part of it is shared.
    fn buffer(&mut self, needed: usize) -> Arc<[u8]> {
        let can_reuse = |buffer: &mut Arc<[u8]>| buffer.len() >= needed && Arc::get_mut(buffer).is_some();
        let reused = self.reusable.take().and_then(|mut buffer| can_reuse(&mut buffer).then_some(buffer));
        reused.unwrap_or_else(|| {
            let length = if self.is_job { job_buffer_bytes(needed) } else { needed };
            std::iter::repeat_n(0, length).collect()
        })
    }
}

/// The length of a new buffer of a job for a read of `needed` bytes. Many tables are small, and filling a buffer takes longer than reading one;
/// in one that is a bit longer the job can read the next ones, too.
fn job_buffer_bytes(needed: usize) -> usize {
    needed.next_power_of_two().min(JOB_BYTES as usize + 3 * FILE_ALIGNMENT).max(needed)
}

/// The blocks from `block` on, before `end`, that are within this many bytes; perhaps none.
fn blocks_from(index: &Index, block: usize, end: usize, bytes: u64) -> Range<usize> {
    let Some((start, _)) = index.extent(block).filter(|_| block < end) else { return block..block };
    let fits = |other| index.extent(other).is_some_and(|(_, end)| end <= start.saturating_add(bytes));
    block..partition_point(block..end, fits)
}

/// The first number of the range for which the predicate is false; its end if there is none.
fn partition_point(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start.midpoint(end);
        if is_before(middle) { start = middle + 1 } else { end = middle }
    }
    start
}
