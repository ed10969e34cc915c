//! Empty queries of a sample, and thinned samples.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use super::{EmptyQuery, thinned};
use crate::{KeyRange, KeySet};

#[test]
fn ranges_with_a_key_are_ignored_and_neighbours_determine_the_shared_bits() {
    let mut keys = KeySet::new();
    for key in [0x1000_u64, 0x2000] {
        keys.push(&key.to_be_bytes()).unwrap();
    }
    let bounds: Vec<([u8; 8], [u8; 8])> = [(0x1001_u64, 0x1004_u64), (0x1fff, 0x2000), (5, 6), (9, 9)]
        .map(|(lower, upper)| (lower.to_be_bytes(), upper.to_be_bytes()))
        .to_vec();
    let ranges: Vec<KeyRange<'_>> =
        bounds.iter().map(|(lower, upper)| KeyRange::closed(lower, upper)).collect();
    let queries = EmptyQuery::all_of(&keys, &ranges);
    assert_eq!(queries.len(), 3);
    assert_eq!((queries[0].shared_left, queries[0].shared_right, queries[0].shared_ends), (63, 50, 61));
    assert_eq!((queries[1].shared_left, queries[1].shared_right), (0, 51));
    assert!(queries[2].is_point && !queries[1].is_point);
}

#[test]
fn thinning_preserves_the_total_weight() {
    let mut keys = KeySet::new();
    keys.push(&0_u64.to_be_bytes()).unwrap();
    let bounds: Vec<[u8; 8]> = (1..1000_u64).map(|key| (key << 20).to_be_bytes()).collect();
    let ranges: Vec<KeyRange<'_>> = bounds.iter().map(|key| KeyRange::point(key)).collect();
    let all = EmptyQuery::all_of(&keys, &ranges);
    let few = thinned(&all, 500, 14);
    assert!(few.len() < all.len() && few.len() >= 90);
    let weight: f64 = few.iter().map(|query| query.weight).sum();
    assert!((weight - all.len() as f64).abs() < 1e-6);
    assert_eq!(thinned(&all, 1000, 14).len(), all.len());
}
