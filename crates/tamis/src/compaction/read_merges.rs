//! Merges of the runs of a partition for which reads have paid (`law.rs`): a store that is only read becomes one run automatically.
//!
//! One merge runs at a time, when no other compaction is due. It merges all runs of the partition that had entries when it began into the
//! deepest level, step by step, as a requested compaction does. Its loss is counted again from its beginning, so that it is due again only
//! after reads have paid for the next one.

use std::{ops::Bound, sync::Arc, time::Duration};

use super::{
    background_jobs::{BackgroundJobs, Job, RangeStep},
    law,
    plan::{RangeRequest, Reason},
};
use crate::{
    cursor::bounded::Bounds,
    observe::events::Event,
    store::keyspace_state::KeyspaceState,
    version::{losses::DueLoss, partition::Partition},
};

/// A partition whose runs are to be merged.
struct DueMerge {
    keyspace: Arc<KeyspaceState>,
    partition: Arc<Partition>,
    bounds: Bounds,
}

impl BackgroundJobs {
    /// Whether a merge that reads have paid for is running or due.
    pub(super) fn needs_read_merge(&self, now: Duration) -> bool {
        self.store.scheduler.read_merge.lock().is_some() || self.due_read_merge(now).is_some()
    }

    /// Claims the next step of the merge that reads have paid for.
    pub(super) fn claim_read_merge(&self, now: Duration) -> Option<Job> {
        let running = self.store.scheduler.read_merge.lock().clone();
        let (id, request) = match running {
            Some(running) => running,
            None => self.begin_read_merge(now)?,
        };
        let keyspace = self.store.keyspaces.load().get(&id).cloned();
        let Some(keyspace) = keyspace.filter(|keyspace| keyspace.check().is_ok()) else {
            *self.store.scheduler.read_merge.lock() = None;
            return None;
        };
        let state = self.store.scheduler.state();
        let waiting = state.back_off.may_begin(id, now).then(|| state.back_off.waiting(id, now));
        drop(state);
        match self.claim_range(&keyspace, &request, &waiting?.held) {
            RangeStep::Compact(claim) => Some(Job::Compact(keyspace, claim)),
            RangeStep::Blocked => None,
            RangeStep::Done => {
                *self.store.scheduler.read_merge.lock() = None;
                None
            }
        }
    }

    /// Begins the merge with the greatest loss relative to its price, if one is due.
    fn begin_read_merge(&self, now: Duration) -> Option<(u32, RangeRequest)> {
        let (DueMerge { keyspace, partition, bounds }, loss) = self.due_read_merge(now)?;
        let mut running = self.store.scheduler.read_merge.lock();
        if running.is_some() {
            return None;
        }
        partition.losses.merge.begin_job();
        let request = self.range_request(bounds, Reason::Reads);
        self.store.context.metrics.read_triggered_compactions.add(1);
        let (lost_microseconds, price_microseconds) = loss.microseconds();
        self.store.context.report(&Event::ReadsPaidForMerge {
            keyspace: keyspace.name.clone(),
            lost_microseconds,
            price_microseconds,
        });
        *running = Some((keyspace.id, request));
        running.clone()
    }

    fn due_read_merge(&self, now: Duration) -> Option<(DueMerge, DueLoss)> {
        let mut due = Vec::new();
        for keyspace in self.store.keyspaces.load().values() {
            if keyspace.check().is_err() || self.bulk_load_end(keyspace, now).is_some() {
                continue;
            }
            let version = Arc::clone(&keyspace.read_state.load().version);
            for (position, partition) in version.partitions.iter().enumerate() {
                let price = || self.store.scheduler.job_times.of_merge(partition);
                let loss = &partition.losses.merge;
                // A merge drops nothing of the memtables.
                let may_help = loss.nanoseconds() > 0 && partition.totals().table_count > 0;
                let Some(loss) = may_help.then(|| loss.due(price())).flatten() else {
                    continue;
                };
                let upper = version.upper_of(position);
                let bounds = (
                    Bound::Included(partition.lower.clone()),
                    upper.map_or(Bound::Unbounded, |upper| Bound::Excluded(upper.to_vec())),
                );
                let (keyspace, partition) = (Arc::clone(keyspace), Arc::clone(partition));
                due.push((DueMerge { keyspace, partition, bounds }, loss));
            }
        }
        law::first(due)
    }
}
