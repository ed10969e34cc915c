//! The memory of the sorted views of a store that are not mapped: a sum with a limit.
//!
//! A job that builds or opens a view asks for the memory that is left. A view that is open counts until its last reader drops it, so
//! while a view replaces another one, the sum may be above the limit.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// See the head of this file. The default has no limit.
#[derive(Debug)]
pub(crate) struct ViewBudget {
    bytes_max: u64,
    bytes: AtomicU64,
}

impl Default for ViewBudget {
    fn default() -> Self {
        Self::new(u64::MAX)
    }
}

impl ViewBudget {
    pub(crate) const fn new(bytes_max: u64) -> Self {
        Self { bytes_max, bytes: AtomicU64::new(0) }
    }

    /// The memory that further views may use.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.bytes_max.saturating_sub(self.bytes.load(Ordering::Relaxed))
    }

    /// Counts a view that is open, also above the limit.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> ViewMemory {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        ViewMemory { budget: Arc::clone(self), bytes }
    }
}

/// The memory of an open view; counted until it is dropped.
#[derive(Debug)]
pub(crate) struct ViewMemory {
    budget: Arc<ViewBudget>,
    bytes: u64,
}

impl ViewMemory {
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for ViewMemory {
    fn drop(&mut self) {
        self.budget.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
