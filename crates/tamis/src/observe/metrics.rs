//! Counters of a store: cost of reads, results of filters, bytes written, write stalls.
//!
//! Counters are relaxed atomics: each is exact, but two counters may be read at different points in time. A counter is sharded, so
//! that concurrent readers rarely write to the same cache line. [`Statistics`] is a plain copy for programs, together with the
//! state of each level.

use std::{
    ops::AddAssign,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    observe::read_times::ReadTimes,
    options::Layout,
    store::{readers::ReaderStatistics, runtime::Clock},
};

mod prometheus;

/// The maximum number of levels of a keyspace.
pub(crate) const LEVEL_COUNT_MAX: usize = 16;

/// Shards of a counter: concurrent threads usually use different ones.
const SHARD_COUNT: usize = 4;

/// A counter whose shards are on separate cache lines.
#[derive(Debug, Default)]
pub(crate) struct Counter([Shard; SHARD_COUNT]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard(AtomicU64);

/// The shard of the current thread, derived from the address of its stack.
#[inline]
fn own_shard() -> usize {
    // A simulation does not depend on addresses.
    #[cfg(feature = "simulation")]
    if crate::sync::hooks::is_active() {
        return 0;
    }
    let on_stack = 0_u8;
    // Stacks of threads are usually at least 2 MiB apart.
    let stack = (std::ptr::from_ref(&on_stack).addr() >> 21) as u64;
    (stack.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - SHARD_COUNT.ilog2())) as usize
}

impl Counter {
    #[inline]
    pub(crate) fn add(&self, by: u64) {
        if by > 0
            && let Some(shard) = self.0.get(own_shard())
        {
            shard.0.fetch_add(by, Ordering::Relaxed);
        }
    }

    /// Adds 1; returns how often the thread's shard was counted before.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.numbers(1)
    }

    /// As [`Counter::number`], for several events.
    #[inline]
    pub(crate) fn numbers(&self, count: u64) -> u64 {
        self.0.get(own_shard()).map_or(0, |shard| shard.0.fetch_add(count, Ordering::Relaxed))
    }

    /// As [`Counter::add`] without an atomic read-modify-write, for a counter that is only changed under one lock, which the caller
    /// holds.
    #[inline]
    pub(crate) fn add_exclusive(&self, by: u64) {
        if let Some(Shard(shard)) = self.0.first() {
            shard.store(shard.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.iter().map(|shard| shard.0.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }
}

/// The kinds of reads that are counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadKind {
    Point = 0,
    Range = 1,
    Prefix = 2,
    /// Scans without two bounds.
    Seek = 3,
}

/// The level of a table, and the kind of the read that reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadPlace {
    level: u8,
    pub(crate) kind: ReadKind,
    /// Whether the first read of the table is measured.
    pub(crate) is_timed: bool,
}

impl ReadPlace {
    #[inline]
    pub(crate) const fn new(level: usize, kind: ReadKind) -> Self {
        Self { level: level as u8, kind, is_timed: false }
    }

    /// The same place; the first read of the table is measured if `is_timed`.
    pub(crate) const fn timed(self, is_timed: bool) -> Self {
        Self { is_timed, ..self }
    }

    /// The level.
    pub(crate) const fn level(self) -> usize {
        self.level as usize
    }
}

/// Reads of the tables of one level by one kind of query. An atomic addition costs more than the probe of a filter: so a point read adds
/// its counts once for each level, and a probe by a scan changes one counter.
#[derive(Debug, Default)]
pub(crate) struct ReadCounters {
    pub(crate) admitted: Counter,
    pub(crate) rejected: Counter,
    pub(crate) true_positives: Counter,
    /// Of points: all that were admitted and are no true positives.
    pub(crate) false_positives: Counter,
    pub(crate) blocks_read: Counter,
    pub(crate) cache_hits: Counter,
}

impl ReadCounters {
    fn get(&self, is_point: bool) -> ReadStatistics {
        let (admitted, rejected) = (self.admitted.get(), self.rejected.get());
        let true_positives = self.true_positives.get();
        let of_points = admitted.saturating_sub(true_positives);
        ReadStatistics {
            checked: admitted + rejected,
            rejected,
            true_positives,
            false_positives: if is_point { of_points } else { self.false_positives.get() },
            blocks_read: self.blocks_read.get(),
            cache_hits: self.cache_hits.get(),
        }
    }
}

