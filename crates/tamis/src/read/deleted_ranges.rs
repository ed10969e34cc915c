//! Records ranges of deleted keys that scans have passed, so that later scans jump over them.
//!
//! A scan that passes many deleted keys in a row has proved that a range holds no visible entry at its sequence number. That
//! fact is a range tombstone that deletes nothing: it is added to the newest memtable of the scan, and reads, flushes and
//! compactions use it like one that a program wrote. The next scan takes one jump, the flush drops the deleted entries, and
//! compactions drop whole tables below. A queue (puts at the end, deletes at the front) therefore finds its first entry in
//! constant time.
//!
//! The log does not record these tombstones: after a crash later scans find them again. A range is recorded only if no
//! source below the memtable holds an entry newer than the scan, and while no write runs: the log's lock is tried, and the range
//! is given up if a writer holds it. Recording therefore never changes the result of a read and never waits.
//!
//! Cost: one comparison per step of a scan; recording takes a few microseconds.

use std::sync::Arc;

use crate::{
    commit_log::CommitLog, cursor::visible::PassedRange, key::Sequence, keyspace_state::ReadState,
    metrics::Metrics,
};

/// See the head of this file.
pub(crate) struct DeletedRanges {
    log: Arc<CommitLog>,
    metrics: Arc<Metrics>,
    key_count_min: u32,
}

impl DeletedRanges {
    /// Records ranges of at least `key_count_min` deleted keys; 0: none.
    pub(crate) const fn new(log: Arc<CommitLog>, metrics: Arc<Metrics>, key_count_min: u32) -> Self {
        Self { log, metrics, key_count_min }
    }

    /// Whether a scan that has passed this many deleted keys in a row should record their range.
    #[inline]
    pub(super) const fn is_worth_recording(&self, key_count: u32) -> bool {
        key_count >= self.key_count_min && self.key_count_min > 0
    }

    /// Records a range without entries that are visible at `sequence`.
    #[cold]
    pub(super) fn record(&self, read_state: &ReadState, sequence: Sequence, passed: PassedRange) {
        self.metrics.deleted_keys_passed.add(u64::from(passed.key_count));
        let memtable = &read_state.memtable.memtable;
        // All older sources are older than the first entry of this memtable, so they have nothing newer than the scan.
        if memtable.sequence_range().is_none_or(|(least, _)| least > sequence) {
            return;
        }
        let Some(log) = self.log.try_lock() else { return };
        if log.is_some() && memtable.record_deleted_range(passed.lower, passed.upper, sequence) {
            self.metrics.deleted_ranges_recorded.add(1);
        }
    }
}
