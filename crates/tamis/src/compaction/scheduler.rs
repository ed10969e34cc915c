//! The state of the background jobs: which are running, which have failed, and where threads wait for each other.
//!
//! It does not know the store: [`super::background_jobs`] picks and runs the jobs.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{
    back_off::BackOff,
    deleted_range_jobs::DenseTables,
    due_jobs::DueJobs,
    plan::{InProgress, Plan},
    read_request::ReadRequests,
};
use crate::{changed_keyspaces::ChangedKeyspaces, error::Error, key::Sequence, runtime::Clock};

#[derive(Debug, Default)]
pub(super) struct State {
    /// Tables and key ranges of running compactions. Picks outside of the lock share it; a change makes another one.
    pub(super) in_progress: Arc<InProgress>,
    pub(super) due: DueJobs,
    pub(super) compaction_count: usize,
    /// Flushes between their claim and its end.
    pub(super) running_flush_count: usize,
    pub(super) failure_count: u64,
    pub(super) last_failure: Option<Error>,
    /// After a failed flush: when the next one may begin.
    pub(super) flush_at: Option<Duration>,
    /// Failed compactions, and when they are tried again.
    pub(super) back_off: BackOff,
    /// Flushes that have begun, and the number of the last one that failed.
    pub(super) flush_count: u64,
    pub(super) failed_flush: u64,
    /// After a failed deletion of obsolete files: when the next one may begin.
    pub(super) deletion_at: Option<Duration>,
    /// After a failed write of deferred log bytes: when the next one may begin.
    pub(super) deferred_at: Option<Duration>,
    pub(super) flush_failure: Option<Error>,
}

impl State {
    /// Claims the tables and the range of a plan.
    pub(super) fn begin_compaction(&mut self, plan: &Plan) {
        Arc::make_mut(&mut self.in_progress).begin(plan);
        self.compaction_count += 1;
        self.unpick(plan);
    }

    /// Releases a plan, after its edit was installed or has failed.
    pub(super) fn end_compaction(&mut self, plan: &Plan) {
        Arc::make_mut(&mut self.in_progress).end(plan);
        self.compaction_count -= 1;
        self.unpick(plan);
    }

    /// Removes a dropped keyspace.
    pub(super) fn forget(&mut self, keyspace: u32) {
        self.due.forget(keyspace);
        self.back_off.forget(keyspace);
    }

    fn unpick(&mut self, plan: &Plan) {
        if let Ok(keyspace) = u32::try_from(plan.keyspace) {
            self.due.unpick(keyspace);
        }
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Scheduler {
    state: Mutex<State>,
    changed: Arc<ChangedKeyspaces>,
    /// Compactions that scans request.
    pub(crate) read_requests: ReadRequests,
    /// Tables whose deleted ranges the background records.
    pub(super) dense_tables: Arc<DenseTables>,
    /// Counts every change that may have made a job due, so that no worker sleeps through it.
    pub(super) generation: AtomicU64,
    /// Without workers: `generation` when no job was due, or `u64::MAX`, and the time in nanoseconds at which one may be due although
    /// nothing changed.
    idle: [AtomicU64; 2],
    pub(super) is_stopping: AtomicBool,
    /// Obsolete files are being deleted.
    pub(super) is_deleting: AtomicBool,
    /// Threads that wait until no compaction is due.
    pub(super) waiting_count: AtomicUsize,
    pub(super) wait_lock: Mutex<()>,
    /// Notified when a job may be due.
    pub(super) work: Condvar,
    /// Notified when a job has ended.
    progress: Condvar,
}

/// See [`Scheduler::begin_waiting`].
pub(super) struct Waiting<'a>(&'a Scheduler);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting_count.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Scheduler {
    pub(crate) fn new(changed: &Arc<ChangedKeyspaces>) -> Self {
        Self {
            state: Mutex::default(),
            changed: Arc::clone(changed),
            read_requests: ReadRequests::default(),
            dense_tables: Arc::default(),
            generation: AtomicU64::new(0),
            idle: [AtomicU64::new(u64::MAX), AtomicU64::new(0)],
            is_stopping: AtomicBool::new(false),
            is_deleting: AtomicBool::new(false),
            waiting_count: AtomicUsize::new(0),
            wait_lock: Mutex::default(),
            work: Condvar::new(),
            progress: Condvar::new(),
        }
    }

