//! Integers and runs of them compared with a sorted set, and damaged counts.

use std::collections::BTreeSet;

use super::{BLOCK_BITS, BitmapShape, encode, encoded_bytes};

fn encoded(last: u64, integers: &BTreeSet<u64>) -> Vec<u8> {
    let mut target = vec![7];
    encode(&mut target, last, integers.iter().copied());
    assert_eq!(target.len() as u64, encoded_bytes(last) + 1);
    target.split_off(1)
}

/// Positions at which a run may begin or end: near words, blocks, integers and the end.
fn places(last: u64, integers: &BTreeSet<u64>) -> Vec<u64> {
    let edges = [0, 63, 64, 128, BLOCK_BITS, 2 * BLOCK_BITS, 3 * BLOCK_BITS, last, last + 70];
    let about = edges.into_iter().chain(integers.iter().copied().step_by(integers.len() / 20 + 1));
    about.flat_map(|place| [place.saturating_sub(1), place, place + 1]).collect()
}

fn check(last: u64, integers: impl IntoIterator<Item = u64>) {
    let integers: BTreeSet<u64> = integers.into_iter().collect();
    let bytes = encoded(last, &integers);
    let shape = BitmapShape::new(last).expect("small");
    assert_eq!(shape.length(), bytes.len());
    let set = shape.view(&bytes).expect("whole");
    let places = places(last, &integers);
    for first in &places {
        assert_eq!(set.contains(*first), integers.contains(first), "{first}");
        for end in &places {
            let expected = first <= end && integers.range(first..=end).next().is_some();
            assert_eq!(set.has_between(*first, *end), expected, "{first}..={end} up to {last}");
        }
    }
}

#[test]
fn runs_equal_those_of_a_sorted_set() {
    for last in [0, 1, 62, 63, 64, 1000, BLOCK_BITS - 1, BLOCK_BITS, 5 * BLOCK_BITS + 77] {
        check(last, [last]);
        check(last, [0, last]);
        check(last, 0..=last.min(300));
        check(last, (0..=last).step_by(97).chain([last]));
        check(last, (0..=last).filter(|integer| integer / BLOCK_BITS % 2 == 1).chain([last]));
    }
}

#[test]
fn damaged_counts_cause_no_panic() {
    let last = 3 * BLOCK_BITS;
    let bytes = encoded(last, &(0..=last).step_by(1000).collect());
    let shape = BitmapShape::new(last).expect("small");
    for cut in [0, 8, bytes.len() - 1] {
        assert!(bytes.get(..cut).is_none_or(|bytes| shape.view(bytes).is_none()));
    }
    let damaged: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    let set = shape.view(&damaged).expect("whole");
    assert!(set.has_between(0, u64::MAX));
    assert!(!set.has_between(u64::MAX, u64::MAX));
    assert!(BitmapShape::new(u64::MAX).is_none_or(|shape| shape.view(&bytes).is_none()));
}
