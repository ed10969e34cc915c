//! Tables.

use tamis_bench::{Point, Value};

use super::{
    between_markers, read,
    summary::{Summary, median_of},
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

/// The summary of a file of results of one round, with the given rate and write amplification of each store.
fn summary(rates: &[(&str, u64, f64)]) -> Summary {
    let settings = Value::from(Point::new().with("entries", 5_u64).with("is_direct", false).fields().clone());
    let rows = rates.iter().map(|&(store, rate, written)| {
        let point = Point::new().with("state", "fill").with("workload", "fill-random").with("threads", 1_u64);
        let point = point.with("round", 1_u64).with("store", store).with("settings", settings.clone());
        serde_json::json!({
            "point": point, "digest": "", "seconds": 1.0,
            "metrics": { "rate": rate, "disk_write_amplification": written },
        })
    });
    let report = serde_json::json!({
        "experiment": "comparison", "title": "", "source": "", "about": "", "size": "full", "seed": 42,
        "is_complete": true, "point_count": 1, "date": "", "digest": "", "comparisons": [],
        "configuration": tamis_bench::Configuration::current(), "machine": tamis_bench::Machine::current(),
        "rows": rows.collect::<Vec<_>>(),
    });
    let file = tempfile::NamedTempFile::new().expect("a file");
    serde_json::to_writer(&file, &report).expect("JSON");
    Summary::new(&read(file.path()).expect("results")).expect("a summary")
}

#[test]
fn missed_targets_are_named() {
    let missed = |rates: &[(&str, u64, f64)]| {
        let summary = summary(rates);
        let lines = summary.rates.iter().flat_map(|line| line.missed.clone());
        lines.chain(summary.costs.iter().flat_map(|cost| cost.missed.clone())).collect::<Vec<_>>()
    };
    let is_built = |name: &str| crate::store::kind_named(name).is_ok();
    let good = [("tamis", 300, 4.0), ("rocksdb", 150, 4.5), ("rocksdb-tuned", 200, 4.0), ("fjall", 10, 9.0)];
    assert!(missed(&good).is_empty());
    if is_built("fjall") {
        assert_eq!(missed(&[("tamis", 290, 4.0), ("fjall", 300, 9.0)]), ["fjall 0.97 < 0.97"]);
    }
    if is_built("rocksdb") {
        let slow = [("tamis", 290, 4.0), ("rocksdb", 150, 4.5), ("rocksdb-tuned", 200, 4.0)];
        assert_eq!(missed(&slow), ["RocksDB 1.45 < 1.5"]);
        let heavy = [("tamis", 300, 4.2), ("rocksdb", 150, 4.5), ("rocksdb-tuned", 200, 4.0)];
        assert_eq!(missed(&heavy), ["RocksDB 1.05 > 1"]);
    }
}

#[test]
#[cfg(feature = "redb")]
fn every_measured_store_has_a_ratio() {
    let summary = summary(&[("tamis", 300, 4.0), ("redb", 10, 9.0)]);
    let text = super::table::all(&summary);
    assert!(text.contains("to redb") && text.contains("| 30.00 |") && !text.contains("to LMDB"), "{text}");
    assert!(text.contains("bytes written per user byte, fill at random | 4.00 | 9.00"), "{text}");
    let json = serde_json::to_value(&summary).expect("JSON");
    assert_eq!(json.pointer("/rates/0/ratios/redb").and_then(serde_json::Value::as_f64), Some(30.0));
}
