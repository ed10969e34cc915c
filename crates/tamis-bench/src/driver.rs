//! Measures whole stores: in experiments, and in the comparison with other stores.
//!
//! 1. [`Script`]: generates the operations and encodes their keys for each thread, before the clock starts.
//! 2. [`drive`]: each thread opens a [`Session`], runs its warm-up, waits for the others, and runs its part. The end of an
//!    operation is the start of the next one, so each operation reads the clock once; with [`Latencies::OneIn16`], most do not.
//! 3. [`Measured`]: latency histograms by kind of operation, throughput per second, the growth of the counters of the store and
//!    of the process (I/O, CPU time), and a digest of what the reads returned.
//! 4. [`Measured::settle`]: after writes, waits until background work is finished and reads all counters again, so that they
//!    include the background work that the writes caused.
//!
//! The experiment `store-harness` measures the overhead of the driver itself, on a store that does nothing.

mod counters;
mod empty;
mod run;
mod script;
mod settle;
mod sink;
mod tamis_store;

use std::path::Path;

use crate::{BenchError, Fields};

pub use counters::{Counters, Process};
pub use empty::EmptyStore;
pub use run::{Drive, Latencies, Measured, drive};
pub use script::{Script, Values};
pub use settle::settle;
pub use sink::Sink;
pub use tamis_store::{TamisOptions, TamisStore, blocks_of, bytes_written};

/// A store under measurement. Threads share it; each has a session.
///
/// # Errors
/// All functions return errors of the store; [`Store::settle`] also if the store is closed meanwhile.
pub trait Store: Sync {
    /// Opens the session of one thread. A live session sees every earlier write, and creates an iterator for each scan; another
    /// one may read a snapshot, and keep its transaction and its iterator.
    fn session(&self, is_live: bool) -> Result<Box<dyn Session + '_>, BenchError>;

    /// Flushes, and waits until no background work remains. Measurements call [`settle()`], which can be interrupted.
    fn settle(&self) -> Result<(), BenchError>;

    /// Approximate bytes of background work that remain.
    fn unsettled_bytes(&self) -> u64 {
        0
    }

    /// Stops all work, so that a [`Store::settle`] in another thread returns soon. The store is unusable afterwards.
    fn close(&self) -> Result<(), BenchError> {
        Ok(())
    }

    /// The counters of the store since it was opened; fields that it does not count are `None`.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// The settings of the store, for the results.
    fn configuration(&self) -> Fields {
        Fields::default()
    }

    /// The folder of the store; `None` for a store without files.
    fn folder(&self) -> Option<&Path> {
        None
    }
}

/// The access of one thread to a store. Reads pass every entry that they count to the sink.
///
/// # Errors
/// All functions return errors of the store.
pub trait Session {
    /// Writes an entry. A session of a fill may write it later, until [`Session::finish`].
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError>;

    /// Deletes a key.
    fn delete(&mut self, _key: &[u8]) -> Result<(), BenchError> {
        Err(BenchError::other("deletes of this store are not measured"))
    }

    /// Reads a value; returns whether the key was found.
    fn get(&mut self, key: &[u8], sink: &mut Sink) -> Result<bool, BenchError>;

    /// Reads up to `limit` entries in ascending order from `lower`; returns their number.
    fn scan(&mut self, lower: &[u8], limit: u64, sink: &mut Sink) -> Result<u64, BenchError>;

    /// Reads up to `limit` entries in descending order from `upper`; returns their number.
    fn scan_back(&mut self, upper: &[u8], limit: u64, sink: &mut Sink) -> Result<u64, BenchError>;

    /// Reads all entries of a closed range (both bounds inclusive); returns their number. The store knows both bounds at the start.
    fn range(&mut self, lower: &[u8], upper: &[u8], sink: &mut Sink) -> Result<u64, BenchError>;

    /// Writes what the session has not written yet. The last call of a run, within its time.
    fn finish(&mut self) -> Result<(), BenchError> {
        Ok(())
    }
}
