//! Tails of all lengths, and of few, in another order than that of the keys; and those of keys of one length.

use super::{CODED, ONE_LENGTH, TailBuilder, TailCounts, TailLayout, Tails};

/// What lies behind the tails.
const BEHIND: [u8; 16] = [0xee; 16];

fn tail_of(tails: &Tails<'_>, leaf: u64, depth: usize) -> Vec<u8> {
    let (own, ending) = tails.get(leaf, depth);
    own.iter().chain(&ending).copied().collect()
}

fn is_rest_of(tails: &Tails<'_>, leaf: u64, key: &[u8], depth: usize) -> bool {
    tails.slot(leaf, depth).is_some_and(|slot| slot.is_rest_of(key, depth))
}

/// Asks for the rest of a key, and for others that resemble it.
fn check(tails: &Tails<'_>, leaf: u64, key: &[u8], depth: usize) {
    let what = format!("leaf {leaf}, depth {depth}, {key:?}");
    assert_eq!(Some(&tail_of(tails, leaf, depth)[..]), key.get(depth..), "{what}");
    assert!(is_rest_of(tails, leaf, key, depth), "{what}");
    assert!(!is_rest_of(tails, leaf, &[key, &[1]].concat(), depth), "{what}");
    let Some((last, rest)) = key.split_last().filter(|_| key.len() > depth) else { return };
    assert!(!is_rest_of(tails, leaf, rest, depth), "{what}");
    assert!(!is_rest_of(tails, leaf, &[rest, &[last ^ 0x40]].concat(), depth), "{what}");
}

#[test]
fn tails_of_all_lengths_are_found() {
    // The longest tail decides how many bits a length has.
    for (longest, length_bits) in [(0, 0), (1, 1), (2, 2), (7, 3), (8, 4), (14, 4), (15, 4), (60, 4)] {
        let mut builder = TailBuilder::new();
        let depth = |number: usize| 1 + number % 9;
        let key =
            |number: usize| [vec![1; depth(number)], vec![number as u8; number * 7 % (longest + 1)]].concat();
        (0..200).for_each(|number| builder.push(&key(number), depth(number)));
        let mut bytes = Vec::new();
        // In another order than that of the keys.
        let order: Vec<u64> = (0..200).map(|leaf| leaf * 37 % 200).collect();
        let counts = builder.encode(&mut bytes, order.iter().copied()).expect("less than 4 GiB");
        assert_eq!(counts.length_bits, length_bits, "{longest}");
        let layout = TailLayout::new(200, 9, counts).expect("fits");
        assert_eq!(layout.bytes(), Some(bytes.len()));
        bytes.extend_from_slice(&BEHIND);
        let tails = Tails::new(&bytes, 0, &layout);
        for (leaf, number) in (0..).zip(order.iter().map(|ordinal| *ordinal as usize)) {
            check(&tails, leaf, &key(number), depth(number));
        }
        assert_eq!(tail_of(&tails, 224, 1), b"");
    }
}

/// Sizes of the short tails tell that the ending is not among them.
#[test]
fn an_ending_that_tails_have_in_common_is_there_once() {
    for longest in [1, 2, 7, 8, 9, 13, 14, 15, 16, 60] {
        let mut builder = TailBuilder::new();
        let depth = |number: usize| 1 + number % 9;
        let length = |number: usize| number * 7 % (longest + 1);
        let key = |number: usize| {
            let rest = (0..length(number)).map(|place| (number * 3 + place) as u8).skip(1);
            let ending = (length(number) > 0).then_some(0xfe);
            [vec![1; depth(number)], rest.chain(ending).collect()].concat()
        };
        (0..200).for_each(|number| builder.push(&key(number), depth(number)));
        let mut bytes = Vec::new();
        let counts =
            builder.encode(&mut bytes, (0..200).map(|leaf| leaf * 37 % 200)).expect("less than 4 GiB");
        assert!((11..=14).contains(&counts.length_bits), "{longest}: {counts:?}");
        let own = |number: usize| length(number).min(15).saturating_sub(1);
        assert_eq!(counts.short_bytes as usize, (0..200).map(own).sum::<usize>(), "{longest}");
        let layout = TailLayout::new(200, 9, counts).expect("fits");
        assert_eq!(layout.bytes(), Some(bytes.len()));
        bytes.extend_from_slice(&BEHIND);
        let tails = Tails::new(&bytes, 0, &layout);
        for leaf in 0..200 {
            let number = leaf as usize * 37 % 200;
            check(&tails, leaf, &key(number), depth(number));
        }
    }
}

