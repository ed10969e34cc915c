#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::{collections::BTreeSet, sync::LazyLock};

use tamis_bench::{Catalog, Fields, MeasuredRow, Needs, RunOptions, Silent, Size, Value, run};

use super::definitions::catalog;

static EXPERIMENTS: LazyLock<Catalog> = LazyLock::new(|| catalog().unwrap());

#[test]
fn names_are_distinct_and_start_with_their_group() {
    let names: Vec<&str> = EXPERIMENTS.all().map(|definition| definition.name).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    for name in names {
        let group = name.split('-').next().unwrap();
        assert!(
            ["store", "delete", "view", "layout", "auto", "bloom", "surf", "rosetta", "proteus", "remix"]
                .contains(&group),
            "{name}"
        );
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
        assert_eq!(EXPERIMENTS.find(name).unwrap().name, name);
    }
    let message = EXPERIMENTS.find("bloom-rate").unwrap_err().to_string();
    assert!(message.contains("no experiment named \"bloom-rate\"; there are: "), "{message}");
}

#[test]
fn definitions_are_complete_in_every_size() {
    for definition in EXPERIMENTS.all() {
        assert!(!definition.title.is_empty() && definition.about.len() > 20, "{}", definition.name);
        for size in Size::ALL {
            let points = (definition.points)(size);
            assert!(!points.is_empty(), "{} {size}", definition.name);
            for (index, point) in points.iter().enumerate() {
                let again = points.iter().skip(index + 1).any(|other| other.is_same(point));
                assert!(!again, "{} {size}: duplicate point {point}", definition.name);
            }
            let names: BTreeSet<Vec<&str>> =
                points.iter().map(|point| point.fields().iter().map(|(name, _)| name).collect()).collect();
            assert_eq!(names.len(), 1, "{} {size}: points have different parameters", definition.name);
        }
    }
}

/// Every point of the full size declares its disk and memory.
#[test]
fn every_full_point_has_needs() {
    for definition in EXPERIMENTS.all() {
        for point in (definition.points)(Size::Full) {
            assert_ne!(point.needs(), Needs::default(), "{}: {point}", definition.name);
        }
    }
}

/// The values of the programs of the authors are those of points.
#[test]
fn published_values_have_a_point() {
    for (name, count) in
        [("surf-reference", 4 * 247), ("proteus-reference-words", 4 * 8), ("rosetta-reference", 100)]
    {
        let definition = EXPERIMENTS.find(name).unwrap();
        assert_eq!(definition.paper.len(), count, "{name}");
        let row =
            |point| MeasuredRow { point, metrics: Fields::default(), digest: String::new(), seconds: 0.0 };
        let rows: Vec<MeasuredRow> = (definition.points)(Size::Full).into_iter().map(row).collect();
        for published in definition.paper {
            assert!(rows.iter().any(|row| published.is_of(row)), "{name}: {published:?}");
        }
    }
}

#[test]
fn two_runs_execute_the_same_operations() {
    let definition = EXPERIMENTS.find("bloom-rate-by-bits").unwrap();
    let digest = |seed: u64| {
        let folder = tempfile::tempdir().unwrap();
        let only = vec![("family".to_owned(), "blocked-bloom".to_owned())];
        let options = RunOptions { seed, only, ..RunOptions::new(Size::Small, folder.path()) };
        run(definition, &options, &mut Silent).unwrap().digest
    };
    assert_eq!(digest(7), digest(7));
    assert_ne!(digest(7), digest(8));
}

/// All readers of a point return the same bytes: `measure` compares them.
#[test]
fn views_return_the_entries_of_their_tables() {
    let folder = tempfile::tempdir().unwrap();
    for (name, only) in [
        ("remix-figure-11", [("tables", "8"), ("segment", "32")]),
        ("remix-figure-12", [("tables", "2"), ("segment", "32")]),
        ("remix-figure-13", [("operation", "seek-next-50"), ("segment", "64")]),
        ("remix-table-1", [("workload", "UDB"), ("segment", "32")]),
    ] {
        let only = only.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let options = RunOptions { only, ..RunOptions::new(Size::Small, folder.path()) };
        let report = run(EXPERIMENTS.find(name).unwrap(), &options, &mut Silent).unwrap();
        assert!(report.rows.len() > usize::from(name != "remix-table-1"), "{name}");
        for row in &report.rows {
            let number = |metric: &str| row.get(metric).and_then(Value::as_number).unwrap();
            assert!((2.0..6.0).contains(&number("view_bytes_per_entry")), "{row:?}");
            if name != "remix-table-1" {
                assert!(number("mops") > 0.0 && number("ratio_to_baseline") > 0.0, "{row:?}");
                let blocks = number("blocks_per_operation");
                let is_blind_seek = row.point.text("reader").unwrap() == "view"
                    && row.point.text("operation").unwrap() == "seek";
                assert!(!is_blind_seek || (0.9..1.3).contains(&blocks), "{row:?}");
            }
        }
    }
}

