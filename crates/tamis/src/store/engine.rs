//! An open store: wires the parts that read, write, run background jobs and maintain the store.
//!
//! Each part has its own type, and all share [`StoreParts`]: reads are [`ReadPath`], writes [`WritePath`], flushes and compactions
//! [`BackgroundJobs`], changes of keyspaces [`KeyspaceAdmin`], ingests [`Ingester`].
//!
//! # Locks, in the order in which they are taken
//!
//! 1. The running jobs of [`StoreContext`]: shared by every job that uses the folder, exclusive for close.
//! 2. [`CommitLog`]: the commit leader; memtable rotations; creating and dropping keyspaces.
//! 3. The options of a keyspace ([`KeyspaceState::options_lock`](crate::store::keyspace_state::KeyspaceState::options_lock)): their change; the
//!    install of a compaction.
//! 4. The manifest's lock in [`VersionSet`](crate::version::set::VersionSet): one edit at a time.
//!
//! Read states are replaced by compare-and-swap (`keyspace_state.rs`).

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tamis_filter::Digester;
use tamis_vfs::Vfs;

use crate::{
    admin::ingest::{Ingester, Requests},
    cache::table::TableCache,
    compaction::{background_jobs::BackgroundJobs, law::JobTimes, scheduler::Scheduler},
    error::{Error, Result},
    key::Sequence,
    observe::{metrics::Statistics, sample_file, statistics},
    options::Options,
    read::{ReadPath, snapshot::Snapshots},
    store::{
        commit_log::CommitLog,
        context::StoreContext,
        follower::{Follower, read_changing},
        guarded::{guard_clock, guard_listener, guard_vfs},
        keyspace_state::KeyspaceRegistry,
        open_report::OpenReport,
        parts::StoreParts,
        recover::{Claim, Recovered, open_folder, recover, refuse_unwritable},
        runtime::{JoinHandle, Runtime},
        version_installer::VersionInstaller,
    },
    sync::{Mutex, sim_fault},
    version::edit::{Change, VersionEdit},
    write::{back_pressure::BackPressure, commit::WritePath, keyspace_admin::KeyspaceAdmin},
};

/// The id of the store that is opened next.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// See the head of this file. Dropping it closes the store.
pub(crate) struct Engine {
    id: u64,
    pub(crate) store: Arc<StoreParts>,
    pub(crate) read_path: ReadPath,
    pub(crate) write_path: WritePath,
    pub(crate) background: Arc<BackgroundJobs>,
    pub(crate) keyspace_admin: KeyspaceAdmin,
    pub(crate) ingester: Ingester,
    pub(crate) report: OpenReport,
    /// Seed of the filters' digests.
    pub(crate) filter_seed: u64,
    /// The workers; dropping a handle waits for its thread.
    threads: Mutex<Vec<Box<dyn JoinHandle>>>,
    /// Of a store that is opened read-only and whose files another process may change.
    pub(crate) follower: Option<Arc<Follower>>,
    /// Close ends it.
    claim: Mutex<Claim>,
}

impl Engine {
    /// Opens the store in a folder, or creates one there, and starts its workers.
    pub(crate) fn open(
        vfs: Arc<dyn Vfs>,
        path: &Path,
        options: Options,
        runtime: Runtime,
    ) -> Result<Arc<Self>> {
        let background_error = Arc::default();
        let vfs = guard_vfs(vfs, &background_error);
        let options = guard_listener(options, &background_error);
        let runtime = guard_clock(runtime, &background_error);
        let (folder, claim) = open_folder(&*vfs, path, &options)?;
        let context = StoreContext::new(folder, options, runtime, background_error);
        let StoreContext { folder, options, runtime, metrics, .. } = &*context;
        let tables = TableCache::new(folder, options, metrics);
        let read = || recover(folder, options, runtime, tables.budget());
        let recovered = if matches!(claim, Claim::Reader(_)) { read_changing(read) } else { read() };
        let mut recovered = recovered.map_err(|error| refuse_unwritable(error, folder))?;
        let unreplayed = recovered.unreplayed.take();
        context.expiry.continue_at(recovered.versions.catalog().counters.greatest_time);
        let mut engine = Self::new(context, tables, recovered, claim);
        if let Some(unreplayed) = unreplayed {
            engine.report.replayed_entries +=
                unreplayed.replay(&engine.store.keyspaces, &engine.background)?;
        }
        if let Some(follower) = &engine.follower {
            follower.refresh()?;
        }
        engine.background.bound_replayed_log();
        for index in 0..engine.background.worker_count() {
            // If one can't be started, dropping the engine stops the others.
            let worker = engine.background.start_worker(index)?;
            engine.threads.lock().push(worker);
        }
        engine.background.run_inline();
        Ok(Arc::new(engine))
    }

