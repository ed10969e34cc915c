//! The quartiles of times in any order.

use super::{ExpiryTimes, SAMPLE_COUNT_MAX};

fn quartiles(times: impl IntoIterator<Item = u64>) -> [u64; 5] {
    let mut all = ExpiryTimes::default();
    times.into_iter().for_each(|time| all.add(time));
    assert!(all.sample.len() <= SAMPLE_COUNT_MAX);
    all.quartiles()
}

#[test]
fn few_times_are_exact_and_many_are_near() {
    assert_eq!(quartiles([]), [0; 5]);
    assert_eq!(quartiles([7]), [7; 5]);
    assert_eq!(quartiles([3, 1, 2, 4]), [1, 2, 3, 4, 4]);
    let many = quartiles((0..100_000).map(|number| 1_000 + number * 7_919 % 100_000));
    assert_eq!((many[0], many[4]), (1_000, 100_999));
    for (quarter, time) in (1..).zip(&many[1..4]) {
        assert!(time.abs_diff(1_000 + quarter * 25_000) < 10_000, "{many:?}");
    }
    // Few early ones do not move the quartiles.
    let skewed = quartiles((0..10_000).map(|number| if number % 20 == 0 { number } else { 1_000_000 }));
    assert_eq!(skewed[1..], [1_000_000; 4]);
}
