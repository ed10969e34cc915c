//! Encoded integers can be read back.

use super::{PackedInts, PackedVec, encode, encoded_bytes};
use proptest::prelude::*;

proptest! {
    #[test]
    fn integers_are_decoded_as_they_were_encoded(width in 0u32..=64, integers in prop::collection::vec(any::<u64>(), 0..200)) {
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

proptest! {
    #[test]
    fn a_growing_vector_is_readable_and_has_the_same_encoding(
        width in 0u32..=64,
        integers in prop::collection::vec(any::<u64>(), 0..200),
        parts in prop::collection::vec(0usize..70, 0..6),
    ) {
        let mut all = PackedVec::new(width);
        let mut rest = integers.as_slice();
        for part in parts.into_iter().chain([usize::MAX]) {
            let (front, behind) = rest.split_at(part.min(rest.len()));
            let mut others = PackedVec::new(width);
            for integer in front {
                others.push(*integer);
                let expected = if width == 64 { *integer } else { integer & ((1 << width) - 1) };
                prop_assert_eq!(others.get(others.len() - 1), expected);
            }
            prop_assert_eq!(others.iter().count(), front.len());
            all.append(&others);
            rest = behind;
        }
        let (mut encoded, mut expected) = (Vec::new(), Vec::new());
        all.encode(&mut encoded);
        encode(&mut expected, width, integers.iter().copied());
        prop_assert_eq!(encoded, expected);
        prop_assert_eq!((all.len(), all.get(all.len())), (integers.len() as u64, 0));
    }
}

#[test]
fn impossible_sizes_are_refused() {
    assert!(PackedInts::open(&[0; 64], 65, 1).is_none());
    assert!(PackedInts::open(&[0; 64], 64, u64::MAX).is_none());
}
