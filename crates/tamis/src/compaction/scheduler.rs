//! Where the background stands: what runs, what failed, and where threads wait for each other.
//!
//! It knows no database; what is done next, and by whom, is the work of `job_loop.rs`.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use super::{direct_flush::CachedPace, plan::InProgress};
use crate::{error::Error, runtime::Clock};

#[derive(Debug, Default)]
pub(super) struct State {
    /// What running compactions hold.
    pub(super) in_progress: InProgress,
    pub(super) compaction_count: usize,
    pub(super) failure_count: u64,
    pub(super) last_failure: Option<Error>,
    /// Not before: the last flush failed.
    pub(super) flush_at: Option<Duration>,
    /// Keyspaces (by id) whose last compaction failed: how often in a row, and not before when the next is tried.
    pub(super) compact_at: BTreeMap<u32, (u32, Duration)>,
    /// Failed flushes.
    pub(super) flush_failure_count: u64,
    /// Not before: the last sweep could not delete what waits.
    pub(super) sweep_at: Option<Duration>,
    /// Not before: the last write of deferred log bytes failed.
    pub(super) deferred_at: Option<Duration>,
    pub(super) flush_failure: Option<Error>,
}

/// What the background is at, and where threads wait for it.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    pub(super) state: Mutex<State>,
    /// Counts everything that may have made a job due, so that no worker sleeps through it.
    pub(super) generation: AtomicU64,
    pub(super) is_stopping: AtomicBool,
    pub(super) is_sweeping: AtomicBool,
    /// Threads that wait until no compaction is due.
    pub(super) waiting_count: AtomicUsize,
    pub(super) cached_pace: CachedPace,
    /// Blocks of tables that readers had asked for when the last flush began.
    pub(super) blocks_at_flush: AtomicU64,
    pub(super) wait_lock: Mutex<()>,
    pub(super) work: Condvar,
    progress: Condvar,
}

impl Scheduler {
    /// Tells the workers that something may be due.
    pub(crate) fn wake(&self) {
        let _wait_lock = self.wait_lock.lock();
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.work.notify_all();
    }

    /// Tells waiting writers, and workers too, that a job is done.
    pub(crate) fn note_progress(&self) {
        self.wake();
        self.progress.notify_all();
    }

    /// Waits until a job is done, for `timeout` at most.
    pub(crate) fn wait_for_progress(&self, clock: &dyn Clock, timeout: Duration) {
        let mut wait_lock = self.wait_lock.lock();
        clock.wait(&self.progress, &mut wait_lock, timeout);
    }

    /// How many flushes failed so far, and how the last one did, unless one succeeded since.
    pub(crate) fn flush_failures(&self) -> (u64, Option<Error>) {
        let state = self.state.lock();
        (state.flush_failure_count, state.flush_failure.clone())
    }

    /// How many jobs failed so far, and how the last one did.
    pub(crate) fn failures(&self) -> (u64, Option<Error>) {
        let state = self.state.lock();
        (state.failure_count, state.last_failure.clone())
    }

    /// Tries failed jobs again at once: somebody waits for them.
    pub(crate) fn retry_now(&self) {
        let mut state = self.state.lock();
        (state.flush_at, state.sweep_at) = (None, None);
        state.compact_at.clear();
        drop(state);
        self.wake();
    }

    /// Ends a sweep; `again_at` is set where it could not delete what waits.
    pub(super) fn end_sweep(&self, again_at: Option<Duration>) {
        self.state.lock().sweep_at = again_at;
        self.is_sweeping.store(false, Ordering::SeqCst);
    }

    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.note_progress();
    }

    pub(crate) fn is_stopping(&self) -> &AtomicBool {
        &self.is_stopping
    }
}
