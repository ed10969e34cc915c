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
fn the_price_rises_while_the_budget_is_used_up_and_falls_while_memory_is_left() {
    let price = FilterPrice::default();
    let used = |bits_per_key: f64| FilterMemory { keys: 1_000, bits: 1_000.0 * bits_per_key };
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
