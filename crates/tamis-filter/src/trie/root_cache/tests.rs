//! Searches through the root cache return what a sorted map does; damaged caches cause wrong steps, but no panic.
//! Direct tables: `tests/direct.rs`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

mod direct;

use std::collections::BTreeMap;

use super::{DEPTH_MAX, FIRST_MAX, SHORT_MAX, STAGES_MAX};
use crate::DecodeError;
use crate::envelope::{ENVELOPE_BYTES, Envelope, set_parameter};
use crate::trie::sparse;
use crate::trie::{TRAILER_BYTES, TrieIndex, TrieIndexBuilder};

type Map = BTreeMap<Vec<u8>, u32>;

/// Keys that begin with one of 1,500 words of `word_bytes` bytes. Some end with the word or before its end.
fn map(word_bytes: usize) -> Map {
    let mut state = 5;
    let mut random = move || {
        state += 1;
        crate::mix64(state, 3)
    };
    let letter = |random: u64| b'a' + (random % 11) as u8;
    let words: Vec<Vec<u8>> =
        (0..1500).map(|_| (0..word_bytes).map(|_| letter(random())).collect()).collect();
    let key = |number: usize| {
        let mut key = words[number % words.len()].clone();
        match number % 13 {
            0 => key.truncate(word_bytes - 1),
            1 => {}
            _ => key.extend((0..4 + random() % 12).map(|_| letter(random()))),
        }
        key
    };
    (0..40_000).map(key).zip(0..).collect()
}

fn build(map: &Map) -> Vec<u8> {
    let mut builder = TrieIndexBuilder::new(4);
    map.iter().for_each(|(key, value)| builder.add(key, &value.to_le_bytes()).unwrap());
    builder.finish().unwrap()
}

fn parameters(bytes: &[u8]) -> [u8; 16] {
    Envelope::parse(bytes, bytes.len() as u64).unwrap().parameters
}

fn check(map: &Map, bytes: &[u8]) {
    let index = TrieIndex::open(bytes).unwrap();
    let near = |key: &Vec<u8>| {
        let shorter = key[..key.len().saturating_sub(1)].to_vec();
        let mut other = key.clone();
        other.first_mut().into_iter().for_each(|byte| *byte ^= 1);
        [shorter, [key, &b"a"[..]].concat(), [key, &b"\0"[..]].concat(), other]
    };
    let probes: Vec<Vec<u8>> =
        map.keys().flat_map(|key| [vec![key.clone()], near(key).to_vec()].concat()).collect();
    let keys: Vec<&[u8]> = probes.iter().map(Vec::as_slice).collect();
    let mut values = vec![None; keys.len()];
    index.get_many(&keys, &mut values);
    for (key, value) in keys.iter().zip(values) {
        let expected = map.get(*key).map(|value| value.to_le_bytes().to_vec());
        assert_eq!(index.get(key).map(<[u8]>::to_vec), expected, "{key:?}");
        assert_eq!(value.map(<[u8]>::to_vec), expected, "{key:?} among others");
    }
}

/// Keys of up to five triples out of six, followed by many bytes or few.
fn deep_map() -> Map {
    let mut state = 7;
    let mut random = move || {
        state += 1;
        crate::mix64(state, 5)
    };
    let parts = [[0; 3], [0, 0, 1], [0xff; 3], [0xff, 0, 0xff], *b"abc", *b"abd"];
    let mut key = || {
        let mut key: Vec<u8> = (0..5).flat_map(|_| parts[(random() % 6) as usize]).collect();
        match random() % 9 {
            0 => key.truncate(random() as usize % 15),
            1 => key.extend(vec![0; random() as usize % 4]),
            _ => key.extend((0..10).map(|_| random() as u8)),
        }
        key
    };
    (0..40_000).map(|_| key()).zip(0..).collect()
}

/// Keys of seven bytes: thousands below each of a few prefixes of three bytes, tens below each prefix of six.
fn shallow_map() -> Map {
    let key = |number: u64| {
        let (first, second) = (number / 1600 % 25, number / 40);
        let parts =
            [crate::mix64(first, 1), crate::mix64(second, 2), crate::mix64(number, 3)].map(u64::to_be_bytes);
        [&parts[0][..3], &parts[1][..3], &parts[2][..2]].concat()
    };
    (0..40_000).map(key).zip(0..).collect()
}

