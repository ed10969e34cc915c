//! The errors of backups. Each message is one sentence that says what happened, and what to do.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
};

/// The result of every fallible call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation failed. Nothing that was complete before is lost.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The store returned an error.
    #[error("{0}")]
    Store(#[from] tamis::Error),
    /// A request to the target failed.
    #[error("{operation} {target}/{object}: {source}; {}", target_advice(source))]
    Target {
        /// The operation, as a verb.
        operation: &'static str,
        /// The target.
        target: String,
        /// The object.
        object: String,
        /// The cause.
        #[source]
        source: Arc<io::Error>,
    },
    /// A local file operation failed.
    #[error("{operation} {}: {source}; {}", path.display(), file_advice(source))]
    File {
        /// The operation, as a verb.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: Arc<io::Error>,
    },
    /// The address of the target can't be used.
    #[error("{address}: {reason}; name a folder or s3://bucket/path")]
    Address {
        /// The address as given.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The program was built without S3.
    #[error(
        "{address}: this program was built without S3; install it with `cargo install --profile dist --path crates/tamis-cli --features s3`"
    )]
    S3Unavailable {
        /// The address as given.
        address: String,
    },
    /// There are no credentials for S3.
    #[error(
        "{address}: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the AWS_* variables of a role (on EC2: AWS_METADATA_ENDPOINT=http://169.254.169.254)"
    )]
    NoCredentials {
        /// The address as given.
        address: String,
    },
    /// The target has no backups.
    #[error("{target}: {found}; name the target of a backup")]
    NotATarget {
        /// The target.
        target: String,
        /// The content found.
        found: String,
    },
    /// A first backup found other objects in the target.
    #[error(
        "{target}: holds something else ({found:?}); name an empty or new target, or one with backups of this store"
    )]
    Foreign {
        /// The target.
        target: String,
        /// An object that is there.
        found: String,
    },
    /// The target has backups of another store.
    #[error(
        "{target}: has backups of another store (id {holds}, this store has {store}); name another target for this store"
    )]
    OtherStore {
        /// The target.
        target: String,
        /// The id of the store in the target.
        holds: String,
        /// The id of the store of this backup.
        store: String,
    },
    /// A newer program wrote the object.
    #[error("{target}/{object}: unknown format version {found}; use a newer program")]
    UnknownFormat {
        /// The target.
        target: String,
        /// The object.
        object: String,
        /// The version.
        found: u32,
    },
    /// An object is damaged or missing.
    #[error(
        "{target}/{object}: {what}; run `tamis backup verify` to see which backups need it, and restore another one"
    )]
    Damaged {
        /// The target.
        target: String,
        /// The object.
        object: String,
        /// The difference.
        what: String,
    },
    /// Objects that are unused can't be determined.
    #[error(
        "{target}/{object}: {what}, so it is unknown which objects its backup needs, and nothing was removed; delete this object to give the backup up"
    )]
    Unprunable {
        /// The target.
        target: String,
        /// The object.
        object: String,
        /// The difference.
        what: String,
    },
    /// No backup matches.
    #[error("{target}: no backup {wanted}; {known}")]
    NoBackup {
        /// The target.
        target: String,
        /// The number, id or time as given.
        wanted: String,
        /// The backups that there are.
        known: String,
    },
    /// The clock jumped back, so that a time names no state.
    #[error(
        "{target}: the clock jumped back between backups {earlier} and {later}, so {time} names several states; name a backup by its number"
    )]
    ClockJumped {
        /// The target.
        target: String,
        /// The time as given.
        time: String,
        /// A backup with a later time.
        earlier: u64,
        /// A backup after it with an earlier time.
        later: u64,
    },
    /// The folder of a restore has files.
    #[error("{}: contains {found:?}; name a folder that is new or empty", path.display())]
    FolderNotEmpty {
        /// The folder.
        path: PathBuf,
        /// A file in it.
        found: String,
    },
    /// The disk has too little space for a restore.
    #[error("{}: {free} bytes are free, the backup has {needed}; free space, or name a folder on another disk", path.display())]
    NoSpace {
        /// The folder.
        path: PathBuf,
        /// Bytes that are free.
        free: u64,
        /// Bytes of the backup.
        needed: u64,
    },
    /// The restored store is not the one that was backed up.
    #[error("{}: the restored store ends at sequence number {got}, its backup at {expected}; restore another backup", path.display())]
    WrongSequence {
        /// The folder.
        path: PathBuf,
        /// The number in the backup.
        expected: u64,
        /// The number of the restored store.
        got: u64,
    },
    /// Another operation excludes this one.
    #[error("{target}: in use by {holders}; try again when it has ended")]
    Busy {
        /// The target.
        target: String,
        /// The operations.
        holders: String,
    },
    /// The process was stopped for so long that a prune did not wait for it.
    #[error(
        "{target}: this process did not run for too long, and a prune did not wait for it; run the command again"
    )]
    LeaseLost {
        /// The target.
        target: String,
    },
    /// The progress reporter asked for the end.
    #[error("interrupted; run the command again to continue")]
    Cancelled,
}

impl Error {
    pub(crate) fn file(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { operation, path: path.to_owned(), source: Arc::new(source) }
    }

    /// Whether the same operation may succeed later without a change by the user.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Target { source, .. } => source.kind() != ErrorKind::PermissionDenied,
            Self::File { .. } | Self::Busy { .. } | Self::LeaseLost { .. } => true,
            Self::Store(error) => matches!(
                error,
                tamis::Error::Io { .. } | tamis::Error::DiskFull { .. } | tamis::Error::Locked { .. }
            ),
            _ => false,
        }
    }
}

fn target_advice(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::NotFound => "check that the folder or bucket exists",
        ErrorKind::PermissionDenied => "check the credentials and the permissions of the target",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free space and run the command again, which continues"
        }
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => "a part of the path is a file; name a folder",
        _ => "check the connection, and run the command again, which continues",
    }
}

fn file_advice(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::NotFound => "check that the path exists",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "check the permissions, or name another folder"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free space and try again",
        _ => "check the path and the disk",
    }
}
