//! The edges of a memtable: the keys that it shares with tables before it, and with memtables behind it.
//!
//! Writers that bring keys in order, each at its own pace, fill memtables that overlap a little at both ends. Written as one table
//! each would be merged for the sake of these ends. So the ends become tables of their own, where they are small: what lies between
//! has nothing beside it, goes past the page cache ([`super::direct_flush`]), and down the levels as it is.

use std::sync::Arc;

use super::plan::inclusive;
use crate::{cursor::Cursor, error::Result, memtable::Memtable, version::version::KeyspaceVersion};

/// An edge has at most so many of a hundred entries.
const EDGE_PERCENT_MAX: u64 = 40;
/// A memtable that is smaller than one of so many parts of a table is not cut.
const TABLE_SHARE: u64 = 8;

/// How a memtable lies to the tables of its keyspace.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Front {
    /// None has keys between its least and its greatest.
    Apart,
    /// Those that have end before this key, and few entries do.
    Edge(Vec<u8>),
    Overlapping,
}

impl Front {
    /// # Errors
    /// None: the cursor of a memtable has none.
    pub(super) fn of(version: &KeyspaceVersion, memtable: &Arc<Memtable>) -> Result<Self> {
        let mut cursor = memtable.cursor();
        cursor.seek_first()?;
        if !cursor.is_valid() {
            return Ok(Self::Apart);
        }
        let least = cursor.key().to_vec();
        cursor.seek_last()?;
        let bounds = inclusive(&least, cursor.key());
        let runs = version.partitions.iter().flat_map(|partition| partition.runs());
        let within = runs.flat_map(|(_, run)| run.tables_within(bounds));
        let Some(greatest) = within.map(|table| table.largest_key()).max() else {
            return Ok(Self::Apart);
        };
        let behind = [greatest, &[0]].concat();
        let is_small = is_cut(version, memtable) && is_small_edge(memtable.count_before(&behind), memtable);
        Ok(if is_small { Self::Edge(behind) } else { Self::Overlapping })
    }

    /// Whether most entries lie apart.
    pub(super) fn is_mostly_apart(&self) -> bool {
        *self != Self::Overlapping
    }
}

/// Where the other edge begins: the least key of the `newer` memtables, where few entries lie behind it.
///
/// # Errors
/// As [`Front::of`].
pub(super) fn back(
    version: &KeyspaceVersion,
    memtable: &Arc<Memtable>,
    newer: &[Arc<Memtable>],
) -> Result<Option<Vec<u8>>> {
    if !is_cut(version, memtable) {
        return Ok(None);
    }
    let mut least: Option<Vec<u8>> = None;
    for other in newer {
        let mut cursor = other.cursor();
        cursor.seek_first()?;
        if cursor.is_valid() && least.as_deref().is_none_or(|least| cursor.key() < least) {
            least = Some(cursor.key().to_vec());
        }
    }
    let count_behind = |key: &Vec<u8>| memtable.entry_count().saturating_sub(memtable.count_before(key));
    Ok(least.filter(|least| is_small_edge(count_behind(least), memtable)))
}

fn is_small_edge(entry_count: u64, memtable: &Memtable) -> bool {
    entry_count * 100 <= memtable.entry_count() * EDGE_PERCENT_MAX
}

fn is_cut(version: &KeyspaceVersion, memtable: &Memtable) -> bool {
    memtable.bytes() as u64 >= version.options.table_bytes / TABLE_SHARE
}

#[cfg(test)]
mod tests;
