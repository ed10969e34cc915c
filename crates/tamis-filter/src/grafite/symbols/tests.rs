//! Windows keep the order of random keys, bracket the keys of ranges with all kinds of bounds, and name no others if they are whole.

#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use std::collections::BTreeSet;
use std::ops::Bound;

use super::{POSITIONS_MAX, Symbols};
use crate::grafite::Rests;
use crate::{KeyRange, KeySet, Upper, mix64};

struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 += 1;
        (mix64(self.0, 5) % count.max(1) as u64) as usize
    }

    fn bytes(&mut self, alphabet: &[u8], length: usize) -> Vec<u8> {
        (0..length).map(|_| alphabet[self.below(alphabet.len())]).collect()
    }
}

fn set_of(keys: &BTreeSet<Vec<u8>>) -> KeySet {
    let mut set = KeySet::new();
    keys.iter().for_each(|key| set.push(key).expect("ascending"));
    set
}

fn lengths(keys: &BTreeSet<Vec<u8>>, shared: usize) -> (usize, usize) {
    let lengths = || keys.iter().map(|key| key.len() - shared);
    (lengths().min().expect("a key"), lengths().max().expect("a key"))
}

/// The symbols of all keys, also if windows of bytes are as good.
fn symbols_of(keys: &BTreeSet<Vec<u8>>, shared: usize) -> Symbols {
    let mut seen = vec![[false; 256]; POSITIONS_MAX];
    for key in keys {
        for (seen, byte) in seen.iter_mut().zip(&key[shared..]) {
            seen[usize::from(*byte)] = true;
        }
    }
    let (shortest, longest) = lengths(keys, shared);
    Symbols::longest(&seen[..longest.min(POSITIONS_MAX)], shortest)
}

/// Decoded symbols equal the encoded ones; other lengths are refused.
fn check_encoding(symbols: &Symbols) {
    let mut bytes = Vec::new();
    symbols.encode(&mut bytes);
    assert_eq!(bytes.len(), symbols.encoded_bytes());
    let decoded = |bytes: &[u8]| Symbols::decode(bytes, symbols.position_count, symbols.ends_inside);
    assert_eq!(decoded(&bytes).as_ref(), (symbols.position_count > 0).then_some(symbols));
    assert_eq!(decoded(&bytes[..bytes.len() - 1]), None);
}

/// A bound near a key: cut, continued, or with another byte.
fn bound(random: &mut Random, keys: &[&Vec<u8>], alphabet: &[u8]) -> Vec<u8> {
    let mut bound = keys[random.below(keys.len())].clone();
    for _ in 0..random.below(3) {
        match random.below(4) {
            0 => bound.truncate(random.below(bound.len() + 1)),
            1 => bound.push(random.below(256) as u8),
            2 => bound.push(alphabet[random.below(alphabet.len())]),
            _ => {
                let place = random.below(bound.len());
                if let Some(byte) = bound.get_mut(place) {
                    *byte = byte.wrapping_add([1, 255, 16, 128][random.below(4)]);
                }
            }
        }
    }
    bound
}

fn range<'a>(random: &mut Random, lower: &'a [u8], upper: &'a [u8]) -> KeyRange<'a> {
    let lower = match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(lower),
        _ => Bound::Excluded(lower),
    };
    let upper = match random.below(7) {
        0 => Upper::Open,
        1 | 2 => Upper::Included(upper),
        3 | 4 => Upper::Excluded(upper),
        _ => Upper::Prefix(upper),
    };
    KeyRange { lower, upper }
}

fn check_ranges(random: &mut Random, keys: &BTreeSet<Vec<u8>>, alphabet: &[u8], shared: usize) -> bool {
    let symbols = symbols_of(keys, shared);
    check_encoding(&symbols);
    let window = symbols.symbol_window(lengths(keys, shared).1 <= symbols.position_count);
    let list: Vec<&Vec<u8>> = keys.iter().collect();
    let prefix = &list[0][..shared];
    let numbers: Vec<u64> = list.iter().map(|key| window.number(&key[shared..])).collect();
    assert!(numbers.is_sorted(), "{keys:?}");
    assert!(!window.is_whole() || numbers.windows(2).all(|pair| pair[0] < pair[1]), "{keys:?}");
    for (key, number) in list.iter().zip(&numbers) {
        assert_eq!(window.of_point(prefix, key), Some(*number), "{keys:?}");
    }
    for _ in 0..200 {
        let (lower, upper) = (bound(random, &list, alphabet), bound(random, &list, alphabet));
        let range = range(random, &lower, &upper);
        let found = window.of_range(prefix, &range);
        for (key, number) in list.iter().zip(&numbers) {
            let is_within = found.is_some_and(|(lower, upper)| (lower..=upper).contains(number));
            if range.contains(key) {
                assert!(is_within, "{range:?} rejects {key:?} of {keys:?}");
            } else if window.is_whole() {
                assert!(!is_within, "{range:?} does not contain {key:?} of {keys:?}");
            }
        }
        if window.is_whole() && !keys.contains(&lower) {
            let point = window.of_point(prefix, &lower);
            assert!(point.is_none_or(|number| !numbers.contains(&number)), "{lower:?} of {keys:?}");
        }
    }
    window.is_whole()
}

