//! Databases with filters give the answers of a reader that reads every table, on every store.

use std::ops::{Bound, RangeBounds as _};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use slatedb::config::{MergeOptions, PutOptions, ScanOptions, Settings, Ttl};
use slatedb::object_store::{ObjectStore, memory::InMemory};
use slatedb::{DbReader, IterationOrder};
use tamis_slatedb::{FilterCounts, FilterMetrics};

use crate::support::{
    KeyBounds, collect, designs, eager_compaction, fill_tables, flush, folder_store, hostile_key,
    hostile_range, open, open_reader, policies, s3_store, settings,
};

#[derive(Debug, Clone)]
enum Operation {
    Put(Vec<u8>, Ttl),
    Merge(Vec<u8>, Ttl),
    Delete(Vec<u8>),
    Flush,
}

fn operation() -> impl Strategy<Value = Operation> {
    // Expired long ago, or in the far future: the time of a read decides nothing.
    let ttl = prop_oneof![
        4 => Just(Ttl::NoExpiry),
        1 => Just(Ttl::ExpireAtMillis(1)),
        1 => Just(Ttl::ExpireAtMillis(i64::MAX / 2)),
    ];
    prop_oneof![
        8 => (hostile_key(), ttl.clone()).prop_map(|(key, ttl)| Operation::Put(key, ttl)),
        3 => (hostile_key(), ttl).prop_map(|(key, ttl)| Operation::Merge(key, ttl)),
        3 => hostile_key().prop_map(Operation::Delete),
        1 => Just(Operation::Flush),
    ]
}

#[derive(Debug, Clone)]
struct Scenario {
    operations: Vec<Operation>,
    is_compacted: bool,
    keys: Vec<Vec<u8>>,
    ranges: Vec<KeyBounds>,
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let operations = prop::collection::vec(operation(), 1..120);
    let keys = prop::collection::vec(hostile_key(), 20);
    let ranges = prop::collection::vec(hostile_range(), 20);
    (operations, any::<bool>(), keys, ranges).prop_map(|(operations, is_compacted, keys, ranges)| Scenario {
        operations,
        is_compacted,
        keys,
        ranges,
    })
}

async fn run(scenario: &Scenario, design: &str, store: &Arc<dyn ObjectStore>) {
    let policies = policies(design);
    let compactor_options = scenario.is_compacted.then(eager_compaction);
    let db = open(&policies, store, Settings { compactor_options, ..settings() }).await;
    for (number, operation) in scenario.operations.iter().enumerate() {
        let text = format!("({number})");
        let written = match operation {
            Operation::Put(key, ttl) => {
                let options = PutOptions { ttl: ttl.clone() };
                db.put_with_options(key, text, &options, &Default::default()).await.map(|_| ())
            }
            Operation::Merge(key, ttl) => {
                let options = MergeOptions { ttl: ttl.clone() };
                db.merge_with_options(key, text, &options, &Default::default()).await.map(|_| ())
            }
            Operation::Delete(key) => db.delete(key).await.map(|_| ()),
            Operation::Flush => {
                flush(&db).await;
                Ok(())
            }
        };
        written.expect("it can be written");
    }
    flush(&db).await;
    db.close().await.expect("it can be closed");
    compare(scenario, design, store).await;
    let values = policies.counters().values();
    assert_eq!((values.damaged, values.unknown), (0, 0), "{design}: {values}");
}

/// Readers with and without filters see the same tables, so that their answers must be equal.
async fn compare(scenario: &Scenario, design: &str, store: &Arc<dyn ObjectStore>) {
    let policies = policies(design);
    let (filtered, _) = open_reader(Some(&policies), store).await;
    let (complete, _) = open_reader(None, store).await;
    let written = scenario.operations.iter().filter_map(|operation| match operation {
        Operation::Put(key, _) | Operation::Merge(key, _) | Operation::Delete(key) => Some(key),
        Operation::Flush => None,
    });
    for key in written.chain(&scenario.keys) {
        let (got, expected) = (filtered.get(key).await, complete.get(key).await);
        assert_eq!(got.expect("a lookup"), expected.expect("a lookup"), "{design}: {key:?}");
        let prefix = key.get(..key.len().div_ceil(2)).unwrap_or_default();
        let (got, expected) =
            (filtered.scan_prefix(prefix, ..).await, complete.scan_prefix(prefix, ..).await);
        let (got, expected) = (collect(got.expect("a scan")).await, collect(expected.expect("a scan")).await);
        assert_eq!(got, expected, "{design}: prefix {prefix:?}");
        // The rest of the prefix from the key on, and up to it.
        let rest = key.get(prefix.len()..).unwrap_or_default();
        for part in [(Bound::Included(rest), Bound::Unbounded), (Bound::Unbounded, Bound::Excluded(rest))] {
            if rest.is_empty() {
                continue;
            }
            let part = (part.0.map(<[u8]>::to_vec), part.1.map(<[u8]>::to_vec));
            let got = filtered.scan_prefix(prefix, part.clone()).await.expect("a scan");
            let expected = complete.scan_prefix(prefix, part.clone()).await.expect("a scan");
            assert_eq!(collect(got).await, collect(expected).await, "{design}: {part:?} of {prefix:?}");
        }
    }
    for range in &scenario.ranges {
        for order in [IterationOrder::Ascending, IterationOrder::Descending] {
            let options = ScanOptions { order, ..ScanOptions::default() };
            let got = scan(&filtered, range, &options).await;
            let expected = scan(&complete, range, &options).await;
            assert_eq!(got, expected, "{design}: {order:?} {range:?}");
            assert!(got.iter().all(|entry| range.contains(&entry.key.to_vec())));
        }
    }
}

