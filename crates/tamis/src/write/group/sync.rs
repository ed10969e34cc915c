//! The atomics, the lock and the condition variable of group commit, or loom's versions, which try every interleaving
//! (`RUSTFLAGS="--cfg loom" cargo test -p tamis --lib write::group`).

#[cfg(not(loom))]
mod real {
    use std::time::Duration;

    use crate::sync::Condvar;
    pub(in crate::write::group) use crate::sync::{Mutex, MutexGuard, spin};
    pub(in crate::write::group) use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

    /// The condition variable of a waiter.
    pub(in crate::write::group) struct Condition(Condvar);

    impl Condition {
        pub(in crate::write::group) const fn new() -> Self {
            Self(Condvar::new())
        }

        pub(in crate::write::group) fn notify(&self) {
            self.0.notify_one();
        }

        /// Waits for a notification, for at most `limit`.
        pub(in crate::write::group) fn wait<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            limit: Option<Duration>,
        ) -> MutexGuard<'a, T> {
            match limit {
                Some(limit) => {
                    self.0.wait_for(&mut guard, limit);
                }
                None => self.0.wait(&mut guard),
            }
            guard
        }
    }

    pub(in crate::write::group) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock()
    }
}

#[cfg(loom)]
mod model {
    use std::time::Duration;

    pub(in crate::write::group) use crate::sync::spin;
    pub(in crate::write::group) use loom::sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering},
    };

    pub(in crate::write::group) struct Condition(loom::sync::Condvar);

    impl Condition {
        pub(in crate::write::group) fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }

        pub(in crate::write::group) fn notify(&self) {
            self.0.notify_one();
        }

        /// The model has no clock: a limit may expire at any time.
        pub(in crate::write::group) fn wait<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            limit: Option<Duration>,
        ) -> MutexGuard<'a, T> {
            if limit.is_some() {
                loom::thread::yield_now();
                return guard;
            }
            self.0.wait(guard).expect("no thread of the model panics while it holds the lock")
        }
    }

    pub(in crate::write::group) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().expect("no thread of the model panics while it holds the lock")
    }
}

#[cfg(loom)]
pub(super) use model::*;
#[cfg(not(loom))]
pub(super) use real::*;