/// The reads of the tables of one level, by kind.
#[derive(Debug, Default)]
pub(crate) struct LevelCounters([ReadCounters; 4]);

impl LevelCounters {
    fn get(&self, read_nanoseconds: u64) -> LevelReads {
        let [points, ranges, prefixes, seeks] = &self.0;
        let (points, ranges) = (points.get(true), ranges.get(false));
        let (prefixes, seeks) = (prefixes.get(false), seeks.get(false));
        LevelReads { points, ranges, prefixes, seeks, read_nanoseconds }
    }

    fn is_empty(&self) -> bool {
        let is_zero = |counter: &Counter| counter.get() == 0;
        self.0.iter().all(|kind| {
            let ReadCounters { admitted, rejected, blocks_read, cache_hits, .. } = kind;
            [admitted, rejected, blocks_read, cache_hits].into_iter().all(is_zero)
        })
    }
}

/// The decisions of one kind.
#[derive(Debug, Default)]
pub(crate) struct DecisionCounters {
    count: Counter,
    bytes_expected: Counter,
    bytes_written: Counter,
}

impl DecisionCounters {
    pub(crate) fn add(&self, count: u64, bytes_expected: u64, bytes_written: u64) {
        self.count.add(count);
        self.bytes_expected.add(bytes_expected);
        self.bytes_written.add(bytes_written);
    }

    fn get(&self) -> DecisionStatistics {
        let Self { count, bytes_expected, bytes_written } = self;
        DecisionStatistics {
            count: count.get(),
            bytes_expected: bytes_expected.get(),
            bytes_written: bytes_written.get(),
        }
    }
}

/// The decisions of the partitioned layout.
#[derive(Debug, Default)]
pub(crate) struct PartitionDecisionCounters {
    pub(crate) abort: DecisionCounters,
    pub(crate) minor: DecisionCounters,
    pub(crate) major: DecisionCounters,
    pub(crate) split: DecisionCounters,
    pub(crate) divide: DecisionCounters,
    pub(crate) unite: DecisionCounters,
}

impl PartitionDecisionCounters {
    fn get(&self) -> PartitionDecisionStatistics {
        let Self { abort, minor, major, split, divide, unite } = self;
        PartitionDecisionStatistics {
            abort: abort.get(),
            minor: minor.get(),
            major: major.get(),
            split: split.get(),
            divide: divide.get(),
            unite: unite.get(),
        }
    }
}

/// Reads of the tables of one level, by kind, and the results of their filters. The filters of a table count as a single filter, which
/// rejects a key if one of them does.
///
/// Queries that an evicted filter admitted are not counted: it was not probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LevelReads {
    /// Point reads.
    pub points: ReadStatistics,
    /// Scans with two bounds.
    pub ranges: ReadStatistics,
    /// Scans of prefixes.
    pub prefixes: ReadStatistics,
    /// Scans without two bounds.
    pub seeks: ReadStatistics,
    /// The mean time of a read of a table in nanoseconds, loads and blocks in memory together, over about the last 256 sampled
    /// queries; 0 before the first 64. It is what a false positive costs.
    pub read_nanoseconds: u64,
}

/// How the filters of the tables of one level answered one kind of query, and the blocks that these queries read there.
///
/// An open seek probes the filters for the next key that the table may have. The answer is negative if there is none; other
/// answers are true positives if the table was read and had the key, false positives if it was read and had not, otherwise neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReadStatistics {
    /// Queries that probed the filters of a table.
    pub checked: u64,
    /// Queries that the filters rejected.
    pub rejected: u64,
    /// Queries that the filters admitted and that had a key in the table.
    pub true_positives: u64,
    /// Queries that the filters admitted and that had no key in the table.
    pub false_positives: u64,
    /// Blocks that were loaded from the file, or touched for the first time in a mapping.
    pub blocks_read: u64,
    /// Blocks found in the cache, or in a mapping that was verified before.
    pub cache_hits: u64,
}

impl ReadStatistics {
    /// Blocks used: read, or found in memory.
    pub fn blocks(&self) -> u64 {
        self.blocks_read + self.cache_hits
    }
}

