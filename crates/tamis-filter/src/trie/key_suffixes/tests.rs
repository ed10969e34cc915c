//! Suffixes of all lengths, and few distinct ones, in another order than that of the keys; and those of keys of one
//! length.

use super::{DICTIONARY, FIXED_LENGTH, KeySuffixes, SuffixBuilder, SuffixCounts, SuffixLayout};

/// The bytes after the suffixes.
const TRAILING: [u8; 16] = [0xee; 16];

fn suffix_of(suffixes: &KeySuffixes<'_>, leaf: u64, depth: usize) -> Vec<u8> {
    suffixes.get(leaf, depth).to_vec()
}

fn equals_rest_of(suffixes: &KeySuffixes<'_>, leaf: u64, key: &[u8], depth: usize) -> bool {
    suffixes.slot(leaf, depth).is_some_and(|slot| slot.equals_rest_of(key, depth))
}

/// Compares with the rest of a key, and with similar strings.
fn check(suffixes: &KeySuffixes<'_>, leaf: u64, key: &[u8], depth: usize) {
    let what = format!("leaf {leaf}, depth {depth}, {key:?}");
    assert_eq!(Some(&suffix_of(suffixes, leaf, depth)[..]), key.get(depth..), "{what}");
    assert!(equals_rest_of(suffixes, leaf, key, depth), "{what}");
    assert!(!equals_rest_of(suffixes, leaf, &[key, &[1]].concat(), depth), "{what}");
    let Some((last, rest)) = key.split_last().filter(|_| key.len() > depth) else { return };
    assert!(!equals_rest_of(suffixes, leaf, rest, depth), "{what}");
    assert!(!equals_rest_of(suffixes, leaf, &[rest, &[last ^ 0x40]].concat(), depth), "{what}");
}

#[test]
fn suffixes_of_all_lengths_are_found() {
    // The longest suffix determines the bits of a length.
    for (longest, length_bits) in [(0, 0), (1, 1), (2, 2), (7, 3), (8, 4), (14, 4), (15, 4), (60, 4)] {
        let mut builder = SuffixBuilder::new();
        let depth = |number: usize| 1 + number % 9;
        let key =
            |number: usize| [vec![1; depth(number)], vec![number as u8; number * 7 % (longest + 1)]].concat();
        (0..200).for_each(|number| builder.push(&key(number), depth(number)));
        let mut bytes = Vec::new();
        // In another order than that of the keys.
        let order: Vec<u64> = (0..200).map(|leaf| leaf * 37 % 200).collect();
        let counts = builder.encode(&mut bytes, order.iter().copied()).expect("less than 4 GiB");
        assert_eq!(counts.length_bits, length_bits, "{longest}");
        let layout = SuffixLayout::new(200, 9, counts).expect("fits");
        assert_eq!(layout.bytes(), Some(bytes.len()));
        bytes.extend_from_slice(&TRAILING);
        let suffixes = KeySuffixes::new(&bytes, 0, &layout);
        for (leaf, number) in (0..).zip(order.iter().map(|ordinal| *ordinal as usize)) {
            check(&suffixes, leaf, &key(number), depth(number));
        }
        assert_eq!(suffix_of(&suffixes, 224, 1), b"");
    }
}

#[test]
fn fixed_length_suffixes_are_found_by_their_depth() {
    for key_bytes in [1, 2, 8, 9, 40] {
        let depth = |number: u64| 1 + number as usize / 70 % key_bytes.min(5);
        let key =
            |number: u64| (0..key_bytes as u64).map(|place| (number * 31 + place) as u8).collect::<Vec<u8>>();
        let mut builder = SuffixBuilder::new();
        (0..700).for_each(|number| builder.push(&key(number), depth(number)));
        // Leaves are in the order of their depth.
        let mut order: Vec<u64> = (0..700).collect();
        order.sort_by_key(|number| (depth(*number), *number));
        let mut bytes = Vec::new();
        let counts = builder.encode(&mut bytes, order.iter().copied()).expect("less than 4 GiB");
        assert_eq!((counts.length_bits, counts.long_bytes), (FIXED_LENGTH, key_bytes as u64));
        let height = order.iter().map(|number| depth(*number)).max().unwrap_or(0);
        let layout = SuffixLayout::new(700, height as u32, counts).expect("fits");
        assert_eq!(layout.bytes(), Some(bytes.len()));
        bytes.extend_from_slice(&TRAILING);
        let suffixes = KeySuffixes::new(&bytes, 0, &layout);
        for (leaf, number) in (0..).zip(&order) {
            check(&suffixes, leaf, &key(*number), depth(*number));
        }
        for depth in [0, height + 1, key_bytes + 1, usize::MAX] {
            assert_eq!(suffix_of(&suffixes, 3, depth), b"", "no leaf has a depth of {depth}");
        }
    }
}

