//! Split keys at both ends of a memtable.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use crate::{
    key::Kind,
    memtable::ChunkPool,
    options::KeyspaceOptions,
    version::test_support::{add, catalog_of, place, summary},
};

/// Entries `from..to`, each a key of eight digits, whose place is its number.
fn memtable(from: u32, to: u32) -> Arc<Memtable> {
    let memtable = Memtable::new(&ChunkPool::new());
    for number in from..to {
        memtable.insert(&key(number), u64::from(number) + 1, Kind::Put, b"value");
    }
    memtable
}

fn key(number: u32) -> Vec<u8> {
    format!("{number:08}").into_bytes()
}

/// A keyspace whose only table holds keys in between, and whose tables are of this size.
fn version(first: u32, last: u32, table_bytes: u64) -> KeyspaceVersion {
    let keys = (key(first), key(last));
    let keys = (str::from_utf8(&keys.0).unwrap(), str::from_utf8(&keys.1).unwrap());
    let changes = vec![add(place(0, 9), summary(4, keys, 100, (9, 9)))];
    let state = catalog_of(changes, &Arc::default());
    let version = state.keyspaces.get(&1).unwrap();
    let options = KeyspaceOptions::default().table_bytes(table_bytes);
    KeyspaceVersion { options: Arc::new(options), ..(**version).clone() }
}

#[test]
fn a_small_lower_overlap_is_split_behind_the_last_overlapping_table() {
    let memtable = memtable(10_000, 20_000);
    let overlap = |first, last| LowerOverlap::of(&version(first, last, 1 << 20), &memtable).unwrap();
    assert_eq!(overlap(0, 9_999), LowerOverlap::None);
    assert_eq!(overlap(20_000, 30_000), LowerOverlap::None);
    assert_eq!(overlap(0, 10_500), LowerOverlap::Small([key(10_500), vec![0]].concat()));
    assert_eq!(overlap(10_100, 10_500), LowerOverlap::Small([key(10_500), vec![0]].concat()));
    assert!(matches!(overlap(0, 12_500), LowerOverlap::Small(_)));
    assert_eq!(overlap(0, 16_000), LowerOverlap::Large);
    assert_eq!(overlap(0, 30_000), LowerOverlap::Large);
    assert_eq!(overlap(19_990, 30_000), LowerOverlap::Large, "at the upper end");
    let small = LowerOverlap::of(&version(0, 10_500, 1 << 30), &memtable).unwrap();
    assert_eq!(small, LowerOverlap::Large, "a small memtable is not split into three tables");
}

#[test]
fn the_upper_end_is_split_at_the_smallest_key_of_newer_memtables() {
    let own = memtable(10_000, 20_000);
    let split_key = |newer: &[Arc<Memtable>], table_bytes| {
        upper_split_key(&version(0, 9, table_bytes), &own, newer).unwrap()
    };
    let (near, far, disjoint) =
        (memtable(19_500, 19_600), memtable(12_000, 12_100), memtable(20_000, 20_010));
    let empty = memtable(0, 0);
    assert_eq!(split_key(&[empty.clone(), near.clone()], 1 << 20), Some(key(19_500)));
    assert_eq!(
        split_key(&[disjoint.clone(), near.clone()], 1 << 20),
        Some(key(19_500)),
        "the smallest of all"
    );
    assert_eq!(split_key(&[near.clone(), far], 1 << 20), None, "most entries follow the key");
    assert_eq!(split_key(&[disjoint], 1 << 20), Some(key(20_000)), "no entry follows the key");
    assert_eq!(split_key(&[empty], 1 << 20), None);
    assert_eq!(split_key(&[near], 1 << 30), None, "a small memtable is not split into three tables");
}
