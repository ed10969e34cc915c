//! The writes of the transaction that reads, which are newer than all that its snapshot sees.

use std::{ops::Bound, sync::Arc};

use crate::{
    cursor::{Cursor, bounded::KeyRange},
    error::Result,
    key::{AFTER_ALL, Kind, Sequence},
    memtable::Memtable,
    slice::Slice,
};

/// The writes of a transaction to a keyspace: a memtable that only this transaction reads. Their numbers are above
/// [`crate::key::SEQUENCE_MAX`].
#[derive(Clone)]
pub(crate) struct OwnWrites {
    pub(crate) memtable: Arc<Memtable>,
    /// The last write that the reader sees.
    pub(crate) newest: Sequence,
}

impl OwnWrites {
    /// Whether the range may have entries.
    pub(crate) fn has_entries(&self, range: &KeyRange) -> Result<bool> {
        has_entries(&self.memtable, range)
    }
}

/// The value of a key at `sequence`: `None` if the memtable does not have it, `Some(None)` if it is deleted.
pub(crate) fn get_in_memtable(memtable: &Memtable, key: &[u8], sequence: Sequence) -> Option<Option<Slice>> {
    let covered = memtable.range_tombstones().sequence_at(key, sequence);
    match memtable.get(key, sequence) {
        Some((kind, found, value)) if found >= covered => {
            Some((kind == Kind::Put).then(|| Slice::from(value)))
        }
        _ if covered > 0 => Some(None),
        _ => None,
    }
}

/// Whether a memtable has an entry of the range, in any version.
pub(crate) fn has_entries(memtable: &Arc<Memtable>, range: &KeyRange) -> Result<bool> {
    if memtable.entry_count() == 0 {
        return Ok(false);
    }
    let mut cursor = memtable.cursor();
    match &range.lower {
        Bound::Unbounded => cursor.seek_first()?,
        Bound::Included(key) => cursor.seek(key, Sequence::MAX)?,
        Bound::Excluded(key) => cursor.seek(key, AFTER_ALL)?,
    }
    Ok(cursor.is_valid() && !range.is_above(cursor.key()))
}
