//! The guard against handles that are used in a child process after a fork.
//!
//! A forked child has the parent's memory, but none of its threads: locks may be held for good, and a write would reach the log
//! from two processes. So a handle remembers the generation of the process in which it was made. `pthread_atfork` raises the
//! generation in each child. In a child, [`Guarded::get`] returns an error and dropping a [`Guarded`] leaks what it holds:
//! the parent still owns the files.
//!
//! Cost: one relaxed load for each call.

use std::{
    mem::ManuallyDrop,
    sync::{
        Once,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{Code, Failure};

/// How many forks lie between the process that loaded the library and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);
static REGISTERED: Once = Once::new();

#[cfg(unix)]
extern "C" fn note_fork() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Counts forks from now on.
fn register() {
    REGISTERED.call_once(|| {
        #[cfg(unix)]
        // SAFETY: the handler only adds to an atomic, which is allowed in a child of a process with threads.
        unsafe {
            libc::pthread_atfork(None, None, Some(note_fork));
        }
    });
}

/// A value that only the process which made it may use and drop.
#[derive(Debug)]
pub struct Guarded<T> {
    generation: u64,
    value: ManuallyDrop<T>,
}

impl<T> Guarded<T> {
    /// Guards a value of this process.
    pub fn new(value: T) -> Self {
        register();
        Self { generation: GENERATION.load(Ordering::Relaxed), value: ManuallyDrop::new(value) }
    }

    /// Whether this process made it.
    #[inline]
    pub fn is_own(&self) -> bool {
        self.generation == GENERATION.load(Ordering::Relaxed)
    }

    /// The value.
    ///
    /// # Errors
    /// [`Code::Forked`] in a child of the process that made it.
    #[inline]
    pub fn get(&self) -> Result<&T, Failure> {
        if self.is_own() { Ok(&self.value) } else { Err(forked()) }
    }

    /// The value, to be changed.
    ///
    /// # Errors
    /// As [`Guarded::get`].
    #[inline]
    pub fn get_mut(&mut self) -> Result<&mut T, Failure> {
        if self.is_own() { Ok(&mut self.value) } else { Err(forked()) }
    }
}

impl<T: Clone> Clone for Guarded<T> {
    fn clone(&self) -> Self {
        Self { generation: self.generation, value: self.value.clone() }
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        if self.is_own() {
            // SAFETY: the value is dropped here only, and `self` is not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.value) }
        }
    }
}

#[cold]
fn forked() -> Failure {
    Failure::new(
        Code::Forked,
        "this handle belongs to the parent process; open the database in one process only, and open it after the fork",
    )
}

#[cfg(test)]
mod tests;
