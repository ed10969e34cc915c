//! The right to write tables into the partitions of a keyspace by key range. One job has it at a time: a flush, or the last step of a job
//! that replaces partitions or ingests tables.
//!
//! A flush writes a table for each partition of a version. A job that replaced one of them before the flush installs its edit would leave
//! the table without a place. So each of them holds the slot from the read of the version until its edit is installed.

use self::sync::{AtomicBool, Ordering};

/// The atomics: the standard ones, or those of loom that test every interleaving
/// (`RUSTFLAGS="--cfg loom" cargo test -p tamis --lib flush_slot::loom`).
mod sync {
    #[cfg(loom)]
    pub(super) use loom::sync::atomic::{AtomicBool, Ordering};
    #[cfg(not(loom))]
    pub(super) use std::sync::atomic::{AtomicBool, Ordering};
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct FlushSlot(AtomicBool);

impl FlushSlot {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Takes the slot; `false` if another job has it.
    pub(crate) fn try_take(&self) -> bool {
        self.0.compare_exchange(false, true, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Gives the slot back. Only the job that has it calls this.
    pub(crate) fn give_back(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    /// Whether a job has the slot.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

#[cfg(all(test, loom))]
mod loom;
