//! From a folder to an open database: lock, manifest, log, and a new log segment.
//!
//! Steps:
//!
//! 1. Look at the folder: a database, a vacant folder, or something else.
//! 2. Take its lock, so that no second process or handle is there.
//! 3. Read the manifest: which tables are in force, up to which sequence number each partition has all in tables.
//! 4. Replay the log into memtables, passing over what is in tables already and over keyspaces that were dropped. A memtable that is
//!    full is sealed between two segments: each holds whole batches only.
//! 5. Begin another manifest, put tables aside that a lost edit may have named (`orphans.rs`), sweep what interrupted work left,
//!    and begin a new log segment behind what was replayed. Segments that were left out go last, once the log
//!    that goes on without them is synced.
//!    Up to here nothing was written: a damaged store that is refused stays as it is.
//!
//! Replayed memtables are flushed by the workers later: the time to open grows with the log, not with the data.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, OnceLock, atomic::AtomicBool},
};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};
use tamis_filter::Digester;
use tamis_vfs::{Lock, Vfs};

use crate::{
    cache::table::TableCache,
    compaction::scheduler::Scheduler,
    engine::{Engine, KeyspaceState, Keyspaces, LogState, ReadState},
    error::{Error, Result},
    events::Event,
    file_name::{FileName, LOCK},
    memtable::ChunkPool,
    metrics::Metrics,
    open_report::{OpenReport, WalTruncation},
    options::{DEFAULT_KEYSPACE, Durability, Options},
    orphans::{self, LogSpan},
    read::snapshot::Snapshots,
    runtime::{Clock, Runtime},
    version::{
        folder::{self, FolderKind},
        set::{Mode, VersionSet},
    },
    wal::{
        reader::{LogFiles, ReplayReport, replay},
        writer::{Log, LogSetup},
    },
    write::{GroupQueue, back_pressure::BackPressure, keyspaces::new_keyspace},
};

/// Opens or makes the database of a folder.
pub(crate) fn open(vfs: Arc<dyn Vfs>, folder: &Path, options: Options, runtime: Runtime) -> Result<Engine> {
    if look_at(&*vfs, folder, &options)? == FolderKind::Vacant {
        vfs.create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    }
    let lock = take_lock(&*vfs, folder, options.read_only)?;
    // What was seen without the lock may have changed: only now nobody else makes a database here.
    let kind = look_at(&*vfs, folder, &options)?;
    let mut report = OpenReport { is_new: kind == FolderKind::Vacant, ..OpenReport::default() };
    let (versions, torn) = match kind {
        FolderKind::Vacant => (create(&vfs, folder, &runtime)?, None),
        FolderKind::Database => VersionSet::open(Arc::clone(&vfs), folder, Mode::ReadOnly)?,
    };
    report.manifest_truncated_bytes = torn.map_or(0, |torn| torn.bytes);
    // A crash while the database was made may have left it without.
    if !options.read_only && versions.catalog().keyspace_named(DEFAULT_KEYSPACE).is_none() {
        versions.begin_writing()?;
        let edit = new_keyspace(&versions, DEFAULT_KEYSPACE, &options.default_keyspace, 0);
        versions.apply(edit, |_| {})?;
    }
    let versions = Arc::new(versions);
    let pool = ChunkPool::new();
    let keyspaces: Keyspaces = versions
        .catalog()
        .keyspaces
        .values()
        .map(|version| KeyspaceState::new(Arc::clone(version), &pool))
        .map(|state| (state.id, state))
        .collect();
    let mut recovery =
        Recovery { vfs: &vfs, folder, versions: &versions, keyspaces: &keyspaces, clock: &runtime.clock };
    let replayed = recovery.replay(&mut report)?;
    let last_sequence = replayed.last_sequence.max(versions.catalog().counters.last_sequence);
    let log = recovery.begin_log(&options, &replayed, last_sequence, &mut report)?;
    tell_cuts(&options, &report);
    let metrics = Arc::new(Metrics::default());
    let (_, seed) = versions.database();
    let snapshots = Snapshots::default();
    snapshots.publish(last_sequence);
    let tables = TableCache::new(&vfs, folder, &options, &metrics);
    Ok(Engine {
        vfs,
        folder: folder.to_path_buf(),
        options,
        runtime,
        metrics,
        snapshots,
        digester: Digester::new(seed),
        tables,
        pool,
        keyspaces: ArcSwap::from_pointee(keyspaces),
        log: Mutex::new(log),
        versions,
        group: GroupQueue::new(),
        back_pressure: BackPressure::default(),
        scheduler: Scheduler::default(),
        background_error: OnceLock::new(),
        is_closed: AtomicBool::new(false),
        jobs: RwLock::new(()),
        report,
        lock: Mutex::new(lock),
    })
}

