//! The trie as an index: invalid bytes give an error or any result without a panic, and a built index equals an ordered map.

use std::collections::BTreeMap;
use std::ops::Bound;

use arbitrary::{Arbitrary, Unstructured};
use tamis_filter::{
    envelope::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES},
    trie::{TrieIndex, TrieIndexBuilder},
};

use crate::keys;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Number of keys that are derived from one key, to get many keys below few nodes.
const DERIVED_KEY_COUNT: u64 = 48;

/// The first part of the input; the rest are keys.
#[derive(Debug, Arbitrary)]
struct Setup {
    kind: u8,
    value_bytes: u8,
    key_count: u64,
    parameters: [u8; PARAMETER_BYTES],
    /// Positions and masks of changed payload bytes.
    flips: [(u16, u8); 4],
}

/// See the documentation of this module.
pub fn index(data: &[u8]) {
    let mut source = Unstructured::new(data);
    let Ok(setup) = Setup::arbitrary(&mut source) else { return };
    let rest = source.take_rest();
    let mut queries = keys(rest);
    match setup.kind % 8 {
        // The input as an encoded index.
        0 => ask(rest, &queries),
        // The input as a payload in an envelope with valid checksums.
        1 => {
            let empty = build(&Map::new(), 0);
            let mut envelope =
                Envelope::parse(&empty, empty.len() as u64).expect("a built index has an envelope");
            (envelope.key_count, envelope.parameters) = (setup.key_count, setup.parameters);
            let mut bytes = [&[0; ENVELOPE_BYTES], rest].concat();
            envelope.seal(&mut bytes);
            ask(&bytes, &queries);
        }
        kind => {
            if kind > 5 {
                let many = if kind == 6 { with_number } else { with_suffix };
                queries = queries
                    .iter()
                    .flat_map(|key| (0..DERIVED_KEY_COUNT).map(|number| many(key, number)))
                    .collect();
            }
            built(&queries, setup.value_bytes % 10, &setup.flips);
        }
    }
}

/// A key with two distinguishing bytes and a shared suffix.
fn with_suffix(key: &[u8], number: u64) -> Vec<u8> {
    let ending = &b"ationally"[..number as usize % 10];
    [key, &[number as u8, (number * number) as u8], ending].concat()
}

/// A two-byte number close to those of other keys, then distinguishing bytes, then the key; for some keys only the number.
fn with_number(key: &[u8], number: u64) -> Vec<u8> {
    let close = (0x7fe8 + number as u16).to_be_bytes();
    let parting = key.iter().fold(0, |sum: u8, byte| sum.rotate_left(3) ^ byte);
    let parts = [&close[..], &[parting], key.get(..3).unwrap_or(key), &[0; 9]];
    parts[..if number == 7 { 1 } else { parts.len() }].concat()
}

fn build(map: &Map, value_bytes: u8) -> Vec<u8> {
    let mut builder = TrieIndexBuilder::new(u32::from(value_bytes));
    for (key, value) in map {
        builder.add(key, value).expect("keys are in order");
    }
    builder.finish().expect("the index is small enough")
}

fn built(queries: &[Vec<u8>], value_bytes: u8, flips: &[(u16, u8)]) {
    // Every third string is not a key.
    let stored = queries.iter().enumerate().filter(|(number, _)| number % 3 != 2);
    let map: Map =
        stored.map(|(number, key)| (key.clone(), vec![number as u8; usize::from(value_bytes)])).collect();
    let mut bytes = build(&map, value_bytes);
    check(&bytes, &map, queries);
    let mut envelope = Envelope::parse(&bytes, bytes.len() as u64).expect("a built index has an envelope");
    let payload_bytes = bytes.len() - ENVELOPE_BYTES;
    for (offset, mask) in flips {
        bytes[ENVELOPE_BYTES + usize::from(*offset) % payload_bytes] ^= mask;
    }
    envelope.parameters[usize::from(flips[0].0) % PARAMETER_BYTES] ^= flips[3].1 & flips[2].1;
    envelope.seal(&mut bytes);
    ask(&bytes, queries);
}

/// Compares all results with those of the map.
fn check(bytes: &[u8], map: &Map, queries: &[Vec<u8>]) {
    let index = TrieIndex::open(bytes).expect("a built index opens");
    index.verify().expect("a built index has valid checksums");
    assert_eq!(index.len(), map.len() as u64);
    let keys: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
    for key in &keys {
        assert_eq!(index.get(key), map.get(*key).map(Vec::as_slice), "{key:?}");
        let mut cursor = index.cursor();
        cursor.seek(key);
        let from = (Bound::Included(*key), Bound::Unbounded);
        assert_eq!(cursor.key(), map.range::<[u8], _>(from).next().map(|(key, _)| key.as_slice()), "{key:?}");
        cursor.seek_for_prev(key);
        let up_to = (Bound::Unbounded, Bound::Included(*key));
        assert_eq!(
            cursor.key(),
            map.range::<[u8], _>(up_to).next_back().map(|(key, _)| key.as_slice()),
            "{key:?}"
        );
    }
    let mut cursor = index.cursor();
    cursor.first();
    for (key, value) in map {
        assert_eq!((cursor.key(), cursor.value()), (Some(key.as_slice()), Some(value.as_slice())));
        cursor.next();
    }
    assert_eq!(cursor.key(), None);
    cursor.last();
    for key in map.keys().rev() {
        assert_eq!(cursor.key(), Some(key.as_slice()));
        cursor.previous();
    }
    assert_eq!(cursor.key(), None);
}

/// Opens and queries an index; checks only that nothing panics and that each iteration ends.
fn ask(bytes: &[u8], queries: &[Vec<u8>]) {
    let Ok(index) = TrieIndex::open(bytes) else { return };
    let _ = index.verify();
    let keys: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
    for pair in keys.windows(2) {
        let _ = index.get(pair[0]);
        let mut cursor = index.cursor();
        cursor.seek(pair[0]);
        cursor.next();
        cursor.seek_for_prev(pair[1]);
        cursor.previous();
        let _ = (cursor.key(), cursor.value());
    }
    let mut cursor = index.cursor();
    cursor.first();
    (0..100).for_each(|_| cursor.next());
    cursor.last();
    (0..100).for_each(|_| cursor.previous());
}
