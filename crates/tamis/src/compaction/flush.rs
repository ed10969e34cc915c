//! From an immutable memtable to tables at L0: one run per partition that it touches, cut at the memtable's edges ([`super::edges`]).
//!
//! The edit also says that all entries of the keyspace up to the memtable's last are in tables now, in every partition:
//! memtables are flushed in the order in which they were rotated. Replay then passes over them.

use std::sync::Arc;

use super::{
    edges::{Front, back},
    output::{Cut, JobContext, Outputs, Written},
};
use crate::{
    cursor::Cursor,
    error::Result,
    memtable::Memtable,
    version::{
        catalog::Counters,
        edit::{Change, RunPlace, VersionEdit},
        version::Partition,
    },
};

/// How the tables of a flush are cut and written.
pub(super) struct Layout<'a> {
    pub(super) front: Front,
    /// Whether what lies between the edges is written past the page cache.
    pub(super) is_direct: bool,
    /// The memtables that were begun later; asked in the midst, when writers that are behind have come to them.
    pub(super) newer: &'a dyn Fn() -> Vec<Arc<Memtable>>,
}

/// Writes the tables of `memtable`; the edit puts them in force. Gives what was written too.
///
/// # Errors
/// Those of the file system; no table is left then.
pub(super) fn flush(
    context: &JobContext<'_>,
    memtable: &Arc<Memtable>,
    layout: &Layout<'_>,
) -> Result<(VersionEdit, Written)> {
    let mut edit = VersionEdit::default();
    let mut written = Written::default();
    let Some((_, newest)) = memtable.sequence_range() else { return Ok((edit, written)) };
    let mut cursor = memtable.cursor();
    cursor.seek_first()?;
    let middle = memtable.middle_key();
    for (index, partition) in context.version.partitions.iter().enumerate() {
        // Of the runs at L0 a newer one has the greater age; sequence numbers grow from memtable to memtable.
        let place =
            RunPlace { keyspace: context.version.id, partition: partition.id, level: 0, run_age: newest };
        let origin = context.origin(partition.id, place, Vec::new());
        let mut outputs = Outputs::new(context, &origin, (0, memtable.entry_count()), &[]);
        let front = match &layout.front {
            Front::Edge(key) => key.clone(),
            Front::Apart | Front::Overlapping => Vec::new(),
        };
        outputs.cut_at([Cut { key: front, is_direct: layout.is_direct }]);
        let upper = context.version.upper_of(index);
        let is_lowest = |key: &[u8]| is_absent(partition, key);
        let first_half = [upper, middle.as_deref()].into_iter().flatten().min();
        outputs.take(&mut cursor, first_half, &is_lowest)?;
        let back = back(context.version, memtable, &(layout.newer)())?;
        outputs.cut_at(back.map(|key| Cut { key, is_direct: context.is_direct }));
        outputs.take(&mut cursor, upper, &is_lowest)?;
        for summary in outputs.finish()? {
            written.add(&summary);
            edit.push(Change::AddTable { place, summary, filter_file: None, is_ingested: false });
        }
        edit.push(Change::SetFlushedSequence {
            keyspace: context.version.id,
            partition: partition.id,
            sequence: newest,
        });
    }
    edit.push(Change::AdvanceCounters(Counters { last_sequence: newest, ..Counters::default() }));
    Ok((edit, written))
}

/// Whether no table of the partition can hold the key.
fn is_absent(partition: &Partition, key: &[u8]) -> bool {
    partition.runs().all(|(_, run)| run.table_of(key).is_none())
}
