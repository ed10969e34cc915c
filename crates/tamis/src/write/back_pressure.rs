//! Write stalls: delays writers before they have to stop.
//!
//! Two kinds of jobs can lag behind the writers: flushes (immutable memtables accumulate in memory) and compactions (runs accumulate at L0,
//! and every read has to search them). [`Pressure`] says how far each lags behind, [`Rates`] at what rate each drains, and
//! [`rate`] derives the rate at which writers may write: unlimited below the first thresholds, then the drain rate, falling to a
//! quarter of it towards the second thresholds. A bulk load thus settles at the rate that the disk can sustain. Writers stop
//! ([`IMMUTABLE_COUNT_MAX`], [`Pressure::stops`]) only if nothing makes progress: on a full, failing or hanging disk.
//!
//! Writers share the rate: each write advances the time at which all writes so far are paid for, and its writer waits until then, but at
//! most [`WAIT_MAX`]. The next writes wait for the rest of its debt. Time that passes in the meantime counts as waiting. A debt ends with the
//! lag for which it was charged.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

/// Immutable memtables of a keyspace at which writers stop until a flush has ended. It bounds the memory.
pub(crate) const IMMUTABLE_COUNT_MAX: usize = 4;
/// Immutable memtables from which writers are delayed.
const IMMUTABLE_COUNT_SLOW: usize = 2;
/// Multiples of the L0 trigger between which the delay grows.
const LEVEL0_SLOW: usize = 4;
const LEVEL0_MAX: usize = 10;
/// The multiple of the L0 trigger at which writers stop until a compaction has ended. It bounds the runs that a read searches.
const LEVEL0_STOP: usize = 16;
/// The minimum of all measured drain rates, in bytes per second. A flush into hundreds of partitions may drain less than a mebibyte per
/// second.
const RATE_MIN: u64 = 64 << 10;
/// No write is delayed longer.
const WAIT_MAX: Duration = Duration::from_millis(250);
/// A larger debt is forgiven: a measured rate may be wrong.
const DEBT_MAX: Duration = Duration::from_secs(30);

/// How far flushes and compactions of a keyspace lag behind its writers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pressure {
    pub(crate) immutable_count: usize,
    pub(crate) level0_run_count: usize,
    pub(crate) level0_runs_trigger: usize,
}

impl Pressure {
    /// The L0 trigger, at least one run.
    const fn level0_unit(self) -> usize {
        if self.level0_runs_trigger == 0 { 1 } else { self.level0_runs_trigger }
    }

    /// Whether writers are delayed.
    pub(crate) const fn throttles(self) -> bool {
        self.immutable_count >= IMMUTABLE_COUNT_SLOW
            || self.level0_run_count >= LEVEL0_SLOW * self.level0_unit()
    }

    /// Whether writers stop until a compaction has ended.
    pub(crate) const fn stops(self) -> bool {
        self.level0_run_count >= LEVEL0_STOP * self.level0_unit()
    }
}

/// Drain rates, in bytes of user data per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates {
    /// From immutable memtables, by flushes.
    pub(crate) flush: u64,
    /// From L0, by merges.
    pub(crate) merge: u64,
}

/// The bytes per second that writers may write; `None` if they are not delayed.
pub(crate) fn rate(pressure: Pressure, rates: Rates) -> Option<u64> {
    let limit = |count: usize, slow: usize, max: usize, drained: u64| {
        let behind = || ((count - slow + 1) as f64 / (max - slow + 1) as f64).min(1.0);
        (count >= slow).then(|| ((drained as f64 * (1.25 - behind())) as u64).max(RATE_MIN))
    };
    let trigger = pressure.level0_unit();
    let immutable = limit(pressure.immutable_count, IMMUTABLE_COUNT_SLOW, IMMUTABLE_COUNT_MAX, rates.flush);
    let level0 = limit(pressure.level0_run_count, LEVEL0_SLOW * trigger, LEVEL0_MAX * trigger, rates.merge);
    immutable.into_iter().chain(level0).min()
}

/// A measured drain rate in bytes per second, averaged over the last jobs.
#[derive(Debug, Default)]
struct Measured(AtomicU64);

impl Measured {
    fn get(&self) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            // Before the first measurement.
            0 => 64 << 20,
            measured => measured,
        }
    }

    fn note(&self, bytes: u64, duration: Duration) {
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).max(1);
        let measured = bytes.saturating_mul(1_000_000) / microseconds;
        let average = match self.0.load(Ordering::Relaxed) {
            0 => measured,
            before => before / 4 * 3 + measured / 4,
        };
        self.0.store(average.max(RATE_MIN), Ordering::Relaxed);
    }
}

/// The delays of a store's writers.
#[derive(Debug, Default)]
pub(crate) struct BackPressure {
    /// The time at which all writes so far are paid for, in nanoseconds of the clock.
    paid_until: AtomicU64,
    is_throttling: AtomicBool,
    flush_rate: Measured,
    merge_rate: Measured,
}

impl BackPressure {
    /// The bytes per second that the writers of a keyspace may write now.
    pub(crate) fn rate(&self, pressure: Pressure) -> Option<u64> {
        rate(pressure, Rates { flush: self.flush_rate.get(), merge: self.merge_rate.get() })
    }

    /// Whether the last checked write was delayed.
    #[inline]
    pub(crate) fn is_throttling(&self) -> bool {
        self.is_throttling.load(Ordering::Relaxed)
    }

    /// The new delay in microseconds per MiB if delays begin, 0 if they end, `None` if neither changes. A debt ends with the delays.
    pub(crate) fn changed_delay(&self, rate: Option<u64>) -> Option<u64> {
        if self.is_throttling.load(Ordering::Relaxed) == rate.is_some() {
            return None;
        }
        let was_throttling = self.is_throttling.swap(rate.is_some(), Ordering::Relaxed);
        if rate.is_none() {
            self.paid_until.store(0, Ordering::Relaxed);
        }
        (was_throttling != rate.is_some()).then(|| rate.map_or(0, |rate| (1 << 20) * 1_000_000 / rate.max(1)))
    }

    /// The time until which a write of `bytes` at `rate` has to wait. Usually `None`, because short delays are accumulated.
    pub(crate) fn charge(&self, rate: u64, bytes: u64, now: Duration) -> Option<Duration> {
        let delay = Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / rate.max(1));
        let pay = |paid: u64| {
            let until = Duration::from_nanos(paid).max(now) + delay;
            u64::try_from(until.min(now + DEBT_MAX).as_nanos()).ok()
        };
        let before = self
            .paid_until
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay)
            .unwrap_or_else(|paid| paid);
        let until = Duration::from_nanos(pay(before).unwrap_or(before));
        // Shorter delays are accumulated.
        (until >= now + Duration::from_millis(1)).then(|| until.min(now + WAIT_MAX))
    }

    /// Records that a flush drained `bytes` in `duration`.
    pub(crate) fn note_flush(&self, bytes: u64, duration: Duration) {
        self.flush_rate.note(bytes, duration);
    }

    /// Records that a merge took `bytes` out of L0 in `duration`.
    pub(crate) fn note_merge(&self, bytes: u64, duration: Duration) {
        self.merge_rate.note(bytes, duration);
    }
}

#[cfg(test)]
mod tests;
