//! The memory of an open store (`Options::cache_bytes`): pinned indexes and filters, sampled queries, and blocks.
//!
//! Blocks use what the others leave: the capacity of the block cache is the budget without their bytes, rounded down to a 64th.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::sync::Mutex;

/// See the head of this file.
pub(crate) struct MemoryBudget {
    total_bytes: u64,
    sample_bytes_max: u64,
    pinned_bytes: AtomicU64,
    sample_bytes: AtomicU64,
    /// The capacity of the block cache; changed under `resizing`.
    block_bytes: AtomicU64,
    resizing: Mutex<()>,
    resize_blocks: Box<dyn Fn(u64) + Send + Sync>,
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryBudget").field("total_bytes", &self.total_bytes).finish_non_exhaustive()
    }
}

/// Without a limit and without blocks.
impl Default for MemoryBudget {
    fn default() -> Self {
        Self::new(u64::MAX, 0, |_| ())
    }
}

impl MemoryBudget {
    /// Blocks may use all of it at first, pinned values up to `pinned_bytes_max`. `resize_blocks` changes the capacity of the block cache.
    pub(crate) fn new(
        total_bytes: u64,
        pinned_bytes_max: u64,
        resize_blocks: impl Fn(u64) + Send + Sync + 'static,
    ) -> Self {
        let left = total_bytes.saturating_sub(pinned_bytes_max);
        Self {
            total_bytes,
            // The sampled queries of all keyspaces may use a quarter of the budget, and a 32nd also of what is meant for pinned values.
            sample_bytes_max: left.min(total_bytes / 4).max(total_bytes / 32),
            pinned_bytes: AtomicU64::new(0),
            sample_bytes: AtomicU64::new(0),
            block_bytes: AtomicU64::new(total_bytes),
            resizing: Mutex::default(),
            resize_blocks: Box::new(resize_blocks),
        }
    }

    /// The bytes that the others leave, in few steps, because a change of the capacity locks all shards of the cache.
    fn bytes_for_blocks(&self) -> u64 {
        // The capacity of the block cache changes in steps.
        let step = (self.total_bytes / 64).max(1);
        let left = self.total_bytes.saturating_sub(self.pinned_bytes() + self.sample_bytes());
        if left == self.total_bytes { left } else { left / step * step }
    }

    /// Gives blocks what the others leave.
    pub(crate) fn adapt_blocks(&self) {
        if self.bytes_for_blocks() == self.block_bytes.load(Ordering::Relaxed) {
            return;
        }
        let _resizing = self.resizing.lock();
        let block_bytes = self.bytes_for_blocks();
        if self.block_bytes.swap(block_bytes, Ordering::Relaxed) != block_bytes {
            (self.resize_blocks)(block_bytes);
        }
    }

    /// Bytes of pinned values.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.pinned_bytes.load(Ordering::Relaxed)
    }

    /// Counts a pinned value; the caller adapts the blocks when it has changed all.
    pub(crate) fn add_pinned(&self, bytes: u64) {
        self.pinned_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The reverse of [`MemoryBudget::add_pinned`].
    pub(crate) fn remove_pinned(&self, bytes: u64) {
        self.pinned_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes that pinned values may use besides the sampled queries.
    pub(crate) fn pinned_bytes_max(&self) -> u64 {
        self.total_bytes.saturating_sub(self.sample_bytes())
    }

    /// Bytes of the sampled queries of all keyspaces.
    pub(crate) fn sample_bytes(&self) -> u64 {
        self.sample_bytes.load(Ordering::Relaxed)
    }

    /// Counts sampled queries; `false` if they do not fit.
    pub(crate) fn add_sample(&self, bytes: u64) -> bool {
        let limit = self.sample_bytes_max.min(self.total_bytes.saturating_sub(self.pinned_bytes()));
        let with = |used: u64| used.checked_add(bytes).filter(|used| *used <= limit);
        let is_added = self.sample_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with).is_ok();
        if is_added {
            self.adapt_blocks();
        }
        is_added
    }

    /// The reverse of [`MemoryBudget::add_sample`].
    pub(crate) fn remove_sample(&self, bytes: u64) {
        self.sample_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.adapt_blocks();
    }
}
