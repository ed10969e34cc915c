//! The flushes and compactions that are due, and the keyspaces whose next compaction is not known. Bookkeeping only: it is
//! changed under the scheduler's lock, and the picks are made outside of it ([`super::background_jobs`]).
//!
//! A keyspace is in at most one of three states:
//!
//! - *unpicked*: something changed since the last pick: a version was installed, a job began or ended, a snapshot was released;
//! - *picking*: a thread picks for it. If the keyspace changes meanwhile, it is unpicked, too, and the result is discarded;
//! - *picked*: with a plan, or with the knowledge that no compaction is due, except those that failed and wait (`back_off.rs`).
//!
//! So each change causes one pick of one keyspace, and a store in which nothing changes picks nothing. A plan is used as long as
//! its keyspace does not change.
//!
//! Writes alone never make a compaction due, nor do new snapshots: both are above all entries of the tables.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::plan::Plan;
use crate::{key::Sequence, store::changed_keyspaces::Changed};

/// The result of a pick for one keyspace.
#[derive(Debug)]
pub(super) enum Picked {
    Plan(Box<Plan>),
    Nothing {
        /// The keyspace was bulk loading: more is due when it no longer is, at this time or as soon as a thread waits for
        /// compactions.
        again_at: Option<Duration>,
        /// When expired entries may make more due.
        expiry_at: Option<Duration>,
        /// The newest entry of its tables, if it is above a snapshot: more may be due when that snapshot is released.
        newest_kept: Option<Sequence>,
        /// When failed compactions of the keyspace may be tried again.
        retry_at: Option<Duration>,
    },
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct DueJobs {
    /// Keyspaces that may have immutable memtables.
    pub(super) flushable: BTreeSet<u32>,
    unpicked: BTreeSet<u32>,
    picking: BTreeSet<u32>,
    plans: BTreeMap<u32, Box<Plan>>,
    /// The bits of the scores of `plans`, which are in the order of the scores because no score is negative. The most urgent
    /// plan is last; of several, that of the oldest keyspace.
    by_score: BTreeSet<(u64, Reverse<u32>)>,
    /// See [`Picked::Nothing`]. May contain stale entries, which cause an unnecessary pick.
    bulk_loading: BTreeSet<(Duration, u32)>,
    /// See [`Picked::Nothing`].
    expiring: BTreeMap<u32, Duration>,
    /// See [`Picked::Nothing`].
    kept_by_snapshots: BTreeMap<u32, Sequence>,
    /// Keyspaces of which nothing is due but compactions that failed, and when these may be tried again.
    retries: BTreeMap<u32, Duration>,
    /// Keyspaces whose versions have changed since they were last checked for sorted views.
    pub(super) unviewed: BTreeSet<u32>,
}

impl DueJobs {
    pub(super) fn note_change(&mut self, keyspace: u32, changed: Changed) {
        self.flushable.insert(keyspace);
        if changed == Changed::Version {
            self.unviewed.insert(keyspace);
            self.unpick(keyspace);
        }
    }

    /// Records that the last pick for a keyspace is out of date.
    pub(super) fn unpick(&mut self, keyspace: u32) {
        self.remove_plan(keyspace);
        self.kept_by_snapshots.remove(&keyspace);
        self.retries.remove(&keyspace);
        self.expiring.remove(&keyspace);
        self.unpicked.insert(keyspace);
    }

    /// Records that the last snapshot at `sequence` was released; returns whether a compaction may be due.
    pub(super) fn note_snapshot_released(&mut self, sequence: Sequence) -> bool {
        let is_freed = |newest_kept: Sequence| sequence < newest_kept;
        let freed = self.kept_by_snapshots.extract_if(.., |_, newest_kept| is_freed(*newest_kept));
        // Running picks may have seen the snapshot.
        let changed = freed.map(|(id, _)| id).chain(self.picking.iter().copied());
        // Entries that were not expired for the snapshot may be.
        let changed: Vec<u32> = changed.chain(self.expiring.keys().copied()).collect();
        changed.iter().for_each(|&id| self.unpick(id));
        !changed.is_empty()
    }

    /// Begins the picks of all unpicked keyspaces that `may_pick` accepts, and returns these keyspaces.
    pub(super) fn begin_picks(
        &mut self,
        now: Duration,
        is_waited_for: bool,
        may_pick: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        while let Some(&(at, id)) = self.bulk_loading.first()
            && (is_waited_for || at <= now)
        {
            self.bulk_loading.pop_first();
            self.unpick(id);
        }
        let timed = self.retries.iter().chain(&self.expiring);
        let retried: Vec<u32> = timed.filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
        retried.iter().for_each(|&id| self.unpick(id));
        let picking = &mut self.picking;
        let begun = self.unpicked.extract_if(.., |&id| may_pick(id) && picking.insert(id));
        begun.collect()
    }

    /// Ends the pick of a keyspace; `None` if it failed.
    pub(super) fn end_pick(&mut self, keyspace: u32, picked: Option<Picked>) {
        self.picking.remove(&keyspace);
        if self.unpicked.contains(&keyspace) {
            return;
        }
        match picked {
            None => self.unpick(keyspace),
            Some(Picked::Plan(plan)) => {
                self.by_score.insert(rank(keyspace, &plan));
                self.plans.insert(keyspace, plan);
            }
            Some(Picked::Nothing { again_at, expiry_at, newest_kept, retry_at }) => {
                self.expiring.extend(expiry_at.map(|at| (keyspace, at)));
                self.retries.extend(retry_at.map(|at| (keyspace, at)));
                self.bulk_loading.extend(again_at.map(|at| (at, keyspace)));
                self.kept_by_snapshots.extend(newest_kept.map(|sequence| (keyspace, sequence)));
            }
        }
    }

    /// The most urgent plan, which is removed.
    pub(super) fn take_plan(&mut self) -> Option<(u32, Box<Plan>)> {
        let &(_, Reverse(keyspace)) = self.by_score.last()?;
        Some((keyspace, self.remove_plan(keyspace)?))
    }

    fn remove_plan(&mut self, keyspace: u32) -> Option<Box<Plan>> {
        let plan = self.plans.remove(&keyspace)?;
        self.by_score.remove(&rank(keyspace, &plan));
        Some(plan)
    }

    /// Removes a dropped keyspace.
    pub(super) fn forget(&mut self, keyspace: u32) {
        self.unpick(keyspace);
        self.unpicked.remove(&keyspace);
        self.flushable.remove(&keyspace);
        self.unviewed.remove(&keyspace);
    }

    /// Whether no compaction is due, also not for a thread that waits for them, and none has to be picked.
    pub(super) fn has_no_compactions(&self) -> bool {
        self.unpicked.is_empty()
            && self.picking.is_empty()
            && self.plans.is_empty()
            && self.bulk_loading.is_empty()
            && self.retries.is_empty()
    }

    /// The earliest time at which failed compactions may be tried again, or expired entries may make one due.
    pub(super) fn next_retry(&self) -> Option<Duration> {
        self.retries.values().chain(self.expiring.values()).min().copied()
    }

    /// The earliest time at which a keyspace no longer is bulk loading.
    pub(super) fn bulk_load_end(&self) -> Option<Duration> {
        self.bulk_loading.first().map(|(at, _)| *at)
    }
}

fn rank(keyspace: u32, plan: &Plan) -> (u64, Reverse<u32>) {
    (plan.score.to_bits(), Reverse(keyspace))
}