/// How the filters of one table answered one kind of query. Only some reads are counted, each for those that it represents.
///
/// An open seek counts as rejected if it did without a read of the table, because the filters named a key that it did not reach or none;
/// otherwise the answer is a true positive if the table had the key that the seek found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FilterAnswers {
    /// Queries that probed the filters.
    pub checked: u64,
    /// Queries that the filters rejected.
    pub rejected: u64,
    /// Queries that the filters admitted and that had a key in the table.
    pub true_positives: u64,
    /// Queries that the filters admitted and that had no key in the table.
    pub false_positives: u64,
}

impl AddAssign for FilterAnswers {
    fn add_assign(&mut self, other: Self) {
        self.checked += other.checked;
        self.rejected += other.rejected;
        self.true_positives += other.true_positives;
        self.false_positives += other.false_positives;
    }
}

impl FilterAnswers {
    /// The share of queries without a key in the table that the filters admitted; `None` before the first such query.
    pub fn false_positive_rate(&self) -> Option<f64> {
        let empty = self.rejected + self.false_positives;
        (empty > 0).then(|| self.false_positives as f64 / empty as f64)
    }
}

/// The state of one level of a keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LevelStatistics {
    /// Runs.
    pub run_count: usize,
    /// Tables.
    pub table_count: usize,
    /// Bytes of its tables on disk.
    pub bytes: u64,
    /// Entries in its tables: puts, old versions and tombstones.
    pub entry_count: u64,
    /// Tombstones in its tables.
    pub tombstone_count: u64,
    /// Range tombstones in its tables, as fragments: disjoint ranges with the sequence numbers that delete them.
    pub range_tombstone_count: u64,
}

/// The maximum number of partitions in [`KeyspaceStatistics::partitions`], and of ranges in [`crate::Db::deleted_ranges`].
pub const LISTED_MAX: usize = 100;

/// A partition of a keyspace: a range of its keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PartitionStatistics {
    /// Its lower bound, included; its upper bound is the lower bound of the next partition.
    pub lower: Vec<u8>,
    /// Its runs, tables, bytes and entries.
    pub size: LevelStatistics,
}

/// The decisions of one kind about partitions, each counted for one partition, once it is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DecisionStatistics {
    /// Decisions.
    pub count: u64,
    /// The bytes that they were expected to write.
    pub bytes_expected: u64,
    /// The bytes that they have written.
    pub bytes_written: u64,
}

/// The decisions of the partitioned layout ([`Layout::Partitioned`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PartitionDecisionStatistics {
    /// Partitions whose entries a flush left in memory, because it would have written too much for them. Expected are the bytes of their
    /// keys and values; written are those of their records, which are part of `log_bytes_written`.
    pub abort: DecisionStatistics,
    /// Partitions for which a flush wrote tables. Expected are the bytes of keys and values, and the fixed bytes of a table; all versions of a
    /// key in the memtable count, while tables have only those that a reader can see. Written bytes are part of `flush_bytes_written`.
    pub minor: DecisionStatistics,
    /// Merges of runs of a partition. Expected are the bytes of these runs, without those of entries that are known to be obsolete. Written
    /// bytes are part of `compaction_bytes_written`, as are those of the following decisions.
    pub major: DecisionStatistics,
    /// Partitions whose runs were merged and distributed to several new partitions, with expected bytes as those of `major`.
    pub split: DecisionStatistics,
    /// Partitions that were divided between tables. Expected are the bytes of the tables that a new bound cuts through.
    pub divide: DecisionStatistics,
    /// Unions of adjacent partitions that had become small. They write nothing.
    pub unite: DecisionStatistics,
}

impl PartitionDecisionStatistics {
    /// The decisions with their names.
    pub fn named(&self) -> [(&'static str, DecisionStatistics); 6] {
        let Self { abort, minor, major, split, divide, unite } = *self;
        [
            ("abort", abort),
            ("minor", minor),
            ("major", major),
            ("split", split),
            ("divide", divide),
            ("unite", unite),
        ]
    }
}

/// The sorted views of a keyspace. Sizes are those of open views: they are opened in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ViewStatistics {
    /// Views, at most one in each partition.
    pub count: usize,
    /// Views that scans use.
    pub open_count: usize,
    /// Runs that these cover.
    pub run_count: usize,
    /// Entries of these runs.
    pub entry_count: u64,
    /// Bytes of their files.
    pub bytes: u64,
}

