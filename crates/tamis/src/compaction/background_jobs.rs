//! The background threads and the jobs that they run.
//!
//! A job is claimed under the scheduler's lock and runs outside of it. Compactions are picked outside of the lock, too, and only for
//! keyspaces that have changed (`due_jobs.rs`). Order of jobs: deferred log bytes that waited too long,
//! obsolete files, flushes (the oldest immutable memtable of a keyspace, or of several), compactions, filters, views. With two or more
//! workers one is always kept free for flushes. With no workers the writing thread runs all due jobs itself
//! ([`BackgroundJobs::run_inline`]), in the same order.
//!
//! A failed flush or compaction has changed nothing. It is tried again after [`RETRY`], or as soon as a writer waits for it; partitions
//! whose compactions fail wait longer each time (`back_off.rs`), and others are compacted meanwhile. A job that panics leaves a
//! background error: no further jobs run, and writes are refused.
//!
//! # Invariants
//!
//! 1. *The result of a job is recorded before its claim is released* ([`BackgroundJobs::run`]): the failure for those that wait, the time of
//!    the next attempt, the background error of a panic. So no thread repeats a job whose failure is not known yet.
//! 2. *A claim is checked after it is made*: a job that was claimed after a panic does not run.
//! 3. *A thread that waits gets no older error*: jobs have numbers in the order in which they begin, and a failure counts for the threads
//!    that began to wait before the job began.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    back_off::{RETRY, WaitingPartitions},
    due_jobs::Picked,
    filter_check::{CheckClaim, FilterChecker},
    flusher::Flusher,
    plan::{InProgress, Plan, RangeRequest},
    range_deletes,
    scheduler::{Scheduler, State},
    strategy::{self, RangePick},
    view_builder::{ViewBuilder, ViewClaim},
};
use crate::{
    error::{Error, Result},
    key::Sequence,
    store::{
        commit_log::CommitLog,
        keyspace_state::{KeyspaceState, Keyspaces},
        parts::StoreParts,
        runtime::JoinHandle,
    },
    sync::{Mutex, sim_fault},
};

/// The longest time that deferred log bytes stay in the process.
pub(crate) const DEFERRED_TIME_MAX: Duration = Duration::from_millis(100);
/// The maximum number of memtables in a group. It bounds the time until the first of them is released.
const FLUSH_GROUP_COUNT_MAX: usize = 128;
/// A worker looks for jobs at least this often.
const IDLE: Duration = Duration::from_secs(1);

/// A job with its claim, which is released when it is dropped.
pub(super) enum Job {
    FlushDeferred,
    DeleteObsoleteFiles(#[expect(dead_code, reason = "dropping it releases the claim")] DeletionClaim),
    Flush(FlushClaim),
    Compact(Arc<KeyspaceState>, CompactionClaim),
    CheckFilters(CheckClaim),
    KeepView(ViewClaim),
}

impl Job {
    /// The job, as a verb.
    const fn name(&self) -> &'static str {
        match self {
            Self::FlushDeferred => "write the deferred log",
            Self::DeleteObsoleteFiles(_) => "delete obsolete files",
            Self::Flush(_) => "flush a memtable",
            Self::Compact(..) => "compact tables",
            Self::CheckFilters(_) => "check the filters of a table",
            Self::KeepView(_) => "build a sorted view",
        }
    }
}

/// The work before a job is known.
const PICK: &str = "pick a job";

/// No other thread deletes obsolete files. Dropping the claim releases it; so do the claims below.
pub(super) struct DeletionClaim(Arc<Scheduler>);

impl Drop for DeletionClaim {
    fn drop(&mut self) {
        self.0.is_deleting.store(false, Ordering::SeqCst);
    }
}

/// No other thread flushes these keyspaces.
pub(super) struct FlushClaim {
    scheduler: Arc<Scheduler>,
    /// At least one.
    keyspaces: Vec<Arc<KeyspaceState>>,
}

