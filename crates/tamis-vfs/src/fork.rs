//! Detects that this process is a forked child of the process that opened a file.
//!
//! A forked child has a copy of the parent's memory and descriptors, but not its threads: locks of memory may be
//! held forever, and a lock of a file is shared with the parent. So a [`Process`] records the process that opened
//! something, and [`OwnedByProcess`] drops a value in this process only. `pthread_atfork` counts the forks. A
//! child that was made by a bare system call is not detected.
//!
//! Cost: one relaxed load and a comparison.

use std::{
    mem::ManuallyDrop,
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicU32, Ordering},
};

/// Number of forks between the first process that used this module and this process.
static FORK_COUNT: AtomicU32 = AtomicU32::new(0);

/// Registers the fork handler, once.
#[cfg(unix)]
fn register() {
    static REGISTERED: std::sync::Once = std::sync::Once::new();

    extern "C" fn count_fork() {
        FORK_COUNT.fetch_add(1, Ordering::Relaxed);
    }

    // SAFETY: the handler only increments an atomic, which is allowed in a child of a process with threads.
    REGISTERED.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(count_fork));
    });
}

#[cfg(not(unix))]
fn register() {}

/// A process, distinguished from its forked children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// The process that runs now.
    pub fn current() -> Self {
        register();
        Self(FORK_COUNT.load(Ordering::Relaxed))
    }

    /// Whether this process runs now, and not a forked child.
    #[inline]
    pub fn is_current(self) -> bool {
        self.0 == FORK_COUNT.load(Ordering::Relaxed)
    }
}

/// Whether something is open, and in which process. Cost of the question: two loads and a comparison.
#[derive(Debug)]
pub struct OpenIn(AtomicU32);

/// Greater than any number of forks.
const CLOSED: u32 = u32::MAX;

impl OpenIn {
    /// Open in this process.
    pub fn this_process() -> Self {
        Self(AtomicU32::new(Process::current().0))
    }

    /// Whether it is open, and in this process.
    #[inline]
    pub fn is_usable(&self) -> bool {
        self.0.load(Ordering::Acquire) == FORK_COUNT.load(Ordering::Relaxed)
    }

    /// Closes it.
    pub fn close(&self) {
        self.0.store(CLOSED, Ordering::Release);
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.0.load(Ordering::Acquire) == CLOSED
    }
}

/// A value that a forked child neither owns nor drops: there it is leaked.
#[derive(Debug)]
pub struct OwnedByProcess<T> {
    process: Process,
    value: ManuallyDrop<T>,
}

impl<T> OwnedByProcess<T> {
    /// A value that this process owns.
    pub fn new(value: T) -> Self {
        Self { process: Process::current(), value: ManuallyDrop::new(value) }
    }

    /// Whether this process owns the value.
    #[inline]
    pub fn is_owned(owned: &Self) -> bool {
        owned.process.is_current()
    }
}

impl<T> Deref for OwnedByProcess<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for OwnedByProcess<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: Clone> Clone for OwnedByProcess<T> {
    fn clone(&self) -> Self {
        Self { process: self.process, value: self.value.clone() }
    }
}

impl<T> Drop for OwnedByProcess<T> {
    fn drop(&mut self) {
        if self.process.is_current() {
            // SAFETY: the value is dropped only here, and `self` is not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.value) }
        }
    }
}

#[cfg(all(test, unix))]
mod tests;
