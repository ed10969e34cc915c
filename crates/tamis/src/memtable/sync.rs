//! The atomics and the lock of the memtable: the standard ones, or those of loom that test every interleaving
//! (`RUSTFLAGS="--cfg loom" cargo test -p tamis --lib memtable::loom`).

#[cfg(not(loom))]
mod real {
    pub(in crate::memtable) use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

    pub(in crate::memtable) use crate::sync::Mutex;

    /// A value that is written before its owner is published and never again.
    #[derive(Debug)]
    pub(in crate::memtable) struct Published<T>(T);

    impl<T: Copy> Published<T> {
        pub(in crate::memtable) const fn new(value: T) -> Self {
            Self(value)
        }

        #[inline]
        pub(in crate::memtable) const fn get(&self) -> T {
            self.0
        }
    }
}

#[cfg(loom)]
mod model {
    pub(in crate::memtable) use loom::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

    /// loom's lock with the interface of `parking_lot`'s.
    #[derive(Debug)]
    pub(in crate::memtable) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(in crate::memtable) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(in crate::memtable) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no owner of the lock panics")
        }

        pub(in crate::memtable) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().expect("no owner of the lock panics")
        }
    }

    /// A value that is written before its owner is published and never again: loom fails the test if a thread reads it
    /// without having seen the publication.
    #[derive(Debug)]
    pub(in crate::memtable) struct Published<T>(loom::cell::UnsafeCell<T>);

    impl<T: Copy> Published<T> {
        pub(in crate::memtable) fn new(value: T) -> Self {
            Self(loom::cell::UnsafeCell::new(value))
        }

        pub(in crate::memtable) fn get(&self) -> T {
            // SAFETY: the value is never written after `new`, and loom checks that `new` happened before.
            self.0.with(|value| unsafe { *value })
        }
    }
}

#[cfg(loom)]
pub(super) use model::*;
#[cfg(not(loom))]
pub(super) use real::*;
