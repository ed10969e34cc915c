//! The index against a `BTreeMap`: hostile keys, all bounds, all cuts, any address; and all sets of a small universe.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::collections::BTreeMap;

use super::plan::plan_at;
use super::{Layout, TrieIndex, TrieIndexBuilder, plan};
use crate::envelope::{ENVELOPE_BYTES, Envelope, payload};

mod beginnings;
mod damage;
mod long_keys;
mod words;

type Map = BTreeMap<Vec<u8>, u32>;

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    crate::mix64(*state, 7)
}

/// The levels that are dense.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    Best,
    Sparse,
    One,
    Dense,
}

const CUTS: [Cut; 4] = [Cut::Best, Cut::Sparse, Cut::One, Cut::Dense];

fn build(map: &Map, cut: Cut) -> Vec<u8> {
    let mut builder = TrieIndexBuilder::new(4);
    for (key, value) in map {
        builder.add(key, &value.to_le_bytes()).unwrap();
    }
    // The empty key alone has a root without labels, which is sparse.
    let all = |height: usize| if map.keys().all(Vec::is_empty) { 0 } else { height };
    let bytes = builder.finish_with(|levels, height| match cut {
        Cut::Best => plan(levels, height, true),
        Cut::Sparse => plan_at(levels, height, true, Some(0)),
        Cut::One => plan_at(levels, height, true, Some(all(height).min(1))),
        Cut::Dense => plan_at(levels, height, true, Some(all(height))),
    });
    bytes.unwrap()
}

fn check_scans(map: &Map, index: &TrieIndex<impl AsRef<[u8]>>) {
    let mut cursor = index.cursor();
    cursor.first();
    for (key, value) in map {
        assert_eq!(cursor.key(), Some(&key[..]));
        assert_eq!(cursor.value(), Some(&value.to_le_bytes()[..]), "{key:?}");
        cursor.next();
    }
    assert_eq!(cursor.key(), None);
    cursor.last();
    for key in map.keys().rev() {
        assert_eq!(cursor.key(), Some(&key[..]));
        cursor.previous();
    }
    assert_eq!((cursor.key(), cursor.value()), (None, None));
}

fn check_probe(map: &Map, index: &TrieIndex<impl AsRef<[u8]>>, probe: &[u8]) {
    assert_eq!(
        index.get(probe),
        map.get(probe).map(|value| value.to_le_bytes()).as_ref().map(|value| &value[..]),
        "{probe:?}"
    );
    let mut cursor = index.cursor();
    cursor.seek(probe);
    let mut expected = map.range(probe.to_vec()..).map(|(key, _)| &key[..]);
    assert_eq!(cursor.key(), expected.next(), "seek {probe:?}");
    cursor.next();
    assert_eq!(cursor.key(), expected.next(), "seek {probe:?}, next");
    cursor.seek_for_prev(probe);
    let mut expected = map.range(..=probe.to_vec()).rev().map(|(key, _)| &key[..]);
    assert_eq!(cursor.key(), expected.next(), "seek back {probe:?}");
    cursor.previous();
    assert_eq!(cursor.key(), expected.next(), "seek back {probe:?}, previous");
}

fn map_of(keys: impl IntoIterator<Item = Vec<u8>>) -> Map {
    let mut map: Map = keys.into_iter().map(|key| (key, 0)).collect();
    map.values_mut().enumerate().for_each(|(index, value)| *value = index as u32 * 3);
    map
}

