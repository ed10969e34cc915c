//! When compactions that failed are tried again.
//!
//! - A partition whose compaction failed waits: [`RETRY`] at first, twice as long after each further failure, up to about a minute. The
//!   other partitions are compacted meanwhile, so that a damaged table delays only its own partition.
//! - A cause such as a full disk concerns all partitions. If compactions of different partitions of a keyspace fail one after the
//!   other, the whole keyspace waits [`RETRY`] after each failure, so that it does not try a thousand partitions at once.
//! - A thread that waits for compactions has them tried again at once ([`BackOff::retry_now`]), but after all others that are due: else
//!   a thread that does so often would let the damaged partitions take all the time.
//!
//! A compaction that succeeds ends the wait of its partitions. Bookkeeping only, under the scheduler's lock.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::error::Error;

/// The wait before a failed job is tried again.
pub(super) const RETRY: Duration = Duration::from_millis(500);

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct BackOff {
    /// By keyspace and partition. A partition that no longer exists may remain.
    partitions: BTreeMap<(u32, u64), FailedPartition>,
    /// Keyspaces whose last compaction failed.
    keyspaces: BTreeMap<u32, FailedKeyspace>,
}

/// A partition whose last compaction failed.
#[derive(Debug)]
struct FailedPartition {
    consecutive_count: u32,
    retry_at: Duration,
    /// A thread waits for compactions: it need not wait until then.
    is_requested: bool,
    /// The number of the compaction, and its error.
    failure: (u64, Error),
}

#[derive(Debug)]
struct FailedKeyspace {
    /// The partitions of the last compaction.
    partitions: BTreeSet<u64>,
    /// When the next one may begin; `None` if at once.
    retry_at: Option<Duration>,
}

/// The partitions of a keyspace whose compactions wait.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WaitingPartitions {
    /// No job begins in them.
    pub(super) held: Vec<u64>,
    /// Their compactions may begin when no other is due.
    pub(super) requested: Vec<u64>,
    /// When the first of `held` no longer waits.
    pub(super) retry_at: Option<Duration>,
}

impl BackOff {
    /// Records that a compaction of these partitions was done.
    pub(super) fn note_success(&mut self, keyspace: u32, partitions: &BTreeSet<u64>) {
        self.keyspaces.remove(&keyspace);
        for &partition in partitions {
            self.partitions.remove(&(keyspace, partition));
        }
    }

    /// Records that the compaction of these partitions with this number failed at `now`. If it is requested, it need not wait.
    pub(super) fn note_failure(
        &mut self,
        keyspace: u32,
        partitions: BTreeSet<u64>,
        (number, error): (u64, &Error),
        (now, is_requested): (Duration, bool),
    ) {
        for &partition in &partitions {
            let before = self.partitions.get(&(keyspace, partition)).map_or(0, |old| old.consecutive_count);
            // The wait doubles with each consecutive failed compaction of a partition, up to about a minute.
            let retry_at = now + RETRY * (1 << before.min(7));
            let failed = FailedPartition {
                consecutive_count: before + 1,
                retry_at,
                is_requested,
                failure: (number, error.clone()),
            };
            self.partitions.insert((keyspace, partition), failed);
        }
        let before = self.keyspaces.get(&keyspace);
        let others = before.filter(|before| before.partitions.is_disjoint(&partitions));
        let retry_at = others.filter(|_| !is_requested).map(|_| now + RETRY);
        self.keyspaces.insert(keyspace, FailedKeyspace { partitions, retry_at });
    }

    /// Whether compactions of the keyspace may begin.
    pub(super) fn may_begin(&self, keyspace: u32, now: Duration) -> bool {
        let retry_at = self.keyspaces.get(&keyspace).and_then(|failed| failed.retry_at);
        retry_at.is_none_or(|at| at <= now)
    }

    /// The partitions of a keyspace whose compactions wait.
    pub(super) fn waiting(&self, keyspace: u32, now: Duration) -> WaitingPartitions {
        let mut waiting = WaitingPartitions::default();
        for (&(_, partition), failed) in self.partitions.range((keyspace, 0)..=(keyspace, u64::MAX)) {
            if failed.retry_at <= now {
                continue;
            }
            if failed.is_requested {
                waiting.requested.push(partition);
            } else {
                waiting.held.push(partition);
                let earliest = waiting.retry_at.map_or(failed.retry_at, |at| at.min(failed.retry_at));
                waiting.retry_at = Some(earliest);
            }
        }
        waiting
    }

    /// Lets all compactions be tried again at once; returns the keyspaces with such ones.
    pub(super) fn retry_now(&mut self) -> Vec<u32> {
        for failed in self.partitions.values_mut() {
            failed.is_requested = true;
            failed.consecutive_count = 0;
        }
        self.keyspaces.clear();
        let mut keyspaces: Vec<u32> = self.partitions.keys().map(|(keyspace, _)| *keyspace).collect();
        keyspaces.dedup();
        keyspaces
    }

    /// When the first of the keyspaces of which no compaction may begin no longer waits.
    pub(super) fn next_at(&self, now: Duration) -> Option<Duration> {
        self.keyspaces.values().filter_map(|failed| failed.retry_at).filter(|&at| at > now).min()
    }

    /// Of the partitions of a keyspace that `is_wanted` accepts and whose last compaction failed: the error of one with a greater number.
    pub(super) fn failure_after(
        &self,
        number: u64,
        keyspace: u32,
        is_wanted: impl Fn(u64) -> bool,
    ) -> Option<Error> {
        let mut failed = self.partitions.range((keyspace, 0)..=(keyspace, u64::MAX));
        let found =
            failed.find(|((_, partition), failed)| is_wanted(*partition) && failed.failure.0 > number);
        found.map(|(_, failed)| failed.failure.1.clone())
    }

    /// Removes a dropped keyspace.
    pub(super) fn forget(&mut self, keyspace: u32) {
        self.keyspaces.remove(&keyspace);
        self.partitions.retain(|(other, _), _| *other != keyspace);
    }
}

#[cfg(test)]
mod tests;
