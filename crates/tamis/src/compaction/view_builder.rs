//! Builds, opens and removes sorted views in the background.
//!
//! One job runs at a time, and only when no other job is due. It yields to flushes while it builds, and stops if its runs are replaced.
//! Reads never wait for it: they use a view once it is installed and open.
//!
//! 1. A view that turned out to be damaged, or of a keyspace whose options allow none, is removed by an edit.
//! 2. A view that the manifest names is opened.
//! 3. Otherwise [`super::view_plan`] decides whether another one is built, or the same one with filters.
//!
//! The filters of a view are chosen from its keys and the sampled closed ranges that the view itself does not reject, like those of
//! tables (`table/filter_plan.rs`), if the tables have no range filters. If the view has some, a rebuild adds one for the keys of the
//! new runs, which is not chosen. If its filters are due for a check, the sample is refilled if it is old, and the view is built again if
//! the filters that are chosen from it are better by the rule of tables ([`super::filter_check`]): better than the chosen ones, or than
//! those that rebuilds added.
//!
//! A keyspace is checked when its version has changed, and once per [`CHECK_INTERVAL`] for the seeks that its runs have counted.
//!
//! A failed build changes nothing. It is reported, and tried again after a time that doubles with each failure.

use std::{
    cell::Cell,
    collections::BTreeMap,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tamis_filter::auto::{Effort, QueryKind};

use super::{
    filter_check::{COST_RATIO_MAX, awaits_refill, is_better},
    job_context::JobContexts,
    plan::InProgress,
    scheduler::Scheduler,
    view_plan::{
        SEEK_NANOSECONDS, SEEK_NANOSECONDS_MAX, ViewPlan, ViewSizes, filter_budget_of, pick,
        pick_with_filters,
    },
};
use crate::{
    cache::table::TableCache,
    context::StoreContext,
    cursor::run_tables::open_run,
    error::{Error, Result},
    events::Event,
    file_name::FileName,
    keyspace_state::KeyspaceState,
    link::write_new,
    metrics::LEVEL_COUNT_MAX,
    options::{TableFilter, Views},
    query_sample::SampledQuery,
    table::{
        filter_plan::{ChoiceInput, FilterPlan, GivenFilters},
        properties::TableOrigin,
        refilter::Comparison,
    },
    version::{
        edit::{Change, VersionEdit},
        level::Run,
        named_view::{NamedView, open_view},
        partition::Partition,
    },
    version_installer::VersionInstaller,
    view::{
        build::build_view_with_filters,
        filter_builder::FilterJob,
        page_sample::{sample_pages, window_starts},
        part_keys::keys_of,
        reader::View,
        rebuild::rebuild_view_with_filters,
        scan::RangeAnswer,
        size::ViewCounts,
        spool::Spool,
        writer::{RunSummary, ViewOptions, ViewOwner},
    },
};

/// The time between two checks of the seeks of all keyspaces.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The wait after a failed build.
const RETRY: Duration = Duration::from_millis(500);
/// The wait doubles with each failure, up to about an hour.
const RETRY_DOUBLINGS_MAX: u32 = 13;
/// The number of sampled closed ranges, not rejected by the view, from which filters are chosen.
const SAMPLE_MIN: usize = 32;
/// Keys of a run from which the size of a view is estimated.
const SAMPLED_KEYS: usize = 512;
/// Samples of pages that are kept, so that a view that is too large is not sampled at each check.
const SAMPLE_COUNT_MAX: usize = 64;

/// See the head of this file.
pub(super) struct ViewBuilder {
    pub(super) context: Arc<StoreContext>,
    pub(super) tables: Arc<TableCache>,
    pub(super) installer: Arc<VersionInstaller>,
    pub(super) scheduler: Arc<Scheduler>,
    pub(super) job_contexts: JobContexts,
    pub(super) schedule: Mutex<Schedule>,
}

/// The running job, the next check of all keyspaces, and partitions whose last job failed.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    is_running: bool,
    next_check: Duration,
    /// By partition: the number of consecutive failures, and when the next job may begin.
    failures: BTreeMap<u64, (u32, Duration)>,
    /// By the ids of runs: the counts of some pages of their view; `None` if they can't be read.
    samples: BTreeMap<Vec<u64>, Option<ViewCounts>>,
}

