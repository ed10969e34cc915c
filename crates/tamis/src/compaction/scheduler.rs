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

use super::{
    back_off::{BackOff, RETRY},
    due_jobs::DueJobs,
    law::JobTimes,
    plan::{InProgress, Plan, RangeRequest},
};
use crate::{
    error::Error,
    key::Sequence,
    store::{changed_keyspaces::ChangedKeyspaces, runtime::Clock},
    sync::{Condvar, Mutex, MutexGuard},
};

#[derive(Debug, Default)]
pub(super) struct State {
    /// Tables and key ranges of running compactions. Picks outside of the lock share it; a change makes another one.
    pub(super) in_progress: Arc<InProgress>,
    pub(super) due: DueJobs,
    pub(super) compaction_count: usize,
    /// Flushes between their claim and its end.
    pub(super) running_flush_count: usize,
    /// Jobs that have begun: the number of the last one, from 1.
    begun_count: u64,
    /// A failed job up to this number is tried again at once: a thread waits that ignores its failure.
    retried_up_to: u64,
    /// Of the failed jobs, the one that began last.
    last_failure: Option<(u64, Error)>,
    /// The same for flushes, if the last flush failed.
    flush_failure: Option<(u64, Error)>,
    /// After a failed flush: when the next one may begin.
    pub(super) flush_at: Option<Duration>,
    /// Failed compactions, and when they are tried again.
    pub(super) back_off: BackOff,
    /// After a failed deletion of obsolete files: when the next one may begin.
    pub(super) deletion_at: Option<Duration>,
    /// After a failed write of deferred log bytes: when the next one may begin.
    pub(super) deferred_at: Option<Duration>,
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

    /// Records the end of a flush, and the number and the error of a failed one.
    pub(super) fn note_flush(&mut self, failure: Option<(u64, &Error)>, now: Duration) {
        match failure {
            Some((number, error)) => {
                keep_last(&mut self.flush_failure, number, error);
                self.flush_at = (number > self.retried_up_to).then_some(now + RETRY);
            }
            None => (self.flush_failure, self.flush_at) = (None, None),
        }
    }

    /// Records the end of a compaction of a keyspace, as [`State::note_flush`].
    pub(super) fn note_compaction(
        &mut self,
        (keyspace, plan): (u32, &Plan),
        failure: Option<(u64, &Error)>,
        now: Duration,
    ) {
        match failure {
            Some(failure) => {
                let is_requested = failure.0 <= self.retried_up_to;
                self.back_off.note_failure(keyspace, plan.partitions(), failure, (now, is_requested));
            }
            None => self.back_off.note_success(keyspace, &plan.partitions()),
        }
    }

    /// Records the failure of the job with this number.
    pub(super) fn note_failure(&mut self, number: u64, error: &Error) {
        keep_last(&mut self.last_failure, number, error);
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

fn keep_last(last: &mut Option<(u64, Error)>, number: u64, error: &Error) {
    if last.as_ref().is_none_or(|(known, _)| *known < number) {
        *last = Some((number, error.clone()));
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Scheduler {
    state: Mutex<State>,
    changed: Arc<ChangedKeyspaces>,
    /// The merge that reads have paid for, with its keyspace ([`super::read_merges`]).
    pub(super) read_merge: Mutex<Option<(u32, RangeRequest)>>,
    /// The times of earlier jobs, which price later ones.
    pub(crate) job_times: JobTimes,
    /// Counts every change that may have made a job due, so that no worker sleeps through it.
    pub(crate) generation: AtomicU64,
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
            read_merge: Mutex::default(),
            job_times: JobTimes::default(),
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

    /// Waits until there may be work after this generation, or the store is closed, for at most `timeout`.
    pub(crate) fn wait_for_work(&self, clock: &dyn Clock, generation: u64, timeout: Duration) {
        let mut wait_lock = self.wait_lock.lock();
        let is_changed = self.generation.load(Ordering::SeqCst) != generation;
        if !is_changed && !self.is_stopping.load(Ordering::SeqCst) {
            clock.wait(&self.work, &mut wait_lock, timeout);
        }
    }

    /// Wakes workers and waiting writers: a job has ended.
    pub(crate) fn note_progress(&self) {
        self.wake();
        self.progress.notify_all();
    }

    /// Waits until a job ends, and for a short time at most: the caller checks on its own then.
    pub(crate) fn wait_a_moment(&self, clock: &dyn Clock) {
        self.wait_for_progress(clock, Duration::from_millis(20));
    }

    /// Waits until a job ends, for at most `timeout`.
    pub(crate) fn wait_for_progress(&self, clock: &dyn Clock, timeout: Duration) {
        let mut wait_lock = self.wait_lock.lock();
        clock.wait(&self.progress, &mut wait_lock, timeout);
    }

    /// The number of a job that begins now.
    pub(super) fn begin_job(&self) -> u64 {
        let mut state = self.state();
        state.begun_count += 1;
        state.begun_count
    }

    /// The error of a flush with a greater number that failed, if the last flush did.
    pub(super) fn flush_failure_after(&self, number: u64) -> Option<Error> {
        newer(self.state().flush_failure.as_ref(), number)
    }

    /// The error of a job with a greater number that failed.
    pub(super) fn failure_after(&self, number: u64) -> Option<Error> {
        newer(self.state().last_failure.as_ref(), number)
    }

    /// Of those of these partitions of a keyspace whose last compaction failed: the error of such a compaction with a greater number.
    pub(super) fn compaction_failure_after(
        &self,
        number: u64,
        keyspace: u32,
        partitions: &BTreeSet<u64>,
    ) -> Option<Error> {
        self.state().back_off.failure_after(number, keyspace, |partition| partitions.contains(&partition))
    }

    /// Registers a thread that waits until no compaction is due, until the guard is dropped.
    pub(super) fn begin_waiting(&self) -> Waiting<'_> {
        self.waiting_count.fetch_add(1, Ordering::SeqCst);
        Waiting(self)
    }

    /// The number of the last job that has begun.
    pub(super) fn begun_count(&self) -> u64 {
        self.state().begun_count
    }

    /// Lets failed jobs be tried again at once, and so the running ones up to job `number`, should they fail: a thread waits for them.
    pub(super) fn retry_now(&self, number: u64) {
        let mut state = self.state();
        (state.flush_at, state.deletion_at) = (None, None);
        state.retried_up_to = state.retried_up_to.max(number);
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

/// The error of a failure with a greater number.
fn newer(failure: Option<&(u64, Error)>, number: u64) -> Option<Error> {
    failure.filter(|(failed, _)| *failed > number).map(|(_, error)| error.clone())
}
