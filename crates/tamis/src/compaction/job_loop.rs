//! The threads of the background, and what they do next.
//!
//! A job is chosen under one lock and run outside of it: first the log bytes that waited too long, then flushes (the
//! oldest immutable memtable of a keyspace), then compactions; one worker is always left for flushes where there are two
//! or more. With no workers the writing thread runs all due jobs itself ([`Engine::run_inline`]), in the same order.
//!
//! A failed flush or compaction changed nothing: it is tried again after [`RETRY`], or when a writer waits for it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use parking_lot::RwLockReadGuard;

use super::{
    picker::{self, RangePick, RangeRequest},
    plan::Plan,
};
use crate::{
    engine::{Engine, KeyspaceState, LogState},
    error::{Error, Result},
    events::Event,
    runtime::JoinHandle,
};

/// How long deferred log bytes wait in the process at most.
pub(crate) const DEFERRED_TIME_MAX: Duration = Duration::from_millis(100);
/// The wait before a failed job is tried again.
pub(super) const RETRY: Duration = Duration::from_millis(500);
/// The wait doubles with each failed compaction of a keyspace in a row, up to about a minute.
const RETRY_DOUBLINGS_MAX: u32 = 7;
/// A keyspace counts as being filled for so long after a memtable was full.
const BULK_LOAD_IDLE_MAX: Duration = Duration::from_secs(3);
/// A worker looks for work at least this often.
const IDLE: Duration = Duration::from_secs(1);

enum Job {
    FlushDeferred,
    Sweep,
    Flush(Arc<KeyspaceState>),
    Compact(Arc<KeyspaceState>, Box<Plan>),
}

/// Whether a worker is done for good.
enum Turn {
    Worked,
    Idle,
}

/// Since when log bytes wait that can still be written.
fn deferred_since(state: Option<&LogState>) -> Option<Duration> {
    state.filter(|state| state.log.background_error().is_none()).and_then(|state| state.log.deferred_since())
}

impl Engine {
    /// Starts the workers.
    pub(crate) fn start_workers(self: &Arc<Self>) -> Result<Vec<Box<dyn JoinHandle>>> {
        let count = if self.options.read_only { 0 } else { self.options.workers };
        let start = |index: usize| {
            let engine = Arc::clone(self);
            let work = Box::new(move || engine.work());
            let spawned = self.runtime.spawner.spawn(&format!("tamis-worker-{index}"), work);
            spawned.map_err(|error| Error::io("start a worker for", &self.folder, error))
        };
        (0..count).map(start).collect()
    }

    /// The life of a worker.
    fn work(&self) {
        let scheduler = &self.scheduler;
        while !scheduler.is_stopping.load(Ordering::SeqCst) {
            let generation = scheduler.generation.load(Ordering::SeqCst);
            if matches!(self.turn(), Turn::Worked) {
                continue;
            }
            let timeout = self.idle_time();
            let mut wait_lock = scheduler.wait_lock.lock();
            let is_changed = scheduler.generation.load(Ordering::SeqCst) != generation;
            if !is_changed && !scheduler.is_stopping.load(Ordering::SeqCst) {
                self.runtime.clock.wait(&scheduler.work, &mut wait_lock, timeout);
            }
        }
    }

    /// How long a worker may sleep when nothing is due.
    fn idle_time(&self) -> Duration {
        let now = self.runtime.clock.now();
        let deferred = deferred_since(self.log.lock().as_ref());
        let state = self.scheduler.state.lock();
        let deferred =
            deferred.map(|since| (since + DEFERRED_TIME_MAX).max(state.deferred_at.unwrap_or_default()));
        let sweep = state.sweep_at.filter(|_| self.versions.has_obsolete_files());
        let compactions = state.compact_at.values().map(|(_, at)| *at);
        let due = [deferred, state.flush_at, sweep].into_iter().flatten().chain(compactions).min();
        due.map_or(IDLE, |at| at.saturating_sub(now)).clamp(Duration::from_millis(1), IDLE)
    }

