//! Scans of several runs whose blocks they read without a merge: damage, the ends of blocks and of ranges, both ends of a scan, and values
//! larger than a block.

use std::{collections::BTreeMap, ops::RangeInclusive, path::Path, sync::Arc};

use tamis::{Db, Error, Keyspace, Scan, Slice, Views};
use tamis_vfs::{Access, MemVfs, Vfs};

use crate::{
    support::{self, FOLDER, SplitMix64},
    views::{Store, blocks_touched},
};

const RUNS: u64 = 3;
const KEYS: u64 = 600;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;
type Entry = (Vec<u8>, Vec<u8>);

fn key(number: u64) -> Vec<u8> {
    support::key(number)
}

/// Runs that overlap, whose keys alternate at random, and their entries.
fn fill(store: &Store, random: &mut SplitMix64) -> (Db, Keyspace, Entries) {
    let (db, keyspace) = store.open();
    let run_of: Vec<u64> = (0..KEYS).map(|_| random.below(RUNS)).collect();
    let mut entries = Entries::new();
    for run in 0..RUNS {
        for number in (0..KEYS).filter(|&number| run_of[number as usize] == run) {
            let value = vec![number as u8; 100 + random.index(300)];
            keyspace.put(key(number), &value).unwrap();
            entries.insert(key(number), value);
        }
        db.flush().unwrap();
    }
    (db, keyspace, entries)
}

fn step(scan: &mut Scan, is_forward: bool) -> tamis::Result<bool> {
    if is_forward { scan.move_next() } else { scan.move_prev() }
}

/// The entries from the current place on, up to the end or an error.
fn rest(scan: &mut Scan, is_forward: bool) -> (Vec<Entry>, Option<Error>) {
    let mut found = Vec::new();
    loop {
        match step(scan, is_forward) {
            Ok(true) => found.push((scan.key().to_vec(), scan.value().to_vec())),
            Ok(false) => return (found, None),
            Err(error) => return (found, Some(error)),
        }
    }
}

/// The store with a changed byte in the middle of the blocks of its first table.
fn damage(store: &Store) -> Store {
    let folder = Path::new(FOLDER);
    let vfs = MemVfs::new();
    vfs.create_dir_all(folder).unwrap();
    let mut names: Vec<String> =
        store.vfs.list(folder).unwrap().into_iter().map(|entry| entry.name).collect();
    names.sort();
    let table = names.iter().find(|name| name.ends_with(".table")).unwrap();
    for name in &names {
        let mut bytes = store.vfs.read(&folder.join(name)).unwrap();
        if name == table {
            // A block in the middle, of which the entries are damaged.
            let offset = bytes.len() / 2 / 4096 * 4096 + 3_000;
            bytes[offset] ^= 1;
        }
        vfs.create(&folder.join(name)).unwrap().append(&bytes).unwrap();
    }
    Store { vfs: Arc::new(vfs), ..Store::new(Views::Off) }
}

#[test]
fn a_damaged_block_of_one_run_fails_once_and_a_seek_continues() {
    for access in [Access::Buffered, Access::Mapped] {
        let whole = Store::new(Views::Off);
        let (db, _, entries) = fill(&whole, &mut SplitMix64::new(1));
        db.close().unwrap();
        let mut store = damage(&whole);
        store.options.table_access = access;
        let (_db, keyspace) = store.open();
        let all: Vec<_> = entries.into_iter().collect();
        for is_forward in [true, false] {
            let mut scan = keyspace.range(..);
            if !is_forward {
                scan.seek_to_last();
            }
            let (found, error) = rest(&mut scan, is_forward);
            assert!(matches!(error, Some(Error::Corruption(_))), "{access:?}: {error:?}");
            let expected: Vec<_> = match is_forward {
                true => all.iter().take(found.len()).cloned().collect(),
                false => all.iter().rev().take(found.len()).cloned().collect(),
            };
            assert!(found == expected && found.len() > 100, "{} entries before the damage", found.len());
            // The error ends the scan.
            assert!(
                !step(&mut scan, is_forward).unwrap() && scan.key().is_empty() && scan.value().is_empty()
            );
            // Behind the damaged block, where that is found, the scan continues.
            let failed = match is_forward {
                true => found.len(),
                false => all.len() - found.len(),
            };
            let far = if is_forward { failed + 90 } else { failed - 90 };
            let (sought, others) = all.split_at(far);
            match is_forward {
                true => scan.seek(&others[0].0).unwrap(),
                false => scan.seek_for_prev(&sought[far - 1].0).unwrap(),
            }
            let expected: Vec<_> = match is_forward {
                true => others.to_vec(),
                false => sought.iter().rev().cloned().collect(),
            };
            let (found, error) = rest(&mut scan, is_forward);
            assert!(found == expected && error.is_none(), "{access:?}, {is_forward}: {error:?}");
        }
    }
}