impl Drop for FlushClaim {
    fn drop(&mut self) {
        if !(sim_fault!("keep-claim-of-failed-flush") && self.scheduler.state().flush_at.is_some()) {
            self.keyspaces.iter().for_each(|keyspace| keyspace.flush_slot.give_back());
        }
        self.scheduler.state().running_flush_count -= 1;
    }
}

/// No other compaction uses the tables and key ranges of the plan.
pub(super) struct CompactionClaim {
    scheduler: Arc<Scheduler>,
    pub(super) plan: Box<Plan>,
}

impl CompactionClaim {
    fn new(scheduler: &Arc<Scheduler>, state: &mut State, plan: Box<Plan>) -> Self {
        state.begin_compaction(&plan);
        Self { scheduler: Arc::clone(scheduler), plan }
    }
}

impl Drop for CompactionClaim {
    fn drop(&mut self) {
        let mut state = self.scheduler.state();
        state.end_compaction(&self.plan);
        // A thread that waits for compactions waits for the deletion of the tables that they have replaced, too.
        self.plan.release_tables();
    }
}

/// The next step of a requested compaction of a range.
pub(super) enum RangeStep {
    Done,
    Blocked,
    Compact(CompactionClaim),
}

/// See the head of this file.
pub(crate) struct BackgroundJobs {
    pub(super) store: Arc<StoreParts>,
    pub(super) flusher: Flusher,
    pub(super) filter_checker: Arc<FilterChecker>,
    view_builder: Arc<ViewBuilder>,
    /// The writing thread runs the jobs.
    is_inline: bool,
}

impl BackgroundJobs {
    pub(crate) fn new(store: &Arc<StoreParts>) -> Arc<Self> {
        let options = &store.context.options;
        let shared = || Arc::clone(store);
        Arc::new(Self {
            is_inline: options.workers == 0 && !options.is_reader(),
            flusher: Flusher { store: shared(), blocks_at_flush: AtomicU64::new(0) },
            filter_checker: Arc::new(FilterChecker { store: shared(), schedule: Mutex::default() }),
            view_builder: Arc::new(ViewBuilder { store: shared(), schedule: Mutex::default() }),
            store: shared(),
        })
    }

    /// How many workers the store has.
    pub(crate) fn worker_count(&self) -> usize {
        if self.store.context.options.is_reader() { 0 } else { self.store.context.options.workers }
    }

    /// Starts a worker.
    ///
    /// # Errors
    /// [`Error::Io`] if the operating system refuses a thread.
    pub(crate) fn start_worker(self: &Arc<Self>, index: usize) -> Result<Box<dyn JoinHandle>> {
        let jobs = Arc::clone(self);
        let work = Box::new(move || jobs.work());
        let spawned = self.store.context.runtime.spawner.spawn(&format!("tamis-worker-{index}"), work);
        spawned.map_err(|error| Error::io("start a worker for", self.store.context.folder.path(), error))
    }

    /// The main loop of a worker.
    fn work(&self) {
        let scheduler = &self.store.scheduler;
        while !scheduler.is_stopping.load(Ordering::SeqCst) {
            let generation = scheduler.generation.load(Ordering::SeqCst);
            if self.run_one() {
                continue;
            }
            scheduler.wait_for_work(&*self.store.context.runtime.clock, generation, self.idle_time());
        }
    }

    /// When a job may be due next although nothing changes.
    fn next_due_at(&self) -> Option<Duration> {
        let deferred = CommitLog::deferred_since(self.store.log.lock().as_ref());
        let state = self.store.scheduler.state();
        let deferred =
            deferred.map(|since| (since + DEFERRED_TIME_MAX).max(state.deferred_at.unwrap_or_default()));
        let deletion = state.deletion_at.filter(|_| self.store.versions.has_obsolete_files());
        let compactions =
            [state.due.next_retry(), state.back_off.next_at(self.store.context.runtime.clock.now())];
        let times = [deferred, state.flush_at, deletion, state.due.bulk_load_end()];
        times.into_iter().chain(compactions).flatten().min()
    }

