//! Tables.

use super::{
    between_markers,
    summary::{Summary, median_of},
    table,
};
use crate::{
    pass::Outcome,
    results::{Configuration, Place, Results, Row},
    worker::Answer,
};

#[test]
fn text_between_the_markers_is_replaced() {
    let page = "a\n<!-- begin main -->\nold\n<!-- end main -->\nb\n";
    let expected = "a\n<!-- begin main -->\n\nnew\n<!-- end main -->\nb\n";
    assert_eq!(between_markers(page, "main", "new").as_deref(), Some(expected));
    assert_eq!(between_markers(page, "other", "new"), None);
}

#[test]
fn median_and_spread_are_computed() {
    let of = |values: &[f64]| median_of(values.to_vec()).map(|found| (found.median, found.spread));
    assert_eq!(of(&[3.0, 1.0, 2.0]), Some((2.0, 1.0)));
    assert_eq!(of(&[1.0, 3.0]), Some((2.0, 1.0)));
    assert_eq!(of(&[]), None);
}

/// Results of one round with the given operations per second and write amplification of each store.
fn results(path: &std::path::Path, rates: &[(&str, u64, f64)]) -> Results {
    let mut results = Results::open(path, Configuration::default()).expect("new results");
    let place = Place { state: "fill", workload: "fill-random", threads: 1, round: 1 };
    for &(store, operations, write_amplification) in rates {
        let outcome = Outcome { operations, seconds: 1.0, ..Outcome::default() };
        let answer = Answer { outcome, write_amplification, ..Answer::default() };
        results.add(Row::new(&place, store, answer)).expect("a row");
    }
    results
}

#[test]
fn missed_targets_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let missed = |name: &str, rates: &[(&str, u64, f64)]| {
        let summary = Summary::new(&results(&folder.path().join(name), rates));
        let lines = summary.rates.iter().flat_map(|line| line.missed.clone());
        lines.chain(summary.costs.iter().flat_map(|cost| cost.missed.clone())).collect::<Vec<_>>()
    };
    let good = [("tamis", 300, 4.0), ("rocksdb", 150, 4.5), ("rocksdb-tuned", 200, 4.0), ("redb", 10, 9.0)];
    assert!(missed("good.json", &good).is_empty());
    let slow =
        [("tamis", 290, 4.0), ("rocksdb", 150, 4.5), ("rocksdb-tuned", 200, 4.0), ("leveldb", 300, 9.0)];
    assert_eq!(missed("slow.json", &slow), ["RocksDB 1.45 < 1.5", "leveldb 0.97 < 0.97"]);
    let heavy = [("tamis", 300, 4.2), ("rocksdb", 150, 4.5), ("rocksdb-tuned", 200, 4.0)];
    assert_eq!(missed("heavy.json", &heavy), ["RocksDB 1.05 > 1"]);
}

#[test]
fn every_measured_store_has_a_ratio() {
    let folder = tempfile::tempdir().expect("a folder");
    let rates = [("tamis", 300, 4.0), ("rocksdb", 150, 4.5), ("redb", 10, 9.0)];
    let summary = Summary::new(&results(&folder.path().join("results.json"), &rates));
    let text = table::all(&summary);
    assert!(text.contains("to redb") && text.contains("| 30.00 |") && !text.contains("to LMDB"), "{text}");
    let json = serde_json::to_value(&summary).expect("JSON");
    assert_eq!(json.pointer("/rates/0/ratios/redb").and_then(serde_json::Value::as_f64), Some(30.0));
}
