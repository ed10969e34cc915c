//! Tables with many tombstones, which the background scans once so that no user's scan passes their deleted keys one by one.
//!
//! A table is *dense* if at least half of its entries are tombstones. When a flush has written a dense table, and the dense tables at
//! its keys have [`TOMBSTONE_COUNT_MIN`] tombstones together, a job scans the spans of its tombstones and records the ranges
//! without a visible entry ([`RecordDeletedRanges`]). Tables that a compaction has replaced meanwhile are skipped.
//!
//! A job runs when nothing more urgent is due, one at a time, and for at most half of the time unless a thread waits for the
//! background. `docs/design/0015-deleted-ranges.md` lists the bounds of its work.

use std::{collections::BTreeMap, ops::Bound, sync::Arc, time::Duration};

use crate::{
    error::Result,
    runtime::Clock,
    sync::Mutex,
    table::properties::TableSummary,
    version::{handle::Table, version::KeyspaceVersion},
};

/// Tombstones for which a job begins. A scan passes fewer in one or two milliseconds.
const TOMBSTONE_COUNT_MIN: u64 = 10_000;
/// The maximum number of waiting tables of a keyspace; the oldest are dropped.
const TABLE_COUNT_MAX: usize = 64;

const fn is_dense(summary: &TableSummary) -> bool {
    summary.tombstone_count > 0 && 2 * summary.tombstone_count >= summary.entry_count
}

/// The dense tables between two keys, both included.
pub(crate) fn dense_tables<'a>(
    version: &'a KeyspaceVersion,
    smallest: &'a [u8],
    largest: &'a [u8],
) -> impl Iterator<Item = &'a Arc<Table>> {
    let bounds = (Bound::Included(smallest), Bound::Included(largest));
    let partitions = version.partitions_within(bounds).iter();
    let runs = partitions.flat_map(|partition| partition.runs());
    runs.flat_map(move |(_, run)| run.tables_within(bounds)).filter(|table| is_dense(table.summary()))
}

/// Records ranges without visible entries, as scans do.
pub(crate) trait RecordDeletedRanges: Send + Sync {
    /// Scans the spans of the tombstones of these tables of a keyspace, and records the ranges of deleted keys. `may_continue` is
    /// called every few hundred microseconds; the scan ends when it returns `false`.
    ///
    /// # Errors
    /// Those of tables that can't be read.
    fn record(&self, keyspace: u32, tables: &[u64], may_continue: &dyn Fn() -> bool) -> Result<()>;
}

#[derive(Debug, Default)]
struct State {
    /// By keyspace, the oldest table first.
    waiting: BTreeMap<u32, Vec<u64>>,
    is_running: bool,
    next_at: Duration,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct DenseTables {
    state: Mutex<State>,
}

/// A job. No other one runs until it is dropped.
pub(super) struct DeletedRangesClaim {
    dense_tables: Arc<DenseTables>,
    clock: Arc<dyn Clock>,
    began: Duration,
    pub(super) keyspace: u32,
    pub(super) tables: Vec<u64>,
}

impl Drop for DeletedRangesClaim {
    fn drop(&mut self) {
        let now = self.clock.now();
        let mut state = self.dense_tables.state.lock();
        state.is_running = false;
        state.next_at = now + now.saturating_sub(self.began);
    }
}

impl DenseTables {
    /// Lets a table that a flush has written wait if a job is due for it; `version` has the table.
    pub(super) fn add_if_due(&self, keyspace: u32, version: &KeyspaceVersion, summary: &TableSummary) {
        if !is_dense(summary) {
            return;
        }
        let dense = dense_tables(version, &summary.smallest_key, &summary.largest_key);
        let tombstone_count: u64 = dense.map(|table| table.summary().tombstone_count).sum();
        if tombstone_count < TOMBSTONE_COUNT_MIN {
            return;
        }
        let mut state = self.state.lock();
        let tables = state.waiting.entry(keyspace).or_default();
        if tables.len() == TABLE_COUNT_MAX {
            tables.remove(0);
        }
        tables.push(summary.number);
    }

    /// Claims the next job, if one is due and none is running.
    pub(super) fn claim(
        self: &Arc<Self>,
        clock: &Arc<dyn Clock>,
        is_waited_for: bool,
    ) -> Option<DeletedRangesClaim> {
        let began = clock.now();
        let mut state = self.state.lock();
        if state.is_running || (began < state.next_at && !is_waited_for) {
            return None;
        }
        let (keyspace, tables) = state.waiting.pop_first()?;
        state.is_running = true;
        let (dense_tables, clock) = (Arc::clone(self), Arc::clone(clock));
        Some(DeletedRangesClaim { dense_tables, clock, began, keyspace, tables })
    }

    /// When the next job is due; `None` if none waits.
    pub(super) fn next_at(&self) -> Option<Duration> {
        let state = self.state.lock();
        (!state.is_running && !state.waiting.is_empty()).then_some(state.next_at)
    }

    /// Whether no job is running or due.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state.lock();
        !state.is_running && state.waiting.is_empty()
    }
}
