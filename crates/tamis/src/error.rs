//! The errors of the store. Each message says what happened, with the value that caused it, and what to do.
//!
//! Bytes from disk never cause a panic. Errors can be cloned, because one failed log append is the result of a whole group of
//! writers.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The result of every fallible call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Damaged bytes in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corruption {
    /// The damaged file.
    pub file: PathBuf,
    /// Offset in bytes of the damaged part (block, section or record) in the file.
    pub offset: u64,
    /// The damaged part.
    pub what: &'static str,
    /// The expected content.
    pub expected: String,
    /// The content found.
    pub got: String,
}

/// Which program can read a file of an unknown format version.
fn program_for(found: u32, known: u32) -> &'static str {
    if found < known {
        "an older version of Tamis wrote it: export the store with that version and import it into a new store"
    } else {
        "open it with a newer program"
    }
}

/// The keys of a conflict ([`Error::Conflict`]).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConflictKeys {
    /// A key.
    Key(Vec<u8>),
    /// A range, of which at least one key was changed, put or deleted.
    Range {
        /// Included.
        lower: Vec<u8>,
        /// Excluded; `None`: no end.
        upper: Option<Vec<u8>>,
    },
}

impl fmt::Display for ConflictKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(formatter, "the key \"{}\"", key.escape_ascii()),
            Self::Range { lower, upper: None } => {
                write!(formatter, "a key from \"{}\" on", lower.escape_ascii())
            }
            Self::Range { lower, upper: Some(upper) } => {
                let (lower, upper) = (lower.escape_ascii(), upper.escape_ascii());
                write!(formatter, "a key from \"{lower}\" up to \"{upper}\"")
            }
        }
    }
}