/// A job. No other job of views runs until it is dropped.
pub(super) struct ViewClaim {
    builder: Arc<ViewBuilder>,
    pub(super) keyspace: Arc<KeyspaceState>,
    partition: u64,
    step: ViewStep,
}

impl Drop for ViewClaim {
    fn drop(&mut self) {
        self.builder.schedule.lock().is_running = false;
    }
}

enum ViewStep {
    Remove(Arc<NamedView>),
    Open(Arc<NamedView>),
    Build(Box<ViewPlan>),
}

impl ViewBuilder {
    /// Whether all keyspaces are checked now.
    pub(super) fn begin_look(&self, now: Duration) -> bool {
        let mut schedule = self.schedule.lock();
        let is_due = now >= schedule.next_check;
        if is_due {
            schedule.next_check = now + CHECK_INTERVAL;
        }
        is_due
    }

    pub(super) fn is_running(&self) -> bool {
        self.schedule.lock().is_running
    }

    /// Claims the next job of a keyspace, if one is due and none is running.
    pub(super) fn claim(
        self: &Arc<Self>,
        keyspace: &Arc<KeyspaceState>,
        in_progress: &InProgress,
    ) -> Option<ViewClaim> {
        let (partition, step) = self.due(keyspace, in_progress)?;
        let mut schedule = self.schedule.lock();
        if std::mem::replace(&mut schedule.is_running, true) {
            return None;
        }
        Some(ViewClaim { builder: Arc::clone(self), keyspace: Arc::clone(keyspace), partition, step })
    }

    /// Whether a job of a keyspace is due.
    pub(super) fn is_due(&self, keyspace: &KeyspaceState, in_progress: &InProgress) -> bool {
        self.due(keyspace, in_progress).is_some()
    }

    fn due(&self, keyspace: &KeyspaceState, in_progress: &InProgress) -> Option<(u64, ViewStep)> {
        let version = Arc::clone(&keyspace.read_state.load().version);
        let views = version.options.views;
        let now = self.context.runtime.clock.now();
        let environment = self.tables.environment();
        let measured = |level| self.context.metrics.read_times.nanoseconds(level) as f64;
        let run_nanoseconds = |level| measured(level).clamp(SEEK_NANOSECONDS, SEEK_NANOSECONDS_MAX);
        version.partitions.iter().find_map(|partition| {
            // The view that is replaced frees its memory.
            let replaced = partition.view.as_ref().and_then(|named| named.reader());
            let replaced_bytes = replaced.map_or(0, |view| view.memory_bytes());
            let bytes_max = environment.view_budget.left_bytes().saturating_add(replaced_bytes);
            let sizes = ViewSizes { bytes_max, sample: &|plan| self.sample_pages(plan) };
            let step = match &partition.view {
                Some(view) if view.is_failed() || views == Views::Off => ViewStep::Remove(Arc::clone(view)),
                Some(view) if view.needs_open() && !view.fits(environment) => return None,
                Some(view) if view.needs_open() => ViewStep::Open(Arc::clone(view)),
                _ => ViewStep::Build(Box::new(
                    pick_with_filters(partition, &version.options, sizes)
                        .filter(|plan| !self.awaits_sample(keyspace, plan))
                        .or_else(|| {
                            pick(partition, &version.options, in_progress, sizes, &run_nanoseconds)
                        })?,
                )),
            };
            let failure = self.schedule.lock().failures.get(&partition.id).copied();
            failure.is_none_or(|(_, at)| at <= now).then_some((partition.id, step))
        })
    }

    /// The counts of some pages of a view. `None` if a run can't be read: the build will report it.
    fn sample_pages(&self, plan: &ViewPlan) -> Option<ViewCounts> {
        let ids: Vec<u64> = plan.all_runs().map(|run| run.id()).collect();
        let known = self.schedule.lock().samples.get(&ids).copied();
        known.unwrap_or_else(|| {
            let counts = self.encode_sample(plan).ok();
            let samples = &mut self.schedule.lock().samples;
            if samples.len() >= SAMPLE_COUNT_MAX {
                samples.clear();
            }
            samples.insert(ids, counts);
            counts
        })
    }

