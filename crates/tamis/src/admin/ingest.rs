//! Ingests tables that were built outside of the store into a keyspace, all of them in one edit.
//!
//! 1. Each file is linked (or copied) into the folder and read completely: a damaged file, or one that is not a table built
//!    outside, is refused. Of a file that the program has just written only the sections are read, if the program says so. The manifest does not name these files yet: after a crash the next open deletes them.
//! 2. The memtables of the keyspace are flushed, so that all of its entries are in tables. If writers continue in the meantime, writers
//!    of this keyspace wait from the second attempt on.
//! 3. Under the log's lock: the log is synced (writes acknowledged before the ingest must survive if the ingest does), the tables
//!    get the next sequence number, one for all, and one edit adds them to L0 as the newest run. The edit also records that all
//!    entries of the keyspace up to this number are in tables, so that a replay inserts nothing older above them. Ingests that wait for
//!    the lock at the same time share the sync and the edit.
//! 4. The source files are removed, unless the program keeps them.
//!
//! The sequence number is stored in the manifest, not in the file, which never changes: readers add it (`table/reader.rs`).
//!
//! **Names.** After an ingest no name outside of the store leads to its files: a program that writes to one would change the store. A
//! source is linked only if it has no other name and will be removed; others are copied. If it can't be removed, the store's file is
//! replaced by a copy; if that fails, too, the report names it. Until step 4 the source is whole under its name, so that an error or a
//! crash loses nothing.
//!
//! Cost: each file is read once; one flush; one edit. If L0 has its maximum number of runs, an ingest waits as writers do.

mod cut;

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use tamis_vfs::{Access, Folder, Vfs};

use crate::{
    admin::link::{Placed, copy, folder_of, link_only_name_or_copy, link_or_copy},
    changes::event::{IngestedTable, LoggedEvent},
    compaction::{background_jobs::BackgroundJobs, repartition::FlushPause, scheduler::Scheduler},
    error::{Error, Result},
    file_name::FileName,
    key::Sequence,
    options::{Durability, setters},
    store::{
        changed_keyspaces::Changed, commit_log::LogState, context::StoreContext,
        keyspace_state::KeyspaceState, parts::StoreParts,
    },
    sync::{Mutex, sim_fault},
    table::{properties::TableSummary, reader::TableReader},
    version::{
        catalog::Counters,
        edit::{Change, RunPlace, VersionEdit},
        key_bounds::is_within_end,
        version::KeyspaceVersion,
    },
};

/// Options of [`crate::Db::ingest_with`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct IngestOptions {
    /// Keeps the source files: the store gets copies, which share the disk blocks of the sources where the file system can do that. By
    /// default the files are moved into the store.
    pub keep: bool,
    /// The program has just written the files by [`crate::TableWriter`]: their blocks are not read, except by later reads, which verify
    /// them. By default the files are read completely.
    pub trusted: bool,
}

setters!(IngestOptions { keep: bool, trusted: bool });

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
    /// Source files that could not be removed: the store has copies of them.
    pub kept: Vec<PathBuf>,
    /// Of these files, those that could not be copied either, because of a full disk for instance: **they are also files of the store**,
    /// and must not be changed.
    pub linked: Vec<PathBuf>,
}

/// Tables in the folder that the manifest does not name yet. They are removed unless they are installed.
struct PendingTables<'a> {
    context: &'a StoreContext,
    summaries: Vec<TableSummary>,
    names: Vec<FileName>,
    /// The files outside of the store, and how each was placed in the folder.
    sources: Vec<(PathBuf, FileName, Placed)>,
    /// The installed tables with the numbers of their second names.
    ingested: Vec<IngestedTable>,
}

