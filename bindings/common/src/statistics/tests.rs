//! The JSON has the fields of the statistics.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use std::{collections::BTreeSet, fmt::Debug};

use super::*;

/// The names of the fields of a structure, but not those of structures in it.
fn names(value: &impl Debug) -> BTreeSet<String> {
    let text = format!("{value:#?}");
    let fields = text.lines().filter_map(|line| line.strip_prefix("    "));
    let own = fields.filter(|line| !line.starts_with([' ', '}', ']']));
    own.filter_map(|line| line.split_once(':')).map(|(name, _)| name.to_owned()).collect()
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

fn is_in(name: &String, keys: &BTreeSet<String>) -> bool {
    keys.contains(name) || keys.contains(&format!("{name}_seconds"))
}

fn missing(value: &impl Debug, json: &Value) -> Vec<String> {
    let keys = keys(json);
    names(value).into_iter().filter(|name| !is_in(name, &keys)).collect()
}

#[test]
fn every_field_of_the_statistics_is_in_the_json() {
    let none: [&str; 0] = [];
    assert!(names(&Statistics::default()).len() > 50, "the names are found");
    assert_eq!(missing(&Statistics::default(), &to_json(&Statistics::default())), none);
    let decisions = Statistics::default().partition_decisions;
    let of_decisions = &to_json(&Statistics::default())["partition_decisions"];
    assert_eq!(missing(&decisions, of_decisions), none);
    assert_eq!(missing(&decisions.major, &of_decisions["major"]), none);
    let level = LevelReads::default();
    assert_eq!(missing(&level, &level_reads(&level)), none);
    assert_eq!(missing(&level.points, &level_reads(&level)["points"]), none);
    let one = KeyspaceStatistics::default();
    assert_eq!(missing(&one, &keyspace(&one)), ["partitions"], "their bounds are bytes");
    assert_eq!(missing(&one.sample, &keyspace(&one)["sample"]), none);
    assert_eq!(missing(&one.sample.points, &keyspace(&one)["sample"]["points"]), none);
    assert_eq!(missing(&one.views, &keyspace(&one)["views"]), none);
}