    /// When to look for jobs although nothing changes: idle workers check the filters, too.
    fn next_look(&self) -> Option<Duration> {
        [self.next_due_at(), self.filter_checker.next_check()].into_iter().flatten().min()
    }

    /// How long a worker may sleep when no job is due.
    fn idle_time(&self) -> Duration {
        let now = self.store.context.runtime.clock.now();
        self.next_look().map_or(IDLE, |at| at.saturating_sub(now)).clamp(Duration::from_millis(1), IDLE)
    }

    /// Lets due jobs run: wakes the workers, or runs the jobs on this thread if there are no workers.
    pub(crate) fn run_due(&self) {
        self.store.scheduler.wake();
        self.run_inline();
    }

    /// With no workers: runs all due jobs on this thread. If nothing has changed since the last call, it takes a few loads.
    #[inline]
    pub(crate) fn run_inline(&self) {
        if self.is_inline
            && (!self.store.scheduler.is_idle(&*self.store.context.runtime.clock)
                || self.store.versions.has_new_obsolete_files())
        {
            self.run_all();
        }
    }

    #[cold]
    fn run_all(&self) {
        loop {
            let generation = self.store.scheduler.generation.load(Ordering::SeqCst);
            if !self.run_one() {
                self.store.scheduler.note_idle(generation, self.next_look());
                return;
            }
        }
    }

    /// Runs one job; returns `false` if none was due.
    fn run_one(&self) -> bool {
        let Ok(_running) = self.store.context.begin_job() else { return false };
        match self.store.context.catch(PICK, || self.next_job()) {
            Ok(Some(job)) => {
                self.run(job);
                true
            }
            Ok(None) => false,
            Err(panic) => {
                self.note_failure(PICK, self.store.scheduler.begin_job(), &panic);
                self.store.scheduler.note_progress();
                false
            }
        }
    }

    /// Runs due compactions, as long as they read at most `bytes` together.
    pub(super) fn run_small_compactions(&self, mut bytes: u64) {
        loop {
            self.pick();
            let Some(Job::Compact(keyspace, claim)) = self.claim_plan() else { return };
            let Some(left) = bytes.checked_sub(claim.plan.bytes_read) else { return };
            bytes = left;
            if !self.run(Job::Compact(keyspace, claim)) {
                return;
            }
        }
    }

    /// Runs a claimed job, records its result, and releases its claim, in this order. Returns whether it was done.
    pub(super) fn run(&self, job: Job) -> bool {
        // The deferred log is written even if writes are refused.
        if !matches!(job, Job::FlushDeferred) && self.store.context.check_writable().is_err() {
            return false;
        }
        let (number, name) = (self.store.scheduler.begin_job(), job.name());
        let result = self.store.context.catch(name, || self.execute(&job)).flatten();
        self.note_result(&job, number, &result);
        drop(job);
        self.store.scheduler.note_progress();
        result.is_ok()
    }

    fn execute(&self, job: &Job) -> Result<()> {
        #[cfg(feature = "simulation")]
        crate::sync::hooks::job(job.name());
        match job {
            Job::FlushDeferred => self.flush_deferred(),
            Job::DeleteObsoleteFiles(_) => self.delete_obsolete_files(),
            Job::Flush(claim) => {
                if sim_fault!("release-flush-claim-twice") {
                    claim.keyspaces.iter().for_each(|keyspace| keyspace.flush_slot.give_back());
                }
                self.flusher.flush_oldest(&claim.keyspaces)?;
            }
            Job::Compact(keyspace, claim) => {
                let between_tables = || self.work_between_tables();
                self.store.compact(keyspace, &claim.plan, &between_tables)?;
            }
            Job::CheckFilters(claim) => {
                let between = || self.yield_to_others();
                match self.filter_checker.check(&claim.keyspace, claim.table, &between, claim.loss) {
                    Ok(_) | Err(Error::Closed | Error::KeyspaceDropped) => {}
                    Err(error) => return Err(error),
                }
            }
            Job::KeepView(claim) => self.view_builder.run(claim, &|| self.yield_to_others()),
        }
        Ok(())
    }

