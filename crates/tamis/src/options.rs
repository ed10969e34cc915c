//! What can be chosen: at open, per keyspace, per read and per write. Everything else is a constant beside its code.

mod filters;

use std::sync::Arc;

use tamis_vfs::Access;

use crate::{
    error::{Error, Result},
    events::EventListener,
};

pub use filters::{Filters, TableFilter};

/// The name of the keyspace that every database has.
pub(crate) const DEFAULT_KEYSPACE: &str = "default";

/// Compression of data blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Blocks as they are: aligned, mappable, one block is one page-aligned read.
    None,
    /// LZ4: fast both ways.
    Lz4,
    /// Zstandard at this level (1 to 19).
    Zstd(u8),
}

/// Which writes survive what, chosen per write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Durability {
    /// The log is buffered in the process, at most [`Options::deferred_bytes_max`] and, while there are workers, 100 ms of
    /// it. A crash of the process loses that tail.
    Deferred,
    /// Given to the operating system: survives the process, not the machine. The default.
    #[default]
    Buffered,
    /// Synced: survives the machine.
    Synced,
}

/// Options of a database. Each has a default that suits most programs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Make the database when the folder is empty or missing. Default: true.
    pub create_if_missing: bool,
    /// Open without writing anything: no log is cut, nothing is swept, writes are refused. Default: false.
    pub read_only: bool,
    /// One byte budget for blocks, filters, indexes. Unit: bytes. Default: 256 MiB.
    pub cache_bytes: u64,
    /// Share of `cache_bytes` that filters and indexes may take, in percent (0 to 100). Default: 20.
    pub cache_pinned_percent: u8,
    /// How tables are read; with [`Access::Direct`] flushes and compactions write past the page cache, too (otherwise only flushes do, of keys
    /// that come in order faster than they could follow). Units of elastic filters are loaded and unloaded with [`Access::Buffered`] and
    /// [`Access::Direct`] only. Default: mapped (compressed tables are read buffered and cached).
    pub table_access: Access,
    /// Threads for flushes and compactions; 0 runs them on the writing thread. Default: 2.
    pub workers: usize,
    /// The write-ahead log's size at which the memtables that hold its oldest segment are flushed. Default: 1 GiB.
    pub log_bytes_max: u64,
    /// Bytes of `Durability::Deferred` writes that may wait in the process. Default: 1 MiB.
    pub deferred_bytes_max: usize,
    /// Options of the default keyspace of a database that this open makes; an existing one keeps those that it has. Default: the
    /// defaults of [`KeyspaceOptions`].
    pub default_keyspace: KeyspaceOptions,
    /// Told of flushes, compactions, stalls, cut logs, damaged filters. Default: none.
    pub listener: Option<Arc<dyn EventListener>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create_if_missing: true,
            read_only: false,
            cache_bytes: 256 << 20,
            cache_pinned_percent: 20,
            table_access: Access::Mapped,
            workers: 2,
            log_bytes_max: 1 << 30,
            deferred_bytes_max: 1 << 20,
            default_keyspace: KeyspaceOptions::default(),
            listener: None,
        }
    }
}

/// Options of one keyspace; they are kept in the manifest and used for every table written later.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyspaceOptions {
    /// Size at which a memtable is rotated. Unit: bytes, at least 64 KiB. Default: 64 MiB.
    pub memtable_bytes: u64,
    /// Size of a data block on disk, header and checksum included. A power of two from 4 KiB to 64 KiB. Default: 4 KiB.
    pub block_bytes: u32,
    /// Size of a table. Unit: bytes, at least 64 KiB. Default: 64 MiB.
    pub table_bytes: u64,
    /// Compression per level: the last entry counts for all deeper levels. Default: none at all.
    pub compression: Vec<Compression>,
    /// The filters of each table, by level. Default: blocked Bloom filters of 10 bits per key.
    pub filters: Filters,
    /// Keep a key column (all keys, no values) in each table, from which filters and views are rebuilt. Default: false.
    pub key_column: bool,
    /// How many times larger each level is than the one above (2 to 20). Default: 10.
    pub size_ratio: u32,
    /// Runs at L0 at which they are merged into the next level; twice as many while the keyspace is being filled. Default: 4.
    pub level0_runs: u32,
}

impl Default for KeyspaceOptions {
    fn default() -> Self {
        Self {
            memtable_bytes: 64 << 20,
            block_bytes: 4096,
            table_bytes: 64 << 20,
            compression: vec![Compression::None],
            filters: Filters::default(),
            key_column: false,
            size_ratio: 10,
            level0_runs: 4,
        }
    }
}

/// The entry of a per-level list: the last one counts for all deeper levels.
pub(crate) fn per_level<T: Copy>(list: &[T], level: usize) -> Option<T> {
    list.get(level).or(list.last()).copied()
}

fn refuse<T>(what: &'static str, got: impl ToString, expected: &str) -> Result<T> {
    Err(Error::InvalidArgument { what, got: got.to_string(), expected: expected.to_owned() })
}

impl Options {
    /// Refuses values outside their bounds.
    pub(crate) fn check(&self) -> Result<()> {
        if self.cache_pinned_percent > 100 {
            return refuse("cache_pinned_percent", self.cache_pinned_percent, "give 0 to 100");
        }
        if self.workers > 64 {
            return refuse("workers", self.workers, "give 0 to 64 threads");
        }
        if self.log_bytes_max < 1 << 20 {
            return refuse("log_bytes_max", self.log_bytes_max, "give at least 1 MiB");
        }
        self.default_keyspace.check()
    }
}

impl KeyspaceOptions {
    /// Refuses values outside their bounds.
    pub(crate) fn check(&self) -> Result<()> {
        if self.memtable_bytes < 64 << 10 || self.memtable_bytes > 4 << 30 {
            return refuse("memtable_bytes", self.memtable_bytes, "give 64 KiB to 4 GiB");
        }
        if !self.block_bytes.is_power_of_two() || !(4096..=65_536).contains(&self.block_bytes) {
            return refuse("block_bytes", self.block_bytes, "give a power of two from 4,096 to 65,536");
        }
        if self.table_bytes < 64 << 10 || self.table_bytes > 16 << 30 {
            return refuse("table_bytes", self.table_bytes, "give 64 KiB to 16 GiB");
        }
        if self.compression.iter().any(|c| matches!(c, Compression::Zstd(level) if !(1..=19).contains(level)))
        {
            return refuse("compression", "zstd level", "give a level from 1 to 19");
        }
        self.filters.check()?;
        if !(2..=20).contains(&self.size_ratio) {
            return refuse("size_ratio", self.size_ratio, "give 2 to 20");
        }
        if !(1..=64).contains(&self.level0_runs) {
            return refuse("level0_runs", self.level0_runs, "give 1 to 64");
        }
        Ok(())
    }
}
