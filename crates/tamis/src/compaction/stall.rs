//! Write stops: a writer waits until a flush or a compaction has finished. Delays come before them (`write/throttle.rs`); writers only stop
//! if flushes or compactions make no progress. A job that fails while a writer waits for it ends the wait with its error.

use super::{background_jobs::BackgroundJobs, scheduler::Scheduler};
use crate::{
    error::{Error, Result},
    observe::events::Event,
    store::keyspace_state::KeyspaceState,
    write::back_pressure::IMMUTABLE_COUNT_MAX,
};

impl BackgroundJobs {
    /// Waits until a keyspace has fewer immutable memtables than the maximum.
    ///
    /// # Errors
    /// The error of a flush; as [`crate::store::context::StoreContext::check_writable`].
    pub(crate) fn wait_for_flush(&self, keyspace: &KeyspaceState) -> Result<()> {
        let is_blocked = || keyspace.read_state.load().immutable.len() >= IMMUTABLE_COUNT_MAX;
        self.stop_writer(keyspace, is_blocked, Scheduler::flush_failure_after)
    }

    /// Waits until a keyspace has fewer runs at L0 than the maximum.
    ///
    /// # Errors
    /// The error of a compaction of a partition with the maximum number of runs; as [`crate::store::context::StoreContext::check_writable`].
    pub(crate) fn wait_for_level0(&self, keyspace: &KeyspaceState) -> Result<()> {
        let is_blocked = || keyspace.pressure(&keyspace.read_state.load()).stops();
        if !is_blocked() {
            return Ok(());
        }
        let _waiting = self.store.scheduler.begin_waiting();
        // A failure elsewhere does not end the wait: compactions of these partitions do.
        let failure_after = |scheduler: &Scheduler, number: u64| {
            let stopping = keyspace.stopping_partitions(&keyspace.read_state.load());
            scheduler.compaction_failure_after(number, keyspace.id, &stopping)
        };
        self.stop_writer(keyspace, is_blocked, failure_after)
    }

    fn stop_writer(
        &self,
        keyspace: &KeyspaceState,
        is_blocked: impl Fn() -> bool,
        failure_after: impl Fn(&Scheduler, u64) -> Option<Error>,
    ) -> Result<()> {
        let clock = &*self.store.context.runtime.clock;
        let metrics = &self.store.context.metrics;
        let start = clock.now();
        metrics.stopped_writes.add(1);
        self.store.context.report(&Event::BackPressure { microseconds_per_mib: None });
        let is_done = || !is_blocked() || keyspace.check().is_err();
        let result = self.wait_until(is_done, self.store.scheduler.begun_count(), failure_after);
        let waited = clock.now().saturating_sub(start);
        metrics.stopped_microseconds.add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
        self.store.context.report(&Event::BackPressure { microseconds_per_mib: Some(0) });
        result
    }
}
