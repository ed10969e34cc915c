//! Every store returns the same results for the same operations; otherwise the figures would be meaningless.

use std::{collections::BTreeMap, ops::Bound, sync::RwLock};

use tamis_bench::{Context, Silent, Size};

use super::*;
use crate::{
    worker::{Pass, fill, pass},
    workload::{Source, WORKLOADS, Workload, workload_named},
};

const ENTRY_COUNT: u64 = 20_000;
const OPERATIONS: u64 = 3000;

/// The expected store: an ordered map.
#[derive(Default)]
struct Model(RwLock<BTreeMap<Vec<u8>, Vec<u8>>>);

impl Store for Model {
    fn session(&self, _is_live: bool) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(self))
    }
    fn settle(&self) -> Result<()> {
        Ok(())
    }
}

impl Compared for Model {
    fn transfer(&self, keys: &[Vec<u8>]) -> Result<()> {
        let mut entries = self.0.write().expect("no panic");
        let values: Vec<Vec<u8>> = keys.iter().map(|key| entries[key].clone()).collect();
        for ((_, to), value) in moves(keys).zip(values) {
            entries.insert(to.to_vec(), value);
        }
        Ok(())
    }
}

impl Model {
    fn read(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        limit: u64,
        is_back: bool,
        sink: &mut Sink,
    ) -> Result<u64> {
        let entries = self.0.read().expect("no panic");
        let mut range = entries.range::<[u8], _>(bounds);
        let mut count = 0;
        while count < limit
            && let Some((key, value)) = if is_back { range.next_back() } else { range.next() }
        {
            sink.entry(|| key, value);
            count += 1;
        }
        Ok(count)
    }
}

impl Session for &Model {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.write().expect("no panic").insert(key.to_vec(), value.to_vec());
        Ok(())
    }
    fn get(&mut self, key: &[u8], sink: &mut Sink) -> Result<bool> {
        Ok(self.0.read().expect("no panic").get(key).map(|value| sink.value(value)).is_some())
    }
    fn scan(&mut self, lower: &[u8], limit: u64, sink: &mut Sink) -> Result<u64> {
        self.read((Bound::Included(lower), Bound::Unbounded), limit, false, sink)
    }
    fn scan_back(&mut self, upper: &[u8], limit: u64, sink: &mut Sink) -> Result<u64> {
        self.read((Bound::Unbounded, Bound::Included(upper)), limit, true, sink)
    }
    fn range(&mut self, lower: &[u8], upper: &[u8], sink: &mut Sink) -> Result<u64> {
        self.read((Bound::Included(lower), Bound::Included(upper)), u64::MAX, false, sink)
    }
}

fn settings(kind: &Kind, folder: &Path) -> Settings {
    Settings {
        store: kind.name.to_owned(),
        folder: folder.to_owned(),
        cache_bytes: 8 << 20,
        memtable_bytes: 256 << 10,
        entries: ENTRY_COUNT,
        ..Settings::default()
    }
}

