//! Times, and the calibration unit that makes those of different machines comparable.

use tamis::{Clock as _, SystemClock};

/// How often a time is taken; the median counts.
pub(super) const ROUND_COUNT: usize = 3;
/// Queries that are repeated before a timed pass, because the calibration searches evict the filter from the caches.
const WARM_COUNT: usize = 50_000;

/// The median; 0 of an empty list.
pub fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}

/// The duration of a call in nanoseconds, divided by `count`.
fn nanoseconds_each(clock: &SystemClock, count: usize, call: impl FnOnce()) -> f64 {
    let start = clock.now();
    call();
    (clock.now() - start).as_nanos() as f64 / count.max(1) as f64
}

/// The median duration of some passes in nanoseconds, divided by `count`. The first pass is not timed.
pub fn median_of_passes(clock: &SystemClock, count: usize, pass: impl Fn()) -> f64 {
    pass();
    median(&mut [0.0; ROUND_COUNT].map(|_| nanoseconds_each(clock, count, &pass)))
}

/// Measures the calibration unit. Times divided by it are comparable between machines.
#[derive(Debug)]
pub struct Calibration {
    searches: tamis_workload::Calibration,
}

impl Calibration {
    /// A unit for a number of keys.
    pub fn new(key_count: usize) -> Self {
        Self { searches: tamis_workload::Calibration::new(key_count) }
    }

    /// The current value of the unit in nanoseconds: the second of two passes, because earlier work has evicted the integers from the
    /// caches.
    pub fn unit_ns(&self, clock: &SystemClock) -> f64 {
        self.searches.search();
        nanoseconds_each(clock, self.searches.wanted_count() as usize, || self.searches.search())
    }

    /// The time of some passes through `count` operations; the first pass is not timed. The unit is measured again before each pass, because
    /// the speed of a shared processor varies.
    pub(super) fn time(&self, clock: &SystemClock, count: usize, pass: impl Fn(usize)) -> Calibrated {
        pass(count);
        Calibrated::of(&[(); ROUND_COUNT].map(|()| {
            let unit = self.unit_ns(clock);
            pass(WARM_COUNT.min(count));
            (nanoseconds_each(clock, count, || pass(count)), unit)
        }))
    }
}

/// A time and the calibration unit measured with it: medians of some passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrated {
    /// Nanoseconds.
    pub ns: f64,
    /// Calibration units: the median of the quotients of passes.
    pub units: f64,
    /// Nanoseconds of a unit.
    pub unit_ns: f64,
}

impl Calibrated {
    /// From the nanoseconds of passes, each with the unit measured before it.
    pub(super) fn of(passes: &[(f64, f64)]) -> Self {
        let median = |of: &dyn Fn(&(f64, f64)) -> f64| median(&mut passes.iter().map(of).collect::<Vec<_>>());
        Self {
            ns: median(&|(ns, _)| *ns),
            units: median(&|(ns, unit)| ns / unit.max(1e-9)),
            unit_ns: median(&|(_, unit)| *unit),
        }
    }
}
