//! The locks and condition variables through which threads of a store wait for each other.
//!
//! Programs get those of `parking_lot` and of the standard library, unchanged. With the feature `simulation` the same names are types that
//! ask the simulation of the thread who runs next (`internals/simulation/scheduled.rs`); on a thread without a simulation these behave like the
//! originals. A thread that waits by any other means would stop a simulation, so no other module waits.

#[cfg(feature = "simulation")]
#[path = "../internals/simulation/hooks.rs"]
pub(crate) mod hooks;
#[cfg(feature = "simulation")]
#[path = "../internals/simulation/scheduled.rs"]
mod scheduled;

#[cfg(feature = "simulation")]
pub use scheduled::{Condvar, MutexGuard, WaitTimeoutResult};
#[cfg(feature = "simulation")]
pub(crate) use scheduled::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

#[cfg(not(feature = "simulation"))]
mod real {
    pub use parking_lot::{Condvar, MutexGuard, WaitTimeoutResult};
    pub(crate) use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

    /// A place where a simulation may let another thread run: between two steps without a lock whose order matters.
    #[inline]
    pub(crate) const fn point() {}

    /// A pause in a loop that waits for another thread.
    #[inline]
    pub(crate) fn spin() {
        #[cfg(loom)]
        loom::thread::yield_now();
        #[cfg(not(loom))]
        std::hint::spin_loop();
    }
}

#[cfg(feature = "simulation")]
pub(crate) use self::{hooks::point, scheduled::spin};
#[cfg(not(feature = "simulation"))]
pub use real::{Condvar, MutexGuard, WaitTimeoutResult};
#[cfg(not(feature = "simulation"))]
pub(crate) use real::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard, point, spin};

/// Whether the fault of this name is put in, which only a simulation does, to prove that it finds the fault. A constant `false` without the
/// feature `simulation`.
#[cfg(feature = "simulation")]
macro_rules! sim_fault {
    ($name:literal) => {
        $crate::sync::hooks::is_put_in($name)
    };
}
#[cfg(not(feature = "simulation"))]
macro_rules! sim_fault {
    ($name:literal) => {
        false
    };
}
pub(crate) use sim_fault;
