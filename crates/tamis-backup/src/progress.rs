//! Progress of long operations.

use std::fmt::Debug;

use crate::error::{Error, Result};

/// Receives the progress of an operation, from several threads.
pub trait Progress: Debug + Send + Sync {
    /// The bytes to read or upload, as far as they are known.
    fn expect(&self, bytes: u64) {
        let _ = bytes;
    }
    /// So many bytes are done.
    fn advance(&self, bytes: u64) {
        let _ = bytes;
    }
    /// Whether to end early with [`Error::Cancelled`]. A later call of the same operation continues.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Reports nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoProgress;

impl Progress for NoProgress {}

/// # Errors
/// [`Error::Cancelled`].
pub(crate) fn check(progress: &dyn Progress) -> Result<()> {
    if progress.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
}
