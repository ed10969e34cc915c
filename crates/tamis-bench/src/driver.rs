//! Measures whole stores in experiments. (The comparison with other stores has a separate driver that runs each store in a
//! separate process.)
//!
//! 1. [`Script`]: generates the operations and encodes their keys for each thread, before the clock starts.
//! 2. [`drive`]: each thread opens a [`Session`], runs its warm-up, waits for the others, and runs its part. The end of an
//!    operation is the start of the next one, so each operation reads the clock once; with [`Latencies::OneIn16`], most do not.
//! 3. [`Measured`]: latency histograms by kind of operation, throughput per second, and the growth of the counters of the store
//!    and of the process (I/O, CPU time).
//! 4. [`Measured::settle`]: after writes, waits until background work is finished and reads all counters again, so that they
//!    include the background work that the writes caused.
//!
//! The experiment `store-harness` measures the overhead of the driver itself, on a store that does nothing.

mod counters;
mod empty;
mod run;
mod script;
mod settle;
mod tamis_store;

use std::path::Path;

use crate::{BenchError, Fields};

pub use counters::{Counters, Process};
pub use empty::EmptyStore;
pub use run::{Drive, Latencies, Measured, drive};
pub use script::{Script, Values};
pub use settle::settle;
pub use tamis_store::{TamisOptions, TamisStore, blocks_of, bytes_written};

/// A store under measurement. Threads share it; each has a session.
pub trait Store: Sync {
    /// Opens the session of one thread.
    ///
    /// # Errors
    /// Errors of the store.
    fn session(&self) -> Result<Box<dyn Session + '_>, BenchError>;

    /// Flushes, and waits until no background work remains. Measurements call [`settle()`], which can be interrupted.
    ///
    /// # Errors
    /// Errors of the store, also if it is closed meanwhile.
    fn settle(&self) -> Result<(), BenchError>;

    /// Approximate bytes of background work that remain.
    fn unsettled_bytes(&self) -> u64 {
        0
    }

    /// Stops all work, so that a [`Store::settle`] in another thread returns soon. The store is unusable afterwards.
    ///
    /// # Errors
    /// Errors of the store.
    fn close(&self) -> Result<(), BenchError>;

    /// The counters of the store since it was opened; fields that it does not count are `None`.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// The settings of the store, for the results.
    fn configuration(&self) -> Fields;

    /// The folder of the store; `None` for a store without files.
    fn folder(&self) -> Option<&Path>;
}

/// The access of one thread to a store.
///
/// Reads must load the value: an implementation touches each entry that it counts (`std::hint::black_box` of the value, or a
/// copy), so that lazy stores have no advantage.
pub trait Session {
    /// Writes an entry.
    ///
    /// # Errors
    /// Errors of the store.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError>;

    /// Deletes a key.
    ///
    /// # Errors
    /// Errors of the store.
    fn delete(&mut self, key: &[u8]) -> Result<(), BenchError>;

    /// Reads a value; returns whether the key was found.
    ///
    /// # Errors
    /// Errors of the store.
    fn get(&mut self, key: &[u8]) -> Result<bool, BenchError>;

    /// Reads up to `limit` entries in ascending order from `lower`; returns their number.
    ///
    /// # Errors
    /// Errors of the store.
    fn scan(&mut self, lower: &[u8], limit: u64) -> Result<u64, BenchError>;

    /// Reads up to `limit` entries in descending order from `upper`; returns their number.
    ///
    /// # Errors
    /// Errors of the store.
    fn scan_back(&mut self, upper: &[u8], limit: u64) -> Result<u64, BenchError>;

    /// Reads all entries of a closed range (both bounds inclusive); returns their number. The store knows both bounds at the start.
    ///
    /// # Errors
    /// Errors of the store.
    fn range(&mut self, lower: &[u8], upper: &[u8]) -> Result<u64, BenchError>;
}
