//! Failures become Python exceptions, and calls release the interpreter while they work.
//!
//! The exception classes are in Python (`tamis/errors.py`), so that they can derive from several built-in classes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::{
    PyErr,
    exceptions::PyTypeError,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyType},
};
use tamis::ConflictKeys;
use tamis_bindings_common::{Code, Conflict, Failure};

/// The class of `tamis/errors.py` for a code.
const fn class_name(code: Code) -> &'static str {
    match code {
        Code::InvalidArgument | Code::BufferTooSmall => "InvalidArgumentError",
        Code::Io => "IoError",
        Code::DiskFull => "DiskFullError",
        Code::Corruption => "CorruptionError",
        Code::UnknownFormat => "UnknownFormatError",
        Code::NotADatabase => "NotADatabaseError",
        Code::MissingFile => "MissingFileError",
        Code::Locked => "LockedError",
        Code::ReadOnly => "ReadOnlyError",
        Code::WritesRefused => "WritesRefusedError",
        Code::Closed => "ClosedError",
        Code::KeyspaceNotFound => "KeyspaceNotFoundError",
        Code::KeyspaceExists => "KeyspaceExistsError",
        Code::KeyspaceDropped => "KeyspaceDroppedError",
        Code::Size => "SizeError",
        Code::FilterBuild => "FilterBuildError",
        Code::Forked => "ForkedError",
        Code::Busy => "BusyError",
        Code::Panic => "InternalError",
        Code::Conflict => "ConflictError",
        Code::ExclusiveTransaction => "ExclusiveTransactionError",
        Code::TransactionEnded => "TransactionEndedError",
        Code::MergeOperatorMissing => "MergeOperatorMissingError",
        Code::MergeFailed => "MergeFailedError",
        Code::ChangesLost => "ChangesLostError",
        Code::Ok | Code::Other => "Error",
    }
}

/// Converts a failure to an exception.
#[cold]
pub(crate) fn raise(py: Python<'_>, failure: Failure) -> PyErr {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let class = ERRORS
        .get_or_try_init(py, || py.import("tamis.errors").map(Bound::unbind))
        .and_then(|module| module.bind(py).getattr(class_name(failure.code)))
        .and_then(|class| Ok(class.cast_into::<PyType>()?));
    match (class, failure.conflict, failure.first_available) {
        (Ok(class), Some(conflict), _) => of_conflict(py, class, failure.message, *conflict),
        (Ok(class), None, Some(position)) => PyErr::from_type(class, (failure.message, position)),
        (Ok(class), None, None) => PyErr::from_type(class, (failure.message,)),
        (Err(error), ..) => error,
    }
}

/// A conflict with its attributes.
fn of_conflict(py: Python<'_>, class: Bound<'_, PyType>, message: String, conflict: Conflict) -> PyErr {
    let bytes = |bytes: Vec<u8>| PyBytes::new(py, &bytes).unbind();
    let Conflict { keyspace, keys } = conflict;
    match keys {
        ConflictKeys::Key(key) => PyErr::from_type(class, (message, keyspace, bytes(key))),
        ConflictKeys::Range { lower, upper } => {
            PyErr::from_type(class, (message, keyspace, py.None(), (bytes(lower), upper.map(bytes))))
        }
        _ => PyErr::from_type(class, (message, keyspace)),
    }
}

/// A `TypeError` with a sentence that names the argument and the remedy.
#[cold]
pub(crate) fn wrong_type(name: &str, expected: &str, got: &Bound<'_, PyAny>) -> PyErr {
    let got = got.get_type().name().map_or_else(|_| "another type".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{name}: expected {expected}, got {got}"))
}

/// An invalid argument.
#[cold]
pub(crate) fn invalid(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, Failure::argument(message))
}

/// Conversion of results to those of Python.
pub(crate) trait OrRaise<T> {
    /// Converts the failure to an exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, Failure> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|failure| raise(py, failure))
    }
}

impl<T> OrRaise<T> for tamis::Result<T> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raise(py, error.into()))
    }
}

/// Runs `work` without the interpreter's lock, so that other Python threads run meanwhile. A panic becomes an `InternalError`.
#[inline]
pub(crate) fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Failure> + Send) -> PyResult<T> {
    py.detach(|| catch_panic(work)).or_raise(py)
}

/// Runs `work`; a panic becomes a failure.
#[inline]
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let message = "a bug in Tamis ended the call; close the database, open it again, and report the bug with the text on stderr";
        Err(Failure::new(Code::Panic, message))
    })
}
