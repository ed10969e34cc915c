//! Flushes and compactions on request: [`crate::Db::flush`], [`crate::Db::compact_range`] and
//! [`crate::Db::wait_for_compactions`].

use std::{cell::RefCell, ops::ControlFlow, sync::Arc};

use super::{
    background_jobs::{BackgroundJobs, Job, RangeStep},
    plan::{RangeRequest, Reason},
    scheduler::Scheduler,
};
use crate::{
    cursor::bounded::Bounds,
    error::{Error, Result},
    store::{commit_log::LogState, keyspace_state::KeyspaceState},
};

/// The maximum number of log segments after an open.
const REPLAYED_SEGMENTS_MAX: usize = 4;

/// The progress of [`crate::Db::compact_range_with`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CompactProgress {
    /// Tables that were begun.
    pub table_count: usize,
}

/// Whether a keyspace is the only one that a call concerns, or the call concerns all.
fn is_among(keyspace: &KeyspaceState, only: Option<&KeyspaceState>) -> bool {
    only.is_none_or(|only| only.id == keyspace.id)
}

impl BackgroundJobs {
    /// Called by an open before it starts the workers: if the log has more than [`REPLAYED_SEGMENTS_MAX`] segments, flushes the
    /// replayed memtables and removes all segments but the new one. Every open begins a segment, and a process that ends soon
    /// leaves the flush to the next one: segments would accumulate. The same after a change of the layout, if memtables have retained
    /// entries: the partitions can't be united before. A failure is reported; the workers try again.
    ///
    /// Compactions that are due then run, too, as long as they read no more than a memtable has: processes that end soon would leave
    /// them to later ones, and small tables would accumulate.
    pub(crate) fn bound_replayed_log(&self) {
        let mut log = self.store.log.lock();
        let Some(state) = log.as_mut() else { return };
        let is_short = state.log.segments().len() <= REPLAYED_SEGMENTS_MAX;
        let keeps_partitions = |keyspace: &Arc<KeyspaceState>| self.keeps_partitions(keyspace);
        if is_short && !self.store.keyspaces.load().values().any(keeps_partitions) {
            return;
        }
        self.rotate_memtables(state, None);
        drop(log);
        if self.flush_immutable().is_err() {
            return;
        }
        if let Err(error) = self.flusher.remove_obsolete_segments(0) {
            self.note_failure("remove obsolete log segments", self.store.scheduler.begin_job(), &error);
        }
        let memtable_bytes =
            self.store.keyspaces.load().values().map(|keyspace| keyspace.options().memtable_bytes).max();
        self.run_small_compactions(memtable_bytes.unwrap_or_default());
    }

    /// Flushes all immutable memtables on this thread, before the workers start.
    ///
    /// # Errors
    /// That of the first flush that failed, which is reported.
    pub(crate) fn flush_immutable(&self) -> Result<()> {
        let begun_before = self.store.scheduler.begun_count();
        while let Some(claim) = self.claim_flush() {
            if !self.run(Job::Flush(claim)) {
                self.store.context.check_writable()?;
                return self.store.scheduler.flush_failure_after(begun_before).map_or(Ok(()), Err);
            }
        }
        Ok(())
    }

    /// Makes the memtables of all keyspaces, or of one, immutable. If other keyspaces need the current segment of the log, another
    /// segment could not be removed before it: then none is begun.
    pub(super) fn rotate_memtables(&self, state: &mut LogState, only: Option<&KeyspaceState>) {
        let keyspaces = self.store.keyspaces.load();
        let (mut is_rotated, mut is_needed) = (false, false);
        for keyspace in keyspaces.values() {
            if is_among(keyspace, only) {
                is_rotated |= keyspace.rotate_memtable();
            } else {
                is_needed |= !keyspace.read_state.load().has_empty_memtables();
            }
        }
        if is_rotated && !is_needed {
            self.store.log.begin_segment(state);
        }
    }

