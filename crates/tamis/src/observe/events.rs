//! Events that a store reports to the program's listener.

use std::{fmt, path::PathBuf};

/// An event during an open or in the background.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A memtable was flushed.
    Flushed {
        /// The keyspace's name.
        keyspace: String,
        /// The bytes that it was expected to write: those of the entries of the memtable, without entries that were retained in the next
        /// one, and the fixed bytes of a table for each partition. In the partitioned layout keys and values count, in others the memory of
        /// entries.
        bytes_expected: u64,
        /// Bytes of the tables.
        bytes: u64,
    },
    /// A flush left entries in memory, for which it would have written too much ([`crate::Layout::Partitioned`]).
    EntriesRetained {
        /// The keyspace's name.
        keyspace: String,
        /// Number of partitions that got no table.
        partition_count: usize,
        /// Number of entries.
        entry_count: u64,
        /// Bytes of their keys and values.
        bytes: u64,
        /// The bytes that are expected not to be written: tables, and the compactions that these would have caused.
        bytes_saved_expected: u64,
    },
    /// A compaction replaced tables. One that only dropped tables, because range tombstones deleted all of their entries, has read and
    /// written no bytes.
    Compacted {
        /// The keyspace's name.
        keyspace: String,
        /// Why it was due.
        reason: CompactionReason,
        /// Level of the newest input.
        level: usize,
        /// Level of the outputs.
        output_level: usize,
        /// About the most bytes that it was expected to write: those of its inputs. In the partitioned layout those of entries that are
        /// known to be obsolete are left out.
        bytes_expected: u64,
        /// Bytes read.
        bytes_read: u64,
        /// Bytes written.
        bytes_written: u64,
    },
    /// Partitions of a keyspace were replaced by others ([`crate::Layout::Partitioned`]).
    PartitionsChanged {
        /// The keyspace's name.
        keyspace: String,
        /// How they were replaced.
        change: PartitionChange,
        /// Number of partitions that were replaced.
        before: usize,
        /// Number of partitions that replaced them.
        after: usize,
        /// The bytes that the job was expected to write: the entries of a split, and the tables that a division cuts.
        bytes_expected: u64,
        /// Bytes read.
        bytes_read: u64,
        /// Bytes written.
        bytes_written: u64,
    },
    /// A write stall began, changed or ended.
    BackPressure {
        /// The delay per MiB written: 0 if the stall has ended, `None` while writes stop altogether.
        microseconds_per_mib: Option<u64>,
    },
    /// The torn end of a log segment was truncated after a crash.
    WalTruncated {
        /// The segment.
        file: PathBuf,
        /// Where its valid part ends.
        offset: u64,
        /// Bytes after the offset.
        bytes: u64,
    },
    /// A filter is damaged and is ignored: reads are slower, results are the same. [`crate::Db::rebuild_filters`] replaces it.
    FilterCorrupt {
        /// The file.
        file: PathBuf,
        /// The damage.
        reason: String,
    },
    /// A table was written without one of its filters, because the filter can't be built for its keys: reads are slower, results are
    /// the same. Use more bits per key or another family.
    FilterBuildFailed {
        /// The table's file.
        file: PathBuf,
        /// The filter, and why it can't be built.
        reason: String,
    },
    /// The filters of a table were replaced: others cost less for today's queries ([`crate::Filters::auto`]).
    FiltersReplaced {
        /// The keyspace's name.
        keyspace: String,
        /// The table's number.
        table: u64,
        /// The previous filters, and their expected cost today.
        before: String,
        /// The current filters, and their expected cost.
        after: String,
        /// The time that reads have lost by the previous filters; 0 if the program asked for the check.
        lost_microseconds: u64,
        /// The expected time of the check, doubled for each earlier one that did not help; 0 if the program asked for it.
        price_microseconds: u64,
    },
    /// A sorted view was built: scans of these runs use it instead of a merge.
    ViewBuilt {
        /// The keyspace's name.
        keyspace: String,
        /// The file.
        file: PathBuf,
        /// Runs that it covers.
        run_count: usize,
        /// Entries of these runs.
        entry_count: u64,
        /// Size of the file.
        bytes: u64,
        /// The time of the job, with that of the flushes for which it has waited.
        microseconds: u64,
        /// It was built from the previous view and newer runs.
        is_rebuilt: bool,
        /// The time that seeks have lost without it; 0 if the options asked for the view.
        lost_microseconds: u64,
        /// The expected time of the job, doubled for each earlier one that did not help; 0 if the options asked for the view.
        price_microseconds: u64,
    },
    /// A sorted view is damaged, or can't be built: scans merge the runs, results are the same. It is built again later.
    ViewFailed {
        /// The file.
        file: PathBuf,
        /// The damage, or the error.
        reason: String,
    },
    /// An index or filter does not fit into its share of the cache. An index is then read again for each use, a filter is not
    /// used. Raise `cache_bytes`.
    CacheTooSmall {
        /// The file.
        file: PathBuf,
        /// The size of the index or filter in memory.
        bytes: u64,
    },
    /// The file of sampled queries can't be read or written. The store continues: filters are chosen from the queries of this open.
    SampleIgnored {
        /// The file.
        file: PathBuf,
        /// The damage, or the error.
        reason: String,
    },
    /// Reads have lost as much time as a merge of the runs of a partition takes, because they searched several runs or passed deleted keys. The
    /// runs are merged in the background.
    ReadsPaidForMerge {
        /// The keyspace's name.
        keyspace: String,
        /// The time that reads have lost since the last such merge.
        lost_microseconds: u64,
        /// The expected time of the merge, doubled for each earlier one that did not help.
        price_microseconds: u64,
    },
    /// A background job failed. It is tried again, unless the error is final.
    JobFailed {
        /// The job, as a verb.
        job: &'static str,
        /// The error's message.
        error: String,
    },
}

/// How partitions are replaced by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PartitionChange {
    /// All runs of a partition were merged and distributed to several new partitions.
    Split,
    /// A partition was divided between its tables: only those that a new bound cuts were rewritten.
    Divide,
    /// Adjacent small partitions became one, without a rewrite.
    Unite,
}

/// Why a compaction was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompactionReason {
    /// A level exceeded its size, or L0 its number of runs.
    Size,
    /// Deleted entries and obsolete versions took much of the tables.
    Garbage,
    /// The program called [`crate::Db::compact_range`].
    Request,
    /// Reads have lost as much time as the merge takes ([`Event::ReadsPaidForMerge`]).
    Reads,
}

/// Receives events on the thread on which they occur. It must return soon and must not call the store.
pub trait EventListener: fmt::Debug + Send + Sync {
    /// Called for each event.
    fn on_event(&self, event: &Event);
}
