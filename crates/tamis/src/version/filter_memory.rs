//! The memory of the filters of a keyspace: how many bits per key a new table may use.
//!
//! All filters of a keyspace together have a budget, in bits per key or in bytes. A table may use more than the mean while other tables use less,
//! so that small and often queried tables get more bits; the sum keeps the budget, except that a table may always use half of the mean. The
//! tables of a level may use equally many: otherwise the first ones that are checked would use the bits of the others.
//!
//! Sums are kept with each partition ([`FilterSums`]), so that a job does not read every table. The filters of a table are known once it is
//! open, and then they never change: other filters make another [`Table`]. In a keyspace of many partitions each job looks for newly opened
//! tables in [`REFRESHED_PARTITIONS`] of them: the filters of the others may count as unknown for some jobs longer.

use std::sync::Arc;

use super::{handle::Table, level::Level};
#[cfg(doc)]
use crate::table::filter_choice::FilterChoice;
use crate::{
    metrics::LEVEL_COUNT_MAX, options::FilterBudget, sync::Mutex, table::lazy_reader::NamedTable as _,
};

/// A table may use this many times the mean.
const SHARE_MAX: f64 = 1.5;
/// No filter has more bits per key.
const BITS_PER_KEY_MAX: f64 = 64.0;
/// The share of the budget that the price aims at.
pub(crate) const TARGET: f64 = 0.9;

/// Partitions in which a job looks for tables that were opened.
const REFRESHED_PARTITIONS: usize = 64;

/// Keys and filter bits of the tables that stay.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct FilterMemory {
    levels: [LevelMemory; LEVEL_COUNT_MAX],
}

/// Those of the tables of one level.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct LevelMemory {
    keys: u64,
    /// Bits of the filters of open tables.
    bits: f64,
    /// Keys of the other tables: their filters count with their share of the budget.
    unknown_keys: u64,
    /// Keys and bits of the tables whose filters are not the cheapest ([`FilterChoice`]).
    for_targets: (u64, f64),
    tables: u64,
}

impl LevelMemory {
    fn bits(self, bits_per_key: f64) -> f64 {
        bits_per_key.mul_add(self.unknown_keys as f64, self.bits)
    }

    /// The bits by which the price moves.
    fn priced_bits(self, bits_per_key: f64) -> f64 {
        let (keys, bits) = self.for_targets;
        self.bits(bits_per_key) - (bits - TARGET * bits_per_key * keys as f64).max(0.0)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            keys: self.keys + other.keys,
            bits: self.bits + other.bits,
            unknown_keys: self.unknown_keys + other.unknown_keys,
            for_targets: (self.for_targets.0 + other.for_targets.0, self.for_targets.1 + other.for_targets.1),
            tables: self.tables + other.tables,
        }
    }

    /// Without those of some of the tables.
    fn minus(self, other: Self) -> Self {
        Self {
            keys: self.keys.saturating_sub(other.keys),
            bits: (self.bits - other.bits).max(0.0),
            unknown_keys: self.unknown_keys.saturating_sub(other.unknown_keys),
            for_targets: (
                self.for_targets.0.saturating_sub(other.for_targets.0),
                (self.for_targets.1 - other.for_targets.1).max(0.0),
            ),
            tables: self.tables.saturating_sub(other.tables),
        }
    }
}

impl FilterMemory {
    /// Adds a table of a level. `filter_bytes`: `None` if they are not known.
    pub(crate) fn add(&mut self, level: usize, keys: u64, filter_bytes: Option<u64>) {
        let bits = filter_bytes.map_or(0.0, |bytes| 8.0 * bytes as f64);
        let unknown_keys = if filter_bytes.is_some() { 0 } else { keys };
        self.add_memory(level, LevelMemory { keys, bits, unknown_keys, for_targets: (0, 0.0), tables: 1 });
    }

    /// Adds a table whose filters are not the cheapest, because those have too many false positives.
    pub(crate) fn add_for_targets(&mut self, level: usize, keys: u64, filter_bytes: u64) {
        let bits = 8.0 * filter_bytes as f64;
        let for_targets = (keys, bits);
        self.add_memory(level, LevelMemory { keys, bits, unknown_keys: 0, for_targets, tables: 1 });
    }