/// Groups of three keys: they differ after eight shared bytes, of which other keys share at most the first two.
fn threes() -> Map {
    let group = |number: u64| {
        let mut group = crate::mix64(number, 9).to_be_bytes();
        group[..2].copy_from_slice(&(number as u16).to_be_bytes());
        group
    };
    let key = |number: u64| {
        let rest = crate::mix64(number, 11).to_be_bytes();
        [&group(number / 3)[..], &[(number % 3) as u8], &rest, &[0; 3]].concat()
    };
    (0..600_000).map(key).zip(0..).collect()
}

fn depths(bytes: &[u8]) -> Vec<usize> {
    TrieIndex::open(bytes).unwrap().root_cache_depths()
}

/// Start of the header of the cache: only its lines follow the suffixes.
fn header_start(bytes: &[u8]) -> usize {
    let depths = depths(bytes);
    let is_header = |start: &usize| {
        depths
            .iter()
            .zip(bytes[*start..].chunks(8))
            .all(|(depth, stage)| stage[..4] == [*depth as u8, 0, 0, 0])
    };
    (0..bytes.len() - TRAILER_BYTES - 64).step_by(64).rfind(is_header).unwrap()
}

#[test]
fn each_stage_of_the_root_cache_is_mostly_filled() {
    for map in [map(9), map(15), deep_map(), threes()] {
        let bytes = build(&map);
        let depths = depths(&bytes);
        if depths.is_empty() {
            continue;
        }
        let start = header_start(&bytes);
        let count_of =
            |stage| u32::from_le_bytes(bytes[start + 8 * stage + 4..][..4].try_into().unwrap()) as usize;
        let line_count: usize = (0..depths.len()).map(count_of).sum();
        let end = bytes.len() - TRAILER_BYTES;
        let mut lines = bytes[end - 64 * line_count..end].as_chunks::<64>().0;
        for (stage, depth) in depths.iter().enumerate() {
            let (own, rest) = lines.split_at(count_of(stage));
            let used = own.as_flattened().as_chunks::<8>().0.iter().filter(|word| **word != [0; 8]).count();
            assert!(
                used * 10 >= own.len() * 8 * 5,
                "{used} words of {} lines of {depth} in {depths:?}",
                own.len()
            );
            lines = rest;
        }
    }
}

#[test]
fn searches_through_the_root_cache_find_the_keys() {
    let mut all = Vec::new();
    for map in [map(4), map(6), map(9), map(12), map(15), shallow_map(), deep_map()] {
        let bytes = build(&map);
        all.push(depths(&bytes));
        check(&map, &bytes);
    }
    let firsts: Vec<usize> = all.iter().filter_map(|depths| depths.first().copied()).collect();
    let lasts: Vec<usize> =
        all.iter().filter(|depths| depths.len() > 1).filter_map(|depths| depths.last().copied()).collect();
    assert!(firsts.iter().any(|depth| (1..=SHORT_MAX).contains(depth)), "{all:?}");
    assert!(firsts.iter().any(|depth| (SHORT_MAX + 1..=FIRST_MAX).contains(depth)), "{all:?}");
    assert!(lasts.iter().any(|depth| *depth <= 8), "{all:?}");
    assert!(lasts.iter().any(|depth| (9..=DEPTH_MAX).contains(depth)), "{all:?}");
    assert!(all.iter().any(|depths| depths.len() > 2), "{all:?}");
}

/// Searches rely on the copy; damage in it causes wrong steps, like damage in blocks.
#[test]
fn the_root_cache_copies_the_child_block_numbers() {
    for map in [map(9), map(15), deep_map()] {
        let bytes = build(&map);
        let index = TrieIndex::open(&bytes[..]).unwrap();
        let (trie, table, _) = index.parts();
        assert!(trie.blocks.len() > 500);
        for (number, block) in trie.blocks.iter().enumerate() {
            assert_eq!(u32::from(u16::from_le_bytes(table.children()[number])), sparse::child_number(block));
        }
        let start = header_start(&bytes) + 64;
        for byte in [0xa5, 0xff, 1] {
            let mut damaged = bytes.clone();
            damaged[start..start + 2 * trie.blocks.len()].iter_mut().for_each(|old| *old ^= byte);
            let index = TrieIndex::open(&damaged[..]).unwrap();
            assert!(matches!(index.verify(), Err(DecodeError::Checksum { .. })));
            map.keys().for_each(|key| _ = index.get(key));
        }
    }
}

