//! Checkpoints: a consistent copy of an open store while writes continue.
//!
//! 1. Under the log's lock: deferred bytes are written to the log; the current catalog and the lengths of the log's segments are
//!    recorded. This fixes the content of the copy. Tables stay as long as the catalog is held, segments as long as they are pinned. No
//!    file is listed or opened under the lock.
//! 2. Tables, filter files and sorted views, which never change, are linked, or copied if links are not possible. The length of each table is
//!    compared with the manifest's; on request every byte is verified.
//! 3. The log is copied up to the recorded length and synced.
//! 4. The manifest is written, and last `CURRENT`: without it the folder is no store.
//!
//! A failed checkpoint removes the files that it created. Cost: a link for each file, and a copy of the log, whose size
//! [`crate::Options::log_bytes_max`] bounds.

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis_vfs::{Access, Folder, Vfs};

use crate::{
    admin::link::{Placed, link_or_copy, write_new},
    cache::table::TableCache,
    error::{Error, Result},
    file_name::FileName,
    frame::FrameSource as _,
    key::Sequence,
    options::Options,
    store::{commit_log::PinnedLog, context::StoreContext, parts::StoreParts, store_folder::absolute},
    table::reader::TableReader,
    version::{catalog::Catalog, folder},
    wal::reader::LogFile,
};

/// The result of [`crate::Db::checkpoint`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CheckpointReport {
    /// The sequence number of the last write in the copy.
    pub sequence: u64,
    /// Tables, filter files and sorted views that both folders share by hard links.
    pub linked_file_count: usize,
    /// Files that were copied or written.
    pub copied_file_count: usize,
    /// Bytes that were copied or written.
    pub copied_bytes: u64,
}

/// The content of a checkpoint; keeps its files from being deleted.
struct FixedState {
    sequence: Sequence,
    catalog: Arc<Catalog>,
    log: PinnedLog,
}

impl StoreParts {
    /// See [`crate::Db::checkpoint`].
    pub(crate) fn checkpoint(&self, target: &Path, verify: Verify) -> Result<CheckpointReport> {
        let _running = self.context.begin_job()?;
        let target = &absolute(target)?;
        self.refuse_own_folder(target)?;
        let target = &create_empty_folder(&*self.context.folder, target)?;
        let fixed = self.fix_state()?;
        let report = CheckpointReport { sequence: fixed.sequence, ..CheckpointReport::default() };
        let mut copy = Copy { vfs: &*self.context.folder, target, created: Vec::new(), report };
        self.copy_all(&fixed, &mut copy, verify).inspect_err(|_| copy.remove_created())?;
        Ok(copy.report)
    }

    /// # Errors
    /// [`Error::InvalidArgument`] for the folder of the store and those in it, under any name.
    fn refuse_own_folder(&self, target: &Path) -> Result<()> {
        let folder = &self.context.folder;
        let is_own = folder.is_within(target, folder.path());
        if is_own.map_err(|error| Error::io("look for", target, error))? {
            return Err(Error::InvalidArgument {
                what: "checkpoint folder",
                got: format!("{}, which is in the folder of the store", target.display()),
                expected: "name a folder outside of the store".to_owned(),
            });
        }
        Ok(())
    }

    /// Step 1.
    fn fix_state(&self) -> Result<FixedState> {
        let mut log = self.log.lock();
        if let Some(state) = log.as_mut() {
            state.log.flush_deferred()?;
        }
        let catalog = self.versions.catalog();
        let sequence = log.as_ref().map_or_else(|| self.snapshots.visible(), |state| state.last_sequence);
        let pinned = self.log.pin(log.as_ref(), &self.versions, &catalog);
        Ok(FixedState { sequence, catalog, log: pinned })
    }

    /// Steps 2 to 4.
    fn copy_all(&self, fixed: &FixedState, copy: &mut Copy<'_>, verify: Verify) -> Result<()> {
        let folder = &self.context.folder;
        for file in fixed.catalog.keyspaces.values().flat_map(|version| version.files()) {
            copy.place(folder, file.name())?;
        }
        self.check_tables(&fixed.catalog, copy.target, verify)?;
        let mut catalog = Catalog::clone(&fixed.catalog);
        // The copy expires what readers of the store have found expired.
        let greatest_time = catalog.counters.greatest_time.max(self.context.expiry.to_persist());
        catalog.counters.greatest_time = greatest_time;
        catalog.synced_log.clear();
        for segment in fixed.log.files().segments() {
            let bytes = copy.copy_segment(segment)?;
            catalog.synced_log.insert(segment.number, bytes);
        }
        copy.target.sync().map_err(|error| Error::io("sync", copy.target.path(), error))?;
        let number = self.versions.new_file_number();
        let names = [FileName::Temporary(number), FileName::Manifest(number), FileName::Current];
        copy.created.extend(names.map(|name| name.path(copy.target)));
        let bytes = self.versions.write_copy(catalog, copy.target, number)?;
        copy.report.copied_file_count += 2;
        copy.report.copied_bytes += bytes;
        Ok(())
    }

