//! The approximate number of keys in a range, without reading a block.
//!
//! The index of a table gives the number of entries before a bound, to within a block. A tombstone counts as -1, for itself and for
//! the key that it deletes. Entries in memtables are counted one by one. Versions of a key that are not merged yet count
//! separately. In a compacted store the result is exact to within two blocks per table.

use std::{ops::Bound, sync::Arc};

use super::ReadPath;
use crate::{
    cursor::{
        Cursor,
        bounded::{Bounds, KeyRange},
    },
    error::Result,
    key::{Kind, SEQUENCE_MAX},
    keyspace_state::KeyspaceState,
    memtable::Memtable,
    table::reader::TableReader,
    version::key_bounds::KeyBounds,
};

impl ReadPath {
    /// See [`crate::Keyspace::approximate_count`].
    pub(crate) fn approximate_count(&self, keyspace: &KeyspaceState, bounds: &Bounds) -> Result<u64> {
        self.context.check_open()?;
        keyspace.check()?;
        let (lower, upper) = (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice));
        if (KeyRange { lower: bounds.0.clone(), upper: bounds.1.clone() }).is_empty() {
            return Ok(0);
        }
        let read_state = keyspace.read_state.load_full();
        let mut count = 0.0;
        for memtable in read_state.memtables() {
            count += count_in_memory(&memtable.memtable, (lower, upper))?;
        }
        for partition in read_state.version.partitions_within((lower, upper)) {
            for (_, run) in partition.runs() {
                for table in run.tables_within((lower, upper)) {
                    let summary = table.summary();
                    let deleted = 2.0 * summary.tombstone_count as f64 / summary.entry_count.max(1) as f64;
                    let entries = count_in_table(&*self.tables.reader(table)?, (lower, upper))?;
                    count += entries * (1.0 - deleted);
                }
            }
        }
        Ok(count.max(0.0).round() as u64)
    }
}

/// The number of puts minus the number of deletes.
fn count_in_memory(memtable: &Arc<Memtable>, (lower, upper): KeyBounds<'_>) -> Result<f64> {
    let mut cursor = memtable.cursor();
    match lower {
        Bound::Unbounded => cursor.seek_first()?,
        Bound::Included(key) | Bound::Excluded(key) => cursor.seek(key, SEQUENCE_MAX)?,
    }
    let mut count = 0.0;
    while cursor.is_valid() {
        let key = cursor.key();
        let is_past = match upper {
            Bound::Unbounded => false,
            Bound::Included(upper) => key > upper,
            Bound::Excluded(upper) => key >= upper,
        };
        if is_past {
            break;
        }
        if lower != Bound::Excluded(key) {
            count += if cursor.kind() == Kind::Put { 1.0 } else { -1.0 };
        }
        cursor.next()?;
    }
    Ok(count)
}

/// The number of entries between the bounds, from the index alone.
fn count_in_table(table: &Arc<TableReader>, (lower, upper): KeyBounds<'_>) -> Result<f64> {
    let summary = &table.properties().summary;
    let before = match lower {
        Bound::Included(key) | Bound::Excluded(key) if key > summary.smallest_key.as_slice() => {
            table.entries_about_before(key)?
        }
        _ => 0.0,
    };
    let up_to = match upper {
        Bound::Included(key) | Bound::Excluded(key) if key <= summary.largest_key.as_slice() => {
            table.entries_about_before(key)?
        }
        _ => summary.entry_count as f64,
    };
    Ok((up_to - before).max(0.0))
}
