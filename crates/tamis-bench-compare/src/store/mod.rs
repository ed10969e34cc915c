//! The stores, behind one interface, each used in the way its own documentation recommends for speed.
//!
//! Contract of [`Store`] and [`Reader`]:
//! - Writes reach the operating system before they return (a crash of the process loses nothing) and are not synced, except
//!   where [`Settings::is_deferred`] asks for the store's own buffering; LMDB and redb have no log: there a write is a commit.
//! - A [`Reader`] belongs to one thread. One made with `is_live` sees every write before its call; another may stay at the
//!   moment at which it was made, and keeps its transaction and its iterator as long as the store allows.
//! - Every value read goes to the [`Sink`]; keys go there too where it is strict.

mod fjall;
mod leveldb;
mod lmdb;
mod redb;
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

/// What every store is opened with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The store's name.
    pub store: String,
    /// Bytes of its cache.
    pub cache_bytes: u64,
    /// Bytes of a memtable.
    pub memtable_bytes: u64,
    /// Past the page cache of the system.
    pub is_direct: bool,
    /// The log is buffered in the process.
    pub is_deferred: bool,
    /// Nothing is merged: each flush leaves one more run.
    pub is_unmerged: bool,
    /// Bytes of the address space that a mapped store may need.
    pub data_bytes_max: u64,
}

/// A store that can be compared.
pub struct Kind {
    /// Its name on the command line.
    pub name: &'static str,
    /// What stands for it in tables.
    pub title: &'static str,
    /// How it is set, for the page with the figures.
    pub about: &'static str,
    /// Opens or makes it in a folder.
    pub open: fn(&Path, &Settings) -> Result<Box<dyn Store>>,
    /// Whether it can leave flushed runs unmerged.
    pub can_stay_unmerged: bool,
    /// Whether it can buffer its log in the process.
    pub can_defer: bool,
    /// Whether it can go past the page cache.
    pub can_direct: bool,
    /// Files of a random fill for each byte of data, at most: for the check of the disk.
    pub space: f64,
    /// Whether it is compared when no names are given.
    pub is_default: bool,
}

/// All stores, in the order of the tables.
pub const KINDS: &[Kind] = &[
    tamis::KIND,
    tamis::BUFFERED,
    rocksdb::KIND,
    rocksdb::TUNED,
    leveldb::KIND,
    lmdb::KIND,
    fjall::KIND,
    redb::KIND,
];

/// An open store.
pub trait Store: Send + Sync {
    /// A reader for one thread.
    fn reader(&self, is_live: bool) -> Result<Box<dyn Reader + '_>>;

    /// Writes one entry.
    fn put(&self, key: &Key, value: &Value) -> Result<()>;

    /// Writes many entries: one by one where the store has a log, else in transactions of ten thousand.
    fn fill(&self, entries: &mut Entries) -> Result<()> {
        while let Some((key, value)) = entries.advance() {
            self.put(key, value)?;
        }
        Ok(())
    }

    /// Brings what is in memory into tables, and waits for it.
    fn flush(&self) -> Result<()>;

    /// Waits until no compaction is due, as far as the store tells.
    fn wait(&self) -> Result<()>;

    /// Merges all it holds.
    fn compact(&self) -> Result<()>;

    /// Its levels or runs, for people.
    fn shape(&self) -> String;
}

/// The reads of one thread.
pub trait Reader {
    /// The value of a key; whether it was there.
    fn get(&mut self, key: &Key, sink: &mut Sink) -> Result<bool>;

    /// From the first entry at or after `key`: `count` values in order of keys (with `count` 0: the one key). With
    /// `is_fresh` the iterator is made for this call. Gives the number of entries.
    fn forward(&mut self, key: &Key, count: usize, is_fresh: bool, sink: &mut Sink) -> Result<usize>;

    /// From the last entry at or before `key`: `count` values backward. Gives the number of entries.
    fn backward(&mut self, key: &Key, count: usize, sink: &mut Sink) -> Result<usize>;

    /// The values of a closed range, both ends included. Gives their number.
    fn range(&mut self, lower: &Key, upper: &Key, sink: &mut Sink) -> Result<usize>;

    /// All values in order of keys, until there are no more or `go_on`, asked now and then with the number so far, says no.
    fn all(&mut self, sink: &mut Sink, go_on: &mut dyn FnMut(u64) -> bool) -> Result<u64>;
}

/// How often a scan of everything asks whether to go on.
const ASK_EVERY: u64 = 4096;

/// Whether a scan goes on after `count` entries.
fn may_go_on(count: u64, go_on: &mut dyn FnMut(u64) -> bool) -> bool {
    !count.is_multiple_of(ASK_EVERY) || go_on(count)
}

/// The store of a name.
pub fn kind_named(name: &str) -> Result<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        Failure::new(format!("no store is called {name:?}; there are {}", names.join(", ")))
    })
}
