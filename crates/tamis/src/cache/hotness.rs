//! Hotness: how often something was accessed, recent accesses counting most.
//!
//! All values of the pinned cache have the same measure, so that they can be compared. An access of an index is the load of a
//! block through it; the search before the load is not another one. An access of a whole filter is a lookup that it can
//! answer, whether it is in memory or not: a range of several keys is no access of a point filter. An access of an elastic
//! filter is a lookup of a key that the table does not have, whether the filter rejected it or the table was read. Lookups of
//! present keys do not count: no elastic filter saves them anything.
//!
//! Counts are halved with every epoch, and an epoch is [`EPOCH_COUNT`] accesses of all values together: it needs no clock,
//! and the counts of an idle store do not decay.
//!
//! Counts are relaxed loads and stores: a lost count is harmless. The epoch's counter is shared by all threads, so accesses
//! are added to it in batches of [`LOT`]: a value with fewer accesses does not advance the epoch.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Accesses of all values after which earlier ones count half.
const EPOCH_COUNT: u64 = 1 << 20;

/// Accesses that are added to the epoch at once.
const LOT: u64 = 64;

/// The current epoch of a database.
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
    /// Records an access; returns the number of all accesses.
    #[inline]
    pub(crate) fn record_access(&self, epoch: &Epoch) -> u64 {
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

    /// The hotness as of an epoch.
    pub(crate) fn at(&self, epoch: u64) -> f64 {
        self.thousandths_at(epoch) as f64 / 1000.0
    }

    /// The epoch of the last count.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Relaxed)
    }

    /// Sets the hotness, for a table that starts with that of its inputs.
    pub(crate) fn set(&self, needs: f64, epoch: u64) {
        self.thousandths.store((needs * 1000.0) as u64, Relaxed);
        self.epoch.store(epoch, Relaxed);
    }
}

#[cfg(test)]
mod tests;
