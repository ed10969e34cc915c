//! Why a call failed: a stable code for programs and a sentence for people.

use std::fmt;

use tamis::Error;
use tamis_filter::{BuildError, DecodeError};

/// The reason of a failure. The numbers are part of the C interface and never change their meaning.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// No failure.
    Ok = 0,
    /// An argument is outside its bounds; the message names it and what is possible.
    InvalidArgument = 1,
    /// The operating system refused a file operation.
    Io = 2,
    /// No space is left on the disk. Nothing was written; reads go on.
    DiskFull = 3,
    /// Bytes on disk, or of a filter, are damaged.
    Corruption = 4,
    /// The files were written by a newer version, or by one from before the first release.
    UnknownFormat = 5,
    /// The folder holds no database.
    NotADatabase = 6,
    /// A file that the database needs is missing.
    MissingFile = 7,
    /// Another process or handle has the database open.
    Locked = 8,
    /// The database was opened read-only, or its folder can't be written.
    ReadOnly = 9,
    /// An earlier sync failed: writes are refused, reads go on.
    WritesRefused = 10,
    /// The database was closed.
    Closed = 11,
    /// No keyspace has this name.
    KeyspaceNotFound = 12,
    /// A keyspace has this name already.
    KeyspaceExists = 13,
    /// The keyspace was dropped.
    KeyspaceDropped = 14,
    /// A key, a value or a batch is too long, or a key is empty.
    Size = 15,
    /// A filter can't be built for these keys with these parameters.
    FilterBuild = 16,
    /// The caller's buffer is too small; the length that is needed was stored.
    BufferTooSmall = 17,
    /// The handle was made before a fork and is used in the child process.
    Forked = 18,
    /// The handle is used by another thread at this moment.
    Busy = 19,
    /// A bug in Tamis: a panic was caught at the boundary.
    Panic = 20,
    /// A failure that has no code of its own.
    Other = 21,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The reason for programs.
    pub code: Code,
    /// One sentence for people: what failed, and what to do.
    pub message: String,
}

impl Failure {
    /// A failure with its sentence.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// An argument that is not possible.
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
            Error::Io { .. } => Code::Io,
            Error::DiskFull { .. } => Code::DiskFull,
            Error::Corruption(_) => Code::Corruption,
            Error::UnknownEntryKind { .. } | Error::UnknownChange { .. } | Error::UnknownFormat { .. } => {
                Code::UnknownFormat
            }
            Error::NotADatabase { .. } => Code::NotADatabase,
            Error::MissingFile { .. } => Code::MissingFile,
            Error::Locked { .. } => Code::Locked,
            Error::KeyEmpty
            | Error::KeyTooLong { .. }
            | Error::ValueTooLong { .. }
            | Error::BatchTooLarge { .. } => Code::Size,
            Error::InvalidArgument { .. } => Code::InvalidArgument,
            Error::KeyspaceNotFound { .. } => Code::KeyspaceNotFound,
            Error::KeyspaceExists { .. } => Code::KeyspaceExists,
            Error::KeyspaceDropped => Code::KeyspaceDropped,
            Error::ReadOnly { .. } | Error::NotWritable { .. } => Code::ReadOnly,
            Error::WritesRefused { .. } => Code::WritesRefused,
            Error::Closed => Code::Closed,
            _ => Code::Other,
        };
        Self { code, message: error.to_string() }
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
        Self { code, message: error.to_string() }
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
        Self { code, message: format!("{error}; build the filter again from its keys") }
    }
}
