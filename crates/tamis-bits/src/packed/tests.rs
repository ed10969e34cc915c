//! Integers come back as they went in.

use super::{PackedInts, encode, encoded_bytes};
use proptest::prelude::*;

proptest! {
    #[test]
    fn integers_come_back(width in 0u32..=64, integers in prop::collection::vec(any::<u64>(), 0..200)) {
        let mut bytes = Vec::new();
        encode(&mut bytes, width, integers.iter().copied());
        let count = integers.len() as u64;
        prop_assert_eq!(Some(bytes.len() as u64), encoded_bytes(width, count));
        let (packed, length) = PackedInts::open(&bytes, width, count).expect("whole");
        prop_assert_eq!(length, bytes.len());
        for (index, integer) in integers.iter().enumerate() {
            let expected = if width == 64 { *integer } else { integer & ((1 << width) - 1) };
            prop_assert_eq!(packed.get(index as u64), expected);
        }
        prop_assert_eq!(packed.get(count), 0);
        prop_assert!(PackedInts::open(&bytes, width, count + 65).is_none() || width == 0);
    }
}

#[test]
fn impossible_sizes_are_refused() {
    assert!(PackedInts::open(&[0; 64], 65, 1).is_none());
    assert!(PackedInts::open(&[0; 64], 64, u64::MAX).is_none());
}
