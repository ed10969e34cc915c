//! Protects handles from use in a child process after a fork: the guard of the engine, with the failure of the bindings.
//!
//! A forked child has a copy of the parent's memory, but not its threads: locks may be held forever, also those of the bindings.
//! So [`Guarded::get`] returns an error there, and dropping a [`Guarded`] leaks its value.
//!
//! Cost: one relaxed load per call.

use tamis::{Error, OwnedByProcess};

use crate::Failure;

/// A value that only the creating process can use and drop.
#[derive(Debug, Clone)]
pub struct Guarded<T>(OwnedByProcess<T>);

impl<T> Guarded<T> {
    /// Guards a value that this process owns.
    pub fn new(value: T) -> Self {
        Self(OwnedByProcess::new(value))
    }

    /// Whether this process created the value.
    #[inline]
    pub fn is_own(&self) -> bool {
        OwnedByProcess::is_owned(&self.0)
    }

    /// The value.
    ///
    /// # Errors
    /// [`crate::Code::Forked`] in a child of the creating process.
    #[inline]
    pub fn get(&self) -> Result<&T, Failure> {
        if self.is_own() { Ok(&self.0) } else { Err(Error::Forked.into()) }
    }

    /// The value, mutable.
    ///
    /// # Errors
    /// As [`Guarded::get`].
    #[inline]
    pub fn get_mut(&mut self) -> Result<&mut T, Failure> {
        if self.is_own() { Ok(&mut self.0) } else { Err(Error::Forked.into()) }
    }
}
