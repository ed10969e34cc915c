//! Continuing results.

use super::*;

fn configuration(entries: u64) -> Configuration {
    Configuration { entries, commit: "c".to_owned(), ..Configuration::default() }
}

const PLACE: Place = Place { state: "settled", workload: "seek", threads: 1, round: 1 };

fn row(store: &str, digest: u64) -> Row {
    let outcome = Outcome { operations: 10, seconds: 2.0, digest, ..Outcome::default() };
    Row::new(&PLACE, store, Answer { outcome, ..Answer::default() })
}

#[test]
fn results_are_continued_only_with_the_same_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("results.json");
    let mut results = Results::open(&path, configuration(5)).expect("new results");
    results.add(row("tamis", 7)).expect("a row");
    let again = Results::open(&path, configuration(5)).expect("the same results");
    assert!(again.has(&PLACE, "tamis") && !again.has(&PLACE, "redb"));
    assert_eq!(again.rows.first().map(|row| row.rate), Some(5.0));
    let refused = Results::open(&path, configuration(6)).expect_err("another configuration");
    assert!(refused.0.contains("another configuration"), "{refused}");
    let elsewhere = Configuration { processor: "q".to_owned(), ..configuration(5) };
    assert!(Results::open(&path, elsewhere).is_err(), "rows of two machines are not mixed");
}

#[test]
fn different_results_are_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut results =
        Results::open(&folder.path().join("results.json"), configuration(5)).expect("new results");
    results.add(row("tamis", 7)).expect("a row");
    results.add(row("lmdb", 7)).expect("a row");
    assert!(results.check_digests(&PLACE).is_ok());
    results.add(row("redb", 8)).expect("a row");
    assert!(results.check_digests(&PLACE).expect_err("redb differs").0.contains("redb"));
}

#[test]
fn wrong_results_are_rejected() {
    let outcome = Outcome { operations: 10, found: 9, ..Outcome::default() };
    assert!(check_found("get-uniform", "tamis", outcome).is_err());
    assert!(check_found("empty-near", "tamis", outcome).is_err());
    assert!(check_found("seek-50", "tamis", outcome).is_ok());
}
