//! Finds partitions by id.
//!
//! Edits and checks name partitions by id, mostly one after the other. A lookup first tries the partition of the last lookup and the
//! next one. The first few other lookups are linear; then a sorted list of ids is made, which changes of the partitions keep up to date.
//!
//! Cost for n partitions: an edit of one partition reads the ids of a few times n partitions, an edit of many takes O(n log n) in all.
//! A replay has one finder for all of its edits: each lookup takes O(log n), and each added or removed partition one pass through the list.

use std::collections::BTreeMap;

use super::version::KeyspaceVersion;
use crate::observe::steps::{self, Step};

/// See the head of this file. All lookups are in versions of which each follows from the previous one by the recorded changes.
#[derive(Debug, Default)]
pub(super) struct PartitionFinder {
    keyspaces: BTreeMap<u64, KeyspaceFinder>,
}

#[derive(Debug, Default)]
struct KeyspaceFinder {
    /// The position of the last lookup.
    last: usize,
    linear_count: usize,
    /// Ids with their positions, sorted; empty until it is needed.
    by_id: Vec<(u64, usize)>,
}

impl PartitionFinder {
    /// The position of a partition.
    pub(super) fn find(&mut self, version: &KeyspaceVersion, id: u64) -> Option<usize> {
        self.keyspaces.entry(version.id).or_default().find(version, id)
    }

    /// Records that a partition was added at `position`; the next lookup is near it.
    pub(super) fn note_added(&mut self, keyspace: u64, id: u64, position: usize) {
        let Some(finder) = self.keyspaces.get_mut(&keyspace) else { return };
        finder.last = position;
        if !finder.by_id.is_empty() {
            let moved = finder.by_id.iter_mut().filter(|(_, other)| *other >= position);
            moved.for_each(|(_, other)| *other += 1);
            let index = finder.by_id.partition_point(|(other, _)| *other < id);
            finder.by_id.insert(index, (id, position));
        }
    }

    /// Records that the partition at `position` was removed; the next lookup is near it.
    pub(super) fn note_removed(&mut self, keyspace: u64, id: u64, position: usize) {
        let Some(finder) = self.keyspaces.get_mut(&keyspace) else { return };
        finder.last = position;
        if let Ok(index) = finder.by_id.binary_search_by_key(&id, |(id, _)| *id) {
            finder.by_id.remove(index);
        }
        let moved = finder.by_id.iter_mut().filter(|(_, other)| *other > position);
        moved.for_each(|(_, other)| *other -= 1);
    }

    /// Records that a keyspace was dropped.
    pub(super) fn note_dropped(&mut self, keyspace: u64) {
        self.keyspaces.remove(&keyspace);
    }
}

impl KeyspaceFinder {
    fn find(&mut self, version: &KeyspaceVersion, id: u64) -> Option<usize> {
        let is_at = |position: &usize| version.partitions.get(*position).is_some_and(|found| found.id == id);
        let near = [self.last, self.last + 1].into_iter().find(is_at);
        let position = near.or_else(|| self.find_far(version, id))?;
        self.last = position;
        Some(position)
    }

    fn find_far(&mut self, version: &KeyspaceVersion, id: u64) -> Option<usize> {
        // Lookups that scan the partitions before the list is made.
        if self.linear_count < 4 {
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
        steps::count(Step::FoundPartition, 1);
        let found = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.by_id.get(found).map(|(_, position)| *position)
    }
}

#[cfg(test)]
mod tests;
