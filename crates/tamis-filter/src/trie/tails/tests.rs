//! Tails of all lengths, and of few, in another order than that of the keys.

use super::{TailBuilder, TailLayout, Tails};

#[test]
fn tails_of_all_lengths_are_found() {
    // The longest tail decides how many bits a length has.
    for (longest, length_bits) in [(0, 0), (1, 1), (2, 2), (7, 3), (8, 4), (14, 4), (15, 4), (60, 4)] {
        let mut builder = TailBuilder::new();
        let tail = |number: usize| vec![number as u8; number * 7 % (longest + 1)];
        (0..200).for_each(|number| builder.push(&tail(number)));
        let mut bytes = Vec::new();
        // In another order than that of the keys.
        let order: Vec<u64> = (0..200).map(|leaf| leaf * 37 % 200).collect();
        let counts = builder.encode(&mut bytes, order.iter().copied()).expect("less than 4 GiB");
        assert_eq!(counts.length_bits, length_bits, "{longest}");
        let layout = TailLayout::new(200, counts).expect("fits");
        assert_eq!(layout.bytes(), Some(bytes.len()));
        let tails = Tails::new(&bytes, &layout);
        for (leaf, ordinal) in (0..).zip(&order) {
            let tail = tail(*ordinal as usize);
            assert_eq!(tails.get(leaf), tail);
            for depth in [0, 3, 9] {
                let key = [&vec![1; depth][..], &tail].concat();
                assert!(tails.is_rest_of(leaf, &key, depth), "{longest} {leaf}");
                let longer = [&key[..], &[1]].concat();
                assert!(!tails.is_rest_of(leaf, &longer, depth), "{longest} {leaf}");
                let Some((last, rest)) = key.split_last().filter(|_| !tail.is_empty()) else { continue };
                assert!(!tails.is_rest_of(leaf, rest, depth), "{longest} {leaf}");
                let other = [rest, &[last ^ 0x40]].concat();
                assert!(!tails.is_rest_of(leaf, &other, depth), "{longest} {leaf}");
            }
        }
        assert_eq!(tails.get(224), b"");
    }
}

#[test]
fn counts_that_no_builder_writes_are_refused() {
    let counts = super::TailCounts { length_bits: 5, ..Default::default() };
    assert!(TailLayout::new(200, counts).is_none());
}
