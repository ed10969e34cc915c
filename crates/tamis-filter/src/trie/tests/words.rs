//! Sets in which some keys are prefixes of others and so have no leaf, against a `BTreeMap`.

use super::{CUTS, Map, build, check_probe, check_scans, map_of, next};
use crate::trie::TrieIndex;

/// Words as in a dictionary: some thousand stems, each with about half of the endings.
pub(super) fn words(endings: &[&str]) -> Map {
    const SYLLABLES: [&str; 16] = [
        "ba", "ce", "di", "fo", "gu", "har", "lin", "mo", "nes", "per", "qui", "ra", "sto", "tur", "vel",
        "wan",
    ];
    let mut state = 17;
    let mut words = Vec::new();
    for number in 0..6000 {
        let stem: String = (0..2 + number % 3).map(|_| SYLLABLES[(next(&mut state) % 16) as usize]).collect();
        let chosen = next(&mut state);
        let endings = endings.iter().enumerate().filter(|(bit, _)| chosen >> bit & 1 == 1);
        words.extend(endings.map(|(_, ending)| format!("{stem}{ending}").into_bytes()));
    }
    map_of(words)
}

/// Users at one to three hosts. Some host names continue where others end.
fn addresses() -> Map {
    const HOSTS: [&str; 8] = [
        "mail.example.co",
        "mail.example.com",
        "mail.example.com.au",
        "post.example.org",
        "post.example.org.uk",
        "example.net",
        "example.network",
        "a.very-long-host-name.example.net",
    ];
    const NAMES: [&str; 8] = ["anna", "bert", "carla", "dirk", "elena", "frank", "greta", "hans"];
    let mut state = 23;
    let mut addresses = Vec::new();
    for number in 0..7000 {
        let (first, last) = (NAMES[next(&mut state) as usize % 8], NAMES[next(&mut state) as usize % 8]);
        for _ in 0..1 + number % 3 {
            let host = HOSTS[next(&mut state) as usize % 8];
            addresses.push(format!("{first}.{last}{number}@{host}").into_bytes());
        }
    }
    map_of(addresses)
}

/// Six thousand numbers of two bytes, each alone and followed by a suffix.
fn pairs(suffix: impl Fn(u64) -> Vec<u8>) -> Map {
    let numbers = (0..6000_u16).map(|number| (number.to_be_bytes().to_vec(), u64::from(number)));
    map_of(numbers.flat_map(|(bytes, number)| [[&bytes[..], &suffix(number)].concat(), bytes]))
}

/// The number of keys that are prefixes of the next key.
fn prefix_key_count(map: &Map) -> usize {
    map.keys().zip(map.keys().skip(1)).filter(|(key, after)| after.starts_with(key)).count()
}

/// Strings similar to a key, most of them absent.
fn near(key: &[u8]) -> [Vec<u8>; 4] {
    let shorter = &key[..key.len() - 1];
    let other = key.last().map_or(0, |last| last ^ 0x10);
    [shorter.to_vec(), [shorter, &[other]].concat(), [key, b"x"].concat(), [key, b"\0"].concat()]
}

fn check(map: &Map) {
    for cut in CUTS {
        let index = TrieIndex::open(build(map, cut)).expect("an index opens what its builder wrote");
        index.verify().unwrap();
        assert_eq!(index.len(), map.len() as u64);
        let mut probes: Vec<Vec<u8>> = map.keys().cloned().collect();
        probes.extend(map.keys().flat_map(|key| near(key)));
        for probe in &probes {
            let expected = map.get(probe).map(|value| value.to_le_bytes());
            assert_eq!(index.get(probe), expected.as_ref().map(|value| &value[..]), "{probe:?}");
        }
        check_scans(map, &index);
        probes.iter().step_by(61).for_each(|probe| check_probe(map, &index, probe));
    }
}

/// Codes were written as if each of these keys had a leaf, and the result could not be opened.
#[test]
fn words_with_and_without_endings_are_found() {
    let endings = ["", "s", "ing", "ed", "ingly", "ational", "fulness", "lessness"];
    for endings in [&endings[..], &endings[..4]] {
        let map = words(endings);
        assert!(map.len() > 5000 && prefix_key_count(&map) > 1000, "{}", prefix_key_count(&map));
        check(&map);
    }
}

#[test]
fn suffixes_of_one_length_below_prefix_keys_are_found() {
    // The first of the four bytes is the label of the leaf.
    let same = pairs(|_| b"tail".to_vec());
    assert_eq!(prefix_key_count(&same), 6000);
    check(&same);
    check(&pairs(|number| crate::mix64(number, 8).to_be_bytes()[..4].to_vec()));
    // Keys that all have one length cannot be prefixes of each other.
    check(&map_of((0..6000).map(|number| crate::mix64(number, 9).to_be_bytes().to_vec())));
}

#[test]
fn addresses_that_continue_others_are_found() {
    let map = addresses();
    assert!(map.len() > 5000 && prefix_key_count(&map) > 200, "{}", prefix_key_count(&map));
    check(&map);
}