/// Reads that miss a loaded entry fail.
#[test]
fn layouts_are_measured_with_equal_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let measure = |name: &str, only: &[(&str, &str)]| {
        let only = only.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let options = RunOptions { only, ..RunOptions::new(Size::Small, folder.path()) };
        let rows = run(EXPERIMENTS.find(name).unwrap(), &options, &mut Silent).unwrap().rows;
        let layouts: BTreeSet<&str> = rows.iter().map(|row| row.point.text("layout").unwrap()).collect();
        assert!(layouts.into_iter().eq(["leveled", "partitioned", "tiered"]), "{name}");
        rows
    };
    let of = |row: &MeasuredRow, metric: &str| row.get(metric).and_then(Value::as_number).unwrap();
    for (name, only) in [
        ("remix-figure-14", [("value_bytes", "120"), ("pattern", "zipfian")]),
        ("remix-figure-15", [("entries", "2500"), ("steps", "50")]),
        ("remix-figure-18", [("workload", "ycsb-e"), ("value_bytes", "120")]),
    ] {
        for row in measure(name, &only) {
            assert!(of(&row, "mops") > 0.0 && of(&row, "bytes_read") > 0.0, "{name}: {row:?}");
        }
    }
    for (name, only) in [
        ("remix-figure-16", [("pattern", "load")].as_slice()),
        ("remix-figure-17", &[("pattern", "zipfian-composite")]),
    ] {
        for row in measure(name, only) {
            let is_partitioned = row.point.text("layout").unwrap() == "partitioned";
            assert_eq!(of(&row, "partitions") > 1.0, is_partitioned, "{row:?}");
            let amplification = of(&row, "write_amplification");
            assert!((1.5..20.0).contains(&amplification), "{name}: {row:?}");
            let ratio = amplification * 136.0 * of(&row, "entries") / of(&row, "bytes_written");
            assert!((ratio - 1.0).abs() < 1e-9, "{name}: {row:?}");
        }
    }
}

/// With the same answers as without filters: `measure` compares them.
#[test]
fn stores_of_the_papers_and_chosen_filters_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    for (name, only, metric) in [
        ("auto-accuracy", vec![("keys", "tenants")], "ratio"),
        ("auto-strings", vec![("filters", "grafite")], "bits_per_key"),
        ("store-automatic", vec![("part", "load")], "compaction_ratio"),
        ("store-automatic", vec![("part", "sample"), ("queries", "get")], "ratio"),
        ("surf-figure-5", vec![("filters", "auto")], "ns_per_query"),
        ("surf-figure-6", vec![("filters", "auto"), ("queries", "span_99")], "speed_up_over_none"),
        ("rosetta-figure-5", vec![("filters", "auto"), ("queries", "next_8")], "speed_up_over_surf"),
        ("rosetta-figure-6", vec![("filters", "auto"), ("level0_runs", "3")], "fill_ns_per_entry"),
        ("rosetta-figure-9", vec![("filters", "auto"), ("access", "mapped")], "ns_per_query"),
        ("proteus-figure-6", vec![("filters", "auto"), ("keys", "gaps")], "speed_up_over_surf"),
        ("proteus-figure-8", vec![("filters", "auto")], "ns_per_query"),
        ("proteus-figure-9e", vec![("filters", "auto")], "ns_per_query"),
    ] {
        let only = only.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let options = RunOptions { only, ..RunOptions::new(Size::Small, folder.path()) };
        let report = run(EXPERIMENTS.find(name).unwrap(), &options, &mut Silent).unwrap();
        assert!(!report.rows.is_empty(), "{name}");
        for row in &report.rows {
            let number = |metric: &str| row.get(metric).and_then(Value::as_number).unwrap();
            assert!(number(metric) > 0.0, "{name}: {row:?}");
            // The small stores of the other figures have too few queries for a sample.
            if name == "surf-figure-5" {
                assert!(number("blocks_per_query") < 0.2 && number("found") == 0.0, "{row:?}");
            }
        }
        if name == "proteus-figure-8" {
            assert_eq!(report.rows.len(), 20, "batches");
            let ratios = report.rows.iter().filter_map(|row| row.get("ratio_to_new")?.as_number());
            assert_eq!(ratios.count(), 10, "batches of the new queries");
        }
    }
}

#[test]
fn experiments_on_surf_run_with_the_small_size() {
    for (experiment, name, value) in [
        ("surf-reference", "family", "surf-real:bits=4"),
        ("rosetta-reference", "family", "rosetta"),
        ("surf-index", "keys", "emails"),
        ("surf-figure-3", "family", "surf-real:bits=4"),
        ("surf-figure-4", "family", "bloom"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let only = vec![(name.to_owned(), value.to_owned())];
        let options = RunOptions { seed: 3, only, ..RunOptions::new(Size::Small, folder.path()) };
        let report = run(EXPERIMENTS.find(experiment).unwrap(), &options, &mut Silent).unwrap();
        assert!(!report.rows.is_empty(), "{experiment}");
        assert!(report.rows.iter().all(|row| row.get("refused").is_none()), "{experiment}");
    }
}
