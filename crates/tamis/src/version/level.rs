//! Levels and runs: the sorted parts of a partition.
//!
//! 1. The tables of a run are in key order and disjoint by user key: all versions of a key that a run has are in one of
//!    its tables. The range tombstones of a table end at or before the smallest key of the next table.
//! 2. The runs of a level are in order of age, newest first; ages are unique within a level.
//! 3. A run has an id that no run had before. A change of its set of tables removes the id, and the edit gives it another one
//!    (`catalog.rs`). So an id always names the same set of tables.
//! 4. For one key, a level has newer entries than all deeper levels, and a run has newer entries than the runs after it
//!    in its level.
//!
//! Cost: a lookup is a binary search over the first eight bytes of the tables' largest keys, which are contiguous in
//! memory. Whole keys are compared only where those bytes are equal. Adding or removing a table moves the entries after
//! it; a table is found by its number by a scan of contiguous numbers.

use std::{
    cmp::Ordering,
    ops::{Bound, Range},
    sync::{Arc, OnceLock},
};

use tamis_bits::key_head;

use super::{
    handle::Table,
    key_bounds::{KeyBounds, compare_ends},
};
use crate::{
    key::{BoundKind, Sequence},
    view::writer::RunSummary,
};

/// The age of the one run of each level below L0 in the leveled layout. In other layouts, no run of the level is older.
pub(crate) const LEVELED_RUN_AGE: u64 = 0;

/// The id of a run whose set of tables changed since it had one.
pub(crate) const NO_RUN_ID: u64 = 0;

/// Disjoint tables in key order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Run {
    id: u64,
    age: u64,
    tables: Vec<Arc<Table>>,
    /// The first eight bytes of the tables' largest keys, as numbers (`key_head`).
    heads: Vec<u64>,
    /// The same of their smallest keys.
    first_heads: Vec<u64>,
    numbers: Vec<u64>,
    /// The smallest and the largest sequence number in the tables.
    sequences: (Sequence, Sequence),
    /// How many tables have range tombstones.
    range_deleting_count: usize,
    /// See [`Run::entries_before`].
    entries_before: OnceLock<Arc<[u64]>>,
}

const NO_SEQUENCES: (Sequence, Sequence) = (Sequence::MAX, 0);

impl Run {
    /// A run without tables.
    pub(crate) fn new(age: u64) -> Self {
        Self { age, sequences: NO_SEQUENCES, ..Self::default() }
    }

    /// See invariant 3 at the head of this file.
    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    pub(crate) const fn set_id(&mut self, id: u64) {
        self.id = id;
    }

    /// A greater age is newer. Unique within a level.
    pub(crate) const fn age(&self) -> u64 {
        self.age
    }

