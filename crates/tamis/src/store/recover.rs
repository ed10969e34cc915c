//! Recovery: opens the manifest and the log of a folder and makes the state from which a store is opened.
//!
//! 1. Open the folder and lock it, so that no second process or handle uses it. All files are used through the open folder.
//! 2. List it once and inspect it: a store, an empty folder, or something else. All later steps use this list, because a list takes a
//!    system call for each file, and a store may have many.
//! 3. Read the manifest: the current tables, and up to which sequence number all entries of each partition are in tables, or in the log
//!    under a greater number.
//! 4. Read the log, and replay it into memtables as long as their bounds allow (`recover/replay.rs`). Records up to these numbers and
//!    entries of dropped keyspaces are skipped.
//! 5. Begin a new manifest, quarantine tables that a lost edit may have named (`orphans.rs`), delete files that interrupted jobs
//!    left, and begin a new log segment. Obsolete segments are deleted last, after the new segment is synced.
//! 6. Replay the rest of the log, and flush full memtables meanwhile ([`UnreplayedLog::replay`]).
//!
//! Steps 1 to 4 write nothing: a damaged store that is refused stays as it was.
//!
//! The workers flush the replayed memtables later, unless the log has many segments (`BackgroundJobs::bound_replayed_log`). The time
//! to open grows with the log, not with the data.

mod replay;

use std::{io::ErrorKind, path::Path, sync::Arc};

use tamis_vfs::{DirEntry, Folder, Lock, LockMode, Vfs};

pub(crate) use self::replay::{LogReplay, UnreplayedLog};
use crate::{
    admin::quarantine,
    cache::table::TableCache,
    error::{Error, Result},
    file_name::FileName,
    observe::{events::Event, metrics::Metrics, sample_file},
    options::{DEFAULT_KEYSPACE, Durability, OpenMode, Options},
    store::{
        commit_log::LogState,
        keyspace_state::{KeyspaceResources, KeyspaceState, Keyspaces},
        memory_budget::MemoryBudget,
        open_report::{OpenReport, WalTruncation},
        orphans::{self, LogSpan},
        readers::{READERS, Registration},
        runtime::{Clock, Runtime},
    },
    version::{
        folder::{self, FolderKind},
        set::{Mode, VersionSet},
    },
    wal::{
        reader::{LogFiles, ReplayReport},
        writer::{DEFERRED_BYTES_MAX, Log, LogSetup, SegmentEnd},
    },
    write::keyspace_admin::new_keyspace,
};

/// The state of a store after recovery.
pub(crate) struct Recovered {
    pub(crate) versions: Arc<VersionSet>,
    pub(crate) keyspaces: Keyspaces,
    /// Memory of the memtables.
    pub(crate) resources: Arc<KeyspaceResources>,
    /// `None` if the store is opened read-only.
    pub(crate) log: Option<LogState>,
    /// The segments of the log that were replayed.
    pub(crate) segments: Vec<SegmentEnd>,
    pub(crate) last_sequence: u64,
    pub(crate) report: OpenReport,
    /// The rest of the log, if the memtables are full.
    pub(crate) unreplayed: Option<UnreplayedLog>,
}

