//! Hotness goes on in the tables that a compaction wrote.

use super::*;
use crate::version::test_support::table;

fn hotness(table: &Table) -> f64 {
    table.slot().hotness().at(table.slot().hotness().epoch())
}

#[test]
fn new_tables_are_as_much_needed_as_those_they_come_from() {
    // 1,000 keys that were asked 500 times, 3,000 that were asked 300 times.
    let (hot, cold) = (table(1, ("a", "f"), 100_000, (1, 2)), table(2, ("a", "z"), 300_000, (3, 4)));
    hot.slot().hotness().set(500.0, 7);
    cold.slot().hotness().set(300.0, 7);
    let new = [table(3, ("a", "f"), 200_000, (1, 4)), table(4, ("g", "z"), 200_000, (1, 4))];
    transfer_hotness(&new, [hot, cold].iter());
    let [first, second] = new.each_ref().map(|table| hotness(table));
    // 1,000 keys at 0.5 and 1,500 at 0.1, for 2,000 keys; and 2,000 keys at 0.1.
    assert!((first - 2_000.0 * (500.0 + 150.0) / 2_500.0).abs() < 1.0, "{first}");
    assert!((second - 200.0).abs() < 1.0, "{second}");
    let flushed = [table(5, ("a", "b"), 1_000, (5, 6))];
    transfer_hotness(&flushed, [].iter());
    assert_eq!(hotness(&flushed[0]), 0.0);
}