    pub(crate) fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.file_bytes()).sum()
    }

    /// Position of the first table whose largest key is `key` or greater; the number of tables if there is none.
    #[inline]
    pub(crate) fn position(&self, key: &[u8]) -> usize {
        self.count_before(key, &self.heads, |table| table.largest_key() < key)
    }

    /// How many tables are before `key`, by the heads of one of their ends; `is_before` compares the ends whose heads are equal.
    #[inline(always)]
    fn count_before(&self, key: &[u8], heads: &[u64], is_before: impl Fn(&Table) -> bool) -> usize {
        let head = key_head(key);
        let from = heads.partition_point(|&other| other < head);
        let rest = heads.get(from..).unwrap_or_default();
        if rest.first() != Some(&head) {
            return from;
        }
        let equal = rest.partition_point(|&other| other == head);
        let tables = self.tables.get(from..from + equal).unwrap_or_default();
        from + tables.partition_point(|table| is_before(table))
    }

    /// Whether a table has range tombstones.
    #[inline]
    pub(crate) const fn has_range_tombstones(&self) -> bool {
        self.range_deleting_count > 0
    }

    /// The only table whose range tombstones may cover `key`: the last that begins at or before it.
    pub(crate) fn range_deleting_table_of(&self, key: &[u8]) -> Option<&Arc<Table>> {
        self.begun_at(key).0.filter(|table| table.has_range_tombstones())
    }

    /// How many tables begin before `key`, or at it if it is included.
    fn begun(&self, key: &[u8], kind: BoundKind) -> usize {
        self.count_before(key, &self.first_heads, |table| kind.is_within(table.smallest_key(), key))
    }

    /// The last table that begins at or before `key`, and the next table.
    pub(crate) fn begun_at(&self, key: &[u8]) -> (Option<&Arc<Table>>, Option<&Arc<Table>>) {
        let begun = self.begun(key, BoundKind::Included);
        (begun.checked_sub(1).and_then(|index| self.tables.get(index)), self.tables.get(begun))
    }

    /// The only table that can have an entry of `key`.
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
        let numbers = tables.iter().map(|table| table.number()).collect();
        let sequences = sequence_range_of(tables);
        let range_deleting_count = tables.iter().filter(|table| table.has_range_tombstones()).count();
        Self {
            age,
            tables: tables.to_vec(),
            heads,
            first_heads,
            numbers,
            sequences,
            range_deleting_count,
            ..Self::default()
        }
    }

    /// The tables that may have entries or range tombstones within the bounds, in key order.
    pub(crate) fn tables_within(&self, bounds: KeyBounds<'_>) -> &[Arc<Table>] {
        self.tables.get(self.range_within(bounds)).unwrap_or_default()
    }

    /// Positions of the tables that may have entries or range tombstones within the bounds.
    pub(crate) fn range_within(&self, (lower, upper): KeyBounds<'_>) -> Range<usize> {
        let from = match lower {
            Bound::Unbounded => 0,
            Bound::Included(key) if self.has_range_tombstones() => {
                self.tables.partition_point(|table| table.ends_before(key))
            }
            Bound::Included(key) => self.position(key),
            Bound::Excluded(key) => {
                let is_before = |table: &Arc<Table>| compare_ends(table.end(), Bound::Included(key)).is_le();
                self.tables.partition_point(is_before)
            }
        };
        let to = match upper {
            Bound::Unbounded => self.tables.len(),
            Bound::Included(key) => self.begun(key, BoundKind::Included),
            Bound::Excluded(key) => self.begun(key, BoundKind::Excluded),
        };
        from..to.max(from)
    }

    /// The smallest and the largest sequence number in the tables.
    pub(crate) const fn sequence_range(&self) -> (Sequence, Sequence) {
        self.sequences
    }

    /// Inserts a table in key order. It must be disjoint from the others when the edit is complete.
    pub(crate) fn insert(&mut self, table: Arc<Table>) {
        let position = self.position(table.smallest_key());
        self.change_tables();
        self.heads.insert(position, key_head(table.largest_key()));
        self.first_heads.insert(position, key_head(table.smallest_key()));
        self.numbers.insert(position, table.number());
        self.sequences = joined(self.sequences, sequences_of(&table));
        self.range_deleting_count += usize::from(table.has_range_tombstones());
        self.tables.insert(position, table);
    }

    /// Removes and returns the table with this number.
    pub(crate) fn remove(&mut self, number: u64) -> Option<Arc<Table>> {
        let position = self.position_of_number(number)?;
        self.change_tables();
        self.heads.remove(position);
        self.first_heads.remove(position);
        self.numbers.remove(position);
        let removed = self.tables.remove(position);
        let (smallest, largest) = sequences_of(&removed);
        if smallest == self.sequences.0 || largest == self.sequences.1 {
            self.sequences = sequence_range_of(&self.tables);
        }
        self.range_deleting_count -= usize::from(removed.has_range_tombstones());
        Some(removed)
    }

    /// Clears the cached facts about the set of tables.
    fn change_tables(&mut self) {
        self.id = NO_RUN_ID;
        self.entries_before = OnceLock::new();
    }

    /// The number of entries in the tables before each table, and in all tables.
    pub(crate) fn entries_before(&self) -> &Arc<[u64]> {
        self.entries_before.get_or_init(|| {
            let mut count = 0;
            let counts = self.tables.iter().map(|table| {
                count += table.summary().entry_count;
                count
            });
            std::iter::once(0).chain(counts).collect()
        })
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.entries_before().last().copied().unwrap_or_default()
    }

    /// The run as a view names it.
    pub(crate) fn summarize(&self) -> RunSummary {
        let (_, largest_sequence) = self.sequences;
        RunSummary { id: self.id, largest_sequence, entry_count: self.entry_count() }
    }

    pub(crate) fn table_numbered(&self, number: u64) -> Option<&Arc<Table>> {
        self.tables.get(self.position_of_number(number)?)
    }

    /// Replaces the table that has the same number, and so the same entries; returns the old one.
    pub(crate) fn replace(&mut self, table: Arc<Table>) -> Option<Arc<Table>> {
        let position = self.position_of_number(table.number())?;
        self.tables.get_mut(position).map(|old| std::mem::replace(old, table))
    }

    fn position_of_number(&self, number: u64) -> Option<usize> {
        self.numbers.iter().position(|&other| other == number)
    }
}

fn sequences_of(table: &Table) -> (Sequence, Sequence) {
    (table.summary().smallest_sequence, table.summary().largest_sequence)
}

fn joined(left: (Sequence, Sequence), right: (Sequence, Sequence)) -> (Sequence, Sequence) {
    (left.0.min(right.0), left.1.max(right.1))
}

fn sequence_range_of(tables: &[Arc<Table>]) -> (Sequence, Sequence) {
    tables.iter().map(|table| sequences_of(table)).fold(NO_SEQUENCES, joined)
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

    pub(super) fn runs_mut(&mut self) -> impl Iterator<Item = &mut Arc<Run>> {
        self.runs.iter_mut()
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
        self.runs.get(self.position(age)).filter(|run| run.age() == age)
    }

    /// The run of this age, copied if a version shares it.
    pub(crate) fn run_mut(&mut self, age: u64) -> Option<&mut Run> {
        let position = self.position(age);
        self.runs.get_mut(position).filter(|run| run.age() == age).map(Arc::make_mut)
    }

    /// As [`Level::run_mut`]; creates the run if it is missing.
    pub(crate) fn run_or_new(&mut self, age: u64) -> &mut Run {
        let position = self.position(age);
        if self.runs.get(position).is_none_or(|run| run.age() != age) {
            self.runs.insert(position, Arc::new(Run::new(age)));
        }
        Arc::make_mut(
            self.runs.get_mut(position).expect("the run was just found or inserted at this position"),
        )
    }

    /// Position of the first run that is not newer than this age.
    fn position(&self, age: u64) -> usize {
        self.runs.partition_point(|run| run.age() > age)
    }

    /// Removes the runs that have no tables.
    pub(crate) fn drop_empty_runs(&mut self) {
        self.runs.retain(|run| !run.tables().is_empty());
    }
}

#[cfg(test)]
mod tests;