    fn encode_sample(&self, plan: &ViewPlan) -> Result<ViewCounts> {
        let options = ViewOptions { tag_bytes: plan.tag_bytes, ..ViewOptions::default() };
        let keys = plan.all_runs().map(|run| self.sample_keys(run).map(|keys| (run.entry_count(), keys)));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let keys: Vec<_> = keys.iter().map(|(entry_count, keys)| (*entry_count, keys.as_slice())).collect();
        let runs = plan.all_runs().map(|run| open_run(run, &self.tables)).collect::<Result<Vec<_>>>()?;
        sample_pages(options, &runs, &window_starts(options.segment_size, &keys))
    }

    /// Some keys of a run in order, from the indexes of its tables.
    fn sample_keys(&self, run: &Run) -> Result<Vec<Vec<u8>>> {
        let mut keys = Vec::new();
        for table in run.tables() {
            let share = table.summary().entry_count as f64 / run.entry_count().max(1) as f64;
            let count = (share * SAMPLED_KEYS as f64).ceil() as usize;
            keys.extend(self.tables.reader(table)?.sample_keys(count)?);
        }
        Ok(keys)
    }

    /// Whether the filters of a view are wrong because the queries have changed, and the sample has older ones.
    fn awaits_sample(&self, keyspace: &KeyspaceState, plan: &ViewPlan) -> bool {
        let has_filter = plan.refiltered.as_ref().is_some_and(|refiltered| refiltered.view.has_filter());
        has_filter
            && self.context.options.sample_queries
            && awaits_refill(&keyspace.read_state.load().query_sample)
    }

    /// Runs a job; `between_pages` is called every 256 KiB that a builder writes, and every few thousand entries that a check reads. A
    /// failure is reported.
    pub(super) fn run(&self, claim: &ViewClaim, between_pages: &dyn Fn()) {
        let (keyspace, partition) = (&*claim.keyspace, claim.partition);
        let done = match &claim.step {
            ViewStep::Remove(view) => self.remove(keyspace, partition, view),
            ViewStep::Open(view) => {
                self.open(keyspace, partition, view);
                Ok(())
            }
            ViewStep::Build(plan) => self.build(keyspace, plan, between_pages),
        };
        let now = self.context.runtime.clock.now();
        let mut schedule = self.schedule.lock();
        let failure = schedule.failures.remove(&partition);
        if done.is_err() {
            let count = failure.map_or(0, |(count, _)| count);
            let wait = RETRY * (1 << count.min(RETRY_DOUBLINGS_MAX));
            schedule.failures.insert(partition, (count + 1, now + wait));
        }
    }

    fn owner(&self, keyspace: &KeyspaceState, number: u64) -> ViewOwner {
        let (database_id, _) = self.installer.versions.database();
        ViewOwner { database_id, keyspace_id: keyspace.id.into(), number }
    }

    /// A view that can't be opened is never used; the next job removes it.
    fn open(&self, keyspace: &KeyspaceState, partition: u64, view: &NamedView) {
        let environment = self.tables.environment();
        let runs =
            current_partition(keyspace, partition).and_then(|partition| partition.runs_of_view(view.runs()));
        // Otherwise a job has replaced some of its runs, and no version names it any more.
        let Some(runs) = runs else { return };
        if let Err(error) = view.open(environment, self.owner(keyspace, view.number()), &runs) {
            view.fail(environment, &error);
        }
    }

    /// No read uses the open view of a partition from now on; the next job removes it.
    fn fail_view(&self, keyspace: &KeyspaceState, partition: u64, view: &Arc<View>, error: &Error) {
        let partition = current_partition(keyspace, partition);
        let named = partition.as_ref().and_then(|partition| partition.view.as_ref());
        if let Some(named) = named.filter(|named| named.reader().is_some_and(|open| Arc::ptr_eq(open, view)))
        {
            named.fail(self.tables.environment(), error);
        }
    }

