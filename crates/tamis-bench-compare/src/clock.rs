//! The one clock of the comparison.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tamis::{Clock as _, SystemClock};

/// Time since it was made.
pub struct Stopwatch {
    clock: SystemClock,
    begin: Duration,
}

impl Stopwatch {
    /// Starts now.
    pub fn start() -> Self {
        let clock = SystemClock::default();
        let begin = clock.now();
        Self { clock, begin }
    }

    /// Seconds since then.
    pub fn seconds(&self) -> f64 {
        self.clock.now().saturating_sub(self.begin).as_secs_f64()
    }
}

/// Waits.
#[expect(
    clippy::disallowed_methods,
    reason = "what is waited for gives no sign: other stores' background work"
)]
pub fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Seconds since 1970, by which results say when they were measured.
#[expect(clippy::disallowed_methods, reason = "a date, not a duration")]
pub fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
