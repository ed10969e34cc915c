//! An embedded, durable, ordered key-value store whose reads touch only the data they return.
//!
//! ```
//! use tamis::{Db, Durability, KeyspaceOptions, WriteBatch};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let db = Db::open(folder.path())?; // a folder, created if it is missing
//! let events = db.get_or_create_keyspace("events", KeyspaceOptions::default())?;
//! for (sensor, time) in [(7_u32, 100_u64), (7, 160), (9, 120)] {
//!     let key = [&sensor.to_be_bytes()[..], &time.to_be_bytes()].concat();
//!     events.put(key, "21.5")?;
//! }
//! // The events of one sensor, in the order of time.
//! assert_eq!(events.prefix(7_u32.to_be_bytes()).count(), 2);
//!
//! // All or nothing, across keyspaces; survives a power failure when the call returns.
//! let mut batch = WriteBatch::new();
//! batch.delete_prefix(&events, 7_u32.to_be_bytes())?;
//! batch.put(&db.default_keyspace(), "deleted", "7")?;
//! db.write_with(batch, Durability::Synced)?;
//! assert_eq!(events.iter().count(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Three things to know
//!
//! 1. **The order of keys is your index.** Keys are bytes, compared as bytes. Write numbers big-endian, and put first what you read together: a prefix or a
//!    range is then one place on the disk. A [`Keyspace`] is a separate map with its own [`KeyspaceOptions`]; a [`WriteBatch`] is atomic across
//!    keyspaces, and [`Db::transact`] is what to use if a write depends on a read.
//! 2. **Each write chooses what it survives** ([`Durability`]). By default a crash of the process, with [`Durability::Synced`] a power failure. One process
//!    writes to a store, and others read it ([`Db::open_reader`]): a second writer gets [`Error::Locked`]. Every byte on disk has a checksum, and damage is an error with file and offset,
//!    never a wrong answer.
//! 3. **A read costs the blocks that have its answer.** Filters reject keys and ranges that a table does not have. The store chooses them from a sample of your
//!    queries ([`Filters`]): a new store needs about a thousand queries first. Reads of many runs, or over deleted entries, pay for the merge that makes them cheap again
//!    ([`Db::read_losses`]). A [`Scan`] and a [`Snapshot`] keep the files that they see: drop them soon.
//!
//! [`Db`] has all operations, [`Options`] and [`KeyspaceOptions`] all settings, [`Db::statistics`] says what reads and writes cost. Each [`Error`] says what to do.

mod admin;
mod batch;
#[cfg(feature = "bench-internals")]
#[path = "../internals/bench.rs"]
pub mod bench_internals;
mod cache;
mod changes;
mod coding;
mod compaction;
mod cursor;
mod db;
mod empty_ranges;
mod error;
mod expiry;
mod file_name;
mod frame;
#[cfg(feature = "fuzz-internals")]
#[path = "../internals/fuzz/mod.rs"]
pub mod fuzz_internals;
mod key;
mod key_range_bounds;
mod memtable;
mod merge_operator;
mod observe;
mod options;
mod range_tombstone;
mod read;
#[cfg(feature = "simulation")]
#[path = "../internals/simulation/mod.rs"]
pub mod simulation;
mod slice;
mod store;
mod sync;
mod table;
#[cfg(test)]
mod tests;
mod transaction;
mod version;
mod view;
mod wal;
mod write;

pub use admin::checkpoint::CheckpointReport;
pub use admin::ingest::{IngestOptions, IngestReport};
pub use admin::inspect::{Cell, Inspection};
pub use admin::repair::{LostRange, QuarantinedFile, RepairReport};
pub use admin::table_writer::{TableFile, TableWriter};
pub use admin::verify::{Fault, VerifyReport};
pub use batch::{BatchWrite, WriteBatch};
pub use changes::{Change, Changes, CommittedBatch, IngestedTables, Position};
pub use compaction::manual::CompactProgress;
pub use db::{Db, Keyspace, Snapshot, UnreadableTable};
pub use error::{ConflictKeys, Corruption, Error, Result};
pub use key::{KEY_LENGTH_MAX, VALUE_LENGTH_MAX};
pub use key_range_bounds::KeyRangeBounds;
pub use merge_operator::{Merge, MergeOperator, SortedSet};
pub use observe::advise::{LayoutEstimate, Workload, advise_layout};
pub use observe::events::{CompactionReason, Event, EventListener, PartitionChange};
pub use observe::metrics::{
    DecisionStatistics, DeletedRange, DroppedKeyspace, FilterAnswers, KeyspaceStatistics, LISTED_MAX,
    LevelFilters, LevelReads, LevelStatistics, PaidJob, PartitionDecisionStatistics, PartitionStatistics,
    QuerySampleStatistics, ReadLoss, ReadStatistics, SampleStatistics, Statistics, TableFilterStatistics,
    TableStatistics, ViewStatistics,
};
pub use observe::query_sample::{SAMPLED_BOUND_BYTES_MAX, SampledQueries};
pub use options::{
    Compression, Durability, Filters, KeepChanges, KeyspaceOptions, Layout, OpenMode, Options, TableFilter,
    Views,
};
pub use read::scan::Scan;
pub use slice::Slice;
pub use store::open_report::{OpenReport, WalTruncation};
pub use store::readers::ReaderStatistics;
pub use store::runtime::{Clock, JoinHandle, ManualClock, Runtime, Spawner, SystemClock, SystemSpawner};
/// The types of [`Clock::wait`].
pub use sync::{Condvar, MutexGuard, WaitTimeoutResult};
/// Families of filters, for [`TableFilter`].
pub use tamis_filter::{Family, FilterSpec};
/// The access modes of tables, and the trait for all file operations.
pub use tamis_vfs::{Access, OsVfs, Vfs, fork::OwnedByProcess};
pub use transaction::{
    handle::{Isolation, Savepoint, Transaction, TransactionOptions},
    scan::TransactionScan,
};

/// The programs of the README and of the guide are compiled and run with the tests of the documentation.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/guide/getting-started.md")]
    mod getting_started {}
    #[doc = include_str!("../../../docs/guide/transactions.md")]
    mod transactions {}
    #[doc = include_str!("../../../docs/guide/merge-and-expiry.md")]
    mod merge_and_expiry {}
    #[doc = include_str!("../../../docs/guide/other-processes.md")]
    mod other_processes {}
    #[doc = include_str!("../../../docs/guide/choosing-filters.md")]
    mod choosing_filters {}
    #[doc = include_str!("../../../docs/guide/choosing-a-layout.md")]
    mod choosing_a_layout {}
}
