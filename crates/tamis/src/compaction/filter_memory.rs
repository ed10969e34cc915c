//! The memory of filters that the store chooses: how many bits per key a new table may use, and the price of a bit.
//!
//! All filters of a keyspace together have a budget, in bits per key or in bytes. A table may use more than the mean while other tables use less,
//! so that small and often queried tables get more bits; the sum keeps the budget, except that a table may always use half of the mean. The
//! tables of a level may use equally many: otherwise the first ones that are checked would use the bits of the others. The
//! price of a bit, which the choice adds to the cost of a query, is one number for the whole store: it rises slowly while the budget is
//! nearly used up, and falls while memory is left, so that memory goes where it saves most.
//!
//! Filters that are not the cheapest, because those have too many false positives (`tamis_filter::auto::meets_targets`), may take all of their
//! share without an effect on the price: it would rise forever, since they do not depend on it.
//!
//! The last choices of each level are here, too: the next table mostly gets the same filters (`table/last_choice.rs`).

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

use crate::{metrics::LEVEL_COUNT_MAX, options::FilterBudget, table::last_choice::LastChoice};

/// A table may use this many times the mean.
const SHARE_MAX: f64 = 1.5;
/// No filter has more bits per key.
const BITS_PER_KEY_MAX: f64 = 64.0;
/// The price of a new store, in nanoseconds of a query for a bit per key.
const PRICE_AT_START: f64 = 0.5;
/// Bounds of the price: at the least, memory is free; at the most, only filters that save a read of a slow device are worth it.
const PRICE_MIN: f64 = 0.01;
const PRICE_MAX: f64 = 1_000.0;
/// One new table changes the price by at most this factor; one of many tables by less: while all tables are written once, the price
/// changes by at most this factor to the power of [`STEPS_PER_TURNOVER`], so that its effect shows before the next change.
const STEP_MAX: f64 = 1.1;
const STEPS_PER_TURNOVER: f64 = 4.0;
/// The share of the budget that the price aims at.
const TARGET: f64 = 0.9;

/// The last choices that are kept.
const CHOICE_COUNT_MAX: usize = 4_096;

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
    /// Keys and bits of the tables whose filters are not the cheapest ([`crate::table::filter_choice::FilterChoice`]).
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

/// The price of a bit per key; see the head of this file.
#[derive(Debug)]
pub(crate) struct FilterPrice(AtomicU64);

impl Default for FilterPrice {
    fn default() -> Self {
        Self(AtomicU64::new(PRICE_AT_START.to_bits()))
    }
}

impl FilterPrice {
    /// Nanoseconds of a query for a bit per key.
    pub(crate) fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Moves the price: the tables of a keyspace use `memory` of a budget.
    pub(crate) fn update(&self, memory: FilterMemory, budget: FilterBudget) {
        self.0.store(next_price(self.get(), memory, budget).to_bits(), Ordering::Relaxed);
    }
}

/// The last choices of filters, by keyspace and level.
#[derive(Debug, Default)]
pub(crate) struct LastChoices(Mutex<BTreeMap<(u64, usize), Arc<LastChoice>>>);

impl LastChoices {
    /// That of a level of a keyspace.
    pub(crate) fn of(&self, keyspace: u64, level: usize) -> Arc<LastChoice> {
        let mut choices = self.0.lock();
        if choices.len() >= CHOICE_COUNT_MAX {
            // Keyspaces may have been dropped.
            choices.clear();
        }
        Arc::clone(choices.entry((keyspace, level)).or_default())
    }
}

fn next_price(price: f64, memory: FilterMemory, budget: FilterBudget) -> f64 {
    let memory = memory.sum();
    if memory.keys == 0 {
        return price;
    }
    let mean = f64::from(budget.bits_per_key(memory.keys));
    let share = memory.priced_bits(mean) / (mean * memory.keys as f64);
    let step = (share / TARGET).clamp(1.0 / STEP_MAX, STEP_MAX);
    let part = (STEPS_PER_TURNOVER / memory.tables.max(1) as f64).min(1.0);
    (price * step.powf(part)).clamp(PRICE_MIN, PRICE_MAX)
}

#[cfg(test)]
mod tests;
