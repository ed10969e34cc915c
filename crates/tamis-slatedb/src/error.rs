//! Errors of the configuration, of samples of queries, and of the check of a store; each says what to do.

use slatedb::object_store;
use tamis_filter::BuildError;
use thiserror::Error;

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A family, parameter or budget is not possible.
    #[error("filter {part:?}: {source}")]
    Part {
        /// The part as given.
        part: String,
        /// The reason.
        source: BuildError,
    },
    /// The budget is not a number.
    #[error("filter {part:?}: {bits:?} is not a number of bits per key: write for example `proteus@14`")]
    Bits {
        /// The part as given.
        part: String,
        /// The text after the `@`.
        bits: String,
    },
    /// A number of filters that a table cannot have.
    #[error("{count} filters for each table: give 1 to {max}")]
    PartCount {
        /// The number.
        count: usize,
        /// The maximum.
        max: usize,
    },
    /// Two policies of one list have the same name.
    #[error(
        "two filter policies are named {name:?}: SlateDB would open the filters of both with the first one. Configure one policy with all \
         filters, for example \"blocked-bloom@10 proteus@12\""
    )]
    DuplicateName {
        /// The name.
        name: String,
    },
}

/// Bytes that are not a sample of queries.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The bytes are damaged, or were written by another program. The sample is unchanged.
    #[error("{location}: not a sample of queries: {reason}. Delete the object: readers write another one")]
    Damaged {
        /// The object, or the place of the bytes.
        location: String,
        /// The reason.
        reason: &'static str,
    },
    /// The object store returned an error.
    #[error("sample of queries: {0}")]
    Store(#[from] object_store::Error),
}

/// A store that SlateDB could not use.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The credentials are missing or wrong, or do not allow the request.
    #[error(
        "{path}: access denied. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or the role of the machine), and allow list, get and put: {source}"
    )]
    AccessDenied {
        /// The path of the database.
        path: String,
        /// The store's error.
        source: object_store::Error,
    },
    /// The bucket or folder does not exist.
    #[error("{path}: the bucket or folder does not exist. Check its name and region, or create it: {source}")]
    NoBucket {
        /// The path of the database.
        path: String,
        /// The store's error.
        source: object_store::Error,
    },
    /// The server does not answer.
    #[error("{path}: the server does not answer. Check the address (AWS_ENDPOINT) and the network: {source}")]
    Unreachable {
        /// The path of the database.
        path: String,
        /// The store's error; `None` after a timeout.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The path has objects of another program.
    #[error(
        "{path}: has objects, for example {example:?}, but no database of SlateDB. Give an empty path, or that of the database"
    )]
    OtherContents {
        /// The path of the database.
        path: String,
        /// One of the objects.
        example: String,
    },
    /// Another error of the store.
    #[error("{path}: {source}")]
    Other {
        /// The path of the database.
        path: String,
        /// The store's error.
        source: object_store::Error,
    },
}
