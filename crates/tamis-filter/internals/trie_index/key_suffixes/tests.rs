//! Suffixes of all lengths, in another order than that of the keys.

use super::{SuffixBuilder, SuffixLayout};

const COUNT: u64 = 200;

fn depth(number: u64) -> usize {
    1 + number as usize % 9
}

fn suffix(number: u64, longest: usize) -> Vec<u8> {
    vec![number as u8; number as usize * 7 % (longest + 1)]
}

/// The encoded suffixes, the numbers of the keys in the order of their leaves, and the layout.
fn encode(longest: usize) -> (Vec<u8>, Vec<u64>, SuffixLayout) {
    let mut builder = SuffixBuilder::new();
    for number in 0..COUNT {
        builder.push(&[vec![1; depth(number)], suffix(number, longest)].concat(), depth(number));
    }
    let mut bytes = Vec::new();
    let order: Vec<u64> = (0..COUNT).map(|leaf| leaf * 37 % COUNT).collect();
    builder.encode(&mut bytes, order.iter().copied());
    let layout = SuffixLayout::new(COUNT, builder.byte_count()).expect("fits");
    (bytes, order, layout)
}

#[test]
fn suffixes_of_all_lengths_are_found() {
    for longest in [0, 1, 2, 7, 8, 14, 15, 60, 70_000] {
        let (bytes, order, layout) = encode(longest);
        assert_eq!(layout.bytes(), Some(bytes.len()));
        for (leaf, number) in (0..).zip(order) {
            assert_eq!(layout.get(&bytes, leaf), suffix(number, longest), "leaf {leaf}, up to {longest}");
        }
        assert_eq!(layout.get(&bytes, COUNT), b"");
    }
}

#[test]
fn a_set_without_leaves_has_no_suffixes() {
    let mut bytes = Vec::new();
    SuffixBuilder::new().encode(&mut bytes, 0..0);
    let layout = SuffixLayout::new(0, 0).expect("fits");
    assert_eq!(layout.bytes(), Some(bytes.len()));
    assert_eq!(layout.get(&bytes, 0), b"");
}

#[test]
fn damaged_ends_do_not_panic() {
    let (bytes, _, layout) = encode(15);
    for change in [1, 0x55, 0x80, 0xff] {
        for step in [1, 3, 8] {
            let mut damaged = bytes.clone();
            damaged.iter_mut().step_by(step).for_each(|byte| *byte ^= change);
            (0..=COUNT).for_each(|leaf| _ = layout.get(&damaged, leaf));
        }
    }
    assert_eq!(layout.get(bytes.get(..40).unwrap_or_default(), 3), b"");
    assert!(SuffixLayout::new(COUNT, u64::MAX).is_none());
}