fn tell_cuts(options: &Options, report: &OpenReport) {
    for cut in &report.wal_truncations {
        let WalTruncation { file, offset, bytes } = cut.clone();
        if let Some(listener) = &options.listener {
            listener.on_event(&Event::WalTruncated { file, offset, bytes });
        }
    }
}

/// What the folder holds; a vacant one is refused where no database may be made.
pub(crate) fn look_at(vfs: &dyn Vfs, folder: &Path, options: &Options) -> Result<FolderKind> {
    let kind = folder::inspect(vfs, folder)?;
    if kind == FolderKind::Vacant && (options.read_only || !options.create_if_missing) {
        let found = "it is empty or missing".to_owned();
        return Err(Error::NotADatabase { path: folder.to_path_buf(), found });
    }
    Ok(kind)
}

/// A folder that can't be written has no lock, and needs none as long as nothing is written.
pub(crate) fn take_lock(vfs: &dyn Vfs, folder: &Path, is_read_only: bool) -> Result<Option<Box<dyn Lock>>> {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem, WouldBlock};
    let path = folder.join(LOCK);
    // Whoever has the database open has made the file; who only reads makes none.
    if is_read_only && !vfs.exists(&path).map_err(|error| Error::io("look for", &path, error))? {
        return Ok(None);
    }
    match vfs.lock(&path) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.kind() == WouldBlock => Err(Error::Locked { path: folder.to_path_buf() }),
        Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => match is_read_only {
            true => Ok(None),
            false => Err(Error::NotWritable { path: folder.to_path_buf() }),
        },
        Err(error) => Err(Error::io("lock", &path, error)),
    }
}

/// A new database without keyspaces.
fn create(vfs: &Arc<dyn Vfs>, folder: &Path, runtime: &Runtime) -> Result<VersionSet> {
    let id = crate::coding::checksum(runtime.seed, b"database id");
    VersionSet::create(Arc::clone(vfs), folder, id, runtime.seed)
}

/// Steps 4 and 5.
struct Recovery<'a> {
    vfs: &'a Arc<dyn Vfs>,
    folder: &'a Path,
    versions: &'a Arc<VersionSet>,
    keyspaces: &'a Keyspaces,
    clock: &'a Arc<dyn Clock>,
}

