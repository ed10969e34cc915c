//! Decides whether a flush bypasses the page cache (direct I/O).
//!
//! During a bulk load of ascending keys memtables fill one after the other. The copy of each table into new pages of the page
//! cache, and the sync that waits for these pages, then limit the writers. No reader needs the pages soon: such a table overlaps
//! no other, is moved down the levels without a rewrite, and no merge reads it. So it is written with direct I/O. Cost: the first
//! reads of the table come from the disk.
//!
//! All conditions of [`Flush::bypasses_page_cache`] must hold. Three kinds of tables are written to the page cache: those that will be
//! merged soon, those of a store with many reads, and those whose flushes keep up with the writers anyway.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Writers that take longer than this to fill a memtable do not wait for flushes.
const FILL_TIME_MAX: Duration = Duration::from_secs(1);
/// A flush keeps up with the writers if it takes less than this fraction of the time to fill a memtable.
const FILL_TIME_SHARE: u32 = 4;
/// Smaller memtables are flushed through the page cache: there is little to save.
const MEMTABLE_BYTES_MIN: usize = 8 << 20;
/// A store has few reads if they read less than this fraction of the flushed bytes.
const READ_SHARE: u64 = 16;
const MIB: u64 = 1 << 20;

/// The facts that are known when a flush begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flush {
    /// The time between the last two full memtables; `None` if there were fewer than two.
    pub(super) fill_time: Option<Duration>,
    /// The expected time of this flush through the page cache, from the pace of the last one; `None` before the first.
    pub(super) cached_flush_time: Option<Duration>,
    /// Bytes of the memtable.
    pub(super) memtable_bytes: usize,
    /// Bytes of blocks that were read since the last flush.
    pub(super) read_bytes: u64,
    /// Whether most entries overlap no table ([`super::flush_split`]).
    pub(super) is_disjoint: bool,
}

impl Flush {
    /// See the head of this file.
    pub(super) fn bypasses_page_cache(&self) -> bool {
        let (Some(fill_time), Some(flush_time)) = (self.fill_time, self.cached_flush_time) else {
            return false;
        };
        self.is_disjoint
            && self.memtable_bytes >= MEMTABLE_BYTES_MIN
            && fill_time < FILL_TIME_MAX.min(flush_time * FILL_TIME_SHARE)
            && self.read_bytes < self.memtable_bytes as u64 / READ_SHARE
    }
}

/// The pace of the last flush through the page cache.
#[derive(Debug, Default)]
pub(super) struct CachedPace {
    /// Nanoseconds per MiB; 0 before the first flush.
    nanoseconds: AtomicU64,
}

impl CachedPace {
    pub(super) fn note(&self, bytes: usize, time: Duration) {
        let nanoseconds = time.as_nanos() * u128::from(MIB) / (bytes as u128).max(1);
        self.nanoseconds.store(u64::try_from(nanoseconds).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
    }

    /// The expected time for a number of bytes; `None` before the first flush.
    pub(super) fn time_of(&self, bytes: usize) -> Option<Duration> {
        let nanoseconds = Some(self.nanoseconds.load(Ordering::Relaxed)).filter(|&pace| pace > 0)?;
        Some(Duration::from_nanos(nanoseconds.saturating_mul(bytes as u64) / MIB))
    }
}

#[cfg(test)]
mod tests;
