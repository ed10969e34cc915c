//! Failures of manifest writes: retryable and fatal ones.

use crate::error::Error;

/// Why a manifest could not be written.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// It is unknown what is on disk: no more writes are allowed.
    pub(crate) is_fatal: bool,
}

impl Failure {
    /// No part of the write counts. Another manifest can be written.
    pub(crate) const fn retryable(error: Error) -> Self {
        Self { error, is_fatal: false }
    }

    pub(crate) const fn fatal(error: Error) -> Self {
        Self { error, is_fatal: true }
    }
}