    /// Records the result of a job, so that a failed one waits, and the threads that wait for it get its error.
    fn note_result(&self, job: &Job, number: u64, result: &Result<()>) {
        let now = self.store.context.runtime.clock.now();
        let failure = result.as_ref().err().map(|error| (number, error));
        match job {
            Job::Flush(_) => self.store.scheduler.state().note_flush(failure, now),
            Job::Compact(keyspace, claim) => {
                self.store.scheduler.state().note_compaction((keyspace.id, &claim.plan), failure, now);
            }
            _ => {}
        }
        if let Some((number, error)) = failure {
            self.note_failure(job.name(), number, error);
        }
    }

    fn flush_deferred(&self) {
        let result = self.store.log.flush_deferred();
        let again_at = result.is_err().then(|| self.store.context.runtime.clock.now() + RETRY);
        self.store.scheduler.state().deferred_at = again_at;
        if let Err(error) = result {
            self.store.context.report_failed_job("write the deferred log", &error);
        }
    }

    /// Deletes files that no version needs. Those that can't be deleted now, or that readers of other processes need, are tried again later.
    pub(crate) fn delete_obsolete_files(&self) {
        let result = self.store.versions.delete_obsolete_files();
        let is_left = result.is_err() || self.store.versions.keeps_files_for_readers();
        let again_at = is_left.then(|| self.store.context.runtime.clock.now() + RETRY);
        if let Err(error) = result {
            if self.store.versions.background_error().is_some() {
                self.store.context.set_background_error(&error);
            }
            self.store.context.report_failed_job("delete obsolete files", &error);
        }
        self.store.scheduler.state().deletion_at = again_at;
    }

    /// Reports the failure of the job with this number.
    pub(super) fn note_failure(&self, job: &'static str, number: u64, error: &Error) {
        if self.store.scheduler.is_stopping.load(Ordering::SeqCst) {
            return;
        }
        self.store.context.metrics.jobs_failed.add(1);
        self.store.scheduler.state().note_failure(number, error);
        self.store.context.report_failed_job(job, error);
    }

    /// Whether there are obsolete files, and no failed deletion waits for its next attempt.
    fn has_files_to_delete(&self, state: &State, now: Duration) -> bool {
        self.store.versions.has_obsolete_files() && state.deletion_at.is_none_or(|at| now >= at)
    }

    /// Claims the next job.
    fn next_job(&self) -> Option<Job> {
        let now = self.store.context.runtime.clock.now();
        let mut state = self.store.scheduler.state();
        let is_waiting = |at: Option<Duration>| at.is_some_and(|at| now < at);
        let is_late = |since: Duration| now.saturating_sub(since) >= DEFERRED_TIME_MAX;
        // A leader that holds the log's lock writes the deferred bytes with its own record.
        let deferred = self.store.log.try_lock().and_then(|log| CommitLog::deferred_since(log.as_ref()));
        if deferred.is_some_and(is_late) && !is_waiting(state.deferred_at) {
            return Some(Job::FlushDeferred);
        }
        if self.store.context.check_writable().is_err() {
            return None;
        }
        if self.has_files_to_delete(&state, now)
            && !self.store.scheduler.is_deleting.swap(true, Ordering::SeqCst)
        {
            return Some(Job::DeleteObsoleteFiles(DeletionClaim(Arc::clone(&self.store.scheduler))));
        }
        if !is_waiting(state.flush_at)
            && let Some(claim) = self.claim_flush_in(&mut state)
        {
            return Some(Job::Flush(claim));
        }
        if self.are_all_compacting(&state) {
            return None;
        }
        drop(state);
        self.pick();
        self.claim_plan()
            .or_else(|| self.filter_checker.claim().map(Job::CheckFilters))
            .or_else(|| self.claim_view(now).map(Job::KeepView))
            .or_else(|| self.claim_read_merge(now))
    }

