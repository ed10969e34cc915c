//! Slowing writers before anything has to stop them.
//!
//! Two things can lag behind the writers: flushes (sealed memtables pile up in memory) and compactions (runs pile up
//! at L0 and every read pays). [`Pressure`] says how far each is behind, [`rate`] makes a byte rate of it: free below
//! the first threshold, then the measured rate at which the background really drains, falling to a quarter of it as
//! the second threshold comes near. So a fill settles at what the disk can do instead of running into a wall, and a
//! full stop is left to the one case where nothing drains: a full or failing disk.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Sealed memtables of a keyspace at which writers wait for a flush: bounds the memory.
pub(crate) const SEALED_COUNT_MAX: usize = 4;
/// Sealed memtables from which writers are slowed.
const SEALED_COUNT_SLOW: usize = 2;
/// Multiples of the L0 trigger between which writers are slowed more and more.
const LEVEL0_SLOW: usize = 4;
const LEVEL0_MAX: usize = 10;
/// The drain rate assumed before one was measured, and the least that is ever assumed, in bytes a second.
const RATE_FIRST: u64 = 64 << 20;
const RATE_MIN: u64 = 1 << 20;
/// Delays are collected until they are worth a wait.
const WAIT_MIN: Duration = Duration::from_millis(1);
/// No single wait is longer, so that a change of pressure is seen soon.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// How far the background lags behind the writers of a keyspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pressure {
    pub(crate) sealed_count: usize,
    pub(crate) level0_run_count: usize,
    pub(crate) level0_runs_trigger: usize,
}

/// The bytes a second that writers may write; `None` when they need not wait.
pub(crate) fn rate(pressure: Pressure, drain_rate: u64) -> Option<u64> {
    let behind = |count: usize, slow: usize, max: usize| {
        (count >= slow).then(|| ((count - slow + 1) as f64 / (max - slow + 1) as f64).min(1.0))
    };
    let trigger = pressure.level0_runs_trigger.max(1);
    let sealed = behind(pressure.sealed_count, SEALED_COUNT_SLOW, SEALED_COUNT_MAX);
    let level0 = behind(pressure.level0_run_count, LEVEL0_SLOW * trigger, LEVEL0_MAX * trigger);
    let worst = match (sealed, level0) {
        (Some(sealed), Some(level0)) => sealed.max(level0),
        (one, other) => one.or(other)?,
    };
    let rate = drain_rate.max(RATE_MIN) as f64 * (1.25 - worst);
    Some((rate as u64).max(RATE_MIN))
}

/// The delays of a database's writers.
#[derive(Debug)]
pub(crate) struct BackPressure {
    /// Nanoseconds that writers owe.
    owed: AtomicU64,
    /// Measured bytes a second of user data that flushes and compactions drain.
    drain_rate: AtomicU64,
}

impl Default for BackPressure {
    fn default() -> Self {
        Self { owed: AtomicU64::new(0), drain_rate: AtomicU64::new(RATE_FIRST) }
    }
}

impl BackPressure {
    /// The wait that a write of `bytes` has to take now: zero mostly, as small delays are collected.
    pub(crate) fn charge(&self, pressure: Pressure, bytes: u64) -> Duration {
        let Some(rate) = rate(pressure, self.drain_rate.load(Ordering::Relaxed)) else {
            self.owed.store(0, Ordering::Relaxed);
            return Duration::ZERO;
        };
        let delay = bytes.saturating_mul(1_000_000_000) / rate;
        let owed = Duration::from_nanos(self.owed.fetch_add(delay, Ordering::Relaxed) + delay);
        if owed < WAIT_MIN {
            return Duration::ZERO;
        }
        let wait = owed.min(WAIT_MAX);
        self.owed.fetch_sub(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        wait
    }

    /// Notes that a flush or a merge out of L0 drained `bytes` in `duration`.
    pub(crate) fn note_drained(&self, bytes: u64, duration: Duration) {
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).max(1);
        let measured = bytes.saturating_mul(1_000_000) / microseconds;
        let before = self.drain_rate.load(Ordering::Relaxed);
        self.drain_rate.store((before / 4 * 3 + measured / 4).max(RATE_MIN), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
