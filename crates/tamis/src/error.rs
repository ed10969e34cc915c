//! Every way in which an operation can fail. Each message says what to do.
//!
//! Errors are values: bytes from disk never panic. They can be cloned, because one failed log append answers a whole
//! group of writers.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The result of every fallible call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What was found where something else had to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corruption {
    /// The damaged file.
    pub file: PathBuf,
    /// Offset in bytes of the damaged part (block, section or record) in the file.
    pub offset: u64,
    /// The damaged part.
    pub what: &'static str,
    /// What had to be there.
    pub expected: String,
    /// What was there.
    pub got: String,
}

/// Which program reads a file whose format this one does not.
fn program_for(found: u32, known: u32) -> &'static str {
    if found < known {
        "a program from before the first release wrote it: export the store with that one and load it anew"
    } else {
        "open it with a newer program"
    }
}

/// Why an operation failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a file operation.
    #[error("{operation} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's own error.
        #[source]
        source: Arc<io::Error>,
    },
    /// No space is left. Nothing was lost: the operation did not happen; free space and try again.
    #[error("{operation} {}: the disk is full; free space and try again (reads go on)", path.display())]
    DiskFull {
        /// What was tried, as a verb.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's own error.
        #[source]
        source: Arc<io::Error>,
    },
    /// Bytes on disk are not what was written.
    #[error("{}: damaged {} at offset {}: expected {}, got {}; restore the file from a copy, or run `tamis verify` to see all damage and `tamis repair` to keep what can be read",
        .0.file.display(), .0.what, .0.offset, .0.expected, .0.got)]
    Corruption(Box<Corruption>),
    /// A table holds an entry of a kind that this program does not know.
    #[error("{}: entry of unknown kind {kind} at offset {offset}; open the store with a newer program", file.display())]
    UnknownEntryKind {
        /// The table or log.
        file: PathBuf,
        /// Offset in bytes of the block or record.
        offset: u64,
        /// The kind's byte.
        kind: u8,
    },
    /// The manifest holds a change, or an option of a keyspace, that this program does not know and may not pass over.
    #[error("{}: {what} of unknown kind {kind} at offset {offset}; open the store with a newer program", file.display())]
    UnknownChange {
        /// The manifest.
        file: PathBuf,
        /// Offset in bytes of the record.
        offset: u64,
        /// "change" or "option".
        what: &'static str,
        /// Its tag.
        kind: u64,
    },
    /// A file's format is newer than this program, or older than any that it reads.
    #[error("{}: format version {found} is not known (newest known: {known}); {}", file.display(), program_for(*found, *known))]
    UnknownFormat {
        /// The file.
        file: PathBuf,
        /// Version found.
        found: u32,
        /// Newest version known.
        known: u32,
    },
    /// The folder holds something else than a Tamis database.
    #[error("{}: not a Tamis database ({found}); name an empty folder or an existing database", path.display())]
    NotADatabase {
        /// The folder.
        path: PathBuf,
        /// What is there instead.
        found: String,
    },
    /// The folder looks like a database but a file that it needs is not there.
    #[error("{}: missing; {advice}", path.display())]
    MissingFile {
        /// The file.
        path: PathBuf,
        /// What to do.
        advice: &'static str,
    },
    /// Another handle or process has the database open.
    #[error("{}: in use by another process or handle; close it first", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// A key of no bytes.
    #[error("the key is empty; keys have 1 to 65,535 bytes")]
    KeyEmpty,
    /// A key that is too long.
    #[error("the key has {length} bytes; keys have 1 to 65,535 bytes")]
    KeyTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// A value that is too long.
    #[error("the value has {length} bytes; values have at most 268,435,456 bytes (256 MiB)")]
    ValueTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// A batch that does not fit a log record.
    #[error("the batch has {length} bytes; a batch has at most {limit} bytes: split it")]
    BatchTooLarge {
        /// Its length in bytes.
        length: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// An option or argument outside its bounds.
    #[error("{what}: {got} is not possible; {expected}")]
    InvalidArgument {
        /// The option or argument.
        what: &'static str,
        /// The value given.
        got: String,
        /// What is possible.
        expected: String,
    },
    /// A filter has a parameter that its family does not know.
    #[error("filters: {filter:?} is not possible: {family} has no parameter {parameter:?}; it has: {known}")]
    UnknownFilterParameter {
        /// The filter as text.
        filter: String,
        /// The family's name.
        family: &'static str,
        /// The unknown parameter.
        parameter: String,
        /// All parameters of the family.
        known: &'static str,
    },
    /// No keyspace of this name exists.
    #[error("no keyspace named {name:?}; create it first")]
    KeyspaceNotFound {
        /// The name.
        name: String,
    },
    /// A keyspace of this name exists already.
    #[error("a keyspace named {name:?} exists already; open it, or choose another name")]
    KeyspaceExists {
        /// The name.
        name: String,
    },
    /// The keyspace was dropped while this handle was held.
    #[error("the keyspace was dropped; open or create it again")]
    KeyspaceDropped,
    /// The database was opened read-only.
    #[error("{}: opened read-only, so writes are refused; open it again without `read_only`", path.display())]
    ReadOnly {
        /// The folder.
        path: PathBuf,
    },
    /// The folder of the database can't be written.
    #[error("{}: can't be written; change its permissions, or open it with `read_only`", path.display())]
    NotWritable {
        /// The folder.
        path: PathBuf,
    },
    /// An earlier sync of the log or manifest failed, so what is on disk is not known: writes are refused, reads go on.
    #[error(
        "writes are refused since an earlier failure ({cause}); reads go on; close the store, mend the disk, and open it again"
    )]
    WritesRefused {
        /// The first failure.
        cause: Arc<str>,
    },
    /// The database was closed.
    #[error("the database was closed; open it again")]
    Closed,
}

impl Error {
    /// Wraps an operating-system error with what was tried on which path; a full disk becomes [`Error::DiskFull`].
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let is_full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let (path, source) = (path.to_path_buf(), Arc::new(source));
        if is_full {
            Self::DiskFull { operation, path, source }
        } else {
            Self::Io { operation, path, source }
        }
    }

    /// Damage at `offset` of `file`.
    pub(crate) fn corruption(
        file: &Path,
        offset: u64,
        what: &'static str,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Self {
        Self::Corruption(Box::new(Corruption {
            file: file.to_path_buf(),
            offset,
            what,
            expected: expected.into(),
            got: got.into(),
        }))
    }
}
