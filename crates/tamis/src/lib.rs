//! An embedded, durable, ordered key-value store whose reads touch only the data they return.

mod advise;
mod background_error;
mod batch;
#[cfg(feature = "bench-internals")]
pub mod bench_internals;
mod cache;
mod changed_keyspaces;
mod checkpoint;
mod coding;
mod commit_log;
mod compaction;
mod context;
mod cursor;
mod db;
mod empty_ranges;
mod engine;
mod error;
mod events;
mod file_name;
mod flush_slot;
mod frame;
#[cfg(feature = "fuzz-internals")]
pub mod fuzz_internals;
mod guarded;
mod ingest;
mod inspect;
mod key;
mod key_range_bounds;
mod keyspace_state;
mod link;
mod memory_budget;
mod memtable;
mod metrics;
mod open_report;
mod options;
mod orphans;
mod pending_bounds;
mod quarantine;
mod query_sample;
mod range_tombstone;
mod read;
mod read_times;
mod recover;
mod repair;
mod runtime;
mod sample_file;
#[cfg(feature = "simulation")]
pub mod simulation;
mod slice;
mod statistics;
mod steps;
mod store_folder;
mod sync;
mod table;
mod table_writer;
#[cfg(test)]
mod tests;
mod verify;
mod version;
mod version_installer;
#[cfg_attr(
    not(any(test, feature = "fuzz-internals")),
    expect(dead_code, reason = "tests read whole views by functions that stores do not need")
)]
mod view;
mod wal;
mod write;

pub use advise::{LayoutEstimate, Workload, advise_layout};
pub use batch::{BatchWrite, WriteBatch};
pub use checkpoint::CheckpointReport;
pub use compaction::manual::CompactProgress;
pub use db::{Db, Keyspace, Snapshot, UnreadableTable};
pub use error::{Corruption, Error, Result};
pub use events::{CompactionReason, Event, EventListener, PartitionChange};
pub use ingest::{IngestOptions, IngestReport};
pub use inspect::{Cell, Inspection};
pub use key::{KEY_LENGTH_MAX, VALUE_LENGTH_MAX};
pub use key_range_bounds::KeyRangeBounds;
pub use metrics::{
    DecisionStatistics, DroppedKeyspace, ExpectedFilters, FILTER_CHOICES_MAX, FilterAnswers,
    FilterChoiceStatistics, FilterStatistics, KeyspaceStatistics, LevelFilters, LevelStatistics,
    PARTITIONS_MAX, PaidJob, PartitionDecisionStatistics, PartitionStatistics, QuerySampleStatistics,
    RUNNERS_UP_MAX, ReadLoss, ReadStatistics, SampleStatistics, Statistics, TableFilterStatistics,
    ViewStatistics,
};
pub use open_report::{OpenReport, WalTruncation};
pub use options::{
    Compression, Durability, Filters, KeyspaceChange, KeyspaceOptions, Layout, Options, TableFilter, Views,
};
pub use query_sample::{SAMPLED_BOUND_BYTES_MAX, SampledQueries};
pub use read::scan::Scan;
pub use repair::{LostRange, QuarantinedFile, RepairReport};
pub use runtime::{Clock, JoinHandle, ManualClock, Runtime, Spawner, SystemClock, SystemSpawner};
pub use slice::Slice;
/// The types of [`Clock::wait`].
pub use sync::{Condvar, MutexGuard, WaitTimeoutResult};
pub use table_writer::{TableFile, TableWriter};
/// Families of filters, for [`TableFilter`].
pub use tamis_filter::{Family, FilterSpec};
/// The access modes of tables, and the trait for all file operations.
pub use tamis_vfs::{Access, OsVfs, Vfs, fork::OwnedByProcess};
pub use verify::{Fault, VerifyReport};

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
