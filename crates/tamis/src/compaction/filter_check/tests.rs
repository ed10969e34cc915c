//! Which counted answers make the filters of a table due for a check.

use tamis_filter::KeyRange;

use super::*;
use crate::observe::query_sample::QueryOutcome;

fn chosen(empty_query_count: u64, range_rate: f64) -> Option<Expected> {
    Some(Expected {
        empty_query_count,
        rates: [f64::NAN, range_rate, f64::NAN],
        was_cut: false,
        kept_count: 0,
        kept_rates: [f64::NAN; 3],
        overlapping_tables: (1, 1),
    })
}

fn kept(count: u32) -> Option<Expected> {
    chosen(5_000, 0.01).map(|expected| Expected { kept_count: count, kept_rates: [1.0; 3], ..expected })
}

/// Answers to closed ranges.
fn ranges(rejected: u64, admitted: u64) -> Answers {
    [EmptyAnswers::default(), EmptyAnswers { rejected, admitted }, EmptyAnswers::default()]
}

/// Answers to open seeks.
fn seeks(rejected: u64, admitted: u64) -> Answers {
    [EmptyAnswers::default(), EmptyAnswers::default(), EmptyAnswers { rejected, admitted }]
}

#[test]
fn the_choice_of_a_quick_search_is_checked_once() {
    let quick = |kept_count| {
        let expected = chosen(5_000, 0.01)?;
        Some(Expected { was_cut: true, kept_count, ..expected })
    };
    assert!(is_due(quick(0), ranges(1_000, 5)) && !is_due(quick(0), ranges(900, 5)));
    assert!(!is_due(chosen(5_000, 0.01), ranges(1_000, 5)));
    assert!(!is_due(quick(1), ranges(100_000, 500)), "a check kept the filters");
}

#[test]
fn filters_with_the_expected_rate_are_not_due() {
    assert!(!is_due(chosen(5_000, 0.01), ranges(9_900, 100)));
    assert!(!is_due(chosen(5_000, 0.01), ranges(520, 80)), "600 answers do not determine a rate");
}

/// Keys that are there tell nothing about a rate, but pay for the filters.
#[test]
fn filters_that_are_asked_often_are_due_regardless_of_the_answers() {
    let is_due = |expected, query_count| is_due_by_queries(expected, query_count, 500_000);
    assert!(!is_due(chosen(5_000, 0.01), 499_999) && is_due(chosen(5_000, 0.01), 500_000));
    assert!(!is_due(kept(1), 999_999) && is_due(kept(1), 1_000_000));
    assert!(!is_due(None, u64::MAX), "given filters stay");
    assert!(
        !is_due_by_queries(chosen(5_000, 0.01), 199_999, 1_000),
        "a check takes a time for few keys, too"
    );
}

#[test]
fn filters_far_from_the_expected_rate_are_due_early() {
    assert!(!is_due(chosen(5_000, 0.01), ranges(149, 50)));
    assert!(is_due(chosen(5_000, 0.01), ranges(150, 50)));
    assert!(!is_due(kept(1), ranges(150, 50)));
    assert!(is_due(kept(1), ranges(300, 100)));
}

#[test]
fn filters_are_due_with_three_times_the_expected_rate() {
    assert!(!is_due(chosen(5_000, 0.01), ranges(9_700, 300)));
    assert!(is_due(chosen(5_000, 0.01), ranges(9_600, 400)));
    let points =
        [EmptyAnswers { rejected: 900, admitted: 101 }, EmptyAnswers::default(), EmptyAnswers::default()];
    assert!(is_due(chosen(5_000, 0.01), points), "no rate was expected of points");
}

#[test]
fn filters_without_a_sample_are_due_soon_and_others_after_many_answers() {
    assert!(is_due(chosen(10, 0.01), ranges(1_000, 0)));
    assert!(!is_due(chosen(10, 0.01), ranges(999, 0)));
    assert!(is_due(None, ranges(1_000, 0)), "the store did not choose them");
    assert!(!is_due(chosen(5_000, 0.01), ranges(199_999, 0)));
    assert!(is_due(chosen(5_000, 0.01), ranges(200_000, 0)));
}

#[test]
fn each_check_that_keeps_the_filters_doubles_the_answers_until_the_next_one() {
    assert!(is_due(kept(0), ranges(900, 100)));
    assert!(!is_due(kept(1), ranges(900, 100)));
    assert!(is_due(kept(1), ranges(1_800, 200)));
    assert!(!is_due(kept(1), ranges(399_999, 0)));
    assert!(is_due(kept(40), ranges(200_000 << 8, 0)), "not forever");
}

