//! Every pair of bounds over a tiny key space, against the definition.

use std::ops::{Bound, RangeBounds};

use super::KeyRange;

const KEYS: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];

fn ranges() -> Vec<KeyRange> {
    let bounds: Vec<Bound<Vec<u8>>> = KEYS
        .iter()
        .flat_map(|key| [Bound::Included(key.to_vec()), Bound::Excluded(key.to_vec())])
        .chain([Bound::Unbounded])
        .collect();
    bounds
        .iter()
        .flat_map(|lower| bounds.iter().map(|upper| KeyRange { lower: lower.clone(), upper: upper.clone() }))
        .collect()
}

fn contains(range: &KeyRange, key: &[u8]) -> bool {
    (range.lower.clone(), range.upper.clone()).contains(&key.to_vec())
}

#[test]
fn a_key_is_below_above_or_in_a_range_and_reversed_bounds_are_empty() {
    for range in ranges() {
        for key in KEYS {
            let is_inside = !range.is_below(key) && !range.is_above(key);
            assert_eq!(is_inside, contains(&range, key), "{range:?} {key:?}");
            assert!(!(range.is_empty() && is_inside), "{range:?} {key:?}");
        }
    }
    let at = |lower, upper| KeyRange { lower, upper };
    let key = || b"k".to_vec();
    assert!(!at(Bound::Included(key()), Bound::Included(key())).is_empty());
    assert!(at(Bound::Included(key()), Bound::Excluded(key())).is_empty());
    assert!(at(Bound::Excluded(key()), Bound::Included(key())).is_empty());
    assert!(at(Bound::Excluded(key()), Bound::Excluded(key())).is_empty());
    assert!(at(Bound::Included(b"z".to_vec()), Bound::Included(key())).is_empty());
    assert!(!KeyRange::ALL.is_empty());
}

#[test]
fn only_an_included_bound_can_be_the_current_key() {
    for range in ranges() {
        for key in KEYS.into_iter().filter(|key| contains(&range, key)) {
            let has_next = KEYS.iter().any(|other| *other > key && !range.is_above(other));
            let has_previous = KEYS.iter().any(|other| *other < key && !range.is_below(other));
            assert!(!(range.is_at_upper(key) && has_next), "{range:?} {key:?}");
            assert!(!(range.is_at_lower(key) && has_previous), "{range:?} {key:?}");
            assert_eq!(range.is_at_upper(key), range.upper == Bound::Included(key.to_vec()));
            assert_eq!(range.is_at_lower(key), range.lower == Bound::Included(key.to_vec()));
        }
    }
}
