//! Ingests tables that were built outside of the store into a keyspace, all of them in one edit.
//!
//! 1. Each file is linked (or copied) into the folder and read completely: a damaged file, or one that is not a table built
//!    outside, is refused. The manifest does not name these files yet: after a crash the next open deletes them.
//! 2. The memtables are flushed, so that all entries of the keyspace are in tables. If writers continue in the meantime, writers
//!    of this keyspace wait from the second attempt on.
//! 3. Under the log's lock: the log is synced (writes acknowledged before the ingest must survive if the ingest does), the tables
//!    get the next sequence number, one for all, and one edit adds them to L0 as the newest run. The edit also records that all
//!    entries of the keyspace up to this number are in tables, so that a replay inserts nothing older above them.
//!
//! The sequence number is stored in the manifest, not in the file, which never changes: readers add it (`table/reader.rs`).
//!
//! Cost: each file is read once; one flush; one edit. If L0 has its maximum number of runs, an ingest waits as writers do.

mod cut;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tamis_vfs::{Access, Vfs};

use crate::{
    cache::table::TableCache,
    changed_keyspaces::Changed,
    commit_log::CommitLog,
    compaction::{background_jobs::BackgroundJobs, repartition::FlushPause, scheduler::Scheduler},
    context::StoreContext,
    error::{Error, Result},
    file_name::FileName,
    key::Sequence,
    keyspace_state::KeyspaceState,
    link::link_or_copy,
    options::Durability,
    read::snapshot::Snapshots,
    table::{properties::TableSummary, reader::TableReader},
    version::{
        catalog::Counters,
        edit::{Change, RunPlace, VersionEdit},
        key_bounds::is_within_end,
        version::KeyspaceVersion,
    },
    version_installer::VersionInstaller,
};

/// The interval at which an ingest that waits for a job checks whether it has ended.
const WAIT: Duration = Duration::from_millis(20);

/// The result of [`crate::Db::ingest`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct IngestReport {
    /// Number of tables.
    pub table_count: usize,
    /// Number of entries.
    pub entry_count: u64,
    /// Bytes of the tables.
    pub bytes: u64,
    /// The sequence number of all entries; 0 if there were no tables.
    pub sequence: u64,
}

/// Tables in the folder that the manifest does not name yet. They are removed unless they are installed.
struct PendingTables<'a> {
    context: &'a StoreContext,
    summaries: Vec<TableSummary>,
    names: Vec<FileName>,
}

impl Drop for PendingTables<'_> {
    fn drop(&mut self) {
        for name in self.names.drain(..) {
            // A file that can't be removed is deleted at the next open.
            let _ = self.context.folder.remove(&name.path(&self.context.folder));
        }
    }
}

/// While it exists, writers of the keyspace wait before they join a group.
struct WriteGate<'a> {
    scheduler: &'a Scheduler,
    keyspace: &'a KeyspaceState,
}

impl<'a> WriteGate<'a> {
    fn close(scheduler: &'a Scheduler, keyspace: &'a KeyspaceState) -> Self {
        keyspace.ingest_count.fetch_add(1, Ordering::SeqCst);
        Self { scheduler, keyspace }
    }
}

impl Drop for WriteGate<'_> {
    fn drop(&mut self) {
        self.keyspace.ingest_count.fetch_sub(1, Ordering::SeqCst);
        self.scheduler.note_progress();
    }
}

/// See the head of this file.
pub(crate) struct Ingester {
    pub(crate) context: Arc<StoreContext>,
    pub(crate) log: Arc<CommitLog>,
    pub(crate) installer: Arc<VersionInstaller>,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) background: Arc<BackgroundJobs>,
}

impl Ingester {
    /// See [`crate::Db::ingest`].
    pub(crate) fn ingest(&self, keyspace: &KeyspaceState, paths: &[PathBuf]) -> Result<IngestReport> {
        let mut pending = self.link_tables(paths)?;
        let mut report = IngestReport::default();
        if pending.summaries.is_empty() {
            return Ok(report);
        }
        report.table_count = pending.summaries.len();
        report.entry_count = pending.summaries.iter().map(|summary| summary.entry_count).sum();
        report.bytes = pending.summaries.iter().map(|summary| summary.file_bytes).sum();
        // Each ingest adds a run.
        self.background.wait_for_level0(keyspace)?;
        let mut gate = None;
        report.sequence = loop {
            self.background.flush_all()?;
            self.cut_tables(keyspace, &mut pending)?;
            if let Some(sequence) = self.try_install(keyspace, &mut pending)? {
                break sequence;
            }
            gate.get_or_insert_with(|| WriteGate::close(&self.scheduler, keyspace));
            if keyspace.flush_slot.is_taken() {
                self.scheduler.wait_for_progress(&*self.context.runtime.clock, WAIT);
            }
        };
        drop(gate);
        self.background.run_due();
        Ok(report)
    }