    fn new(context: Arc<StoreContext>, tables: Arc<TableCache>, recovered: Recovered, claim: Claim) -> Self {
        let Recovered { versions, keyspaces, resources, log, segments, last_sequence, report, .. } =
            recovered;
        let (_, filter_seed) = versions.database();
        let snapshots = Arc::new(Snapshots::default());
        snapshots.publish(last_sequence);
        let keyspaces = KeyspaceRegistry::new(keyspaces);
        let store = Arc::new(StoreParts {
            tables,
            log: CommitLog::new(&context, log, segments),
            installer: VersionInstaller::new(&context, &keyspaces, &versions),
            scheduler: Arc::new(Scheduler::new(&resources.changed)),
            back_pressure: Arc::new(BackPressure::default()),
            versions,
            context,
            keyspaces,
            snapshots,
        });
        let (follower, claim) = match claim {
            Claim::Reader(registration) => {
                (Follower::new(&store, &resources, registration).map(Arc::new), Claim::Program)
            }
            claim => (None, claim),
        };
        let background = BackgroundJobs::new(&store);
        let shared = || Arc::clone(&store);
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            read_path: ReadPath::new(&store, Digester::new(filter_seed)),
            write_path: WritePath::new(&store, &background),
            keyspace_admin: KeyspaceAdmin { store: shared(), resources },
            ingester: Ingester {
                store: shared(),
                background: Arc::clone(&background),
                waiting: Requests::default(),
            },
            background,
            report,
            filter_seed,
            threads: Mutex::new(Vec::new()),
            claim: Mutex::new(claim),
            follower,
            store,
        }
    }

    /// A number that is unique among all stores that this process has opened, including closed ones. (An address may be reused.)
    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    /// See [`crate::Db::statistics`].
    pub(crate) fn statistics(&self) -> Statistics {
        if self.store.context.check_process().is_err() {
            return Statistics::default();
        }
        statistics::collect(&self.store, self.report.log_bytes)
    }

    /// The times of earlier jobs, which price later ones.
    pub(crate) fn job_times(&self) -> &JobTimes {
        &self.store.scheduler.job_times
    }

    /// Lets a thread refresh this reader, until the store is closed; a later call sets another interval. Does nothing in the process that writes.
    ///
    /// # Errors
    /// [`Error::Closed`]; [`Error::Io`] if the operating system refuses a thread.
    pub(crate) fn refresh_every(&self, interval: Duration) -> Result<()> {
        let Some(follower) = self.follower.clone() else { return Ok(()) };
        let mut threads = self.threads.lock();
        self.store.context.check_open()?;
        let context = &self.store.context;
        if follower.set_interval(Some(interval)).is_some() {
            return Ok(());
        }
        let refreshed = Arc::clone(&follower);
        let work = Box::new(move || refreshed.refresh_always());
        let spawned = context.runtime.spawner.spawn("tamis-refresh", work).inspect_err(|_| {
            follower.set_interval(None);
        });
        threads.push(spawned.map_err(|error| Error::io("start a thread for", context.folder.path(), error))?);
        Ok(())
    }

    /// Calls `read`, which reads the files of the store and not only those of its version, while none of them is deleted.
    ///
    /// # Errors
    /// Those of `read`, and of a refresh of a reader.
    pub(crate) fn with_all_files<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        match &self.follower {
            Some(follower) => follower.with_all_files(read),
            None => read(),
        }
    }

    /// Releases a snapshot: compactions may drop the entries that only it needed.
    pub(crate) fn release_snapshot(&self, sequence: Sequence) {
        if self.store.snapshots.release(sequence) {
            self.store.scheduler.note_snapshot_released(sequence);
        }
    }

    /// Writes the file of sampled queries if asked to, syncs the log, waits for running jobs, stops the workers and unlocks the folder.
    ///
    /// # Errors
    /// As [`CommitLog::close`]; the store is closed in any case.
    pub(crate) fn close(&self) -> Result<()> {
        self.store.context.check_process()?;
        // A second thread that closes the store waits here.
        let mut threads = self.threads.lock();
        if self.store.context.check_open().is_err() {
            return Ok(());
        }
        sample_file::save(&self.store.context, &self.store.keyspaces.load(), &self.store.versions);
        let closed = self.store.log.close();
        self.store.scheduler.stop();
        threads.clear();
        // Jobs on the program's own threads end too: after that nothing uses the folder.
        let _no_jobs = (!sim_fault!("close-without-waiting")).then(|| self.store.context.wait_for_jobs());
        self.background.delete_obsolete_files();
        if closed.is_ok() {
            self.record_synced_log();
        }
        if let Some(follower) = &self.follower {
            follower.end();
        }
        *self.claim.lock() = Claim::Program;
        closed
    }

    /// Records the lengths of the log's segments in the manifest, so that the next open finds one that was lost or cut. The log is complete
    /// without: a failure is reported only.
    fn record_synced_log(&self) {
        let segments = self.store.log.synced_segments();
        if segments.is_empty() {
            return;
        }
        let mut edit = VersionEdit { changes: vec![Change::SetSyncedLog { segments }] };
        edit.persist_time(self.store.context.expiry.to_persist());
        if let Err(error) = self.store.versions.apply(edit, |_| {}) {
            self.store.context.report_failed_job("record the lengths of the log", &error);
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A program that needs the result calls `Db::close`.
        let _ = self.close();
    }
}