    /// Checks the tables in the folder of the copy; errors name those of the store.
    fn check_tables(&self, catalog: &Catalog, target: &Folder, verify: Verify) -> Result<()> {
        let StoreContext { folder, options, .. } = &*self.context;
        let listed = folder::list(target)?;
        let lengths: BTreeMap<&str, u64> =
            listed.iter().map(|entry| (entry.name.as_str(), entry.length)).collect();
        let options = Options { table_access: Access::Buffered, listener: None, ..options.clone() };
        let tables = TableCache::new(target, &options, &Arc::default());
        for table in catalog.keyspaces.values().flat_map(|version| version.tables()) {
            let name = table.file().name();
            let length = lengths.get(name.name().as_str()).copied().unwrap_or_default();
            if length != table.file_bytes() {
                let expected = format!("{} bytes", table.file_bytes());
                let got = format!("{length} bytes");
                return Err(Error::corruption(&name.path(folder), 0, "table length", expected, got));
            }
            if verify == Verify::Checksums {
                let opened = TableReader::open_named(tables.environment(), table);
                let fault = opened.map_or_else(Some, |reader| reader.verify().into_iter().next());
                if let Some(fault) = fault {
                    return Err(fault.at_path(&name.path(folder)));
                }
            }
        }
        Ok(())
    }
}

/// The checks of a checkpoint for each table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verify {
    Lengths,
    /// Every byte.
    Checksums,
}

/// Creates the folder if it is missing.
///
/// # Errors
/// [`Error::InvalidArgument`] if it is not empty.
fn create_empty_folder(vfs: &dyn Vfs, target: &Path) -> Result<Folder> {
    match vfs.create_dir_all(target) {
        // A file has the name: the folder can't be opened.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(Error::io("create", target, error));
        }
        _ => {}
    }
    let folder = Folder::open(vfs, target).map_err(|error| Error::io("open", target, error))?;
    match folder::list(&folder)?.first() {
        None => Ok(folder),
        Some(first) => Err(Error::InvalidArgument {
            what: "checkpoint folder",
            got: format!("{}, which contains {:?}", target.display(), first.name),
            expected: "name a folder that is new or empty".to_owned(),
        }),
    }
}

/// A copy in progress.
struct Copy<'a> {
    vfs: &'a dyn Vfs,
    target: &'a Folder,
    created: Vec<PathBuf>,
    report: CheckpointReport,
}

impl Copy<'_> {
    fn place(&mut self, folder: &Folder, name: FileName) -> Result<()> {
        let target = name.path(self.target);
        let placed = link_or_copy(self.vfs, &name.path(folder), &target);
        let placed = match placed {
            // Filters and views are derived data: the manifest may name one that is missing.
            Err(Error::Io { source, .. })
                if source.kind() == ErrorKind::NotFound
                    && matches!(name, FileName::Filter(_) | FileName::View(_)) =>
            {
                return Ok(());
            }
            other => other?,
        };
        self.created.push(target);
        match placed {
            Placed::Linked => self.report.linked_file_count += 1,
            Placed::Copied(bytes) => self.note_copy(bytes),
        }
        Ok(())
    }

    /// Returns the bytes of the segment.
    fn copy_segment(&mut self, segment: &LogFile) -> Result<u64> {
        let target = FileName::Log(segment.number).path(self.target);
        let source = segment.open()?;
        let bytes = source.length_bytes();
        write_new(self.vfs, &target, |append| source.for_each_piece(append))?;
        self.created.push(target);
        self.note_copy(bytes);
        Ok(bytes)
    }

    fn note_copy(&mut self, bytes: u64) {
        self.report.copied_file_count += 1;
        self.report.copied_bytes += bytes;
    }

    /// Removes the created files, `CURRENT` first: a partial copy must not look like a store.
    fn remove_created(&mut self) {
        for path in self.created.drain(..).rev() {
            let _ = self.vfs.remove(&path);
        }
    }
}