fn hostile_maps() -> Vec<Map> {
    let mut state = 11;
    let mut maps = vec![
        map_of([]),
        map_of([vec![]]),
        map_of([vec![0]]),
        map_of([vec![0xff]]),
        map_of([vec![], vec![0], vec![0, 0], vec![0xff], vec![0xff, 0xff]]),
        map_of([vec![7; 65_535], vec![7; 65_534]]),
        map_of((0..200).map(|length| vec![0; length])),
        map_of((0..200).map(|length| vec![0xff; length])),
        map_of((0..=255).map(|byte| vec![byte])),
        map_of((0..600_u16).map(|number| number.to_be_bytes().to_vec())),
        map_of((0..3000).map(|_| next(&mut state).to_be_bytes().to_vec())),
        // Levels that end at the borders of blocks and hints.
        map_of((0..99 * 4).map(|number: u32| vec![(number / 99) as u8, (number % 99) as u8, 1])),
        map_of((0..128 * 33).map(|number: u32| vec![(number / 256) as u8, number as u8, 9])),
    ];
    // Nodes of many sizes: the children of a block begin in its block of children, in a neighbour, or far from it.
    let mut wide = Vec::new();
    for first in 0..6_u8 {
        for second in 0..(next(&mut state) % 40) as u8 {
            let count = (next(&mut state) % 30) as u8;
            wide.extend((0..count).flat_map(|third| [1, 2].map(|last| vec![first, second, third * 3, last])));
        }
    }
    maps.push(map_of(wide));
    // All keys begin with the same bytes, and some end within them.
    for length in [1, 3, 7, 8, 9, 12] {
        let stem = || (10..10 + length).collect::<Vec<u8>>();
        let below = (0..700_u16).map(|number| [stem(), number.to_be_bytes().to_vec()].concat());
        let ends = |from: usize| (from..=stem().len()).map(|end| stem()[..end].to_vec());
        maps.push(map_of(below.clone()));
        maps.push(map_of(below.clone().chain(ends(stem().len()))));
        maps.push(map_of(below.chain(ends(stem().len() / 2))));
    }
    for symbols in [2, 3, 5] {
        let mut word = || -> Vec<u8> {
            let length = next(&mut state) % 9;
            (0..length).map(|_| [0, 255, b'a', 1, 254][(next(&mut state) % symbols) as usize]).collect()
        };
        maps.push(map_of((0..1500).map(|_| word())));
    }
    maps
}

#[test]
fn shared_bytes_are_counted_to_the_first_difference() {
    for left_length in 0..26 {
        let left: Vec<u8> = (0..left_length).map(|byte| byte * 7).collect();
        for right_length in 0..26 {
            let right: Vec<u8> = (0..right_length).map(|byte| byte * 7).collect();
            let length = left.len().min(right.len());
            assert_eq!(super::shared_bytes(&left, &right), length);
            for place in 0..length {
                let mut right = right.clone();
                right[place] ^= 0x10;
                assert_eq!(super::shared_bytes(&left, &right), place);
            }
        }
    }
}

#[test]
fn hostile_keys_are_found_scanned_and_counted() {
    let mut state = 5;
    for map in hostile_maps() {
        let keys: Vec<&Vec<u8>> = map.keys().collect();
        for cut in CUTS {
            let index = TrieIndex::open(build(&map, cut)).unwrap();
            index.verify().unwrap();
            assert_eq!(index.len(), map.len() as u64);
            check_scans(&map, &index);
            for round in 0..100 {
                let mut probe = match keys.get((next(&mut state) % (keys.len() as u64 + 1)) as usize) {
                    Some(key) => (*key).clone(),
                    None => vec![255; 3],
                };
                match round % 6 {
                    5 => {
                        let place = (next(&mut state) % 9) as usize;
                        probe.get_mut(place).into_iter().for_each(|byte| *byte ^= 1);
                    }
                    0 => probe.push((next(&mut state) % 256) as u8),
                    1 => drop(probe.pop()),
                    2 => {
                        probe.iter_mut().next_back().into_iter().for_each(|last| *last = last.wrapping_add(1))
                    }
                    3 => {
                        probe.iter_mut().next_back().into_iter().for_each(|last| *last = last.wrapping_sub(1))
                    }
                    _ => {}
                }
                check_probe(&map, &index, &probe);
            }
        }
    }
}