#[test]
fn few_keys_of_one_length_are_grouped_if_that_is_smaller() {
    let mut builder = SuffixBuilder::new();
    (0..3).for_each(|number: u8| builder.push(&[7, 7, 7, 7, 7, 7, 7, number], 8));
    let mut bytes = Vec::new();
    assert_eq!(builder.encode(&mut bytes, 0..3).map(|counts| counts.length_bits), Some(0));
    assert_eq!(bytes.len(), 8);
}

#[test]
fn counts_that_no_builder_writes_are_rejected() {
    for length_bits in [5, 7, 10, 11, 15, u8::MAX] {
        assert!(SuffixLayout::new(200, 4, SuffixCounts { length_bits, ..Default::default() }).is_none());
    }
    // A key has at least as many bytes as the depth of its leaf.
    let counts = SuffixCounts { length_bits: FIXED_LENGTH, long_bytes: 3, short_bytes: 0 };
    assert!(SuffixLayout::new(200, 4, counts).is_none());
}

#[test]
fn shared_suffixes_are_found_in_the_dictionary() {
    let count = 30_000;
    let depth = |number: u64| 1 + number as usize % 5;
    // A few hundred endings, the first of them frequent, some too long for a slot. One that is too long for the pool
    // prevents a dictionary.
    for longest in [9_usize, 40, 255, 256] {
        let ending = |number: u64| -> Vec<u8> {
            let random = crate::mix64(number, 5);
            let kind = if random.is_multiple_of(3) { 300 + (random >> 8) % 900 } else { random >> 8 & 0xff };
            let bytes = (0_u64..).map(|place| (place ^ kind) as u8);
            let length = if kind % 97 == 5 { longest } else { kind as usize % 9 };
            bytes.take(length).chain(kind.to_le_bytes()).take(length.max(2)).collect()
        };
        let key = |number: u64| [vec![1; depth(number)], ending(number)].concat();
        let mut builder = SuffixBuilder::new();
        (0..count).for_each(|number| builder.push(&key(number), depth(number)));
        let order: Vec<u64> = (0..count).map(|leaf| leaf * 7919 % count).collect();
        let mut bytes = Vec::new();
        let counts = builder.encode(&mut bytes, order.iter().copied()).expect("less than 4 GiB");
        assert_eq!(counts.length_bits == DICTIONARY, longest < 256, "{longest}");
        let layout = SuffixLayout::new(count, 6, counts).expect("fits");
        assert_eq!(layout.bytes(), Some(bytes.len()));
        bytes.extend_from_slice(&TRAILING);
        let suffixes = KeySuffixes::new(&bytes, 0, &layout);
        for (leaf, number) in (0..).zip(&order) {
            check(&suffixes, leaf, &key(*number), depth(*number));
        }
        assert_eq!(suffix_of(&suffixes, count, 1), b"");
    }
}

#[test]
fn damaged_dictionary_codes_do_not_panic() {
    let mut builder = SuffixBuilder::new();
    let suffix =
        |number: usize| vec![number as u8 % 7; number % 11 + 300 * usize::from(number % 1000 == 9) / 2];
    (0..20_000).for_each(|number| builder.push(&[&[1][..], &suffix(number)].concat(), 1));
    let mut bytes = Vec::new();
    let counts = builder.encode(&mut bytes, 0..20_000).expect("less than 4 GiB");
    assert_eq!(counts.length_bits, DICTIONARY);
    for change in [1, 0x55, 0xff] {
        let mut damaged: Vec<u8> = bytes.iter().map(|byte| byte ^ change).collect();
        damaged.extend_from_slice(&TRAILING);
        for counts in
            [counts, SuffixCounts { long_bytes: 1, ..counts }, SuffixCounts { short_bytes: 0, ..counts }]
        {
            let layout = SuffixLayout::new(20_000, 2, counts).expect("possible");
            let suffixes = KeySuffixes::new(&damaged, 0, &layout);
            let longest = (0..20_000).map(|leaf| suffix_of(&suffixes, leaf, 1).len()).max();
            assert!(longest.is_some_and(|longest| longest <= 255));
        }
    }
    let counts = SuffixCounts { long_bytes: u64::MAX >> 8, ..counts };
    assert!(SuffixLayout::new(u64::MAX, 2, counts).is_none());
}