/// The tables of one level that have the same filters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LevelFilters {
    /// The level.
    pub level: usize,
    /// The designs of the filters in memory, joined by ` + `; empty for no filters.
    pub filters: String,
    /// Tables with these filters.
    pub table_count: usize,
    /// Entries of these tables.
    pub entry_count: u64,
    /// Bytes of these filters in memory: evicted ones, and evicted parts of elastic ones, are left out.
    pub bytes: u64,
}

/// A job that the store makes automatically once reads have lost as much time as it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PaidJob {
    /// The filters of a table are compared with others, and replaced if these are better ([`crate::Filters::auto`]).
    ChooseFilters,
    /// All runs of a partition become one, without deleted entries.
    MergeRuns,
    /// A sorted view of the runs is built, or extended.
    BuildView,
}

/// The time that reads have lost without a job ([`crate::Db::read_losses`]), since the last such job, or since tables last left the partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadLoss {
    /// The smallest key of the partition: empty, except in the partitioned layout.
    pub partition: Vec<u8>,
    /// The number of the table; `None` for a job of a partition.
    pub table: Option<u64>,
    /// The job.
    pub job: PaidJob,
    /// The lost time.
    pub lost: Duration,
    /// The time of the job, doubled for each earlier one that did not help: it is due when the lost time reaches it.
    pub price: Duration,
}

/// A table of a keyspace ([`crate::Db::tables`]).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TableStatistics {
    /// The number of its file.
    pub table_number: u64,
    /// The smallest key of its partition: empty, except in the partitioned layout.
    pub partition: Vec<u8>,
    /// Its level.
    pub level: usize,
    /// Its run in this level of the partition: 0 is the newest.
    pub run: usize,
    /// The key of its first entry.
    pub smallest_key: Vec<u8>,
    /// The key of its last entry.
    pub largest_key: Vec<u8>,
    /// The size of its file.
    pub bytes: u64,
    /// Its entries: puts, old versions and tombstones.
    pub entry_count: u64,
    /// Its tombstones.
    pub tombstone_count: u64,
    /// Its range tombstones, as fragments.
    pub range_tombstone_count: u64,
}

/// A range of keys that range tombstones of one table delete ([`crate::Db::deleted_ranges`]).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DeletedRange {
    /// Its lower bound, included.
    pub lower: Vec<u8>,
    /// Its upper bound, excluded; empty: no end.
    pub upper: Vec<u8>,
    /// About the bytes of older tables that it deletes, and that compactions have not reclaimed yet.
    pub bytes: u64,
}

/// The filters of one table ([`crate::Db::table_filters`]), and how they answered since the table was installed or the filters were rebuilt.
/// Queries that an evicted filter admitted are not counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TableFilterStatistics {
    /// The table's level.
    pub level: usize,
    /// The number of the table's file.
    pub table_number: u64,
    /// Descriptions of the filters in memory: the design, its size and its predicted false-positive rate. Empty if the table is not open: it
    /// is opened when it is first read.
    pub designs: Vec<String>,
    /// Point reads.
    pub points: FilterAnswers,
    /// Closed ranges and prefixes.
    pub ranges: FilterAnswers,
    /// Open seeks.
    pub seeks: FilterAnswers,
}

/// The sampled queries of one kind. Tables that an evicted filter admitted are left out of the counts of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QuerySampleStatistics {
    /// About how many queries reached tables; exact while all of them are sampled.
    pub seen: u64,
    /// Queries in the sample.
    pub kept: u64,
    /// The number of queries of this kind of which one is sampled now, in all keyspaces together.
    pub interval: u32,
    /// Tables whose filters rejected a query in the sample, summed over these queries.
    pub tables_rejected: u64,
    /// Tables that the filters admitted and that had a key of the query.
    pub tables_true_positive: u64,
    /// Tables that the filters admitted and that had no key of the query: false positives.
    pub tables_false_positive: u64,
}

