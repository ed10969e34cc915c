//! Protects handles from use in a child process after a fork.
//!
//! A forked child has a copy of the parent's memory, but not its threads: locks may be held forever, and two processes would
//! write to the log. So a handle stores the generation of the process that created it, and `pthread_atfork` increments the
//! generation in each child. In a child, [`Guarded::get`] returns an error, and dropping a [`Guarded`] leaks its value, because
//! the parent still owns the files.
//!
//! Cost: one relaxed load per call.

use std::{
    mem::ManuallyDrop,
    sync::{
        Once,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{Code, Failure};

/// Number of forks between the process that loaded the library and this process.
static GENERATION: AtomicU64 = AtomicU64::new(0);
static REGISTERED: Once = Once::new();

#[cfg(unix)]
extern "C" fn count_fork() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Registers the fork handler.
fn register() {
    REGISTERED.call_once(|| {
        #[cfg(unix)]
        // SAFETY: the handler only increments an atomic, which is allowed in a child of a process with threads.
        unsafe {
            libc::pthread_atfork(None, None, Some(count_fork));
        }
    });
}

/// A value that only the creating process can use and drop.
#[derive(Debug)]
pub struct Guarded<T> {
    generation: u64,
    value: ManuallyDrop<T>,
}

impl<T> Guarded<T> {
    /// Guards a value that this process owns.
    pub fn new(value: T) -> Self {
        register();
        Self { generation: GENERATION.load(Ordering::Relaxed), value: ManuallyDrop::new(value) }
    }

    /// Whether this process created the value.
    #[inline]
    pub fn is_own(&self) -> bool {
        self.generation == GENERATION.load(Ordering::Relaxed)
    }

    /// The value.
    ///
    /// # Errors
    /// [`Code::Forked`] in a child of the creating process.
    #[inline]
    pub fn get(&self) -> Result<&T, Failure> {
        if self.is_own() { Ok(&self.value) } else { Err(forked()) }
    }

    /// The value, mutable.
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
            // SAFETY: the value is dropped only here, and `self` is not used afterwards.
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
