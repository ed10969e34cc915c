//! Notes the ranges of deleted keys of flushed tables in the background, with the cursors of scans
//! ([`crate::compaction::deleted_range_jobs`]).
//!
//! 1. The scan begins at the smallest key of the tables with dense tombstones that overlap the flushed one, so that the noted
//!    range begins where the deleted keys begin.
//! 2. It steps over deleted keys until it meets a visible entry, and notes the range that it has passed.
//! 3. It continues at the next tombstone of the flushed table after the visible entry.
//!
//! Its blocks are not cached, and it counts as no query. It ends at the partition's upper bound, after [`RANGE_COUNT_MAX`] visible entries, and
//! after [`BLOCK_COUNT_MAX`] blocks; then the range that it has passed so far is noted.

use std::{
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tamis_filter::Digester;

use super::{DeletedRanges, scan_coverage::coverage_of, snapshot::Snapshots};
use crate::{
    cache::table::TableCache,
    compaction::deleted_range_jobs::{RecordDeletedRanges, dense_tables},
    cursor::{
        Cursor as _,
        bounded::{KeyRange, NeededRange, as_slice},
        coverage::FIRST_RANK,
        merge::MergeCursor,
        run::RunCursor,
        run_tables::RunTables,
        source::Source,
        visible::VisibleCursor,
    },
    error::Result,
    key::{Kind, Sequence},
    keyspace_state::{KeyspaceRegistry, KeyspaceState, ReadState},
    table::cursor::TableCursor,
    version::{handle::Table, partition::Partition},
};

/// Blocks of one job.
const BLOCK_COUNT_MAX: u64 = 16_384;
/// Visible entries after deleted ones that a scan of one table meets.
const RANGE_COUNT_MAX: usize = 64;
/// Shorter ranges are not noted.
const KEY_COUNT_MIN: u32 = 1_000;
/// Entries between two pauses.
const PAUSE_STEPS: u64 = 1_024;

/// See the head of this file.
pub(crate) struct BackgroundDeletedRanges {
    pub(crate) keyspaces: Arc<KeyspaceRegistry>,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) tables: Arc<TableCache>,
    pub(crate) deleted_ranges: Arc<DeletedRanges>,
}

/// The blocks of a job, and whether it may continue.
struct Budget<'a> {
    blocks: Arc<AtomicU64>,
    may_continue: &'a dyn Fn() -> bool,
}

impl Budget<'_> {
    fn is_left(&self) -> bool {
        self.blocks.load(Ordering::Relaxed) < BLOCK_COUNT_MAX && (self.may_continue)()
    }
}

impl RecordDeletedRanges for BackgroundDeletedRanges {
    fn record(&self, keyspace: u32, tables: &[u64], may_continue: &dyn Fn() -> bool) -> Result<()> {
        let keyspace = self.keyspaces.load().get(&keyspace).cloned();
        let Some(keyspace) = keyspace.filter(|keyspace| keyspace.check().is_ok()) else { return Ok(()) };
        let budget = Budget { blocks: Arc::default(), may_continue };
        for &number in tables {
            if budget.is_left() {
                self.scan_table(&keyspace, number, &budget)?;
            }
        }
        Ok(())
    }
}

impl BackgroundDeletedRanges {
    /// Notes the ranges of one table.
    fn scan_table(&self, keyspace: &KeyspaceState, number: u64, budget: &Budget<'_>) -> Result<()> {
        let (read_state, sequence) = keyspace.read_point(&self.snapshots);
        let Some((index, table)) = find(&read_state, number) else { return Ok(()) };
        let Some(partition) = read_state.version.partitions.get(index) else { return Ok(()) };
        let upper = read_state.version.upper_of(index);
        let range = KeyRange {
            lower: Bound::Included(begin_of(&read_state, partition, table).to_vec()),
            upper: upper.map_or(Bound::Unbounded, |upper| Bound::Excluded(upper.to_vec())),
        };
        let mut cursor = self.cursor(&read_state, partition, range, sequence, budget);
        let mut tombstones = self.tables.reader(table)?.counted_cursor(&budget.blocks);
        cursor.pause_after(PAUSE_STEPS);
        cursor.seek_first()?;
        for _ in 0..RANGE_COUNT_MAX {
            while cursor.is_paused() && budget.is_left() {
                cursor.pause_after(PAUSE_STEPS);
                cursor.resume()?;
            }
            let key_count = cursor.passed_key_count();
            if key_count >= KEY_COUNT_MIN && self.deleted_ranges.is_worth_noting(key_count) {
                self.deleted_ranges.note(&read_state, sequence, cursor.passed_range());
            }
            let is_at_entry = cursor.is_valid() && cursor.key() <= table.largest_key();
            if !is_at_entry || !budget.is_left() || !seek_tombstone_after(&mut tombstones, cursor.key())? {
                break;
            }
            cursor.pause_after(PAUSE_STEPS);
            cursor.seek(tombstones.key())?;
        }
        Ok(())
    }

    /// The visible entries of a range of a partition.
    fn cursor(
        &self,
        read_state: &ReadState,
        partition: &Partition,
        range: KeyRange,
        sequence: Sequence,
        budget: &Budget<'_>,
    ) -> VisibleCursor<Source, Arc<NeededRange>> {
        let bounds = (as_slice(&range.lower), as_slice(&range.upper));
        let memtables = (FIRST_RANK..).zip(read_state.memtables());
        let first_run = FIRST_RANK + read_state.memtables().count();
        let filled = memtables.filter(|(_, memtable)| memtable.memtable.entry_count() > 0);
        let mut sources: Vec<_> =
            filled.map(|(rank, memtable)| (rank, Source::Memtable(memtable.memtable.cursor()))).collect();
        for (rank, (_, run)) in partition.runs().enumerate() {
            let run = RunTables::counted_once(run.tables_within(bounds), &self.tables, &budget.blocks);
            sources.push((first_run + rank, Source::Run(RunCursor::new(run))));
        }
        let (_, seed) = self.deleted_ranges.versions.database();
        let runs = partition.runs().map(|(_, run)| run);
        let coverage = coverage_of(read_state, &range, runs, &self.tables, sequence);
        let needed = Arc::new(NeededRange { range, digester: Digester::new(seed) });
        let mut merge = MergeCursor::ranked(sources).within(Arc::<NeededRange>::clone(&needed));
        merge.set_coverage(coverage);
        VisibleCursor::new(merge, sequence, needed)
    }
}

/// The position of the partition of a table, and the table.
fn find(read_state: &ReadState, number: u64) -> Option<(usize, &Arc<Table>)> {
    read_state.version.partitions.iter().enumerate().find_map(|(index, partition)| {
        partition.tables().find(|table| table.number() == number).map(|table| (index, table))
    })
}

/// The smallest key of the tables with dense tombstones that overlap a table.
fn begin_of<'a>(read_state: &'a ReadState, partition: &'a Partition, table: &'a Table) -> &'a [u8] {
    let overlapping = dense_tables(&read_state.version, table.smallest_key(), table.largest_key());
    let smallest =
        overlapping.map(|other| other.smallest_key()).min().unwrap_or_else(|| table.smallest_key());
    smallest.max(&partition.lower)
}

/// Moves to the first tombstone after `key`; returns `false` if there is none.
fn seek_tombstone_after(table: &mut TableCursor, key: &[u8]) -> Result<bool> {
    table.seek(key, 0)?;
    while table.is_valid() && (table.key() <= key || table.kind() != Kind::Tombstone) {
        table.next()?;
    }
    Ok(table.is_valid())
}
