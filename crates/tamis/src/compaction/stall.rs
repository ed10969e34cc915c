//! Write stops: a writer waits until a flush or a compaction has finished. Delays come before them (`write/throttle.rs`); writers only stop
//! if flushes or compactions make no progress. A job that fails while a writer waits for it ends the wait with its error.

use super::{background_jobs::BackgroundJobs, scheduler::Scheduler};
use crate::{
    error::{Error, Result},
    events::Event,
    keyspace_state::KeyspaceState,
    write::back_pressure::IMMUTABLE_COUNT_MAX,
};

impl BackgroundJobs {
    /// Waits until a keyspace has fewer immutable memtables than the maximum.
    ///
    /// # Errors
    /// The error of a flush; as [`crate::context::StoreContext::check_writable`].
    pub(crate) fn wait_for_flush(&self, keyspace: &KeyspaceState) -> Result<()> {
        let is_blocked = || keyspace.read_state.load().immutable.len() >= IMMUTABLE_COUNT_MAX;
        self.stop_writer(keyspace, is_blocked, self.scheduler.flush_count(), Scheduler::flush_failures)
    }

    /// Waits until a keyspace has fewer runs at L0 than the maximum.
    ///
    /// # Errors
    /// The error of a compaction of a partition with the maximum number of runs; as [`crate::context::StoreContext::check_writable`].
    pub(crate) fn wait_for_level0(&self, keyspace: &KeyspaceState) -> Result<()> {
        let is_blocked = || keyspace.pressure(&keyspace.read_state.load()).stops();
        if !is_blocked() {
            return Ok(());
        }
        let _waiting = self.scheduler.begin_waiting();
        // A failure elsewhere does not end the wait: compactions of these partitions do.
        let failures = |scheduler: &Scheduler| {
            let stopping = keyspace.stopping_partitions(&keyspace.read_state.load());
            scheduler.compaction_failures(keyspace.id, &stopping)
        };
        let failed_before = self.scheduler.compaction_failure_count();
        self.stop_writer(keyspace, is_blocked, failed_before, failures)
    }

    fn stop_writer(
        &self,
        keyspace: &KeyspaceState,
        is_blocked: impl Fn() -> bool,
        failed_before: u64,
        failures: impl Fn(&Scheduler) -> (u64, Option<Error>),
    ) -> Result<()> {
        let clock = &*self.context.runtime.clock;
        let metrics = &self.context.metrics;
        let start = clock.now();
        metrics.stopped_writes.add(1);
        self.context.report(&Event::BackPressure { microseconds_per_mib: None });
        let is_done = || !is_blocked() || keyspace.check().is_err();
        let result = self.wait_until(is_done, failed_before, failures);
        let waited = clock.now().saturating_sub(start);
        metrics.stopped_microseconds.add(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
        self.context.report(&Event::BackPressure { microseconds_per_mib: Some(0) });
        result
    }
}