    /// Claims the next job of a sorted view: of keyspaces whose versions have changed, or sometimes of any.
    fn claim_view(&self, now: Duration) -> Option<ViewClaim> {
        if self.view_builder.is_running() {
            return None;
        }
        if self.view_builder.begin_look(now) {
            let all: Vec<u32> = self.store.keyspaces.load().keys().copied().collect();
            self.store.scheduler.state().due.unviewed.extend(all);
        }
        loop {
            let mut state = self.store.scheduler.state();
            let id = state.due.unviewed.pop_first()?;
            let in_progress = Arc::clone(&state.in_progress);
            drop(state);
            let keyspace = self.store.keyspaces.load().get(&id).cloned();
            let Some(keyspace) = keyspace.filter(|keyspace| self.may_build_view(keyspace, now)) else {
                continue;
            };
            if let Some(claim) = self.view_builder.claim(&keyspace, &in_progress) {
                // Another job may be due.
                self.store.scheduler.state().due.unviewed.insert(id);
                return Some(claim);
            }
        }
    }

    /// During a bulk load views would be obsolete immediately.
    fn may_build_view(&self, keyspace: &KeyspaceState, now: Duration) -> bool {
        keyspace.check().is_ok() && self.bulk_load_end(keyspace, now).is_none()
    }

    /// Called often by long jobs that are not urgent: flushes due memtables, because the job may have the only free worker. A single worker
    /// compacts, too.
    fn yield_to_others(&self) {
        if self.is_inline {
            return;
        }
        self.flush_if_due();
        if self.store.context.options.workers == 1 {
            self.pick();
            while let Some(job) = self.claim_plan() {
                self.run(job);
            }
        }
    }

    /// Whether as many compactions run as may run at a time.
    fn are_all_compacting(&self, state: &State) -> bool {
        state.compaction_count >= self.store.context.options.workers.saturating_sub(1).max(1)
    }

    /// Picks the next compactions of all keyspaces that have changed since their last pick.
    fn pick(&self) {
        let clock = &self.store.context.runtime.clock;
        let is_waited_for = self.store.scheduler.waiting_count.load(Ordering::SeqCst) > 0;
        let mut state = self.store.scheduler.state();
        let State { due, back_off, in_progress, .. } = &mut *state;
        let now = clock.now();
        let ids = due.begin_picks(now, is_waited_for, |id| back_off.may_begin(id, now));
        let waiting: Vec<_> = ids.iter().map(|&id| back_off.waiting(id, now)).collect();
        let in_progress = Arc::clone(in_progress);
        drop(state);
        for (id, waiting) in ids.into_iter().zip(waiting) {
            let keyspace = self.store.keyspaces.load().get(&id).cloned();
            let keyspace = keyspace.filter(|keyspace| keyspace.check().is_ok());
            let picked = keyspace.as_ref().and_then(|keyspace| {
                let pick = || self.pick_in(keyspace, &in_progress, &waiting, now);
                self.store.context.catch(PICK, pick).ok()
            });
            let mut state = self.store.scheduler.state();
            state.due.end_pick(id, picked);
            if keyspace.is_none() {
                state.forget(id);
            }
        }
    }

    fn pick_in(
        &self,
        keyspace: &KeyspaceState,
        in_progress: &InProgress,
        waiting: &WaitingPartitions,
        now: Duration,
    ) -> Picked {
        let read_state = keyspace.read_state.load_full();
        let version = &read_state.version;
        range_deletes::load(version, &self.store.tables);
        let retained = keyspace.retained();
        let with_retained = (!retained.is_empty()).then(|| in_progress.with_retained(retained));
        let in_progress = with_retained.as_ref().unwrap_or(in_progress);
        let readers = self.store.snapshots.readers(&self.store.context.expiry);
        let bulk_load_end = self.bulk_load_end(keyspace, now);
        let pick = if bulk_load_end.is_some() { strategy::pick_during_bulk_load } else { strategy::pick };
        let pick_outside = |partitions: &[u64]| {
            let excluding = (!partitions.is_empty()).then(|| in_progress.excluding(partitions));
            pick(version, excluding.as_ref().unwrap_or(in_progress), &readers)
        };
        let WaitingPartitions { held, requested, retry_at } = waiting;
        let plan = pick_outside(&[held.as_slice(), requested.as_slice()].concat());
        let plan = plan.or_else(|| if requested.is_empty() { None } else { pick_outside(held) });
        if let Some(plan) = plan {
            return Picked::Plan(Box::new(plan));
        }
        let newest = version.partitions.iter().map(|partition| partition.totals().largest_sequence).max();
        let is_kept = |newest: &Sequence| readers.read_points.first().is_some_and(|oldest| oldest < newest);
        let newest_kept = newest.filter(is_kept);
        let expiry_at = strategy::next_expiry(version, readers.expiry_time).map(|wait| now + wait);
        Picked::Nothing { again_at: bulk_load_end, expiry_at, newest_kept, retry_at: *retry_at }
    }

