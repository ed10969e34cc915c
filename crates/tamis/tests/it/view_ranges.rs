//! Range tombstones in runs that a view covers: a scan jumps over the deleted span as it does without a view, and answers are the same.

use std::{collections::BTreeMap, io::ErrorKind, sync::Arc};

use tamis::{Db, Keyspace, Snapshot, Views};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule};

use crate::{
    support::{SplitMix64, key},
    views::{Store, all, all_backward, blocks_touched, fill, value, views_of},
};

const KEYS: u64 = 20_000;
/// Of the even keys below `2 * KEYS`, those from the first to the last of these are deleted.
const DELETED: (u64, u64) = (1_000, 2 * KEYS - 1_000);
/// A key within the deleted ones that was written again.
const KEPT: u64 = 24_000;

/// All keys in the first run; most of them are deleted in the second one, and one of these is written again. A snapshot before the
/// deletes keeps the covered run from a compaction.
fn with_deleted_span(views: Views) -> (Db, Keyspace, Snapshot) {
    let (db, keyspace) = Store::new(views).open();
    fill(&db, &keyspace, KEYS, 1);
    let snapshot = db.snapshot();
    keyspace.delete_range(key(DELETED.0)..=key(DELETED.1)).unwrap();
    keyspace.put(key(KEPT), value(KEPT, 1)).unwrap();
    db.flush().unwrap();
    (db, keyspace, snapshot)
}

/// The key of the entry that a seek finds.
fn found(keyspace: &Keyspace, sought: u64, is_forward: bool) -> Vec<u8> {
    let mut scan = keyspace.range(..);
    if is_forward {
        scan.seek(key(sought)).unwrap();
        assert!(scan.move_next().unwrap());
    } else {
        scan.seek_for_prev(key(sought)).unwrap();
        assert!(scan.move_prev().unwrap());
    }
    scan.key().to_vec()
}

#[test]
fn a_scan_jumps_over_a_span_that_a_covered_run_deletes() {
    let (db, keyspace, _snapshot) = with_deleted_span(Views::On);
    assert!(views_of(&db).open_count == 1 && views_of(&db).run_count >= 2);
    let (first, last) = (DELETED.0 - 2, DELETED.1 + 2);
    let seeks = [
        (first, true, first),
        (first + 1, true, KEPT),
        (9_000, true, KEPT),
        (KEPT, true, KEPT),
        (KEPT + 1, true, last),
        (30_001, true, last),
        (last, true, last),
        (first, false, first),
        (9_000, false, first),
        (KEPT - 1, false, first),
        (KEPT, false, KEPT),
        (30_001, false, KEPT),
        (last - 1, false, KEPT),
        (last, false, last),
    ];
    for (sought, is_forward, expected) in seeks {
        let before = blocks_touched(&db);
        assert_eq!(found(&keyspace, sought, is_forward), key(expected), "from {sought}, {is_forward}");
        let blocks = blocks_touched(&db) - before;
        assert!(blocks <= 4, "{blocks} blocks from {sought}, forward: {is_forward}");
    }
    // The scan reads the keys that are left, and a few blocks for each jump.
    let before = blocks_touched(&db);
    let entries = all(&keyspace);
    let blocks = blocks_touched(&db) - before;
    assert!(blocks < 60, "{blocks} blocks for {} entries", entries.len());
    let (_without, plain, _snapshot_without) = with_deleted_span(Views::Off);
    assert!(entries == all(&plain) && all_backward(&keyspace) == entries);
    assert_eq!(entries.len() as u64, DELETED.0 / 2 + 1 + (2 * KEYS - DELETED.1) / 2 - 1);
}

/// A scan whose range ends within the deleted span reads nothing behind it.
#[test]
fn a_scan_that_ends_in_a_deleted_span_reads_few_blocks() {
    let (db, keyspace, _snapshot) = with_deleted_span(Views::On);
    for (lower, upper) in [(1_500, 30_000), (1_001, KEPT + 1), (KEPT, 38_000)] {
        for is_backward in [false, true] {
            let before = blocks_touched(&db);
            let range = keyspace.range(key(lower)..key(upper));
            let count = if is_backward { range.rev().count() } else { range.count() };
            assert_eq!(count, 1, "the key that was written again");
            let blocks = blocks_touched(&db) - before;
            assert!(blocks <= 5, "{blocks} blocks of {lower}..{upper}, backward: {is_backward}");
        }
    }
}

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Writes a run at random: keys, deleted keys and deleted ranges.
fn write_run(
    keyspace: &Keyspace,
    entries: &mut Entries,
    random: &mut SplitMix64,
    (run, write_count): (u64, u64),
    key_count: u64,
) {
    for number in 0..write_count {
        let first = random.below(key_count);
        match random.below(10) {
            0 => {
                let last = first + random.below(key_count / 3);
                keyspace.delete_range(key(first)..key(last)).unwrap();
                entries.retain(|name, _| *name < key(first) || *name >= key(last));
            }
            1 => {
                keyspace.delete(key(first)).unwrap();
                entries.remove(&key(first));
            }
            _ => {
                keyspace.put(key(first), value(number, run)).unwrap();
                entries.insert(key(first), value(number, run));
            }
        }
    }
}

