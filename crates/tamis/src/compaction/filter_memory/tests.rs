//! New tables use what other tables leave of the budget; the price follows it.
use super::*;

#[test]
fn new_tables_use_what_the_others_leave_and_never_more() {
    let mut memory = FilterMemory::default();
    assert!((memory.bits_for(1_000, 16.0) - 16.0).abs() < 1e-9);
    memory.add(1_000_000, Some(1_000_000), 16.0);
    assert!((memory.bits_for(1_000, 16.0) - 24.0).abs() < 1e-9, "half of the budget is left");
    memory.add(1_000_000, None, 16.0);
    let bits = memory.bits_for(16_000_000, 16.0);
    assert!((bits - 16.5).abs() < 1e-9, "{bits}");
    memory.bits = 40.0 * 2_000_000.0;
    assert!((memory.bits_for(1_000, 16.0) - 8.0).abs() < 1e-9, "a budget that was lowered");
}

#[test]
fn the_price_of_memory_rises_above_the_budget_and_falls_below_it() {
    let price = FilterPrice::default();
    let used = |bits_per_key: f64| FilterMemory { keys: 1_000, bits: 1_000.0 * bits_per_key, tables: 1 };
    price.update(FilterMemory::default(), 16.0);
    assert!((price.get() - PRICE_AT_START).abs() < 1e-9);
    price.update(used(16.0), 16.0);
    assert!((1.05..1.2).contains(&(price.get() / PRICE_AT_START)));
    for _ in 0..1_000 {
        price.update(used(16.0), 16.0);
    }
    assert!((price.get() - PRICE_MAX).abs() < 1e-9);
    for _ in 0..1_000 {
        price.update(used(2.0), 16.0);
    }
    assert!((price.get() - PRICE_MIN).abs() < 1e-9);
}

/// Each of many tables is a small part of the memory: the price would rise far before the tables that it changes are written.
#[test]
fn the_price_moves_little_while_one_of_many_tables_is_written() {
    let price = FilterPrice::default();
    for _ in 0..100 {
        price.update(FilterMemory { keys: 100_000, bits: 1_600_000.0, tables: 100 }, 16.0);
    }
    assert!((1.2..2.0).contains(&(price.get() / PRICE_AT_START)), "{}", price.get());
}