    /// Claims the most urgent plan.
    fn claim_plan(&self) -> Option<Job> {
        let mut state = self.store.scheduler.state();
        if self.are_all_compacting(&state) {
            return None;
        }
        loop {
            let (id, plan) = state.due.take_plan()?;
            let keyspace = self.store.keyspaces.load().get(&id).cloned();
            if let Some(keyspace) = keyspace.filter(|keyspace| keyspace.check().is_ok()) {
                let claim = CompactionClaim::new(&self.store.scheduler, &mut state, plan);
                return Some(Job::Compact(keyspace, claim));
            }
            state.forget(id);
        }
    }

    /// If a keyspace is bulk loading, the time at which it no longer is. Its memtable was full recently, and no thread waits for
    /// compactions.
    pub(super) fn bulk_load_end(&self, keyspace: &KeyspaceState, now: Duration) -> Option<Duration> {
        // A keyspace counts as bulk loading for three seconds after its memtable was full.
        let end = keyspace.filled_at()? + Duration::from_secs(3);
        let is_waited_for = self.store.scheduler.waiting_count.load(Ordering::SeqCst) > 0;
        (!self.is_inline && now < end && !is_waited_for).then_some(end)
    }

    /// Claims the flushes that are due.
    pub(super) fn claim_flush(&self) -> Option<FlushClaim> {
        self.claim_flush_in(&mut self.store.scheduler.state())
    }

    /// A keyspace with an immutable memtable that is not being flushed, and further ones if their memtables are small: they are
    /// flushed as a group.
    fn claim_flush_in(&self, state: &mut State) -> Option<FlushClaim> {
        let keyspaces = self.store.keyspaces.load();
        let mut claimed = Vec::new();
        let (mut group_bytes, mut too_large_count) = (0, 0);
        let mut flushed = Vec::new();
        for id in &state.due.flushable {
            let keyspace = keyspaces.get(id).filter(|keyspace| keyspace.check().is_ok());
            let read_state = keyspace.map(|keyspace| (keyspace, keyspace.read_state.load()));
            let oldest =
                read_state.as_ref().and_then(|(keyspace, state)| Some((keyspace, state.immutable.last()?)));
            let Some((keyspace, oldest)) = oldest else {
                flushed.push(*id);
                continue;
            };
            let bytes = group_bytes + oldest.memtable.bytes();
            // Memtables of different keyspaces are flushed as a group up to 1 MiB. A larger memtable is flushed alone: its table costs
            // more than the edit that installs it, and other workers flush the next one meanwhile.
            if !claimed.is_empty() && bytes > 1 << 20 {
                too_large_count += 1;
            } else if keyspace.flush_slot.try_take_for_flush() {
                claimed.push(Arc::clone(keyspace));
                group_bytes = bytes;
            }
            if claimed.len() == FLUSH_GROUP_COUNT_MAX || too_large_count == FLUSH_GROUP_COUNT_MAX {
                break;
            }
        }
        for id in flushed {
            state.due.flushable.remove(&id);
        }
        if claimed.is_empty() {
            return None;
        }
        state.running_flush_count += 1;
        Some(FlushClaim { scheduler: Arc::clone(&self.store.scheduler), keyspaces: claimed })
    }

