//! Many keys below few beginnings of one length, or below numbers that are close together.

use super::{Cut, Map, build, map_of, next};
use crate::trie::TrieIndex;

const KEY_COUNT: usize = 40_000;

/// Keys that begin with one of 1,500 words of `word_bytes` bytes. Some end with the word or before its end.
fn below_words(word_bytes: usize) -> Map {
    let mut state = 5;
    let letter = |random: u64| b'a' + (random % 11) as u8;
    let words: Vec<Vec<u8>> =
        (0..1500).map(|_| (0..word_bytes).map(|_| letter(next(&mut state))).collect()).collect();
    map_of((0..KEY_COUNT).map(|number| {
        let mut key = words[number % words.len()].clone();
        match number % 13 {
            0 => key.truncate(word_bytes - 1),
            1 => {}
            _ => key.extend((0..4 + next(&mut state) % 12).map(|_| letter(next(&mut state)))),
        }
        key
    }))
}

/// Keys of up to five triples out of six, followed by many bytes or few.
fn triples() -> Map {
    let mut state = 7;
    let parts = [[0; 3], [0, 0, 1], [0xff; 3], [0xff, 0, 0xff], *b"abc", *b"abd"];
    map_of((0..KEY_COUNT).map(|_| {
        let mut key: Vec<u8> = (0..5).flat_map(|_| parts[(next(&mut state) % 6) as usize]).collect();
        match next(&mut state) % 9 {
            0 => key.truncate(next(&mut state) as usize % 15),
            1 => key.extend(vec![0; next(&mut state) as usize % 4]),
            _ => key.extend((0..10).map(|_| next(&mut state) as u8)),
        }
        key
    }))
}

/// Keys of seven bytes: thousands below each of a few prefixes of three bytes, tens below each prefix of six.
fn sevens() -> Map {
    map_of((0..KEY_COUNT as u64).map(|number| {
        let (first, second) = (number / 1600 % 25, number / 40);
        let parts =
            [crate::mix64(first, 1), crate::mix64(second, 2), crate::mix64(number, 3)].map(u64::to_be_bytes);
        [&parts[0][..3], &parts[1][..3], &parts[2][..2]].concat()
    }))
}

/// Consecutive numbers of `bytes` bytes, a few of them missing, with up to 24 endings each. Some keys end with the
/// number or before its end.
fn below_numbers(bytes: usize, first: u64, count: u64) -> Map {
    let mut keys = Vec::new();
    for number in first..first.saturating_add(count) {
        let prefix = &number.to_be_bytes()[8 - bytes..];
        let random = crate::mix64(number, 3);
        let endings = match random % 16 {
            0 => 0,
            1 => 1,
            others => others + 9,
        };
        keys.extend((0..endings).map(|ending| {
            let random = crate::mix64(random, ending);
            let ending = [random, !random].map(u64::to_le_bytes);
            [prefix, &ending.as_flattened()[..1 + (random >> 60) as usize]].concat()
        }));
        match random % 16 {
            2 => keys.push(prefix.to_vec()),
            3 => keys.push(prefix[..bytes - 1].to_vec()),
            _ => {}
        }
    }
    map_of(keys)
}

fn check(map: &Map) {
    let index = TrieIndex::open(build(map, Cut::Best)).unwrap();
    let near = |key: &Vec<u8>| {
        let shorter = key[..key.len().saturating_sub(1)].to_vec();
        let mut other = key.clone();
        other.first_mut().into_iter().for_each(|byte| *byte ^= 1);
        [key.clone(), shorter, [key, &b"a"[..]].concat(), [key, &b"\0"[..]].concat(), other]
    };
    let outside = [&[0; 12][..], &[0xff; 12], &[0; 7], &[0xff; 7], b""].map(<[u8]>::to_vec);
    for probe in map.keys().flat_map(near).chain(outside) {
        let expected = map.get(&probe).map(|value| value.to_le_bytes());
        assert_eq!(index.get(&probe), expected.as_ref().map(|value| &value[..]), "{probe:?}");
    }
}

#[test]
fn keys_below_few_beginnings_are_found() {
    [4, 6, 9, 12, 15].into_iter().for_each(|word_bytes| check(&below_words(word_bytes)));
    check(&triples());
    check(&sevens());
}

/// From the least number to the greatest.
#[test]
fn keys_below_close_numbers_are_found() {
    let last = |bytes: u32| u64::MAX >> (64 - 8 * bytes);
    check(&below_numbers(2, 0, 1 << 14));
    check(&below_numbers(3, 0x01_02_03, 3000));
    check(&below_numbers(4, last(4) - 2999, 3000));
    check(&below_numbers(6, 1_000_000_000_000, 5000));
    check(&below_numbers(8, u64::MAX - 3000, 3000));
    check(&below_numbers(8, 0, 3000));
}
