//! The folder `lost` of a store: files that the store does not name, and that may hold what is nowhere else, are put there
//! instead of being deleted.
//!
//! A file gets its new name first, and loses the old one later, when the caller has synced the folder of lost files. Whatever
//! ends the process in between, the next one puts it there again and finds the same bytes.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use tamis_vfs::Vfs;

use crate::{
    error::{Error, Result},
    link::link_or_copy,
};

/// The folder's name, within that of the store.
pub(crate) const LOST: &str = "lost";
/// A file of which not all bytes are there yet.
const UNFINISHED: &str = "unfinished";

/// Gives a file of the store a second name in the folder of lost files, which must be there; gives that name. A file of other
/// bytes that has the name already keeps it.
///
/// # Errors
/// The system's.
pub(crate) fn keep(vfs: &dyn Vfs, source: &Path, lost: &Path, name: &str) -> Result<PathBuf> {
    let mut target = lost.join(name);
    let mut try_count = 1;
    while vfs.exists(&target).map_err(|error| Error::io("look for", &target, error))? {
        if is_same(vfs, source, &target)? {
            return Ok(target);
        }
        try_count += 1;
        target = lost.join(format!("{name}.{try_count}"));
    }
    // Where it is a copy, a name stands only for all of it.
    let unfinished = lost.join(UNFINISHED);
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

fn is_same(vfs: &dyn Vfs, left: &Path, right: &Path) -> Result<bool> {
    let read = |path: &Path| vfs.read(path).map_err(|error| Error::io("read", path, error));
    Ok(read(left)? == read(right)?)
}

/// Makes the folder of lost files where it is not there; its path.
///
/// # Errors
/// The system's.
pub(crate) fn make(vfs: &dyn Vfs, folder: &Path) -> Result<PathBuf> {
    let lost = folder.join(LOST);
    vfs.create_dir_all(&lost).map_err(|error| Error::io("create", &lost, error))?;
    Ok(lost)
}

#[cfg(test)]
mod tests;
