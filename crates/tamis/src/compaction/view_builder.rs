//! Builds, opens and removes sorted views in the background.
//!
//! One job runs at a time, and only when no other job is due. It yields to flushes while it builds, and stops if its runs are replaced.
//! Reads never wait for it: they use a view once it is installed and open.
//!
//! 1. A view that turned out to be damaged, or of a keyspace whose options allow none, is removed by an edit.
//! 2. A view that the manifest names is opened.
//! 3. Otherwise [`super::view_plan`] decides whether another one is built.
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

use super::{
    back_off::RETRY,
    plan::InProgress,
    view_plan::{ViewPlan, pick},
};
use crate::{
    admin::link::write_new,
    cursor::run_tables::open_run,
    error::{Error, Result},
    file_name::FileName,
    observe::events::Event,
    options::Views,
    store::{keyspace_state::KeyspaceState, parts::StoreParts},
    sync::Mutex,
    version::{
        edit::{Change, VersionEdit},
        named_view::{NamedView, open_view},
        partition::Partition,
    },
    view::{
        build::build_view,
        reader::View,
        rebuild::rebuild_view,
        writer::{RunSummary, ViewOptions, ViewOwner},
    },
};

/// The time between two checks of the seeks of all keyspaces.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// See the head of this file.
pub(super) struct ViewBuilder {
    pub(super) store: Arc<StoreParts>,
    pub(super) schedule: Mutex<Schedule>,
}

/// The running job, the next check of all keyspaces, and partitions whose last job failed.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    is_running: bool,
    next_check: Duration,
    /// By partition: the number of consecutive failures, and when the next job may begin.
    failures: BTreeMap<u64, (u32, Duration)>,
}

/// A job. No other job of views runs until it is dropped.
pub(super) struct ViewClaim {
    pub(super) keyspace: Arc<KeyspaceState>,
    partition: u64,
    step: ViewStep,
    /// The last field: the job keeps no table once it has ended.
    _running: Running,
}

struct Running(Arc<ViewBuilder>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.schedule.lock().is_running = false;
    }
}

