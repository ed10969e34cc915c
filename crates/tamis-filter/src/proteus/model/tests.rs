//! The expected shares beyond a sample.

use super::Near;

fn near(reached: &[u64], total: usize) -> Near {
    Near::of_reached(reached.to_vec(), total, reached.len() as u32 - 2)
}

fn hidden(reached: &[u64], bits: u32) -> f64 {
    near(reached, 20_000).hidden(bits) * 20_000.0
}

#[test]
fn counted_keys_outweigh_the_prior() {
    // Half of 29 is 14.5 and ten were counted: the estimate is at most one more, not 4.5 more.
    let near_keys = [20_000, 29, 10, 0, 0, 0];
    assert_eq!(hidden(&near_keys, 1), 0.0);
    assert!((0.0..1.1).contains(&hidden(&near_keys, 2)));
    // The prior is five and none was counted: the estimate is low, but not zero.
    assert!((1.0..4.0).contains(&hidden(&near_keys, 3)));
}

#[test]
fn a_share_without_counts_halves_with_each_bit() {
    let counts = [20_000, 16, 4, 0, 0, 0, 0, 0];
    let expected: Vec<f64> = (3..6).map(|bits| hidden(&counts, bits)).collect();
    let halves = |pair: &[f64]| matches!(pair, [before, after] if *after > 0.0 && *after < before * 0.51);
    assert!(expected.windows(2).all(halves), "{expected:?}");
    // A sample of one query has a weak prior.
    let one = near(&[1, 1, 1, 1, 0, 0, 0, 0], 1);
    assert_eq!(one.hidden(3), 0.0);
    assert!(one.hidden(4) > 0.0 && one.hidden(4) < 0.5);
    // An empty query never has all bits in common with a key.
    assert_eq!((hidden(&counts, 6), hidden(&counts, 7)), (0.0, 0.0));
}