impl Drop for PendingTables<'_> {
    fn drop(&mut self) {
        // After a close the next open removes the files, and may give their numbers to other tables.
        let Ok(_job) = self.context.begin_job() else { return };
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

/// The tables of an ingest that waits for the log's lock.
struct Request {
    keyspace: Arc<KeyspaceState>,
    summaries: Vec<TableSummary>,
    /// The sequence number; no number if a writer has written to the keyspace since its flush.
    answer: Mutex<Option<Result<Option<Sequence>>>>,
    /// The tables with the numbers of their second names, once they are installed.
    ingested: Mutex<Vec<IngestedTable>>,
}

impl Request {
    fn answer(&self, answer: Result<Option<Sequence>>) {
        *self.answer.lock() = Some(answer);
    }
}

/// The ingests that wait for the log's lock.
#[derive(Default)]
pub(crate) struct Requests(Mutex<Vec<Arc<Request>>>);

/// See the head of this file.
pub(crate) struct Ingester {
    pub(crate) store: Arc<StoreParts>,
    pub(crate) background: Arc<BackgroundJobs>,
    pub(crate) waiting: Requests,
}

impl Ingester {
    /// See [`crate::Db::ingest_with`].
    pub(crate) fn ingest(
        &self,
        keyspace: &Arc<KeyspaceState>,
        paths: &[PathBuf],
        options: IngestOptions,
    ) -> Result<IngestReport> {
        let mut pending = self.place_tables(paths, options)?;
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
            self.background.flush(Some(keyspace))?;
            self.cut_tables(keyspace, &mut pending)?;
            if let Some(sequence) = self.try_install(keyspace, &mut pending)? {
                break sequence;
            }
            gate.get_or_insert_with(|| WriteGate::close(&self.store.scheduler, keyspace));
            if keyspace.flush_slot.is_taken() {
                self.store.scheduler.wait_a_moment(&*self.store.context.runtime.clock);
            }
        };
        drop(gate);
        if !options.keep {
            self.remove_sources(&pending, &mut report);
        }
        self.keep_for_changes(&pending.ingested);
        self.background.run_due();
        Ok(report)
    }

    /// Step 1.
    fn place_tables(&self, paths: &[PathBuf], options: IngestOptions) -> Result<PendingTables<'_>> {
        let folder = &self.store.context.folder;
        let _job = self.store.context.begin_write_job()?;
        let mut pending = PendingTables {
            context: &self.store.context,
            summaries: Vec::new(),
            names: Vec::new(),
            sources: Vec::new(),
            ingested: Vec::new(),
        };
        for path in paths {
            let number = self.store.installer.versions.new_file_number();
            let name = FileName::Table(number);
            let target = name.path(folder);
            let placed = match options.keep {
                true => copy(&**folder, path, &target).map(Placed::Copied)?,
                false => link_only_name_or_copy(&**folder, path, &target)?,
            };
            pending.names.push(name);
            pending.sources.push((path.clone(), name, placed));
            let summary = self.check_table(number, options).map_err(|error| error.at_path(path))?;
            check_is_outside(folder, path)?;
            pending.summaries.push(summary);
            sync_file(&**folder, &name.path(folder))?;
        }
        folder.sync().map_err(|error| Error::io("sync", folder.path(), error))?;
        check_disjoint(&mut pending.summaries)?;
        Ok(pending)
    }

    /// Cuts the tables that reach over the bounds of the current partitions.
    fn cut_tables(&self, keyspace: &KeyspaceState, pending: &mut PendingTables<'_>) -> Result<()> {
        let folder = &self.store.context.folder;
        let version = Arc::clone(&keyspace.read_state.load().version);
        let versions = &self.store.installer.versions;
        let (_, filter_seed) = versions.database();
        let target = cut::Target { folder, options: &version.options, filter_seed };
        let whole = std::mem::take(&mut pending.summaries);
        for summary in whole {
            if !cut::crosses(&version, &summary) {
                pending.summaries.push(summary);
                continue;
            }
            let _job = self.store.context.begin_write_job()?;
            let table = TableReader::open_outside(self.store.tables.environment(), summary.number)?;
            let mut numbers = Vec::new();
            let mut new_number = || {
                let number = versions.new_file_number();
                numbers.push(number);
                pending.names.push(FileName::Table(number));
                number
            };
            cut::cut(&table, &version, &target, &mut new_number)?;
            for number in numbers {
                let part = TableReader::open_outside(self.store.tables.environment(), number)?;
                pending.summaries.push(part.properties().summary.clone());
            }
        }
        Ok(())
    }

    /// Opens a linked table, and reads it completely if it is not trusted.
    fn check_table(&self, number: u64, options: IngestOptions) -> Result<TableSummary> {
        let reader = TableReader::open_outside(self.store.tables.environment(), number)?;
        let fault = if options.trusted { None } else { reader.verify().into_iter().next() };
        fault.map_or_else(|| Ok(reader.properties().summary.clone()), Err)
    }

    /// Step 3; `None` if a writer has written to the keyspace since the flush.
    fn try_install(
        &self,
        keyspace: &Arc<KeyspaceState>,
        pending: &mut PendingTables<'_>,
    ) -> Result<Option<Sequence>> {
        let _job = self.store.context.begin_write_job()?;
        let request = Arc::new(Request {
            keyspace: Arc::clone(keyspace),
            summaries: pending.summaries.clone(),
            answer: Mutex::default(),
            ingested: Mutex::default(),
        });
        self.waiting.0.lock().push(Arc::clone(&request));
        // The sync under the lock then has little to do. A failure is a background error, which the answer is then.
        let _ = self.store.log.sync_without_lock();
        let mut log = self.store.log.lock();
        // Another ingest may have had the lock meanwhile, and installed this one, too.
        if request.answer.lock().is_none() {
            let group = std::mem::take(&mut *self.waiting.0.lock());
            self.install_group(log.as_mut(), &group);
        }
        drop(log);
        let answer = request.answer.lock().take().unwrap_or(Ok(None));
        pending.ingested = std::mem::take(&mut *request.ingested.lock());
        let may_be_named = match &answer {
            Ok(sequence) => sequence.is_some(),
            // The manifest may name the tables nevertheless.
            Err(_) => self.store.installer.versions.background_error().is_some(),
        };
        if may_be_named {
            // The files of tables that were cut stay in the list, and are removed.
            let installed: BTreeSet<u64> = pending.summaries.iter().map(|summary| summary.number).collect();
            pending.names.retain(|name| name.number().is_none_or(|number| !installed.contains(&number)));
        }
        answer
    }

    /// Answers all requests of a group: those that can be installed are, by one edit.
    fn install_group(&self, state: Option<&mut LogState>, group: &[Arc<Request>]) {
        let Some(state) = state else {
            group.iter().for_each(|request| request.answer(Err(self.store.context.read_only_error())));
            return;
        };
        let (mut ready, mut pauses) = (Vec::new(), BTreeMap::new());
        for request in group {
            match self.is_ready(request, &mut pauses) {
                Ok(true) => ready.push(request),
                Ok(false) => request.answer(Ok(None)),
                Err(error) => request.answer(Err(error)),
            }
        }
        if ready.is_empty() {
            return;
        }
        let first = state.last_sequence + 1;
        let installed = self.install(state, &ready);
        for (request, sequence) in ready.into_iter().zip(first..) {
            request.answer(installed.clone().map(|()| Some(sequence)));
        }
    }

    /// Whether no entry of the keyspace is in memory and each table is within one partition. While `pauses` has the keyspace, no job
    /// replaces a partition.
    fn is_ready<'r>(&self, request: &'r Request, pauses: &mut BTreeMap<u32, FlushPause<'r>>) -> Result<bool> {
        let keyspace = &*request.keyspace;
        self.store.context.check_writable()?;
        keyspace.check()?;
        let read_state = keyspace.read_state.load_full();
        if !read_state.memtable.memtable.is_empty() || !read_state.immutable.is_empty() {
            return Ok(false);
        }
        if let Entry::Vacant(place) = pauses.entry(keyspace.id) {
            let Some(pause) = FlushPause::begin(keyspace) else { return Ok(false) };
            place.insert(pause);
        }
        // Partitions may have changed after the tables were cut.
        let version = &keyspace.read_state.load().version;
        Ok(!request.summaries.iter().any(|summary| cut::crosses(version, summary)))
    }

    /// Installs the tables of these requests, each with the next sequence number.
    fn install(&self, state: &mut LogState, ready: &[&Arc<Request>]) -> Result<()> {
        let synced = state.log.persist(Durability::Synced);
        synced.inspect_err(|error| self.store.log.propagate_background_error(state, error))?;
        let (mut edit, mut sequence, first) =
            (VersionEdit::default(), state.last_sequence, state.last_sequence + 1);
        for request in ready {
            sequence += 1;
            observe(request, sequence, false);
            add_tables(&mut edit, &request.keyspace.read_state.load().version, &request.summaries, sequence);
        }
        edit.push(Change::AdvanceCounters(Counters { last_sequence: sequence, ..Counters::default() }));
        self.store.installer.install(edit)?;
        let events: Vec<LoggedEvent> = ready.iter().map(|request| self.event_of(request)).collect();
        self.store.log.log_events(state, &events);
        debug_assert_eq!(state.last_sequence, sequence, "each request has one number");
        if !sim_fault!("ingest-below-recorded-ranges") {
            ready.iter().for_each(|request| request.keyspace.empty_ranges.clear());
        }
        ready.iter().zip(first..).for_each(|(request, sequence)| observe(request, sequence, true));
        self.store.snapshots.publish(sequence);
        // A pick before the entries were visible took them for entries that a reader needs.
        ready.iter().for_each(|request| request.keyspace.mark(Changed::Version));
        Ok(())
    }

    /// The event of a request, with numbers for second names of its tables.
    fn event_of(&self, request: &Request) -> LoggedEvent {
        let with_number = |summary: &TableSummary| IngestedTable {
            table: summary.number,
            copy: self.store.versions.new_file_number(),
        };
        let tables: Vec<_> = request.summaries.iter().map(with_number).collect();
        request.ingested.lock().clone_from(&tables);
        LoggedEvent::Ingested { keyspace: request.keyspace.id, tables }
    }

    /// Gives the tables second names, if the change feed may need them longer than the store. Without the name, the feed can't read a table
    /// that a compaction has replaced, and says so.
    fn keep_for_changes(&self, tables: &[IngestedTable]) {
        let StoreContext { folder, options, .. } = &*self.store.context;
        let Ok(_job) = self.store.context.begin_job() else { return };
        for table in tables.iter().filter(|_| options.keep_changes.bytes > 0) {
            let (path, copy) = table.paths(folder);
            let _ = link_or_copy(&**folder, &path, &copy);
        }
    }

    /// Step 4. The entries are visible: a file that can't be removed is no error, but is reported.
    fn remove_sources(&self, pending: &PendingTables<'_>, report: &mut IngestReport) {
        let folder = &self.store.context.folder;
        // The store may have been closed since.
        let job = self.store.context.begin_job();
        let removed = |path: &Path| job.is_ok() && folder.remove(path).is_ok();
        let kept = pending.sources.iter().map(|(path, ..)| path).filter(|path| !removed(path)).cloned();
        report.kept = kept.collect();
        let folders: BTreeSet<&Path> = pending.sources.iter().map(|(path, ..)| folder_of(path)).collect();
        for parent in folders {
            // After a power failure a name may be there again if this fails.
            let _ = folder.sync_dir(parent);
        }
        for (source, name, placed) in &pending.sources {
            let path = name.path(folder);
            if *placed != Placed::Linked || pending.names.contains(name) {
                continue;
            }
            match folder.is_only_name(&path) {
                Ok(true) => {}
                // A compaction has replaced it since.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                _ if job.is_ok() && self.replace_by_copy(&path).is_ok() => {}
                _ => report.linked.push(source.clone()),
            }
        }
    }

    /// Replaces a file of the store by a copy, to which no other name leads.
    fn replace_by_copy(&self, path: &Path) -> Result<()> {
        let folder = &self.store.context.folder;
        let temporary = FileName::Temporary(self.store.installer.versions.new_file_number()).path(folder);
        copy(&**folder, path, &temporary)?;
        folder.rename(&temporary, path).map_err(|error| Error::io("rename", &temporary, error))?;
        folder.sync().map_err(|error| Error::io("sync", folder.path(), error))
    }
}

