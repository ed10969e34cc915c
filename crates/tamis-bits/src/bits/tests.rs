//! Bits come back as they were pushed.

use super::{BitBuilder, Bits};
use proptest::prelude::*;

proptest! {
    #[test]
    fn pushed_words_come_back(words in prop::collection::vec((any::<u64>(), 0u32..=64), 0..100)) {
        let mut builder = BitBuilder::new();
        for (word, width) in &words {
            builder.push_bits(*word, *width);
        }
        let bit_count = builder.len();
        let bytes = builder.finish();
        prop_assert_eq!(bytes.len() as u64, bit_count.div_ceil(8));
        let bits = Bits::new(&bytes, bit_count).expect("long enough");
        let mut position = 0;
        for (word, width) in &words {
            let expected = if *width == 64 { *word } else { word & ((1 << width) - 1) };
            prop_assert_eq!(bits.get_bits(position, *width), expected);
            for bit in 0..u64::from(*width) {
                prop_assert_eq!(bits.get(position + bit), expected >> bit & 1 == 1);
            }
            position += u64::from(*width);
        }
        prop_assert_eq!(bits.get_bits(bit_count, 64), 0);
        let ones: Vec<u64> = (0..bit_count).filter(|index| bits.get(*index)).collect();
        let mut found = Vec::new();
        let mut next = bits.next_one(0);
        while let Some(one) = next {
            found.push(one);
            next = bits.next_one(one + 1);
        }
        prop_assert_eq!(found, ones);
    }
}

#[test]
fn too_few_bytes_are_refused_and_beyond_them_is_zero() {
    assert!(Bits::new(&[0xff], 9).is_none());
    assert!(Bits::new(&[], u64::MAX).is_none());
    let bits = Bits::new(&[0xff], 5).expect("long enough");
    assert!(bits.get(4) && !bits.get(5) && !bits.get(u64::MAX));
    assert_eq!(bits.line(1), [0; 64]);
    assert_eq!(bits.next_one(5), None);
    assert_eq!(bits.next_one(u64::MAX), None);
}

#[test]
fn many_equal_bits_are_pushed_at_once() {
    let mut builder = BitBuilder::new();
    builder.push_many(true, 3);
    builder.push_many(false, 130);
    builder.push_many(true, 70);
    let bit_count = builder.len();
    let bytes = builder.finish();
    let bits = Bits::new(&bytes, bit_count).expect("long enough");
    let ones: Vec<u64> = (0..bit_count).filter(|index| bits.get(*index)).collect();
    assert_eq!(ones, (0..3).chain(133..203).collect::<Vec<_>>());
}
