//! Which ends of a memtable are cut off.
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
    let options = KeyspaceOptions { table_bytes, ..KeyspaceOptions::default() };
    KeyspaceVersion { options: Arc::new(options), ..(**version).clone() }
}

#[test]
fn the_front_is_cut_behind_the_last_table_where_that_is_near() {
    let memtable = memtable(10_000, 20_000);
    let front = |first, last| Front::of(&version(first, last, 1 << 20), &memtable).unwrap();
    assert_eq!(front(0, 9_999), Front::Apart);
    assert_eq!(front(20_000, 30_000), Front::Apart);
    assert_eq!(front(0, 10_500), Front::Edge([key(10_500), vec![0]].concat()));
    assert_eq!(front(10_100, 10_500), Front::Edge([key(10_500), vec![0]].concat()));
    assert!(matches!(front(0, 12_500), Front::Edge(_)));
    assert_eq!(front(0, 16_000), Front::Overlapping);
    assert_eq!(front(0, 30_000), Front::Overlapping);
    assert_eq!(front(19_990, 30_000), Front::Overlapping, "at its other end");
    let small = Front::of(&version(0, 10_500, 1 << 30), &memtable).unwrap();
    assert_eq!(small, Front::Overlapping, "a small memtable is not worth three tables");
}

#[test]
fn the_back_is_cut_where_newer_memtables_begin() {
    let own = memtable(10_000, 20_000);
    let back = |newer: &[Arc<Memtable>], table_bytes| back(&version(0, 9, table_bytes), &own, newer).unwrap();
    let (near, far, apart) = (memtable(19_500, 19_600), memtable(12_000, 12_100), memtable(20_000, 20_010));
    let empty = memtable(0, 0);
    assert_eq!(back(&[empty.clone(), near.clone()], 1 << 20), Some(key(19_500)));
    assert_eq!(back(&[apart.clone(), near.clone()], 1 << 20), Some(key(19_500)), "the least of all");
    assert_eq!(back(&[near.clone(), far], 1 << 20), None, "most of it lies behind");
    assert_eq!(back(&[apart], 1 << 20), Some(key(20_000)), "behind all of it");
    assert_eq!(back(&[empty], 1 << 20), None);
    assert_eq!(back(&[near], 1 << 30), None, "a small memtable is not worth three tables");
}
