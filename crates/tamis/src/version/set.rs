//! The version set: the current catalog, its manifest, and all changes of both.
//!
//! 1. [`VersionSet::apply`] checks an edit, appends it to the manifest, syncs it, and only then installs the new catalog.
//!    Edits are applied one at a time and installed in the order of the manifest.
//! 2. After a failed append the edit did not happen and was truncated; the next edit begins another manifest. After a
//!    failed sync, or a failure while `CURRENT` is replaced, it is unknown what is on disk: every later edit is
//!    [`Error::WritesRefused`]. The files that the edit would have added may be named by the manifest after all, so they
//!    must not be removed. They may be given to the queue of obsolete files, from which nothing is deleted in this state.
//! 3. File numbers and ids are allocated here and never reused. Each edit records how far they were allocated.
//! 4. A file is deleted in three steps: an edit that does not name it is synced; its last reader drops it (`handle.rs`); it
//!    is renamed to `.obsolete`, the folder is synced, and it is removed. Files that readers of other processes need stay
//!    (`store/readers.rs`), and are tried again.
//!
//! Cost of an edit: one append and one sync; a copy of the runs, levels and partitions that it changes; a check of the invariants
//! that it can break (`invariants.rs`). Also a copy of the list of keyspaces, and of the list of partitions of each changed one: one
//! pointer and one reference count for each partition, and a few searches of that list by id (`partition_finder.rs`). For thousands of
//! partitions that takes far less than the sync.
//!
//! Cost of a replay: each edit takes a step for each of its changes and for each run of the partitions that it changes, however many
//! other partitions there are. Nothing is copied. At the end, all invariants are checked once.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use tamis_vfs::{Access, DirEntry, Folder};

use super::{
    catalog::{Applied, Catalog, Replay},
    counters::Counters,
    current::Current,
    edit::{Change, VersionEdit},
    failure::Failure,
    folder::{self, Leftovers},
    handle::{FileHandle, ObsoleteFiles},
    header::HEADER_BYTES,
    manifest::{self, ManifestPosition, ManifestWriter},
    version::KeyspaceVersion,
};
use crate::{
    error::{Error, Result},
    file_name::FileName,
    frame::TornTail,
    key::SEQUENCE_MAX,
    merge_operator::MergeOperator,
    options::KeyspaceOptions,
    store::{readers::RegisteredReaders, store_folder},
    sync::{Mutex, sim_fault},
};

/// Changes per record of a new manifest.
const SNAPSHOT_CHANGES_MAX: usize = 1000;

/// No file number or id comes near this.
const NUMBER_MAX: u64 = 1 << 62;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct VersionSet {
    folder: Folder,
    obsolete_files: Arc<ObsoleteFiles>,
    /// Files to be deleted that could not be removed yet.
    pending_unlinks: Mutex<Vec<PathBuf>>,
    /// Obsolete files that readers of other processes need.
    kept_for_readers: Mutex<Vec<FileName>>,
    next_file_number: AtomicU64,
    next_keyspace_id: AtomicU64,
    next_partition_id: AtomicU64,
    catalog: ArcSwap<Catalog>,
    log: Mutex<Log>,
}

/// The current manifest and whether it can be written.
#[derive(Debug)]
enum Log {
    Writable(ManifestWriter),
    /// No edit may follow in the manifest with this number: another one is begun first.
    Ended(u64),
    /// It was read up to this position.
    ReadOnly(ManifestPosition),
    /// The failure since which it is unknown what is on disk.
    Failed(Arc<str>),
}

/// How a database is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Begins another manifest.
    ReadWrite,
    /// Writes no file.
    ReadOnly,
    /// Writes no file, and another process may be writing: the folder is listed again, after the manifest was read.
    Reader,
}