    /// Before each table of a merge: a single worker flushes due memtables, so that writers need not wait for the merge. One of several
    /// checks filters with a wrong rate, because compactions may follow one another for long.
    pub(super) fn work_between_tables(&self) -> ControlFlow<()> {
        if self.store.context.options.workers == 1 {
            self.flush_if_due();
        } else if !self.is_inline
            && !self.store.scheduler.is_stopping.load(Ordering::SeqCst)
            && self.store.context.check_writable().is_ok()
            && let Some(claim) = self.filter_checker.claim()
        {
            self.run(Job::CheckFilters(claim));
        }
        ControlFlow::Continue(())
    }

    /// Flushes due memtables within another job.
    fn flush_if_due(&self) {
        let claim = || {
            let mut state = self.store.scheduler.state();
            state.flush_at.is_none().then(|| self.claim_flush_in(&mut state)).flatten()
        };
        while claim().is_some_and(|claim| self.run(Job::Flush(claim))) {}
    }

    /// Claims the next step of a requested compaction of a range, outside of the partitions `excluded`.
    pub(super) fn claim_range(
        &self,
        keyspace: &KeyspaceState,
        request: &RangeRequest,
        excluded: &[u64],
    ) -> RangeStep {
        loop {
            let in_progress = Arc::clone(&self.store.scheduler.state().in_progress);
            let version = Arc::clone(&keyspace.read_state.load().version);
            let excluding = (!excluded.is_empty()).then(|| in_progress.excluding(excluded));
            let blocking = excluding.as_ref().unwrap_or(&in_progress);
            let plan = match strategy::pick_range(&version, blocking, request) {
                RangePick::Done => return RangeStep::Done,
                RangePick::Blocked => return RangeStep::Blocked,
                RangePick::Plan(plan) => plan,
            };
            let mut state = self.store.scheduler.state();
            // If another job began or ended meanwhile, the plan may conflict with it.
            if Arc::ptr_eq(&state.in_progress, &in_progress) {
                return RangeStep::Compact(CompactionClaim::new(&self.store.scheduler, &mut state, plan));
            }
        }
    }

    /// Whether no job is due or running.
    pub(super) fn is_idle(&self) -> bool {
        if self.view_builder.is_running() || self.filter_checker.is_checking() {
            return false;
        }
        self.pick();
        // Under the lock no flush and no compaction begins or ends, and the registry has each keyspace that is marked.
        let state = self.store.scheduler.state();
        let keyspaces = self.store.keyspaces.load();
        let has_immutable = |id: &u32| {
            let keyspace = keyspaces.get(id).filter(|keyspace| keyspace.check().is_ok());
            keyspace.is_some_and(|keyspace| !keyspace.read_state.load().immutable.is_empty())
        };
        let is_idle = state.running_flush_count == 0
            && !state.due.flushable.iter().any(has_immutable)
            && state.in_progress.is_empty()
            && state.due.has_no_compactions()
            && !self.has_files_to_delete(&state, self.store.context.runtime.clock.now())
            && !self.store.scheduler.is_deleting.load(Ordering::SeqCst);
        drop(state);
        is_idle
            && !self.needs_view(&keyspaces)
            && !self.needs_read_merge(self.store.context.runtime.clock.now())
    }

    /// Whether a job of a sorted view is running or due. Lets the workers find it.
    fn needs_view(&self, keyspaces: &Keyspaces) -> bool {
        let now = self.store.context.runtime.clock.now();
        let in_progress = Arc::clone(&self.store.scheduler.state().in_progress);
        let is_due = |keyspace: &&Arc<KeyspaceState>| {
            self.may_build_view(keyspace, now) && self.view_builder.is_due(keyspace, &in_progress)
        };
        let due = keyspaces.values().find(is_due);
        if let Some(keyspace) = due {
            self.store.scheduler.state().due.unviewed.insert(keyspace.id);
            self.store.scheduler.wake();
        }
        due.is_some() || self.view_builder.is_running()
    }
}
