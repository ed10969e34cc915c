//! The tables of a keyspace at one moment: partitions, levels, runs, tables.
//!
//! `invariants.rs` lists and checks the invariants. A version is immutable once it is installed, and is shared by `Arc`.

use std::{
    ops::{Bound, Range},
    sync::Arc,
};

use super::{
    handle::{FileHandle, Table},
    key_bounds::KeyBounds,
    partition::Partition,
    partitions::Partitions,
};
use crate::options::KeyspaceOptions;

/// A keyspace: a named, ordered map.
#[derive(Debug, Clone)]
pub(crate) struct KeyspaceVersion {
    /// Never reused.
    pub(crate) id: u64,
    pub(crate) name: Arc<str>,
    pub(crate) options: Arc<KeyspaceOptions>,
    /// In order of lower bounds.
    pub(crate) partitions: Partitions,
}

impl KeyspaceVersion {
    /// Position of the partition of `key`. No key is below the first partition.
    #[inline]
    pub(crate) fn partition_index(&self, key: &[u8]) -> usize {
        self.partitions
            .get(1..)
            .map_or(0, |rest| rest.partition_point(|partition| partition.lower.as_slice() <= key))
    }

    /// The partition of `key`; `None` only in a version without partitions.
    #[inline]
    pub(crate) fn partition_of(&self, key: &[u8]) -> Option<&Arc<Partition>> {
        self.partitions.get(self.partition_index(key))
    }

    /// The partitions that overlap the bounds.
    pub(crate) fn partitions_within(&self, bounds: KeyBounds<'_>) -> &[Arc<Partition>] {
        self.partitions.get(self.positions_within(bounds)).unwrap_or_default()
    }

    /// The positions of the partitions that overlap the bounds.
    pub(crate) fn positions_within(&self, (lower, upper): KeyBounds<'_>) -> Range<usize> {
        let from = match lower {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => self.partition_index(key),
        };
        let to = match upper {
            Bound::Unbounded => self.partitions.len(),
            Bound::Included(key) => self.partition_index(key) + 1,
            Bound::Excluded(key) => {
                self.partitions.get(1..).map_or(0, |rest| rest.partition_point(|p| p.lower.as_slice() < key))
                    + 1
            }
        };
        from..to.max(from)
    }

    /// The upper bound (exclusive) of the partition at `index`; `None` for the last one.
    pub(crate) fn upper_of(&self, index: usize) -> Option<&[u8]> {
        self.partitions.get(index + 1).map(|next| next.lower.as_slice())
    }

    /// Every entry of the keyspace up to this sequence number is in tables.
    #[cfg(test)]
    pub(crate) fn flushed_sequence(&self) -> crate::key::Sequence {
        self.partitions.iter().map(|partition| partition.flushed_sequence).min().unwrap_or(0)
    }

    /// The number of L0 runs of the partition that has the most. Computed once for a version.
    #[inline]
    pub(crate) fn level0_run_count(&self) -> usize {
        self.partitions.level0_run_count()
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.partitions.iter().flat_map(|partition| partition.tables())
    }

    /// All tables with their levels, newest first in each partition.
    pub(crate) fn tables_by_level(&self) -> impl Iterator<Item = (usize, &Arc<Table>)> {
        let runs = self.partitions.iter().flat_map(|partition| partition.runs());
        runs.flat_map(|(level, run)| run.tables().iter().map(move |table| (level, table)))
    }

    /// Entries of all tables.
    pub(crate) fn entry_count(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.totals().entry_count).sum()
    }

    /// The files of the version: tables, filters, views.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<FileHandle>> {
        self.partitions.iter().flat_map(|partition| partition.files())
    }
}

#[cfg(test)]
mod tests;
