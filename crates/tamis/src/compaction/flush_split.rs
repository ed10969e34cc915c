//! Where the output of a flush is split: at the keys that the memtable shares with older tables and with newer memtables.
//!
//! Writers that insert ascending keys, each at its own pace, fill memtables that overlap a little at both ends. One table per
//! memtable would then overlap its neighbours and be rewritten by a merge. So a small overlap becomes a separate table: the
//! tables in between overlap nothing, bypass the page cache during a bulk load and move down the levels without a rewrite.

use std::{ops::Bound, sync::Arc};

use crate::{
    cursor::Cursor, error::Result, memtable::Memtable, range_tombstone::compare_uppers,
    version::version::KeyspaceVersion,
};

/// How many of a memtable's entries overlap the tables of its keyspace, from the memtable's smallest key on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LowerOverlap {
    /// No table overlaps the memtable.
    None,
    /// All overlapping tables end before this key, and few entries are below it.
    Small(Vec<u8>),
    Large,
}

impl LowerOverlap {
    /// # Errors
    /// None: the cursor of a memtable has none.
    pub(super) fn of(version: &KeyspaceVersion, memtable: &Arc<Memtable>) -> Result<Self> {
        if !memtable.range_tombstones().is_empty() {
            // Range tombstones may overlap tables anywhere.
            return Ok(Self::Large);
        }
        let mut cursor = memtable.cursor();
        cursor.seek_first()?;
        if !cursor.is_valid() {
            return Ok(Self::None);
        }
        let smallest = cursor.key().to_vec();
        cursor.seek_last()?;
        let bounds = (Bound::Included(smallest.as_slice()), Bound::Included(cursor.key()));
        let runs = version.partitions_within(bounds).iter().flat_map(|partition| partition.runs());
        let overlapping = runs.flat_map(|(_, run)| run.tables_within(bounds));
        let ends = overlapping.map(|table| table.upper());
        let Some(split_key) = ends.max_by(|left, right| compare_uppers(left, right)) else {
            return Ok(Self::None);
        };
        if split_key.is_empty() {
            return Ok(Self::Large);
        }
        let is_small = is_worth_splitting(version, memtable)
            && is_small_share(memtable.count_before(&split_key), memtable);
        Ok(if is_small { Self::Small(split_key) } else { Self::Large })
    }

    /// Whether most entries overlap no table.
    pub(super) fn is_at_most_small(&self) -> bool {
        *self != Self::Large
    }
}

/// The split key at the upper end: the smallest key of the `newer` memtables, if few entries of `memtable` follow it.
///
/// # Errors
/// As [`LowerOverlap::of`].
pub(super) fn upper_split_key(
    version: &KeyspaceVersion,
    memtable: &Arc<Memtable>,
    newer: &[Arc<Memtable>],
) -> Result<Option<Vec<u8>>> {
    if !is_worth_splitting(version, memtable) || !memtable.range_tombstones().is_empty() {
        return Ok(None);
    }
    let mut smallest: Option<Vec<u8>> = None;
    for other in newer {
        let mut cursor = other.cursor();
        cursor.seek_first()?;
        if cursor.is_valid() && smallest.as_deref().is_none_or(|smallest| cursor.key() < smallest) {
            smallest = Some(cursor.key().to_vec());
        }
    }
    let count_from = |key: &Vec<u8>| memtable.entry_count().saturating_sub(memtable.count_before(key));
    Ok(smallest.filter(|key| is_small_share(count_from(key), memtable)))
}

fn is_small_share(entry_count: u64, memtable: &Memtable) -> bool {
    // At most 40 % of the entries are split off.
    entry_count * 100 <= memtable.entry_count() * 40
}

/// In the partitioned layout the number of tables counts.
fn is_worth_splitting(version: &KeyspaceVersion, memtable: &Memtable) -> bool {
    !version.options.layout.is_partitioned()
        // A memtable much smaller than a table is not split.
        && memtable.bytes() as u64 >= version.options.table_bytes / 8
}

#[cfg(test)]
mod tests;