/// Symptom: after a shift some tables kept filters that passed every query, because checks long before it had found no better ones.
#[test]
fn filters_that_checks_kept_are_due_when_they_become_worse_than_at_the_checks() {
    let kept = kept(3).map(|expected| Expected { kept_rates: [f64::NAN, 0.05, f64::NAN], ..expected });
    assert!(!is_due(kept, ranges(1_400, 100)), "as at the checks");
    assert!(!is_due(kept, ranges(150, 45)));
    assert!(is_due(kept, ranges(120, 80)));
    assert!(is_due(kept, ranges(800, 200)));
    let [points, seen, _] = rates_of(&ranges(800, 200));
    assert!(points.is_nan() && seen == 0.2);
}

#[test]
fn filters_that_were_chosen_without_open_seeks_are_due_after_some_that_read_them() {
    assert!(!is_due(chosen(5_000, 0.01), seeks(0, 999)));
    assert!(is_due(chosen(5_000, 0.01), seeks(0, 1_000)));
    assert!(!is_due(kept(1), seeks(0, 1_999)), "a check kept them");
    let with = |rate| chosen(5_000, 0.01).map(|expected| Expected { rates: [0.0, 0.0, rate], ..expected });
    assert!(!is_due(with(1.0), seeks(0, 100_000)), "no filter was worth its memory");
    assert!(!is_due(with(0.01), seeks(100_000, 1_000)));
    assert!(is_due(with(0.01), seeks(900, 100)), "the filters name wrong keys");
}

/// Symptom: filters that were chosen for one run stayed when eight others overlapped, and empty ranges read blocks of them.
#[test]
fn filters_are_due_when_more_tables_overlap_than_they_suit() {
    let overlapping = |rate: f64, overlapping_tables| {
        chosen(5_000, rate).map(|expected| Expected { overlapping_tables, ..expected })
    };
    let is_due_with = |rate, overlap| is_due(overlapping(rate, overlap), ranges(995, 5));
    assert!(!is_due_with(0.01, (1, 1)) && is_due_with(0.01, (1, 9)));
    assert!(!is_due_with(0.01, (9, 9)), "chosen or checked for as many");
    assert!(!is_due_with(0.01, (9, 1)) && !is_due_with(0.001, (1, 9)), "they suit");
    assert!(!is_due(overlapping(0.01, (1, 9)), ranges(900, 5)), "few answers");
    assert!(!is_due_with(0.1, (5, 9)) && is_due_with(0.1, (5, 10)), "no filter was good enough for five");
    let unsampled = overlapping(0.01, (1, 9)).map(|expected| Expected { empty_query_count: 0, ..expected });
    assert!(!is_due(unsampled.map(|expected| Expected { kept_count: 1, ..expected }), ranges(1_000, 0)));
}

/// Symptom: after a shift all tables kept filters of the old queries. An earlier refill counted for every table that was not checked
/// since, however long ago it was.
#[test]
fn filters_are_urgent_once_their_false_positives_took_as_much_time_as_a_check() {
    let cost =
        |admitted, read_ns, kept_count| cost_a_check(500_000, &ranges(0, admitted), read_ns, kept_count);
    assert!(!cost(2_400, 100_000.0, 0) && cost(2_500, 100_000.0, 0), "reads of a device");
    assert!(!cost(120_000, 2_000.0, 0) && cost(125_000, 2_000.0, 0), "reads of memory");
    assert!(!cost(9_900, 100_000.0, 2) && cost(10_000, 100_000.0, 2), "two checks kept the filters");
    assert_eq!(cost(700_000, 100_000.0, 8), cost(700_000, 100_000.0, 60), "checks never end");
    let rejected = ranges(1 << 40, 0);
    assert!(
        !cost_a_check(500_000, &rejected, 100_000.0, 0),
        "queries that the filters rejected cost no read"
    );
    assert!(!cost_a_check(10, &ranges(0, 59), 100_000.0, 0), "a small table");
    assert!(cost_a_check(10, &ranges(0, 60), 100_000.0, 0), "a small table");
}

#[test]
fn a_refill_long_before_a_shift_serves_no_table() {
    let sample = QuerySample::default();
    let record = |count: u32| {
        for number in 0..count {
            let key = number.to_be_bytes();
            sample.record(QueryKind::Range, &KeyRange::closed(&key, &key), 64, QueryOutcome::default());
        }
    };
    let refill = || {
        sample.begin_refill(2_000);
        record(2_000);
    };
    let wrong = DueCheck {
        expected: chosen(1_000, 0.01),
        answers: ranges(500, 500),
        is_urgent: true,
        overlapping_tables: 1,
    };
    let is_outdated = |refills| is_outdated(&sample, &LastCheck { refills, ..LastCheck::default() }, &wrong);
    record(2_000);
    assert!(is_outdated(0));
    refill();
    assert!(!is_outdated(0) && !is_outdated(1), "the refill serves all tables");
    record(1_000);
    assert!(!is_outdated(0), "a table that waits for its check");
    assert!(is_outdated(1), "a table that was checked and is wrong again");
    record(1_000);
    assert!(is_outdated(0), "the queries may have changed since");
}