/// The sample of the queries of one keyspace, from which its filters are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SampleStatistics {
    /// Point reads.
    pub points: QuerySampleStatistics,
    /// Ranges with two bounds.
    pub ranges: QuerySampleStatistics,
    /// Prefixes.
    pub prefixes: QuerySampleStatistics,
    /// Seeks to the first key at or after a bound.
    pub forward_seeks: QuerySampleStatistics,
    /// Seeks to the last key at or before a bound.
    pub backward_seeks: QuerySampleStatistics,
    /// Sampled queries that were left out, because a bound is longer than [`crate::SAMPLED_BOUND_BYTES_MAX`] bytes.
    pub too_long: u64,
}

/// The state of one keyspace.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct KeyspaceStatistics {
    /// Its name.
    pub name: String,
    /// How its runs are kept.
    pub layout: Layout,
    /// Bytes of the memtable that takes writes.
    pub memtable_bytes: u64,
    /// Approximate bytes that due compactions will read and write; in the leveled layout with the compactions that follow from them. In the
    /// partitioned layout only the next job of each partition counts, and a division of a partition that cuts no table counts as 0 bytes.
    pub pending_compaction_bytes: u64,
    /// About the bytes of expired entries in tables ([`crate::Keyspace::put_until`]), which compactions reclaim.
    pub expired_bytes: u64,
    /// Immutable memtables that wait for their flush.
    pub immutable_memtable_count: usize,
    /// Levels, L0 first.
    pub levels: Vec<LevelStatistics>,
    /// Number of partitions: 1, except in the partitioned layout.
    pub partition_count: usize,
    /// The partitions with the most bytes, in key order, at most [`LISTED_MAX`].
    pub partitions: Vec<PartitionStatistics>,
    /// Its sorted views.
    pub views: ViewStatistics,
    /// The current filters of the open tables, by level ([`crate::Db::open_tables`] opens all). [`crate::Db::table_filters`] lists each table.
    pub filters: Vec<LevelFilters>,
    /// Its sampled queries.
    pub sample: SampleStatistics,
}

/// A dropped keyspace of which a handle exists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DroppedKeyspace {
    /// Its name.
    pub name: String,
    /// Bytes of its tables, which are deleted when the last handle and scan are dropped.
    pub bytes: u64,
}

