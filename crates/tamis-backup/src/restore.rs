//! Restores a backup into a new folder.
//!
//! All parts are verified by their digests. `CURRENT` is written last: without it the folder is no store, so that a killed restore leaves none.
//! At the end the store is opened read-only, and its sequence number is compared.
//!
//! A prune waits for a restore (`lease.rs`). A restore that can't write its lease, because it may only read, fails with
//! [`Error::Damaged`] if a prune removes an object that it needs.

use std::{path::Path, sync::Arc};

use tamis::{Db, OpenMode, Options, OsVfs, Runtime, Vfs};

use crate::{
    checkpoint::remove_folder,
    error::{Error, Result},
    format::{Backup, FileEntry},
    lease::lease_if_writable,
    parallel::in_parallel,
    progress::{self, NoProgress, Progress},
    target::Target,
};

const CURRENT: &str = "CURRENT";
/// Ignored by the store.
const CURRENT_UNFINISHED: &str = "CURRENT.unfinished";

/// How to restore.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RestoreOptions {
    /// The backup: a number, an id, or a time in UTC such as `2026-11-30T09:20`. Default: the newest one.
    pub to: Option<String>,
    /// Receives the progress. Default: none.
    pub progress: Arc<dyn Progress>,
    /// The file system of the folder. Default: that of the system.
    pub vfs: Arc<dyn Vfs>,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        Self { to: None, progress: Arc::new(NoProgress), vfs: Arc::new(OsVfs) }
    }
}

/// Restores a backup into a folder, which must be empty or missing; returns the backup.
///
/// # Errors
/// [`Error::NoBackup`] and [`Error::ClockJumped`] for [`RestoreOptions::to`]; [`Error::FolderNotEmpty`], [`Error::NoSpace`] and
/// [`Error::File`] for the folder; [`Error::Damaged`] and [`Error::Target`] for the target; [`Error::WrongSequence`]; [`Error::Cancelled`].
/// After an error the folder is empty.
pub fn restore(target: &Target, folder: impl AsRef<Path>, options: &RestoreOptions) -> Result<Backup> {
    let (vfs, folder) = (&*options.vfs, folder.as_ref());
    let lease = lease_if_writable(target, "a restore")?;
    let backups = target.backups()?;
    let backup = backups.find(options.to.as_deref())?;
    let list = target.file_list(backup)?;
    vfs.create_dir_all(folder).map_err(|error| Error::file("create", folder, error))?;
    let listed = vfs.list(folder).map_err(|error| Error::file("list", folder, error))?;
    if let Some(first) = listed.into_iter().next() {
        return Err(Error::FolderNotEmpty { path: folder.to_owned(), found: first.name });
    }
    let free = vfs.free_space(folder).ok().flatten();
    if let Some(free) = free.filter(|free| *free < backup.store_bytes) {
        return Err(Error::NoSpace { path: folder.to_owned(), free, needed: backup.store_bytes });
    }
    options.progress.expect(backup.store_bytes);
    let files: Vec<&FileEntry> = list.files.iter().chain(&backup.files).collect();
    let write = Write { target, folder, options };
    write
        .all(&files)
        .and_then(|()| check(folder, backup, options))
        .inspect_err(|_| remove_folder(vfs, folder))?;
    drop(lease);
    Ok(backup.clone())
}

/// Writes the files of a restore.
struct Write<'a> {
    target: &'a Target,
    folder: &'a Path,
    options: &'a RestoreOptions,
}

impl Write<'_> {
    fn all(&self, files: &[&FileEntry]) -> Result<()> {
        let (vfs, folder) = (&*self.options.vfs, self.folder);
        in_parallel(files, |file| {
            let name = if file.name == CURRENT { CURRENT_UNFINISHED } else { &file.name };
            self.file(file, &folder.join(name))
        })?;
        let synced = vfs.sync_dir(folder);
        synced.map_err(|error| Error::file("sync", folder, error))?;
        let renamed = vfs.rename(&folder.join(CURRENT_UNFINISHED), &folder.join(CURRENT));
        let placed = renamed.and_then(|()| vfs.sync_dir(folder));
        placed.map_err(|error| Error::file("write", &folder.join(CURRENT), error))
    }

    fn file(&self, entry: &FileEntry, path: &Path) -> Result<()> {
        let fail = |error| Error::file("write", path, error);
        let file = self.options.vfs.create(path).map_err(fail)?;
        for part in &entry.parts {
            progress::check(&*self.options.progress)?;
            file.append(&self.target.get_part(part)?).map_err(fail)?;
            self.options.progress.advance(part.bytes);
        }
        file.sync().map_err(fail)
    }
}

/// Opens the restored store read-only.
fn check(folder: &Path, backup: &Backup, options: &RestoreOptions) -> Result<()> {
    let read_only = Options::default().mode(OpenMode::Reader);
    let db = Db::open_on(Arc::clone(&options.vfs), folder, read_only, Runtime::system())?;
    let got = db.snapshot().sequence();
    db.close()?;
    match got == backup.sequence {
        true => Ok(()),
        false => Err(Error::WrongSequence { path: folder.to_owned(), expected: backup.sequence, got }),
    }
}
