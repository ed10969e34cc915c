//! The folder of a store: its path, and whether it is still the folder that was opened.
//!
//! A store uses its files through the open folder ([`Folder`]): it follows the folder when it is renamed. A folder that was removed, or
//! whose name another folder has, takes no more writes. This is checked before the log is synced, before a log segment or an edit of the
//! manifest is written, when a flush or a job of the program begins, and when the store is closed.

use std::path::{Path, PathBuf};

use tamis_vfs::Folder;

use crate::error::{Error, Result};

/// The path that does not depend on the current folder of the process, which may change.
///
/// # Errors
/// [`Error::Io`] for an empty path, or if the current folder was removed.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::io("find", path, error))
}

/// # Errors
/// [`Error::FolderLost`] if the folder was removed, or another folder has its name.
pub(crate) fn check(folder: &Folder) -> Result<()> {
    folder.check_folder().map_err(|error| Error::FolderLost {
        path: folder.path().to_path_buf(),
        reason: error.to_string().into(),
    })
}