/// Reports an ingest to a simulation: before its edit is written, and when it is installed.
#[cfg(feature = "simulation")]
fn observe(request: &Request, sequence: Sequence, is_installed: bool) {
    let smallest_key = request.summaries.first().map_or(&[][..], |summary| &summary.smallest_key);
    crate::sync::hooks::ingested((request.keyspace.id, smallest_key), sequence, is_installed);
}

#[cfg(not(feature = "simulation"))]
const fn observe(_request: &Request, _sequence: Sequence, _is_installed: bool) {}

/// Adds the tables of an ingest to an edit.
fn add_tables(
    edit: &mut VersionEdit,
    version: &KeyspaceVersion,
    summaries: &[TableSummary],
    sequence: Sequence,
) {
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

/// Refuses a file of the store: it would be removed.
fn check_is_outside(folder: &Folder, path: &Path) -> Result<()> {
    let parent = folder_of(path);
    let is_inside = folder.is_within(parent, folder.path()).and_then(|is_within| {
        // In a folder below, such as that of files in quarantine, are no files of the store.
        Ok(is_within && folder.is_within(folder.path(), parent)?)
    });
    match is_inside {
        Ok(false) => Ok(()),
        Ok(true) => Err(Error::InvalidArgument {
            what: "table",
            got: format!("{}, which is in the folder of the store", path.display()),
            expected: "ingest files from other folders".to_owned(),
        }),
        Err(error) => Err(Error::io("look for", parent, error)),
    }
}

/// Another program may have written the file without a sync.
fn sync_file(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    let file = vfs.open(path, Access::Buffered).map_err(|error| Error::io("open", path, error))?;
    file.sync().map_err(|error| Error::io("sync", path, error))
}

#[cfg(test)]
mod tests;
