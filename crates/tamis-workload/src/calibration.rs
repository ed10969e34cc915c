//! The calibration unit: searches whose time makes times of different machines comparable.

use std::hint::black_box;

use crate::SplitMix64;

/// Number of searches per measurement of the unit.
const WANTED_COUNT: usize = 100_000;

/// Binary searches for random integers among as many random integers as there are keys; the time of one of them is the
/// calibration unit.
///
/// Each search depends on the result of the previous one, so the unit is the latency of a search, not the throughput:
/// throughput depends more on the processor, and on other users of its L3 cache, than the values that are measured in
/// it.
///
/// ```
/// use tamis_workload::Calibration;
/// let calibration = Calibration::new(1000);
/// let start = std::time::Instant::now();
/// calibration.search();
/// let unit = start.elapsed() / calibration.wanted_count();
/// ```
#[derive(Debug)]
pub struct Calibration {
    integers: Vec<u64>,
    wanted: Vec<u64>,
}

impl Calibration {
    /// The unit for a number of keys (at least one).
    pub fn new(key_count: usize) -> Self {
        let mut random = SplitMix64::new(1);
        let mut integers: Vec<u64> = (0..key_count.max(1)).map(|_| random.next_u64()).collect();
        integers.sort_unstable();
        Self { integers, wanted: (0..WANTED_COUNT).map(|_| random.next_u64()).collect() }
    }

    /// Searches for every wanted number, one after another; the time divided by their number is the unit. The first
    /// pass also brings the integers back into the caches.
    pub fn search(&self) {
        // This mask clears all bits of a result, unknown to the compiler.
        let mask = black_box(0);
        let place = self.wanted.iter().fold(0, |place: usize, wanted| {
            let wanted = wanted ^ (place as u64 & mask);
            self.integers.partition_point(|integer| *integer < wanted)
        });
        black_box(place);
    }

    /// Number of searches of [`Calibration::search`].
    pub fn wanted_count(&self) -> u32 {
        self.wanted.len() as u32
    }
}
