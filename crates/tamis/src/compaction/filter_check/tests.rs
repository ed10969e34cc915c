//! Which counted answers make the filters of a table due for a check.

use super::*;

fn chosen(empty_query_count: u64, range_rate: f64) -> Option<Expected> {
    Some(Expected { empty_query_count, rates: [f64::NAN, range_rate, f64::NAN], kept_count: 0 })
}

fn kept(count: u32) -> Option<Expected> {
    chosen(5_000, 0.01).map(|expected| Expected { kept_count: count, ..expected })
}

/// Answers to closed ranges.
fn ranges(denied: u64, admitted: u64) -> Activity {
    Activity { answers: [EmptyAnswers::default(), EmptyAnswers { denied, admitted }], seeks: 0 }
}

#[test]
fn filters_with_the_expected_rate_are_not_due() {
    assert!(!is_due(chosen(5_000, 0.01), ranges(9_900, 100)));
    assert!(!is_due(chosen(5_000, 0.01), ranges(500, 100)), "600 answers say nothing");
}

#[test]
fn filters_are_due_with_three_times_the_expected_rate() {
    assert!(!is_due(chosen(5_000, 0.01), ranges(9_700, 300)));
    assert!(is_due(chosen(5_000, 0.01), ranges(9_600, 400)));
    let points = Activity {
        answers: [EmptyAnswers { denied: 900, admitted: 101 }, EmptyAnswers::default()],
        seeks: 0,
    };
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
    assert!(is_due(kept(0), ranges(600, 400)));
    assert!(!is_due(kept(1), ranges(600, 400)));
    assert!(is_due(kept(1), ranges(1_200, 800)));
    assert!(!is_due(kept(1), ranges(399_999, 0)));
    assert!(is_due(kept(40), ranges(200_000 << 8, 0)), "not forever");
}

#[test]
fn filters_that_were_chosen_without_open_seeks_are_due_after_some() {
    let seeks = |seeks: u64| Activity { seeks, ..Activity::default() };
    assert!(!is_due(chosen(5_000, 0.01), seeks(9_999)));
    assert!(is_due(chosen(5_000, 0.01), seeks(10_000)));
    let with_seeks = chosen(5_000, 0.01).map(|expected| Expected { rates: [0.0; 3], ..expected });
    assert!(!is_due(with_seeks, seeks(1_000_000)));
}