/// Why an operation failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation failed.
    #[error("{operation} {}: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's own error.
        #[source]
        source: Arc<io::Error>,
    },
    /// The disk is full. The operation had no effect and nothing was lost: free space and try again.
    #[error("{operation} {}: the disk is full; free space and try again (reads still work)", path.display())]
    DiskFull {
        /// The operation, as a verb.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's own error.
        #[source]
        source: Arc<io::Error>,
    },
    /// A file is damaged.
    #[error("{}: damaged {} at offset {}: expected {}, got {}; restore the file from a copy, or run `tamis verify` to list all damage and `tamis repair` to keep all readable entries",
        .0.file.display(), .0.what, .0.offset, .0.expected, .0.got)]
    Corruption(Box<Corruption>),
    /// A table or log holds an entry of an unknown kind, written by a newer program.
    #[error("{}: entry of unknown kind {kind} at offset {offset}; open the store with a newer program", file.display())]
    UnknownEntryKind {
        /// The table or log.
        file: PathBuf,
        /// Offset in bytes of the block or record.
        offset: u64,
        /// The kind's byte.
        kind: u8,
    },
    /// The manifest holds a change, a keyspace option or a filter that is unknown and must not be ignored, written by another version.
    #[error("{}: unknown {what} {kind} at offset {offset}: another version of Tamis wrote it; open the store with that version", file.display())]
    UnknownChange {
        /// The manifest.
        file: PathBuf,
        /// Offset in bytes of the record.
        offset: u64,
        /// "change", "option" or "filter".
        what: &'static str,
        /// The tag of a change or an option, the name of a filter with its parameters.
        kind: String,
    },
    /// A file has a format version that this program can't read.
    #[error("{}: unknown format version {found} (newest known version: {known}); {}", file.display(), program_for(*found, *known))]
    UnknownFormat {
        /// The file.
        file: PathBuf,
        /// Version found.
        found: u32,
        /// Newest version known.
        known: u32,
    },
    /// Blocks are or would be compressed with Zstandard, and the program was built without the feature `zstd` of the crate `tamis`.
    #[error(
        "{place}: compressed with Zstandard, which this program was built without; build it with the feature `zstd` of the crate `tamis`"
    )]
    ZstdUnavailable {
        /// The table, or the keyspace whose option `compression` says so.
        place: String,
    },
    /// The folder does not hold a Tamis store.
    #[error("{}: not a Tamis store ({found}); name the folder of a store, or an empty or new folder to create one", path.display())]
    NotADatabase {
        /// The folder.
        path: PathBuf,
        /// The content found.
        found: String,
    },
    /// A file that the store needs is missing.
    #[error("{}: the file is missing; {advice}", path.display())]
    MissingFile {
        /// The file.
        path: PathBuf,
        /// The advice to the program.
        advice: &'static str,
    },
    /// Another process or handle has the store open.
    #[error("{}: the store is open {holders}; close it there first", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The owners of the lock, if the system reports them: "for writing by process 4711".
        holders: String,
    },
    /// The file system can't lock folders, or other machines do not see its locks.
    #[error("{}: the file system can't lock the folder ({source}); use a local file system, or switch `Options::lock` off and make sure that no other process or handle opens the store", path.display())]
    LockUnsupported {
        /// The folder.
        path: PathBuf,
        /// The operating system's own error.
        #[source]
        source: Arc<io::Error>,
    },
    /// The folder of an open store was removed, or was moved and another folder took its name. Nothing is written any more.
    #[error("{}: {reason} while the store was open; close the store, and open it where its folder is now", path.display())]
    FolderLost {
        /// The path by which the folder was opened.
        path: PathBuf,
        /// The change of the folder: removed, or replaced.
        reason: Arc<str>,
    },
    /// The key is empty.
    #[error("the key is empty; use 1 to 65,535 bytes")]
    KeyEmpty,
    /// The key is too long.
    #[error("the key has {length} bytes; use 1 to 65,535 bytes")]
    KeyTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// The value is too long.
    #[error("the value has {length} bytes; use at most 268,435,456 bytes (256 MiB)")]
    ValueTooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// The batch does not fit into a log record.
    #[error("the batch has {length} bytes; split it into batches of at most {limit} bytes")]
    BatchTooLarge {
        /// Its length in bytes.
        length: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// An option or argument is invalid.
    #[error("invalid {what}: {got}; {expected}")]
    InvalidArgument {
        /// The option or argument.
        what: &'static str,
        /// The invalid value.
        got: String,
        /// The values that are valid.
        expected: String,
    },
    /// A filter has a parameter that its family does not have.
    #[error(
        "invalid filters: {filter:?}: {family} has no parameter {parameter:?}; use one of its parameters: {known}"
    )]
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
    /// There is no keyspace of this name.
    #[error("there is no keyspace {name:?}; create it first")]
    KeyspaceNotFound {
        /// The name.
        name: String,
    },
    /// There is already a keyspace of this name.
    #[error("keyspace {name:?} exists already; open it or choose another name")]
    KeyspaceExists {
        /// The name.
        name: String,
    },
    /// An option of an existing keyspace, which is stored, differs from the given one.
    #[error(
        "keyspace {keyspace:?} was created with {option} = {stored}, not {given}; leave the option out to open it as it is; {advice}"
    )]
    KeyspaceOption {
        /// The name of the keyspace.
        keyspace: String,
        /// The name of the option.
        option: &'static str,
        /// The stored value.
        stored: String,
        /// The given value.
        given: String,
        /// How the stored value can be changed.
        advice: &'static str,
    },
    /// A keyspace has a merge operator that the program did not give.
    #[error(
        "keyspace {keyspace:?} has the merge operator {operator:?}, which this program did not give; add it to `Options::merge_operators`"
    )]
    MergeOperatorMissing {
        /// The name of the keyspace.
        keyspace: String,
        /// The name of the operator.
        operator: String,
    },
    /// The merge operator has no value for a key. Nothing is changed, and other keys are not affected.
    #[error(
        "the merge operator {operator:?} of keyspace {keyspace:?} fails for the key {}: {reason}; put or delete the key, or fix the operator", key.escape_ascii()
    )]
    MergeFailed {
        /// The name of the keyspace.
        keyspace: String,
        /// The name of the operator.
        operator: String,
        /// The key.
        key: Vec<u8>,
        /// The message of the operator.
        reason: String,
    },
    /// The keyspace of this handle was dropped.
    #[error("the keyspace was dropped; open or create it again")]
    KeyspaceDropped,
    /// The store was opened read-only.
    #[error("{}: the store is open read-only; open it for writing", path.display())]
    ReadOnly {
        /// The folder.
        path: PathBuf,
    },
    /// The log no longer has the next change of a feed. Take a snapshot, and begin another feed behind its sequence number.
    #[error(
        "the log no longer has the next change; the first available position is {first_available}: read a snapshot, and begin a feed behind its sequence number (`keep_changes` keeps the log longer)"
    )]
    ChangesLost {
        /// The first position at which a feed can begin.
        first_available: u64,
    },
    /// A process has the store open for writing, and this one may not register as a reader.
    #[error(
        "{}: another process has the store open, and this process may not register as a reader next to it; let this user create files in this folder, or close the other process", path.display()
    )]
    ReaderRefused {
        /// The folder in which readers register.
        path: PathBuf,
    },
    /// The folder of the store can't be written.
    #[error("{}: the folder can't be written; change its permissions or open the store as a reader", path.display())]
    NotWritable {
        /// The folder.
        path: PathBuf,
    },
    /// A sync of the log or manifest failed, so the bytes on disk are not known; or code panicked. Writes are refused, reads still
    /// work.
    #[error(
        "writes are refused after a background error ({cause}); reads still work; fix the cause, then close the store and open it again"
    )]
    WritesRefused {
        /// The background error.
        cause: Arc<str>,
    },
    /// Code of the program (its file system, clock or event listener) or of Tamis panicked. Writes are refused since then.
    #[error(
        "panic during: {operation}: {message}; fix the file system, clock or listener of the program, or report a bug of Tamis"
    )]
    Panicked {
        /// The operation, as a verb.
        operation: &'static str,
        /// The text of the panic.
        message: Arc<str>,
    },
    /// Another write has changed what a transaction has read or written. Nothing of it was written.
    #[error(
        "another write has changed {keys} of keyspace {keyspace:?} since the transaction began, and nothing of it was written; run it again (`Db::transact` does so)"
    )]
    Conflict {
        /// The name of the keyspace.
        keyspace: String,
        /// The key, or the range with a changed key.
        keys: ConflictKeys,
    },
    /// The thread that calls has an exclusive transaction open, for whose end this write would wait.
    #[error(
        "this thread has an exclusive transaction open; write through the transaction, or commit or drop it first"
    )]
    ExclusiveTransaction,
    /// The store was closed.
    #[error("the store was closed; open it again")]
    Closed,
    /// The store was opened before a fork, and this is the child process.
    #[error(
        "the store belongs to the parent process; open it in one process only, and open it after the fork"
    )]
    Forked,
}