enum ViewStep {
    Remove(Arc<NamedView>),
    Open(Arc<NamedView>),
    Build(ViewPlan),
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
        Some(ViewClaim {
            keyspace: Arc::clone(keyspace),
            partition,
            step,
            _running: Running(Arc::clone(self)),
        })
    }

    /// Whether a job of a keyspace is due.
    pub(super) fn is_due(&self, keyspace: &KeyspaceState, in_progress: &InProgress) -> bool {
        self.due(keyspace, in_progress).is_some()
    }

    fn due(&self, keyspace: &KeyspaceState, in_progress: &InProgress) -> Option<(u64, ViewStep)> {
        let version = Arc::clone(&keyspace.read_state.load().version);
        let views = version.options.views;
        let now = self.store.context.runtime.clock.now();
        version.partitions.iter().find_map(|partition| {
            let step = match &partition.view {
                Some(view) if view.is_failed() || views == Views::Off => ViewStep::Remove(Arc::clone(view)),
                Some(view) if view.needs_open() => ViewStep::Open(Arc::clone(view)),
                _ => ViewStep::Build(pick(partition, views, in_progress, &self.store.scheduler.job_times)?),
            };
            let failure = self.schedule.lock().failures.get(&partition.id).copied();
            failure.is_none_or(|(_, at)| at <= now).then_some((partition.id, step))
        })
    }

    /// Runs a job; `between_pages` is called every 256 KiB that a builder writes. A failure is reported.
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
        let now = self.store.context.runtime.clock.now();
        let mut schedule = self.schedule.lock();
        let failure = schedule.failures.remove(&partition);
        if done.is_err() {
            let count = failure.map_or(0, |(count, _)| count);
            // The wait doubles with each failure, up to about an hour.
            let wait = RETRY * (1 << count.min(13));
            schedule.failures.insert(partition, (count + 1, now + wait));
        }
    }

    fn owner(&self, keyspace: &KeyspaceState, number: u64) -> ViewOwner {
        let (database_id, _) = self.store.installer.versions.database();
        ViewOwner { database_id, keyspace_id: keyspace.id.into(), number }
    }

    /// A view that can't be opened is never used; the next job removes it.
    fn open(&self, keyspace: &KeyspaceState, partition: u64, view: &NamedView) {
        let environment = self.store.tables.environment();
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
            named.fail(self.store.tables.environment(), error);
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
        self.store.installer.install_job(edit, &[]).map(drop)
    }

    fn build(&self, keyspace: &KeyspaceState, plan: &ViewPlan, between_pages: &dyn Fn()) -> Result<()> {
        let begun = self.store.context.runtime.clock.now();
        let number = self.store.installer.versions.new_file_number();
        let is_stale = Cell::new(false);
        let check = || {
            between_pages();
            is_stale
                .set(!has_runs(keyspace, plan) || self.store.scheduler.is_stopping().load(Ordering::SeqCst));
            if is_stale.get() { Err(Error::Closed) } else { Ok(()) }
        };
        let built = self.write_and_install(keyspace, plan, number, &check).map(|built| {
            if let Some(view) = built {
                let time = self.store.context.runtime.clock.now().saturating_sub(begun);
                self.store.scheduler.job_times.note_view(plan.entry_counts(), time);
                self.record(keyspace, plan, &view, time);
            }
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
            let path = FileName::View(number).path(&self.store.context.folder);
            self.store.tables.environment().report_view(&path, error.to_string());
            return built;
        }
        self.store.context.metrics.views_discarded.add(u64::from(is_stale.get()));
        Ok(())
    }

    /// `None` if the keyspace was dropped meanwhile, or the view has no use any more.
    fn write_and_install(
        &self,
        keyspace: &KeyspaceState,
        plan: &ViewPlan,
        number: u64,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<Option<Arc<View>>> {
        let folder = &self.store.context.folder;
        let (temporary, target) =
            (FileName::Temporary(number).path(folder), FileName::View(number).path(folder));
        let owner = self.owner(keyspace, number);
        self.write(plan, owner, &temporary, check)?;
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
        let opened = synced.and_then(|()| open_view(self.store.tables.environment(), owner, &runs));
        let view = opened.and_then(|view| check().map(|()| view)).inspect_err(|_| discard(&target))?;
        let mut edit = VersionEdit::default();
        edit.push(Change::SetView {
            keyspace: keyspace.id.into(),
            partition: plan.partition,
            view: Some((number, run_ids)),
        });
        let installed = self.store.installer.install_job(edit, &[FileName::View(number)]);
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
        owner: ViewOwner,
        path: &Path,
        check: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let runs = plan.runs.iter().map(|run| Ok((run.id(), open_run(run, &self.store.tables)?)));
        let runs = runs.collect::<Result<Vec<_>>>()?;
        let old_runs = plan.old.iter().flat_map(|old| &old.runs);
        let old_runs =
            old_runs.map(|run| open_run(run, &self.store.tables)).collect::<Result<Vec<_>>>()?.into();
        let folder = &self.store.context.folder;
        write_new(&**folder, path, |append| {
            let sink = &mut |bytes: &[u8]| check().and_then(|()| append(bytes));
            match &plan.old {
                Some(old) => rebuild_view(owner, &old.view, &old_runs, &runs, sink).map(drop),
                None => build_view(ViewOptions { owner, ..ViewOptions::default() }, &runs, sink),
            }
        })
    }

    /// Lets reads use an installed view. Their losses are counted from now on again. `false` if the version has no such view.
    fn begin_use(&self, keyspace: &KeyspaceState, plan: &ViewPlan, number: u64, view: Arc<View>) -> bool {
        let partition = current_partition(keyspace, plan.partition);
        let named = partition.as_ref().and_then(|partition| partition.view.as_ref());
        let Some(named) = named.filter(|named| named.number() == number) else { return false };
        named.set_reader(view);
        if let Some(partition) = &partition {
            partition.losses.view.begin_job();
            partition.losses.restart();
        }
        true
    }

    /// Counts and reports a view that was installed.
    fn record(&self, keyspace: &KeyspaceState, plan: &ViewPlan, view: &View, time: Duration) {
        let metrics = &self.store.context.metrics;
        let (bytes, is_rebuilt) = (view.file_bytes(), plan.old.is_some());
        metrics.view_bytes_written.add(bytes);
        let count = if is_rebuilt { &metrics.views_rebuilt } else { &metrics.views_built };
        count.add(1);
        let (lost_microseconds, price_microseconds) = plan.loss.unwrap_or_default().microseconds();
        self.store.context.report(&Event::ViewBuilt {
            keyspace: keyspace.name.clone(),
            file: view.path().to_path_buf(),
            run_count: view.runs().len(),
            entry_count: view.entry_count(),
            bytes,
            microseconds: u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
            is_rebuilt,
            lost_microseconds,
            price_microseconds,
        });
    }
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
