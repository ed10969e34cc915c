//! Counters of a policy: filters built and read by this process. SlateDB counts the queries ([`crate::FilterMetrics`]).

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters that all filters of a policy share.
#[derive(Debug, Default)]
pub struct Counters {
    pub(crate) built: AtomicU64,
    pub(crate) built_bytes: AtomicU64,
    pub(crate) built_keys: AtomicU64,
    pub(crate) searches: AtomicU64,
    pub(crate) build_failures: AtomicU64,
    pub(crate) opened: AtomicU64,
    pub(crate) damaged: AtomicU64,
    pub(crate) unknown: AtomicU64,
}

/// Values of [`Counters`] at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterValues {
    /// Tables for which filters were built.
    pub built: u64,
    /// Bytes of these filters.
    pub built_bytes: u64,
    /// Distinct keys in these filters.
    pub built_keys: u64,
    /// Tables for which an automatic design searched for the best filters; the others have those of the last search.
    pub searches: u64,
    /// Filters that could not be built, for example with a budget below the minimum of their family.
    pub build_failures: u64,
    /// Tables whose filters were opened; a cache that drops filters opens them again.
    pub opened: u64,
    /// Opened filters that always pass because their bytes are damaged.
    pub damaged: u64,
    /// Opened filters that always pass because another program or a later version wrote them.
    pub unknown: u64,
}

impl Counters {
    /// The current values.
    pub fn values(&self) -> CounterValues {
        CounterValues {
            built: self.built.load(Relaxed),
            built_bytes: self.built_bytes.load(Relaxed),
            built_keys: self.built_keys.load(Relaxed),
            searches: self.searches.load(Relaxed),
            build_failures: self.build_failures.load(Relaxed),
            opened: self.opened.load(Relaxed),
            damaged: self.damaged.load(Relaxed),
            unknown: self.unknown.load(Relaxed),
        }
    }
}

/// Adds one. Returns the new value if it is to be logged: the first, and then every power of two, so that a cache that
/// drops filters does not fill the log.
pub(crate) fn count(counter: &AtomicU64) -> Option<u64> {
    let value = counter.fetch_add(1, Relaxed) + 1;
    value.is_power_of_two().then_some(value)
}

impl fmt::Display for CounterValues {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.built_bytes as f64 * 8.0 / self.built_keys.max(1) as f64;
        write!(
            formatter,
            "filters built for {} tables ({} keys, {bits:.1} bits per key, {} searches), {} not built; opened for {} tables, {} damaged, {} unknown",
            self.built,
            self.built_keys,
            self.searches,
            self.build_failures,
            self.opened,
            self.damaged,
            self.unknown
        )
    }
}