    /// With no workers: runs all due jobs on this thread.
    pub(crate) fn run_inline(&self) {
        if self.options.workers == 0 && !self.options.read_only {
            while matches!(self.turn(), Turn::Worked) {}
        }
    }

    /// Lets a job begin that close then waits for, unless nothing can be written any more.
    pub(crate) fn begin_job(&self) -> Result<RwLockReadGuard<'_, ()>> {
        let running = self.jobs.read();
        self.check_writable()?;
        Ok(running)
    }

    /// Does one job if one is due.
    fn turn(&self) -> Turn {
        let _running = self.jobs.read();
        if self.check_open().is_err() {
            return Turn::Idle;
        }
        let Some(job) = self.next_job() else { return Turn::Idle };
        match job {
            Job::FlushDeferred => {
                let result = match self.log.lock().as_mut() {
                    Some(state) => state.log.flush_deferred(),
                    None => Ok(()),
                };
                let again_at = result.is_err().then(|| self.runtime.clock.now() + RETRY);
                self.scheduler.state.lock().deferred_at = again_at;
                if let Err(error) = result {
                    self.tell(&Event::JobFailed { job: "write the deferred log", error: error.to_string() });
                }
            }
            Job::Sweep => self.sweep(),
            Job::Flush(keyspace) => {
                let result = self.flush_oldest(&keyspace);
                keyspace.is_flushing.store(false, Ordering::SeqCst);
                self.note_flush(&result);
                self.end_job("flush a memtable", result);
            }
            Job::Compact(keyspace, plan) => {
                let result = self.compact(&keyspace, &plan);
                self.release(&plan);
                self.note_compaction(keyspace.id, result.is_err());
                self.end_job("compact tables", result);
            }
        }
        Turn::Worked
    }

    fn end_job(&self, job: &'static str, result: Result<()>) {
        if let Err(error) = result {
            self.note_failure(job, &error);
        }
        self.scheduler.note_progress();
    }

    fn note_flush(&self, result: &Result<()>) {
        let mut state = self.scheduler.state.lock();
        state.flush_failure = result.as_ref().err().cloned();
        state.flush_failure_count += u64::from(result.is_err());
        state.flush_at = result.is_err().then(|| self.runtime.clock.now() + RETRY);
    }

    /// A keyspace whose compactions fail waits longer each time; the others go on.
    fn note_compaction(&self, keyspace: u32, is_failed: bool) {
        let mut state = self.scheduler.state.lock();
        let failure_count = state.compact_at.remove(&keyspace).map_or(0, |(count, _)| count);
        if is_failed {
            let wait = RETRY * (1 << failure_count.min(RETRY_DOUBLINGS_MAX));
            state.compact_at.insert(keyspace, (failure_count + 1, self.runtime.clock.now() + wait));
        }
    }

    fn note_failure(&self, job: &'static str, error: &Error) {
        if self.scheduler.is_stopping.load(Ordering::SeqCst) {
            return;
        }
        self.metrics.jobs_failed.add(1);
        let mut state = self.scheduler.state.lock();
        state.failure_count += 1;
        state.last_failure = Some(error.clone());
        drop(state);
        self.tell(&Event::JobFailed { job, error: error.to_string() });
    }

    /// Chooses the next job and marks what it works on.
    fn next_job(&self) -> Option<Job> {
        let now = self.runtime.clock.now();
        let mut state = self.scheduler.state.lock();
        let is_waiting = |at: Option<Duration>| at.is_some_and(|at| now < at);
        let is_late = |since: Duration| now.saturating_sub(since) >= DEFERRED_TIME_MAX;
        // A leader that holds the log is writing it: what waits goes with its record.
        let deferred = self.log.try_lock().and_then(|log| deferred_since(log.as_ref()));
        if deferred.is_some_and(is_late) && !is_waiting(state.deferred_at) {
            return Some(Job::FlushDeferred);
        }
        if self.check_writable().is_err() {
            return None;
        }
        let has_obsolete_files = self.versions.has_obsolete_files() && !is_waiting(state.sweep_at);
        if has_obsolete_files && !self.scheduler.is_sweeping.swap(true, Ordering::SeqCst) {
            return Some(Job::Sweep);
        }
        let keyspaces = self.keyspaces.load();
        if !is_waiting(state.flush_at)
            && let Some(keyspace) = self.claim_flush()
        {
            return Some(Job::Flush(keyspace));
        }
        if state.compaction_count >= self.options.workers.saturating_sub(1).max(1) {
            return None;
        }
        let mut best: Option<(Arc<KeyspaceState>, Plan)> = None;
        let may_compact = |keyspace: &&Arc<KeyspaceState>| {
            keyspace.check().is_ok() && !is_waiting(state.compact_at.get(&keyspace.id).map(|(_, at)| *at))
        };
        for keyspace in keyspaces.values().filter(may_compact) {
            let read_state = keyspace.read_state.load();
            let pick = if self.is_bulk_loading(keyspace, now) {
                picker::pick_during_bulk_load
            } else {
                picker::pick
            };
            if let Some(plan) = pick(&read_state.version, &state.in_progress)
                && best.as_ref().is_none_or(|(_, other)| plan.score > other.score)
            {
                best = Some((Arc::clone(keyspace), plan));
            }
        }
        let (keyspace, plan) = best?;
        state.in_progress.begin(&plan);
        state.compaction_count += 1;
        Some(Job::Compact(keyspace, Box::new(plan)))
    }

    /// Whether a keyspace is being filled: memtables follow each other closely, and nobody waits for compactions.
    fn is_bulk_loading(&self, keyspace: &KeyspaceState, now: Duration) -> bool {
        let is_filled = keyspace.filled_at().is_some_and(|at| now.saturating_sub(at) < BULK_LOAD_IDLE_MAX);
        self.options.workers > 0 && is_filled && self.scheduler.waiting_count.load(Ordering::SeqCst) == 0
    }

    /// A keyspace with an immutable memtable that nobody flushes.
    fn claim_flush(&self) -> Option<Arc<KeyspaceState>> {
        let keyspaces = self.keyspaces.load();
        let mut due = keyspaces.values().filter(|keyspace| {
            !keyspace.read_state.load().immutable.is_empty()
                && keyspace.check().is_ok()
                && !keyspace.is_flushing.swap(true, Ordering::SeqCst)
        });
        due.next().cloned()
    }

    /// Between two tables of a merge: the only worker flushes what is due, so that writers need not wait for the merge.
    pub(super) fn flush_between_tables(&self) {
        while self.options.workers == 1
            && self.scheduler.state.lock().flush_at.is_none()
            && let Some(keyspace) = self.claim_flush()
        {
            let result = self.flush_oldest(&keyspace);
            keyspace.is_flushing.store(false, Ordering::SeqCst);
            self.note_flush(&result);
            self.end_job("flush a memtable", result);
        }
    }

    /// The next step of a range that is compacted on request, claimed for the caller.
    pub(super) fn claim_range(&self, keyspace: &KeyspaceState, request: &RangeRequest) -> RangePick {
        let mut state = self.scheduler.state.lock();
        let picked = picker::pick_range(&keyspace.read_state.load().version, &state.in_progress, request);
        if let RangePick::Plan(plan) = &picked {
            state.in_progress.begin(plan);
            state.compaction_count += 1;
        }
        picked
    }

    /// Whether nothing is due and nothing runs.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.scheduler.state.lock();
        let keyspaces = self.keyspaces.load();
        state.in_progress.is_empty()
            && keyspaces.values().all(|keyspace| {
                let read_state = keyspace.read_state.load();
                read_state.immutable.is_empty()
                    && picker::pick(&read_state.version, &state.in_progress).is_none()
            })
    }

    /// Ends the claim of a plan whose edit is in force or given up.
    pub(super) fn release(&self, plan: &Plan) {
        let mut state = self.scheduler.state.lock();
        state.in_progress.end(plan);
        state.compaction_count -= 1;
    }
}