impl VersionSet {
    /// Creates a database without keyspaces in an existing folder with these entries, of which none is a database's data.
    ///
    /// # Errors
    /// The system's. There is no database then.
    pub(crate) fn create(folder: &Folder, entries: &[DirEntry], (id, seed): (u64, u64)) -> Result<Self> {
        let number = folder::number_above(entries);
        check_numbers(&Counters { next_file_number: number, ..Counters::default() }, folder.path())?;
        let counters = Counters {
            next_file_number: number + 1,
            next_keyspace_id: 1,
            next_partition_id: 1,
            next_run_id: 1,
            ..Counters::default()
        };
        let catalog = Catalog { database: Some((id, seed)), counters, ..Catalog::default() };
        let edits = catalog.snapshot(SNAPSHOT_CHANGES_MAX);
        let writer = ManifestWriter::create(folder, number, &edits).map_err(|failure| failure.error)?;
        Ok(Self::new(folder, catalog, Log::Writable(writer), Arc::default()))
    }

    /// Opens the database of a folder: reads its manifest, checks that its tables are among the folder's `entries`, and begins
    /// another manifest unless it is opened read-only. Also returns the torn tail of the manifest that was left out.
    ///
    /// # Errors
    /// [`Error::MissingFile`], [`Error::Corruption`], [`Error::UnknownFormat`], or the system's.
    pub(crate) fn open(
        folder: &Folder,
        entries: &[DirEntry],
        mode: Mode,
    ) -> Result<(Self, Option<TornTail>)> {
        let obsolete_files = Arc::default();
        let current = Current::read(folder)?;
        let contents = manifest::read(folder, current)?;
        let position = contents.position(current);
        let mut catalog = replay(&contents, &obsolete_files)?;
        let listed = if mode == Mode::Reader { Some(folder::list(folder)?) } else { None };
        let entries = listed.as_deref().unwrap_or(entries);
        folder::check_tables(entries, folder.path(), &catalog, &contents.path)?;
        catalog.counters = catalog.counters.max(minimum_counters(&catalog, folder::number_above(entries)));
        check_numbers(&catalog.counters, &contents.path)?;
        let set = Self::new(folder, catalog, Log::ReadOnly(position), obsolete_files);
        if mode == Mode::ReadWrite {
            set.begin_writing()?;
        }
        Ok((set, contents.torn))
    }

    /// Gives the keyspaces the merge operators of their names.
    ///
    /// # Errors
    /// [`Error::MergeOperatorMissing`].
    pub(crate) fn resolve_operators(&self, given: &[MergeOperator]) -> Result<()> {
        let _log = self.log.lock();
        let mut catalog = Catalog::clone(&self.catalog.load());
        resolve_operators(&mut catalog, given)?;
        self.catalog.store(Arc::new(catalog));
        Ok(())
    }

    /// Up to where a store that was opened read-only has read the manifest.
    pub(crate) fn position(&self) -> Option<ManifestPosition> {
        match &*self.log.lock() {
            Log::ReadOnly(position) => Some(*position),
            _ => None,
        }
    }

    /// Installs the catalog that a reader has read from its writer's manifest.
    pub(crate) fn follow(
        &self,
        catalog: Arc<Catalog>,
        position: ManifestPosition,
        obsolete: &[Arc<FileHandle>],
    ) {
        *self.log.lock() = Log::ReadOnly(position);
        self.catalog.store(catalog);
        obsolete.iter().for_each(|file| file.mark_obsolete());
    }

