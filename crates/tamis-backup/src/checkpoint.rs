//! The checkpoint that a backup reads: a temporary folder next to the store, so that tables are hard links.
//!
//! The folder is locked while it is used. The next backup of the store removes folders that are not: their processes were killed.

use std::{
    ffi::{OsStr, OsString},
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis::{Cell, Db, Inspection, OpenMode, Options, Runtime, Vfs};
use tamis_vfs::{Lock, LockMode};

use crate::{
    digest::{digest, random_id},
    error::{Error, Result},
};

/// The store to back up.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A store that this process has open; writes continue.
    Db(&'a Db),
    /// The folder of a store. It is opened read-only for the time of a checkpoint.
    Folder(&'a Path),
}

/// A file of the checkpoint.
#[derive(Debug, Clone)]
pub(crate) struct CheckpointFile {
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

/// A checkpoint. Dropping it removes the folder.
pub(crate) struct Checkpoint {
    vfs: Arc<dyn Vfs>,
    folder: PathBuf,
    /// File systems without locks have none.
    lock: Option<Box<dyn Lock>>,
    pub(crate) sequence: u64,
    /// In the order of names.
    pub(crate) files: Vec<CheckpointFile>,
    /// The id of the store, in hexadecimal digits.
    pub(crate) store: String,
    /// See [`crate::format::Backup::catalog`].
    pub(crate) catalog: String,
}

impl Checkpoint {
    /// Makes a checkpoint of the store.
    pub(crate) fn make(vfs: &Arc<dyn Vfs>, source: Source<'_>, parent: Option<&Path>) -> Result<Self> {
        match source {
            Source::Db(db) => Self::of_db(vfs, db, &db.path(), parent),
            Source::Folder(path) => {
                let options = Options::default().mode(OpenMode::Reader);
                let db = Db::open_on(Arc::clone(vfs), path, options, Runtime::system())?;
                Self::of_db(vfs, &db, path, parent)
            }
        }
    }

    fn of_db(vfs: &Arc<dyn Vfs>, db: &Db, store: &Path, parent: Option<&Path>) -> Result<Self> {
        let store = &std::path::absolute(store).map_err(|error| Error::file("find", store, error))?;
        let mut prefix = OsString::from(".");
        prefix.push(store.file_name().unwrap_or_default());
        prefix.push(".tamis-backup-");
        let parent = parent.or_else(|| store.parent()).unwrap_or(store);
        remove_abandoned(&**vfs, parent, &prefix.to_string_lossy());
        let (folder, lock) = create_locked(&**vfs, parent, &prefix)?;
        let mut checkpoint = Self {
            vfs: Arc::clone(vfs),
            folder,
            lock,
            sequence: 0,
            files: Vec::new(),
            store: format!("{:016x}", db.id()),
            catalog: String::new(),
        };
        checkpoint.sequence = db.checkpoint(&checkpoint.folder)?.sequence;
        checkpoint.inspect()?;
        Ok(checkpoint)
    }

    /// Lists the files and reads the manifest.
    fn inspect(&mut self) -> Result<()> {
        let listed = self.vfs.list(&self.folder).map_err(|error| Error::file("list", &self.folder, error))?;
        let files = listed.into_iter().map(|entry| CheckpointFile { name: entry.name, bytes: entry.length });
        self.files = files.collect();
        let manifest = Inspection::of_manifest(&self.vfs, &self.path("CURRENT"))?;
        let mut catalog = String::new();
        for row in &manifest.rows {
            let [_, Cell::Text(change), Cell::Text(detail)] = row.as_slice() else { continue };
            match change.as_str() {
                // The id is in `store`; the others change without a change of the content.
                "set database" | "advance counters" | "set synced log" => {}
                _ => catalog.extend([change, " ", detail, "\n"].map(|text| text.to_owned())),
            }
        }
        self.catalog = digest(catalog.as_bytes());
        Ok(())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn vfs(&self) -> &dyn Vfs {
        &*self.vfs
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        // Windows removes no open folder.
        self.lock = None;
        remove_folder(&*self.vfs, &self.folder);
    }
}

/// Creates a folder and locks it. Another backup may remove the folder before it is locked: then another one is created.
fn create_locked(vfs: &dyn Vfs, parent: &Path, prefix: &OsStr) -> Result<(PathBuf, Option<Box<dyn Lock>>)> {
    loop {
        let mut name = prefix.to_owned();
        name.push(random_id());
        let folder = parent.join(name);
        vfs.create_dir_all(&folder).map_err(|error| Error::file("create", &folder, error))?;
        match vfs.lock(&folder, LockMode::Exclusive) {
            Ok(lock) if vfs.exists(&folder).unwrap_or_default() => return Ok((folder, Some(lock))),
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok((folder, None)),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(Error::file("lock", &folder, error)),
        }
    }
}

/// Removes the checkpoints of killed processes. Errors are ignored: the next backup tries again.
fn remove_abandoned(vfs: &dyn Vfs, parent: &Path, prefix: &str) {
    for entry in vfs.list(parent).unwrap_or_default() {
        if entry.is_dir && entry.name.starts_with(prefix) {
            let folder = parent.join(&entry.name);
            if let Ok(_lock) = vfs.lock(&folder, LockMode::Exclusive) {
                remove_folder(vfs, &folder);
            }
        }
    }
}

/// Removes a folder with the files in it.
pub(crate) fn remove_folder(vfs: &dyn Vfs, folder: &Path) {
    for entry in vfs.list(folder).unwrap_or_default() {
        let _ = vfs.remove(&folder.join(entry.name));
    }
    // `Vfs` removes files only. In another file system than that of the system the empty folder stays.
    let _ = std::fs::remove_dir(folder);
}
