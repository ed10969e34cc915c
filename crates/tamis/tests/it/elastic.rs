//! Elastic filters in a store: their units go where lookups in vain are, within the account.

use tamis::{Db, Keyspace, KeyspaceOptions, Options};
use tamis_vfs::{Access, MemVfs};

use crate::support::{Random, filters, inline_options, open_in_memory, small_keyspace};

const KEY_COUNT: u64 = 40_000;

fn key(number: u64) -> Vec<u8> {
    format!("key/{number:08}").into_bytes()
}

/// Even numbers, in one level of many tables.
fn fill(vfs: &MemVfs) {
    let db = open_in_memory(vfs, inline_options()).unwrap();
    let options = KeyspaceOptions { filters: filters("elastic:units=4@12"), ..small_keyspace() };
    let keyspace = db.create_keyspace("k", options).unwrap();
    for number in 0..KEY_COUNT {
        keyspace.put(key(2 * number), [7; 40]).unwrap();
    }
    db.compact_range::<&[u8]>(&keyspace, ..).unwrap();
    drop(keyspace);
    db.close().unwrap();
}

fn open(vfs: &MemVfs, cache_bytes: u64) -> (Db, Keyspace) {
    let options = Options {
        table_access: Access::Buffered,
        cache_bytes,
        cache_pinned_percent: 100,
        ..inline_options()
    };
    let db = open_in_memory(vfs, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    (db, keyspace)
}

/// Looks up absent keys, nine of ten of them in the first tenth of the keys, and gives the share of false reads.
fn look_up(db: &Db, keyspace: &Keyspace, random: &mut Random, count: u64) -> f64 {
    let false_reads = || -> u64 {
        db.statistics().filters.iter().map(|level| level.asked - level.denied - level.useful).sum()
    };
    let before = false_reads();
    for _ in 0..count {
        let width = if random.below(10) > 0 { KEY_COUNT / 10 } else { KEY_COUNT - 1 };
        assert!(keyspace.get(key(2 * random.below(width) + 1)).unwrap().is_none());
    }
    (false_reads() - before) as f64 / count as f64
}

/// Units in memory and units on disk, of the tables in order of their numbers.
fn units(db: &Db) -> (u64, u64) {
    let designs = db.statistics().keyspaces[1].filter_designs.clone();
    let parse = |design: &str| -> (u64, u64) {
        let words: Vec<&str> = design.split(' ').collect();
        assert_eq!((words[0], words[2], words[4]), ("elastic:", "of", "units"), "{design}");
        (words[1].parse().unwrap(), words[3].parse().unwrap())
    };
    designs.iter().map(|filter| parse(&filter.design)).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

#[test]
fn units_go_to_the_tables_that_are_asked_in_vain() {
    let vfs = MemVfs::new();
    fill(&vfs);
    // With room for all, every unit is there.
    let (db, keyspace) = open(&vfs, 64 << 20);
    let all_rate = look_up(&db, &keyspace, &mut Random(1), 20_000);
    let (loaded, on_disk) = units(&db);
    assert!(loaded == on_disk && on_disk > 60, "{loaded} of {on_disk}");
    let pinned = db.statistics().cache_pinned_bytes;
    drop((db, keyspace));

    // Room for the indexes and half of the units.
    let unit_bytes = KEY_COUNT * 3 / 8;
    let budget = pinned - 2 * unit_bytes;
    let (db, keyspace) = open(&vfs, budget);
    let mut random = Random(2);
    let first = look_up(&db, &keyspace, &mut random, 2_000);
    look_up(&db, &keyspace, &mut random, 200_000);
    let learned = look_up(&db, &keyspace, &mut random, 50_000);
    let statistics = db.statistics();
    assert!(statistics.cache_pinned_bytes <= budget);
    let (loaded, _) = units(&db);
    assert!(loaded * 10 > on_disk * 3 && loaded < on_disk, "{loaded} of {on_disk}");
    println!("false reads: {all_rate} with all units, {first} at first, {learned} learned");
    // A plain filter of the same memory, 6 bits a key, errs at 0.058.
    assert!(learned < 0.62 * 0.058, "{learned} after {first}, {all_rate} with all units");
    assert_eq!(statistics.filters_ignored, 0);
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn a_compaction_leaves_hot_keys_hot() {
    let vfs = MemVfs::new();
    fill(&vfs);
    let (db, keyspace) = open(&vfs, 64 << 20);
    look_up(&db, &keyspace, &mut Random(1), 1_000);
    let pinned = db.statistics().cache_pinned_bytes;
    drop((db, keyspace));
    let (db, keyspace) = open(&vfs, pinned - KEY_COUNT * 6 / 8);
    let mut random = Random(2);
    look_up(&db, &keyspace, &mut random, 200_000);
    let before = look_up(&db, &keyspace, &mut random, 20_000);
    // Every table is written again.
    for number in (0..KEY_COUNT).step_by(50) {
        keyspace.put(key(2 * number), [8; 40]).unwrap();
    }
    db.compact_range::<&[u8]>(&keyspace, ..).unwrap();
    look_up(&db, &keyspace, &mut random, 5_000);
    let after = look_up(&db, &keyspace, &mut random, 20_000);
    assert!(after < 2.0 * before + 0.005, "{after} false reads a lookup, {before} before the compaction");
}
