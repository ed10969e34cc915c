//! Pushed bits can be read back.

use super::{BitBuilder, Bits};
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_bit_vector_returns_the_pushed_bits(words in prop::collection::vec((any::<u64>(), 0u32..=64), 0..100)) {
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
    }
}

#[test]
fn too_few_bytes_are_refused_and_reads_beyond_them_return_zero() {
    assert!(Bits::new(&[0xff], 9).is_none());
    assert!(Bits::new(&[], u64::MAX).is_none());
    let bits = Bits::new(&[0xff], 5).expect("long enough");
    assert!(bits.get(4) && !bits.get(5) && !bits.get(u64::MAX));
    assert_eq!(bits.line(1), [0; 64]);
}
