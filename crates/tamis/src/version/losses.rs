//! The time that reads have lost without a job that the store may make: to merge the runs of a partition, to build a sorted view of them, to choose
//! the filters of a table again (`filter_tally.rs`).
//!
//! Readers add to these counters where they lose the time; the background decides by them (`compaction/law.rs`). Only sampled reads are
//! counted, each with the number of reads that it represents. The counters begin at zero when the store is opened. Those of a partition are shared by
//! all its versions, and begin again when tables leave it: a loss of other runs says nothing about those that are left.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The price doubles at most this many times.
const DOUBLINGS_MAX: u32 = 6;

/// A counter of lost time.
#[derive(Debug, Default)]
pub(crate) struct Loss {
    nanoseconds: AtomicU64,
    /// Reads that were counted, those that lost nothing included.
    reads: AtomicU64,
    /// The nanoseconds that a read lost before the last job, as the bits of a number; 0: not known.
    before: AtomicU64,
    doublings: AtomicU32,
}

/// A loss that has reached its price; zero for a job that no reads have paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DueLoss {
    pub(crate) lost_ns: u64,
    pub(crate) price_ns: u64,
}

impl DueLoss {
    /// The lost time and the price, in the unit of events.
    pub(crate) const fn microseconds(self) -> (u64, u64) {
        (self.lost_ns / 1_000, self.price_ns / 1_000)
    }
}

fn add_saturating(counter: &AtomicU64, by: u64) {
    let add = |count: u64| Some(count.saturating_add(by));
    // The function never returns `None`.
    let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
}

impl Loss {
    /// Adds reads, and the time that they lost together.
    pub(crate) fn add(&self, reads: u64, nanoseconds: u64) {
        add_saturating(&self.reads, reads);
        if nanoseconds > 0 {
            add_saturating(&self.nanoseconds, nanoseconds);
        }
    }

    /// Replaces the counts by those of a counter that somebody else keeps.
    pub(crate) fn set(&self, reads: u64, nanoseconds: u64) {
        self.reads.store(reads, Ordering::Relaxed);
        self.nanoseconds.store(nanoseconds, Ordering::Relaxed);
    }

    /// The lost time.
    pub(crate) fn nanoseconds(&self) -> u64 {
        self.nanoseconds.load(Ordering::Relaxed)
    }

    fn per_read(&self) -> f64 {
        self.nanoseconds() as f64 / self.reads.load(Ordering::Relaxed).max(1) as f64
    }

    /// The price of a job that would take `price_ns`, doubled for each earlier one that did not help.
    pub(crate) fn price(&self, price_ns: u64) -> u64 {
        price_ns.saturating_mul(1 << self.doublings.load(Ordering::Relaxed).min(DOUBLINGS_MAX))
    }

    /// The loss, if it has reached the price of a job that takes `price_ns`. If reads have lost more than half as much each as before the
    /// last job, it did not help: the price doubles. If it did, a doubled price halves.
    pub(crate) fn due(&self, price_ns: u64) -> Option<DueLoss> {
        if self.nanoseconds() < self.price(price_ns).max(1) {
            return None;
        }
        let before = f64::from_bits(self.before.swap(0, Ordering::Relaxed));
        if before > 0.0 {
            let doublings = self.doublings.load(Ordering::Relaxed);
            let has_helped = self.per_read() <= before / 2.0;
            let doublings =
                if has_helped { doublings.saturating_sub(1) } else { (doublings + 1).min(DOUBLINGS_MAX) };
            self.doublings.store(doublings, Ordering::Relaxed);
        }
        let (lost_ns, price_ns) = (self.nanoseconds(), self.price(price_ns));
        (lost_ns >= price_ns).then_some(DueLoss { lost_ns, price_ns })
    }

    /// A job for the loss begins.
    pub(crate) fn begin_job(&self) {
        self.before.store(self.per_read().to_bits(), Ordering::Relaxed);
        self.restart();
    }

    /// Counts from zero.
    fn restart(&self) {
        self.nanoseconds.store(0, Ordering::Relaxed);
        self.reads.store(0, Ordering::Relaxed);
    }
}

/// The losses of a partition.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Reads searched several runs, and scans stepped over deleted entries, which a merge would drop.
    pub(crate) merge: Loss,
    /// Seeks searched several runs, or runs next to a view.
    pub(crate) view: Loss,
}

impl Losses {
    /// Adds reads that searched so many runs and views each. A view takes the time of two runs; a merge of two as long as a view.
    pub(crate) fn add_searched(&self, reads: u64, (runs, views): (usize, usize), run_ns: f64) {
        let lost = |spared: usize| (spared as f64 * run_ns * reads as f64) as u64;
        self.merge.add(reads, lost((runs + 2 * views).saturating_sub(1)));
        self.view.add(reads, lost((runs + views).saturating_sub(2)));
    }

    /// Adds gets that each read so many runs: filters have rejected the others.
    pub(crate) fn add_gets(&self, reads: u64, runs: usize, run_ns: f64) {
        self.merge.add(reads, (runs.saturating_sub(1) as f64 * run_ns * reads as f64) as u64);
    }

    /// Other runs are searched from now on.
    pub(crate) fn restart(&self) {
        self.merge.restart();
        self.view.restart();
    }
}

#[cfg(test)]
mod tests;
