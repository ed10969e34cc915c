//! The stores behind one interface, each used as its documentation recommends for speed.
//!
//! Contract, in addition to that of [`tamis_bench::driver`]:
//! - A write reaches the operating system before it returns (it survives a crash of the process) and is not synced. With
//!   [`Settings::is_deferred`] the store buffers its log in the process. LMDB and redb have no log: a write is a commit.
//! - With [`Settings::is_filling`], a store without a log writes 10,000 entries in a transaction.

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

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tamis_bench::{
    BenchError,
    driver::{Session, Sink, Store},
};
use tamis_workload::SplitMix64;

#[cfg(any(feature = "lmdb", feature = "redb"))]
use crate::workload::{ENTRY_BYTES, VALUE_BYTES};
use crate::workload::{FORM, unknown};

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, BenchError>;

/// The settings of a store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Name of the store.
    pub store: String,
    /// Its folder.
    pub folder: PathBuf,
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
    /// The number of entries of a fill.
    pub entries: u64,
    /// The store is opened for a fill.
    pub is_filling: bool,
    /// One thread fills the store in key order.
    pub is_appending: bool,
}

/// A kind of stores.
pub struct Kind {
    /// Name on the command line.
    pub name: &'static str,
    /// Title in tables.
    pub title: &'static str,
    /// Settings, for the page with the figures.
    pub about: &'static str,
    /// Opens or creates it.
    pub open: fn(&Settings) -> Result<Box<dyn Compared>>,
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

/// Returns the kind with this name.
pub fn kind_named(name: &str) -> Result<&'static Kind> {
    let found = KINDS.iter().find(|kind| kind.name == name);
    found.ok_or_else(|| unknown("store", name, KINDS.iter().map(|kind| kind.name)))
}

/// A store of the comparison. The defaults are those of a B-tree, which has one run and no memtable.
pub trait Compared: Store + Send {
    /// Flushes the memtables and waits.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// Compacts the whole store.
    fn compact(&self) -> Result<()> {
        Ok(())
    }

    /// The levels or runs, for people.
    fn shape(&self) -> String {
        "one tree".to_owned()
    }

    /// In a transaction, reads the values of `keys` and writes each to the next key, the last one to the first; after a conflict again.
    fn transfer(&self, _keys: &[Vec<u8>]) -> Result<()> {
        Err(BenchError::other("the store has no transactions"))
    }
}

/// Each key of a transfer with the key that gets its value.
fn moves(keys: &[Vec<u8>]) -> impl Iterator<Item = (&[u8], &[u8])> {
    keys.iter().map(Vec::as_slice).zip(keys.iter().map(Vec::as_slice).cycle().skip(1))
}

/// The error of a transfer of a key that is not there.
fn missing() -> BenchError {
    BenchError::other("a key of a transfer is missing")
}

/// Keys of a transfer.
const TRANSFER_KEYS: usize = 10;

/// A store whose writes are transfers: each from the written key, or with `is_hot` from the first one of all, to others.
pub struct Transfers<'a> {
    /// The store.
    pub store: &'a dyn Compared,
    /// Whether all transfers have a key in common.
    pub is_hot: bool,
    /// Entries of the store.
    pub entry_count: u64,
}

impl Store for Transfers<'_> {
    fn session(&self, _is_live: bool) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(self))
    }

    fn settle(&self) -> Result<()> {
        self.store.settle()
    }
}

impl Session for &Transfers<'_> {
    fn put(&mut self, key: &[u8], _value: &[u8]) -> Result<()> {
        // The written key determines the others: distinct ones in most cases.
        let digits = key.iter().fold(0_u64, |number, digit| number.rotate_left(4) ^ u64::from(*digit));
        let mut random = SplitMix64::new(digits);
        let mut keys = vec![if self.is_hot { FORM.key(0) } else { key.to_vec() }];
        keys.extend((1..TRANSFER_KEYS).map(|_| FORM.key(random.below(self.entry_count.max(1)))));
        self.store.transfer(&keys)
    }

    fn get(&mut self, _key: &[u8], _sink: &mut Sink) -> Result<bool> {
        Err(missing())
    }

    fn scan(&mut self, _lower: &[u8], _limit: u64, _sink: &mut Sink) -> Result<u64> {
        Err(missing())
    }

    fn scan_back(&mut self, _upper: &[u8], _limit: u64, _sink: &mut Sink) -> Result<u64> {
        Err(missing())
    }

    fn range(&mut self, _lower: &[u8], _upper: &[u8], _sink: &mut Sink) -> Result<u64> {
        Err(missing())
    }
}

/// Entries per transaction of a fill of a store without a log.
#[cfg(any(feature = "lmdb", feature = "redb"))]
const BATCH_COUNT: usize = 10_000;

/// The entries that a session has not written yet: one that is due at once, or those of a batch of a fill.
#[cfg(any(feature = "lmdb", feature = "redb"))]
struct Pending {
    bytes: Vec<u8>,
    due_bytes: usize,
}

#[cfg(any(feature = "lmdb", feature = "redb"))]
impl Pending {
    fn new(is_filling: bool) -> Self {
        let due_count = if is_filling { BATCH_COUNT } else { 1 };
        Self { bytes: Vec::new(), due_bytes: due_count * ENTRY_BYTES as usize }
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds an entry; returns whether the entries are due.
    fn add(&mut self, key: &[u8], value: &[u8]) -> bool {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.bytes.len() >= self.due_bytes
    }

    /// Passes the entries to `write`, and removes them.
    fn write(&mut self, mut write: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        for entry in self.bytes.chunks_exact(ENTRY_BYTES as usize) {
            let (key, value) = entry.split_at(ENTRY_BYTES as usize - VALUE_BYTES);
            write(key, value)?;
        }
        self.bytes.clear();
        Ok(())
    }
}

/// Opens or creates the store of these settings.
pub fn open(settings: &Settings) -> Result<Box<dyn Compared>> {
    let folder: &Path = &settings.folder;
    std::fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
    (kind_named(&settings.store)?.open)(settings)
}
