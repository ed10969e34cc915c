//! Whether a flush is written past the page cache.
//!
//! Keys that come in order and as fast as the store takes them fill one memtable after the other; what holds them back is the copy of
//! each table into new pages of the page cache, and the sync that waits for them. Nothing asks for those pages soon: such a table
//! lies apart from all others, goes down the levels as it is, and is read by no merge. So it is written past them.
//! The price is paid by the first reads of such a table, which come from the disk.
//!
//! All of [`Flush::goes_past_the_page_cache`] has to hold, so that a table that is read soon goes through the page cache: one that will be
//! merged, one of a store that is also read; and one where flushes keep up with the writers anyway.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// A memtable that takes longer to be filled waits for no flush.
const FILL_TIME_MAX: Duration = Duration::from_secs(1);
/// A flush that takes less than one in so many parts of the time in which the next memtable is filled keeps up.
const FILL_TIME_SHARE: u32 = 4;
/// Below this many bytes there is little to save.
const MEMTABLE_BYTES_MIN: usize = 8 << 20;
/// A store is hardly read if fewer bytes of blocks are than one for so many that are flushed.
const READ_SHARE: u64 = 16;
const MIB: u64 = 1 << 20;

/// What is known when a flush begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flush {
    /// The time between the last two memtables that were full; `None` where fewer were.
    pub(super) fill_time: Option<Duration>,
    /// How long a flush of this size through the page cache takes, by the last one; `None` before the first.
    pub(super) cached_flush_time: Option<Duration>,
    /// Bytes of the memtable.
    pub(super) memtable_bytes: usize,
    /// Bytes of blocks that were read since the last flush.
    pub(super) read_bytes: u64,
    /// Whether no table overlaps the memtable, but for its edges ([`super::flush_split`]).
    pub(super) is_apart: bool,
}

impl Flush {
    /// See the head of this file.
    pub(super) fn goes_past_the_page_cache(&self) -> bool {
        let (Some(fill_time), Some(flush_time)) = (self.fill_time, self.cached_flush_time) else {
            return false;
        };
        self.is_apart
            && self.memtable_bytes >= MEMTABLE_BYTES_MIN
            && fill_time < FILL_TIME_MAX.min(flush_time * FILL_TIME_SHARE)
            && self.read_bytes < self.memtable_bytes as u64 / READ_SHARE
    }
}

/// The pace of flushes through the page cache.
#[derive(Debug, Default)]
pub(super) struct CachedPace {
    /// Nanoseconds for a MiB of the last one; 0 for none.
    nanoseconds: AtomicU64,
}

impl CachedPace {
    pub(super) fn note(&self, bytes: usize, time: Duration) {
        let nanoseconds = time.as_nanos() * u128::from(MIB) / (bytes as u128).max(1);
        self.nanoseconds.store(u64::try_from(nanoseconds).unwrap_or(u64::MAX).max(1), Ordering::Relaxed);
    }

    /// How long so many bytes will take; `None` before the first flush.
    pub(super) fn time_of(&self, bytes: usize) -> Option<Duration> {
        let nanoseconds = Some(self.nanoseconds.load(Ordering::Relaxed)).filter(|&pace| pace > 0)?;
        Some(Duration::from_nanos(nanoseconds.saturating_mul(bytes as u64) / MIB))
    }
}

#[cfg(test)]
mod tests;
