//! Retains entries of a memtable that is being flushed: they are appended to the newest log segment and inserted into the current memtable, and
//! the flush writes no tables for them. Which ones: [`super::strategy::pick_aborted`].
//!
//! For each partition, under the log's lock:
//!
//! 1. One record with all entries of the partition, under their own sequence numbers, is appended to the log. It takes one new number.
//! 2. The entries are inserted into the current memtable. Readers that see both memtables find equal entries.
//!
//! Before the flush is installed, the log is synced. The flush then sets the flushed sequence number of these partitions, too: a replay
//! takes the entries from the new record, whose number is greater, until a flush of the current memtable passes that number.
//!
//! # Invariants
//!
//! 1. *For each key, a memtable has only newer entries than older memtables and tables.* Entries are retained only if no memtable is between
//!    the two, and all entries of a partition are retained, or none. So all tables of the partition are older.
//! 2. *All entries of older sources are below the least sequence number of a memtable* (`read/deleted_ranges.rs`). Retained entries do
//!    not count for that number; the number of their record does.
//! 3. *No deleted key comes back.* All versions that a reader can see are retained. Partitions that a range tombstone of the memtable
//!    touches are flushed.
//! 4. *A newer run of L0 has newer entries.* While a memtable has retained entries of a partition, it is not united with others. Once they
//!    are in tables, it may be: a merge then takes all runs of which that is not so ([`super::strategy`]).
//! 5. *After a flush that a caller requests, all entries are in tables.* Nothing is retained during
//!    [`KeyspaceRegistry::begin_whole_flushes`].
//!
//! A failed flush does not retain the entries again: the memtable records which ones were retained. If the log refuses a record, an empty
//! record is synced before the entries are flushed: the segment ends before the refused record then, and no replay finds it. See
//! `docs/design/0014-partitioned-layout.md`.
//!
//! Cost: a search in the memtable per partition, one append each, and one sync of the log.

use std::sync::Arc;

use super::{
    drop_rules::DropRules,
    strategy::{self, AbortPlan},
};
use crate::{
    batch::{BatchEntry, WriteBatch},
    cursor::Cursor,
    error::Result,
    key::{Readers, SEQUENCE_MAX, Sequence},
    memtable::EntrySizes,
    observe::events::Event,
    options::Durability,
    read::snapshot::Snapshots,
    store::{
        commit_log::CommitLog,
        context::StoreContext,
        keyspace_state::{BoundingRange, KeyspaceRegistry, KeyspaceState, LoggedMemtable, ReadState},
    },
    version::version::KeyspaceVersion,
};

/// The entries of a partition.
struct PartitionEntries {
    batch: WriteBatch,
    range: BoundingRange,
    /// Of keys and values.
    bytes: u64,
}

/// The entries that a flush has retained.
#[derive(Default)]
struct RetainedCounts {
    /// The bytes that the plan expected for these partitions.
    bytes_expected: u64,
    /// Of keys and values.
    bytes: u64,
    log_bytes: u64,
    entry_count: u64,
    partition_count: u64,
}

/// See the head of this file.
pub(super) struct Retainer<'a> {
    pub(super) context: &'a StoreContext,
    pub(super) keyspaces: &'a KeyspaceRegistry,
    pub(super) log: &'a CommitLog,
    pub(super) snapshots: &'a Snapshots,
}

