//! How much the filter of a table is needed: its lookups in vain, the recent ones counting most.
//!
//! A lookup counts whose key the table did not have, whether the filter said so or the table was read to find out; lookups
//! that find their key do not: no filter saves them anything. What was counted is halved with every epoch, and an epoch is
//! so many counts of all tables together ([`EPOCH_COUNT`]): no clock is needed, and a store at rest forgets nothing.
//!
//! Counts are relaxed loads and stores: one that is lost is no harm.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Lookups in vain, of all tables together, until what was counted before is worth half.
const EPOCH_COUNT: u64 = 1 << 20;

/// The epoch that a database is in.
#[derive(Debug, Default)]
pub(crate) struct Epoch {
    count: AtomicU64,
}

impl Epoch {
    fn note(&self) -> u64 {
        let count = self.count.load(Relaxed) + 1;
        self.count.store(count, Relaxed);
        count / EPOCH_COUNT
    }

    pub(crate) fn now(&self) -> u64 {
        self.count.load(Relaxed) / EPOCH_COUNT
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Hotness {
    /// In thousandths, as of `epoch`.
    thousandths: AtomicU64,
    epoch: AtomicU64,
}

impl Hotness {
    /// Counts a lookup in vain.
    pub(crate) fn note(&self, epoch: &Epoch) {
        let epoch = epoch.note();
        self.thousandths.store(self.thousandths_at(epoch).saturating_add(1000), Relaxed);
        if self.epoch() != epoch {
            self.epoch.store(epoch, Relaxed);
        }
    }

    fn thousandths_at(&self, epoch: u64) -> u64 {
        let age = epoch.saturating_sub(self.epoch());
        self.thousandths.load(Relaxed).checked_shr(age.min(64) as u32).unwrap_or(0)
    }

    /// Lookups in vain as of an epoch.
    pub(crate) fn at(&self, epoch: u64) -> f64 {
        self.thousandths_at(epoch) as f64 / 1000.0
    }

    /// The epoch of the last count.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Relaxed)
    }

    /// Begins with what ancestors had.
    pub(crate) fn set(&self, lookups: f64, epoch: u64) {
        self.thousandths.store((lookups * 1000.0) as u64, Relaxed);
        self.epoch.store(epoch, Relaxed);
    }
}

#[cfg(test)]
mod tests;
