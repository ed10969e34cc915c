//! The price of memory follows what tables use of the budget.
use super::*;

const MEAN: FilterBudget = FilterBudget::BitsPerKey(16.0);

#[test]
fn the_price_of_memory_rises_above_the_budget_and_falls_below_it() {
    let price = FilterPrice::default();
    let used = |bits_per_key: u64| {
        let mut memory = FilterMemory::default();
        memory.add(1, 1_000, Some(125 * bits_per_key));
        memory
    };
    price.update(FilterMemory::default(), MEAN);
    assert!((price.get() - PRICE_AT_START).abs() < 1e-9);
    price.update(used(16), MEAN);
    assert!((1.05..1.2).contains(&(price.get() / PRICE_AT_START)));
    for _ in 0..1_000 {
        price.update(used(16), MEAN);
    }
    assert!((price.get() - PRICE_MAX).abs() < 1e-9);
    for _ in 0..1_000 {
        price.update(used(2), MEAN);
    }
    assert!((price.get() - PRICE_MIN).abs() < 1e-9);
}

/// Each of many tables is a small part of the memory: the price would rise far before the tables that it changes are written.
#[test]
fn the_price_moves_little_while_one_of_many_tables_is_written() {
    let price = FilterPrice::default();
    let mut memory = FilterMemory::default();
    (0..100).for_each(|_| memory.add(1, 1_000, Some(2_000)));
    for _ in 0..100 {
        price.update(memory, MEAN);
    }
    assert!((1.2..2.0).contains(&(price.get() / PRICE_AT_START)), "{}", price.get());
}

#[test]
fn a_budget_in_bytes_is_shared_by_all_keys() {
    let budget = FilterBudget::Bytes(2_000_000);
    let mut memory = FilterMemory::default();
    assert!((memory.bits_for(4, 1_000_000, budget) - 16.0).abs() < 1e-6);
    memory.add(4, 1_000_000, Some(2_000_000));
    let bits = memory.bits_for(4, 1_000_000, budget);
    assert!((bits - 4.0).abs() < 1e-6, "{bits}: half of the share of a store with twice the keys");
    let price = FilterPrice::default();
    price.update(memory, budget);
    assert!(price.get() > PRICE_AT_START, "the budget is used up");
    memory.add(4, 1_000_000_000, None);
    assert!(memory.bits_for(4, 1_000_000, budget) < 0.02);
}

/// Symptom: tables that need all of their bits for few false positives raised the price of memory with every job, until no filter was worth it.
#[test]
fn filters_with_few_false_positives_use_their_share_at_the_same_price() {
    let price = FilterPrice::default();
    let mut memory = FilterMemory::default();
    (0..10).for_each(|_| memory.add_for_targets(0, 1_000, 2_020));
    (0..1_000).for_each(|_| price.update(memory, MEAN));
    assert!((price.get() - PRICE_AT_START).abs() < 1e-6, "{}", price.get());
    // Those of other tables count.
    memory.add(1, 10_000, Some(25_000));
    price.update(memory, MEAN);
    assert!(price.get() > PRICE_AT_START);
    assert!((memory.bits_for(0, 1_000, MEAN) - 8.0).abs() < 1e-6, "the budget is kept");
}

/// The queries of another keyspace are others, and so are the tables of another level.
#[test]
fn only_tables_of_one_level_of_one_keyspace_share_a_choice() {
    let choices = LastChoices::default();
    let one = choices.of(1, 2);
    assert!(Arc::ptr_eq(&one, &choices.of(1, 2)));
    assert!(!Arc::ptr_eq(&one, &choices.of(1, 3)) && !Arc::ptr_eq(&one, &choices.of(2, 2)));
}
