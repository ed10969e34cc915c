//! The law of the work that the store chooses automatically: a job is due when the time that reads have lost without it has reached the time
//! that it takes.
//!
//! This is the rule of renting until the rent equals the price: the losses and the jobs together take at most twice the time of
//! the best plan, which knows all later reads. It needs no prediction and no threshold. A job that did not lower the loss for which it was made
//! costs twice as much the next time ([`Loss::due`](crate::version::losses::Loss::due)). Filters are chosen before views are built, and these before
//! runs are merged: each costs less than the next. Of several due jobs of a kind, the one with the greatest ratio of loss to price is first, and of equal ones the cheapest.
//!
//! | job | place | loss | price |
//! |---|---|---|---|
//! | choose the filters again | table | false positives beyond the expected ones | its keys, read and compared with the sampled queries |
//! | merge all runs, drop deleted entries | partition | runs that a read searched after the first (a get: read), deleted entries that a scan passed | bytes of all runs, read and written |
//! | build or extend a sorted view | partition | runs and views that a seek searched after the second | new entries, and a share of the old ones |
//!
//! The runs of a level, its bytes, and the share of deleted entries in tables are promises of the layout, and no subject of the law. A store that
//! nothing reads makes no job by it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::version::{losses::DueLoss, partition::Partition};

/// The time of a byte that a merge reads or writes, of an entry of a new view, and of a key whose filters are chosen, before jobs were measured.
const BYTE_PICOSECONDS: u64 = 5_000;
const ENTRY_PICOSECONDS: u64 = 100_000;
const KEY_PICOSECONDS: u64 = 500_000;
/// The least time of such a choice: its search may take as long for any table.
const CHECK_NANOSECONDS_MIN: u64 = 6_000_000;
/// The time that each table of a merge takes besides its bytes: it is created, synced and deleted.
const TABLE_NANOSECONDS: u64 = 2_000_000;
/// An entry of an old view, which is copied with its page, takes this part of the time of a new one.
const COPIED_PER_WRITTEN: u64 = 32;
/// A measured time is one part of this many of the mean.
const WINDOW: u64 = 4;

/// The mean time of a unit of work.
#[derive(Debug)]
struct UnitTime {
    picoseconds: AtomicU64,
}

impl UnitTime {
    const fn new(picoseconds: u64) -> Self {
        Self { picoseconds: AtomicU64::new(picoseconds) }
    }

    /// Adds a job. A clock that does not advance measures nothing.
    fn note(&self, units: u64, time: Duration) {
        let picoseconds = time.as_nanos().saturating_mul(1_000) / u128::from(units.max(1));
        let measured = u64::try_from(picoseconds).unwrap_or(u64::MAX);
        if units > 0 && measured > 0 {
            let before = self.picoseconds.load(Ordering::Relaxed);
            let mean = before / WINDOW * (WINDOW - 1) + measured / WINDOW;
            self.picoseconds.store(mean, Ordering::Relaxed);
        }
    }

    /// Nanoseconds of so many units.
    fn of(&self, units: u64) -> u64 {
        let picoseconds = u128::from(units) * u128::from(self.picoseconds.load(Ordering::Relaxed));
        u64::try_from(picoseconds / 1_000).unwrap_or(u64::MAX)
    }
}

/// The measured times of jobs of a store.
#[derive(Debug)]
pub(crate) struct JobTimes {
    merged_byte: UnitTime,
    viewed_entry: UnitTime,
    checked_key: UnitTime,
}

impl Default for JobTimes {
    fn default() -> Self {
        Self {
            merged_byte: UnitTime::new(BYTE_PICOSECONDS),
            viewed_entry: UnitTime::new(ENTRY_PICOSECONDS),
            checked_key: UnitTime::new(KEY_PICOSECONDS),
        }
    }
}

impl JobTimes {
    /// Adds a merge that read and wrote so many bytes.
    pub(crate) fn note_merge(&self, bytes: u64, time: Duration) {
        self.merged_byte.note(bytes, time);
    }

    /// Adds a view of so many new and copied entries.
    pub(crate) fn note_view(&self, (new, copied): (u64, u64), time: Duration) {
        self.viewed_entry.note(written_entries(new, copied), time);
    }

    /// Adds a choice of filters for so many keys.
    pub(crate) fn note_check(&self, keys: u64, time: Duration) {
        self.checked_key.note(keys, time);
    }

    /// The time of a choice of filters for so many keys.
    pub(crate) fn of_check(&self, keys: u64) -> u64 {
        self.checked_key.of(keys).max(CHECK_NANOSECONDS_MIN)
    }

    /// The time of a merge of all runs of a partition.
    pub(crate) fn of_merge(&self, partition: &Partition) -> u64 {
        let totals = partition.totals();
        let tables = (totals.table_count as u64).saturating_mul(TABLE_NANOSECONDS);
        self.merged_byte.of(totals.bytes.saturating_mul(2)).saturating_add(tables)
    }

    /// The time of a view of so many new and copied entries.
    pub(crate) fn of_view(&self, (new, copied): (u64, u64)) -> u64 {
        self.viewed_entry.of(written_entries(new, copied)).saturating_add(TABLE_NANOSECONDS)
    }
}

/// The entries of a view that take as long as so many new and copied ones.
const fn written_entries(new: u64, copied: u64) -> u64 {
    new.saturating_add(copied / COPIED_PER_WRITTEN)
}

/// The merge to begin with of those that are due.
pub(crate) fn first<P>(due: impl IntoIterator<Item = (P, DueLoss)>) -> Option<(P, DueLoss)> {
    let ratio = |loss: &DueLoss| loss.lost_ns as f64 / loss.price_ns.max(1) as f64;
    due.into_iter().max_by(|(_, left), (_, right)| {
        ratio(left).total_cmp(&ratio(right)).then(right.price_ns.cmp(&left.price_ns))
    })
}

#[cfg(test)]
mod tests;
