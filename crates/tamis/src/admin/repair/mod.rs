//! Rebuilds a store that cannot be opened from all readable data, and reports the ranges in which writes may be lost.
//!
//! 1. The longest readable part of the manifest gives a state (`version/prefix.rs`). It is the current state if the manifest is
//!    complete and no table shows that it was longer once (`store/orphans.rs`). If the manifest is not complete, but no file is newer
//!    than this state and none of its tables is missing, it counts as the current state, too. The lost edits may have dropped a
//!    keyspace, so all ranges are reported.
//! 2. Otherwise the tables are selected by their properties (`select_tables.rs`). Tables that overlap are merged by sequence
//!    numbers, and every range that they cover is reported: a table whose replacements are missing cannot be detected. In the
//!    partitioned layout the gaps between tables are the bounds of the partitions.
//! 3. A missing table is reported with its range. The readable blocks of a damaged table are rewritten in its place.
//!    A sorted view that is damaged, or whose runs changed, is dropped: the store builds it again.
//! 4. A log without faults is not changed. Otherwise, and in case 2, all readable entries are put into tables. In case 2 the
//!    oldest needed segment is unknown: the log begins with the oldest one that exists.
//! 5. Files that the new state does not need are linked into the folder `quarantine`; then the new manifest and `CURRENT` are
//!    written; then the old names are removed. Nothing is deleted, and after a crash at any point the repair can be repeated.
//!
//! Files in an unknown format, or with changes or entries of an unknown kind, are not damaged but written by another program: the
//! repair returns an error and changes no file. If the system refuses to open or read a file, the repair returns its error.
//!
//! Not detectable: a missing table if the manifest is lost, too; entries of a missing log segment if the end of the manifest is
//! lost, too; a table that was replaced by others which were replaced in turn.
//! A store without faults is left as it is. Cost: every file is read once; in case 2 tables that overlap others are rewritten.

mod inventory;
mod rebuild;
mod report;
mod select_tables;

