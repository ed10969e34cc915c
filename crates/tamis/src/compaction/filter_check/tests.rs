//! Which counted answers make the filters of a table due for a check.

use super::*;
use crate::table::filter_choice::ExpectedCost;

fn choice(empty_query_count: u64, range_rate: f64) -> FilterChoice {
    let chosen = ExpectedCost { rates: [f64::NAN, range_rate, f64::NAN], ..ExpectedCost::default() };
    FilterChoice { chosen, empty_query_count, ..FilterChoice::default() }
}

/// Answers to closed ranges.
fn ranges(denied: u64, admitted: u64) -> Answers {
    [EmptyAnswers::default(), EmptyAnswers { denied, admitted }, EmptyAnswers::default()]
}

#[test]
fn filters_with_the_expected_rate_are_not_due() {
    assert!(!is_due(Some(&choice(5_000, 0.01)), ranges(9_900, 100)));
    assert!(!is_due(Some(&choice(5_000, 0.01)), ranges(500, 100)), "600 answers say nothing");
}

#[test]
fn filters_are_due_with_three_times_the_expected_rate() {
    assert!(!is_due(Some(&choice(5_000, 0.01)), ranges(9_700, 300)));
    assert!(is_due(Some(&choice(5_000, 0.01)), ranges(9_600, 400)));
    let points =
        [EmptyAnswers { denied: 900, admitted: 101 }, EmptyAnswers::default(), EmptyAnswers::default()];
    assert!(is_due(Some(&choice(5_000, 0.01)), points), "no rate was expected of points");
}

#[test]
fn filters_without_a_sample_are_due_soon_and_others_after_many_answers() {
    assert!(is_due(Some(&choice(10, 0.01)), ranges(1_000, 0)));
    assert!(!is_due(Some(&choice(10, 0.01)), ranges(999, 0)));
    assert!(is_due(None, ranges(1_000, 0)), "the store did not choose them");
    assert!(!is_due(Some(&choice(5_000, 0.01)), ranges(199_999, 0)));
    assert!(is_due(Some(&choice(5_000, 0.01)), ranges(200_000, 0)));
}