#[test]
fn windows_of_random_keys_are_ordered_and_bracket_ranges() {
    let mut random = Random(1);
    let mut whole_count = 0;
    for round in 0..600 {
        let size = [1, 2, 3, 10, 16, 27, 64, 255, 256][random.below(9)];
        let first = random.below(256) as u8;
        let step = [1, 1, 7, 85][random.below(4)];
        let alphabet: Vec<u8> = (0..size).map(|index| first.wrapping_add((index * step) as u8)).collect();
        let shared = [0, 0, 3, 20][random.below(4)];
        let prefix = random.bytes(&alphabet, shared);
        let (shortest, spread) = ([0, 1, 5, 12][random.below(4)], [1, 1, 4, 20][random.below(4)]);
        let separator = random.below(4).checked_sub(1).map(|place| place * 3);
        let keys: BTreeSet<Vec<u8>> = (0..1 + random.below(60))
            .map(|_| {
                let length = shortest + random.below(spread);
                let mut rest = random.bytes(&alphabet, length);
                if let Some(byte) = separator.and_then(|place| rest.get_mut(place)) {
                    *byte = b'-';
                }
                [prefix.clone(), rest].concat()
            })
            .collect();
        let is_whole = check_ranges(&mut random, &keys, &alphabet, shared);
        whole_count += usize::from(is_whole);
        assert!(is_whole || round > 0, "the first keys fit");
    }
    assert!((100..550).contains(&whole_count), "{whole_count} of 600 key sets fit into their windows");
}

#[test]
fn all_strings_over_three_bytes_are_bracketed_by_all_bounds() {
    let mut strings: Vec<Vec<u8>> = vec![Vec::new()];
    let mut start = 0;
    for _ in 0..3 {
        let end = strings.len();
        for index in start..end {
            strings.extend([0, 1, 255].map(|byte| [&strings[index][..], &[byte]].concat()));
        }
        start = end;
    }
    let mut random = Random(7);
    for _ in 0..40 {
        let keys: BTreeSet<Vec<u8>> =
            (0..1 + random.below(12)).map(|_| strings[random.below(strings.len())].clone()).collect();
        let window = symbols_of(&keys, 0).symbol_window(true);
        for lower in &strings {
            for upper in &strings {
                for range in [
                    KeyRange { lower: Bound::Included(lower), upper: Upper::Included(upper) },
                    KeyRange { lower: Bound::Excluded(lower), upper: Upper::Excluded(upper) },
                    KeyRange { lower: Bound::Included(lower), upper: Upper::Prefix(upper) },
                ] {
                    let found = window.of_range(b"", &range);
                    for key in &keys {
                        let number = window.number(key);
                        let is_within = found.is_some_and(|(lower, upper)| (lower..=upper).contains(&number));
                        assert_eq!(is_within, range.contains(key), "{range:?} of {keys:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_longest_windows_that_fit_are_chosen() {
    let texts = |count: u64, form: fn(u64) -> String| -> KeySet {
        let keys: BTreeSet<Vec<u8>> = (0..count).map(|number| form(mix64(number, 1)).into_bytes()).collect();
        set_of(&keys)
    };
    let rests = |keys: &KeySet, shared_bytes: usize| {
        let lengths = || keys.iter().map(|key| key.len() - shared_bytes);
        let (shortest, longest) = (lengths().min().expect("keys"), lengths().max().expect("keys"));
        Rests { shared_bytes, shortest, longest, window_max: POSITIONS_MAX }
    };
    let chosen = |keys: &KeySet| {
        Symbols::of_keys(keys, &rests(keys, 0)).map(|symbols| (symbols.position_count, symbols.radix()))
    };
    assert_eq!(chosen(&texts(5_000, |number| format!("{number:016x}"))), Some((16, 16)));
    assert_eq!(chosen(&texts(5_000, |number| format!("{number:016x}{number:08x}"))), Some((16, 16)));
    assert_eq!(chosen(&texts(5_000, |number| format!("{number:020}{number:020}"))), Some((19, 10)));
    // Separators have no digit.
    let split = |number: u64| format!("{:08x}-{:08x}.txt", number >> 32, number as u32);
    assert_eq!(chosen(&texts(5_000, split)), Some((21, 16)));
    // Names of different lengths: 26 letters and the end.
    let name = |number: u64| {
        (0..6 + number % 30).map(|place| char::from(b'a' + (mix64(number, place) % 26) as u8)).collect()
    };
    assert_eq!(chosen(&texts(5_000, name)), Some((13, 27)));
    // A rare byte that the sample of the keys does not have counts.
    let rare = |number: u64| format!("{number:016x}{}", if number % 4_000 == 7 { 'z' } else { '0' });
    assert_eq!(chosen(&texts(50_000, rare)), Some((16, 16)));
    // All byte values: windows of bytes are as good.
    let integers: BTreeSet<Vec<u8>> =
        (0..5_000).map(|number| mix64(number, 1).to_be_bytes().to_vec()).collect();
    assert_eq!(chosen(&set_of(&integers)), None);
    let pairs: BTreeSet<Vec<u8>> = (0..5_000_u64)
        .map(|number| [mix64(number, 1).to_be_bytes(), mix64(number, 2).to_be_bytes()].concat())
        .collect();
    assert_eq!(chosen(&set_of(&pairs)), None);
    // The bytes of small integers after large ones fit: zeros between them have no digit.
    let events: BTreeSet<Vec<u8>> = (0..5_000_u64)
        .map(|number| [(mix64(number, 1) >> 24).to_be_bytes(), (number % 999).to_be_bytes()].concat())
        .collect();
    let keys = set_of(&events);
    let symbols = Symbols::of_keys(&keys, &rests(&keys, 3)).expect("symbols");
    assert_eq!((symbols.position_count, symbols.radix(), symbols.fixed_bytes.len()), (13, 256, 6));
}
