//! What a keyspace consists of at one moment: partitions, their levels, runs and tables.
//!
//! Invariants, each a named predicate of [`check_invariants`], checked before a version is installed and after one is read:
//!
//! 1. The partitions cover the whole key space: the first begins at the empty key, lower bounds ascend strictly.
//! 2. A partition's tables lie within its bounds.
//! 3. Runs: not empty; tables ascend and are disjoint by user key; ages descend within a level.
//! 4. Below L0 a level of the leveled layout has one run; the number of levels is bounded.
//! 5. At L0, a table of a newer run holds only entries that are newer than those of the tables that it overlaps in
//!    older runs.

use std::{ops::Bound, sync::Arc};

use super::{
    handle::{FileHandle, Table},
    level::{KeyBounds, Level, Run},
};
use crate::{key::Sequence, metrics::LEVEL_COUNT_MAX, options::KeyspaceOptions};

/// A named map at one moment.
#[derive(Debug, Clone)]
pub(crate) struct KeyspaceVersion {
    /// Never used twice.
    pub(crate) id: u64,
    pub(crate) name: Arc<str>,
    pub(crate) options: Arc<KeyspaceOptions>,
    /// In order of their lower bounds.
    pub(crate) partitions: Vec<Arc<Partition>>,
}

/// A range of keys and the tables that hold them.
#[derive(Debug, Clone)]
pub(crate) struct Partition {
    /// Never used twice within the database.
    pub(crate) id: u64,
    /// The first key that belongs here; the next partition's is the end.
    pub(crate) lower: Vec<u8>,
    /// Every entry of this range up to this sequence number is in tables.
    pub(crate) flushed_sequence: Sequence,
    /// L0 first. Levels at the end that hold nothing are left out.
    pub(crate) levels: Vec<Level>,
    /// A filter over all tables of the partition.
    pub(crate) filter: Option<Arc<FileHandle>>,
    /// A sorted view over some of the runs (reserved).
    pub(crate) view: Option<Arc<View>>,
}

/// A sorted view over a named set of runs (reserved: derived data, which this version keeps but does not use).
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) file: Arc<FileHandle>,
    /// The runs it covers: level and age.
    pub(crate) runs: Vec<(u8, u64)>,
}

impl KeyspaceVersion {
    /// Position of the partition that `key` belongs to.
    #[inline]
    pub(crate) fn partition_index(&self, key: &[u8]) -> usize {
        self.partitions.partition_point(|partition| partition.lower.as_slice() <= key).saturating_sub(1)
    }

    /// The partition that `key` belongs to; `None` only in a version without partitions.
    #[inline]
    pub(crate) fn partition_of(&self, key: &[u8]) -> Option<&Arc<Partition>> {
        self.partitions.get(self.partition_index(key))
    }

    /// The partitions that hold keys within the bounds.
    pub(crate) fn partitions_within(&self, (lower, upper): KeyBounds<'_>) -> &[Arc<Partition>] {
        let from = match lower {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => self.partition_index(key),
        };
        let to = match upper {
            Bound::Unbounded => self.partitions.len(),
            Bound::Included(key) => self.partitions.partition_point(|p| p.lower.as_slice() <= key),
            Bound::Excluded(key) => self.partitions.partition_point(|p| p.lower.as_slice() < key),
        };
        self.partitions.get(from..to).unwrap_or_default()
    }

    /// The first key behind the partition at `index`; `None` for the last one.
    pub(crate) fn upper_of(&self, index: usize) -> Option<&[u8]> {
        self.partitions.get(index + 1).map(|next| next.lower.as_slice())
    }

    /// Every entry of the keyspace up to this sequence number is in tables.
    #[cfg(test)]
    pub(crate) fn flushed_sequence(&self) -> Sequence {
        self.partitions.iter().map(|partition| partition.flushed_sequence).min().unwrap_or(0)
    }

    /// Runs at L0 of the partition that has the most: what a read of it has to merge.
    pub(crate) fn level0_run_count(&self) -> usize {
        let count = |partition: &Arc<Partition>| partition.level(0).map_or(0, |level| level.runs().len());
        self.partitions.iter().map(count).max().unwrap_or(0)
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.partitions.iter().flat_map(|partition| partition.tables())
    }

    /// All file handles that the version names: tables, filters, views.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<FileHandle>> {
        self.partitions.iter().flat_map(|partition| partition.files())
    }
}

impl Partition {
    pub(crate) const fn new(id: u64, lower: Vec<u8>, flushed_sequence: Sequence) -> Self {
        Self { id, lower, flushed_sequence, levels: Vec::new(), filter: None, view: None }
    }