#[test]
fn tails_of_keys_of_one_length_are_found_by_their_depth() {
    for key_bytes in [1, 2, 8, 9, 40] {
        let depth = |number: u64| 1 + number as usize / 70 % key_bytes.min(5);
        let key =
            |number: u64| (0..key_bytes as u64).map(|place| (number * 31 + place) as u8).collect::<Vec<u8>>();
        let mut builder = TailBuilder::new();
        (0..700).for_each(|number| builder.push(&key(number), depth(number)));
        // Leaves lie in the order of their depth.
        let mut order: Vec<u64> = (0..700).collect();
        order.sort_by_key(|number| (depth(*number), *number));
        let mut bytes = Vec::new();
        let counts = builder.encode(&mut bytes, order.iter().copied()).expect("less than 4 GiB");
        assert_eq!((counts.length_bits, counts.long_bytes), (ONE_LENGTH, key_bytes as u64));
        let height = order.iter().map(|number| depth(*number)).max().unwrap_or(0);
        let layout = TailLayout::new(700, height as u32, counts).expect("fits");
        assert_eq!(layout.bytes(), Some(bytes.len()));
        bytes.extend_from_slice(&BEHIND);
        let tails = Tails::new(&bytes, 0, &layout);
        for (leaf, number) in (0..).zip(&order) {
            check(&tails, leaf, &key(*number), depth(*number));
        }
        for depth in [0, height + 1, key_bytes + 1, usize::MAX] {
            assert_eq!(tail_of(&tails, 3, depth), b"", "no leaf has a depth of {depth}");
        }
    }
}

#[test]
fn few_keys_of_one_length_keep_lengths_where_that_is_smaller() {
    let mut builder = TailBuilder::new();
    (0..3).for_each(|number: u8| builder.push(&[7, 7, 7, 7, 7, 7, 7, number], 8));
    let mut bytes = Vec::new();
    assert_eq!(builder.encode(&mut bytes, 0..3).map(|counts| counts.length_bits), Some(0));
    assert_eq!(bytes.len(), 8);
}

#[test]
fn counts_that_no_builder_writes_are_refused() {
    for length_bits in [5, 7, 10, 15, u8::MAX] {
        assert!(TailLayout::new(200, 4, TailCounts { length_bits, ..Default::default() }).is_none());
    }
    // A key has at least as many bytes as its leaf is deep.
    let counts = TailCounts { length_bits: ONE_LENGTH, long_bytes: 3, short_bytes: 0 };
    assert!(TailLayout::new(200, 4, counts).is_none());
}

#[test]
fn tails_that_many_keys_have_in_common_are_found_by_their_codes() {
    let count = 30_000;
    let depth = |number: u64| 1 + number as usize % 5;
    // A few hundred endings, the first of them frequent; some too long for a slot. With a key that has one too long, none are coded.
    for longest in [9_usize, 40, 255, 256] {
        let ending = |number: u64| -> Vec<u8> {
            let random = crate::mix64(number, 5);
            let kind = if random.is_multiple_of(3) { 300 + (random >> 8) % 900 } else { random >> 8 & 0xff };
            let bytes = (0_u64..).map(|place| (place ^ kind) as u8);
            let length = if kind % 97 == 5 { longest } else { kind as usize % 9 };
            bytes.take(length).chain(kind.to_le_bytes()).take(length.max(2)).collect()
        };
        let key = |number: u64| [vec![1; depth(number)], ending(number)].concat();
        let mut builder = TailBuilder::new();
        (0..count).for_each(|number| builder.push(&key(number), depth(number)));
        let order: Vec<u64> = (0..count).map(|leaf| leaf * 7919 % count).collect();
        let mut bytes = Vec::new();
        let counts = builder.encode(&mut bytes, order.iter().copied()).expect("less than 4 GiB");
        assert_eq!(counts.length_bits == CODED, longest < 256, "{longest}");
        let layout = TailLayout::new(count, 6, counts).expect("fits");
        assert_eq!(layout.bytes(), Some(bytes.len()));
        bytes.extend_from_slice(&BEHIND);
        let tails = Tails::new(&bytes, 0, &layout);
        for (leaf, number) in (0..).zip(&order) {
            check(&tails, leaf, &key(*number), depth(*number));
        }
        assert_eq!(tail_of(&tails, count, 1), b"");
    }
}

#[test]
fn damaged_codes_are_survived() {
    let mut builder = TailBuilder::new();
    let tail =
        |number: usize| vec![number as u8 % 7; number % 11 + 300 * usize::from(number % 1000 == 9) / 2];
    (0..20_000).for_each(|number| builder.push(&[&[1][..], &tail(number)].concat(), 1));
    let mut bytes = Vec::new();
    let counts = builder.encode(&mut bytes, 0..20_000).expect("less than 4 GiB");
    assert_eq!(counts.length_bits, CODED);
    for change in [1, 0x55, 0xff] {
        let mut damaged: Vec<u8> = bytes.iter().map(|byte| byte ^ change).collect();
        damaged.extend_from_slice(&BEHIND);
        for counts in
            [counts, TailCounts { long_bytes: 1, ..counts }, TailCounts { short_bytes: 0, ..counts }]
        {
            let layout = TailLayout::new(20_000, 2, counts).expect("possible");
            let tails = Tails::new(&damaged, 0, &layout);
            let longest = (0..20_000).map(|leaf| tail_of(&tails, leaf, 1).len()).max();
            assert!(longest.is_some_and(|longest| longest <= 255));
        }
    }
    let counts = TailCounts { long_bytes: u64::MAX >> 8, ..counts };
    assert!(TailLayout::new(u64::MAX, 2, counts).is_none());
}
