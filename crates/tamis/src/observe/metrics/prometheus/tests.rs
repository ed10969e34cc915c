//! The text is valid, complete, and named as Prometheus asks.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Splits a series into its name, its labels and its value; panics if the line is not valid.
fn parse(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let is_name = |text: &str| {
        let mut letters = text.chars();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let (series, value) = line.rsplit_once(' ').unwrap();
    let (name, labels) = match series.split_once('{') {
        None => (series, BTreeMap::new()),
        Some((name, rest)) => (name, parse_labels(rest.strip_suffix('}').unwrap())),
    };
    assert!(is_name(name) && labels.keys().all(|label| is_name(label)), "{line}");
    (name.to_owned(), labels, value.parse().unwrap())
}

fn parse_labels(text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (label, quoted) = rest.split_once("=\"").unwrap();
        let mut value = String::new();
        let mut letters = quoted.char_indices();
        let end = loop {
            match letters.next().unwrap() {
                (end, '"') => break end,
                (_, '\\') => value.push(match letters.next().unwrap().1 {
                    'n' => '\n',
                    escaped => {
                        assert!("\\\"".contains(escaped), "{text}");
                        escaped
                    }
                }),
                (_, letter) => {
                    assert_ne!(letter, '\n');
                    value.push(letter);
                }
            }
        };
        assert!(labels.insert(label.to_owned(), value).is_none(), "{text}");
        rest = &quoted[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    labels
}

/// Statistics with two levels and a keyspace whose name must be escaped.
fn statistics() -> Statistics {
    let level = LevelStatistics { run_count: 2, bytes: 1 << 60, ..LevelStatistics::default() };
    Statistics {
        writes: u64::MAX,
        throttled_microseconds: 1_500_000,
        oldest_snapshot: std::time::Duration::from_millis(250),
        reads: vec![LevelReads { read_nanoseconds: 2_500, ..LevelReads::default() }; 2],
        keyspaces: vec![KeyspaceStatistics {
            name: "a \"b\"\\\n=,{}".to_owned(),
            levels: vec![level; 2],
            ..KeyspaceStatistics::default()
        }],
        ..Statistics::default()
    }
}

#[test]
fn the_text_is_valid_and_its_names_follow_the_conventions() {
    let text = statistics().to_prometheus();
    let mut kinds: BTreeMap<String, String> = BTreeMap::new();
    let mut series = BTreeSet::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(help.ends_with('.') && !help.contains('\\'), "{line}");
            current = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, current, "the help comes first");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} twice");
        } else {
            let (name, labels, value) = parse(line);
            assert_eq!(name, current, "series of a family follow each other");
            assert!(value >= 0.0 && series.insert((name, labels)), "{line}");
        }
    }
    for (name, kind) in &kinds {
        assert!(name.starts_with("tamis_"), "{name}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
        let base = name.trim_end_matches("_total");
        for unit in ["bytes", "seconds"] {
            assert!(!base.contains(unit) || base.ends_with(unit), "{name}: the unit is the end of the name");
        }
        assert!(["micro", "nano", "milli", "kib"].iter().all(|prefix| !name.contains(prefix)), "{name}");
    }
    assert!(text.ends_with('\n') && kinds.len() > 60);
}

#[test]
fn values_have_base_units_and_all_digits() {
    let text = statistics().to_prometheus();
    for line in [
        "tamis_writes_total 18446744073709551615",
        "tamis_throttled_seconds_total 1.5",
        "tamis_oldest_snapshot_seconds 0.25",
        "tamis_table_read_seconds{level=\"1\"} 0.0000025",
        "tamis_level_bytes{keyspace=\"a \\\"b\\\"\\\\\\n=,{}\",level=\"1\"} 1152921504606846976",
        "tamis_filter_answers_total{level=\"0\",reads=\"ranges\",answer=\"rejected\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

/// The fields of a public struct of the statistics.
fn fields(name: &str) -> Vec<&'static str> {
    let source = include_str!("../../metrics.rs");
    let body =
        source.split(&format!("pub struct {name} {{\n")).nth(1).unwrap().split("\n}\n").next().unwrap();
    let lines = body.lines().filter_map(|line| line.strip_prefix("    pub "));
    lines.map(|line| line.split(':').next().unwrap()).collect()
}

#[test]
fn every_statistic_is_in_the_text() {
    let source = include_str!("../prometheus.rs");
    let statistics = Statistics::default();
    let counted: BTreeSet<&str> =
        statistics.counters().chain(statistics.gauges()).map(|(name, ..)| name).collect();
    let text = format!("{statistics:#?}");
    let own = text.lines().filter_map(|line| line.strip_prefix("    ")).filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = own.filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    assert!(names.len() > 50);
    for field in names {
        assert!(counted.contains(field) || source.contains(&format!("self.{field}")), "{field} is missing");
    }
    for field in fields("LevelStatistics") {
        assert!(source.contains(&format!("level.{field}")), "{field} is missing");
    }
    for field in fields("ReadStatistics") {
        assert!(source.contains(&format!(".{field}")), "{field} is missing");
    }
}
