use super::*;

const READ_NS: f64 = 1_000.0;

/// Ranges without a key.
fn ranges(tally: &FilterTally, rejected: u32, false_positives: u32) {
    tally.ranges.add_rejected(rejected);
    tally.ranges.add_admitted(false_positives);
    tally.ranges.add_positive(Positive::False, false_positives);
}

#[test]
fn false_positives_beyond_the_expected_ones_are_the_loss() {
    let tally = FilterTally::default();
    ranges(&tally, 9_000, 1_000);
    assert_eq!(tally.measure([f64::NAN, 0.04, f64::NAN], READ_NS), Some(QueryKind::Range));
    assert_eq!(tally.loss().nanoseconds(), 600_000, "1,000 of 10,000 instead of 400");
    assert_eq!(tally.measure([f64::NAN, 0.2, f64::NAN], READ_NS), None);
    assert_eq!(tally.loss().nanoseconds(), 0);
    tally.measure([f64::NAN; 3], READ_NS);
    assert_eq!(tally.loss().nanoseconds(), 1_000_000, "no range was expected");
}

#[test]
fn hits_are_no_loss() {
    let tally = FilterTally::default();
    tally.points.add_admitted(5_000);
    tally.points.add_positive(Positive::True, 5_000);
    assert_eq!(tally.measure([0.0; 3], READ_NS), None);
    assert_eq!((tally.loss().nanoseconds(), tally.empty_query_count()), (0, 0));
}

#[test]
fn a_check_counts_from_zero_and_its_rates_are_expected() {
    let tally = FilterTally::default();
    ranges(&tally, 0, 1_000);
    tally.begin_check(false);
    tally.measure([0.0; 3], READ_NS);
    assert_eq!(tally.loss().nanoseconds(), 0);
    tally.keep([0.0, 0.5, 0.0]);
    ranges(&tally, 500, 500);
    tally.measure([0.0; 3], READ_NS);
    assert_eq!(tally.loss().nanoseconds(), 0, "as expected");
    ranges(&tally, 0, 1_000);
    tally.measure([0.0; 3], READ_NS);
    assert_eq!(tally.loss().nanoseconds(), 500_000, "1,500 of 2,000 instead of 1,000");
}

/// The queries differ from those that were expected, and no filters are better: each check costs twice as much.
#[test]
fn checks_that_do_not_help_are_made_less_and_less_often() {
    let tally = FilterTally::default();
    let mut lost = 0;
    let mut checks = Vec::new();
    while checks.len() < 9 {
        ranges(&tally, 0, 1_000);
        lost += 1;
        tally.measure([0.0; 3], READ_NS);
        if tally.loss().due(2_000_000).is_some() {
            tally.begin_check(false);
            tally.keep([0.0; 3]);
            checks.push(lost);
            lost = 0;
        }
    }
    assert_eq!(checks, [2, 4, 8, 16, 32, 64, 128, 128, 128]);
}

/// Other filters of the table are judged by the loss of those that they replaced.
#[test]
fn other_filters_count_from_zero_and_keep_the_price() {
    let tally = FilterTally::default();
    ranges(&tally, 0, 4_000);
    tally.measure([0.0; 3], READ_NS);
    tally.begin_check(true);
    let other = tally.of_other_filters();
    assert!(other.awaits_repair() && !tally.awaits_repair());
    ranges(&other, 0, 4_000);
    other.measure([0.0; 3], READ_NS);
    assert_eq!(other.loss().nanoseconds(), 4_000_000);
    assert!(other.loss().due(3_000_000).is_none(), "they are as bad: the price doubles");
    assert!(other.loss().due(2_000_000).is_some());
}
