//! Finds partitions by id.
//!
//! Edits and checks name partitions by id, mostly one after the other. A lookup first tries the partition of the last lookup and the
//! next one. The first few other lookups are linear; then a sorted list of ids is made. So an edit of one partition costs a few
//! comparisons, and an edit of many takes O(n log n) for n partitions.

use super::version::KeyspaceVersion;
use crate::steps::{self, Step};

/// Lookups that scan the partitions before the list is made.
const LINEAR_COUNT_MAX: usize = 4;

/// See the head of this file. Lookups in another keyspace begin again.
#[derive(Debug, Default)]
pub(super) struct PartitionFinder {
    keyspace: u64,
    /// The position of the last lookup.
    last: usize,
    linear_count: usize,
    /// Ids with their positions, sorted; empty until it is needed.
    by_id: Vec<(u64, usize)>,
}

impl PartitionFinder {
    /// The position of a partition.
    pub(super) fn find(&mut self, version: &KeyspaceVersion, id: u64) -> Option<usize> {
        if self.keyspace != version.id {
            *self = Self { keyspace: version.id, ..Self::default() };
        }
        let is_at = |position: &usize| version.partitions.get(*position).is_some_and(|found| found.id == id);
        let near = [self.last, self.last + 1].into_iter().find(is_at);
        let position = near.or_else(|| self.find_far(version, id))?;
        self.last = position;
        Some(position)
    }

    fn find_far(&mut self, version: &KeyspaceVersion, id: u64) -> Option<usize> {
        if self.linear_count < LINEAR_COUNT_MAX {
            self.linear_count += 1;
            steps::count(Step::FoundPartition, version.partitions.len());
            return version.partitions.iter().position(|other| other.id == id);
        }
        if self.by_id.is_empty() {
            self.by_id =
                version.partitions.iter().enumerate().map(|(index, other)| (other.id, index)).collect();
            self.by_id.sort_unstable();
            steps::count(Step::FoundPartition, self.by_id.len());
        }
        let found = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.by_id.get(found).map(|(_, position)| *position)
    }

    /// Records that partitions were added or removed; the next lookup is near `position`.
    pub(super) fn note_change(&mut self, position: usize) {
        (self.last, self.by_id) = (position, Vec::new());
    }
}

#[cfg(test)]
mod tests;
