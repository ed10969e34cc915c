//! Records ranges of deleted keys that scans have passed, so that later scans jump over them.
//!
//! A scan that passes many deleted keys in a row has proved that a range holds no visible entry at its sequence number. That
//! fact is a range tombstone that deletes nothing: it is added to the newest memtable of the scan, and reads, flushes and
//! compactions use it like one that a program wrote. The next scan takes one jump, the flush drops the deleted entries, and
//! compactions drop whole tables below. A queue (puts at the end, deletes at the front) therefore finds its first entry in
//! constant time.
//!
//! After a flush of many tombstones the background scans them before a user does (`background_deleted_ranges.rs`).
//!
//! The log does not record these tombstones: after a crash later scans find them again. A range is recorded only if no
//! source below the memtable holds an entry newer than the scan, and while no write runs: the log's lock is tried, and the range
//! is given up if a writer holds it. Recording therefore never changes the result of a read and never waits. If the memtable is
//! empty, the tombstone takes the next sequence number, and the range is given up if a write has followed the scan.
//!
//! A range of more than [`COMPACTED_KEY_COUNT`] deleted keys is also compacted in the background
//! (`compaction/read_request.rs`), so that its deleted keys leave the tables.
//!
//! Cost: one comparison per step of a scan; recording takes a few microseconds.

use std::{ops::Bound, sync::Arc};

use super::snapshot::Snapshots;
use crate::{
    commit_log::{CommitLog, LogState},
    compaction::{
        plan::{RangeRequest, Reason},
        scheduler::Scheduler,
    },
    context::StoreContext,
    cursor::visible::PassedRange,
    events::Event,
    key::Sequence,
    keyspace_state::ReadState,
    memtable::Memtable,
    version::set::VersionSet,
};

/// Deleted keys in a row for which a scan requests a compaction.
const COMPACTED_KEY_COUNT: u32 = 1_000;
/// Ranges that an empty memtable records. Fewer than fill a memtable, which writes would wait for.
const RANGES_OF_EMPTY_MAX: u64 = 16;

/// See the head of this file.
pub(crate) struct DeletedRanges {
    pub(crate) context: Arc<StoreContext>,
    pub(crate) log: Arc<CommitLog>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) versions: Arc<VersionSet>,
    pub(crate) snapshots: Arc<Snapshots>,
    /// Deleted keys in a row from which on a range is recorded; 0: none is.
    pub(crate) key_count_min: u32,
}

impl DeletedRanges {
    /// Whether a scan that has passed this many deleted keys in a row should record their range.
    #[inline]
    pub(super) const fn is_worth_recording(&self, key_count: u32) -> bool {
        key_count >= self.key_count_min && self.key_count_min > 0
    }

    /// Records a range without entries that are visible at `sequence`.
    #[cold]
    pub(super) fn record(&self, read_state: &ReadState, sequence: Sequence, passed: PassedRange) {
        let metrics = &self.context.metrics;
        metrics.deleted_keys_passed.add(u64::from(passed.key_count));
        if passed.key_count >= COMPACTED_KEY_COUNT && !self.context.options.read_only {
            self.request_compaction(read_state, sequence, &passed);
        }
        if let Some(mut log) = self.log.try_lock()
            && let Some(state) = log.as_mut()
        {
            self.add(state, read_state, (sequence, sequence), passed);
        }
    }

    /// As [`DeletedRanges::record`], for a background job: it waits for the log's lock, and records several ranges that it found at
    /// `sequence`. No write has followed `sequence` if none has followed `last_sequence`: the numbers between are those of
    /// ranges that the job has recorded. Returns the next `last_sequence` if the range was recorded.
    pub(super) fn record_in_background(
        &self,
        read_state: &ReadState,
        (sequence, last_sequence): (Sequence, Sequence),
        passed: PassedRange,
    ) -> Option<Sequence> {
        self.request_compaction(read_state, sequence, &passed);
        let mut log = self.log.lock();
        let state = log.as_mut()?;
        self.add(state, read_state, (sequence, last_sequence), passed)
    }

    /// Adds a range to the newest memtable of a scan at `sequence`. See [`DeletedRanges::record_in_background`] for
    /// `last_sequence` and the result.
    fn add(
        &self,
        state: &mut LogState,
        read_state: &ReadState,
        (sequence, last_sequence): (Sequence, Sequence),
        passed: PassedRange,
    ) -> Option<Sequence> {
        let memtable = &read_state.memtable.memtable;
        let recorded = match memtable.sequence_range() {
            // All older sources are older than the first entry of this memtable, so they have nothing newer than the scan.
            Some((least, _)) if least > sequence => None,
            Some(_) => {
                let is_recorded = memtable.record_deleted_range(passed.lower, passed.upper, sequence);
                is_recorded.then_some(last_sequence)
            }
            None => self.record_in_empty(state, memtable, last_sequence, passed),
        };
        if recorded.is_some() {
            self.context.metrics.deleted_ranges_recorded.add(1);
        }
        recorded
    }

    /// Records a range in a memtable without entries. The tables are as new as the scan, so the tombstone takes the next sequence
    /// number, which must belong to no write yet.
    fn record_in_empty(
        &self,
        state: &mut LogState,
        memtable: &Arc<Memtable>,
        sequence: Sequence,
        passed: PassedRange,
    ) -> Option<Sequence> {
        let is_full = memtable.range_tombstones().count() >= RANGES_OF_EMPTY_MAX;
        if state.last_sequence != sequence || !memtable.is_empty() || is_full {
            return None;
        }
        let is_recorded = memtable.record_deleted_range(passed.lower, passed.upper, sequence + 1);
        if is_recorded {
            state.last_sequence = sequence + 1;
            self.snapshots.publish(state.last_sequence);
        }
        is_recorded.then_some(state.last_sequence)
    }

    fn request_compaction(&self, read_state: &ReadState, sequence: Sequence, passed: &PassedRange) {
        let version = &read_state.version;
        let upper = (!passed.upper.is_empty()).then_some(passed.upper.as_slice());
        let bounds =
            (Bound::Included(passed.lower.as_slice()), upper.map_or(Bound::Unbounded, Bound::Excluded));
        let mut runs = version.partitions_within(bounds).iter().flat_map(|partition| partition.runs());
        // Deleted keys in memtables cost no blocks, and the next flush drops them.
        if !runs.any(|(_, run)| run.tables_within(bounds).iter().any(|table| table.summary().has_deletes())) {
            return;
        }
        let Ok(keyspace) = u32::try_from(version.id) else { return };
        let read_points = self.snapshots.read_points();
        if read_points.len() > 1 {
            // A snapshot may need the deleted entries.
            return;
        }
        let request = || RangeRequest {
            lower: bounds.0.map(<[u8]>::to_vec),
            upper: bounds.1.map(<[u8]>::to_vec),
            sequence_max: sequence,
            number_max: self.versions.new_file_number(),
            read_points,
            reason: Reason::Reads,
        };
        let now = self.context.runtime.clock.now();
        if self.scheduler.read_requests.add(keyspace, request, now) {
            self.context.metrics.read_triggered_compactions.add(1);
            self.context.report(&Event::DeletedKeysPassed {
                keyspace: version.name.to_string(),
                lower: passed.lower.clone(),
                upper: passed.upper.clone(),
                key_count: passed.key_count,
            });
            self.scheduler.wake();
        }
    }
}
