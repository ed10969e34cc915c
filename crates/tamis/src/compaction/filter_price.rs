//! The price of the memory of filters that the store chooses: one number for the whole store, which the choice adds for each bit to the cost
//! of a query.
//!
//! It rises slowly while the budget of a keyspace is nearly used up, and falls while memory is left, so that memory goes where it saves most
//! (`version/filter_memory.rs`). Filters that are not the cheapest, because those have too many false positives
//! (`tamis_filter::auto::meets_targets`), may take all of their share without an effect on the price: it would rise forever, since they
//! do not depend on it.
//!
//! The last choices of each level are here, too: the next table mostly gets the same filters (`table/last_choice.rs`).

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    options::FilterBudget,
    sync::Mutex,
    table::last_choice::LastChoice,
    version::filter_memory::{FilterMemory, TARGET},
};

/// The price of a new store, in nanoseconds of a query for a bit per key.
const PRICE_AT_START: f64 = 0.5;
/// Bounds of the price: at the least, memory is free; at the most, only filters that save a read of a slow device are worth it.
const PRICE_MIN: f64 = 0.01;
const PRICE_MAX: f64 = 1_000.0;
/// One new table changes the price by at most this factor; one of many tables by less: while all tables are written once, the price
/// changes by at most this factor to the power of [`STEPS_PER_TURNOVER`], so that its effect shows before the next change.
const STEP_MAX: f64 = 1.1;
const STEPS_PER_TURNOVER: f64 = 4.0;
/// The last choices that are kept.
const CHOICE_COUNT_MAX: usize = 4_096;

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
    let Some(share) = memory.priced_share(budget) else { return price };
    let step = (share / TARGET).clamp(1.0 / STEP_MAX, STEP_MAX);
    let part = (STEPS_PER_TURNOVER / memory.table_count().max(1) as f64).min(1.0);
    (price * step.powf(part)).clamp(PRICE_MIN, PRICE_MAX)
}

#[cfg(test)]
mod tests;
