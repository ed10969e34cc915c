//! Levels and runs: the sorted parts of a partition.
//!
//! 1. The tables of a run are in key order and disjoint by user key: all versions of a key that a run holds are in one
//!    of its tables.
//! 2. The runs of a level are in order of age, newest first; each run's age differs from the others'.
//! 3. For one key, what a level holds is newer than what any deeper level holds, and what a run holds is newer than
//!    what the runs behind it in its level hold.
//!
//! Lookups are binary searches in a run, O(log tables), over the heads of the tables' largest keys, which lie side by side;
//! whole keys, which lie far apart, are compared only among equal heads.

use std::{
    cmp::Ordering,
    ops::{Bound, Range},
    sync::Arc,
};

use tamis_bits::key_head;

use super::handle::Table;

/// The age of the one run of each level below L0 in the leveled layout.
pub(crate) const LEVELED_RUN_AGE: u64 = 0;

/// A lower and an upper bound of keys, as given.
pub(crate) type KeyBounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Disjoint tables in key order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Run {
    age: u64,
    tables: Vec<Arc<Table>>,
    /// The heads of the tables' largest keys.
    heads: Vec<u64>,
    /// The heads of their smallest keys.
    first_heads: Vec<u64>,
}

impl Run {
    /// A run without tables.
    pub(crate) const fn new(age: u64) -> Self {
        Self { age, tables: Vec::new(), heads: Vec::new(), first_heads: Vec::new() }
    }

    /// Greater is newer; unique within a level.
    pub(crate) const fn age(&self) -> u64 {
        self.age
    }

    pub(crate) fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.file_bytes()).sum()
    }

    /// Position of the first table that ends at or after `key`; the number of tables where there is none.
    #[inline]
    pub(crate) fn position(&self, key: &[u8]) -> usize {
        let head = key_head(key);
        let from = self.heads.partition_point(|&other| other < head);
        let equal = self.heads.iter().skip(from).take_while(|&&other| other == head).count();
        let tables = self.tables.get(from..from + equal).unwrap_or_default();
        from + tables.partition_point(|table| table.largest_key() < key)
    }

    /// The only table that may hold `key`.
    #[inline]
    pub(crate) fn table_of(&self, key: &[u8]) -> Option<&Arc<Table>> {
        let position = self.position(key);
        let table = self.tables.get(position)?;
        let is_within = match self.first_heads.get(position)?.cmp(&key_head(key)) {
            Ordering::Less => true,
            Ordering::Equal => table.smallest_key() <= key,
            Ordering::Greater => false,
        };
        is_within.then_some(table)
    }

    /// A run of tables that are in key order and disjoint.
    pub(crate) fn of(age: u64, tables: &[Arc<Table>]) -> Self {
        let heads = tables.iter().map(|table| key_head(table.largest_key())).collect();
        let first_heads = tables.iter().map(|table| key_head(table.smallest_key())).collect();
        Self { age, tables: tables.to_vec(), heads, first_heads }
    }

    /// The tables that may hold keys within the bounds, in key order.
    pub(crate) fn tables_within(&self, bounds: KeyBounds<'_>) -> &[Arc<Table>] {
        self.tables.get(self.range_within(bounds)).unwrap_or_default()
    }

    /// Positions of the tables that may hold keys within the bounds.
    pub(crate) fn range_within(&self, (lower, upper): KeyBounds<'_>) -> Range<usize> {
        let from = match lower {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.position(key),
            Bound::Excluded(key) => self.tables.partition_point(|table| table.largest_key() <= key),
        };
        let to = match upper {
            Bound::Unbounded => self.tables.len(),
            Bound::Included(key) => self.tables.partition_point(|table| table.smallest_key() <= key),
            Bound::Excluded(key) => self.tables.partition_point(|table| table.smallest_key() < key),
        };
        from..to.max(from)
    }

    /// Puts a table where its keys belong; says whether it lies apart from all others.
    pub(crate) fn insert(&mut self, table: Arc<Table>) -> bool {
        let position = self.position(table.smallest_key());
        let is_apart =
            self.tables.get(position).is_none_or(|behind| table.largest_key() < behind.smallest_key());
        self.heads.insert(position, key_head(table.largest_key()));
        self.first_heads.insert(position, key_head(table.smallest_key()));
        self.tables.insert(position, table);
        is_apart
    }

    /// Takes a table out by its number.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Arc<Table>> {
        let position = self.tables.iter().position(|table| table.number() == number)?;
        self.heads.remove(position);
        self.first_heads.remove(position);
        Some(self.tables.remove(position))
    }

    /// Puts `table` in the place of the one with the same number, and so the same keys; gives that one back.
    pub(crate) fn replace(&mut self, table: Arc<Table>) -> Option<Arc<Table>> {
        let slot = self.tables.iter_mut().find(|old| old.number() == table.number())?;
        Some(std::mem::replace(slot, table))
    }
}

/// Runs, newest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Level {
    runs: Vec<Arc<Run>>,
}

impl Level {
    #[inline]
    pub(crate) fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.runs.iter().flat_map(|run| run.tables())
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes()).sum()
    }

    pub(crate) fn run(&self, age: u64) -> Option<&Arc<Run>> {
        self.runs.iter().find(|run| run.age() == age)
    }

    /// The run of this age, to change it.
    pub(crate) fn run_mut(&mut self, age: u64) -> Option<&mut Run> {
        self.runs.iter_mut().find(|run| run.age() == age).map(Arc::make_mut)
    }

    /// The run of this age, made where it is missing.
    pub(crate) fn run_or_new(&mut self, age: u64) -> &mut Run {
        let position = self.runs.partition_point(|run| run.age() > age);
        if self.runs.get(position).is_none_or(|run| run.age() != age) {
            self.runs.insert(position, Arc::new(Run::new(age)));
        }
        Arc::make_mut(self.runs.get_mut(position).expect("a run stands where it was just found or put"))
    }

    /// Takes out a run that holds no table any more.
    pub(crate) fn drop_empty_runs(&mut self) {
        self.runs.retain(|run| !run.tables().is_empty());
    }
}

#[cfg(test)]
mod tests;
