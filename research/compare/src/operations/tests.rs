//! Generated operations.

use std::collections::BTreeSet;

use super::*;
use crate::workload::WORKLOADS;

const DRAW: Draw = Draw { entry_count: 1000, present_count: 1000, seed: 3, thread: 0, thread_count: 2 };

fn filled() -> BTreeSet<Key> {
    (0..1000).map(|index| key_of_number(number_of(index))).collect()
}

#[test]
fn operations_are_deterministic_and_differ_by_thread() {
    for workload in WORKLOADS {
        if matches!(workload.action, Action::Fill { .. } | Action::Scan | Action::Open) {
            continue;
        }
        let own = draw(workload.action, 100, DRAW);
        assert_eq!(own.len(), 100, "{}", workload.name);
        assert_eq!(own, draw(workload.action, 100, DRAW));
        assert_ne!(own, draw(workload.action, 100, Draw { thread: 1, ..DRAW }));
    }
}

#[test]
fn gets_read_present_or_absent_keys() {
    let present = filled();
    for (action, is_there) in
        [(Action::GetUniform, true), (Action::GetZipf, true), (Action::GetAbsent, false)]
    {
        for operation in draw(action, 10_000, DRAW) {
            assert_eq!(present.contains(&operation.key), is_there, "{action:?}");
        }
    }
}

#[test]
fn one_thread_reads_only_present_keys() {
    let mut present = filled();
    for operation in draw(Action::Ycsb("ycsb-d"), 20_000, Draw { thread_count: 1, ..DRAW }) {
        match operation.verb {
            Verb::Insert => {
                assert!(present.insert(operation.key));
                assert_eq!(operation.end, present.len() as u64, "the next pass continues there");
            }
            _ => assert!(present.contains(&operation.key)),
        }
    }
}

#[test]
fn two_threads_insert_different_keys() {
    let inserts = |thread| -> BTreeSet<Key> {
        let operations = draw(Action::Ycsb("ycsb-e"), 5000, Draw { thread, ..DRAW });
        operations.iter().filter(|operation| operation.verb == Verb::Insert).map(|it| it.key).collect()
    };
    assert!(inserts(0).is_disjoint(&inserts(1)));
}

#[test]
fn empty_ranges_are_empty() {
    let present = filled();
    for is_near in [true, false] {
        for operation in draw(Action::Empty { is_near }, 10_000, DRAW) {
            assert!(operation.key < operation.last());
            assert!(present.range(operation.key..=operation.last()).next().is_none());
        }
    }
}

#[test]
fn patterns_visit_present_keys_in_their_order() {
    let present = filled();
    let keys = |pattern| -> Vec<Key> {
        draw(Action::Update(pattern), 10_000, DRAW).iter().map(|operation| operation.key).collect()
    };
    for pattern in [Pattern::Sequential, Pattern::Zipfian, Pattern::ZipfianComposite] {
        assert!(keys(pattern).iter().all(|key| present.contains(key)), "{pattern:?}");
    }
    let sequential = keys(Pattern::Sequential);
    let descents = sequential.windows(2).filter(|pair| pair[1] <= pair[0]).count();
    assert_eq!(descents, 10, "one for each time that the last key is passed");
    let mut counts = std::collections::BTreeMap::new();
    keys(Pattern::Zipfian).into_iter().for_each(|key| *counts.entry(key).or_insert(0) += 1);
    assert!(counts.values().max() > Some(&300), "a popular key");
}
