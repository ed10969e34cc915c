//! Readers next to a writer: how a reader registers in the folder of a store, and how the writer finds the files that readers need.
//!
//! `docs/format/readers.md` defines the files. A reader has a file in the subfolder `readers`, which it keeps locked ([`Vfs::create_exclusive`]): the
//! lock ends with its process. The file lists the tables, filters and views of the version that it reads, or nothing yet: then all files stay.
//!
//! # Invariants
//!
//! 1. *A reader registers before it reads a version*: it reads all that leads to it (`CURRENT`, the manifest and the log) while it has a file without a list,
//!    and then writes the list. A refresh that finds no edit reads the new records of the log with the list of the version that stays.
//! 2. *A writer looks after it has written*: it looks for readers after the edit that makes a file obsolete is in the manifest, and before it deletes the file.
//!
//! So either the writer finds the reader, or the reader finds the edit. A list is one append with a checksum: a partial one counts as none.
//!
//! Without a reader, a look costs one system call.
//!
//! [`Vfs::create_exclusive`]: tamis_vfs::Vfs::create_exclusive

use std::{
    collections::BTreeSet,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tamis_vfs::{File, Folder};

use crate::{
    coding::{Decoder, checksum, put_u32, put_u64, put_varint},
    error::{Error, Result},
    file_name::FileName,
};

/// The subfolder of a store in which readers register.
pub(crate) const READERS: &str = "readers";
/// The first bytes of the file of a reader: "TMrg".
const MAGIC: u32 = u32::from_le_bytes(*b"TMrg");
const VERSION: u32 = 1;
/// The kinds of files in a list, in its order.
const LISTED: [fn(u64) -> FileName; 3] = [FileName::Table, FileName::Filter, FileName::View];

/// A reader in this or another process that has the store open, and keeps files of it ([`crate::Statistics::readers`]).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderStatistics {
    /// The process of the reader; 0 if it is about to open its version: then all files stay.
    pub process_id: u32,
    /// How long the reader has been at its version.
    pub age: Duration,
    /// The sequence number of the last write that it sees.
    pub sequence: u64,
    /// Bytes of files that the store needs no longer and that this reader keeps.
    pub held_bytes: u64,
}

/// The version of a reader, as it registers it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReadVersion {
    pub(crate) process_id: u32,
    /// Milliseconds since 1970.
    pub(crate) since: u64,
    pub(crate) sequence: u64,
    /// Tables, filters and views.
    pub(crate) files: BTreeSet<FileName>,
}

impl ReadVersion {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_u32(&mut bytes, MAGIC);
        put_u32(&mut bytes, VERSION);
        put_u32(&mut bytes, self.process_id);
        put_u64(&mut bytes, self.since);
        put_u64(&mut bytes, self.sequence);
        for kind in LISTED {
            let numbers: Vec<u64> = self
                .files
                .iter()
                .filter_map(|name| name.number().filter(|number| kind(*number) == *name))
                .collect();
            put_varint(&mut bytes, numbers.len() as u64);
            let mut last = 0;
            for number in numbers {
                put_varint(&mut bytes, number - last);
                last = number;
            }
        }
        let sum = checksum(0, &bytes);
        put_u64(&mut bytes, sum);
        bytes
    }

    /// `None` for other bytes: those of a reader that has not written its list yet, or of a later program.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (covered, sum) = bytes.split_at_checked(bytes.len().checked_sub(size_of::<u64>())?)?;
        let mut fields = Decoder::new(covered);
        let is_known = fields.take_u32()? == MAGIC && fields.take_u32()? == VERSION;
        if !is_known || Decoder::new(sum).take_u64()? != checksum(0, covered) {
            return None;
        }
        let (process_id, since, sequence) = (fields.take_u32()?, fields.take_u64()?, fields.take_u64()?);
        let mut files = BTreeSet::new();
        for kind in LISTED {
            let mut number = 0_u64;
            for _ in 0..fields.take_varint()? {
                number = number.checked_add(fields.take_varint()?)?;
                files.insert(kind(number));
            }
        }
        Some(Self { process_id, since, sequence, files })
    }
}

/// The file of a reader. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct Registration {
    folder: Folder,
    path: PathBuf,
    file: Arc<dyn File>,
}

