//! YCSB's streams compared with its standard: shares, popularity, lengths of scans, and existing items.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const RECORDS: u64 = 2000;
const COUNT: u64 = 200_000;

fn workload(name: &str) -> Workload {
    name.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn share(operations: &[Operation], kind: OperationKind) -> f64 {
    operations.iter().filter(|operation| operation.kind == kind).count() as f64 / operations.len() as f64
}

#[test]
fn ycsb_has_the_shares_of_its_standard() {
    let shares: [&[(OperationKind, f64)]; 6] = [
        &[(Read, 0.5), (Update, 0.5)],
        &[(Read, 0.95), (Update, 0.05)],
        &[(Read, 1.0)],
        &[(Read, 0.95), (Insert, 0.05)],
        &[(Scan, 0.95), (Insert, 0.05)],
        &[(Read, 0.5), (ReadModifyWrite, 0.5)],
    ];
    for (workload, shares) in YCSB.into_iter().zip(shares) {
        let operations: Vec<Operation> = workload.operations(RECORDS, COUNT, 7).collect();
        assert_eq!(operations.len() as u64, COUNT);
        for (kind, expected) in shares {
            let got = share(&operations, *kind);
            assert!((got - expected).abs() < 0.004, "{workload} {}: {got}", kind.name());
        }
        assert_eq!(operations, workload.operations(RECORDS, COUNT, 7).collect::<Vec<_>>());
        assert_ne!(operations, workload.operations(RECORDS, COUNT, 8).collect::<Vec<_>>());
    }
}

#[test]
fn ycsb_uses_existing_items_and_inserts_the_next_one() {
    for workload in YCSB {
        let mut there = RECORDS;
        for operation in workload.operations(RECORDS, COUNT, 7) {
            if operation.kind == Insert {
                assert_eq!(operation.item, there, "{workload}");
                there += 1;
            } else {
                assert!(operation.item < there, "{workload}");
            }
        }
    }
}

/// The number of operations other than inserts per item, the most popular first.
fn popularity(workload: &Workload) -> Vec<(u64, u64)> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for operation in workload.operations(RECORDS, COUNT, 7).filter(|operation| operation.kind != Insert) {
        *counts.entry(operation.item).or_default() += 1;
    }
    let mut counts: Vec<(u64, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

#[test]
fn popular_items_have_the_shares_of_the_zipfian_choice() {
    for name in ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-f"] {
        let counts = popularity(&workload(name));
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        // The choice is among ten billion ranks, whose sum is 26.469, and scrambled by the standard's hash.
        for (rank, (item, count)) in (0_u64..3).zip(&counts) {
            assert_eq!(*item, fnv_hash(rank) % RECORDS, "{name} rank {rank}");
            let expected = ((rank + 1) as f64).powf(-0.99) / 26.469_028_201_783_02;
            let got = *count as f64 / all as f64;
            // Other ranks have the same item.
            assert!(
                (expected - 0.001..expected + 0.003).contains(&got),
                "{name} rank {rank}: {got} {expected}"
            );
        }
        assert!(counts.len() as u64 > RECORDS * 9 / 10, "{name}: the rest is touched too");
    }
}

#[test]
fn the_latest_items_are_the_popular_ones() {
    let mut there = RECORDS;
    let mut ages = [0_u64; 10];
    let mut read_count = 0;
    for operation in workload("ycsb-d").operations(RECORDS, COUNT, 7) {
        if operation.kind == Insert {
            there += 1;
        } else {
            read_count += 1;
            let age = there - 1 - operation.item;
            if let Some(count) = ages.get_mut(age as usize) {
                *count += 1;
            }
        }
    }
    // The sum of the ranks grows from that of 2,000 items to that of 12,000.
    let zeta = |count: u32| (1..=count).map(|rank| f64::from(rank).powf(-0.99)).sum::<f64>();
    let expected = |age: usize| (age as f64 + 1.0).powf(-0.99);
    for (age, count) in ages.into_iter().enumerate().take(2) {
        let got = count as f64 / f64::from(read_count);
        let bounds = expected(age) / zeta(12_000)..expected(age) / zeta(2000);
        assert!(bounds.contains(&got), "age {age}: {got} outside of {bounds:?}");
    }
    assert!(ages.iter().sum::<u64>() > 25 * u64::from(read_count as u32) / 100);
}

#[test]
fn scans_of_e_read_one_to_a_hundred_entries_uniformly() {
    let mut counts = [0_u64; 101];
    for operation in
        workload("ycsb-e").operations(RECORDS, COUNT, 7).filter(|operation| operation.kind == Scan)
    {
        if let Some(count) = counts.get_mut(operation.limit as usize) {
            *count += 1;
        }
    }
    assert_eq!(counts.first(), Some(&0));
    let expected = COUNT as f64 * 0.95 / 100.0;
    for (entries, count) in counts.into_iter().enumerate().skip(1) {
        assert!((count as f64 / expected - 1.0).abs() < 0.12, "{entries}: {count}");
    }
}

#[test]
fn micro_benchmarks_match_their_names() {
    for (name, is_sorted) in [("fillseq", true), ("fillrandom", false)] {
        let fill = workload(name);
        assert!(fill.is_fill && fill.is_sorted == is_sorted);
        let items: Vec<u64> = fill.operations(RECORDS, 100, 7).map(|operation| operation.item).collect();
        assert_eq!(items, (0..100).collect::<Vec<_>>(), "each item once");
    }
    for (name, kind, limit) in [
        ("overwrite", Update, 1),
        ("readrandom", Read, 1),
        ("seekrandom", Scan, 1),
        ("seekrandom-50", Scan, 50),
        ("seekreverse-50", ScanBack, 50),
        ("deleterandom", Delete, 1),
        ("readwhilewriting", Read, 1),
    ] {
        let operations: Vec<Operation> = workload(name).operations(RECORDS, 20_000, 7).collect();
        assert!(
            operations.iter().all(|operation| operation.kind == kind && operation.limit == limit),
            "{name}"
        );
        let items: BTreeSet<u64> = operations.iter().map(|operation| operation.item).collect();
        assert!(
            items.len() as u64 > RECORDS * 99 / 100 && items.iter().all(|item| *item < RECORDS),
            "{name}"
        );
    }
    assert!(workload("readwhilewriting").has_writer && !workload("readrandom").has_writer);
    let writer = workload("readwhilewriting").writer(RECORDS, 100, 7);
    assert!(writer.into_iter().all(|operation| operation.kind == Update && operation.item < RECORDS));
}

#[test]
fn a_fill_in_order_writes_ascending_keys_each_once() {
    for form in [KeyForm::Hex, KeyForm::Integer, KeyForm::User] {
        let sorted = workload("fillseq").operations(0, 1000, 7).sorted(form);
        assert!(sorted.is_sorted_by(|one, two| form.key(one.item) < form.key(two.item)), "{form:?}");
        assert!(sorted.len() == 1000 && sorted.iter().all(|it| it.kind == Insert && it.item < 1000));
        let drawn = workload("fillrandom").operations(0, 1000, 7);
        assert!(!drawn.into_iter().is_sorted_by_key(|operation| form.key(operation.item)), "{form:?}");
    }
}

#[test]
fn ranges_contain_no_key_and_missing_keys_do_not_exist() {
    let form = KeyForm::Hex;
    let keys: BTreeSet<u64> = (0..100_000).map(|item| form.number(item)).collect();
    for workload in RANGES {
        for operation in workload.operations(100_000, 20_000, 7) {
            let (lower, upper) = form.bounds(&operation);
            assert!(operation.kind == Range && lower <= upper);
            assert_eq!(keys.range(lower..=upper).count(), 0, "{workload}");
            let distance = lower - keys.range(..=lower).next_back().copied().unwrap_or_default();
            assert!(workload.name == "empty-far" || (1..=1024).contains(&distance));
        }
    }
    let missing = workload("readmissing").operations(100_000, 1000, 7);
    assert!(missing.into_iter().all(|operation| !keys.contains(&form.number(operation.item))));
}

#[test]
fn shifts_change_from_one_mix_to_the_other() {
    let halves = |name: &str| {
        let operations: Vec<Operation> = workload(name).operations(RECORDS, COUNT, 7).collect();
        let (first, second) = operations.split_at(operations.len() / 2);
        (first.to_vec(), second.to_vec())
    };
    for (name, kind) in [("shift-reads-to-writes", Update), ("shift-points-to-ranges", Range)] {
        let (first, second) = halves(name);
        let (first, second) = (share(&first, kind), share(&second, kind));
        assert!((first - 0.25).abs() < 0.01 && (second - 0.75).abs() < 0.01, "{name}: {first} {second}");
    }
    let (first, second) = halves("shift-hot-spot");
    let middle = |operations: &[Operation]| {
        operations.iter().filter(|operation| operation.item < RECORDS / 2).count() as f64
            / operations.len() as f64
    };
    assert!(middle(&first) > 0.7 && middle(&second) < 0.3, "{} {}", middle(&first), middle(&second));
}

#[test]
fn keys_of_items_are_distinct_and_keep_the_order_of_their_numbers() {
    for (form, length) in [(KeyForm::Hex, 16), (KeyForm::Ordered, 16), (KeyForm::Integer, 8)] {
        let mut keys: Vec<(u64, Vec<u8>)> =
            (0..5000).map(|item| (form.number(item), form.key(item))).collect();
        keys.sort_unstable();
        assert!(
            keys.is_sorted_by(|one, two| one.1 < two.1) && keys.iter().all(|(_, key)| key.len() == length)
        );
    }
    // YCSB's form: the hash of the item's number.
    assert_eq!(KeyForm::User.key(0), b"user6284781860667377211");
    assert_eq!(KeyForm::Hex.key(1).as_slice(), b"5692161d100b05e5".as_slice());
}

#[test]
fn every_workload_is_found_by_its_exact_name() {
    let names: BTreeSet<&str> = Workload::all().map(|workload| workload.name).collect();
    assert_eq!(names.len(), Workload::all().count());
    for name in names {
        assert_eq!(workload(name).to_string(), name);
        assert_eq!(workload(name).operations(10, 100, 7).len(), 100);
    }
    let message = "ycsb-g".parse::<Workload>().map_or_else(|error| error.to_string(), |_| String::new());
    assert!(message.starts_with("no workload named \"ycsb-g\"; there are ycsb-a, "), "{message}");
}
