//! Keys of 65,535 bytes and more: with many other keys, as prefixes of each other, and as stored suffixes.

use super::{CUTS, Map, build, check_probe, check_scans, map_of, next};
use crate::trie::TrieIndex;

/// Lengths on both sides of 16 bits.
const LENGTHS: [usize; 6] = [65_534, 65_535, 65_536, 65_537, 70_000, 131_073];

fn check(map: &Map) {
    let keys: Vec<Vec<u8>> = map.keys().filter(|key| key.len() > 60_000).cloned().collect();
    assert!(keys.len() >= LENGTHS.len());
    for cut in CUTS {
        let index = TrieIndex::open(build(map, cut)).unwrap();
        assert_eq!(index.len(), map.len() as u64);
        check_scans(map, &index);
        let mut probes = keys.clone();
        for key in &keys {
            let mut other = key.clone();
            other.last_mut().into_iter().for_each(|last| *last ^= 1);
            probes.extend([[&key[..], b"\0"].concat(), key[..key.len() - 1].to_vec(), other]);
        }
        probes.iter().step_by(2).for_each(|probe| check_probe(map, &index, probe));
    }
}

fn others(count: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut state = 3;
    (0..count).map(move |_| next(&mut state).to_be_bytes().to_vec())
}

/// Their first bytes distinguish them: the rest is stored as suffixes.
#[test]
fn long_keys_among_many_others_are_found() {
    let long = |(number, length)| [vec![b'a' + number as u8, b'-'], vec![7; length - 2]].concat();
    let keys = LENGTHS.into_iter().enumerate().map(long);
    check(&map_of(keys.chain(others(20_000))));
}

/// Their paths are as long as the keys.
#[test]
fn long_keys_that_are_prefixes_of_each_other_are_found() {
    let keys = LENGTHS.into_iter().map(|length| vec![b'p'; length]);
    check(&map_of(keys.chain(others(5_000)).chain([vec![b'p'], vec![b'p'; 300]])));
}
