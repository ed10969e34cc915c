//! The calibration unit: searches whose time makes times of different machines comparable.

use std::hint::black_box;

use crate::SplitMix64;

/// Numbers that are searched for, each time that the unit is taken.
const WANTED_COUNT: usize = 100_000;

/// Binary searches for random integers among as many random integers as there are keys; the time of one of them is the calibration
/// unit.
///
/// A search waits for the answer of the one before, so that its time is how long a search takes and not how many of them a
/// processor does at once: those overlap, and a unit of searches side by side depends more on the processor, and on who else
/// uses the third level of its caches, than anything that is measured in it.
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
    /// The unit for so many keys (at least one).
    pub fn new(key_count: usize) -> Self {
        let mut random = SplitMix64::new(1);
        let mut integers: Vec<u64> = (0..key_count.max(1)).map(|_| random.next_u64()).collect();
        integers.sort_unstable();
        Self { integers, wanted: (0..WANTED_COUNT).map(|_| random.next_u64()).collect() }
    }

    /// Searches for every wanted number, one after another; the time of this, shared among them, is the unit. The first pass after
    /// anything else also brings the integers back into the caches.
    pub fn search(&self) {
        // No bit of an answer is left by this mask, which the compiler does not know.
        let mask = black_box(0);
        let place = self.wanted.iter().fold(0, |place: usize, wanted| {
            let wanted = wanted ^ (place as u64 & mask);
            self.integers.partition_point(|integer| *integer < wanted)
        });
        black_box(place);
    }

    /// How many searches [`Calibration::search`] makes.
    pub fn wanted_count(&self) -> u32 {
        self.wanted.len() as u32
    }
}