async fn scan(reader: &DbReader, range: &KeyBounds, options: &ScanOptions) -> Vec<slatedb::KeyValue> {
    collect(reader.scan_with_options(range.clone(), options).await.expect("a scan")).await
}

/// Runs the property on one runtime: each case awaits.
fn check(cases: u32, design: &str, store: impl Fn(u32) -> Arc<dyn ObjectStore>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let case = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&scenario(), |scenario| {
        case.set(case.get() + 1);
        runtime.block_on(run(&scenario, design, &store(case.get())));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{design}: {error}"));
}

#[test]
fn answers_are_equal_in_memory() {
    for design in designs() {
        check(8, &design, |_| Arc::new(InMemory::new()));
    }
}

#[test]
fn answers_are_equal_in_a_folder() {
    for design in designs() {
        let folder = tempfile::tempdir().expect("a folder can be created");
        check(1, &design, |case| {
            let path = folder.path().join(case.to_string());
            std::fs::create_dir_all(&path).expect("a folder can be created");
            folder_store(&path)
        });
    }
}

#[test]
fn answers_are_equal_on_s3() {
    for (index, design) in designs().iter().enumerate() {
        let bucket = std::sync::atomic::AtomicU32::new(0);
        check(1, design, |_| {
            let number = bucket.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            s3_store(&format!("answers-{index}-{number}"))
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn compaction_keeps_the_filters() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let policies = policies("auto@16");
    let db =
        open(&policies, &store, Settings { compactor_options: Some(eager_compaction()), ..settings() }).await;
    fill_tables(&db, 6, 400).await;
    wait_for_compaction(&db).await;
    db.close().await.expect("it can be closed");
    let (reader, recorder) = open_reader(Some(&policies), &store).await;
    let tables = reader.manifest().all_sst_views().count();
    for number in 0..2_000_u64 {
        let range = (number * 1000 + 300).to_be_bytes()..=(number * 1000 + 310).to_be_bytes();
        assert!(collect(reader.scan(range).await.expect("a scan")).await.is_empty());
    }
    let counts = FilterMetrics::read(&recorder).ranges;
    assert!(counts.negatives > 1_600 && counts.positives < 400, "{tables} tables: {counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_prefix_is_asked_of_the_filters() {
    // The least number of 400 and 800 tables that are rejected: `auto` knows moments, `prefix-bloom` sensors.
    for (design, parts_min, prefixes_min) in [("auto@16", 380, 0), ("prefix-bloom:bytes=4@14", 0, 760)] {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let policies = policies(design);
        let db = open(&policies, &store, settings()).await;
        for table in 0..4_u32 {
            for event in 0..1_000_u32 {
                // Each table has all even sensors.
                let (sensor, moment) = (event % 50 * 2, (event / 50 * 4 + table) * 100_000);
                db.put([sensor.to_be_bytes(), moment.to_be_bytes()].concat(), b"value").await.expect("a put");
            }
            flush(&db).await;
        }
        db.close().await.expect("it can be closed");
        let (reader, recorder) = open_reader(Some(&policies), &store).await;
        let is_empty = async |sensor: u32, part: (Bound<Vec<u8>>, Bound<Vec<u8>>)| {
            collect(reader.scan_prefix(sensor.to_be_bytes(), part).await.expect("a scan")).await.is_empty()
        };
        let moment = |moment: u32| Bound::Included(moment.to_be_bytes().to_vec());
        let mut seen = FilterCounts::default();
        let mut rejected = || {
            let counts = FilterMetrics::read(&recorder).ranges;
            let (negatives, all) = (counts.negatives - seen.negatives, counts.positives - seen.positives);
            seen = counts;
            (negatives, negatives + all)
        };
        for number in 0..100 {
            let from = (number % 70 + 4) * 100_000 + 300;
            // Inside of the key range of each table.
            assert!(is_empty(number % 50 * 2, (moment(from), moment(from + 1_000))).await, "{design}");
        }
        let (negatives, all) = rejected();
        assert_eq!(all, 400, "{design}: each table is asked for each part");
        assert!(negatives >= parts_min, "{design}: {negatives} of {all} for parts of prefixes");
        for number in 0..100 {
            let sensor = number % 49 * 2 + 1;
            assert!(is_empty(sensor, (Bound::Unbounded, Bound::Unbounded)).await, "{design}");
            assert!(is_empty(sensor, (moment(700), Bound::Unbounded)).await, "{design}");
        }
        let (negatives, all) = rejected();
        assert_eq!(all, 800, "{design}: each table is asked for each prefix and each rest");
        assert!(negatives >= prefixes_min, "{design}: {negatives} of {all} for prefixes and their rests");
    }
}

/// Waits until all tables of the first level are in a sorted run.
pub(crate) async fn wait_for_compaction(db: &slatedb::Db) {
    for _ in 0..15_000 {
        db.refresh_manifest().await.expect("the manifest can be read");
        let manifest = db.manifest();
        if manifest.l0().len() <= 1 && !manifest.compacted().is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("no compaction within five minutes");
}
