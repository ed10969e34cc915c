//! Notes ranges of deleted keys that scans have passed, so that later scans jump over them.
//!
//! A scan that passes many deleted keys in a row has proved that a range holds no visible entry at its sequence number. It notes the
//! range in the memory of the keyspace ([`crate::empty_ranges`]), if no put of the range is newer. The next scan takes one jump. A queue
//! (puts at the end, deletes at the front) therefore finds its first entry in constant time.
//!
//! Noting a range writes nothing, takes no sequence number and no lock. Hints are lost when the store is closed: the next scan finds the
//! ranges again.
//!
//! The time of the steps counts as a loss of the partition (`compaction/law.rs`): if deleted keys are passed again and again, a merge drops
//! them.
//!
//! Cost: one comparison per step of a scan. Noting a range visits its entries in the memtables, if some entry of them is newer than the
//! scan: fewer than the scan has visited.

use std::sync::Arc;

use crate::{
    cursor::visible::PassedRange,
    empty_ranges::EmptyRange,
    key::{SEQUENCE_MAX, Sequence},
    memtable::Span,
    range_tombstone::is_below_upper,
    store::{keyspace_state::ReadState, parts::StoreParts},
    version::key_bounds::span_bounds,
};

/// See the head of this file.
pub(crate) struct DeletedRanges {
    pub(crate) store: Arc<StoreParts>,
    /// Deleted keys in a row from which on a range is noted; 0: none is.
    pub(crate) key_count_min: u32,
}

impl DeletedRanges {
    /// Whether a scan that has passed this many deleted keys in a row should note their range.
    #[inline]
    pub(super) const fn is_worth_noting(&self, key_count: u32) -> bool {
        key_count >= self.key_count_min && self.key_count_min > 0
    }

    /// Notes a range without entries that are visible at `sequence`.
    #[cold]
    pub(super) fn note_passed(&self, read_state: &ReadState, sequence: Sequence, passed: PassedRange) {
        self.store.context.metrics.deleted_keys_passed.add(u64::from(passed.key_count));
        self.add_lost(read_state, &passed);
        self.note(read_state, sequence, passed);
    }

    /// Adds the time of the steps to the losses of the partition: a merge drops the deleted entries, unless a snapshot may need them.
    fn add_lost(&self, read_state: &ReadState, passed: &PassedRange) {
        if self.store.snapshots.read_points().len() > 1 {
            return;
        }
        let version = &read_state.version;
        let mut partitions = version.partitions_within(span_bounds(&passed.lower, &passed.upper)).iter();
        if let Some(partition) = partitions.next() {
            // A step over a deleted key takes about 100 nanoseconds.
            partition.losses.merge.add(1, u64::from(passed.key_count) * 100);
        }
    }

    fn note(&self, read_state: &ReadState, sequence: Sequence, passed: PassedRange) {
        let PassedRange { lower, upper, .. } = passed;
        if !is_below_upper(&lower, &upper) {
            return;
        }
        let Some(candidate) = read_state.empty_ranges.begin(EmptyRange { lower, upper, sequence }) else {
            return;
        };
        if !self.is_without_newer_puts(read_state, candidate.range()) {
            return;
        }
        // Loaded after the sources: what a compaction has dropped from them was deleted at or below this number.
        if candidate.confirm(self.store.snapshots.visible()) {
            self.store.context.metrics.deleted_ranges_recorded.add(1);
        }
    }

    /// Whether no put of the range is newer than it, in the sources that the keyspace has now.
    fn is_without_newer_puts(&self, read_state: &ReadState, range: &EmptyRange) -> bool {
        let EmptyRange { lower, upper, sequence } = range;
        let bounds = span_bounds(lower, upper);
        let Ok(id) = u32::try_from(read_state.version.id) else { return false };
        let keyspace = self.store.keyspaces.load().get(&id).cloned();
        let Some(now) = keyspace.map(|keyspace| keyspace.read_state.load_full()) else { return false };
        let mut partitions = now.version.partitions_within(bounds).iter();
        let has_newer_table = partitions.any(|partition| {
            let mut tables = partition.runs().flat_map(|(_, run)| run.tables_within(bounds));
            tables.any(|table| table.summary().largest_sequence > *sequence)
        });
        let known = now.empty_ranges.load();
        let has_newer_put = || {
            now.memtables().any(|memtable| {
                let spans = memtable.memtable.range_tombstones().spans_at(SEQUENCE_MAX);
                let is_known = |span: &&Span| span.sequence <= *sequence && !span.has_newer();
                let known_end = |key: &[u8]| {
                    let range = known.as_ref().and_then(|known| known.range_of(key));
                    let span = || spans.span_of(key).filter(is_known);
                    range.map(|range| range.upper.clone()).or_else(|| span().map(|span| span.upper.clone()))
                };
                let found = memtable.memtable.has_newer_put((lower, upper), *sequence, known_end);
                found.unwrap_or(true)
            })
        };
        !has_newer_table && !has_newer_put()
    }
}