/// Declares each number of [`Statistics`] once: its documentation, whose first line describes it for [`Statistics::counters`] and
/// [`Statistics::gauges`], and its name. A counter has a [`Counter`] of the same name in [`Metrics`], a sum is computed from others.
macro_rules! numbers {
    (
        counters { $(#[doc = $counter_text:literal] $(#[doc = $counter_more:literal])* $counter:ident,)+ }
        sums { $(#[doc = $sum_text:literal] $(#[doc = $sum_more:literal])* $sum:ident,)+ }
        gauges { $(#[doc = $gauge_text:literal] $(#[doc = $gauge_more:literal])* $gauge:ident,)+ }
    ) => {
        /// Counters of a store since it was opened.
        #[derive(Debug, Default)]
        pub(crate) struct Metrics {
            $(pub(crate) $counter: Counter,)+
            /// Blocks read by others than queries of tables.
            pub(crate) other_blocks_read: Counter,
            pub(crate) other_cache_hits: Counter,
            pub(crate) open_range_scans: Counter,
            pub(crate) scans_ended: Counter,
            pub(crate) partition_decisions: PartitionDecisionCounters,
            pub(crate) levels: [LevelCounters; LEVEL_COUNT_MAX],
            pub(crate) read_times: ReadTimes<LEVEL_COUNT_MAX>,
        }

        /// Counters since the store was opened, and its current state.
        #[derive(Debug, Clone, PartialEq, Default)]
        #[non_exhaustive]
        pub struct Statistics {
            $(#[doc = $counter_text] $(#[doc = $counter_more])* pub $counter: u64,)+
            $(#[doc = $sum_text] $(#[doc = $sum_more])* pub $sum: u64,)+
            $(#[doc = $gauge_text] $(#[doc = $gauge_more])* pub $gauge: u64,)+
            /// The decisions of the partitioned layout, with their expected and actual bytes ([`Layout::Partitioned`]).
            pub partition_decisions: PartitionDecisionStatistics,
            /// The age of the oldest snapshot.
            pub oldest_snapshot: Duration,
            /// How long ago the oldest state that a scan still reads was replaced by a flush or compaction.
            pub oldest_replaced_state: Duration,
            /// Dropped keyspaces whose files stay on disk, because a handle has them.
            pub dropped_keyspaces: Vec<DroppedKeyspace>,
            /// The readers that have the store open ([`crate::Db::open_reader`]), with what they keep from being deleted.
            pub readers: Vec<ReaderStatistics>,
            /// Reads and results of filters per level, L0 first.
            pub reads: Vec<LevelReads>,
            /// Each keyspace.
            pub keyspaces: Vec<KeyspaceStatistics>,
        }

        impl Statistics {
            /// The counters: the name of each field, what it counts, and its value.
            pub fn counters(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                let counters = [$((stringify!($counter), $counter_text, self.$counter),)+];
                let sums = [$((stringify!($sum), $sum_text, self.$sum),)+];
                counters.into_iter().chain(sums).map(|(name, text, value)| (name, text.trim_start(), value))
            }

            /// The numbers of the current state, as [`Statistics::counters`].
            pub fn gauges(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                let gauges = [$((stringify!($gauge), $gauge_text, self.$gauge),)+];
                gauges.into_iter().map(|(name, text, value)| (name, text.trim_start(), value))
            }
        }

        impl Metrics {
            /// The counters alone.
            fn counted(&self) -> Statistics {
                Statistics { $($counter: self.$counter.get(),)+ ..Statistics::default() }
            }
        }
    };
}

numbers! {
    counters {
        /// Bytes read for data blocks.
        /// Sequential scans and jobs read ahead in unmapped tables: all bytes read are counted here, while `blocks_read` counts only the
        /// blocks used.
        bytes_read,
        /// Digests of keys and prefixes computed by reads.
        digests,
        /// Point reads.
        point_reads,
        /// Scans of ranges with two bounds.
        range_scans,
        /// Scans of prefixes.
        prefix_scans,
        /// Seeks to the first key at or after a bound: the first step of a scan without two bounds, or a seek of a scan.
        forward_seeks,
        /// Seeks to the last key at or before a bound.
        backward_seeks,
        /// Deleted keys that scans passed one by one, and range tombstones, in rows of at least 64.
        deleted_keys_passed,
        /// Ranges of deleted keys that scans noted, so that later scans jump over them.
        deleted_ranges_recorded,
        /// Merges of all runs of a partition for which reads have paid.
        /// [`crate::Event::ReadsPaidForMerge`] reports them.
        read_triggered_compactions,
        /// Batches written.
        writes,
        /// Puts and deletes written.
        entries_written,
        /// Bytes of keys and values written by the program.
        user_bytes_written,
        /// Bytes written to the log.
        log_bytes_written,
        /// Bytes written by flushes.
        flush_bytes_written,
        /// Data blocks of the tables that flushes wrote.
        flush_blocks_written,
        /// Bytes read by compactions.
        compaction_bytes_read,
        /// Bytes written by compactions.
        compaction_bytes_written,
        /// Data blocks of the tables that compactions wrote.
        compaction_blocks_written,
        /// Flushes.
        flushes,
        /// Flushes that used direct I/O.
        direct_flushes,
        /// Compactions, without trivial moves.
        compactions,
        /// Compactions that were due because deleted entries and obsolete versions took much of the tables.
        garbage_compactions,
        /// Tables dropped without a read, because range tombstones deleted all of their entries.
        dropped_tables,
        /// Entries that flushes left in memory.
        retained_entries,
        /// Bytes of the keys and values of these entries.
        retained_bytes,
        /// Tables for which the store chose filters again, for today's queries.
        filters_checked,
        /// Checked tables whose filters were replaced.
        filters_replaced,
        /// Sorted views built from all entries of their runs.
        views_built,
        /// Sorted views built from the previous view and newer runs.
        views_rebuilt,
        /// Sorted views that were discarded: damaged ones, failed builds, and those whose runs were replaced while they were built.
        views_discarded,
        /// Bytes of sorted views written.
        view_bytes_written,
        /// Tables moved to a deeper level without being rewritten.
        trivial_moves,
        /// Flushes and compactions that failed.
        jobs_failed,
        /// Writes that were delayed because flushes or compactions lag behind.
        throttled_writes,
        /// Total delay of throttled writes.
        /// Unit: microseconds.
        throttled_microseconds,
        /// Writes that waited until a memtable was flushed or L0 was compacted.
        stopped_writes,
        /// Total time of stopped writes.
        /// Unit: microseconds.
        stopped_microseconds,
        /// Damaged filters, which are ignored.
        corrupt_filters,
        /// Indexes and filters that did not fit into their share of the cache.
        cache_too_small,
    }
    sums {
        /// Data blocks that reads touched: loads from the file, and first touches of a mapped block.
        blocks_read,
        /// Blocks that reads found in the cache, or in a mapping that was verified before.
        cache_hits,
        /// Scans.
        scans,
    }
    gauges {
        /// Bytes of the log segments that are still needed.
        log_bytes,
        /// Bytes of blocks in the cache.
        cache_bytes,
        /// Bytes of filters and indexes in memory.
        cache_pinned_bytes,
        /// Bytes of sampled queries in memory.
        cache_sample_bytes,
        /// Snapshots that were not dropped.
        /// Compactions keep the versions that they see.
        snapshots,
        /// Scans that were not dropped.
        /// They keep the memtables and tables that they read.
        open_scans,
        /// Bytes of tables that are obsolete and stay on disk, because scans or handles of dropped keyspaces have them.
        held_bytes,
        /// Table and filter files with a descriptor.
        /// Mapped files have none.
        open_files,
        /// The maximum number of open files, from the limit of the process.
        /// The file that was not used for longest is closed.
        open_files_max,
    }
}

impl Statistics {
    /// Bytes written to disk for each byte written by the program; 0 before the first write.
    pub fn write_amplification(&self) -> f64 {
        if self.user_bytes_written == 0 {
            return 0.0;
        }
        let written = self.log_bytes_written + self.flush_bytes_written + self.compaction_bytes_written;
        written as f64 / self.user_bytes_written as f64
    }
}

impl Metrics {
    /// Measures reads by this clock.
    pub(crate) fn by(clock: Arc<dyn Clock>) -> Self {
        Self { read_times: ReadTimes::by(clock), ..Self::default() }
    }

    /// The counters of a kind of reads in a level.
    #[inline]
    pub(crate) fn reads(&self, place: ReadPlace) -> Option<&ReadCounters> {
        self.levels.get(usize::from(place.level)).and_then(|level| level.0.get(place.kind as usize))
    }

    fn sum_of_kinds(&self, of: impl Fn(&ReadCounters) -> &Counter) -> u64 {
        self.levels.iter().flat_map(|level| &level.0).map(|kind| of(kind).get()).fold(0, u64::wrapping_add)
    }

    fn all_blocks_read(&self) -> u64 {
        self.other_blocks_read.get().wrapping_add(self.sum_of_kinds(|kind| &kind.blocks_read))
    }

    fn all_cache_hits(&self) -> u64 {
        self.other_cache_hits.get().wrapping_add(self.sum_of_kinds(|kind| &kind.cache_hits))
    }

    /// Blocks that reads have used: loaded, or found in memory. Reads all counters of all levels.
    pub(crate) fn blocks_used(&self) -> u64 {
        self.all_blocks_read() + self.all_cache_hits()
    }

    /// A copy of the counters; the caller adds the state of log, cache and keyspaces.
    pub(crate) fn snapshot(&self) -> Statistics {
        let deepest = self.levels.iter().rposition(|level| !level.is_empty());
        let deepest = deepest.map_or(0, |level| level + 1);
        let levels = self.levels.iter().take(deepest).enumerate();
        let reads = levels.map(|(level, counters)| counters.get(self.read_times.nanoseconds(level)));
        let scans = self.range_scans.get() + self.prefix_scans.get() + self.open_range_scans.get();
        Statistics {
            blocks_read: self.all_blocks_read(),
            cache_hits: self.all_cache_hits(),
            scans,
            open_scans: scans.saturating_sub(self.scans_ended.get()),
            partition_decisions: self.partition_decisions.get(),
            reads: reads.collect(),
            ..self.counted()
        }
    }
}