    fn add_memory(&mut self, level: usize, memory: LevelMemory) {
        if let Some(sum) = self.levels.get_mut(level) {
            *sum = sum.plus(memory);
        }
    }

    /// Adds a table of a level: what its reader knows, if it is open.
    pub(crate) fn add_table(&mut self, level: usize, table: &Table) {
        let keys = table.summary().entry_count;
        match table.slot().get() {
            Some(reader) if reader.filter_choice().is_some_and(|choice| choice.is_for_targets) => {
                self.add_for_targets(level, keys, reader.filter_bytes());
            }
            reader => self.add(level, keys, reader.map(|reader| reader.filter_bytes())),
        }
    }

    /// With the tables of another part of the keyspace.
    pub(crate) fn plus(self, other: &Self) -> Self {
        self.with_levels(other, LevelMemory::plus)
    }

    /// Without some of the tables.
    pub(crate) fn minus(self, other: &Self) -> Self {
        self.with_levels(other, LevelMemory::minus)
    }

    fn with_levels(mut self, other: &Self, combine: fn(LevelMemory, LevelMemory) -> LevelMemory) -> Self {
        self.levels.iter_mut().zip(other.levels).for_each(|(sum, level)| *sum = combine(*sum, level));
        self
    }

    pub(crate) fn table_count(self) -> u64 {
        self.sum().tables
    }

    /// The share of the budget by which the price moves; `None` without keys.
    pub(crate) fn priced_share(self, budget: FilterBudget) -> Option<f64> {
        let sum = self.sum();
        let mean = f64::from(budget.bits_per_key(sum.keys));
        (sum.keys > 0).then(|| sum.priced_bits(mean) / (mean * sum.keys as f64))
    }

    fn sum(self) -> LevelMemory {
        self.levels.into_iter().fold(LevelMemory::default(), LevelMemory::plus)
    }

    /// The bits per key that `keys` new keys of a level may use.
    pub(crate) fn bits_for(self, level: usize, keys: u64, budget: FilterBudget) -> f64 {
        let (all, own) = (self.sum(), self.levels.get(level).copied().unwrap_or_default());
        let mean = f64::from(budget.bits_per_key(all.keys + keys));
        let keys = keys.max(1) as f64;
        let total = mean * (all.keys as f64 + keys);
        // The tables of a level mostly need the same filters. The first ones that are checked leave the others as much.
        let share = (total - (all.bits(mean) - own.bits(mean))) / (own.keys as f64 + keys);
        let left = (total - all.bits(mean)) / keys;
        left.min(share).clamp(0.5 * mean, (SHARE_MAX * mean).min(BITS_PER_KEY_MAX))
    }
}

/// The sum of the tables of a partition. Tables that were not open are checked again at a later call.
#[derive(Debug, Default)]
pub(super) struct FilterSums(Mutex<Option<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    open: FilterMemory,
    /// With their levels.
    closed: Vec<(usize, Arc<Table>)>,
    sum: FilterMemory,
    /// Calls until the closed ones are checked again.
    calls_left: usize,
}

impl FilterSums {
    /// The sum; `partition_count`: the partitions of the keyspace.
    pub(super) fn get(&self, levels: &[Level], partition_count: usize) -> FilterMemory {
        let mut counted = self.0.lock();
        let Counted { open, closed, sum, calls_left } = counted.get_or_insert_with(|| {
            let of_level = |(number, level): (usize, &Level)| {
                level.tables().map(move |table| (number, Arc::clone(table))).collect::<Vec<_>>()
            };
            let closed = levels.iter().enumerate().flat_map(of_level).collect();
            Counted { closed, ..Counted::default() }
        });
        if let Some(left) = calls_left.checked_sub(1) {
            *calls_left = left;
            return *sum;
        }
        *calls_left = partition_count.saturating_sub(1) / REFRESHED_PARTITIONS;
        let mut unopened = FilterMemory::default();
        closed.retain(|(level, table)| {
            let is_open = table.slot().get().is_some();
            let target = if is_open { &mut *open } else { &mut unopened };
            target.add_table(*level, table);
            !is_open
        });
        *sum = open.plus(&unopened);
        *sum
    }
}

#[cfg(test)]
mod tests;
