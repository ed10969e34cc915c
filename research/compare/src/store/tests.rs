//! Every store returns the same results for the same operations; otherwise the figures would be meaningless.

use std::collections::BTreeMap;

use super::*;
use crate::{
    data::{ENTRY_BYTES, key_of_number, number_of, value_of},
    operations::Draw,
    pass::{self, Limits, Outcome},
    workload::{Action, WORKLOADS},
};

const ENTRY_COUNT: u64 = 20_000;

fn settings(kind: &Kind) -> Settings {
    Settings {
        store: kind.name.to_owned(),
        cache_bytes: 8 << 20,
        memtable_bytes: 256 << 10,
        is_direct: false,
        is_deferred: false,
        is_unmerged: false,
        data_bytes_max: ENTRY_COUNT * ENTRY_BYTES,
    }
}

fn filled(kind: &Kind, folder: &Path, settings: &Settings, is_sorted: bool) -> Box<dyn Store> {
    let store = (kind.open)(folder, settings).expect(kind.name);
    pass::fill(&*store, 0..ENTRY_COUNT, is_sorted, 1).expect(kind.name);
    store.flush().expect(kind.name);
    store.wait().expect(kind.name);
    store
}

fn run(store: &dyn Store, action: Action, present_count: u64) -> Outcome {
    let limits = Limits { operation_count: 3000, seconds: 600.0, warm_seconds: 0.0 };
    let draw = Draw { entry_count: ENTRY_COUNT, present_count, seed: 7, thread: 0, thread_count: 1 };
    pass::run(store, action, draw, limits, true).expect("a pass")
}

/// The digest of a full scan, computed from a map.
fn expected_scan() -> u64 {
    let model: BTreeMap<Key, u64> =
        (0..ENTRY_COUNT).map(|index| (key_of_number(number_of(index)), number_of(index))).collect();
    let mut sink = Sink::new(true);
    for (key, &number) in &model {
        sink.key(key);
        sink.value(value_of(number));
    }
    sink.finish()
}

/// The results of a store for all workloads.
fn answers(kind: &Kind, settings: &Settings, is_sorted: bool) -> Vec<(&'static str, Outcome)> {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(kind, folder.path(), settings, is_sorted);
    let mut present_count = ENTRY_COUNT;
    let mut answers = Vec::new();
    let is_other = |action| matches!(action, Action::Fill { .. } | Action::Open | Action::Transfer { .. });
    let pass = WORKLOADS.iter().filter(|it| !is_other(it.action));
    for workload in pass {
        let outcome = run(&*store, workload.action, present_count);
        present_count = present_count.max(outcome.inserted_end);
        answers.push((workload.name, Outcome { seconds: 0.0, ..outcome }));
    }
    store.compact().expect(kind.name);
    answers.push(("compacted scan", Outcome { seconds: 0.0, ..run(&*store, Action::Scan, present_count) }));
    answers
}

#[test]
fn all_stores_return_the_same_results() {
    for is_sorted in [false, true] {
        let mut expected: Option<Vec<(&'static str, Outcome)>> = None;
        for kind in KINDS {
            let found = answers(kind, &settings(kind), is_sorted);
            let scan = found.iter().find(|(name, _)| *name == "scan").map(|(_, outcome)| outcome.digest);
            assert_eq!(scan, Some(expected_scan()), "{}: the scan", kind.name);
            let expected = expected.get_or_insert_with(|| found.clone());
            assert_eq!(&found, expected, "{}, sorted: {is_sorted}", kind.name);
        }
    }
}

#[test]
fn transfers_leave_the_same_values_in_all_stores() {
    let mut expected = None;
    for kind in KINDS.iter().filter(|kind| kind.can_transact) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = filled(kind, folder.path(), &settings(kind), false);
        let scans = [false, true].map(|is_hot| {
            assert_eq!(run(&*store, Action::Transfer { is_hot }, ENTRY_COUNT).found, 3000, "{}", kind.name);
            run(&*store, Action::Scan, ENTRY_COUNT).digest
        });
        assert_ne!(scans[0], expected_scan(), "{}", kind.name);
        assert_eq!(*expected.get_or_insert(scans), scans, "{}", kind.name);
    }
}

#[test]
fn present_keys_are_found_and_absent_ones_are_not() {
    for kind in KINDS {
        let folder = tempfile::tempdir().expect("a folder");
        let store = filled(kind, folder.path(), &settings(kind), false);
        let found = |action| run(&*store, action, ENTRY_COUNT).found;
        assert_eq!(found(Action::GetUniform), 3000, "{}", kind.name);
        assert_eq!(found(Action::GetAbsent), 0, "{}", kind.name);
        assert_eq!(found(Action::Empty { is_near: true }), 0, "{}", kind.name);
        assert_eq!(found(Action::Ycsb("ycsb-c")), 3000, "{}", kind.name);
        assert_eq!(found(Action::Scan), ENTRY_COUNT, "{}", kind.name);
    }
}

#[test]
fn ranges_include_both_bounds_and_scans_end_with_the_data() {
    let mut numbers: Vec<u64> = (0..ENTRY_COUNT).map(number_of).collect();
    numbers.sort_unstable();
    let (first, third, last) = (numbers[0], numbers[2], numbers[numbers.len() - 1]);
    for kind in KINDS {
        let folder = tempfile::tempdir().expect("a folder");
        let store = filled(kind, folder.path(), &settings(kind), false);
        let mut reader = store.reader(false).expect(kind.name);
        let mut sink = Sink::new(true);
        let (lower, upper) = (key_of_number(first), key_of_number(third));
        assert_eq!(reader.range(&lower, &upper, &mut sink).expect(kind.name), 3, "{}", kind.name);
        let behind = key_of_number(last + 1);
        for is_fresh in [false, true] {
            for (key, expected) in [(key_of_number(last), 1), (behind, 0)] {
                let given = reader.forward(&key, 50, is_fresh, &mut sink).expect(kind.name);
                assert_eq!(given, expected, "{}", kind.name);
            }
        }
        assert_eq!(reader.backward(&behind, 50, &mut sink).expect(kind.name), 50, "{}", kind.name);
        assert_eq!(reader.backward(&upper, 50, &mut sink).expect(kind.name), 3, "{}", kind.name);
        // The first number is 0, so the bound below it is not the key of a number.
        let below = [b'/'; 16];
        assert_eq!(reader.backward(&below, 50, &mut sink).expect(kind.name), 0, "{}", kind.name);
    }
}

#[test]
fn threads_unmerged_runs_and_buffered_logs_do_not_change_results() {
    for kind in KINDS.iter().filter(|kind| kind.can_stay_unmerged) {
        let folder = tempfile::tempdir().expect("a folder");
        let settings =
            Settings { is_unmerged: true, is_deferred: true, memtable_bytes: 16 << 20, ..settings(kind) };
        let store = (kind.open)(folder.path(), &settings).expect(kind.name);
        for part in 0..8 {
            let indexes = ENTRY_COUNT * part / 8..ENTRY_COUNT * (part + 1) / 8;
            pass::fill(&*store, indexes, false, 2).expect(kind.name);
            store.flush().expect(kind.name);
        }
        store.wait().expect(kind.name);
        let scan = run(&*store, Action::Scan, ENTRY_COUNT);
        assert_eq!(scan.digest, expected_scan(), "{}", kind.name);
    }
}

#[test]
fn an_unknown_store_is_rejected_with_the_known_ones() {
    let failure = kind_named("oracle").err().expect("no such store");
    assert!(failure.0.contains("oracle") && failure.0.contains("tamis-bloom"), "{failure}");
}