    /// Begins another manifest for a database that was opened read-only: from then on edits can be applied.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn begin_writing(&self) -> Result<()> {
        let mut log = self.log.lock();
        if matches!(*log, Log::ReadOnly(_)) {
            let writer = self.begin_manifest().map_err(|failure| failure.error)?;
            *log = Log::Writable(writer);
        }
        Ok(())
    }

    /// Creates a manifest that begins with the current catalog, and makes it current.
    fn begin_manifest(&self) -> Result<ManifestWriter, Failure> {
        let number = self.new_file_number();
        let mut catalog = Catalog::clone(&self.catalog.load());
        catalog.counters = catalog.counters.max(self.allocated_numbers());
        let edits = catalog.snapshot(SNAPSHOT_CHANGES_MAX);
        ManifestWriter::create(&self.folder, number, &edits)
    }

    /// Reads `CURRENT` and the manifest that it names, and replays all edits, without changing anything. Returns the
    /// manifest's length.
    ///
    /// # Errors
    /// As [`VersionSet::open`].
    pub(crate) fn check(&self) -> Result<u64> {
        // No other manifest may begin meanwhile.
        let _log = self.log.lock();
        let folder = &self.folder;
        let current = Current::read(folder)?;
        let contents = manifest::read(folder, current)?;
        let path = contents.path.clone();
        replay(&contents, &Arc::default())?;
        let file = folder.open(&path, Access::Buffered).map_err(|error| Error::io("open", &path, error))?;
        file.length().map_err(|error| Error::io("measure", &path, error))
    }

    /// Writes a catalog into another folder, as manifest `number` and `CURRENT`. Returns the bytes written.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn write_copy(&self, mut catalog: Catalog, folder: &Folder, number: u64) -> Result<u64> {
        catalog.counters = catalog.counters.max(self.allocated_numbers());
        write_catalog(&catalog, folder, number)
    }

    fn new(folder: &Folder, catalog: Catalog, log: Log, obsolete_files: Arc<ObsoleteFiles>) -> Self {
        let counters = catalog.counters;
        Self {
            folder: folder.clone(),
            obsolete_files,
            pending_unlinks: Mutex::default(),
            kept_for_readers: Mutex::default(),
            next_file_number: AtomicU64::new(counters.next_file_number),
            next_keyspace_id: AtomicU64::new(counters.next_keyspace_id),
            next_partition_id: AtomicU64::new(counters.next_partition_id),
            catalog: ArcSwap::from_pointee(catalog),
            log: Mutex::new(log),
        }
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.catalog.load_full()
    }

    pub(crate) const fn obsolete_files(&self) -> &Arc<ObsoleteFiles> {
        &self.obsolete_files
    }

    /// Id and seed of the database.
    pub(crate) fn database(&self) -> (u64, u64) {
        self.catalog.load().database.unwrap_or_default()
    }

    /// A file number that was never used.
    pub(crate) fn new_file_number(&self) -> u64 {
        self.next_file_number.fetch_add(1, Ordering::Relaxed)
    }

    /// A keyspace id that was never used.
    pub(crate) fn new_keyspace_id(&self) -> u64 {
        self.next_keyspace_id.fetch_add(1, Ordering::Relaxed)
    }

    /// A partition id that was never used.
    pub(crate) fn new_partition_id(&self) -> u64 {
        self.next_partition_id.fetch_add(1, Ordering::Relaxed)
    }

    /// The first fatal failure. Edits are refused since then.
    pub(crate) fn background_error(&self) -> Option<Error> {
        match &*self.log.lock() {
            Log::Failed(cause) => Some(Error::WritesRefused { cause: Arc::clone(cause) }),
            _ => None,
        }
    }

    /// Makes an edit durable and installs the new catalog. `install` is called with the new versions while no other edit
    /// can be applied; it must not call `apply`. A reader that has an older version keeps that version's files.
    ///
    /// # Errors
    /// [`Error::KeyspaceDropped`] for an edit of a dropped keyspace; an I/O error after which the edit does not count for
    /// this handle (rule 2 at the head of this file); [`Error::WritesRefused`] after an earlier fatal failure;
    /// [`Error::ReadOnly`].
    pub(crate) fn apply(
        &self,
        mut edit: VersionEdit,
        install: impl FnOnce(&[Arc<KeyspaceVersion>]),
    ) -> Result<Arc<Catalog>> {
        let mut log = self.log.lock();
        self.check_writable(&log)?;
        edit.push(Change::AdvanceCounters(self.allocated_numbers()));
        let applied = self.apply_checked(&mut edit)?;
        self.make_durable(&mut log, &edit)?;
        let Applied { catalog, changed, obsolete, .. } = applied;
        let catalog = Arc::new(catalog);
        let versions: Vec<_> =
            changed.iter().filter_map(|id| catalog.keyspaces.get(id)).map(Arc::clone).collect();
        self.catalog.store(Arc::clone(&catalog));
        install(&versions);
        for file in obsolete {
            file.mark_obsolete();
        }
        Ok(catalog)
    }

    fn check_writable(&self, log: &Log) -> Result<()> {
        match log {
            Log::Writable(_) | Log::Ended(_) => Ok(()),
            Log::ReadOnly(_) => Err(Error::ReadOnly { path: self.folder.path().to_path_buf() }),
            Log::Failed(cause) => Err(Error::WritesRefused { cause: Arc::clone(cause) }),
        }
    }

    fn allocated_numbers(&self) -> Counters {
        Counters {
            next_file_number: self.next_file_number.load(Ordering::Relaxed),
            next_keyspace_id: self.next_keyspace_id.load(Ordering::Relaxed),
            next_partition_id: self.next_partition_id.load(Ordering::Relaxed),
            ..Counters::default()
        }
    }

    /// The catalog after `edit`, with its invariants checked. Adds the ids of the runs that it changes to the edit.
    fn apply_checked(&self, edit: &mut VersionEdit) -> Result<Applied> {
        let catalog = self.catalog.load();
        if edit.keyspaces().any(|id| !catalog.keyspaces.contains_key(&id)) {
            return Err(Error::KeyspaceDropped);
        }
        let refuse = |reason: String| Error::InvalidArgument {
            what: "version edit",
            got: reason,
            expected: "an edit that fits the current version (this is a bug of the program)".to_owned(),
        };
        let mut applied = catalog.apply(edit, &self.obsolete_files).map_err(refuse)?;
        edit.changes.append(&mut applied.run_ids);
        match applied.check_invariants() {
            Some(rule) => Err(refuse(rule)),
            None => Ok(applied),
        }
    }

    fn make_durable(&self, log: &mut Log, edit: &VersionEdit) -> Result<()> {
        store_folder::check(&self.folder)?;
        self.rotate_manifest_if_needed(log)?;
        let Log::Writable(writer) = log else {
            unreachable!("the log was writable, and an ended manifest was just replaced");
        };
        let number = writer.number();
        match writer.append(&self.folder, edit) {
            Ok(true) => Ok(()),
            Ok(false) => {
                *log = Log::Ended(number);
                Ok(())
            }
            Err(failure) => Err(mark_failed(log, number, failure)),
        }
    }

    /// Begins another manifest if this one has ended or grown long.
    fn rotate_manifest_if_needed(&self, log: &mut Log) -> Result<()> {
        let (old, is_ended) = match log {
            Log::Ended(number) => (*number, true),
            Log::Writable(writer) if is_long(writer) => (writer.number(), false),
            _ => return Ok(()),
        };
        match self.begin_manifest() {
            Ok(writer) => {
                *log = Log::Writable(writer);
                self.obsolete_files.extend([FileName::Manifest(old)]);
                Ok(())
            }
            // The old one is valid and current: it can grow a little more.
            Err(failure) if !failure.is_fatal && !is_ended => Ok(()),
            Err(failure) => Err(mark_failed(log, old, failure)),
        }
    }

    /// Whether readers have left obsolete files since the last deletion. No one is notified of them. Cost: one load.
    #[inline]
    pub(crate) fn has_new_obsolete_files(&self) -> bool {
        !self.obsolete_files.is_empty()
    }

    /// Whether there are files to delete.
    pub(crate) fn has_obsolete_files(&self) -> bool {
        !self.obsolete_files.is_empty()
            || !self.pending_unlinks.lock().is_empty()
            || self.keeps_files_for_readers()
    }

    /// Whether obsolete files stay because readers of other processes need them.
    pub(crate) fn keeps_files_for_readers(&self) -> bool {
        !self.kept_for_readers.lock().is_empty()
    }

    /// Deletes files that no version names and no reader uses. Returns the names of those that were deleted. Deletes nothing
    /// while it is unknown what the manifest ends with (rule 2): a failed edit may be in it after all and name them.
    ///
    /// # Errors
    /// The system's. Files that are left are deleted by a later call or at the next open.
    pub(crate) fn delete_obsolete_files(&self) -> Result<Vec<FileName>> {
        if !self.has_obsolete_files() {
            return Ok(Vec::new());
        }
        let mut log = self.log.lock();
        self.rotate_manifest_if_needed(&mut log)?;
        if !matches!(*log, Log::Writable(_)) {
            return Ok(Vec::new());
        }
        let mut names = self.obsolete_files.take();
        drop(log);
        names.append(&mut self.kept_for_readers.lock());
        let names = self.keep_for_readers(names)?;
        self.delete(&names, &[])?;
        Ok(names)
    }

    /// Keeps those of these files that readers of other processes need, and returns the rest. No manifest names them.
    fn keep_for_readers(&self, names: Vec<FileName>) -> Result<Vec<FileName>> {
        if names.is_empty() {
            return Ok(names);
        }
        let readers = RegisteredReaders::find(&self.folder)
            .inspect_err(|_| self.kept_for_readers.lock().extend(&names))?;
        if readers.is_empty() {
            return Ok(names);
        }
        let (kept, unused) = names.into_iter().partition(|name| readers.need(*name));
        self.kept_for_readers.lock().extend::<Vec<FileName>>(kept);
        Ok(unused)
    }

    /// Deletes what interrupted work left in the folder, of the `entries` that it had when it was opened, without those that were `moved`
    /// since. Returns what it found. To be called once at open, after the log was replayed and before new tables are created.
    ///
    /// # Errors
    /// The system's. Files that are left are deleted at the next open.
    pub(crate) fn sweep_orphans(&self, entries: &[DirEntry], moved: &[String]) -> Result<Leftovers> {
        let manifest = match &*self.log.lock() {
            Log::Writable(writer) => writer.number(),
            Log::Ended(number) => *number,
            Log::ReadOnly(_) | Log::Failed(_) => return Ok(Leftovers::default()),
        };
        let mut found = folder::leftovers(entries, &self.catalog.load(), manifest);
        found.orphans.retain(|orphan| !moved.contains(&orphan.name()));
        found.orphans = self.keep_for_readers(found.orphans)?;
        self.delete(&found.orphans, &found.obsolete)?;
        Ok(found)
    }

    /// Tables, filters and views are renamed first, so that a crash does not leave only some of them under a name that is
    /// in use.
    fn delete(&self, names: &[FileName], obsolete: &[String]) -> Result<()> {
        let mut doomed: Vec<PathBuf> = obsolete.iter().map(|name| self.folder.path().join(name)).collect();
        doomed.append(&mut self.pending_unlinks.lock());
        let first_new = doomed.len();
        for name in names {
            let path = name.path(&self.folder);
            if !matches!(name, FileName::Table(_) | FileName::Filter(_) | FileName::View(_)) {
                doomed.push(path);
                continue;
            }
            let target = self.folder.path().join(format!("{}.obsolete", name.name()));
            match self.folder.rename(&path, &target) {
                Ok(()) => doomed.push(target),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    self.obsolete_files.extend(names.iter().copied());
                    self.pending_unlinks.lock().append(&mut doomed);
                    return Err(Error::io("rename", &path, error));
                }
            }
        }
        if doomed.len() > first_new
            && let Err(error) = self.folder.sync()
        {
            self.pending_unlinks.lock().append(&mut doomed);
            return Err(Error::io("sync", self.folder.path(), error));
        }
        let mut result = Ok(());
        for path in doomed {
            match self.folder.remove(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    result = Err(Error::io("remove", &path, error));
                    self.pending_unlinks.lock().push(path);
                }
                _ => {}
            }
        }
        result
    }
}

