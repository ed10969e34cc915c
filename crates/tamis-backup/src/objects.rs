//! The objects of a target: named bytes in a folder or a bucket.

use std::{
    fmt::Debug,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tamis_vfs::Vfs;

use crate::digest::random_id;

/// The name and length of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Parts separated by `/`.
    pub name: String,
    /// Length in bytes.
    pub bytes: u64,
}

/// Named bytes. Names are parts of ASCII letters, digits, `-` and `.`, separated by `/`. All calls block and may run at the same time.
///
/// A reader sees an object completely or not at all, and a name that was put is in all later lists (S3 has guaranteed it since 2020).
pub trait Objects: Debug + Send + Sync + 'static {
    /// Writes a whole object, which replaces an earlier one. It is durable when the call returns.
    ///
    /// # Errors
    /// The system's. The object is as before, or complete.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Reads a whole object.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; the system's.
    fn get(&self, name: &str) -> io::Result<Vec<u8>>;
    /// The length of an object; `None` if there is none.
    ///
    /// # Errors
    /// The system's.
    fn length(&self, name: &str) -> io::Result<Option<u64>>;
    /// All objects whose name begins with the part `folder`.
    ///
    /// # Errors
    /// The system's.
    fn list(&self, folder: &str) -> io::Result<Vec<Object>>;
    /// The first parts of all names.
    ///
    /// # Errors
    /// The system's.
    fn first_parts(&self) -> io::Result<Vec<String>>;
    /// Removes an object; it may be missing.
    ///
    /// # Errors
    /// The system's.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Removes what killed processes have left of unfinished objects with the first part `folder`. No process may put such objects at the
    /// same time.
    ///
    /// # Errors
    /// The system's.
    fn remove_unfinished(&self, folder: &str) -> io::Result<()> {
        let _ = folder;
        Ok(())
    }
}

/// Unfinished objects of a folder.
const TEMPORARY: &str = "temporary";

/// Objects as files below a folder. An object is written under a temporary name, synced and renamed.
#[derive(Debug)]
pub struct FolderObjects {
    vfs: Arc<dyn Vfs>,
    root: PathBuf,
    /// Makes temporary names unique, with `process`.
    next: AtomicU64,
    process: String,
}

impl FolderObjects {
    /// The objects below `root`, which may be missing.
    pub fn new(vfs: Arc<dyn Vfs>, root: impl Into<PathBuf>) -> Self {
        Self { vfs, root: root.into(), next: AtomicU64::new(0), process: random_id() }
    }

    fn path(&self, name: &str) -> PathBuf {
        name.split('/').fold(self.root.clone(), |path, part| path.join(part))
    }

    fn list_below(&self, folder: &Path, name: &str, objects: &mut Vec<Object>) -> io::Result<()> {
        for entry in none_if_missing(self.vfs.list(folder))?.unwrap_or_default() {
            let name = format!("{name}/{}", entry.name);
            if entry.is_dir {
                self.list_below(&folder.join(&entry.name), &name, objects)?;
            } else {
                objects.push(Object { name, bytes: entry.length });
            }
        }
        Ok(())
    }
}

impl Objects for FolderObjects {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(name);
        let folder = path.parent().unwrap_or(&self.root);
        let temporary = self.root.join(TEMPORARY);
        self.vfs.create_dir_all(folder)?;
        self.vfs.create_dir_all(&temporary)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let unfinished = temporary.join(format!("{}-{}-{number}", first_part(name), self.process));
        let file = self.vfs.create(&unfinished)?;
        let written = file.append(bytes).and_then(|()| file.sync());
        drop(file);
        let placed = written.and_then(|()| self.vfs.rename(&unfinished, &path));
        if placed.is_err() {
            let _ = self.vfs.remove(&unfinished);
        }
        placed.and_then(|()| self.vfs.sync_dir(folder))
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.vfs.read(&self.path(name))
    }

    fn length(&self, name: &str) -> io::Result<Option<u64>> {
        let opened = none_if_missing(self.vfs.open(&self.path(name), tamis::Access::Buffered))?;
        opened.map(|file| file.length()).transpose()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Object>> {
        let mut objects = Vec::new();
        self.list_below(&self.path(folder), folder, &mut objects)?;
        Ok(objects)
    }

    fn first_parts(&self) -> io::Result<Vec<String>> {
        let entries = none_if_missing(self.vfs.list(&self.root))?.unwrap_or_default();
        // A new file system has the folder `lost+found`, other systems hidden files.
        let is_object = |name: &String| name != TEMPORARY && name != "lost+found" && !name.starts_with('.');
        Ok(entries.into_iter().map(|entry| entry.name).filter(is_object).collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        none_if_missing(self.vfs.remove(&self.path(name))).map(|_| ())
    }

    fn remove_unfinished(&self, folder: &str) -> io::Result<()> {
        let temporary = self.root.join(TEMPORARY);
        for entry in none_if_missing(self.vfs.list(&temporary))?.unwrap_or_default() {
            if first_part(&entry.name.replacen('-', "/", 1)) == folder {
                none_if_missing(self.vfs.remove(&temporary.join(entry.name)))?;
            }
        }
        Ok(())
    }
}

/// The part before the first `/`.
fn first_part(name: &str) -> &str {
    name.split('/').next().unwrap_or_default()
}

pub(crate) fn none_if_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
