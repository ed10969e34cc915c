//! How whole stores are measured in experiments. (The comparison with other stores has a driver of its own: each store runs in a
//! process of its own there, and all take turns.)
//!
//! 1. [`Script`]: the operations are drawn and their keys written out, thread by thread, before any clock starts.
//! 2. [`drive`]: each thread opens a [`Session`], does its warm-up, waits for the others, and works through its part. The end of an
//!    operation is the beginning of the next, so that each costs one look at the clock; with [`Latencies::OneIn16`] most cost none.
//! 3. [`Measured`]: histograms by kind of operation to 99.99 %, throughput by second, what the store's counters and the process's
//!    own (input and output, time) grew by.
//! 4. [`Measured::settle`], where something was written: the store comes to rest, and all counters are taken again, so that what the writes
//!    still cause counts in each of them.
//!
//! Cost of the harness itself: the experiment `store-harness` measures it on a store that does nothing.

mod counters;
mod empty;
mod rest;
mod run;
mod script;
mod tamis_store;

use std::path::Path;

use crate::{BenchError, Fields};

pub use counters::{Counters, Process};
pub use empty::EmptyStore;
pub use rest::settle;
pub use run::{Drive, Latencies, Measured, drive};
pub use script::{Script, Values};
pub use tamis_store::{TamisOptions, TamisStore};

/// A store under measurement. All threads share it; each has a session.
pub trait Store: Sync {
    /// What one thread works with.
    ///
    /// # Errors
    /// The store's.
    fn session(&self) -> Result<Box<dyn Session + '_>, BenchError>;

    /// Brings the store to rest: what was written is in tables, and nothing goes on in the background. Who measures calls [`settle`], which
    /// can be interrupted.
    ///
    /// # Errors
    /// The store's, also where it is closed meanwhile.
    fn settle(&self) -> Result<(), BenchError>;

    /// About how much is left to do until it is at rest.
    fn unsettled_bytes(&self) -> u64 {
        0
    }

    /// Ends all work, so that a [`Store::settle`] of another thread returns soon. The store is of no use then.
    ///
    /// # Errors
    /// The store's.
    fn close(&self) -> Result<(), BenchError>;

    /// Its own counters since it was opened. Fields that it does not count stay empty.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// Its exact settings, for the results.
    fn configuration(&self) -> Fields;

    /// Where its files lie; `None` for a store without files.
    fn folder(&self) -> Option<&Path>;
}

/// One thread's way into a store.
///
/// Reads bring the value to the program: an implementation touches each entry that it counts (`std::hint::black_box` of the value, or a copy),
/// so that no store is paid for handing out what it never looked at.
pub trait Session {
    /// Writes an entry.
    ///
    /// # Errors
    /// The store's.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError>;

    /// Deletes a key.
    ///
    /// # Errors
    /// The store's.
    fn delete(&mut self, key: &[u8]) -> Result<(), BenchError>;

    /// Reads a value; whether it is there.
    ///
    /// # Errors
    /// The store's.
    fn get(&mut self, key: &[u8]) -> Result<bool, BenchError>;

    /// Reads up to `limit` entries from `lower` on, in order; how many.
    ///
    /// # Errors
    /// The store's.
    fn scan(&mut self, lower: &[u8], limit: u64) -> Result<u64, BenchError>;

    /// Reads up to `limit` entries from `upper` on, downwards; how many.
    ///
    /// # Errors
    /// The store's.
    fn scan_back(&mut self, upper: &[u8], limit: u64) -> Result<u64, BenchError>;

    /// Reads all entries of a closed range, both bounds included; how many. The store knows both bounds from the beginning.
    ///
    /// # Errors
    /// The store's.
    fn range(&mut self, lower: &[u8], upper: &[u8]) -> Result<u64, BenchError>;
}
