//! A file under a second name: by a hard link where the file system allows it, by a copy where it does not.
//!
//! The new name is not synced into its folder: the caller does that once for all files. A copy's bytes are synced.

use std::{io::ErrorKind, path::Path};

use tamis_vfs::{Access, Vfs};

use crate::error::{Error, Result};

/// Bytes that a copy takes at a time.
const COPY_BYTES: u64 = 1 << 20;

/// How a file got its second name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    Linked,
    /// So many bytes were copied.
    Copied(u64),
}

/// Gives the bytes of `source`, a file that does not change any more, the name `target` too.
///
/// # Errors
/// The system's. What a failed copy left is removed.
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
        // Another file system, or one without links.
        Err(_) => copy(vfs, source, target).map(Placed::Copied),
    }
}

fn copy(vfs: &dyn Vfs, source: &Path, target: &Path) -> Result<u64> {
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

/// Makes a new file of what `fill` appends, synced. A file that could not be finished is removed.
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

/// The folder that holds `path`; a bare name lies in the current one.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