/// Gives the keyspaces the merge operators of their names.
///
/// # Errors
/// [`Error::MergeOperatorMissing`].
pub(super) fn resolve_operators(catalog: &mut Catalog, given: &[MergeOperator]) -> Result<()> {
    for version in catalog.keyspaces.values_mut() {
        if let Some(operator) = &version.options.merge {
            let operator = operator.resolve(&version.name, given)?;
            let options = KeyspaceOptions::clone(&version.options).merge(Some(operator));
            Arc::make_mut(version).options = Arc::new(options);
        }
    }
    Ok(())
}

/// Writes a catalog as manifest `number` of a folder and makes it current. Returns the bytes written.
///
/// # Errors
/// The system's.
pub(crate) fn write_catalog(catalog: &Catalog, folder: &Folder, number: u64) -> Result<u64> {
    let edits = catalog.snapshot(SNAPSHOT_CHANGES_MAX);
    let written = ManifestWriter::create(folder, number, &edits);
    written.map(|writer| writer.first_bytes() + HEADER_BYTES as u64).map_err(|failure| failure.error)
}

fn is_long(writer: &ManifestWriter) -> bool {
    // A manifest is replaced when its appended edits exceed 4 MiB and four times its size at the beginning.
    writer.appended_bytes() > (4 * writer.first_bytes()).max(4 << 20)
}