/// With values of no bytes, as in the paper: the bytes of a trie with its directories, per node.
#[test]
fn the_root_cache_keeps_the_index_within_its_bits_per_node() {
    for word_bytes in [4, 9, 12] {
        let map = map(word_bytes);
        let mut builder = TrieIndexBuilder::new(0);
        let (mut nodes, mut before): (usize, &[u8]) = (0, &[]);
        for key in map.keys() {
            let shared = before.iter().zip(key).take_while(|(left, right)| left == right).count();
            nodes += key.len() - shared + usize::from(shared == before.len() && !before.is_empty());
            before = key;
            builder.add(key, &[]).unwrap();
        }
        let bytes = builder.finish().unwrap();
        assert!(parameters(&bytes)[15] >> 4 > 0, "there is a table");
        let bits = ((bytes.len() - ENVELOPE_BYTES) * 8) as f64 / nodes as f64;
        assert!(bits <= 10.8, "{bits}");
    }
}

#[test]
fn damaged_hash_tables_do_not_panic() {
    let map = map(9);
    let bytes = build(&map);
    let table = bytes.len() - TRAILER_BYTES - 64 * 100..bytes.len() - TRAILER_BYTES;
    for change in [1, 0x40, 0x80, 0xff] {
        for step in [1, 3, 4] {
            let mut damaged = bytes.clone();
            damaged[table.clone()].iter_mut().step_by(step).for_each(|byte| *byte ^= change);
            let index = TrieIndex::open(&damaged[..]).unwrap();
            assert!(index.verify().is_err());
            let keys: Vec<&[u8]> = map.keys().map(Vec::as_slice).collect();
            index.get_many(&keys, &mut vec![None; keys.len()]);
            let found = keys.iter().filter(|key| index.get(key).is_some()).count();
            assert!(found > 0, "keys are found despite the damage");
        }
    }
}

#[test]
fn root_caches_that_no_builder_writes_are_rejected() {
    let bytes = build(&deep_map());
    let (last, stages) = (parameters(&bytes)[15], depths(&bytes));
    assert!(stages.len() >= 2, "{stages:?}");
    let open = |change: &dyn Fn(&mut Vec<u8>, &mut Envelope)| {
        let mut bytes = bytes.clone();
        let mut envelope = Envelope::parse(&bytes, bytes.len() as u64).unwrap();
        change(&mut bytes, &mut envelope);
        envelope.seal(&mut bytes);
        TrieIndex::open(bytes).map(|index| index.len())
    };
    let with_last = |last: u8| open(&|_, envelope| set_parameter(&mut envelope.parameters, 15, [last]));
    assert!(with_last(last).is_ok());
    let too_many = (STAGES_MAX + 1) as u8;
    assert_eq!(
        with_last(last & 15 | too_many << 4),
        Err(DecodeError::Field { field: "root_cache_stages", got: u64::from(too_many) })
    );
    let is_length = |answer| matches!(answer, Err(DecodeError::Field { field: "payload_bytes", .. }));
    assert!(is_length(with_last(last & 15)), "lines without a stage");
    for cut in [8, 64] {
        let answer = open(&|bytes, _| {
            let end = bytes.len() - TRAILER_BYTES;
            bytes.drain(end - cut..end);
        });
        assert!(is_length(answer), "{cut} bytes fewer");
    }
    let start = header_start(&bytes);
    let with_byte = |place: usize, byte: u8| open(&|bytes, _| bytes[start + place] = byte);
    assert!(with_byte(0, stages[0] as u8).is_ok());
    for (place, byte, what) in [
        (0, 0, "no depth"),
        (0, 13, "a first stage too deep"),
        (0, stages[1] as u8, "no bytes between stages"),
        (8, stages[0] as u8 + 5, "too many bytes between stages"),
        (8, stages[0] as u8 - 1, "stages that go up"),
        (8, 17, "a stage too deep"),
        (4, bytes[start + 4] ^ 1, "another number of lines"),
    ] {
        assert!(is_length(with_byte(place, byte)), "{what}");
    }
}
