//! New tables use what other tables leave of the budget.
use super::*;
use crate::version::{
    partition::Partition,
    test_support::{add, catalog_of, place, summary},
};

const MEAN: FilterBudget = FilterBudget::BitsPerKey(16.0);

#[test]
fn new_tables_use_what_the_others_leave_and_never_more() {
    let mut memory = FilterMemory::default();
    assert!((memory.bits_for(0, 1_000, MEAN) - 16.0).abs() < 1e-9);
    memory.add(4, 1_000_000, Some(1_000_000));
    assert!((memory.bits_for(0, 1_000, MEAN) - 24.0).abs() < 1e-9, "half of the budget is left");
    memory.add(4, 1_000_000, None);
    let bits = memory.bits_for(0, 16_000_000, MEAN);
    assert!((bits - 16.5).abs() < 1e-9, "{bits}");
    memory.add(4, 0, Some(7_000_000));
    assert!((memory.bits_for(0, 1_000, MEAN) - 8.0).abs() < 1e-9, "a budget that was lowered");
}

/// Symptom: of ten tables the first ones that were checked got 24 bits per key, and the last ones 8. All needed 15.
#[test]
fn the_tables_of_a_level_may_use_equally_many_bits() {
    let mut memory = FilterMemory::default();
    for _ in 0..9 {
        memory.add(0, 1_000, Some(1_500));
    }
    assert!((memory.bits_for(0, 1_000, MEAN) - 16.0).abs() < 1e-9, "the others use 12 bits, but may use 16");
    assert!((memory.bits_for(1, 1_000, MEAN) - 24.0).abs() < 1e-9, "a table of another level");
    memory.add(1, 10_000, Some(15_000));
    let bits = memory.bits_for(0, 1_000, MEAN);
    assert!((bits - 20.0).abs() < 1e-9, "{bits}: other levels leave four");
    memory.add(0, 0, Some(9_000));
    assert!((memory.bits_for(0, 1_000, MEAN) - 20.0).abs() < 1e-9);
    memory.add(0, 0, Some(6_000));
    let bits = memory.bits_for(0, 1_000, MEAN);
    assert!((bits - 8.0).abs() < 1e-9, "{bits}: others have used them");
}

/// Tables without files are never open: their filters are unknown.
fn closed_partition() -> Partition {
    let summary = |number, keys| summary(number, keys, 10_000, (1, 2));
    let changes = vec![
        add(place(0, 7), summary(1, ("a", "m"))),
        add(place(0, 8), summary(2, ("a", "z"))),
        add(place(3, 0), summary(3, ("b", "c"))),
    ];
    let catalog = catalog_of(changes, &Arc::default());
    let version = catalog.keyspaces.values().next().expect("keyspace 1");
    version.partitions.first().expect("partition 1").as_ref().clone()
}

fn walked(partition: &Partition) -> FilterMemory {
    let mut memory = FilterMemory::default();
    for (number, level) in partition.levels().iter().enumerate() {
        level.tables().for_each(|table| memory.add_table(number, table));
    }
    memory
}

#[test]
fn the_sum_of_a_partition_follows_its_tables() {
    let mut partition = closed_partition();
    assert_eq!(partition.filter_memory(1), walked(&partition));
    assert_eq!(partition.filter_memory(1).table_count(), 3);
    let before = partition.clone();
    let run = partition.runs_mut().next().expect("a run");
    Arc::make_mut(run).remove(2).expect("the table of the newest run");
    assert_eq!(partition.filter_memory(1).table_count(), 2);
    assert_eq!(partition.filter_memory(1), walked(&partition));
    assert_eq!(before.filter_memory(1).table_count(), 3, "the earlier version keeps its sum");
}

/// With many partitions a job must not read each closed table: a flush of the partitioned layout makes one in each of them.
#[test]
fn closed_tables_of_many_partitions_are_checked_in_turn() {
    let partition = closed_partition();
    let looks = |partition_count: usize, calls: usize| {
        let sums = FilterSums::default();
        let mut looks = 0;
        for _ in 0..calls {
            assert_eq!(sums.get(partition.levels(), partition_count), walked(&partition));
            looks += usize::from(sums.0.lock().as_ref().is_some_and(|counted| {
                counted.calls_left == partition_count.saturating_sub(1) / REFRESHED_PARTITIONS
            }));
        }
        looks
    };
    assert_eq!(looks(1, 100), 100);
    assert_eq!(looks(REFRESHED_PARTITIONS, 100), 100);
    assert_eq!(looks(10 * REFRESHED_PARTITIONS, 100), 10);
}

#[test]
fn the_memory_of_replaced_tables_is_left_out() {
    let mut all = FilterMemory::default();
    let mut rest = FilterMemory::default();
    let mut replaced = FilterMemory::default();
    for memory in [&mut all, &mut rest] {
        memory.add(2, 1_000, Some(2_000));
        memory.add_for_targets(2, 500, 1_000);
        memory.add(0, 700, None);
    }
    for memory in [&mut all, &mut replaced] {
        memory.add(2, 3_000, Some(7_000));
        memory.add_for_targets(0, 100, 300);
        memory.add(4, 50, None);
    }
    assert_eq!(all.minus(&replaced), rest);
    assert_eq!(rest.plus(&replaced), all);
}
