//! Operations of the trie index over integers and over text.

use tamis_filter::{
    AlignedBytes,
    trie::{TrieIndex, TrieIndexBuilder},
};
use tamis_workload::{KeySet, TextSet};

use super::{Case, Work};
use crate::BenchError;

/// Stored keys, and as many absent keys between them.
const KEY_COUNT: usize = 20_000;
const SEED: u64 = 42;
/// Distance of the keys that are searched one after the other: a prime, so that all are, in no order.
const STRIDE: usize = 7_919;

type Index = TrieIndex<AlignedBytes>;
type Keys = Vec<Vec<u8>>;
/// Runs one operation for each key.
type Operation = fn(&Index, &[&[u8]]) -> u64;

const OPERATIONS: [(&str, Operation); 3] = [("get", get), ("seek", seek), ("next", next)];

pub(super) fn cases() -> Vec<Case> {
    let of_keys = |name: &'static str, generate: fn() -> Keys| {
        OPERATIONS.map(|(operation, run)| {
            Case::new(format!("trie index: {operation}, {name}"), KEY_COUNT, move |_| {
                prepare(&generate(), run)
            })
        })
    };
    [of_keys("integers", integers), of_keys("text", text)].into_iter().flatten().collect()
}

fn integers() -> Keys {
    KeySet::Gaps.generate(2 * KEY_COUNT, SEED).iter().map(|key| key.to_be_bytes().to_vec()).collect()
}

fn text() -> Keys {
    TextSet::Domains.generate(2 * KEY_COUNT, SEED)
}

fn prepare(keys: &Keys, run: Operation) -> Result<Work, BenchError> {
    let mut builder = TrieIndexBuilder::new(8);
    for (number, key) in (0_u64..).zip(keys.iter().step_by(2)) {
        builder.add(key, &number.to_le_bytes())?;
    }
    let bytes = builder.finish()?;
    let index = TrieIndex::open(AlignedBytes::from(bytes.as_slice())).map_err(BenchError::other)?;
    // Three stored keys to one absent key.
    let searched = (0..KEY_COUNT).filter_map(|number| {
        let place = number * STRIDE % KEY_COUNT * 2;
        keys.get(place + usize::from(number % 4 == 3)).cloned()
    });
    let searched: Keys = searched.collect();
    Ok(Box::new(move || {
        let keys: Vec<&[u8]> = searched.iter().map(Vec::as_slice).collect();
        Ok(run(&index, &keys))
    }))
}

fn get(index: &Index, keys: &[&[u8]]) -> u64 {
    keys.iter().filter(|key| index.get(key).is_some()).count() as u64
}

fn seek(index: &Index, keys: &[&[u8]]) -> u64 {
    let mut cursor = index.cursor();
    let mut bytes = 0;
    for key in keys {
        cursor.seek(key);
        bytes += cursor.key().map_or(0, <[u8]>::len) as u64;
    }
    bytes
}

fn next(index: &Index, _: &[&[u8]]) -> u64 {
    let mut cursor = index.cursor();
    cursor.first();
    let mut bytes = 0;
    while let Some(key) = cursor.key() {
        bytes += key.len() as u64;
        cursor.next();
    }
    bytes
}