impl Recovery<'_> {
    fn replay(&mut self, report: &mut OpenReport) -> Result<ReplayReport> {
        let first_needed = self.versions.catalog().counters.oldest_log;
        let files = LogFiles::find(&**self.vfs, self.folder, self.versions.database().0, first_needed)?;
        let mut read_states: BTreeMap<u32, Arc<ReadState>> = BTreeMap::new();
        let (mut replayed, mut last_segment) = (0, 0);
        let found = replay(&files, &mut |entry, segment| {
            // The records of a dropped keyspace are passed over: ids are never used twice.
            let Some(keyspace) = self.keyspaces.get(&entry.keyspace) else { return Ok(()) };
            // Between two segments lies no batch: a memtable that ended within one could be flushed, and the rest be lost.
            if segment != last_segment {
                last_segment = segment;
                read_states.retain(|id, read_state| !self.rotate_if_full(*id, read_state));
            }
            let read_state =
                read_states.entry(entry.keyspace).or_insert_with(|| keyspace.read_state.load_full());
            let partition = read_state.version.partition_of(entry.key);
            if partition.is_some_and(|partition| entry.sequence <= partition.flushed_sequence) {
                return Ok(());
            }
            replayed += 1;
            read_state.memtable.memtable.insert(entry.key, entry.sequence, entry.kind, entry.value);
            read_state.memtable.note_segment(segment);
            Ok(())
        })?;
        report.log_bytes = found.segments.iter().map(|segment| segment.bytes).sum();
        report.replayed_records = found.records;
        report.replayed_entries = replayed;
        let cut = |cut: &crate::wal::reader::Truncation| WalTruncation {
            file: cut.file.clone(),
            offset: cut.offset,
            bytes: cut.bytes,
        };
        report.wal_truncations = found.truncations.iter().map(cut).collect();
        Ok(found)
    }

    /// Seals a memtable that is full; says whether it was.
    fn rotate_if_full(&self, id: u32, read_state: &ReadState) -> bool {
        let full = |keyspace: &&Arc<KeyspaceState>| {
            read_state.memtable.memtable.bytes() as u64 >= keyspace.options.memtable_bytes
        };
        self.keyspaces.get(&id).filter(full).is_some_and(|keyspace| keyspace.rotate_memtable())
    }

    /// Puts tables that nothing names, and that are not proven to be unneeded, where no sweep comes.
    fn keep_what_may_be_needed(
        &self,
        log: LogSpan,
        options: &Options,
        report: &mut OpenReport,
    ) -> Result<()> {
        let entries = folder::list(&**self.vfs, self.folder)?;
        let tables = TableCache::new(self.vfs, self.folder, options, &Arc::new(Metrics::default()));
        let found = orphans::find(&tables, &entries, &self.versions.catalog(), log);
        let names: Vec<FileName> = found.into_iter().map(|(name, _)| name).collect();
        orphans::quarantine_files(&**self.vfs, self.folder, &names)?;
        report.quarantined_files = names.iter().map(|name| name.name()).collect();
        Ok(())
    }

    fn begin_log(
        &self,
        options: &Options,
        replayed: &ReplayReport,
        last_sequence: u64,
        report: &mut OpenReport,
    ) -> Result<Option<LogState>> {
        if options.read_only {
            return Ok(None);
        }
        self.versions.begin_writing()?;
        self.keep_what_may_be_needed(LogSpan::of(replayed), options, report)?;
        let leftovers = self.versions.sweep_orphans()?;
        report.removed_file_count = leftovers.orphans.len() + leftovers.obsolete.len();
        report.foreign_files = leftovers.foreign;
        let versions = Arc::clone(self.versions);
        let setup = LogSetup {
            vfs: Arc::clone(self.vfs),
            folder: self.folder.to_path_buf(),
            database_id: self.versions.database().0,
            deferred_bytes_max: options.deferred_bytes_max,
            next_number: Box::new(move || versions.new_file_number()),
            clock: Arc::clone(self.clock),
        };
        let mut log = Log::create(setup, &replayed.segments)?;
        let first_needed = self.versions.catalog().counters.oldest_log;
        if replayed.obsolete.iter().any(|&number| number >= first_needed) {
            // If they went while the new header may be lost, one that stays could be left behind one that went.
            log.persist(Durability::Synced)?;
        }
        for &number in &replayed.obsolete {
            let path = FileName::Log(number).path(self.folder);
            match self.vfs.remove(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io("remove", &path, error));
                }
                _ => report.removed_file_count += 1,
            }
        }
        Ok(Some(LogState { log, last_sequence }))
    }
}