fn mark_failed(log: &mut Log, number: u64, failure: Failure) -> Error {
    *log = if failure.is_fatal { Log::Failed(failure.error.to_string().into()) } else { Log::Ended(number) };
    failure.error
}

/// The catalog after all edits of a manifest.
pub(super) fn replay(
    contents: &manifest::ManifestContents,
    obsolete_files: &Arc<ObsoleteFiles>,
) -> Result<Catalog> {
    let mut replay = Replay::new(obsolete_files);
    let damage = |offset, reason: String| {
        Error::corruption(&contents.path, offset, "version edit", "an edit that fits those before it", reason)
    };
    for (offset, edit) in &contents.edits {
        replay.apply(edit).map_err(|reason| damage(*offset, reason))?;
    }
    let catalog = replay.finish();
    let last = contents.edits.last().map_or(0, |(offset, _)| *offset);
    if catalog.database.is_none() {
        return Err(damage(last, "no database id".to_owned()));
    }
    match catalog.check_invariants() {
        Some(rule) => Err(damage(last, rule)),
        None => Ok(catalog),
    }
}

/// Refuses counters so large that they could overflow.
fn check_numbers(counters: &Counters, path: &Path) -> Result<()> {
    let Counters { next_file_number, next_keyspace_id, next_partition_id, next_run_id, .. } = *counters;
    let greatest = next_file_number.max(next_keyspace_id).max(next_partition_id).max(next_run_id);
    if greatest > NUMBER_MAX || counters.last_sequence > SEQUENCE_MAX {
        let expected = format!("numbers up to {NUMBER_MAX} and sequence numbers up to {SEQUENCE_MAX}");
        return Err(Error::corruption(path, 0, "counters", expected, format!("{counters:?}")));
    }
    Ok(())
}

