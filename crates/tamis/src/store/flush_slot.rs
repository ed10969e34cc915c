//! The right to write tables into the partitions of a keyspace by key range. One job has it at a time: a flush, or the last step of a job
//! that replaces partitions or ingests tables.
//!
//! A flush writes a table for each partition of a version. A job that replaced one of them before the flush installs its edit would leave
//! the table without a place. So each of them holds the slot from the read of the version until its edit is installed.
//!
//! Under a steady load a flush follows on another. A job that needs a pause requests it, and no new flush takes the slot until the job has had it.

use self::sync::{AtomicU32, Ordering};

/// The atomics: the standard ones, or those of loom that test every interleaving
/// (`RUSTFLAGS="--cfg loom" cargo test -p tamis --lib flush_slot::loom`).
mod sync {
    #[cfg(loom)]
    pub(super) use loom::sync::atomic::{AtomicU32, Ordering};
    #[cfg(not(loom))]
    pub(super) use std::sync::atomic::{AtomicU32, Ordering};
}

/// The slot is taken.
const TAKEN: u32 = 1;
/// A job requests a pause of flushes; the upper bits count these jobs.
const REQUEST: u32 = 2;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct FlushSlot(AtomicU32);

impl FlushSlot {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Takes the slot for a flush; `false` if another job has it or requests a pause.
    pub(crate) fn try_take_for_flush(&self) -> bool {
        self.0.compare_exchange(0, TAKEN, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Takes the slot for a job that needs a pause of flushes; `false` if another job has it.
    pub(crate) fn try_take_for_pause(&self) -> bool {
        self.0.fetch_or(TAKEN, Ordering::SeqCst) & TAKEN == 0
    }

    /// Gives the slot back. Only the job that has it calls this.
    pub(crate) fn give_back(&self) {
        self.0.fetch_and(!TAKEN, Ordering::SeqCst);
    }

    /// Whether a job has the slot.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.load(Ordering::SeqCst) & TAKEN != 0
    }

    /// No flush takes the slot from now on, until the request is dropped.
    pub(crate) fn request_pause(&self) -> PauseRequest<'_> {
        self.0.fetch_add(REQUEST, Ordering::SeqCst);
        PauseRequest(self)
    }
}

/// A request of [`FlushSlot::request_pause`].
pub(crate) struct PauseRequest<'a>(&'a FlushSlot);

impl Drop for PauseRequest<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(REQUEST, Ordering::SeqCst);
    }
}

#[cfg(all(test, loom))]
#[path = "../../internals/loom/flush_slot.rs"]
mod loom;

#[cfg(all(test, not(loom)))]
mod tests;