use std::{
    ops::ControlFlow,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tamis_filter::auto::Prices;
use tamis_vfs::{Folder, Vfs};

pub use self::report::{LostRange, QuarantinedFile, RepairReport};
use self::{inventory::Inventory, rebuild::StateRebuilder};
use crate::{
    admin::quarantine,
    cache::table::TableCache,
    compaction::job_context::JobContext,
    error::{Error, Result},
    file_name::FileName,
    key::{Readers, SEQUENCE_MAX},
    observe::{metrics::Metrics, query_sample::SharedQueries},
    options::{OpenMode, Options},
    store::{readers::RegisteredReaders, recover::open_folder, runtime::Runtime},
    version::{folder, handle::ObsoleteFiles, set::write_catalog, version::KeyspaceVersion},
};

/// Returns an error of the system that prevented a read: it proves no damage.
fn check_is_loss(error: &Error) -> Result<()> {
    use std::io::ErrorKind::{NotFound, UnexpectedEof};
    match error {
        Error::Io { source, .. } if !matches!(source.kind(), NotFound | UnexpectedEof) => Err(error.clone()),
        // Another program can read such a table.
        Error::DiskFull { .. } | Error::ZstdUnavailable { .. } => Err(error.clone()),
        _ => Ok(()),
    }
}

/// The parts that all steps need.
struct Repair {
    folder: Folder,
    tables: Arc<TableCache>,
    obsolete_files: Arc<ObsoleteFiles>,
    next_number: AtomicU64,
    /// Id and seed.
    database: (u64, u64),
    is_cancelled: AtomicBool,
}

impl Repair {
    fn new_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    fn with_context<R>(&self, version: &KeyspaceVersion, work: impl FnOnce(&JobContext<'_>) -> R) -> R {
        work(&JobContext {
            folder: &self.folder,
            version,
            database_id: self.database.0,
            filter_seed: self.database.1,
            is_direct: false,
            next_number: &|| self.new_number(),
            readers: Readers { read_points: vec![SEQUENCE_MAX], expiry_time: 0 },
            sampled_queries: SharedQueries::default(),
            entry_count: version.entry_count(),
            shared_choice: Arc::default(),
            prices: Prices::default(),
            is_cancelled: &self.is_cancelled,
            between_tables: &|| ControlFlow::Continue(()),
            listener: None,
        })
    }
}

/// See [`crate::Db::repair`].
pub(crate) fn repair(vfs: &dyn Vfs, path: &Path, runtime: &Runtime) -> Result<RepairReport> {
    let options = Options::default().mode(OpenMode::Existing);
    let (folder, _lock) = &open_folder(vfs, path, &options)?;
    check_is_ours(folder)?;
    let inventory = Inventory::collect(folder, runtime)?;
    if let Some(error) = inventory.foreign_format() {
        return Err(error);
    }
    let repair = Repair {
        folder: folder.clone(),
        tables: TableCache::new(folder, &Options::default(), &Arc::new(Metrics::default())),
        obsolete_files: Arc::default(),
        next_number: AtomicU64::new(inventory.next_number),
        database: inventory.database,
        is_cancelled: AtomicBool::new(false),
    };
    let mut rebuilder = StateRebuilder::new(&repair, inventory);
    rebuilder.rebuild()?;
    let StateRebuilder { mut state, mut report, reasons, .. } = rebuilder;
    if report.was_sound() {
        return Ok(report);
    }
    let manifest = repair.new_number();
    state.counters.next_file_number = state.counters.next_file_number.max(manifest + 1);
    state.drop_stale_views();
    state.assign_run_ids();
    if let Some(rule) = state.check_invariants() {
        return Err(Error::corruption(folder.path(), 0, "repaired state", "one that keeps all rules", rule));
    }
    let spare = quarantine_files(&repair, &state, manifest)?;
    write_catalog(&state, folder, manifest)?;
    // Without an answer all files may be in use.
    let readers = RegisteredReaders::find(folder).ok();
    for (name, file) in spare {
        let path = folder.path().join(&name);
        // The next open for writing finds the files that a reader keeps, and that they are obsolete.
        let is_kept = FileName::parse(&name).is_some_and(|name| {
            !matches!(name, FileName::Log(_) | FileName::Manifest(_))
                && readers.as_ref().is_none_or(|readers| readers.need(name))
        });
        if !is_kept {
            folder.remove(&path).map_err(|error| Error::io("remove", &path, error))?;
        }
        let why = reasons.get(&name).cloned().unwrap_or_else(|| "no longer needed".to_owned());
        report.quarantined.push(QuarantinedFile { file, why });
    }
    folder.sync().map_err(|error| Error::io("sync", folder.path(), error))?;
    report.table_count = state.keyspaces.values().map(|version| version.tables().count()).sum();
    Ok(report)
}

/// Refuses a folder without any file of a store.
fn check_is_ours(folder: &Folder) -> Result<()> {
    let entries = folder::list(folder)?;
    let is_ours = |name: &str| {
        matches!(
            FileName::parse(name),
            Some(FileName::Current | FileName::Manifest(_) | FileName::Log(_) | FileName::Table(_))
        )
    };
    if entries.iter().any(|entry| !entry.is_dir && is_ours(&entry.name)) {
        return Ok(());
    }
    let found = "it holds no file of a store".to_owned();
    Err(Error::NotADatabase { path: folder.path().to_path_buf(), found })
}

/// Links every file that the state does not need into the quarantine folder; returns their names and new paths.
fn quarantine_files(
    repair: &Repair,
    state: &crate::version::catalog::Catalog,
    manifest: u64,
) -> Result<Vec<(String, std::path::PathBuf)>> {
    let folder = &repair.folder;
    let entries = folder::list(folder)?;
    let found = folder::leftovers(&entries, state, manifest);
    let mut names: Vec<String> = found.orphans.iter().map(|name| name.name()).collect();
    names.extend(found.obsolete);
    let has_current = entries.iter().any(|entry| entry.name == crate::file_name::CURRENT);
    if names.is_empty() && !has_current {
        return Ok(Vec::new());
    }
    let quarantine = quarantine::create_folder(folder)?;
    let mut kept = Vec::new();
    for name in names {
        let place = quarantine::link_into(&**folder, &folder.path().join(&name), &quarantine, &name)?;
        kept.push((name, place));
    }
    if has_current {
        let current = folder.path().join(crate::file_name::CURRENT);
        quarantine::link_into(
            &**folder,
            &current,
            &quarantine,
            &format!("{}.{manifest}", crate::file_name::CURRENT),
        )?;
    }
    folder.sync_dir(&quarantine).map_err(|error| Error::io("sync", &quarantine, error))?;
    folder.sync().map_err(|error| Error::io("sync", folder.path(), error))?;
    Ok(kept)
}
