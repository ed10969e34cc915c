//! The block cache: verified, decompressed blocks by file number and offset, over `quick_cache`.
//!
//! File numbers are never reused, so the blocks of a deleted table need not be removed: they are no longer read, and are
//! evicted. The weight budget is split over shards, and the cache refuses a value that is heavier than its shard's share.
//! Shards are therefore few ([`SHARD_BYTES_MIN`] each). A value of many MiB that still does not fit is not cached; its
//! reader owns it.

use std::sync::Arc;

#[cfg(feature = "simulation")]
use quick_cache::sync::GuardResult;
use quick_cache::{OptionsBuilder, Weighter, sync::Cache};

use crate::error::Result;

/// A shard has at least this many bytes, unless the whole cache is smaller.
const SHARD_BYTES_MIN: u64 = 8 << 20;

/// The content of a block in memory: a part of shared bytes.
#[derive(Debug, Clone)]
pub(crate) struct CachedBlock {
    pub(crate) bytes: Arc<[u8]>,
    /// Offset and length of the content.
    pub(crate) start: u32,
    pub(crate) length: u32,
}

impl CachedBlock {
    pub(crate) fn content(&self) -> &[u8] {
        self.bytes
            .get(self.start as usize..)
            .and_then(|rest| rest.get(..self.length as usize))
            .unwrap_or_default()
    }
}

#[derive(Debug, Clone)]
struct ByteWeight;

impl Weighter<(u64, u64), CachedBlock> for ByteWeight {
    fn weight(&self, _key: &(u64, u64), block: &CachedBlock) -> u64 {
        // Per entry also an allocation header, a hash slot and queue links.
        block.bytes.len() as u64 + 96
    }
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct BlockCache {
    cache: Cache<(u64, u64), CachedBlock, ByteWeight>,
}

impl BlockCache {
    /// A cache of at most `capacity_bytes`.
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        let shards = (capacity_bytes / SHARD_BYTES_MIN).clamp(1, 64);
        let options = OptionsBuilder::new()
            .estimated_items_capacity((capacity_bytes / 4096).max(16) as usize)
            .weight_capacity(capacity_bytes)
            .shards(shards as usize)
            .build();
        let cache = match options {
            Ok(options) => Cache::with_options(options, ByteWeight, Default::default(), Default::default()),
            // Only missing fields are an error, and both are given.
            Err(_) => Cache::with_weighter(16, capacity_bytes, ByteWeight),
        };
        Self { cache }
    }

    /// Changes the capacity; evicts blocks that have no room now.
    pub(crate) fn set_capacity(&self, capacity_bytes: u64) {
        self.cache.set_capacity(capacity_bytes);
    }

    pub(crate) fn get(&self, file_number: u64, offset: u64) -> Option<CachedBlock> {
        self.cache.get(&(file_number, offset))
    }

    /// Returns the block. If it is not cached, one caller loads it while others that need it wait.
    pub(crate) fn get_or_load(
        &self,
        file_number: u64,
        offset: u64,
        load: impl FnOnce() -> Result<CachedBlock>,
    ) -> Result<CachedBlock> {
        #[cfg(feature = "simulation")]
        if crate::sync::hooks::is_active() {
            return self.get_or_load_in_turns(&(file_number, offset), load);
        }
        self.cache.get_or_insert_with(&(file_number, offset), load)
    }

    /// As [`BlockCache::get_or_load`]. A caller that waits lets other threads of the simulation run.
    #[cfg(feature = "simulation")]
    fn get_or_load_in_turns(
        &self,
        block: &(u64, u64),
        load: impl FnOnce() -> Result<CachedBlock>,
    ) -> Result<CachedBlock> {
        loop {
            match self.cache.get_value_or_guard(block, Some(std::time::Duration::ZERO)) {
                GuardResult::Value(found) => return Ok(found),
                GuardResult::Guard(guard) => {
                    let loaded = load()?;
                    let _ = guard.insert(loaded.clone());
                    return Ok(loaded);
                }
                GuardResult::Timeout => crate::sync::hooks::pause(),
            }
        }
    }

    /// Caches a block that its reader has loaded.
    pub(crate) fn put(&self, file_number: u64, offset: u64, block: CachedBlock) {
        self.cache.insert((file_number, offset), block);
    }

    /// Bytes of the cached blocks.
    pub(crate) fn bytes(&self) -> u64 {
        self.cache.weight()
    }
}

#[cfg(test)]
mod tests;
