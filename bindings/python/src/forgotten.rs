//! Warnings for objects that are dropped while they are in use: `ResourceWarning`, as for a file that was not closed.

use std::ffi::CStr;

use pyo3::{exceptions::PyResourceWarning, prelude::*};

/// Warns, from a destructor: the exception that may be set stays, and an interpreter that ends gets no warning.
pub(crate) fn warn(message: &CStr) {
    let _ = Python::try_attach(|py| {
        let pending = PyErr::take(py);
        if let Err(error) = PyErr::warn(py, &py.get_type::<PyResourceWarning>(), message, 1) {
            error.write_unraisable(py, None);
        }
        if let Some(pending) = pending {
            pending.restore(py);
        }
    });
}
