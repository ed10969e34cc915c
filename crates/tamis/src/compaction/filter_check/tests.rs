//! Which false positives of a table are a loss, and when the sample is refilled before its filters are chosen again.

use tamis_filter::KeyRange;

use super::*;
use crate::{observe::query_sample::QueryOutcome, table::filter_choice::ExpectedCost};

fn choice(rates: Rates) -> FilterChoice {
    FilterChoice {
        chosen: ExpectedCost { rates, ..ExpectedCost::default() },
        runners_up: Vec::new(),
        empty_query_count: 5_000,
        was_cut: false,
        is_for_targets: false,
        overlapping_tables: 1,
    }
}

/// Answers to points, closed ranges and open seeks, each as rejected queries and false positives.
fn answers(kinds: [(u64, u64); 3]) -> EmptyAnswers {
    EmptyAnswers(kinds.map(|(denied, wrong)| FilterAnswers { denied, wrong, ..FilterAnswers::default() }))
}

fn is_unknown(rates: Rates) -> bool {
    rates.iter().all(|rate| rate.is_nan())
}

#[test]
fn false_positives_beyond_the_expected_rate_are_a_loss() {
    let ranges = |denied, wrong| answers([(0, 0), (denied, wrong), (0, 0)]);
    let lost = |found: EmptyAnswers| found.unexpected([f64::NAN, 0.01, f64::NAN]);
    assert_eq!(lost(ranges(9_900, 100)), [0.0; 3], "as expected");
    assert_eq!(lost(ranges(9_999, 1)), [0.0; 3], "better than expected");
    assert_eq!(lost(ranges(9_600, 400)), [0.0, 300.0, 0.0]);
    assert_eq!(
        lost(answers([(900, 100), (0, 0), (0, 7)])),
        [100.0, 0.0, 7.0],
        "no rate was expected of these kinds"
    );
    assert_eq!(ranges(900, 100).unexpected([0.0, 1.0, 0.0]), [0.0; 3], "no filter was worth its memory");
}

#[test]
fn a_rate_far_from_the_expected_one_breaks_a_promise() {
    let breaks = |denied, wrong, kept_count| {
        answers([(0, 0), (denied, wrong), (0, 0)]).breaks([0.0, 0.01, f64::NAN], kept_count)
    };
    assert!(breaks(900, 100, 0) && !breaks(800, 100, 0), "a thousand answers");
    assert!(!breaks(970, 30, 0) && breaks(960, 40, 0), "three times the rate");
    assert!(
        !breaks(1_800, 100, 1) && breaks(1_800, 200, 1),
        "a check that kept the filters doubles the answers"
    );
    assert!(
        answers([(0, 0), (0, 0), (990, 10)]).breaks([0.0, 0.01, f64::NAN], 0),
        "no rate was expected of seeks"
    );
    assert!(!answers([(999, 1), (0, 0), (0, 0)]).breaks([0.0; 3], 0), "a small difference");
}

#[test]
fn answers_before_the_last_check_are_no_loss() {
    let (before, now) = (answers([(5, 7), (10, 20), (0, 0)]), answers([(5, 8), (11, 25), (3, 0)]));
    assert_eq!(now.since(before), answers([(0, 1), (1, 5), (3, 0)]));
    assert_eq!(now.since(before).count(), 10);
    assert_eq!(before.since(now), answers([(0, 0); 3]), "the counters began again");
}

#[test]
fn a_choice_that_did_not_know_the_queries_expects_no_rate() {
    let rates = [0.02, 0.001, 1.0];
    assert_eq!(expected_rates(Some(&choice(rates)), true, 1), rates);
    assert!(is_unknown(expected_rates(None, true, 1)), "the store did not choose the filters");
    let few = FilterChoice { empty_query_count: 99, ..choice(rates) };
    assert!(is_unknown(expected_rates(Some(&few), true, 1)));
    let cut = FilterChoice { was_cut: true, ..choice(rates) };
    assert!(
        is_unknown(expected_rates(Some(&cut), true, 1)),
        "designs were left out while the table was written"
    );
    assert_eq!(expected_rates(Some(&cut), false, 1), rates, "a check has searched them since");
}

/// Symptom: filters that were chosen for one run stayed when eight others overlapped, and empty ranges read blocks of them.
#[test]
fn a_rate_that_is_too_high_for_the_tables_that_overlap_is_not_expected() {
    let expected = |rate: f64, overlapping_before, overlapping| {
        let choice = FilterChoice { overlapping_tables: overlapping_before, ..choice([0.0, rate, 1.0]) };
        expected_rates(Some(&choice), true, overlapping)
    };
    assert!(!is_unknown(expected(0.01, 1, 1)) && is_unknown(expected(0.01, 1, 9)));
    assert!(!is_unknown(expected(0.01, 9, 9)) && !is_unknown(expected(0.01, 9, 1)), "chosen for as many");
}

fn record(sample: &QuerySample, count: u32) {
    for number in 0..count {
        let key = number.to_be_bytes();
        sample.record(QueryKind::Range, &KeyRange::closed(&key, &key), 64, QueryOutcome::default());
    }
}

#[test]
fn the_sample_is_refilled_if_the_queries_that_lose_have_changed() {
    let sample = QuerySample::default();
    let expected = [f64::NAN, 0.01, f64::NAN];
    let needs_refill = |unexpected| needs_refill(&sample, expected, unexpected);
    record(&sample, 100);
    assert!(!needs_refill([0.0, 500.0, 0.0]), "the sample has most of the queries");
    record(&sample, 2_000);
    assert!(needs_refill([0.0, 500.0, 0.0]));
    assert!(!needs_refill([500.0, 0.0, 500.0]), "the choice did not know such queries");
    sample.begin_refill(2_000);
    record(&sample, 2_000);
    assert!(!needs_refill([0.0, 500.0, 0.0]), "the refill serves all tables");
    record(&sample, 2_000);
    assert!(needs_refill([0.0, 500.0, 0.0]), "the queries may have changed since");
}
