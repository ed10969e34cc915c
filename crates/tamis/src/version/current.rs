//! `CURRENT`: the small file that names the current manifest (`docs/format/manifest.md`, "CURRENT").
//!
//! It is replaced by write, sync, rename and sync of the folder, so that a crash leaves the old file or the new one. It
//! also has the synced length of the manifest when it was written: a manifest that is shorter is damaged, not torn.

use std::path::Path;

use tamis_vfs::Folder;

use super::{
    failure::Failure,
    header::{HEADER_BYTES, HeaderKind},
};
use crate::{
    error::{Error, Result},
    file_name::FileName,
};

/// The first bytes: "TMcu".
pub(crate) const MAGIC: u32 = u32::from_le_bytes(*b"TMcu");
/// The fields of [`Current`].
const HEADER: HeaderKind = HeaderKind { magic: MAGIC, version: 1, name: "name of the manifest" };

/// The contents of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Current {
    /// The number of the current manifest.
    pub(crate) manifest: u64,
    /// Length of the manifest when this file was written. All of it was synced.
    pub(crate) manifest_bytes: u64,
}

impl Current {
    fn encode(self) -> Vec<u8> {
        HEADER.encode([self.manifest, self.manifest_bytes])
    }

    pub(crate) fn decode(bytes: &[u8], file: &Path) -> Result<Self> {
        if bytes.len() > HEADER_BYTES {
            let got = format!("{} bytes", bytes.len());
            return Err(HEADER.damage(file, 0, format!("{HEADER_BYTES} bytes"), got));
        }
        let [manifest, manifest_bytes] = HEADER.decode(bytes, file)?;
        Ok(Self { manifest, manifest_bytes })
    }

    /// # Errors
    /// [`Error::MissingFile`] if there is no `CURRENT`, [`Error::Corruption`], [`Error::UnknownFormat`], or the system's.
    pub(crate) fn read(folder: &Folder) -> Result<Self> {
        let path = FileName::Current.path(folder);
        match folder.read(&path) {
            Ok(bytes) => Self::decode(&bytes, &path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Error::MissingFile {
                path,
                advice: "it names the current manifest: restore it from a copy, or run `tamis repair`",
            }),
            Err(error) => Err(Error::io("read", &path, error)),
        }
    }

    /// Makes a written and synced manifest the current one.
    ///
    /// # Errors
    /// The system's. Before the rename the old file is certainly still there. After a failed rename or sync it is unknown
    /// which file is there: the failure is fatal.
    pub(crate) fn switch(self, folder: &Folder) -> Result<(), Failure> {
        let temporary = FileName::Temporary(self.manifest).path(folder);
        let written = self.write_temporary(folder, &temporary);
        if let Err(failure) = written {
            let _ = folder.remove(&temporary);
            return Err(failure);
        }
        let path = FileName::Current.path(folder);
        folder
            .rename(&temporary, &path)
            .map_err(|error| Failure::fatal(Error::io("rename", &path, error)))?;
        folder.sync().map_err(|error| Failure::fatal(Error::io("sync", folder.path(), error)))
    }

    fn write_temporary(self, folder: &Folder, temporary: &Path) -> Result<(), Failure> {
        let file = folder
            .create(temporary)
            .map_err(|error| Failure::retryable(Error::io("create", temporary, error)))?;
        file.append(&self.encode())
            .map_err(|error| Failure::retryable(Error::io("append to", temporary, error)))?;
        file.sync().map_err(|error| Failure::fatal(Error::io("sync", temporary, error)))?;
        // The manifest's own name must be durable before `CURRENT` names it.
        folder.sync().map_err(|error| Failure::fatal(Error::io("sync", folder.path(), error)))
    }
}