/// Recovers the store in a folder, or creates one there.
pub(crate) fn recover(
    folder: &Folder,
    options: &Options,
    runtime: &Runtime,
    budget: &Arc<MemoryBudget>,
) -> Result<Recovered> {
    let (entries, kind) = inspect_folder(folder, options)?;
    let mut report = OpenReport { is_new: kind == FolderKind::Vacant, ..OpenReport::default() };
    let (versions, torn) = match kind {
        FolderKind::Vacant => (create(folder, &entries, runtime)?, None),
        FolderKind::Database if options.is_reader() => VersionSet::open(folder, &entries, Mode::Reader)?,
        FolderKind::Database => VersionSet::open(folder, &entries, Mode::ReadOnly)?,
    };
    report.manifest_truncated_bytes = torn.map_or(0, |torn| torn.bytes);
    for keyspace in versions.catalog().keyspaces.values() {
        keyspace.options.check_compression(&format!("keyspace {:?}", keyspace.name))?;
    }
    // After a crash during its creation a store may have no default keyspace.
    if !options.is_reader() && versions.catalog().keyspace_named(DEFAULT_KEYSPACE).is_none() {
        versions.begin_writing()?;
        let edit = new_keyspace(&versions, DEFAULT_KEYSPACE, &options.default_keyspace, 0);
        versions.apply(edit, |_| {})?;
    }
    if let Some(default) = versions.catalog().keyspace_named(DEFAULT_KEYSPACE) {
        options.default_keyspace.check_stored(DEFAULT_KEYSPACE, &default.options)?;
    }
    versions.resolve_operators(&options.operators())?;
    let versions = Arc::new(versions);
    let resources = KeyspaceResources::new(budget, options.sample_queries);
    let keyspaces: Keyspaces = versions
        .catalog()
        .keyspaces
        .values()
        .map(|version| KeyspaceState::new(Arc::clone(version), &resources))
        .map(|keyspace| (keyspace.id, keyspace))
        .collect();
    if entries.iter().any(|entry| FileName::parse(&entry.name) == Some(FileName::Samples)) {
        let listener = options.listener.as_ref();
        if !options.sample_file && !options.is_reader() {
            sample_file::remove(folder, listener);
        } else if options.sample_queries {
            sample_file::load(folder, versions.database().0, &keyspaces, listener);
        }
    }
    let recovery = Recovery {
        folder,
        entries: &entries,
        versions: &versions,
        keyspaces: &keyspaces,
        clock: &runtime.clock,
    };
    let (replayed, unreplayed) = recovery.replay(options, &mut report)?;
    let last_sequence = replayed.last_sequence.max(versions.catalog().counters.last_sequence);
    let log = recovery.begin_log(options, &replayed, last_sequence, &mut report)?;
    report_truncations(options, &report);
    let segments = replayed.segments;
    Ok(Recovered { versions, keyspaces, resources, log, segments, last_sequence, report, unreplayed })
}

fn report_truncations(options: &Options, report: &OpenReport) {
    for found in &report.wal_truncations {
        let WalTruncation { file, offset, bytes } = found.clone();
        if let Some(listener) = &options.listener {
            listener.on_event(&Event::WalTruncated { file, offset, bytes });
        }
    }
}

/// The means by which no other process takes the files of a store away.
#[derive(Debug)]
pub(crate) enum Claim {
    /// The program makes sure of it ([`Options::lock`]).
    Program,
    /// No other process has the store open; if it is open read-only, only such ones.
    Lock(#[expect(dead_code, reason = "held until the store is closed")] Box<dyn Lock>),
    /// The process that has the store open keeps the files of this one.
    Reader(Registration),
}

/// Opens the folder of a store, and locks it, or registers a reader. A missing folder is created if the options allow it.
///
/// # Errors
/// [`Error::NotADatabase`], [`Error::Locked`], [`Error::ReaderRefused`], [`Error::LockUnsupported`], [`Error::Io`].
pub(crate) fn open_folder(vfs: &dyn Vfs, path: &Path, options: &Options) -> Result<(Folder, Claim)> {
    let may_create = options.mode == OpenMode::CreateIfMissing;
    let opened = match Folder::open(vfs, path) {
        Err(error) if error.kind() == ErrorKind::NotFound && may_create => {
            vfs.create_dir_all(path).map_err(|error| Error::io("create", path, error))?;
            Folder::open(vfs, path)
        }
        opened => opened,
    };
    let refuse = |found: &str| Error::NotADatabase { path: path.to_path_buf(), found: found.to_owned() };
    let folder = opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => refuse("it is missing"),
        ErrorKind::NotADirectory => refuse("it is a file"),
        _ => Error::io("open", path, error),
    })?;
    let claim = match options {
        Options { lock: false, .. } => Claim::Program,
        Options { mode: OpenMode::Reader, .. } => claim_as_reader(&folder)?,
        _ => Claim::Lock(lock(&folder, LockMode::Exclusive)?),
    };
    Ok((folder, claim))
}

