//! Gives a file a second name by a hard link, or copies it. A copy shares the disk blocks of its source where the file system can do that.
//!
//! The bytes of a copy are synced. The folder is not: the caller syncs it once for all files.

use std::{io::ErrorKind, path::Path};

use tamis_vfs::{Access, Vfs};

use crate::error::{Error, Result};

/// Bytes that are copied at a time.
const COPY_BYTES: u64 = 1 << 20;

/// How a file got its second name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    Linked,
    /// The number of copied bytes.
    Copied(u64),
}

/// Makes `source`, a file that does not change any more, available as `target` too.
///
/// # Errors
/// Those of the file system. A partial copy is removed.
pub(crate) fn link_or_copy(vfs: &dyn Vfs, source: &Path, target: &Path) -> Result<Placed> {
    match vfs.hard_link(source, target) {
        Ok(()) => Ok(Placed::Linked),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::AlreadyExists | ErrorKind::StorageFull
            ) =>
        {
            let path = if error.kind() == ErrorKind::NotFound { source } else { target };
            Err(Error::io("link", path, error))
        }
        // The target is on another file system, or links are not supported.
        Err(_) => copy(vfs, source, target).map(Placed::Copied),
    }
}

/// As [`link_or_copy`], but links `source` only if it is the only name of its file: without it, no name but `target` leads to the file.
///
/// # Errors
/// As [`link_or_copy`].
pub(crate) fn link_only_name_or_copy(vfs: &dyn Vfs, source: &Path, target: &Path) -> Result<Placed> {
    match vfs.is_only_name(source) {
        Ok(true) => link_or_copy(vfs, source, target),
        Ok(false) => copy(vfs, source, target).map(Placed::Copied),
        Err(error) => Err(Error::io("open", source, error)),
    }
}

/// Copies `source`, a file that does not change any more; returns the number of bytes.
///
/// # Errors
/// Those of the file system. A partial copy is removed.
pub(crate) fn copy(vfs: &dyn Vfs, source: &Path, target: &Path) -> Result<u64> {
    if vfs.clone_file(source, target).is_ok() {
        return sync_clone(vfs, target).inspect_err(|_| {
            let _ = vfs.remove(target);
        });
    }
    let file = vfs.open(source, Access::Buffered).map_err(|error| Error::io("open", source, error))?;
    let length = file.length().map_err(|error| Error::io("measure", source, error))?;
    let copied = write_new(vfs, target, |append| {
        let mut buffer = vec![0; length.min(COPY_BYTES) as usize];
        let mut offset = 0;
        while offset < length {
            let part = (length - offset).min(COPY_BYTES);
            let bytes = buffer.get_mut(..part as usize).unwrap_or_default();
            file.read_at(offset, bytes).map_err(|error| Error::io("read", source, error))?;
            append(bytes)?;
            offset += part;
        }
        Ok(())
    });
    copied.map(|()| length)
}

fn sync_clone(vfs: &dyn Vfs, target: &Path) -> Result<u64> {
    let file = vfs.open(target, Access::Buffered).map_err(|error| Error::io("open", target, error))?;
    file.sync().map_err(|error| Error::io("sync", target, error))?;
    file.length().map_err(|error| Error::io("measure", target, error))
}

/// Creates a file with the bytes that `fill` appends, and syncs it. An incomplete file is removed.
pub(crate) fn write_new(
    vfs: &dyn Vfs,
    path: &Path,
    fill: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let file = vfs.create(path).map_err(|error| Error::io("create", path, error))?;
    let filled = fill(&mut |bytes| file.append(bytes).map_err(|error| Error::io("append to", path, error)));
    filled.and_then(|()| file.sync().map_err(|error| Error::io("sync", path, error))).inspect_err(|_| {
        let _ = vfs.remove(path);
    })
}

/// The folder of `path`; the current folder for a bare name.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
