//! The block cache: verified, decompressed blocks by file number and offset, over `quick_cache`.
//!
//! File numbers are never used twice, so the blocks of a deleted table need no removal: nobody asks for them, and they age
//! out. The weight budget is split over shards, and a value heavier than its shard's share would be refused silently;
//! shards are therefore few ([`SHARD_BYTES_MIN`] each), and what still does not fit (a value of many MiB) is simply not
//! kept: its reader holds it as long as it needs it.

use std::sync::Arc;

use quick_cache::{OptionsBuilder, Weighter, sync::Cache};

use crate::error::Result;

/// A shard has at least this many bytes, unless the whole cache is smaller.
const SHARD_BYTES_MIN: u64 = 8 << 20;
const SHARD_COUNT_MAX: u64 = 64;
/// What an entry costs besides its bytes: allocation header, hash slot, queue links.
const ENTRY_OVERHEAD_BYTES: u64 = 96;

/// The content of a block in memory: a part of shared bytes.
#[derive(Debug, Clone)]
pub(crate) struct CachedBlock {
    pub(crate) bytes: Arc<[u8]>,
    /// Where the content begins and how long it is.
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
        block.bytes.len() as u64 + ENTRY_OVERHEAD_BYTES
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
        let shards = (capacity_bytes / SHARD_BYTES_MIN).clamp(1, SHARD_COUNT_MAX);
        let options = OptionsBuilder::new()
            .estimated_items_capacity((capacity_bytes / 4096).max(16) as usize)
            .weight_capacity(capacity_bytes)
            .shards(shards as usize)
            .build();
        let cache = match options {
            Ok(options) => Cache::with_options(options, ByteWeight, Default::default(), Default::default()),
            // Only missing fields are refused, and both are given.
            Err(_) => Cache::with_weighter(16, capacity_bytes, ByteWeight),
        };
        Self { cache }
    }

    pub(crate) fn get(&self, file_number: u64, offset: u64) -> Option<CachedBlock> {
        self.cache.get(&(file_number, offset))
    }

    /// The block, loaded by one caller while others that want the same one wait for it.
    pub(crate) fn get_or_load(
        &self,
        file_number: u64,
        offset: u64,
        load: impl FnOnce() -> Result<CachedBlock>,
    ) -> Result<CachedBlock> {
        self.cache.get_or_insert_with(&(file_number, offset), load)
    }

    /// Keeps a block that its reader has loaded by itself.
    pub(crate) fn put(&self, file_number: u64, offset: u64, block: CachedBlock) {
        self.cache.insert((file_number, offset), block);
    }

    /// Bytes that are kept now.
    pub(crate) fn bytes(&self) -> u64 {
        self.cache.weight()
    }
}

#[cfg(test)]
mod tests;
