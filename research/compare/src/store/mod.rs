//! The stores behind one interface, each used as its documentation recommends for speed.
//!
//! Contract of [`Store`] and [`Reader`]:
//! - A write reaches the operating system before it returns (it survives a crash of the process) and is not synced. With
//!   [`Settings::is_deferred`] the store buffers its log in the process. LMDB and redb have no log: a write is a commit.
//! - A [`Reader`] belongs to one thread. With `is_live` it sees every earlier write; otherwise it may read a snapshot and keep
//!   its transaction and iterator as long as the store allows.
//! - Every value read is passed to the [`Sink`], and keys too if the sink is strict.

#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "leveldb")]
mod leveldb;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod tamis;
#[cfg(test)]
mod tests;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{
    data::{Entries, Key, Value},
    failure::{Failure, Result},
    sink::Sink,
};

/// The settings of a store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Name of the store.
    pub store: String,
    /// Bytes of the cache.
    pub cache_bytes: u64,
    /// Bytes of a memtable.
    pub memtable_bytes: u64,
    /// Direct I/O.
    pub is_direct: bool,
    /// The log is buffered in the process.
    pub is_deferred: bool,
    /// No compactions: each flush adds a run.
    pub is_unmerged: bool,
    /// Bytes of address space for a mapped store.
    pub data_bytes_max: u64,
}

/// A store that can be compared.
pub struct Kind {
    /// Name on the command line.
    pub name: &'static str,
    /// Title in tables.
    pub title: &'static str,
    /// Settings, for the page with the figures.
    pub about: &'static str,
    /// Opens or creates it in a folder.
    pub open: fn(&Path, &Settings) -> Result<Box<dyn Store>>,
    /// Whether it can leave flushed runs unmerged.
    pub can_stay_unmerged: bool,
    /// Whether it can buffer its log in the process.
    pub can_defer: bool,
    /// Whether it supports direct I/O.
    pub can_direct: bool,
    /// Whether it has transactions with reads.
    pub can_transact: bool,
    /// Maximum bytes of files per byte of data in a random fill, for the check of disk space.
    pub space: f64,
    /// Whether it is compared by default.
    pub is_default: bool,
}

/// All stores of this build, in table order.
pub const KINDS: &[Kind] = &[
    tamis::KIND,
    tamis::BUFFERED,
    tamis::BLOOM,
    tamis::PARTITIONED,
    #[cfg(feature = "rocksdb")]
    rocksdb::KIND,
    #[cfg(feature = "rocksdb")]
    rocksdb::TUNED,
    #[cfg(feature = "leveldb")]
    leveldb::KIND,
    #[cfg(feature = "lmdb")]
    lmdb::KIND,
    #[cfg(feature = "fjall")]
    fjall::KIND,
    #[cfg(feature = "redb")]
    redb::KIND,
];

/// An open store.
pub trait Store: Send + Sync {
    /// Creates a reader for one thread.
    fn reader(&self, is_live: bool) -> Result<Box<dyn Reader + '_>>;

    /// Writes one entry.
    fn put(&self, key: &Key, value: &Value) -> Result<()>;

    /// In a transaction, reads the values of `keys` and writes each to the next key, the last one to the first; after a conflict again.
    fn transfer(&self, _keys: &[Key]) -> Result<()> {
        Err(Failure::new("the store has no transactions"))
    }

    /// Writes many entries: one by one if the store has a log, otherwise in transactions of 10,000.
    fn fill(&self, entries: &mut Entries) -> Result<()> {
        while let Some((key, value)) = entries.advance() {
            self.put(key, value)?;
        }
        Ok(())
    }

    /// Flushes the memtables and waits.
    fn flush(&self) -> Result<()>;

    /// Waits until no compaction is pending, as far as the store reports it.
    fn wait(&self) -> Result<()>;

    /// Compacts the whole store.
    fn compact(&self) -> Result<()>;

    /// The levels or runs, for people.
    fn shape(&self) -> String;
}

/// The reads of one thread.
pub trait Reader {
    /// Reads the value of a key; returns whether it was found.
    fn get(&mut self, key: &Key, sink: &mut Sink) -> Result<bool>;

    /// Reads `count` values forward from the first entry at or after `key` (with `count` 0: the key of this entry). With
    /// `is_fresh` a new iterator is created. Returns the number of entries.
    fn forward(&mut self, key: &Key, count: usize, is_fresh: bool, sink: &mut Sink) -> Result<usize>;

    /// Reads `count` values backward from the last entry at or before `key`. Returns the number of entries.
    fn backward(&mut self, key: &Key, count: usize, sink: &mut Sink) -> Result<usize>;

    /// Reads the values of a closed range, both bounds inclusive. Returns their number.
    fn range(&mut self, lower: &Key, upper: &Key, sink: &mut Sink) -> Result<usize>;

    /// Reads all values in key order until the end, or until `may_continue`, called regularly with the number so far, returns false.
    fn all(&mut self, sink: &mut Sink, may_continue: &mut dyn FnMut(u64) -> bool) -> Result<u64>;
}

/// Each key of a transfer with the key that gets its value.
fn moves(keys: &[Key]) -> impl Iterator<Item = (&Key, &Key)> {
    keys.iter().zip(keys.iter().cycle().skip(1))
}

/// The error of a transfer of a key that is not there.
fn missing() -> Failure {
    Failure::new("a key of a transfer is missing")
}

/// Number of entries of a full scan between two calls of `may_continue`.
const CHECK_INTERVAL: u64 = 4096;

/// Whether a scan continues after `count` entries.
fn should_continue(count: u64, may_continue: &mut dyn FnMut(u64) -> bool) -> bool {
    !count.is_multiple_of(CHECK_INTERVAL) || may_continue(count)
}

/// Returns the store with this name.
pub fn kind_named(name: &str) -> Result<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        Failure::new(format!("unknown store {name:?}; give one of {}", names.join(", ")))
    })
}