    fn remove(&self, keyspace: &KeyspaceState, partition: u64, view: &NamedView) -> Result<()> {
        let is_there = |partition: &Arc<Partition>| {
            partition.view.as_ref().is_some_and(|current| current.number() == view.number())
        };
        if !current_partition(keyspace, partition).as_ref().is_some_and(is_there) {
            return Ok(());
        }
        let mut edit = VersionEdit::default();
        edit.push(Change::SetView { keyspace: keyspace.id.into(), partition, view: None });
        self.installer.install_job(edit, &[]).map(drop)
    }

    fn build(&self, keyspace: &KeyspaceState, plan: &ViewPlan, between_pages: &dyn Fn()) -> Result<()> {
        let begun = self.context.runtime.clock.now();
        let number = self.installer.versions.new_file_number();
        let is_stale = Cell::new(false);
        let check = || {
            between_pages();
            is_stale.set(!has_runs(keyspace, plan) || self.scheduler.is_stopping().load(Ordering::SeqCst));
            if is_stale.get() { Err(Error::Closed) } else { Ok(()) }
        };
        let built = self.filters(keyspace, plan, &check).and_then(|filters| {
            if let (Some(refiltered), None) = (&plan.refiltered, &filters) {
                let partition = current_partition(keyspace, plan.partition);
                let named = partition.iter().filter_map(|partition| partition.view.as_ref());
                named.for_each(|named| named.keep_filters(refiltered.checks.seen_rate));
                return Ok(());
            }
            // The decision knows the mean of all filters of the keyspace only.
            let filter_bits_per_key = match &filters {
                Some(FilterPlan::Chosen(input)) => Some(input.bits_per_key.into()),
                _ => None,
            };
            let bytes_expected = plan.bytes(filter_bits_per_key);
            let built = self.write_and_install(keyspace, plan, filters.as_ref(), number, &check)?;
            if let Some(view) = built {
                let time = self.context.runtime.clock.now().saturating_sub(begun);
                self.record(keyspace, plan, &view, bytes_expected, time);
            }
            Ok(())
        });
        if let (Err(error), Some(old)) = (&built, &plan.old)
            && !is_stale.get()
            && matches!(error, Error::Corruption(found) if found.file == old.view.path())
        {
            // The old view was damaged since it was opened. It is removed, and the next one is built from scratch.
            self.fail_view(keyspace, plan.partition, &old.view, error);
            return Ok(());
        }
        if let Err(error) = &built
            && !is_stale.get()
        {
            let path = FileName::View(number).path(&self.context.folder);
            self.tables.environment().report_view(&path, error.to_string());
            return built;
        }
        self.context.metrics.views_discarded.add(u64::from(is_stale.get()));
        Ok(())
    }