/// More blocks than a group of ranks has: all nodes are sparse.
#[test]
fn values_of_many_blocks_are_found() {
    let mut state = 3;
    let map = map_of((0..80_000).map(|_| next(&mut state).to_be_bytes()[..5].to_vec()));
    let index = TrieIndex::open(build(&map, Cut::Sparse)).unwrap();
    for (key, value) in map.iter().step_by(7) {
        assert_eq!(index.get(key), Some(&value.to_le_bytes()[..]), "{key:?}");
    }
}

/// More blocks than 15 bits can number: blocks of children are numbered from bases.
#[test]
fn children_beyond_the_range_of_a_block_number_are_found() {
    let mut state = 4;
    let mut keys: Vec<[u8; 5]> = Vec::new();
    keys.resize_with(1_700_000, || next(&mut state).to_be_bytes()[..5].try_into().unwrap());
    keys.sort_unstable();
    keys.dedup();
    let mut builder = TrieIndexBuilder::new(0);
    keys.iter().for_each(|key| builder.add(key, &[]).unwrap());
    let bytes = builder.finish_with(|levels, height| plan_at(levels, height, true, Some(0))).unwrap();
    assert!(Layout::read(payload(&bytes), true).unwrap().has_block_bases);
    let index = TrieIndex::open(bytes).unwrap();
    assert!(keys.iter().step_by(3).all(|key| index.get(key).is_some()));
}

/// Keys with all pairs of bytes after a stem, and keys without one pair: full levels are passed in one step.
#[test]
fn a_search_skips_full_levels_in_one_step() {
    let mut state = 6;
    for (stem, missing, full_levels) in [
        (&b""[..], None, 2),
        (b"ab", None, 2),
        (b"", Some([9, 9]), 1),
        (b"abcdefgh", Some([255, 255]), 1),
        (b"", Some([0, 0]), 1),
    ] {
        let pairs = (0..=u16::MAX).map(u16::to_be_bytes).filter(|pair| Some(*pair) != missing);
        let map = map_of(pairs.flat_map(|pair| [7, 200].map(|last| [stem, &pair, &[last]].concat())));
        let bytes = build(&map, Cut::Best);
        assert_eq!(
            Layout::read(payload(&bytes), true).unwrap().full_levels,
            full_levels,
            "{stem:?} {missing:?}"
        );
        let index = TrieIndex::open(bytes).unwrap();
        check_scans(&map, &index);
        for round in 0..2_000 {
            let word = next(&mut state).to_be_bytes();
            let mut probe = [stem, &word[..round % 5]].concat();
            if let (3.., Some(last)) = (round % 5, probe.get_mut(stem.len() + 2)) {
                *last = [6, 7, 8, 200][usize::from(*last % 4)];
            }
            check_probe(&map, &index, &probe);
        }
        let missing = missing.map(|pair| [stem, &pair].concat());
        missing.iter().for_each(|probe| check_probe(&map, &index, probe));
        check_probe(&map, &index, &stem[..stem.len() / 2]);
    }
}

#[test]
fn all_sets_of_a_small_universe_are_correct() {
    let symbols = [0x00, 0xff];
    let mut strings: Vec<Vec<u8>> = vec![vec![]];
    for length in 1..=3_u32 {
        strings.extend(
            (0..1_u32 << length)
                .map(|bits| (0..length).map(|bit| symbols[(bits >> bit & 1) as usize]).collect()),
        );
    }
    assert_eq!(strings.len(), 15);
    for mask in 0..1_u32 << strings.len() {
        let chosen = strings
            .iter()
            .enumerate()
            .filter(|(bit, _)| mask >> bit & 1 == 1)
            .map(|(_, string)| string.clone());
        let map = map_of(chosen);
        let turn = crate::mix64(u64::from(mask), 0) as usize;
        let index = TrieIndex::open(build(&map, CUTS[turn % 4])).unwrap();
        for probe in &strings {
            assert_eq!(
                index.get(probe),
                map.get(probe).map(|value| value.to_le_bytes()).as_ref().map(|value| &value[..]),
                "{probe:?}"
            );
        }
        check_scans(&map, &index);
        // Cursors at some positions of each set; over all sets at all of them.
        for round in 0..2 {
            check_probe(&map, &index, &strings[(turn / 4 + round * 7) % 15]);
        }
    }
}

