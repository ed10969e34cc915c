//! How much something is needed: its needs, the recent ones counting most.
//!
//! One measure for all that is kept under the pinned cache, so that they can be held against one another. A need of an index or of a whole
//! filter is a question to it. A need of an elastic filter is a lookup whose key the table did not have, whether the filter said so or
//! the table was read to find out; lookups that find their key do not count: no filter saves them anything.
//!
//! What was counted is halved with every epoch, and an epoch is so many needs of all together ([`EPOCH_COUNT`]): no clock is
//! needed, and a store at rest forgets nothing.
//!
//! Counts are relaxed loads and stores: one that is lost is no harm. The epoch's counter is shared by all threads, so that
//! needs are added to it in lots ([`LOT`]): what is needed less often than that does not make time pass.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Needs of all together until what was counted before is worth half.
const EPOCH_COUNT: u64 = 1 << 20;

/// Needs that are told to the epoch at once.
const LOT: u64 = 64;

/// The epoch that a database is in.
#[derive(Debug, Default)]
pub(crate) struct Epoch {
    count: AtomicU64,
}

impl Epoch {
    fn add_lot(&self) {
        self.count.store(self.count.load(Relaxed) + LOT, Relaxed);
    }

    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.count.load(Relaxed) / EPOCH_COUNT
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Hotness {
    /// Never halved.
    count: AtomicU64,
    /// In thousandths, as of `epoch`.
    thousandths: AtomicU64,
    epoch: AtomicU64,
}

impl Hotness {
    /// Counts a need; tells how many there were in all.
    #[inline]
    pub(crate) fn note(&self, epoch: &Epoch) -> u64 {
        let count = self.count.load(Relaxed) + 1;
        self.count.store(count, Relaxed);
        if count.is_multiple_of(LOT) {
            epoch.add_lot();
        }
        let epoch = epoch.now();
        self.thousandths.store(self.thousandths_at(epoch).saturating_add(1000), Relaxed);
        if self.epoch() != epoch {
            self.epoch.store(epoch, Relaxed);
        }
        count
    }

    fn thousandths_at(&self, epoch: u64) -> u64 {
        let age = epoch.saturating_sub(self.epoch());
        self.thousandths.load(Relaxed).checked_shr(age.min(64) as u32).unwrap_or(0)
    }

    /// Needs as of an epoch.
    pub(crate) fn at(&self, epoch: u64) -> f64 {
        self.thousandths_at(epoch) as f64 / 1000.0
    }

    /// The epoch of the last count.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Relaxed)
    }

    /// Begins with what ancestors had.
    pub(crate) fn set(&self, needs: f64, epoch: u64) {
        self.thousandths.store((needs * 1000.0) as u64, Relaxed);
        self.epoch.store(epoch, Relaxed);
    }
}

#[cfg(test)]
mod tests;