    /// Step 1.
    fn link_tables(&self, paths: &[PathBuf]) -> Result<PendingTables<'_>> {
        let folder = &self.context.folder;
        let _job = self.context.begin_write_job()?;
        let mut pending = PendingTables { context: &self.context, summaries: Vec::new(), names: Vec::new() };
        for path in paths {
            let number = self.installer.versions.new_file_number();
            let name = FileName::Table(number);
            link_or_copy(&**folder, path, &name.path(folder))?;
            pending.names.push(name);
            let summary = self.verify_table(number).map_err(|error| error.at_path(path))?;
            pending.summaries.push(summary);
            sync_file(&**folder, &name.path(folder))?;
        }
        folder.sync().map_err(|error| Error::io("sync", folder.path(), error))?;
        check_disjoint(&mut pending.summaries)?;
        Ok(pending)
    }

    /// Cuts the tables that reach over the bounds of the current partitions.
    fn cut_tables(&self, keyspace: &KeyspaceState, pending: &mut PendingTables<'_>) -> Result<()> {
        let folder = &self.context.folder;
        let version = Arc::clone(&keyspace.read_state.load().version);
        let versions = &self.installer.versions;
        let (_, filter_seed) = versions.database();
        let target = cut::Target { folder, options: &version.options, filter_seed };
        let whole = std::mem::take(&mut pending.summaries);
        for summary in whole {
            if !cut::crosses(&version, &summary) {
                pending.summaries.push(summary);
                continue;
            }
            let _job = self.context.begin_write_job()?;
            let table = TableReader::open_outside(self.tables.environment(), summary.number)?;
            let mut numbers = Vec::new();
            let mut new_number = || {
                let number = versions.new_file_number();
                numbers.push(number);
                pending.names.push(FileName::Table(number));
                number
            };
            cut::cut(&table, &version, &target, &mut new_number)?;
            for number in numbers {
                let part = TableReader::open_outside(self.tables.environment(), number)?;
                pending.summaries.push(part.properties().summary.clone());
            }
        }
        Ok(())
    }

    /// Reads a linked table completely.
    fn verify_table(&self, number: u64) -> Result<TableSummary> {
        let reader = TableReader::open_outside(self.tables.environment(), number)?;
        match reader.verify().into_iter().next() {
            Some(fault) => Err(fault),
            None => Ok(reader.properties().summary.clone()),
        }
    }

    /// Step 3; `None` if a writer has written to the keyspace since the flush.
    fn try_install(
        &self,
        keyspace: &KeyspaceState,
        pending: &mut PendingTables<'_>,
    ) -> Result<Option<Sequence>> {
        let _job = self.context.begin_write_job()?;
        let mut log = self.log.lock();
        self.context.check_writable()?;
        keyspace.check()?;
        let Some(state) = log.as_mut() else { return Err(self.context.read_only_error()) };
        let read_state = keyspace.read_state.load_full();
        if !read_state.memtable.memtable.is_empty() || !read_state.immutable.is_empty() {
            return Ok(None);
        }
        // No job may replace a partition meanwhile.
        let Some(_pause) = FlushPause::begin(keyspace) else { return Ok(None) };
        let version = Arc::clone(&keyspace.read_state.load().version);
        if pending.summaries.iter().any(|summary| cut::crosses(&version, summary)) {
            // Partitions changed after the tables were cut.
            return Ok(None);
        }
        keyspace.drop_recorded_ranges();
        let synced = state.log.persist(Durability::Synced);
        synced.inspect_err(|error| self.log.propagate_background_error(state, error))?;
        let sequence = state.last_sequence + 1;
        let edit = edit_of(&version, &pending.summaries, sequence);
        let installed = edit.new_tables();
        if let Err(error) = self.installer.install(edit) {
            if self.installer.versions.background_error().is_some() {
                // The manifest may name them nevertheless.
                pending.names.retain(|name| !installed.contains(name));
            }
            return Err(error);
        }
        // The files of tables that were cut stay in the list, and are removed.
        pending.names.retain(|name| !installed.contains(name));
        state.last_sequence = sequence;
        self.snapshots.publish(sequence);
        // A pick before the entries were visible took them for entries that a reader needs.
        keyspace.mark(Changed::Version);
        Ok(Some(sequence))
    }
}

/// The edit that adds the tables.
fn edit_of(version: &KeyspaceVersion, summaries: &[TableSummary], sequence: Sequence) -> VersionEdit {
    let mut edit = VersionEdit::default();
    for summary in summaries {
        let Some(partition) = version.partition_of(&summary.smallest_key) else { continue };
        let place = RunPlace { keyspace: version.id, partition: partition.id, level: 0, run_age: sequence };
        let summary =
            TableSummary { smallest_sequence: sequence, largest_sequence: sequence, ..summary.clone() };
        edit.push(Change::AddTable { place, summary, filter_file: None, is_ingested: true });
    }
    for partition in &version.partitions {
        edit.push(Change::SetFlushedSequence { keyspace: version.id, partition: partition.id, sequence });
    }
    edit.push(Change::AdvanceCounters(Counters { last_sequence: sequence, ..Counters::default() }));
    edit
}

/// Refuses tables that overlap: all get one sequence number, so that none would be newer.
fn check_disjoint(summaries: &mut [TableSummary]) -> Result<()> {
    summaries.sort_unstable_by(|left, right| left.smallest_key.cmp(&right.smallest_key));
    for pair in summaries.windows(2) {
        if let [left, right] = pair
            && is_within_end(&right.smallest_key, left.end())
        {
            return Err(Error::InvalidArgument {
                what: "tables",
                got: format!("two that overlap at {}", right.smallest_key.escape_ascii()),
                expected: "ingest them one after the other, the newest last".to_owned(),
            });
        }
    }
    Ok(())
}

/// Another program may have written the file without a sync.
fn sync_file(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    let file = vfs.open(path, Access::Buffered).map_err(|error| Error::io("open", path, error))?;
    file.sync().map_err(|error| Error::io("sync", path, error))
}