    /// `None` if the keyspace was dropped meanwhile, or the view has no use any more.
    fn write_and_install(
        &self,
        keyspace: &KeyspaceState,
        plan: &ViewPlan,
        filters: Option<&FilterPlan>,
        number: u64,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Option<Arc<View>>> {
        let folder = &self.context.folder;
        let (temporary, target) =
            (FileName::Temporary(number).path(folder), FileName::View(number).path(folder));
        let owner = self.owner(keyspace, number);
        self.write(plan, filters, owner, &temporary, check)?;
        let discard = |path: &Path| {
            // A file that can't be removed is deleted at the next open.
            let _ = folder.remove(path);
        };
        let renamed =
            folder.rename(&temporary, &target).map_err(|error| Error::io("rename", &temporary, error));
        renamed.inspect_err(|_| discard(&temporary))?;
        let runs: Vec<RunSummary> = plan.all_runs().map(|run| run.summarize()).collect();
        let run_ids = runs.iter().map(|run| run.id).collect();
        let synced = folder.sync().map_err(|error| Error::io("sync", folder.path(), error));
        let opened = synced.and_then(|()| open_view(self.tables.environment(), owner, &runs));
        let view = opened.and_then(|view| check().map(|()| view)).inspect_err(|_| discard(&target))?;
        let mut edit = VersionEdit::default();
        edit.push(Change::SetView {
            keyspace: keyspace.id.into(),
            partition: plan.partition,
            view: Some((number, run_ids)),
        });
        let installed = self.installer.install_job(edit, &[FileName::View(number)]);
        if installed.is_err() {
            // A job may have replaced the partition meanwhile: the view is stale then.
            check()?;
        }
        if !installed? {
            return Ok(None);
        }
        if !self.begin_use(keyspace, plan, number, Arc::clone(&view)) {
            // A job has replaced some of its runs since the last check: the version dropped the view with the edit, or since.
            check()?;
            return Ok(None);
        }
        Ok(Some(view))
    }

    /// Writes the view to a file, and syncs it.
    fn write(
        &self,
        plan: &ViewPlan,
        filters: Option<&FilterPlan>,
        owner: ViewOwner,
        path: &Path,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let (_, digest_seed) = self.installer.versions.database();
        let runs = plan.runs.iter().map(|run| Ok((run.id(), open_run(run, &self.tables)?)));
        let runs = runs.collect::<Result<Vec<_>>>()?;
        let old_runs = plan.old.iter().flat_map(|old| &old.runs);
        let old_runs = old_runs.map(|run| open_run(run, &self.tables)).collect::<Result<Vec<_>>>()?.into();
        let folder = &self.context.folder;
        let new_spool = || {
            let (context, installer) = (Arc::clone(&self.context), Arc::clone(&self.installer));
            let new_number = move || installer.versions.new_file_number();
            Spool::new(folder.vfs(), move || FileName::Temporary(new_number()).path(&context.folder))
        };
        let (spool, filters) = (new_spool(), filters.map(|plan| FilterJob::new(plan, new_spool())));
        let mut refusals = Vec::new();
        write_new(&**folder, path, |append| {
            let sink = &mut |bytes: &[u8]| check().and_then(|()| append(bytes));
            let tag_bytes = plan.tag_bytes;
            let options = ViewOptions { digest_seed, owner, tag_bytes, ..ViewOptions::default() };
            refusals = match &plan.old {
                Some(old) => {
                    rebuild_view_with_filters(owner, &old.view, &old_runs, &runs, filters, spool, sink)?.1
                }
                None => build_view_with_filters(options, &runs, filters, spool, sink)?.1,
            };
            Ok(())
        })?;
        for refusal in refusals {
            self.context.report(&Event::FilterBuildFailed { file: path.to_path_buf(), reason: refusal });
        }
        Ok(())
    }

    /// The filters for the keys of the new runs; `None` for a view without filters.
    fn filters(
        &self,
        keyspace: &KeyspaceState,
        plan: &ViewPlan,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Option<FilterPlan>> {
        let with_filters = plan.old.as_ref().map(|old| &old.view).filter(|view| view.has_filter());
        let refiltered = plan.refiltered.as_ref().map(|refiltered| &refiltered.view);
        let Some(view) = refiltered.or(with_filters) else { return Ok(None) };
        let read_state = keyspace.read_state.load_full();
        // The filters are probed only for ranges that the view itself cannot reject: near keys, where filters have the most false
        // positives, too. Those that the view has reject most of these ranges.
        let needs_filter =
            |query: &SampledQuery| is_closed(query) && (with_filters.is_some() || !is_denied(view, query));
        let queries: Vec<_> = read_state.query_sample.snapshot().into_iter().filter(needs_filter).collect();
        if with_filters.is_none() && (queries.len() < SAMPLE_MIN || self.all_deny_ranges(plan)?) {
            return Ok(None);
        }
        let version = &read_state.version;
        let key_count = plan.runs.iter().map(|run| run.entry_count()).sum();
        let queries = queries.into();
        if with_filters.is_some() {
            // Not chosen: a choice of none, for few keys, would lose the filters of all others.
            let filters = vec![TableFilter::for_ranges()];
            return Ok(Some(FilterPlan::Given(GivenFilters { filters, queries })));
        }
        let budget = filter_budget_of(&version.options.filters);
        let origin = TableOrigin { level: LEVEL_COUNT_MAX as u8 - 1, ..TableOrigin::default() };
        let input = self.job_contexts.with(version, |context| ChoiceInput {
            queries,
            last: None,
            ..context.choice_input(budget, key_count, &origin, Effort::Write)
        });
        let is_better = self.has_better_filters(plan, view, &input, check)?;
        Ok(is_better.then(|| FilterPlan::Chosen(Box::new(input))))
    }

    /// Whether other filters than those of a view are so much better for today's queries that it is built again, by the rule of tables.
    /// They are compared within the budget with which they are built, for the keys of two parts: those that admit the most queries of the
    /// parts whose filters the store chose, and of those that rebuilds added. `true` without filters, and for those whose specification is
    /// not known.
    fn has_better_filters(
        &self,
        plan: &ViewPlan,
        view: &Arc<View>,
        input: &ChoiceInput,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<bool> {
        if !view.has_filter() {
            return Ok(true);
        }
        let runs = view.runs().iter().filter_map(|named| plan.runs.iter().find(|run| run.id() == named.id));
        let runs = runs.map(|run| open_run(run, &self.tables)).collect::<Result<Vec<_>>>()?.into();
        self.context.metrics.filters_checked.add(1);
        for part in view.most_asked_parts(&input.queries) {
            if part.filters.is_none() {
                return Ok(true);
            }
            let keys = keys_of(view, &runs, &part, check)?;
            let input = ChoiceInput { current: part.filters, ..input.clone() };
            if is_better(&Comparison::of_keys(keys, &input, check)?, COST_RATIO_MAX) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether each table of a view has a range filter.
    fn all_deny_ranges(&self, plan: &ViewPlan) -> Result<bool> {
        for table in plan.all_runs().flat_map(|run| run.tables()) {
            if !self.tables.reader(table)?.has_range_filter() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Lets reads use an installed view. The seeks of its runs count from now on again. `false` if the version has no such view.
    fn begin_use(&self, keyspace: &KeyspaceState, plan: &ViewPlan, number: u64, view: Arc<View>) -> bool {
        let partition = current_partition(keyspace, plan.partition);
        let named = partition.as_ref().and_then(|partition| partition.view.as_ref());
        let Some(named) = named.filter(|named| named.number() == number) else { return false };
        if let Some(refiltered) = &plan.refiltered {
            named.set_filter_checks(refiltered.checks_of(&view));
        }
        named.set_reader(view);
        plan.runs.iter().for_each(|run| run.reset_merged_seeks());
        true
    }

    /// Counts and reports a view that was installed.
    fn record(
        &self,
        keyspace: &KeyspaceState,
        plan: &ViewPlan,
        view: &View,
        bytes_expected: u64,
        time: Duration,
    ) {
        let metrics = &self.context.metrics;
        let (bytes, is_rebuilt) = (view.file_bytes(), plan.old.is_some());
        metrics.view_bytes_written.add(bytes);
        metrics.view_bytes_expected.add(bytes_expected);
        let count = if is_rebuilt { &metrics.views_rebuilt } else { &metrics.views_built };
        count.add(1);
        let has_replaced = plan.refiltered.as_ref().is_some_and(|refiltered| refiltered.view.has_filter());
        metrics.filters_replaced.add(u64::from(has_replaced));
        self.context.report(&Event::ViewBuilt {
            keyspace: keyspace.name.clone(),
            file: view.path().to_path_buf(),
            run_count: view.runs().len(),
            entry_count: view.entry_count(),
            bytes_expected,
            bytes,
            microseconds_expected: (plan.nanoseconds / 1e3) as u64,
            microseconds: u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
            is_rebuilt,
        });
    }
}

fn is_closed(query: &SampledQuery) -> bool {
    matches!(query.kind, QueryKind::Range | QueryKind::Prefix)
}

/// Whether a view knows without its filters that it has no key of a range.
fn is_denied(view: &View, query: &SampledQuery) -> bool {
    view.answer_of(&query.range(), false).is_ok_and(|answer| answer == RangeAnswer::Empty)
}

fn current_partition(keyspace: &KeyspaceState, id: u64) -> Option<Arc<Partition>> {
    let read_state = keyspace.read_state.load();
    read_state.version.partitions.iter().find(|partition| partition.id == id).cloned()
}

/// Whether all runs of a plan are in the current version.
fn has_runs(keyspace: &KeyspaceState, plan: &ViewPlan) -> bool {
    let partition = current_partition(keyspace, plan.partition);
    let has = |partition: &Arc<Partition>| {
        plan.all_runs().all(|run| partition.run_with_id(run.id()).is_some()) && keyspace.check().is_ok()
    };
    partition.as_ref().is_some_and(has)
}
