//! The folder `quarantine` of a store: files that the manifest does not name but that may hold the only copy of some entries.
//! They are moved there instead of being deleted.
//!
//! A file first gets its new name and loses the old one later, after the caller has synced the quarantine folder. If the process
//! ends in between, the next run links the file again and finds the same bytes under the new name.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use tamis_vfs::{Folder, Vfs};

use crate::{
    admin::link::link_or_copy,
    error::{Error, Result},
};

/// The folder's name within the folder of the store.
pub(crate) const QUARANTINE: &str = "quarantine";
/// The name of a file that is not yet complete.
const UNFINISHED: &str = "unfinished";

/// Links a file of the store into the quarantine folder, which must exist, and returns its new path. If another file has the
/// name already, a number is appended.
///
/// # Errors
/// Those of the file system.
pub(crate) fn link_into(vfs: &dyn Vfs, source: &Path, quarantine: &Path, name: &str) -> Result<PathBuf> {
    let mut target = quarantine.join(name);
    let mut try_count = 1;
    while vfs.exists(&target).map_err(|error| Error::io("look for", &target, error))? {
        if has_same_bytes(vfs, source, &target)? {
            return Ok(target);
        }
        try_count += 1;
        target = quarantine.join(format!("{name}.{try_count}"));
    }
    // If links are not possible the file is copied: only a complete copy may get the final name.
    let unfinished = quarantine.join(UNFINISHED);
    match vfs.remove(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::io("remove", &unfinished, error));
        }
        _ => {}
    }
    link_or_copy(vfs, source, &unfinished)?;
    vfs.rename(&unfinished, &target).map_err(|error| Error::io("rename", &target, error))?;
    Ok(target)
}

fn has_same_bytes(vfs: &dyn Vfs, left: &Path, right: &Path) -> Result<bool> {
    let read = |path: &Path| vfs.read(path).map_err(|error| Error::io("read", path, error));
    Ok(read(left)? == read(right)?)
}

/// Creates the quarantine folder if it is missing and returns its path.
///
/// # Errors
/// Those of the file system.
pub(crate) fn create_folder(folder: &Folder) -> Result<PathBuf> {
    let quarantine = folder.path().join(QUARANTINE);
    folder.create_dir_all(&quarantine).map_err(|error| Error::io("create", &quarantine, error))?;
    Ok(quarantine)
}

#[cfg(test)]
mod tests;
