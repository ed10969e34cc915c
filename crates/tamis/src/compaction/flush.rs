//! Writes an immutable memtable into tables at L0: one run per partition that it touches, split where it overlaps other
//! tables ([`super::flush_split`]).
//!
//! The edit also records, for each partition that it touches, that all entries up to the memtable's last one are in tables, or were retained
//! ([`super::retain`]): memtables are flushed oldest first. Replay then skips these entries. The log has none of the other partitions, up
//! to this number, that are not in tables.

use std::sync::Arc;

use super::{
    drop_rules::DropRules,
    flush_split::{LowerOverlap, upper_split_key},
    job_context::JobContext,
    merge::bounding_range_within,
    strategy::TABLE_BYTES_FIXED,
    table_sink::{SplitPoint, TableSink},
};
use crate::{
    cursor::Cursor,
    error::Result,
    key::SEQUENCE_MAX,
    memtable::{EntrySizes, Memtable},
    range_tombstone::fragment,
    version::{
        catalog::Counters,
        edit::{Change, RunPlace, VersionEdit},
        partition::Partition,
        version::KeyspaceVersion,
    },
};

/// How the tables of a flush are split and written.
pub(super) struct Layout<'a> {
    pub(super) lower_overlap: LowerOverlap,
    /// Whether the tables that overlap nothing bypass the page cache.
    pub(super) is_direct: bool,
    /// Whether the entries of a key were retained, and with them all of its partition.
    pub(super) is_retained: &'a dyn Fn(&[u8]) -> bool,
    /// Returns the newer memtables. Called in the middle of the flush, when slower writers have filled them further.
    pub(super) newer: &'a dyn Fn() -> Vec<Arc<Memtable>>,
}

/// The result of a flush.
#[derive(Default)]
pub(super) struct Flushed {
    /// Installs the tables.
    pub(super) edit: VersionEdit,
    /// The bytes that it was expected to write.
    pub(super) bytes_expected: u64,
    /// The number of partitions for which it wrote tables.
    pub(super) partition_count: u64,
}

/// Writes the tables of `memtable`. The folder is synced once for all tables.
///
/// # Errors
/// Those of the file system; no table is left then.
pub(super) fn flush(
    context: &JobContext<'_>,
    memtable: &Arc<Memtable>,
    layout: &Layout<'_>,
) -> Result<Flushed> {
    let mut flushed = Flushed::default();
    let written = write_tables(context, memtable, layout, &mut flushed);
    let tables = flushed.edit.new_tables();
    let written = written.and_then(|()| if tables.is_empty() { Ok(()) } else { context.sync_folder() });
    written.inspect_err(|_| {
        // One that can't be removed is deleted at the next open.
        tables.iter().for_each(|table| drop(context.folder.remove(&table.path(context.folder))));
    })?;
    Ok(flushed)
}

fn write_tables(
    context: &JobContext<'_>,
    memtable: &Arc<Memtable>,
    layout: &Layout<'_>,
    result: &mut Flushed,
) -> Result<()> {
    let edit = &mut result.edit;
    let Some((oldest, newest)) = memtable.sequence_range() else { return Ok(()) };
    let mut cursor = memtable.cursor();
    cursor.seek_first()?;
    let middle = memtable.middle_key();
    let sizes = entry_sizes(context.version, memtable);
    let mut tombstones_left =
        fragment(memtable.range_tombstones().all(), &context.readers.read_points).into_parts();
    for ((index, partition), size) in context.version.partitions.iter().enumerate().zip(sizes) {
        let upper = context.version.upper_of(index);
        let flushed = Change::SetFlushedSequence {
            keyspace: context.version.id,
            partition: partition.id,
            sequence: newest,
        };
        let tombstones = tombstones_left.next_below(upper.unwrap_or_default());
        let has_entries = cursor.is_valid() && upper.is_none_or(|upper| cursor.key() < upper);
        if !has_entries && tombstones.is_empty() {
            continue;
        }
        if has_entries && (layout.is_retained)(cursor.key()) {
            cursor.seek(upper.unwrap_or_default(), SEQUENCE_MAX)?;
            edit.push(flushed);
            if upper.is_none() {
                break;
            }
            continue;
        }
        // Newer runs of L0 have greater ages; sequence numbers grow from memtable to memtable.
        let place =
            RunPlace { keyspace: context.version.id, partition: partition.id, level: 0, run_age: newest };
        let origin = context.origin_at(index, place, Vec::new());
        let rules = DropRules::of_fragments(context.readers.read_points.clone(), tombstones);
        let older = |lower: &[u8], upper: &[u8]| bounding_range_within(partition.tables(), lower, upper);
        let kept = rules.kept_range_tombstones(older, oldest.saturating_sub(1));
        let mut sink = TableSink::new(context, &origin, (0, size.count), &[], rules);
        sink.take_range_tombstones(kept);
        let key = match &layout.lower_overlap {
            LowerOverlap::Small(key) => key.clone(),
            LowerOverlap::None | LowerOverlap::Large => Vec::new(),
        };
        sink.split_at([SplitPoint { key, is_direct: layout.is_direct }]);
        let is_lowest = |key: &[u8]| is_absent(partition, key);
        let first_half = [upper, middle.as_deref()].into_iter().flatten().min();
        sink.consume(&mut cursor, first_half, &is_lowest)?;
        let split_key = upper_split_key(context.version, memtable, &(layout.newer)())?;
        sink.split_at(split_key.map(|key| SplitPoint { key, is_direct: context.is_direct }));
        sink.consume(&mut cursor, upper, &is_lowest)?;
        for summary in sink.finish_without_folder_sync()? {
            edit.push(Change::AddTable { place, summary, filter_file: None, is_ingested: false });
        }
        edit.push(flushed);
        result.bytes_expected += size.bytes + TABLE_BYTES_FIXED;
        result.partition_count += 1;
    }
    edit.push(Change::AdvanceCounters(Counters { last_sequence: newest, ..Counters::default() }));
    Ok(())
}

/// The approximate sizes of a memtable's entries in each partition. In other layouts, which have one, the memory of entries counts: it costs
/// no visit of them.
fn entry_sizes(version: &KeyspaceVersion, memtable: &Memtable) -> Vec<EntrySizes> {
    if version.partitions.len() == 1 && !version.options.layout.is_partitioned() {
        return vec![EntrySizes { count: memtable.entry_count(), bytes: memtable.bytes() as u64 }];
    }
    let uppers = (0..version.partitions.len()).filter_map(|index| version.upper_of(index));
    memtable.sizes_between(uppers)
}

/// Whether no table of the partition can hold the key.
fn is_absent(partition: &Partition, key: &[u8]) -> bool {
    partition.runs().all(|(_, run)| run.table_of(key).is_none())
}