#[test]
fn an_index_at_any_address_gives_the_same_results() {
    let map = map_of((0..500_u32).map(|number| number.to_string().into_bytes()));
    let bytes = build(&map, Cut::Best);
    for shift in 0..17 {
        let mut room = vec![0xaa; shift];
        room.extend_from_slice(&bytes);
        let index = TrieIndex::open(&room[shift..]).unwrap();
        check_scans(&map, &index);
        check_probe(&map, &index, b"33");
    }
}

#[test]
fn values_of_other_lengths_and_unsorted_keys_are_rejected() {
    let mut builder = TrieIndexBuilder::new(2);
    assert!(builder.add(b"a", &[1]).is_err());
    builder.add(b"b", &[1, 2]).unwrap();
    builder.add(b"b", &[3, 4]).unwrap();
    assert!(builder.add(b"a", &[1, 2]).is_err());
    let index = TrieIndex::open(builder.finish().unwrap()).unwrap();
    assert_eq!(index.len(), 1);
    assert_eq!(index.get(b"b"), Some(&[1, 2][..]));
    let index = TrieIndex::open(TrieIndexBuilder::new(0).finish().unwrap()).unwrap();
    assert!(index.is_empty());
}

/// Calls every operation a bounded number of times.
fn exercise(bytes: &[u8]) {
    let Ok(index) = TrieIndex::open(bytes) else { return };
    let mut cursor = index.cursor();
    let keys = [&b""[..], b"abc", &[0xff; 9], &[0; 9]];
    for key in keys {
        let _ = index.get(key);
        cursor.seek(key);
        (0..4).for_each(|_| cursor.next());
        let _ = cursor.value();
        cursor.seek_for_prev(key);
        (0..4).for_each(|_| cursor.previous());
    }
    cursor.first();
    cursor.last();
}

#[test]
fn damaged_and_random_bytes_do_not_panic() {
    let mut state = 3;
    for map in [map_of([vec![]]), map_of((0..400_u32).map(|number| number.to_string().into_bytes()))] {
        for cut in CUTS {
            let bytes = build(&map, cut);
            for _ in 0..1000 {
                let mut damaged = bytes.clone();
                for _ in 0..1 + next(&mut state) % 3 {
                    let place = ENVELOPE_BYTES + (next(&mut state) as usize) % (bytes.len() - ENVELOPE_BYTES);
                    damaged[place] = (next(&mut state) >> 9) as u8;
                }
                exercise(&damaged);
                let cut = bytes.len() - 1 - (next(&mut state) as usize) % (bytes.len() - 1);
                assert!(TrieIndex::open(&bytes[..cut]).is_err());
            }
        }
    }
    for _ in 0..20_000 {
        let length = (next(&mut state) % 600) as usize;
        let mut bytes: Vec<u8> = (0..ENVELOPE_BYTES + length).map(|_| next(&mut state) as u8).collect();
        if length > 40 {
            // Small counts, so that some of them fit.
            let trailer = bytes.len() - 40;
            bytes[trailer..]
                .iter_mut()
                .enumerate()
                .for_each(|(index, byte)| *byte = if index % 4 == 0 { *byte % 6 } else { 0 });
        }
        let key_count = next(&mut state) % 8;
        let parameters = [0; 16];
        let envelope =
            Envelope { family: 256, seed: 0, payload_bytes: 0, key_count, payload_checksum: 0, parameters };
        envelope.seal(&mut bytes);
        exercise(&bytes);
    }
}
