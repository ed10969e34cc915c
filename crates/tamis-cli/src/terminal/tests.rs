//! Formatting of numbers.

use super::{bytes, count, rate, seconds};

#[test]
fn numbers_have_separators_and_units() {
    assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!([0, 1023, 1536, 5 << 30].map(bytes), ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]);
    assert_eq!([2.5, 0.0025, 0.000_002_5].map(seconds), ["2.50 s", "2.50 ms", "2.50 us"]);
    assert_eq!(rate(3000, 2.0), "1,500/s");
}

#[test]
fn an_amount_of_one_is_printed_in_the_singular() {
    let entries = [0, 1, 1_200].map(|number| super::amount(number, "entry", "entries"));
    assert_eq!(entries, ["0 entries", "1 entry", "1,200 entries"]);
}
