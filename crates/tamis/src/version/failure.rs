//! Failures of manifest writes: which can be tried again, and which are final.

use crate::error::Error;

/// Why a manifest could not be written.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// What is on disk is not known: nothing may be written any more.
    pub(crate) is_final: bool,
}

impl Failure {
    /// Nothing of it is in force; another manifest can be tried.
    pub(crate) const fn again(error: Error) -> Self {
        Self { error, is_final: false }
    }

    pub(crate) const fn last(error: Error) -> Self {
        Self { error, is_final: true }
    }
}