    /// See [`crate::Db::flush`]: of all keyspaces, or of one.
    pub(crate) fn flush(&self, only: Option<&KeyspaceState>) -> Result<()> {
        let _whole = self.store.keyspaces.begin_whole_flushes();
        let mut log = self.store.log.lock();
        self.store.context.check_writable()?;
        let begun_before = self.store.scheduler.begun_count();
        if let Some(state) = log.as_mut() {
            self.rotate_memtables(state, only);
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
        let is_flushed = |keyspace: &&Arc<KeyspaceState>| is_among(keyspace, only);
        let mut waiting: Vec<_> =
            self.store.keyspaces.load().values().filter(is_flushed).filter_map(newest).collect();
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
        self.wait_until(is_done, begun_before, Scheduler::flush_failure_after)
    }

    /// Waits for the background until `is_done` returns true, or until `failure_after` returns the error of a job that began after
    /// job `begun_before`. Failures of earlier jobs are ignored: their cause may be gone.
    pub(super) fn wait_until(
        &self,
        mut is_done: impl FnMut() -> bool,
        begun_before: u64,
        failure_after: impl Fn(&Scheduler, u64) -> Option<Error>,
    ) -> Result<()> {
        self.store.scheduler.retry_now(begun_before);
        loop {
            self.run_inline();
            if is_done() {
                return Ok(());
            }
            let failure = failure_after(&self.store.scheduler, begun_before);
            // Asked after the failure was read: one after which writes are refused gives each waiting thread the same error.
            self.store.context.check_writable()?;
            failure.map_or(Ok(()), Err)?;
            self.store.scheduler.wait_a_moment(&*self.store.context.runtime.clock);
        }
    }

    /// See [`crate::Db::wait_for_compactions`].
    pub(crate) fn wait_for_compactions(&self) -> Result<()> {
        self.store.context.check_open()?;
        let _waiting = self.store.scheduler.begin_waiting();
        self.wait_until(|| self.is_idle(), self.store.scheduler.begun_count(), Scheduler::failure_after)
    }

    /// The request to compact what a range has now.
    pub(super) fn range_request(&self, (lower, upper): Bounds, reason: Reason) -> RangeRequest {
        RangeRequest {
            lower,
            upper,
            sequence_max: self.store.snapshots.visible(),
            number_max: self.store.versions.new_file_number(),
            readers: self.store.snapshots.readers(&self.store.context.expiry),
            reason,
        }
    }

    /// See [`crate::Db::compact_range_with`].
    pub(crate) fn compact_range(
        &self,
        keyspace: &KeyspaceState,
        bounds: Bounds,
        progress: &mut dyn FnMut(&CompactProgress) -> ControlFlow<()>,
    ) -> Result<bool> {
        self.flush(Some(keyspace))?;
        // The number of tables, and whether the program has ended the call.
        let state = RefCell::new((CompactProgress::default(), false, progress));
        let report = |table_count: usize| {
            let (done, is_ended, progress) = &mut *state.borrow_mut();
            done.table_count += table_count;
            *is_ended |= progress(done).is_break();
            if *is_ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let request = self.range_request(bounds, Reason::Range);
        loop {
            keyspace.check()?;
            if report(0).is_break() {
                return Ok(false);
            }
            let job = self.store.context.begin_write_job()?;
            match self.claim_range(keyspace, &request, &[]) {
                RangeStep::Done => return Ok(true),
                RangeStep::Blocked => {
                    drop(job);
                    self.run_inline();
                    self.store.scheduler.wait_a_moment(&*self.store.context.runtime.clock);
                }
                RangeStep::Compact(claim) => {
                    let between_tables = || {
                        let _ = self.work_between_tables();
                        report(1)
                    };
                    let result = self.store.context.catch("compact a range", || {
                        self.store.compact(keyspace, &claim.plan, &between_tables)
                    });
                    drop(claim);
                    self.store.scheduler.note_progress();
                    if state.borrow().1 {
                        return Ok(false);
                    }
                    result??;
                }
            }
        }
    }
}
