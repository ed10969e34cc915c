//! Flushes and compactions on request: [`crate::Db::flush`], [`crate::Db::compact_range`] and
//! [`crate::Db::wait_for_compactions`].

use std::{sync::Arc, time::Duration};

use super::{
    background_jobs::{BackgroundJobs, RangeStep},
    plan::{RangeRequest, Reason},
    scheduler::Scheduler,
};
use crate::{
    commit_log::LogState,
    cursor::bounded::Bounds,
    error::{Error, Result},
    keyspace_state::KeyspaceState,
};

/// How often a waiting thread checks on its own whether its jobs are done.
const WAIT: Duration = Duration::from_millis(20);
/// The maximum number of log segments after an open.
const REPLAYED_SEGMENTS_MAX: usize = 4;

impl BackgroundJobs {
    /// Called by an open before it starts the workers: if the log has more than [`REPLAYED_SEGMENTS_MAX`] segments, flushes the
    /// replayed memtables and removes all segments but the new one. Every open begins a segment, and a process that ends soon
    /// leaves the flush to the next one: segments would pile up. A failure is reported; the workers try again.
    pub(crate) fn bound_replayed_log(&self) {
        let mut log = self.log.lock();
        let Some(state) = log.as_mut() else { return };
        if state.log.segments().len() <= REPLAYED_SEGMENTS_MAX {
            return;
        }
        self.rotate_memtables(state);
        drop(log);
        while let Some(claim) = self.claim_flush() {
            if !self.run_flush(claim) {
                return;
            }
        }
        if let Err(error) = self.flusher.remove_obsolete_segments(0) {
            self.note_failure("remove obsolete log segments", &error);
        }
    }

    /// Makes the memtables of all keyspaces immutable.
    fn rotate_memtables(&self, state: &mut LogState) {
        let keyspaces = self.keyspaces.load();
        let rotated_count = keyspaces.values().filter(|keyspace| keyspace.rotate_memtable()).count();
        if rotated_count > 0 {
            self.log.begin_segment(state);
        }
    }

    /// See [`crate::Db::flush`].
    pub(crate) fn flush_all(&self) -> Result<()> {
        let mut log = self.log.lock();
        self.context.check_writable()?;
        if let Some(state) = log.as_mut() {
            self.rotate_memtables(state);
        }
        // Memtables that writers rotate later do not concern this call: per keyspace, those up to its newest immutable one do.
        let newest = |keyspace: &Arc<KeyspaceState>| {
            keyspace
                .read_state
                .load()
                .immutable
                .first()
                .map(|memtable| (Arc::clone(keyspace), Arc::clone(memtable)))
        };
        let mut waiting: Vec<_> = self.keyspaces.load().values().filter_map(newest).collect();
        drop(log);
        let is_done = || {
            while let Some((keyspace, memtable)) = waiting.last() {
                let read_state = keyspace.read_state.load();
                let is_left = read_state.immutable.iter().any(|other| Arc::ptr_eq(other, memtable));
                if is_left && keyspace.check().is_ok() {
                    return false;
                }
                waiting.pop();
            }
            true
        };
        self.wait_until(is_done, Scheduler::flush_failures)
    }

    /// Waits for the background until `is_done` returns true, or until another one of the jobs that `failures` counts has failed.
    fn wait_until(
        &self,
        mut is_done: impl FnMut() -> bool,
        failures: impl Fn(&Scheduler) -> (u64, Option<Error>),
    ) -> Result<()> {
        let (failed_before, _) = failures(&self.scheduler);
        self.scheduler.retry_now();
        loop {
            self.run_inline();
            if is_done() {
                return Ok(());
            }
            self.context.check_writable()?;
            if let (count, Some(error)) = failures(&self.scheduler)
                && count != failed_before
            {
                return Err(error);
            }
            self.scheduler.wait_for_progress(&*self.context.runtime.clock, WAIT);
        }
    }

    /// See [`crate::Db::wait_for_compactions`].
    pub(crate) fn wait_for_compactions(&self) -> Result<()> {
        self.context.check_open()?;
        let _waiting = self.scheduler.begin_waiting();
        self.wait_until(|| self.is_idle(), Scheduler::failures)
    }

    /// See [`crate::Db::compact_range`].
    pub(crate) fn compact_range(&self, keyspace: &KeyspaceState, bounds: &Bounds) -> Result<()> {
        self.flush_all()?;
        let request = RangeRequest {
            lower: bounds.0.clone(),
            upper: bounds.1.clone(),
            sequence_max: self.snapshots.visible(),
            number_max: self.versions.new_file_number(),
            read_points: self.snapshots.read_points(),
            reason: Reason::Range,
        };
        loop {
            keyspace.check()?;
            let job = self.context.begin_write_job()?;
            match self.claim_range(keyspace, &request) {
                RangeStep::Done => return Ok(()),
                RangeStep::Blocked => {
                    drop(job);
                    self.run_inline();
                    self.scheduler.wait_for_progress(&*self.context.runtime.clock, WAIT);
                }
                RangeStep::Compact(claim) => {
                    let result = self.context.catch("compact a range", || {
                        self.compactor.compact(keyspace, &claim.plan, &|| self.flush_between_tables())
                    });
                    drop(claim);
                    self.scheduler.note_progress();
                    result??;
                }
            }
        }
    }
}