/// Registers a reader. One that may not create files locks the folder instead, as does one of a folder without a store, in which nothing is created: no
/// writer can open it then.
fn claim_as_reader(folder: &Folder) -> Result<Claim> {
    let current = FileName::Current.path(folder);
    if !folder.exists(&current).map_err(|error| Error::io("look for", &current, error))? {
        return lock(folder, LockMode::Shared).map(Claim::Lock);
    }
    match Registration::create(folder) {
        Ok(registration) => Ok(Claim::Reader(registration)),
        Err(Error::Io { source, .. }) if is_refused(&source) => match lock(folder, LockMode::Shared) {
            Err(Error::Locked { .. }) => Err(Error::ReaderRefused { path: folder.path().join(READERS) }),
            locked => locked.map(Claim::Lock),
        },
        Err(error) => Err(error),
    }
}

/// Locks the folder of a store.
///
/// # Errors
/// [`Error::Locked`], [`Error::LockUnsupported`], [`Error::Io`].
pub(crate) fn lock(folder: &Folder, mode: LockMode) -> Result<Box<dyn Lock>> {
    let path = folder.path();
    folder.lock(path, mode).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => Error::Locked { path: path.to_path_buf(), holders: error.to_string() },
        ErrorKind::Unsupported => {
            Error::LockUnsupported { path: path.to_path_buf(), source: Arc::new(error) }
        }
        _ => Error::io("lock", path, error),
    })
}

/// Whether this process may not write there.
fn is_refused(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// Names the folder as the cause if no file can be created in it.
pub(crate) fn refuse_unwritable(error: Error, folder: &Folder) -> Error {
    match &error {
        Error::Io { operation: "create", source, .. } if is_refused(source) => {
            Error::NotWritable { path: folder.path().to_path_buf() }
        }
        _ => error,
    }
}

/// The entries of the folder, and what they are.
///
/// # Errors
/// [`Error::NotADatabase`] also for an empty folder in which no store may be created.
pub(crate) fn inspect_folder(folder: &Folder, options: &Options) -> Result<(Vec<DirEntry>, FolderKind)> {
    let entries = folder::list(folder)?;
    let kind = folder::inspect(&entries, folder.path())?;
    if kind == FolderKind::Vacant && options.mode != OpenMode::CreateIfMissing {
        let found = "it is empty".to_owned();
        return Err(Error::NotADatabase { path: folder.path().to_path_buf(), found });
    }
    Ok((entries, kind))
}

/// Creates a store without keyspaces.
fn create(folder: &Folder, entries: &[DirEntry], runtime: &Runtime) -> Result<VersionSet> {
    let id = crate::coding::checksum(runtime.seed, b"database id");
    VersionSet::create(folder, entries, (id, runtime.seed))
}

/// Steps 4 and 5.
struct Recovery<'a> {
    folder: &'a Folder,
    /// Of the folder when the lock was taken, without the files that this open creates.
    entries: &'a [DirEntry],
    versions: &'a Arc<VersionSet>,
    keyspaces: &'a Keyspaces,
    clock: &'a Arc<dyn Clock>,
}