/// A scan of the entries with these numbers, at the end from which it begins.
fn scan_of(keyspace: &Keyspace, numbers: RangeInclusive<u64>, is_forward: bool) -> Scan {
    let mut scan = keyspace.range(key(*numbers.start())..=key(*numbers.end()));
    if !is_forward {
        scan.seek_to_last();
    }
    scan
}

#[test]
fn no_block_behind_the_included_end_of_a_range_is_read() {
    let store = Store::new(Views::Off);
    let (db, keyspace, entries) = fill(&store, &mut SplitMix64::new(2));
    let all: Vec<_> = entries.into_iter().collect();
    // Every entry that is the last one of its block is an end.
    for number in 0..KEYS - 40 {
        for is_forward in [true, false] {
            let numbers = number..=number + 40;
            let blocks = |has_last_step: bool| {
                let before = blocks_touched(&db);
                let mut scan = scan_of(&keyspace, numbers.clone(), is_forward);
                for _ in numbers.clone() {
                    assert!(step(&mut scan, is_forward).unwrap());
                }
                assert!(!has_last_step || !step(&mut scan, is_forward).unwrap());
                drop(scan);
                blocks_touched(&db) - before
            };
            assert_eq!(blocks(true), blocks(false), "{numbers:?}, forward: {is_forward}");
            let (mut found, _) = rest(&mut scan_of(&keyspace, numbers.clone(), is_forward), is_forward);
            if !is_forward {
                found.reverse();
            }
            assert!(found == all[number as usize..=number as usize + 40], "{numbers:?}, {is_forward}");
        }
    }
}

/// Takes entries from both ends, several in a row from each, until the ends meet.
fn take_from_both_ends(mut scan: Scan, front_count: usize, back_count: usize) -> Vec<Entry> {
    let own = |entry: Option<tamis::Result<(Slice, Slice)>>| {
        entry.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap())
    };
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let before = front.len() + back.len();
        front.extend((0..front_count).map_while(|_| own(scan.next())));
        back.extend((0..back_count).map_while(|_| own(scan.next_back())));
        if front.len() + back.len() < before + front_count + back_count {
            assert!(scan.next().is_none() && scan.next_back().is_none());
            front.extend(back.into_iter().rev());
            return front;
        }
    }
}

#[test]
fn the_ends_of_a_scan_meet_inside_a_block() {
    let store = Store::new(Views::Off);
    let (_db, keyspace, entries) = fill(&store, &mut SplitMix64::new(3));
    let all: Vec<_> = entries.into_iter().collect();
    for (front_count, back_count) in [(1, 1), (3, 1), (1, 7), (20, 20), (150, 1), (1, 150), (150, 150)] {
        for first in 0..50 {
            let numbers = first..=KEYS - 2 * first - 1;
            let expected = &all[first as usize..=(KEYS - 2 * first - 1) as usize];
            let scan = scan_of(&keyspace, numbers, true);
            let found = take_from_both_ends(scan, front_count, back_count);
            assert!(found == expected, "{front_count} and {back_count} in turn, from {first}");
        }
    }
}

#[test]
fn values_larger_than_a_block_follow_small_ones() {
    let store = Store::new(Views::Off);
    let (db, keyspace) = store.open();
    let length = |number: u64| match number % 40 {
        7 => 300_000 + 70_001 * (number / 40) as usize,
        // Two runs have their large values one after the other.
        8 => 5_000,
        _ => 20 + number as usize,
    };
    let value = |number: u64| vec![number as u8; length(number)];
    let check = || {
        for is_forward in [true, false] {
            let (mut found, error) = rest(&mut scan_of(&keyspace, 0..=399, is_forward), is_forward);
            if !is_forward {
                found.reverse();
            }
            assert!(error.is_none() && found.len() == 400, "{} entries, {error:?}", found.len());
            for (number, entry) in (0..).zip(&found) {
                assert!(*entry == (key(number), value(number)), "{number}, forward: {is_forward}");
            }
        }
        for number in (7..400).step_by(40) {
            let mut scan = keyspace.range(..);
            scan.seek(key(number)).unwrap();
            for number in number..number + 3 {
                assert!(scan.move_next().unwrap() && scan.value() == value(number), "{number}");
            }
            assert!(scan.move_prev().unwrap() && scan.value() == value(number + 1), "{number}");
        }
    };
    for run in 0..4 {
        for number in (run..400).step_by(4) {
            keyspace.put(key(number), value(number)).unwrap();
        }
        db.flush().unwrap();
    }
    check();
    db.compact_range(&keyspace, ..).unwrap();
    check();
}
