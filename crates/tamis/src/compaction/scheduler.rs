//! The state of the background jobs: which are running, which have failed, and where threads wait for each other.
//!
//! It does not know the store: [`super::background_jobs`] picks and runs the jobs.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use super::{plan::InProgress, read_request::ReadRequests};
use crate::{error::Error, runtime::Clock};

#[derive(Debug, Default)]
pub(super) struct State {
    /// Tables and key ranges of running compactions.
    pub(super) in_progress: InProgress,
    pub(super) compaction_count: usize,
    pub(super) failure_count: u64,
    pub(super) last_failure: Option<Error>,
    /// After a failed flush: when the next one may begin.
    pub(super) flush_at: Option<Duration>,
    /// Keyspaces (by id) whose last compaction failed: the number of consecutive failures, and when the next one may begin.
    pub(super) compact_at: BTreeMap<u32, (u32, Duration)>,
    /// Keyspaces (by id) whose last compaction failed: the number of the failure, and its error.
    pub(super) compaction_failures: BTreeMap<u32, (u64, Error)>,
    /// Failed compactions.
    pub(super) compaction_failure_count: u64,
    /// Failed flushes.
    pub(super) flush_failure_count: u64,
    /// After a failed deletion of obsolete files: when the next one may begin.
    pub(super) deletion_at: Option<Duration>,
    /// After a failed write of deferred log bytes: when the next one may begin.
    pub(super) deferred_at: Option<Duration>,
    pub(super) flush_failure: Option<Error>,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    pub(super) state: Mutex<State>,
    /// Compactions that scans request.
    pub(crate) read_requests: ReadRequests,
    /// Counts every change that may have made a job due, so that no worker sleeps through it.
    pub(super) generation: AtomicU64,
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

    /// The number of failed flushes, and the error of the last flush if it failed.
    pub(crate) fn flush_failures(&self) -> (u64, Option<Error>) {
        let state = self.state.lock();
        (state.flush_failure_count, state.flush_failure.clone())
    }

    /// The number of the last failed compaction of a keyspace and its error, if its last compaction failed.
    pub(super) fn compaction_failures(&self, keyspace: u32) -> (u64, Option<Error>) {
        let state = self.state.lock();
        let failure = state.compaction_failures.get(&keyspace);
        failure.map_or((0, None), |(number, error)| (*number, Some(error.clone())))
    }

    /// The number of failed jobs, and the error of the last one.
    pub(crate) fn failures(&self) -> (u64, Option<Error>) {
        let state = self.state.lock();
        (state.failure_count, state.last_failure.clone())
    }

    /// Registers a thread that waits until no compaction is due, until the guard is dropped.
    pub(super) fn begin_waiting(&self) -> Waiting<'_> {
        self.waiting_count.fetch_add(1, Ordering::SeqCst);
        Waiting(self)
    }

    /// Lets failed jobs be tried again at once: a thread waits for them.
    pub(crate) fn retry_now(&self) {
        let mut state = self.state.lock();
        (state.flush_at, state.deletion_at) = (None, None);
        state.compact_at.clear();
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
