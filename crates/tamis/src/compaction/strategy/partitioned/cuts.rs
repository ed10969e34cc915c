//! The keys at which a partition can be divided almost without a rewrite.
//!
//! A table that begins at or after such a key belongs to the partition after it, one that ends before it to the partition before it.
//! Tables that a key cuts through are rewritten. A key is chosen if that costs at most an eighth of the bytes before it, and if these
//! bytes are enough for a partition. So a load in key order is divided and never rewritten, and so is the single run of a leveled
//! store, while the runs of random writes, which all overlap, are not.
//!
//! Cost: O(n log n) comparisons for n tables.

use std::{collections::BTreeSet, sync::Arc};

use crate::version::handle::Table;

/// How a partition is divided.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Division {
    /// The lower bounds of all new partitions but the first; empty if the partition should not be divided.
    pub(super) keys: Vec<Vec<u8>>,
    /// The bytes of the tables that a key cuts through.
    pub(super) cut_bytes: u64,
}

/// Chooses the keys. `bytes_min` are the least bytes of a new partition.
pub(super) fn divide<'a>(tables: impl Iterator<Item = &'a Arc<Table>>, bytes_min: u64) -> Division {
    let mut tables: Vec<&Arc<Table>> = tables.collect();
    tables.sort_by(|left, right| left.smallest_key().cmp(right.smallest_key()));
    let total: u64 = tables.iter().map(|table| table.file_bytes()).sum();
    let mut division = Division::default();
    let mut cut_tables = BTreeSet::new();
    // Tables that begin before the current key and may end after it.
    let mut open: Vec<&Arc<Table>> = Vec::new();
    let (mut bytes, mut passed) = (0, 0);
    let mut previous: Option<&[u8]> = None;
    for table in tables {
        let key = table.smallest_key();
        open.retain(|other| !other.ends_before(key));
        let cut: u64 = open.iter().map(|other| other.file_bytes()).sum();
        let is_large = bytes >= bytes_min && total - passed >= bytes_min;
        // Tables that begin at one key stay together.
        // At most an eighth of the bytes before the key is rewritten.
        if is_large && previous != Some(key) && cut <= bytes / 8 {
            division.keys.push(key.to_vec());
            // Several keys may cut through one table, which is rewritten once.
            let new = open.iter().filter(|other| cut_tables.insert(other.number()));
            division.cut_bytes += new.map(|other| other.file_bytes()).sum::<u64>();
            bytes = 0;
        }
        bytes += table.file_bytes();
        passed += table.file_bytes();
        open.push(table);
        previous = Some(key);
    }
    division
}

#[cfg(test)]
mod tests;
