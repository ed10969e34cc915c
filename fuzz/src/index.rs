//! The trie as an index: hostile bytes get an error or any answer, and an index that was built answers as an ordered map does.

use std::collections::BTreeMap;
use std::ops::Bound;

use arbitrary::{Arbitrary, Unstructured};
use tamis_filter::{
    envelope::{ENVELOPE_BYTES, Envelope, PARAMETER_BYTES},
    trie::{TrieIndex, TrieIndexBuilder},
};

use crate::keys;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// How many keys are made of one, when there are to be enough of them for prefix tables and for tails that many have in common.
const MADE_OF_ONE: u64 = 48;

/// What stands in front of the keys, which go on to the end of the input.
#[derive(Debug, Arbitrary)]
struct Setup {
    kind: u8,
    value_bytes: u8,
    key_count: u64,
    parameters: [u8; PARAMETER_BYTES],
    /// Bytes behind the envelope that are changed, and how.
    flips: [(u16, u8); 4],
}

/// See the head of this file.
pub fn index(data: &[u8]) {
    let mut source = Unstructured::new(data);
    let Ok(setup) = Setup::arbitrary(&mut source) else { return };
    let rest = source.take_rest();
    let mut queries = keys(rest);
    match setup.kind % 8 {
        // Bytes of an index that nobody built.
        0 => ask(rest, &queries),
        // The same in a whole envelope with right checksums.
        1 => {
            let empty = build(&Map::new(), 0);
            let mut envelope =
                Envelope::parse(&empty, empty.len() as u64).expect("what was built has an envelope");
            (envelope.key_count, envelope.parameters) = (setup.key_count, setup.parameters);
            let mut bytes = [&[0; ENVELOPE_BYTES], rest].concat();
            envelope.seal(&mut bytes);
            ask(&bytes, &queries);
        }
        kind => {
            if kind > 5 {
                let many = if kind == 6 { numbered } else { ended };
                queries =
                    queries.iter().flat_map(|key| (0..MADE_OF_ONE).map(|number| many(key, number))).collect();
            }
            built(&queries, setup.value_bytes % 10, &setup.flips);
        }
    }
}

/// A key with two bytes that part it from others, and an ending that others have, too.
fn ended(key: &[u8], number: u64) -> Vec<u8> {
    let ending = &b"ationally"[..number as usize % 10];
    [key, &[number as u8, (number * number) as u8], ending].concat()
}

/// A number of two bytes, close to those of others, then what parts the key from them, and the key; of some the number alone.
fn numbered(key: &[u8], number: u64) -> Vec<u8> {
    let close = (0x7fe8 + number as u16).to_be_bytes();
    let parting = key.iter().fold(0, |sum: u8, byte| sum.rotate_left(3) ^ byte);
    let parts = [&close[..], &[parting], key.get(..3).unwrap_or(key), &[0; 9]];
    parts[..if number == 7 { 1 } else { parts.len() }].concat()
}

fn build(map: &Map, value_bytes: u8) -> Vec<u8> {
    let mut builder = TrieIndexBuilder::new(u32::from(value_bytes));
    for (key, value) in map {
        builder.add(key, value).expect("keys come in order");
    }
    builder.finish().expect("small enough")
}

fn built(queries: &[Vec<u8>], value_bytes: u8, flips: &[(u16, u8)]) {
    // Every third string is no key.
    let stored = queries.iter().enumerate().filter(|(number, _)| number % 3 != 2);
    let map: Map =
        stored.map(|(number, key)| (key.clone(), vec![number as u8; usize::from(value_bytes)])).collect();
    let mut bytes = build(&map, value_bytes);
    check(&bytes, &map, queries);
    let mut envelope = Envelope::parse(&bytes, bytes.len() as u64).expect("what was built has an envelope");
    let payload_bytes = bytes.len() - ENVELOPE_BYTES;
    for (offset, mask) in flips {
        bytes[ENVELOPE_BYTES + usize::from(*offset) % payload_bytes] ^= mask;
    }
    envelope.parameters[usize::from(flips[0].0) % PARAMETER_BYTES] ^= flips[3].1 & flips[2].1;
    envelope.seal(&mut bytes);
    ask(&bytes, queries);
}

/// Compares all answers with those of the map.
fn check(bytes: &[u8], map: &Map, queries: &[Vec<u8>]) {
    let index = TrieIndex::open(bytes).expect("what was built opens");
    index.verify().expect("what was built is whole");
    assert_eq!(index.len(), map.len() as u64);
    let keys: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
    let mut values = vec![None; keys.len()];
    index.get_many(&keys, &mut values);
    for (key, value) in keys.iter().zip(values) {
        let expected = map.get(*key).map(Vec::as_slice);
        assert_eq!(index.get(key), expected, "{key:?}");
        assert_eq!(value, expected, "in a batch: {key:?}");
        let mut cursor = index.cursor();
        cursor.seek(key);
        let from = (Bound::Included(*key), Bound::Unbounded);
        assert_eq!(cursor.key(), map.range::<[u8], _>(from).next().map(|(key, _)| key.as_slice()), "{key:?}");
        cursor.seek_back(key);
        let up_to = (Bound::Unbounded, Bound::Included(*key));
        assert_eq!(
            cursor.key(),
            map.range::<[u8], _>(up_to).next_back().map(|(key, _)| key.as_slice()),
            "{key:?}"
        );
    }
    for pair in keys.windows(2).filter(|pair| pair[0] < pair[1]) {
        let bounds = (Bound::Excluded(pair[0]), Bound::Included(pair[1]));
        let expected = map.range::<[u8], _>(bounds).count() as u64;
        assert_eq!(index.count(bounds.0, bounds.1), expected, "{pair:?}");
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

/// Opens and asks; only the absence of panics is looked at, and that each walk ends.
fn ask(bytes: &[u8], queries: &[Vec<u8>]) {
    let Ok(index) = TrieIndex::open(bytes) else { return };
    let _ = index.verify();
    let keys: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
    index.get_many(&keys, &mut vec![None; keys.len()]);
    for pair in keys.windows(2) {
        let _ = index.get(pair[0]);
        index.count(Bound::Included(pair[0]), Bound::Excluded(pair[1]));
        let mut cursor = index.cursor();
        cursor.seek(pair[0]);
        cursor.next();
        cursor.seek_back(pair[1]);
        cursor.previous();
        let _ = (cursor.key(), cursor.value());
    }
    let mut cursor = index.cursor();
    cursor.first();
    (0..100).for_each(|_| cursor.next());
    cursor.last();
    (0..100).for_each(|_| cursor.previous());
}