/// Moves at random, and compares each step.
fn check_steps(keyspace: &Keyspace, entries: &Entries, random: &mut SplitMix64, key_count: u64) {
    let list: Vec<_> = entries.iter().collect();
    let mut scan = keyspace.range(..);
    for _ in 0..40 {
        let (sought, is_forward) = (key(random.below(key_count)), random.below(2) == 0);
        let mut place = if is_forward {
            scan.seek(&sought).unwrap();
            list.partition_point(|(name, _)| **name < sought)
        } else {
            scan.seek_for_prev(&sought).unwrap();
            list.partition_point(|(name, _)| **name <= sought)
        };
        for _ in 0..random.below(12) {
            // `place` is the number of entries before the gap at which the scan is, before the first step.
            let found = if is_forward { scan.move_next() } else { scan.move_prev() }.unwrap();
            let number = if is_forward { Some(place) } else { place.checked_sub(1) };
            let expected = number.and_then(|number| list.get(number));
            assert_eq!(found.then(|| scan.key()), expected.map(|(name, _)| name.as_slice()));
            if !found {
                break;
            }
            assert_eq!(Some(scan.value()), expected.map(|(_, value)| value.as_slice()));
            place = if is_forward { place + 1 } else { place - 1 };
        }
    }
}

/// Runs with range tombstones under a view, newer ones that it does not cover, and memtables: movements agree with a sorted list, and
/// snapshots see what they saw.
#[test]
fn scans_agree_with_a_model_if_covered_runs_delete_ranges() {
    const KEY_COUNT: u64 = 300;
    for seed in 0..12 {
        let mut random = SplitMix64::new(seed);
        let faults = FaultVfs::new(Arc::new(MemVfs::new()));
        let store = Store { vfs: Arc::new(faults.clone()), ..Store::new(Views::On) };
        let mut entries = Entries::new();
        let (db, keyspace) = store.open();
        let mut snapshots = Vec::new();
        for run in 0..4 {
            write_run(&keyspace, &mut entries, &mut random, (run, 60), KEY_COUNT);
            snapshots.push((db.snapshot(), entries.clone()));
            write_run(&keyspace, &mut entries, &mut random, (run, 60), KEY_COUNT);
            db.flush().unwrap();
        }
        assert_eq!((views_of(&db).open_count, views_of(&db).run_count), (1, 4), "seed {seed}");
        let check = |snapshots: &[(Snapshot, Entries)]| {
            for (snapshot, expected) in snapshots {
                let found = |is_backward: bool| -> Vec<_> {
                    let scan = snapshot.range(&keyspace, ..);
                    let entry = |entry: tamis::Result<(tamis::Slice, tamis::Slice)>| {
                        let (key, value) = entry.unwrap();
                        (key.to_vec(), value.to_vec())
                    };
                    if is_backward { scan.rev().map(entry).collect() } else { scan.map(entry).collect() }
                };
                let mut expected: Vec<_> = expected.clone().into_iter().collect();
                assert!(found(false) == expected, "seed {seed}");
                expected.reverse();
                assert!(found(true) == expected, "seed {seed}");
            }
        };
        check(&snapshots);
        check_steps(&keyspace, &entries, &mut random, KEY_COUNT);
        // Further runs do not join the view.
        let rule = Rule::error(ErrorKind::Other).on(&[OperationKind::Rename]).path(".view");
        faults.add_rule(rule.times(u64::MAX));
        for run in 4..6 {
            write_run(&keyspace, &mut entries, &mut random, (run, 12), KEY_COUNT);
            db.flush().unwrap();
        }
        // Snapshots keep the garbage in its runs.
        assert_eq!((views_of(&db).open_count, views_of(&db).run_count), (1, 4), "seed {seed}");
        check(&snapshots);
        check_steps(&keyspace, &entries, &mut random, KEY_COUNT);
        write_run(&keyspace, &mut entries, &mut random, (6, 60), KEY_COUNT);
        check_steps(&keyspace, &entries, &mut random, KEY_COUNT);
    }
}