/// Calls `work` with a context.
fn in_context<T>(work: impl FnOnce(&mut Context<'_>) -> T) -> T {
    let mut silent = Silent;
    work(&mut Context::new(Size::Small, 0, Path::new("."), &mut silent))
}

/// A filled store, opened again.
fn filled(settings: &Settings, is_sorted: bool, threads: usize) -> Box<dyn Compared> {
    let filling = Settings { is_filling: true, is_appending: is_sorted, ..settings.clone() };
    let store = open(&filling).expect("a store");
    in_context(|context| fill(&*store, settings, (is_sorted, threads), context)).expect("filled");
    store.settle().expect("settled");
    drop(store);
    open(settings).expect("a filled store")
}

/// Runs a workload whose digest covers every entry that it reads.
fn run(store: &dyn Compared, workload: &Workload, present: u64, threads: usize) -> (u64, String, u64) {
    let pass_of = Pass {
        workload: workload.name.to_owned(),
        threads,
        present,
        seed: 7,
        operations: OPERATIONS,
        seconds: 600.0,
        warm_seconds: 0.0,
    };
    let row = in_context(|context| pass(store, ENTRY_COUNT, &pass_of, u64::MAX, context));
    let fields = row.expect(workload.name).fields;
    let number =
        |name: &str| fields.get(name).and_then(tamis_bench::Value::as_number).expect("a number") as u64;
    (number("found"), fields.get("answers").expect("a digest").to_string(), number("present"))
}

/// The results of a store for all workloads.
fn answers(store: &dyn Compared) -> Vec<(&'static str, u64, String)> {
    let mut present = ENTRY_COUNT;
    let mut answers = Vec::new();
    let is_other = |source| matches!(source, Source::Fill { .. } | Source::Open | Source::Transfer { .. });
    for workload in WORKLOADS.iter().filter(|workload| !is_other(workload.source)) {
        let (found, digest, present_after) = run(store, workload, present, 1);
        present = present_after;
        answers.push((workload.name, found, digest));
    }
    store.compact().expect("compacted");
    let scan = workload_named("scan").expect("a workload");
    answers.push(("compacted scan", 0, run(store, scan, present, 1).1));
    answers
}

fn model(is_sorted: bool) -> Model {
    let model = Model::default();
    let settings = settings(&KINDS[0], Path::new("."));
    in_context(|context| fill(&model, &settings, (is_sorted, 1), context)).expect("filled");
    model
}

#[test]
fn all_stores_return_the_results_of_a_map() {
    for is_sorted in [false, true] {
        let expected = answers(&model(is_sorted));
        assert!(expected.iter().any(|(name, found, _)| (*name, *found) == ("scan", ENTRY_COUNT)));
        for kind in KINDS {
            let folder = tempfile::tempdir().expect("a folder");
            let store = filled(&settings(kind, folder.path()), is_sorted, 1);
            assert_eq!(answers(&*store), expected, "{}, sorted: {is_sorted}", kind.name);
        }
    }
}

#[test]
fn transfers_leave_the_same_values_in_all_stores() {
    let scan = workload_named("scan").expect("a workload");
    let after = |store: &dyn Compared| {
        ["transfer", "transfer-hot"].map(|name| {
            run(store, workload_named(name).expect("a workload"), ENTRY_COUNT, 1);
            run(store, scan, ENTRY_COUNT, 1).1
        })
    };
    let (expected, before) = (after(&model(false)), run(&model(false), scan, ENTRY_COUNT, 1).1);
    assert!(expected[0] != before && expected[1] != expected[0]);
    for kind in KINDS.iter().filter(|kind| kind.can_transact) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = filled(&settings(kind, folder.path()), false, 1);
        assert_eq!(after(&*store), expected, "{}", kind.name);
    }
}

#[test]
fn ranges_include_both_bounds_and_scans_end_with_the_data() {
    let mut numbers: Vec<u64> = (0..ENTRY_COUNT).map(|item| FORM.number(item)).collect();
    numbers.sort_unstable();
    let key = |number: u64| {
        let mut key = Vec::new();
        FORM.encode(number, &mut key);
        key
    };
    let (lower, upper, last) = (key(numbers[0]), key(numbers[2]), key(numbers[numbers.len() - 1]));
    let behind = key(numbers[numbers.len() - 1] + 1);
    let mut sink = Sink::new(u64::MAX);
    for kind in KINDS {
        let folder = tempfile::tempdir().expect("a folder");
        let store = filled(&settings(kind, folder.path()), false, 1);
        for is_live in [false, true] {
            let mut session = store.session(is_live).expect(kind.name);
            assert_eq!(session.range(&lower, &upper, &mut sink).expect(kind.name), 3, "{}", kind.name);
            assert_eq!(session.scan(&last, 50, &mut sink).expect(kind.name), 1, "{}", kind.name);
            assert_eq!(session.scan(&behind, 50, &mut sink).expect(kind.name), 0, "{}", kind.name);
            assert_eq!(session.scan_back(&behind, 50, &mut sink).expect(kind.name), 50, "{}", kind.name);
            assert_eq!(session.scan_back(&upper, 50, &mut sink).expect(kind.name), 3, "{}", kind.name);
            // The first number is 0, so the bound below it is not the key of a number.
            assert_eq!(session.scan_back(b"/", 50, &mut sink).expect(kind.name), 0, "{}", kind.name);
            session.finish().expect(kind.name);
        }
    }
}

#[test]
fn threads_unmerged_runs_and_buffered_logs_do_not_lose_entries() {
    let present = workload_named("get-uniform").expect("a workload");
    let scan = workload_named("scan").expect("a workload");
    for kind in KINDS.iter().filter(|kind| kind.can_stay_unmerged) {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings {
            is_unmerged: true,
            is_deferred: true,
            memtable_bytes: 16 << 20,
            ..settings(kind, folder.path())
        };
        let store = filled(&settings, false, 2);
        assert_eq!(run(&*store, scan, ENTRY_COUNT, 2).0, 2 * ENTRY_COUNT, "{}", kind.name);
        assert_eq!(run(&*store, present, ENTRY_COUNT, 2).0, 2 * OPERATIONS, "{}", kind.name);
    }
}

#[test]
fn an_unknown_store_is_rejected_with_the_known_ones() {
    let error = kind_named("oracle").err().expect("no such store").to_string();
    assert!(error.contains("oracle") && error.contains("tamis-bloom"), "{error}");
}
