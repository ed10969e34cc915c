//! Failures of calls: a code of abstract-level and a sentence.

use napi::{Env, JsError};
use tamis::Error;
use tamis_bindings_common::{Code, Failure};

/// The error that a synchronous function throws.
pub type Thrown = napi::Error<&'static str>;

/// A failed call.
#[derive(Debug)]
pub struct Fault {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A call of a database that is not open.
    #[cold]
    pub(crate) fn not_open() -> Self {
        Self::new("LEVEL_DATABASE_NOT_OPEN", "Database is not open: call open() first")
    }

    /// A panic, which is a bug.
    #[cold]
    pub(crate) fn panicked() -> Self {
        Self::new(
            "LEVEL_INTERNAL_ERROR",
            "a bug in Tamis ended the call; close the database, open it again, and report the bug with the text on stderr",
        )
    }

    /// The error with which a promise is rejected.
    pub(crate) fn into_rejection(self, env: &Env) -> napi::Error {
        JsError::from(Thrown::from(self)).into_unknown(*env).into()
    }
}

impl From<Fault> for Thrown {
    fn from(fault: Fault) -> Self {
        Self::new(fault.code, fault.message)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::KeyEmpty | Error::KeyTooLong { .. } => "LEVEL_INVALID_KEY",
            Error::ValueTooLong { .. } => "LEVEL_INVALID_VALUE",
            _ => return Failure::from(error).into(),
        };
        Self { code, message: error.to_string() }
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self { code: level_code(failure.code), message: failure.message }
    }
}

/// The code of abstract-level; a failure that abstract-level does not know has a code of the same form.
const fn level_code(code: Code) -> &'static str {
    match code {
        Code::InvalidArgument | Code::BufferTooSmall => "LEVEL_INVALID_ARGUMENT",
        Code::Io | Code::MissingFile => "LEVEL_IO_ERROR",
        Code::DiskFull => "LEVEL_DISK_FULL",
        Code::Corruption => "LEVEL_CORRUPTION",
        Code::UnknownFormat => "LEVEL_UNKNOWN_FORMAT",
        Code::NotADatabase => "LEVEL_NOT_A_DATABASE",
        Code::Locked => "LEVEL_LOCKED",
        Code::ReadOnly => "LEVEL_READONLY",
        Code::WritesRefused => "LEVEL_WRITES_REFUSED",
        Code::Closed => "LEVEL_DATABASE_NOT_OPEN",
        Code::Size => "LEVEL_TOO_LARGE",
        Code::MergeOperatorMissing => "LEVEL_MERGE_OPERATOR_MISSING",
        Code::MergeFailed => "LEVEL_MERGE_FAILED",
        Code::ChangesLost => "LEVEL_CHANGES_LOST",
        Code::Panic => "LEVEL_INTERNAL_ERROR",
        _ => "LEVEL_ERROR",
    }
}
