//! Ranges with and without a common prefix.

use std::ops::Bound::{Excluded, Included, Unbounded};

use proptest::prelude::*;
use tamis_filter::Upper;

use super::*;

fn upper<'a>(lower: Bound<&'a [u8]>, upper: Bound<&'a [u8]>) -> Upper<'a> {
    key_range(lower, upper).upper
}

#[test]
fn bounds_of_a_prefix_become_the_prefix() {
    assert_eq!(key_range(Included(b"ab"), Excluded(b"ac")), KeyRange::prefix(b"ab"));
    assert_eq!(key_range(Included(b"a\xff"), Excluded(b"b")), KeyRange::prefix(b"a\xff"));
    assert_eq!(key_range(Included(b"\xff\xff"), Unbounded), KeyRange::prefix(b"\xff\xff"));
    // The rest of a prefix.
    assert_eq!(upper(Included(b"ab7"), Excluded(b"ac")), Upper::Prefix(b"ab"));
    assert_eq!(upper(Excluded(b"ab\xff7"), Excluded(b"ac")), Upper::Prefix(b"ab\xff"));
}

#[test]
fn other_bounds_stay() {
    assert_eq!(upper(Included(b"ab"), Excluded(b"ad")), Upper::Excluded(b"ad"));
    assert_eq!(upper(Included(b"ab"), Included(b"ac")), Upper::Included(b"ac"));
    assert_eq!(upper(Included(b"ab"), Excluded(b"ab\0")), Upper::Excluded(b"ab\0"));
    assert_eq!(upper(Included(b"ab"), Unbounded), Upper::Open);
    assert_eq!(upper(Unbounded, Excluded(b"a")), Upper::Excluded(b"a"));
    assert_eq!(upper(Unbounded, Unbounded), Upper::Open);
    assert_eq!(upper(Included(b""), Excluded(b"")), Upper::Excluded(b""));
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0_u8, 1, 2, 0xfe, 0xff]), 0..4)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![3 => key().prop_map(Included), 3 => key().prop_map(Excluded), 1 => Just(Unbounded)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn a_range_contains_the_same_keys((lower, upper, key) in (bound(), bound(), key())) {
        let bounds = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        let range = key_range(bounds.0, bounds.1);
        prop_assert_eq!(range.contains(&key), KeyRange::new(bounds.0, bounds.1).contains(&key), "{:?}", range);
    }
}
