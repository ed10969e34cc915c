//! The writes of the transaction that reads, which are newer than all that its snapshot sees.

use std::{ops::Bound, sync::Arc};

use crate::{
    cursor::{Cursor, bounded::KeyRange},
    error::Result,
    key::{AFTER_ALL, Sequence},
    memtable::Memtable,
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