    pub(crate) fn level(&self, index: usize) -> Option<&Level> {
        self.levels.get(index)
    }

    /// The level, made where it is missing.
    pub(crate) fn level_or_new(&mut self, index: usize) -> &mut Level {
        if self.levels.len() <= index {
            self.levels.resize_with(index + 1, Level::default);
        }
        self.levels.get_mut(index).expect("the vector was made long enough")
    }

    /// Leaves out empty runs and the empty levels at the end.
    pub(crate) fn prune_empty(&mut self) {
        for level in &mut self.levels {
            level.drop_empty_runs();
        }
        while self.levels.last().is_some_and(Level::is_empty) {
            self.levels.pop();
        }
    }

    /// All runs with their levels, newest data first: the order in which a point read asks them.
    #[inline]
    pub(crate) fn runs(&self) -> impl Iterator<Item = (usize, &Arc<Run>)> {
        self.levels
            .iter()
            .enumerate()
            .flat_map(|(index, level)| level.runs().iter().map(move |run| (index, run)))
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.levels.iter().flat_map(Level::tables)
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<FileHandle>> {
        let tables = self.tables().flat_map(|table| std::iter::once(table.file()).chain(table.filter()));
        tables.chain(&self.filter).chain(self.view.iter().map(|view| &view.file))
    }
}

/// The first rule (see the head of this file) that a version breaks.
pub(crate) fn check_invariants(version: &KeyspaceVersion) -> Option<String> {
    if !partitions_cover_all_keys(version) {
        return Some("partitions do not cover the key space in order".to_owned());
    }
    version.partitions.iter().enumerate().find_map(|(index, partition)| {
        broken_partition_rule(partition, version.upper_of(index))
            .map(|rule| format!("keyspace {}, partition {}: {rule}", version.id, partition.id))
    })
}

fn broken_partition_rule(partition: &Partition, upper: Option<&[u8]>) -> Option<String> {
    if partition.levels.len() > LEVEL_COUNT_MAX {
        return Some(format!("{} levels", partition.levels.len()));
    }
    for (index, level) in partition.levels.iter().enumerate() {
        if !ages_descend(level) {
            return Some(format!("run ages do not descend at level {index}"));
        }
        if index > 0 && level.runs().len() > 1 {
            return Some(format!("{} runs at level {index}", level.runs().len()));
        }
        for run in level.runs() {
            if !run_is_sorted(run) {
                return Some(format!("tables overlap in run {} of level {index}", run.age()));
            }
            if !run_is_within(run, &partition.lower, upper) {
                return Some(format!("tables outside the bounds in run {} of level {index}", run.age()));
            }
        }
    }
    let level0_is_ordered = partition.levels.first().is_none_or(newer_runs_hold_newer_entries);
    (!level0_is_ordered).then(|| "a newer run of level 0 holds entries older than an older run's".to_owned())
}

fn partitions_cover_all_keys(version: &KeyspaceVersion) -> bool {
    version.partitions.first().is_some_and(|first| first.lower.is_empty())
        && version.partitions.is_sorted_by(|left, right| left.lower < right.lower)
}

fn ages_descend(level: &Level) -> bool {
    level.runs().is_sorted_by(|left, right| left.age() > right.age())
}

fn run_is_sorted(run: &Run) -> bool {
    let tables = run.tables();
    !tables.is_empty()
        && tables.iter().all(|table| table.smallest_key() <= table.largest_key())
        && tables.is_sorted_by(|left, right| left.largest_key() < right.smallest_key())
}

fn run_is_within(run: &Run, lower: &[u8], upper: Option<&[u8]>) -> bool {
    let is_above = run.tables().first().is_none_or(|table| table.smallest_key() >= lower);
    let is_below =
        run.tables().last().is_none_or(|table| upper.is_none_or(|upper| table.largest_key() < upper));
    is_above && is_below
}

fn newer_runs_hold_newer_entries(level: &Level) -> bool {
    level.runs().iter().enumerate().all(|(index, newer)| {
        level.runs().iter().skip(index + 1).all(|older| {
            newer.tables().iter().all(|table| {
                let bounds = (Bound::Included(table.smallest_key()), Bound::Included(table.largest_key()));
                let smallest = table.summary().smallest_sequence;
                older.tables_within(bounds).iter().all(|other| other.summary().largest_sequence < smallest)
            })
        })
    })
}

#[cfg(test)]
mod tests;