impl Recovery<'_> {
    fn replay(
        &self,
        options: &Options,
        report: &mut OpenReport,
    ) -> Result<(ReplayReport, Option<UnreplayedLog>)> {
        let known = self.versions.catalog().known_log();
        let files = match options.is_reader() {
            true => LogFiles::of_live_log(self.folder, known.clone())?,
            false => LogFiles::among(self.entries, self.folder, known.clone()),
        };
        let replay = LogReplay::new(self.keyspaces, (!options.is_reader()).then_some(options.log_bytes_max));
        let (found, inserted, unreplayed) = replay.read(&files, self.folder, known)?;
        report.log_bytes = found.segments.iter().map(|segment| segment.bytes).sum();
        report.replayed_records = found.records;
        report.replayed_entries = inserted;
        report.wal_truncations = found.truncations.clone();
        Ok((found, unreplayed))
    }

    /// Quarantines the tables that the manifest does not name but that may hold the only copy of some entries.
    fn quarantine_orphans(&self, log: LogSpan, options: &Options, report: &mut OpenReport) -> Result<()> {
        let tables = TableCache::new(self.folder, options, &Arc::new(Metrics::default()));
        let found = orphans::find(&tables, self.entries, &self.versions.catalog(), log);
        let names: Vec<FileName> = found.into_iter().map(|(name, _)| name).collect();
        orphans::quarantine_files(self.folder, &names)?;
        report.quarantined_files = names.iter().map(|name| name.name()).collect();
        Ok(())
    }

    /// The segments that no memtable needs, which an earlier open has kept for the change feed.
    fn segments_of_feed(&self) -> Vec<SegmentEnd> {
        let first_needed = self.versions.catalog().counters.oldest_log;
        let of_entry = |entry: &DirEntry| match FileName::parse(&entry.name) {
            Some(FileName::Log(number)) if number < first_needed => {
                Some(SegmentEnd { number, bytes: entry.length, synced: 0 })
            }
            _ => None,
        };
        let mut segments: Vec<SegmentEnd> = self.entries.iter().filter_map(of_entry).collect();
        segments.sort_unstable_by_key(|end| end.number);
        segments
    }

    fn begin_log(
        &self,
        options: &Options,
        replayed: &ReplayReport,
        last_sequence: u64,
        report: &mut OpenReport,
    ) -> Result<Option<LogState>> {
        if options.is_reader() {
            return Ok(None);
        }
        self.versions.begin_writing()?;
        self.quarantine_orphans(LogSpan::of(replayed), options, report)?;
        let kept = if options.keep_changes.bytes > 0 { self.segments_of_feed() } else { Vec::new() };
        let mut in_use = report.quarantined_files.clone();
        in_use.extend(kept.iter().map(|end| FileName::Log(end.number).name()));
        let oldest = kept.first().or(replayed.segments.first()).map_or(u64::MAX, |end| end.number);
        let is_read =
            |name: &String| matches!(FileName::parse(name), Some(FileName::Ingested(copy)) if copy > oldest);
        let names = self.entries.iter().map(|entry| entry.name.clone());
        in_use.extend(names.filter(is_read).filter(|_| options.keep_changes.bytes > 0));
        let leftovers = self.versions.sweep_orphans(self.entries, &in_use)?;
        report.removed_file_count = leftovers.orphans.len() + leftovers.obsolete.len();
        report.foreign_files = leftovers.foreign;
        let quarantine = quarantine::QUARANTINE.to_owned();
        if !report.quarantined_files.is_empty() && !report.foreign_files.contains(&quarantine) {
            report.foreign_files.push(quarantine);
        }
        let versions = Arc::clone(self.versions);
        let setup = LogSetup {
            folder: self.folder.clone(),
            database_id: self.versions.database().0,
            deferred_bytes_max: DEFERRED_BYTES_MAX,
            keep_changes: options.keep_changes,
            next_number: Box::new(move || versions.new_file_number()),
            clock: Arc::clone(self.clock),
        };
        let mut log = Log::create(setup, &kept, &replayed.segments)?;
        let first_needed = self.versions.catalog().counters.oldest_log;
        if replayed.obsolete.iter().any(|&number| number >= first_needed) {
            // The new segment's header says that these segments are obsolete: it must be durable before the first is removed.
            log.persist(Durability::Synced)?;
        }
        let is_kept = |number: u64| kept.iter().any(|end| end.number == number);
        for &number in replayed.obsolete.iter().filter(|number| !is_kept(**number)) {
            let path = FileName::Log(number).path(self.folder);
            match self.folder.remove(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io("remove", &path, error));
                }
                _ => report.removed_file_count += 1,
            }
        }
        Ok(Some(LogState { log, last_sequence }))
    }
}

#[cfg(test)]
mod tests;
