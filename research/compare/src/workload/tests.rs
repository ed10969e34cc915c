//! Generated operations.

use std::collections::BTreeSet;

use tamis_workload::{Operation, OperationKind};

use super::*;

const DRAW: Draw = Draw { entry_count: 1000, present_count: 1000, operation_count: 10_000, seed: 3 };

fn workload(name: &str) -> &'static Workload {
    workload_named(name).expect("a workload")
}

fn operations(name: &str) -> Vec<Operation> {
    workload(name).operations(DRAW).collect()
}

fn numbers() -> BTreeSet<u64> {
    (0..1000).map(|item| FORM.number(item)).collect()
}

#[test]
fn operations_are_deterministic_and_only_mixes_write() {
    for workload in WORKLOADS {
        if matches!(workload.source, Source::Fill { .. } | Source::Open) {
            assert_eq!(workload.operations(DRAW).count(), 0, "{}", workload.name);
            continue;
        }
        let own: Vec<Operation> = workload.operations(DRAW).collect();
        assert_eq!(own.len(), 10_000, "{}", workload.name);
        assert!(own.iter().copied().eq(workload.operations(DRAW)), "{}", workload.name);
        let writes = own.iter().any(|operation| {
            !matches!(operation.kind, OperationKind::Read | Scan | ScanBack | OperationKind::Range)
        });
        assert_eq!(writes, workload.is_writing(), "{}", workload.name);
        let is_only_mixed = workload.states == MIXED;
        assert!(!writes || is_only_mixed, "{}: reads are measured in all states", workload.name);
    }
}

#[test]
fn reads_find_present_or_absent_keys() {
    for (name, is_there) in
        [("get-uniform", true), ("get-zipf", true), ("get-absent", false), ("seek", false)]
    {
        assert!(operations(name).iter().all(|operation| (operation.item < 1000) == is_there), "{name}");
    }
    let numbers = numbers();
    for name in ["empty-near", "empty-far"] {
        for operation in operations(name) {
            let (lower, upper) = FORM.bounds(&operation);
            assert!(lower < upper && numbers.range(lower..=upper).next().is_none());
        }
    }
    // A full scan begins at the lowest key.
    assert_eq!(numbers.first(), Some(&FORM.number(0)));
}

#[test]
fn patterns_visit_present_keys_in_their_order() {
    let numbers_of = |name: &str| -> Vec<u64> {
        operations(name).iter().map(|operation| FORM.number(operation.item)).collect()
    };
    let present = numbers();
    for name in ["update-sequential", "update-zipf", "update-composite", "seek-sequential"] {
        assert!(numbers_of(name).iter().all(|number| present.contains(number)), "{name}");
    }
    let sequential = numbers_of("update-sequential");
    let descents = sequential.windows(2).filter(|pair| pair[1] <= pair[0]).count();
    assert_eq!(descents, 10, "one for each time that the last key is passed");
}

#[test]
fn inserts_below_the_slowest_thread_are_certain() {
    let mix = workload("ycsb-d");
    let inserts = |count: usize| {
        let taken = mix.operations(DRAW).take(count);
        taken.filter(|operation| operation.kind == OperationKind::Insert).count() as u64
    };
    assert_eq!(mix.present_after(DRAW, &[10_000]), 1000 + inserts(10_000));
    assert_eq!(mix.present_after(DRAW, &[5000, 3000]), 1000 + inserts(6000));
    assert_eq!(mix.present_after(DRAW, &[5000, 0]), 1000);
    assert_eq!(workload("get-uniform").present_after(DRAW, &[10_000]), 1000);
}

#[test]
fn fills_write_every_entry_once() {
    for (is_sorted, threads) in [(false, 1), (true, 1), (true, 2)] {
        assert_eq!(fill_script(0..1001, is_sorted, threads).operation_count(), 1001);
    }
    assert_eq!(fill_script(100..300, false, 2).operation_count(), 200);
}
