//! Slowing writers before anything has to stop them.
//!
//! Two things can lag behind the writers: flushes (immutable memtables pile up in memory) and compactions (runs pile up
//! at L0 and every read pays). [`Pressure`] says how far each is behind, [`Rates`] how fast each really drains, and
//! [`rate`] makes of both what writers may write: anything below the first thresholds, then as much as drains, falling
//! to a quarter of it as the second threshold comes near. So a fill settles at what the disk can do instead of running
//! into a wall, and a full stop is left to the one case where nothing drains: a full or failing disk.
//!
//! Writers share the rate: each write pushes the moment on at which all writes so far are paid for, and its writer waits
//! until then. What it did meanwhile by itself counts as waiting.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

/// Immutable memtables of a keyspace at which writers wait for a flush: bounds the memory.
pub(crate) const IMMUTABLE_COUNT_MAX: usize = 4;
/// Immutable memtables from which writers are slowed.
const IMMUTABLE_COUNT_SLOW: usize = 2;
/// Multiples of the L0 trigger between which writers are slowed more and more.
const LEVEL0_SLOW: usize = 4;
const LEVEL0_MAX: usize = 10;
/// The rate assumed before one was measured, and the least that is ever assumed, in bytes a second.
const RATE_FIRST: u64 = 64 << 20;
const RATE_MIN: u64 = 1 << 20;
/// Delays are collected until they are worth a wait.
const WAIT_MIN: Duration = Duration::from_millis(1);
/// No write waits longer: a bigger debt is forgiven.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// How far the background lags behind the writers of a keyspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pressure {
    pub(crate) immutable_count: usize,
    pub(crate) level0_run_count: usize,
    pub(crate) level0_runs_trigger: usize,
}

impl Pressure {
    /// Multiples of the L0 trigger are of at least one run.
    const fn level0_unit(self) -> usize {
        if self.level0_runs_trigger == 0 { 1 } else { self.level0_runs_trigger }
    }

    /// Whether writers are slowed at all.
    pub(crate) const fn is_felt(self) -> bool {
        self.immutable_count >= IMMUTABLE_COUNT_SLOW
            || self.level0_run_count >= LEVEL0_SLOW * self.level0_unit()
    }
}

/// The bytes of user data that are drained in a second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates {
    /// Out of immutable memtables, by flushes.
    pub(crate) flush: u64,
    /// Out of L0, by merges.
    pub(crate) merge: u64,
}

/// The bytes a second that writers may write; `None` when they need not wait.
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

/// A measured rate in bytes a second, averaged over the last jobs.
#[derive(Debug, Default)]
struct Measured(AtomicU64);

impl Measured {
    fn get(&self) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            0 => RATE_FIRST,
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

/// The delays of a database's writers.
#[derive(Debug, Default)]
pub(crate) struct BackPressure {
    /// When the writes so far are paid for, in nanoseconds of the clock.
    paid_until: AtomicU64,
    is_slowing: AtomicBool,
    flush_rate: Measured,
    merge_rate: Measured,
}

impl BackPressure {
    /// The bytes a second that the writers of a keyspace may write now.
    pub(crate) fn rate(&self, pressure: Pressure) -> Option<u64> {
        rate(pressure, Rates { flush: self.flush_rate.get(), merge: self.merge_rate.get() })
    }

    /// Whether writers were slowed when last one looked.
    pub(crate) fn is_slowing(&self) -> bool {
        self.is_slowing.load(Ordering::Relaxed)
    }

    /// Where slowing begins: the delay in microseconds per MiB; where it ends: 0.
    pub(crate) fn news(&self, rate: Option<u64>) -> Option<u64> {
        if self.is_slowing.load(Ordering::Relaxed) == rate.is_some() {
            return None;
        }
        let was_slowing = self.is_slowing.swap(rate.is_some(), Ordering::Relaxed);
        (was_slowing != rate.is_some()).then(|| rate.map_or(0, |rate| (1 << 20) * 1_000_000 / rate.max(1)))
    }

    /// The moment until which a write of `bytes` at `rate` has to wait: `None` mostly, as small delays are collected.
    pub(crate) fn charge(&self, rate: u64, bytes: u64, now: Duration) -> Option<Duration> {
        let delay = Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / rate.max(1));
        let pay = |paid: u64| {
            let until = Duration::from_nanos(paid).max(now) + delay;
            u64::try_from(until.min(now + WAIT_MAX).as_nanos()).ok()
        };
        let before = self
            .paid_until
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay)
            .unwrap_or_else(|paid| paid);
        let until = Duration::from_nanos(pay(before).unwrap_or(before));
        (until >= now + WAIT_MIN).then_some(until)
    }

    /// Notes that a flush drained `bytes` in `duration`.
    pub(crate) fn note_flush(&self, bytes: u64, duration: Duration) {
        self.flush_rate.note(bytes, duration);
    }

    /// Notes that a merge took `bytes` out of L0 in `duration`.
    pub(crate) fn note_merge(&self, bytes: u64, duration: Duration) {
        self.merge_rate.note(bytes, duration);
    }
}

#[cfg(test)]
mod tests;
