//! What is expected beyond a sample.

use super::Near;

fn hidden(reached: &[u64], bits: u32) -> f64 {
    Near::of_reached(reached, 20_000).hidden(bits) * 20_000.0
}

#[test]
fn what_was_counted_outweighs_what_was_expected() {
    // Ten of the fourteen and a half that would be half of 29: one more at most is to be expected, not four and a half.
    let near_keys = [20_000, 29, 10, 0, 0, 0];
    assert_eq!(hidden(&near_keys, 1), 0.0);
    assert!((0.0..1.1).contains(&hidden(&near_keys, 2)));
    // None of five: most of the five are not to be expected, but some are.
    assert!((1.0..4.0).contains(&hidden(&near_keys, 3)));
}

#[test]
fn a_share_that_nothing_tells_about_halves() {
    let counts = [20_000, 16, 4, 0, 0, 0, 0, 0];
    let expected: Vec<f64> = (3..6).map(|bits| hidden(&counts, bits)).collect();
    let halves = |pair: &[f64]| matches!(pair, [before, after] if *after > 0.0 && *after < before * 0.51);
    assert!(expected.windows(2).all(halves), "{expected:?}");
    // With a sample of one query there is no other to expect much of.
    let one = Near::of_reached(&[1, 1, 1, 1, 0, 0, 0, 0], 1);
    assert_eq!(one.hidden(3), 0.0);
    assert!(one.hidden(4) > 0.0 && one.hidden(4) < 0.5);
    // Nothing that is no key shares all bits with one.
    assert_eq!((hidden(&counts, 6), hidden(&counts, 7)), (0.0, 0.0));
}
