//! The measured time of a read of a table, by level: what a false positive of a filter costs.
//!
//! Sampled queries ([`crate::observe::query_sample::Sampling`]) measure their first read of a table: index, block and search, whether the block is
//! loaded or found in memory. Each level has an exponentially weighted mean, so that it follows a cache that fills or a device that slows
//! down. A single read counts as at most [`OUTLIER_MAX`] times the mean: a thread may lose its processor while it reads.
//!
//! Cost: two reads of the clock for each measured read; a read that is not sampled costs a comparison. Nothing is measured by a clock that does
//! not advance.

use std::{
    array,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tamis_vfs::Access;

use crate::store::runtime::Clock;

/// Fewer times do not determine a mean.
const COUNT_MIN: u64 = 64;
/// See the head of this file.
const OUTLIER_MAX: f64 = 32.0;
/// Bounds of the price of a read. A block in memory takes less than the lower one, and displaces others from the processor's caches.
const PRICE_MIN: f64 = 1_500.0;
const PRICE_MAX: f64 = 20_000_000.0;

/// The expected time of a read of a table before reads were measured.
pub(crate) const fn expected_nanoseconds(access: Access) -> f64 {
    match access {
        Access::Mapped => 2_000.0,
        Access::Buffered => 10_000.0,
        Access::Direct => 60_000.0,
    }
}

/// The mean of one level.
#[derive(Debug, Default)]
struct ReadTime {
    count: AtomicU64,
    /// The bits of a floating-point number.
    nanoseconds: AtomicU64,
}

impl ReadTime {
    /// Threads that add at once may lose a time.
    fn add(&self, nanoseconds: f64) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let before = f64::from_bits(self.nanoseconds.load(Ordering::Relaxed));
        let mean = match count {
            1 => nanoseconds,
            // Another thread has counted the first time and not stored it yet.
            _ if before <= 0.0 => nanoseconds,
            // The weight of a new time is at least 1 / 256.
            _ => before + (nanoseconds.min(OUTLIER_MAX * before) - before) / count.min(256) as f64,
        };
        self.nanoseconds.store(mean.to_bits(), Ordering::Relaxed);
    }

    fn mean(&self) -> Option<f64> {
        let is_known = self.count.load(Ordering::Relaxed) >= COUNT_MIN;
        is_known.then(|| f64::from_bits(self.nanoseconds.load(Ordering::Relaxed)))
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct ReadTimes<const LEVELS: usize> {
    /// `None`: nothing is measured.
    clock: Option<Arc<dyn Clock>>,
    levels: [ReadTime; LEVELS],
    all: ReadTime,
}

impl<const LEVELS: usize> Default for ReadTimes<LEVELS> {
    fn default() -> Self {
        Self { clock: None, levels: array::from_fn(|_| ReadTime::default()), all: ReadTime::default() }
    }
}

impl<const LEVELS: usize> ReadTimes<LEVELS> {
    /// Measures by this clock.
    pub(crate) fn by(clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..Self::default() }
    }

    /// The time when a measured read begins.
    #[cold]
    pub(crate) fn begin(&self) -> Option<Duration> {
        self.clock.as_ref().map(|clock| clock.now())
    }

    /// Adds a read of a table of a level that began then and has ended now.
    #[cold]
    pub(crate) fn end(&self, level: usize, began: Duration) {
        let Some(clock) = &self.clock else { return };
        let nanoseconds = clock.now().saturating_sub(began).as_nanos() as f64;
        if nanoseconds > 0.0 {
            self.levels.get(level).into_iter().chain([&self.all]).for_each(|time| time.add(nanoseconds));
        }
    }

    /// The mean of a level in nanoseconds; 0 before enough reads were measured.
    pub(crate) fn nanoseconds(&self, level: usize) -> u64 {
        self.levels.get(level).and_then(ReadTime::mean).map_or(0, |mean| mean as u64)
    }

    /// The price of a read in a level, in nanoseconds: that of all levels while the level was rarely read, and `expected` while the store
    /// was.
    pub(crate) fn price(&self, level: usize, expected: f64) -> f64 {
        let of_level = self.levels.get(level).and_then(ReadTime::mean);
        of_level.or_else(|| self.all.mean()).map_or(expected, |mean| mean.clamp(PRICE_MIN, PRICE_MAX))
    }

    /// The price of a read in any level.
    pub(crate) fn price_of_any(&self, access: Access) -> f64 {
        self.price(LEVELS, expected_nanoseconds(access))
    }
}

#[cfg(test)]
mod tests;
