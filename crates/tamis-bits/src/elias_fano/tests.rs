//! Integers by index and by value compared with a sorted vector.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::{EliasFano, EliasFanoShape, encode, encode_marked, encoded_bytes, encoded_marked_bytes};
use proptest::prelude::*;

fn check(integers: &[u64]) {
    let mut bytes = Vec::new();
    let count = integers.len() as u64;
    let last = integers.last().copied().unwrap_or(0);
    encode(&mut bytes, count, last, integers.iter().copied());
    assert_eq!(encoded_bytes(count, last), Some(bytes.len() as u64));
    let (encoded, length) = EliasFano::open(&bytes, count, last).expect("whole");
    assert_eq!(length, bytes.len());
    let shape = EliasFanoShape::new(count, last).expect("possible");
    assert_eq!(shape.view(&bytes).expect("whole").len(), count);
    let mut with_marks = Vec::new();
    encode_marked(&mut with_marks, count, last, integers.iter().copied());
    assert_eq!(encoded_marked_bytes(count, last), Some(with_marks.len() as u64));
    assert!(with_marks.starts_with(&bytes));
    for (index, integer) in integers.iter().enumerate() {
        assert_eq!(encoded.get(index as u64), Some(*integer));
    }
    assert_eq!(encoded.get(count), None);
    let around =
        integers.iter().flat_map(|integer| [integer.wrapping_sub(1), *integer, integer.wrapping_add(1)]);
    for value in around.chain([0, 1, u64::MAX / 2, u64::MAX]) {
        let index = integers.partition_point(|integer| *integer < value);
        let expected = integers.get(index).map(|integer| (index as u64, *integer));
        assert_eq!(encoded.successor(value), expected, "{value} in {integers:?}");
    }
}

/// Ascending integers, many small or few large ones.
pub(super) fn ascending() -> impl Strategy<Value = Vec<u64>> {
    (prop::collection::vec(any::<u64>(), 0..300), 0u32..64).prop_map(|(mut integers, shift)| {
        integers.iter_mut().for_each(|integer| *integer >>= shift);
        integers.sort_unstable();
        integers
    })
}

proptest! {
    #[test]
    fn integers_are_found(integers in ascending()) {
        check(&integers);
    }
}

#[test]
fn extreme_sets_of_integers_are_decoded_as_they_were_encoded() {
    check(&[]);
    check(&[0]);
    check(&[u64::MAX]);
    check(&[0, u64::MAX]);
    check(&[5; 1000]);
    check(&[u64::MAX; 3]);
    check(&(0..5000).collect::<Vec<_>>());
    check(&(0..5000).map(|index| index * index * 1_000_000_007).collect::<Vec<_>>());
    // Evenly distributed.
    let mut state = 7_u64;
    let mut even: Vec<u64> = (0..20_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 40
        })
        .collect();
    even.sort_unstable();
    check(&even);
}

#[test]
fn damaged_bytes_are_refused_or_decoded_without_a_panic() {
    let integers: Vec<u64> = (0..3000).map(|index| index * 1000).collect();
    let mut bytes = Vec::new();
    encode(&mut bytes, 3000, 2_999_000, integers.iter().copied());
    for offset in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[offset] ^= 0xff;
        for (count, last) in [(3000, 2_999_000), (2999, 2_999_000), (3000, 1 << 40), (1 << 40, 1 << 50)] {
            let Some((encoded, _)) = EliasFano::open(&damaged, count, last) else { continue };
            for value in (0..3_100_000).step_by(99_991) {
                let _ = encoded.successor(value);
                let _ = encoded.get(value);
            }
        }
    }
    assert!(EliasFano::open(&[0; 8], 1 << 60, 1 << 62).is_none());
    assert!(EliasFano::open(&[], u64::MAX, u64::MAX).is_none());
}