impl Retainer<'_> {
    /// Retains the entries that the flush of `source`, the oldest memtable, should not write. The caller has claimed the flush, so that
    /// the partitions of `version` stay.
    ///
    /// # Errors
    /// Those of the log. Entries that were retained before stay so.
    pub(super) fn retain(
        &self,
        keyspace: &KeyspaceState,
        source: &Arc<LoggedMemtable>,
        version: &KeyspaceVersion,
    ) -> Result<()> {
        if source.has_retain_failed() {
            self.end_segment_before_refused()?;
            source.set_retain_failed(false);
        }
        if !version.options.layout.is_partitioned()
            || version.partitions.len() < 2
            || source.has_retained_any()
        {
            return Ok(());
        }
        if !self.may_retain(&keyspace.read_state.load(), source) {
            return Ok(());
        }
        let readers = self.snapshots.readers(&self.context.expiry);
        let (plan, sizes) = plan(version, source, &readers);
        let mut retained = RetainedCounts::default();
        let result =
            self.abort_partitions(keyspace, source, (version, &plan, &sizes), &readers, &mut retained);
        let RetainedCounts { bytes_expected, bytes, log_bytes, entry_count, partition_count } = retained;
        if partition_count > 0 {
            let metrics = &self.context.metrics;
            metrics.partition_decisions.abort.add(partition_count, bytes_expected, log_bytes);
            metrics.retained_entries.add(entry_count);
            metrics.retained_bytes.add(bytes);
            self.context.report(&Event::EntriesRetained {
                keyspace: keyspace.name.clone(),
                partition_count: partition_count as usize,
                entry_count,
                bytes,
                bytes_saved_expected: plan.saved_bytes,
            });
        }
        result
    }

    /// Aborts the partitions of a plan, and counts those that are aborted, also before an error.
    fn abort_partitions(
        &self,
        keyspace: &KeyspaceState,
        source: &Arc<LoggedMemtable>,
        (version, plan, sizes): (&KeyspaceVersion, &AbortPlan, &[EntrySizes]),
        readers: &Readers,
        retained: &mut RetainedCounts,
    ) -> Result<()> {
        for &index in &plan.partitions {
            let bytes_left = plan.bytes_max.saturating_sub(retained.bytes);
            let found = entries_of(keyspace.id, source, (version, index), &readers.read_points, bytes_left)?;
            let Some(PartitionEntries { batch, range, bytes }) = found else { continue };
            let count = batch.len() as u64;
            let logged = self.retain_batch(keyspace, source, batch, range);
            let Some(log_bytes) = logged.inspect_err(|_| source.set_retain_failed(true))? else { break };
            retained.bytes_expected += sizes.get(index).map_or(0, |size| size.bytes);
            retained.log_bytes += log_bytes;
            retained.bytes += bytes;
            retained.entry_count += count;
            retained.partition_count += 1;
        }
        Ok(())
    }

    /// After a failed append the next one begins a segment, whose header contains the end of the previous segment.
    fn end_segment_before_refused(&self) -> Result<()> {
        let mut log = self.log.lock();
        let Some(state) = log.as_mut() else { return Ok(()) };
        let appended = state.log.append(&[], Durability::Synced, self.context.runtime.clock.now());
        appended.map(drop).inspect_err(|error| self.log.propagate_background_error(state, error))
    }

    /// Invariants 1 and 5.
    fn may_retain(&self, read_state: &ReadState, source: &Arc<LoggedMemtable>) -> bool {
        matches!(read_state.immutable.as_slice(), [only] if Arc::ptr_eq(only, source))
            && !self.keyspaces.needs_whole_flushes()
    }

    /// Returns the bytes written to the log; `None` if nothing more may be retained.
    fn retain_batch(
        &self,
        keyspace: &KeyspaceState,
        source: &Arc<LoggedMemtable>,
        mut batch: WriteBatch,
        range: BoundingRange,
    ) -> Result<Option<u64>> {
        let mut log = self.log.lock();
        let Some(state) = log.as_mut() else { return Ok(None) };
        self.context.check_writable()?;
        let read_state = keyspace.read_state.load();
        if !self.may_retain(&read_state, source) || keyspace.check().is_err() {
            return Ok(None);
        }
        let number = state.last_sequence + batch.sequence_count();
        let segment = state.log.number();
        let record = batch.assign_sequences(number);
        let appended = state.log.append(&[record], Durability::Buffered, self.context.runtime.clock.now());
        let log_bytes = appended.inspect_err(|error| self.log.propagate_background_error(state, error))?;
        let target = &read_state.memtable;
        target.note_segment(segment);
        target.note_received(number, &range.0);
        target.note_received(number, &range.1);
        for entry in batch.entries() {
            target.memtable.insert_retained(entry.key, entry.sequence, entry.kind, entry.value);
        }
        target.memtable.note_sequence(number);
        source.note_retained(range);
        state.last_sequence = number;
        self.snapshots.publish(number);
        self.context.metrics.log_bytes_written.add_exclusive(log_bytes);
        Ok(Some(log_bytes))
    }
}

/// The partitions to abort, and the sizes of the entries of each partition.
fn plan(
    version: &KeyspaceVersion,
    source: &LoggedMemtable,
    readers: &Readers,
) -> (AbortPlan, Vec<EntrySizes>) {
    let memtable = &source.memtable;
    let uppers = (0..version.partitions.len()).filter_map(|index| version.upper_of(index));
    let sizes = memtable.sizes_between(uppers);
    let memtable_bytes = sizes.iter().map(|size| size.bytes).sum();
    let deleted = memtable.range_tombstones().spans_at(SEQUENCE_MAX);
    let is_deleted_in = |index: usize| {
        let lower = version.partitions.get(index).map_or(&[][..], |partition| &partition.lower);
        let upper = version.upper_of(index).unwrap_or_default();
        deleted.overlap(lower, upper)
    };
    let bytes =
        sizes.iter().enumerate().map(|(index, size)| if is_deleted_in(index) { 0 } else { size.bytes });
    let plan = strategy::pick_aborted(version, (&bytes.collect::<Vec<_>>(), memtable_bytes), readers);
    (plan, sizes)
}

/// The entries of a partition that a reader can see; `None` if there are none, or more than `bytes_max`.
fn entries_of(
    keyspace: u32,
    source: &LoggedMemtable,
    (version, index): (&KeyspaceVersion, usize),
    read_points: &[Sequence],
    bytes_max: u64,
) -> Result<Option<PartitionEntries>> {
    let Some(partition) = version.partitions.get(index) else { return Ok(None) };
    let upper = version.upper_of(index);
    let mut rules = DropRules::new(read_points.to_vec(), []);
    let (mut batch, mut bytes) = (WriteBatch::retaining(), 0);
    let mut range: Option<BoundingRange> = None;
    let mut cursor = source.memtable.cursor();
    cursor.seek(&partition.lower, SEQUENCE_MAX)?;
    while cursor.is_valid() && upper.is_none_or(|upper| cursor.key() < upper) {
        let (key, sequence, kind) = (cursor.key(), cursor.sequence(), cursor.kind());
        if rules.decide(key, sequence, kind, || false).is_kept() {
            bytes += (key.len() + cursor.value().len()) as u64;
            if bytes > bytes_max {
                return Ok(None);
            }
            let value = cursor.value();
            batch.retain(BatchEntry { keyspace, sequence, logged_at: sequence, kind, key, value })?;
            let (_, last) = range.get_or_insert_with(|| (key.to_vec(), Vec::new()));
            last.clear();
            last.extend_from_slice(key);
        }
        cursor.next()?;
    }
    Ok(range.map(|range| PartitionEntries { batch, range, bytes }))
}
