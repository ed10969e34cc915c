//! The first background error of a store, after which writes are refused until the store is opened again. Reads continue.
//!
//! Two kinds of failures are final: a failed sync of the log or the manifest, because it is no longer known what is on disk, and a
//! panic, because the state that the panicking code left is not known.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, OnceLock},
};

use crate::error::{Error, Result};

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct BackgroundError(OnceLock<Arc<str>>);

impl BackgroundError {
    /// Records an error unless there is an earlier one.
    pub(crate) fn set(&self, error: &Error) {
        let _ = self.0.set(Arc::from(error.to_string()));
    }

    /// # Errors
    /// [`Error::WritesRefused`] after a background error.
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.get() {
            Some(cause) => Err(Error::WritesRefused { cause: Arc::clone(cause) }),
            None => Ok(()),
        }
    }

    /// Calls `work`, which is described by `operation`. A panic becomes the background error.
    ///
    /// # Errors
    /// [`Error::Panicked`].
    #[inline]
    pub(crate) fn catch<R>(&self, operation: &'static str, work: impl FnOnce() -> R) -> Result<R> {
        // Unwinding releases locks and claims by their guards. The state that it leaves half changed is
        // not used: writes are refused from now on.
        catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
            let error = Error::Panicked { operation, message: message_of(&*payload) };
            self.set(&error);
            error
        })
    }
}

/// The text of a panic.
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> Arc<str> {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    Arc::from(text.unwrap_or("no message"))
}
