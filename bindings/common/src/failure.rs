//! Failures of calls: a stable code for programs and a sentence for people.

use std::fmt;

use tamis::{ConflictKeys, Error};
use tamis_filter::{BuildError, DecodeError};

/// The reason of a failure. The numbers are part of the C interface and never change their meaning.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// No failure.
    Ok = 0,
    /// An argument is invalid; the message contains its name and the valid values.
    InvalidArgument = 1,
    /// A file operation failed.
    Io = 2,
    /// The disk is full. Nothing was written; reads continue.
    DiskFull = 3,
    /// Bytes on disk or of a filter are damaged.
    Corruption = 4,
    /// The format of the files is not supported: they are from a newer version, or from before the first release.
    UnknownFormat = 5,
    /// The folder contains no database.
    NotADatabase = 6,
    /// A file that the database needs is missing.
    MissingFile = 7,
    /// Another process or handle has the database open.
    Locked = 8,
    /// The database is open read-only, or its folder is not writable.
    ReadOnly = 9,
    /// An earlier sync failed: writes are rejected, reads continue.
    WritesRefused = 10,
    /// The database was closed.
    Closed = 11,
    /// There is no keyspace with this name.
    KeyspaceNotFound = 12,
    /// A keyspace with this name exists.
    KeyspaceExists = 13,
    /// The keyspace was dropped.
    KeyspaceDropped = 14,
    /// A key, a value or a batch is too long, or a key is empty.
    Size = 15,
    /// A filter cannot be built for these keys with these parameters.
    FilterBuild = 16,
    /// The buffer of the caller is too small; the required length was stored.
    BufferTooSmall = 17,
    /// The handle was created before a fork and is used in the child process.
    Forked = 18,
    /// Another thread is using the handle.
    Busy = 19,
    /// A bug in Tamis: a panic was caught at the boundary.
    Panic = 20,
    /// A failure without a specific code.
    Other = 21,
    /// Another write has changed what the transaction has read or written; nothing of it was written. Run it again.
    Conflict = 22,
    /// The thread has an exclusive transaction open, for whose end the call would wait.
    ExclusiveTransaction = 23,
    /// The transaction was committed or rolled back.
    TransactionEnded = 24,
    /// The keyspace has a merge operator that this program does not have.
    MergeOperatorMissing = 25,
    /// The merge operator has no value for the key. Nothing is changed, and other keys are not affected.
    MergeFailed = 26,
    /// The log no longer has the next change of a feed. Read a snapshot, and begin a feed behind its sequence number.
    ChangesLost = 27,
}

/// The changed keys of [`Code::Conflict`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The name of the keyspace.
    pub keyspace: String,
    /// The key, or the range with a changed key.
    pub keys: ConflictKeys,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The code, for programs.
    pub code: Code,
    /// One sentence for people: the failure and the remedy.
    pub message: String,
    /// The keys of [`Code::Conflict`].
    pub conflict: Option<Box<Conflict>>,
    /// The first position at which a feed can begin, of [`Code::ChangesLost`].
    pub first_available: Option<u64>,
}

impl Failure {
    /// Creates a failure with a message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), conflict: None, first_available: None }
    }

    /// An invalid argument.
    pub fn argument(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// A closed database.
    pub fn closed() -> Self {
        Self::from(Error::Closed)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Io { .. } | Error::LockUnsupported { .. } | Error::FolderLost { .. } => Code::Io,
            Error::DiskFull { .. } => Code::DiskFull,
            Error::Corruption(_) => Code::Corruption,
            Error::UnknownEntryKind { .. }
            | Error::UnknownChange { .. }
            | Error::UnknownFormat { .. }
            | Error::ZstdUnavailable { .. } => Code::UnknownFormat,
            Error::NotADatabase { .. } => Code::NotADatabase,
            Error::MissingFile { .. } => Code::MissingFile,
            Error::Locked { .. } => Code::Locked,
            Error::KeyEmpty
            | Error::KeyTooLong { .. }
            | Error::ValueTooLong { .. }
            | Error::BatchTooLarge { .. } => Code::Size,
            Error::InvalidArgument { .. } | Error::KeyspaceOption { .. } => Code::InvalidArgument,
            Error::KeyspaceNotFound { .. } => Code::KeyspaceNotFound,
            Error::KeyspaceExists { .. } => Code::KeyspaceExists,
            Error::KeyspaceDropped => Code::KeyspaceDropped,
            Error::ReadOnly { .. } | Error::NotWritable { .. } | Error::ReaderRefused { .. } => {
                Code::ReadOnly
            }
            Error::WritesRefused { .. } => Code::WritesRefused,
            Error::Closed => Code::Closed,
            Error::Forked => Code::Forked,
            Error::Conflict { .. } => Code::Conflict,
            Error::ExclusiveTransaction => Code::ExclusiveTransaction,
            Error::MergeOperatorMissing { .. } => Code::MergeOperatorMissing,
            Error::MergeFailed { .. } => Code::MergeFailed,
            Error::ChangesLost { .. } => Code::ChangesLost,
            _ => Code::Other,
        };
        let mut failure = Self::new(code, error.to_string());
        match error {
            Error::Conflict { keyspace, keys } => {
                failure.conflict = Some(Box::new(Conflict { keyspace, keys }));
            }
            Error::ChangesLost { first_available } => failure.first_available = Some(first_available),
            _ => {}
        }
        failure
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        let code = match &error {
            BuildError::UnknownFamily { .. }
            | BuildError::UnknownParameter { .. }
            | BuildError::Parameter { .. }
            | BuildError::Budget { .. }
            | BuildError::BudgetMissing { .. } => Code::InvalidArgument,
            _ => Code::FilterBuild,
        };
        Self::new(code, error.to_string())
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        let code = match &error {
            DecodeError::Version { .. } | DecodeError::Digest { .. } | DecodeError::Family { .. } => {
                Code::UnknownFormat
            }
            _ => Code::Corruption,
        };
        Self::new(code, format!("{error}; build the filter again from its keys"))
    }
}

#[cfg(test)]
mod tests;