impl Error {
    /// Adds the operation and the path to an error of the operating system; a full disk becomes [`Error::DiskFull`].
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        let is_full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let (path, source) = (path.to_path_buf(), Arc::new(source));
        if is_full {
            Self::DiskFull { operation, path, source }
        } else {
            Self::Io { operation, path, source }
        }
    }

    /// Whether the same read will fail again: the bytes are damaged or missing. Other errors of the system may pass.
    pub(crate) fn is_lasting_damage(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof)
            }
            Self::DiskFull { .. } | Self::ZstdUnavailable { .. } | Self::Closed | Self::Forked => false,
            _ => true,
        }
    }

    /// The error without its file and without advice, for reports that name the file: a repair has followed the advice already.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Corruption(found) => {
                let Corruption { offset, what, expected, got, .. } = &**found;
                format!("{what} at offset {offset}: expected {expected}, got {got}")
            }
            Self::MissingFile { .. } => "the file is missing".to_owned(),
            other => other.to_string(),
        }
    }

    /// Replaces the path of a linked file, which will be removed, by the path that the program knows.
    pub(crate) fn at_path(self, path: &Path) -> Self {
        let file = path.to_path_buf();
        match self {
            Self::Corruption(found) => Self::Corruption(Box::new(Corruption { file, ..*found })),
            Self::UnknownEntryKind { offset, kind, .. } => Self::UnknownEntryKind { file, offset, kind },
            Self::UnknownFormat { found, known, .. } => Self::UnknownFormat { file, found, known },
            other => other,
        }
    }

    /// A table with blocks that only a program with Zstandard reads.
    #[cfg(not(feature = "zstd"))]
    pub(crate) fn zstd_unavailable(table: &Path) -> Self {
        Self::ZstdUnavailable { place: table.display().to_string() }
    }

    /// Damaged bytes at `offset` of `file`.
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
