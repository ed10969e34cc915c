//! The open view of a file that versions name. One thread opens it while others read; it is set once, and never used again when it is found
//! to be damaged.

use std::sync::Arc;

use self::sync::{AtomicBool, OnceLock, Ordering};

/// The atomics: the standard ones, or those of loom that test every interleaving
/// (`RUSTFLAGS="--cfg loom" cargo test -p tamis --lib version::view_slot::loom`).
#[cfg(not(loom))]
mod sync {
    pub(super) use std::sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    };
}

#[cfg(loom)]
mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, Ordering};

    /// The standard one with loom's lock. Values are leaked, so that they can be borrowed without it.
    #[derive(Debug)]
    pub(super) struct OnceLock<T: 'static>(loom::sync::Mutex<Option<&'static T>>);

    impl<T> OnceLock<T> {
        pub(super) fn new() -> Self {
            Self(loom::sync::Mutex::new(None))
        }

        pub(super) fn get(&self) -> Option<&T> {
            *self.0.lock().expect("no owner of the lock panics")
        }

        pub(super) fn set(&self, value: T) -> Result<(), T> {
            let mut place = self.0.lock().expect("no owner of the lock panics");
            if place.is_some() {
                return Err(value);
            }
            *place = Some(Box::leak(Box::new(value)));
            Ok(())
        }
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct ViewSlot<V: 'static> {
    view: OnceLock<Arc<V>>,
    is_failed: AtomicBool,
    is_opening: AtomicBool,
}

impl<V> ViewSlot<V> {
    pub(super) fn new() -> Self {
        Self { view: OnceLock::new(), is_failed: AtomicBool::new(false), is_opening: AtomicBool::new(false) }
    }

    /// The open view; `None` if it is not open yet, or damaged.
    #[inline]
    pub(super) fn get(&self) -> Option<&Arc<V>> {
        self.view.get().filter(|_| !self.is_failed())
    }

    /// Lets reads use a view. The first one stays.
    pub(super) fn set(&self, view: Arc<V>) {
        // Another thread may have opened it meanwhile.
        let _ = self.view.set(view);
    }

    #[inline]
    pub(super) fn is_failed(&self) -> bool {
        self.is_failed.load(Ordering::Relaxed)
    }

    /// No read uses it from now on. Returns whether this is the first call.
    pub(super) fn fail(&self) -> bool {
        !self.is_failed.swap(true, Ordering::Relaxed)
    }

    /// Whether it has to be opened before reads can use it.
    pub(super) fn needs_open(&self) -> bool {
        self.view.get().is_none() && !self.is_failed()
    }

    /// Whether the caller opens it; no other caller does.
    pub(super) fn claim_open(&self) -> bool {
        !self.is_opening.swap(true, Ordering::Relaxed)
    }
}

#[cfg(all(test, loom))]
#[path = "../../internals/loom/view_slot.rs"]
mod loom;
