//! The outputs of a compaction start with the hotness of its inputs.

use super::*;
use crate::version::test_support::table;

fn hotness(table: &Table) -> f64 {
    table.slot().hotness().at(table.slot().hotness().epoch())
}

#[test]
fn outputs_start_with_the_hotness_of_their_inputs() {
    // 1,000 keys with 500 lookups, and 3,000 keys with 300 lookups.
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

/// Each output searched all inputs and all outputs.
#[test]
fn inputs_and_outputs_are_matched_in_any_order_and_where_outputs_overlap() {
    let keys = |number: usize| (format!("{number:04}a"), format!("{number:04}m"));
    let named = |number: usize, file: u64| {
        let (smallest, largest) = keys(number);
        table(file, (&smallest, &largest), 100_000, (1, 2))
    };
    let inputs: Vec<_> = (0..100).map(|number| named(number, number as u64)).collect();
    for (number, input) in inputs.iter().enumerate() {
        input.slot().hotness().set(number as f64, 3);
    }
    let outputs: Vec<_> = (0..100).rev().map(|number| named(number, 500 + number as u64)).collect();
    transfer_hotness(&outputs, inputs.iter());
    for (output, expected) in outputs.iter().zip((0..100).rev()) {
        assert!((hotness(output) - f64::from(expected)).abs() < 1e-6);
    }
    // The first output covers all inputs, the second only the last one.
    let wide = [table(900, ("0000a", "0099m"), 300_000, (1, 2)), named(99, 901)];
    transfer_hotness(&wide, inputs.iter());
    let [wide, last] = wide.each_ref().map(|table| hotness(table));
    assert!((last - 99.0).abs() < 1.0, "{last}");
    assert!(wide > 0.0);
}

#[test]
fn output_tables_inherit_hotness_in_proportion_to_keys() {
    let hot = Ancestor { hotness: 900.0, key_count: 100, shared_count: 50.0 };
    let cold = Ancestor { hotness: 0.0, key_count: 100, shared_count: 50.0 };
    assert!((inherited_hotness(100, &[hot, cold]) - 450.0).abs() < 1e-9);
    assert!((inherited_hotness(50, &[hot]) - 450.0).abs() < 1e-9);
    assert_eq!(inherited_hotness(50, &[]), 0.0);
}