    /// Locks the state. It includes all keyspaces that have changed until now.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        for (keyspace, changed) in self.changed.take() {
            state.due.note_change(keyspace, changed);
        }
        state
    }

    /// Records that no job was due at `generation`, and that none is before `until` if nothing changes.
    pub(super) fn note_idle(&self, generation: u64, until: Option<Duration>) {
        let [idle_generation, idle_until] = &self.idle;
        let until = until.and_then(|until| u64::try_from(until.as_nanos()).ok()).unwrap_or(u64::MAX);
        idle_until.store(until, Ordering::SeqCst);
        idle_generation.store(generation, Ordering::SeqCst);
    }

    /// Whether nothing has changed since [`Scheduler::note_idle`].
    #[inline]
    pub(super) fn is_idle(&self, clock: &dyn Clock) -> bool {
        let [idle_generation, idle_until] = &self.idle;
        if idle_generation.load(Ordering::SeqCst) != self.generation.load(Ordering::SeqCst) {
            return false;
        }
        let until = idle_until.load(Ordering::SeqCst);
        until == u64::MAX || clock.now() < Duration::from_nanos(until)
    }

    /// Records that the last snapshot at `sequence` was released: entries that it kept may be dropped now.
    pub(crate) fn note_snapshot_released(&self, sequence: Sequence) {
        if self.state().due.note_snapshot_released(sequence) {
            self.wake();
        }
    }

    /// Wakes the workers: a job may be due.
    pub(crate) fn wake(&self) {
        let _wait_lock = self.wait_lock.lock();
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.work.notify_all();
    }

    /// Wakes workers and waiting writers: a job has ended.
    pub(crate) fn note_progress(&self) {
        self.wake();
        self.progress.notify_all();
    }

    /// Waits until a job ends, for at most `timeout`.
    pub(crate) fn wait_for_progress(&self, clock: &dyn Clock, timeout: Duration) {
        let mut wait_lock = self.wait_lock.lock();
        clock.wait(&self.progress, &mut wait_lock, timeout);
    }

    /// The number of a flush that begins now, from 1.
    pub(super) fn begin_flush(&self) -> u64 {
        let mut state = self.state();
        state.flush_count += 1;
        state.flush_count
    }

    /// The number of flushes that have begun. A thread that waits for flushes ignores failures of these: the cause may be gone.
    pub(crate) fn flush_count(&self) -> u64 {
        self.state().flush_count
    }

    /// The number of the last failed flush, and its error if the last flush failed.
    pub(crate) fn flush_failures(&self) -> (u64, Option<Error>) {
        let state = self.state();
        (state.failed_flush, state.flush_failure.clone())
    }

    /// The number of failed compactions.
    pub(super) fn compaction_failure_count(&self) -> u64 {
        self.state().back_off.failure_count()
    }

    /// Of those of these partitions of a keyspace whose last compaction failed: the greatest number of such a failure, and its error.
    pub(super) fn compaction_failures(
        &self,
        keyspace: u32,
        partitions: &BTreeSet<u64>,
    ) -> (u64, Option<Error>) {
        self.state().back_off.last_failure(keyspace, |partition| partitions.contains(&partition))
    }

    /// The number of failed jobs, and the error of the last one.
    pub(crate) fn failures(&self) -> (u64, Option<Error>) {
        let state = self.state();
        (state.failure_count, state.last_failure.clone())
    }

    /// Registers a thread that waits until no compaction is due, until the guard is dropped.
    pub(super) fn begin_waiting(&self) -> Waiting<'_> {
        self.waiting_count.fetch_add(1, Ordering::SeqCst);
        Waiting(self)
    }

    /// Lets failed jobs be tried again at once: a thread waits for them.
    pub(crate) fn retry_now(&self) {
        let mut state = self.state();
        (state.flush_at, state.deletion_at) = (None, None);
        for keyspace in state.back_off.retry_now() {
            state.due.unpick(keyspace);
        }
        drop(state);
        self.wake();
    }

    /// Stops the workers: running jobs are cancelled at their next table.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.note_progress();
    }

    pub(crate) fn is_stopping(&self) -> &AtomicBool {
        &self.is_stopping
    }
}