/// The least values of the counters that fit the files and ids of the catalog.
fn minimum_counters(catalog: &Catalog, next_file_number: u64) -> Counters {
    let versions = || catalog.keyspaces.values();
    let tables = versions().flat_map(|version| version.tables());
    let files = versions().flat_map(|version| version.files()).filter_map(|file| file.name().number());
    let partitions = || versions().flat_map(|version| version.partitions.iter());
    let runs = partitions().flat_map(|partition| partition.runs());
    // A keyspace may have been created when the log was longer than what a crash left of it. Replay would skip a sequence
    // number that is not above the flushed one.
    let flushed = partitions().map(|partition| partition.flushed_sequence);
    let flushed = flushed.filter(|_| !sim_fault!("assign-flushed-number-again"));
    let in_tables = tables.map(|table| table.summary().largest_sequence);
    Counters {
        next_file_number: files.max().unwrap_or(0).saturating_add(1).max(next_file_number),
        next_keyspace_id: catalog.keyspaces.keys().max().unwrap_or(&0).saturating_add(1),
        next_partition_id: partitions().map(|partition| partition.id).max().unwrap_or(0).saturating_add(1),
        next_run_id: runs.map(|(_, run)| run.id()).max().unwrap_or(0).saturating_add(1),
        last_sequence: in_tables.chain(flushed).max().unwrap_or(0),
        oldest_log: 0,
        greatest_time: 0,
    }
}

#[cfg(test)]
mod tests;
