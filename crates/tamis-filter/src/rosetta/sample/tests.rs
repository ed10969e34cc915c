//! Samples as input of the model.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use super::{SampleQuery, cases, thinned};
use crate::{KeyRange, KeySet};

#[test]
fn ranges_with_a_key_are_ignored_and_neighbours_determine_the_depth() {
    let mut keys = KeySet::new();
    for key in [0x1000_u64, 0x2000] {
        keys.push(&key.to_be_bytes()).unwrap();
    }
    let bounds: Vec<([u8; 8], [u8; 8])> = [(0x1001_u64, 0x1004_u64), (0x1fff, 0x2000), (5, 6), (9, 9)]
        .map(|(lower, upper)| (lower.to_be_bytes(), upper.to_be_bytes()))
        .to_vec();
    let ranges: Vec<KeyRange<'_>> =
        bounds.iter().map(|(lower, upper)| KeyRange::closed(lower, upper)).collect();
    let cases = cases(&keys, &ranges);
    assert_eq!(cases.len(), 3);
    assert_eq!(cases[0].present, (63, 61));
    assert_eq!(cases[1].present, (51, 51));
    assert!(cases[2].is_point && !cases[1].is_point);
}

#[test]
fn thinning_preserves_the_total_weight() {
    let mut keys = KeySet::new();
    keys.push(&0_u64.to_be_bytes()).unwrap();
    let bounds: Vec<[u8; 8]> = (1..1000_u64).map(|key| (key << 20).to_be_bytes()).collect();
    let ranges: Vec<KeyRange<'_>> = bounds.iter().map(|key| KeyRange::point(key)).collect();
    let all = cases(&keys, &ranges);
    let few = thinned(&all, 500);
    assert!(few.len() < all.len() && few.len() >= 90);
    let weight: f64 = few.iter().map(|case: &SampleQuery<'_>| case.weight).sum();
    assert!((weight - all.len() as f64).abs() < 1e-6);
}
