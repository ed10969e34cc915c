//! An embedded, durable, ordered key-value store whose reads touch only the data they return.

mod admin;
mod batch;
#[cfg(feature = "bench-internals")]
pub mod bench_internals;
mod cache;
mod coding;
mod compaction;
mod cursor;
mod db;
mod empty_ranges;
mod error;
mod file_name;
mod frame;
#[cfg(feature = "fuzz-internals")]
pub mod fuzz_internals;
mod key;
mod key_range_bounds;
mod memtable;
mod observe;
mod options;
mod range_tombstone;
mod read;
#[cfg(feature = "simulation")]
pub mod simulation;
mod slice;
mod store;
mod sync;
mod table;
#[cfg(test)]
mod tests;
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
pub use compaction::manual::CompactProgress;
pub use db::{Db, Keyspace, Snapshot, UnreadableTable};
pub use error::{Corruption, Error, Result};
pub use key::{KEY_LENGTH_MAX, VALUE_LENGTH_MAX};
pub use key_range_bounds::KeyRangeBounds;
pub use observe::advise::{LayoutEstimate, Workload, advise_layout};
pub use observe::events::{CompactionReason, Event, EventListener, PartitionChange};
pub use observe::metrics::{
    DELETED_RANGES_MAX, DecisionStatistics, DeletedRange, DroppedKeyspace, ExpectedFilters,
    FILTER_CHOICES_MAX, FilterAnswers, FilterChoiceStatistics, KeyspaceStatistics, LevelFilters, LevelReads,
    LevelStatistics, PARTITIONS_MAX, PaidJob, PartitionDecisionStatistics, PartitionStatistics,
    QuerySampleStatistics, RUNNERS_UP_MAX, ReadLoss, ReadStatistics, SampleStatistics, Statistics,
    TableFilterStatistics, TableStatistics, ViewStatistics,
};
pub use observe::query_sample::{SAMPLED_BOUND_BYTES_MAX, SampledQueries};
pub use options::{
    Compression, Durability, Filters, KeyspaceChange, KeyspaceOptions, Layout, Options, TableFilter, Views,
};
pub use read::scan::Scan;
pub use slice::Slice;
pub use store::open_report::{OpenReport, WalTruncation};
pub use store::runtime::{Clock, JoinHandle, ManualClock, Runtime, Spawner, SystemClock, SystemSpawner};
/// The types of [`Clock::wait`].
pub use sync::{Condvar, MutexGuard, WaitTimeoutResult};
/// Families of filters, for [`TableFilter`].
pub use tamis_filter::{Family, FilterSpec};
/// The access modes of tables, and the trait for all file operations.
pub use tamis_vfs::{Access, OsVfs, Vfs, fork::OwnedByProcess};

/// The programs of the README and of the guide are compiled and run with the tests of the documentation.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    mod readme {}
    #[doc = include_str!("../../../docs/guide/getting-started.md")]
    mod getting_started {}
    #[doc = include_str!("../../../docs/guide/choosing-filters.md")]
    mod choosing_filters {}
    #[doc = include_str!("../../../docs/guide/choosing-a-layout.md")]
    mod choosing_a_layout {}
}
