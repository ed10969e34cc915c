//! Sums of lengths, and tails of all lengths in another order than that of the keys.

use super::{TailBuilder, TailLayout, Tails, sum_of_nibbles};

#[test]
fn nibbles_are_summed() {
    assert_eq!(sum_of_nibbles(u128::MAX), 480);
    assert_eq!(sum_of_nibbles(0x1234_5678_9abc_def0), 120);
    assert_eq!(sum_of_nibbles(0xf << 124), 15);
}

#[test]
fn tails_of_all_lengths_are_found() {
    let mut builder = TailBuilder::new();
    let tail =
        |number: usize| vec![number as u8; if number % 7 == 3 { 14 + number % 40 } else { number % 16 }];
    (0..200).for_each(|number| builder.push(&tail(number)));
    let mut bytes = Vec::new();
    // In another order than that of the keys.
    let order: Vec<u64> = (0..200).map(|leaf| leaf * 37 % 200).collect();
    let (short, long) = builder.encode(&mut bytes, order.iter().copied()).expect("less than 4 GiB");
    let layout = TailLayout::new(200, short, long).expect("fits");
    assert_eq!(layout.bytes(), Some(bytes.len()));
    let tails = Tails::new(&bytes, &layout);
    for (leaf, ordinal) in (0..).zip(&order) {
        assert_eq!(tails.get(leaf), tail(*ordinal as usize));
    }
    assert_eq!(tails.get(224), b"");
}
