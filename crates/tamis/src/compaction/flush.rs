//! From a sealed memtable to tables at L0: one run per partition that it touches.
//!
//! The edit also says that all entries of the keyspace up to the memtable's last are in tables now, in every partition:
//! memtables are flushed in the order in which they were sealed. Replay then passes over them.

use std::sync::Arc;

use super::output::{JobContext, Outputs};
use crate::{
    cursor::Cursor,
    error::Result,
    memtable::Memtable,
    version::{
        edit::{Change, RunPlace, VersionEdit},
        state::Counters,
        version::Partition,
    },
};

/// Writes the tables of `memtable`; the edit puts them in force. Gives the bytes written too.
///
/// # Errors
/// Those of the file system; no table is left then.
pub(crate) fn flush(context: &JobContext<'_>, memtable: &Arc<Memtable>) -> Result<(VersionEdit, u64)> {
    let mut edit = VersionEdit::default();
    let Some((_, newest)) = memtable.sequence_range() else { return Ok((edit, 0)) };
    let mut bytes_written = 0;
    let mut cursor = memtable.cursor();
    cursor.seek_first()?;
    for (index, partition) in context.version.partitions.iter().enumerate() {
        // Of the runs at L0 a newer one has the greater age; sequence numbers grow from memtable to memtable.
        let place =
            RunPlace { keyspace: context.version.id, partition: partition.id, level: 0, run_age: newest };
        let origin = context.origin(partition.id, place, Vec::new());
        let mut outputs = Outputs::new(context, &origin, (0, memtable.entry_count()), &[]);
        outputs.take(&mut cursor, context.version.upper_of(index), &|key| is_absent(partition, key))?;
        for summary in outputs.finish()? {
            bytes_written += summary.file_bytes;
            edit.push(Change::AddTable { place, summary, filter_file: None });
        }
        edit.push(Change::SetFlushedSequence {
            keyspace: context.version.id,
            partition: partition.id,
            sequence: newest,
        });
    }
    edit.push(Change::Raise(Counters { last_sequence: newest, ..Counters::default() }));
    Ok((edit, bytes_written))
}

/// Whether no table of the partition can hold the key.
fn is_absent(partition: &Partition, key: &[u8]) -> bool {
    partition.runs().all(|(_, run)| run.table_of(key).is_none())
}