impl Registration {
    /// Registers a reader: no file of the store is deleted from now on.
    ///
    /// # Errors
    /// [`Error::LockUnsupported`]; [`Error::Io`], of the kind [`ErrorKind::PermissionDenied`] or [`ErrorKind::ReadOnlyFilesystem`] if this
    /// process can't create the file.
    pub(crate) fn create(folder: &Folder) -> Result<Self> {
        let readers = folder.path().join(READERS);
        if !folder.exists(&readers).map_err(|error| Error::io("look for", &readers, error))? {
            folder.create_dir_all(&readers).map_err(|error| Error::io("create", &readers, error))?;
        }
        let mut number = 0_u32;
        loop {
            let path = readers.join(format!("{number:06}.reader"));
            number += 1;
            let file = match folder.create_exclusive(&path) {
                // Another reader has this name, or a writer looks whether the new file is locked.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                // A reader of another user has this name.
                Err(error)
                    if error.kind() == ErrorKind::PermissionDenied
                        && folder.exists(&path).unwrap_or(false) =>
                {
                    continue;
                }
                created => created.map_err(|error| Error::io("create", &path, error))?,
            };
            let registration = Self { folder: folder.clone(), path, file };
            // Also for writers of other users, if the umask of this process hides new files.
            let path = &registration.path;
            folder.make_readable(path).map_err(|error| Error::io("make readable", path, error))?;
            let unsupported =
                |error| Error::LockUnsupported { path: folder.path().to_path_buf(), source: Arc::new(error) };
            return match folder.is_locked(&registration.path) {
                Ok(true) => Ok(registration),
                Ok(false) => Err(unsupported(io::Error::from(ErrorKind::Unsupported))),
                Err(error) => Err(unsupported(error)),
            };
        }
    }

    /// From now on only these files stay. To be called once.
    ///
    /// # Errors
    /// Those of the file system. All files stay then.
    pub(crate) fn set_version(&self, version: &ReadVersion) -> Result<()> {
        self.file.append(&version.encode()).map_err(|error| Error::io("append to", &self.path, error))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.folder.process().is_current() {
            // The writer removes a file that is left.
            let _ = self.folder.remove(&self.path);
        }
    }
}

/// The readers that a writer has found.
#[derive(Debug, Default)]
pub(crate) struct RegisteredReaders {
    /// `None`: one that has not written its list yet.
    versions: Vec<Option<ReadVersion>>,
}

impl RegisteredReaders {
    /// Looks for readers, and removes the files of those that ended without removing it.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn find(folder: &Folder) -> Result<Self> {
        let path = &folder.path().join(READERS);
        let mut names = list(folder, path)?;
        // A list that changes while it is read may have neither the old nor the new file of a reader.
        loop {
            if names.is_empty() {
                return Ok(Self::default());
            }
            let versions = names.iter().filter_map(|name| version_of(folder, &path.join(name))).collect();
            let again = list(folder, path)?;
            if again == names {
                return Ok(Self { versions });
            }
            names = again;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    /// Whether a reader has not written its list yet: it may need any file.
    pub(crate) fn may_need_all(&self) -> bool {
        self.versions.iter().any(Option::is_none)
    }

    /// Whether a reader needs, or may need, this file.
    pub(crate) fn need(&self, name: FileName) -> bool {
        self.versions
            .iter()
            .any(|version| version.as_ref().is_none_or(|version| version.files.contains(&name)))
    }

    /// Each reader with the bytes that it keeps, at `now`, in milliseconds since 1970. `obsolete_bytes` returns the bytes of a file that the store
    /// no longer needs, and 0 for others.
    pub(crate) fn statistics(
        &self,
        obsolete_bytes: impl Fn(FileName) -> u64,
        now: u64,
    ) -> Vec<ReaderStatistics> {
        let of_reader = |version: &Option<ReadVersion>| match version {
            Some(version) => ReaderStatistics {
                process_id: version.process_id,
                age: Duration::from_millis(now.saturating_sub(version.since)),
                sequence: version.sequence,
                held_bytes: version.files.iter().map(|name| obsolete_bytes(*name)).sum(),
            },
            None => ReaderStatistics { process_id: 0, age: Duration::ZERO, sequence: 0, held_bytes: 0 },
        };
        self.versions.iter().map(of_reader).collect()
    }
}

/// The names of the files of readers.
fn list(folder: &Folder, readers: &Path) -> Result<Vec<String>> {
    match folder.list(readers) {
        Ok(entries) => {
            Ok(entries.into_iter().filter(|entry| !entry.is_dir).map(|entry| entry.name).collect())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io("list", readers, error)),
    }
}

/// The version of a reader; `None` if it has ended. It may need all files if its file can't be read.
fn version_of(folder: &Folder, path: &Path) -> Option<Option<ReadVersion>> {
    match folder.is_locked(path) {
        // The reader has ended, or it has created the file and not locked it yet: only the process that locks the file may remove it.
        Ok(false) => match folder.create_exclusive(path) {
            Ok(_locked) => {
                let _ = folder.remove(path);
                return None;
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            // It stays, without an effect.
            Err(_) => return None,
        },
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        // It is unknown whether the reader has ended.
        Ok(true) | Err(_) => {}
    }
    match folder.read(path) {
        Ok(bytes) => Some(ReadVersion::decode(&bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(_) => Some(None),
    }
}

#[cfg(test)]
mod tests;
