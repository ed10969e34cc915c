//! The keys at which a partition can be divided almost without a rewrite.
//!
//! A table that begins at or after such a key belongs to the partition after it, one that ends before it to the partition before it.
//! Tables that a key cuts through are rewritten. A key is chosen if that costs at most an eighth of the bytes before it, and if these
//! bytes are enough for a partition. So a load in key order is divided and never rewritten, and so is the single run of a leveled
//! store, while the runs of random writes, which all overlap, are not.
//!
//! Cost: O(n log n) comparisons for n tables.

use std::sync::Arc;

use crate::version::handle::Table;

/// The maximum bytes to rewrite at a key, as a fraction of the bytes before it.
const REWRITE_FRACTION: u64 = 8;

/// The lower bounds of all new partitions but the first; empty if the partition should not be divided. `bytes_min` are the least bytes
/// of a new partition.
pub(super) fn division_keys<'a>(
    tables: impl Iterator<Item = &'a Arc<Table>>,
    bytes_min: u64,
) -> Vec<Vec<u8>> {
    let mut tables: Vec<&Arc<Table>> = tables.collect();
    tables.sort_by(|left, right| left.smallest_key().cmp(right.smallest_key()));
    let total: u64 = tables.iter().map(|table| table.file_bytes()).sum();
    let mut keys = Vec::new();
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
        if is_large && previous != Some(key) && cut <= bytes / REWRITE_FRACTION {
            keys.push(key.to_vec());
            bytes = 0;
        }
        bytes += table.file_bytes();
        passed += table.file_bytes();
        open.push(table);
        previous = Some(key);
    }
    keys
}

#[cfg(test)]
mod tests;
