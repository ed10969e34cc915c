//! The clock of the comparison.

use std::time::Duration;

use tamis::{Clock as _, SystemClock};

/// Measures the time since its creation.
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

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.clock.now().saturating_sub(self.begin).as_secs_f64()
    }
}

/// Sleeps.
#[expect(clippy::disallowed_methods, reason = "the background work of other stores sends no notification")]
pub fn pause(duration: Duration) {
    std::thread::sleep(duration);
}
