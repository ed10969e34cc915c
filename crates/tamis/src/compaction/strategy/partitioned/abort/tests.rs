use super::*;

const LIMITS: Limits = Limits { table_bytes: 64 << 10, tables_max: 10, tables_after_split: 2 };
const MEMTABLE: u64 = 4 << 20;

fn run(table_count: usize, bytes: u64) -> RunSize {
    RunSize { table_count, bytes }
}

/// A partition whose next table causes a split of 640 KiB.
fn nearly_full(partition: usize, new_bytes: u64) -> Load {
    Load { partition, new_bytes, runs: vec![run(10, 640 << 10)] }
}

/// A partition with two full tables: the next compaction is far away, and merges small runs only.
fn spacious(partition: usize, new_bytes: u64) -> Load {
    Load { partition, new_bytes, runs: vec![run(2, 128 << 10)] }
}

fn many(count: usize, load: impl Fn(usize) -> Load) -> Vec<Load> {
    (0..count).map(load).collect()
}

#[test]
fn few_entries_stay_if_their_table_would_cause_a_large_compaction() {
    let plan = choose(&many(20, |number| nearly_full(number, 1000)), MEMTABLE, LIMITS);
    assert_eq!(plan.partitions, (0..20).collect::<Vec<_>>());
    assert_eq!(plan.saved_bytes, 20 * ((640 << 10) + TABLE_BYTES_FIXED));
    // The same entries as a part of partitions that have room.
    let plan = choose(&many(20, |number| spacious(number, 1000)), MEMTABLE, LIMITS);
    assert_eq!(plan, AbortPlan::default());
    // Very few entries are worth less than the fixed bytes of their tables.
    let plan = choose(&many(2000, |number| spacious(number, 100)), MEMTABLE, LIMITS);
    assert_eq!(plan.partitions.len(), 2000);
}

#[test]
fn at_most_15_percent_stay_and_what_does_not_fit_is_skipped() {
    let bytes_max = MEMTABLE * 15 / 100;
    let all = many(60, |number| nearly_full(number, 20_000));
    let plan = choose(&all, MEMTABLE, LIMITS);
    assert_eq!(plan.partitions.len() as u64, bytes_max / 20_000);
    // Two that save more do not fit any more, and do not end the choice.
    let large = |partition, new_bytes| Load { partition, new_bytes, runs: vec![run(10, 1200 << 10)] };
    let mut mixed = many(20, |number| nearly_full(number, 25_000));
    mixed.extend([large(20, 155_000), large(21, 158_000), nearly_full(22, 120_000)]);
    let plan = choose(&mixed, MEMTABLE, LIMITS);
    assert_eq!(plan.partitions.last(), Some(&22), "the smallest one fits");
    let kept: u64 = mixed
        .iter()
        .filter(|load| plan.partitions.contains(&load.partition))
        .map(|load| load.new_bytes)
        .sum();
    assert!(kept <= bytes_max && plan.bytes_max == bytes_max, "{kept} of {bytes_max}");
    assert_eq!(plan.partitions.len(), 21);
}

#[test]
fn the_best_ratio_comes_first() {
    let loads = [
        nearly_full(0, 3000),
        nearly_full(1, 1000),
        Load { partition: 2, new_bytes: 1000, runs: vec![run(9, 576 << 10)] },
        nearly_full(3, 10),
    ];
    let many: Vec<Load> =
        loads.into_iter().chain(many(20, |number| nearly_full(10 + number, 9000))).collect();
    let plan = choose(&many, MEMTABLE, LIMITS);
    assert_eq!(plan.partitions.get(..4), Some(&[3, 1, 2, 0][..]));
}

#[test]
fn little_to_save_is_not_worth_a_sync_of_the_log() {
    let plan = choose(&many(6, |number| nearly_full(number, 1000)), MEMTABLE, LIMITS);
    assert_eq!(plan, AbortPlan::default());
    let plan = choose(&many(7, |number| nearly_full(number, 1000)), MEMTABLE, LIMITS);
    assert_eq!(plan.partitions.len(), 7);
}

#[test]
fn large_loads_and_partitions_that_may_be_united_are_flushed() {
    let small = |number| Load { partition: number, new_bytes: 10, runs: vec![run(11, 64 << 10)] };
    assert_eq!(choose(&many(2000, small), MEMTABLE, LIMITS), AbortPlan::default());
    let empty = |number| Load { partition: number, new_bytes: 10, runs: Vec::new() };
    assert_eq!(choose(&many(2000, empty), MEMTABLE, LIMITS), AbortPlan::default());
    let large = many(9, |number| nearly_full(number, PARTITION_BYTES_MAX + 1));
    assert_eq!(choose(&large, u64::MAX / 100, LIMITS), AbortPlan::default());
    assert_eq!(choose(&[], 0, LIMITS), AbortPlan::default());
}
