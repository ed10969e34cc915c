//! Draws.

use std::collections::BTreeSet;

use super::*;

const DRAW: Draw = Draw { entry_count: 1000, present_count: 1000, seed: 3, thread: 0, thread_count: 2 };

#[test]
fn draws_are_the_same_each_time_and_differ_between_threads() {
    for action in [Action::GetZipf, Action::Empty { is_near: true }, Action::Ycsb(Mix::D)] {
        assert_eq!(draw(action, 100, DRAW), draw(action, 100, DRAW));
        assert_ne!(draw(action, 100, DRAW), draw(action, 100, Draw { thread: 1, ..DRAW }));
    }
}

#[test]
fn mixes_have_the_shares_of_the_standard() {
    let share = |mix: Mix, verb: Verb| {
        let operations = draw(Action::Ycsb(mix), 100_000, DRAW);
        operations.iter().filter(|operation| operation.verb == verb).count() as f64 / 100_000.0
    };
    for (mix, verb, expected) in [
        (Mix::A, Verb::Put, 0.5),
        (Mix::B, Verb::Put, 0.05),
        (Mix::C, Verb::Get, 1.0),
        (Mix::D, Verb::Insert, 0.05),
        (Mix::E, Verb::ScanFresh, 0.95),
        (Mix::F, Verb::Modify, 0.5),
    ] {
        assert!((share(mix, verb) - expected).abs() < 0.01, "{mix:?} {verb:?}");
    }
}

#[test]
fn what_is_read_was_there_before() {
    for thread in 0..2 {
        let mut present: BTreeSet<Key> = (0..1000).map(key_of).collect();
        for operation in draw(Action::Ycsb(Mix::D), 20_000, Draw { thread, ..DRAW }) {
            match operation.verb {
                Verb::Insert => assert!(present.insert(operation.key)),
                _ => assert!(present.contains(&operation.key)),
            }
        }
    }
}

#[test]
fn the_inserts_of_two_threads_differ() {
    let inserts = |thread| -> BTreeSet<Key> {
        let operations = draw(Action::Ycsb(Mix::E), 5000, Draw { thread, ..DRAW });
        operations.iter().filter(|operation| operation.verb == Verb::Insert).map(|it| it.key).collect()
    };
    assert!(inserts(0).is_disjoint(&inserts(1)));
}

#[test]
fn empty_ranges_are_empty() {
    let present: BTreeSet<Key> = (0..1000).map(key_of).collect();
    for is_near in [true, false] {
        for operation in draw(Action::Empty { is_near }, 10_000, DRAW) {
            assert!(present.range(operation.key..=operation.range_end()).next().is_none());
        }
    }
}
