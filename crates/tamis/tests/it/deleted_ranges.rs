//! Ranges of deleted keys that scans note: later scans jump over them, and no answer changes.

use std::{collections::BTreeMap, sync::Arc};

use tamis::{Db, KeyspaceOptions, Layout, Options, Runtime};
use tamis_vfs::MemVfs;
use tamis_workload::SplitMix64;

use crate::support::{FOLDER, small_keyspace};

/// Flushes of puts, and of deletes.
const PARTS: u64 = 7;

fn options(workers: usize) -> Options {
    let keyspace = KeyspaceOptions::default().level0_runs(64).memtable_bytes(1 << 30);
    Options::default().workers(workers).default_keyspace(keyspace)
}

fn open_with(vfs: &MemVfs, options: Options) -> Db {
    Db::open_on(Arc::new(vfs.clone()), FOLDER, options, Runtime::deterministic(1)).unwrap()
}

fn open(vfs: &MemVfs) -> Db {
    open_with(vfs, options(0))
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Blocks that reads have used.
fn blocks(db: &Db) -> u64 {
    let statistics = db.statistics();
    statistics.blocks_read + statistics.cache_hits
}

/// The result of a call, its blocks, and the deleted keys that it has passed.
fn cost_of<T>(db: &Db, read: impl FnOnce() -> T) -> (T, u64, u64) {
    let (before, passed) = (blocks(db), db.statistics().deleted_keys_passed);
    let result = read();
    (result, blocks(db) - before, db.statistics().deleted_keys_passed - passed)
}

/// Puts and deletes `count` keys in as many flushes of each as there are parts. The returned snapshot keeps the entries from being
/// compacted.
fn delete_in_parts(db: &Db, count: u64) -> tamis::Snapshot {
    let part_of = |part| (0..count).filter(move |number| number % PARTS == part);
    for part in 0..PARTS {
        part_of(part).for_each(|number| db.put(key(number), [7; 100]).unwrap());
        db.flush().unwrap();
    }
    let snapshot = db.snapshot();
    for part in 0..PARTS {
        part_of(part).for_each(|number| db.delete(key(number)).unwrap());
        db.flush().unwrap();
    }
    snapshot
}

#[test]
fn the_second_scan_over_deleted_keys_in_many_runs_reads_few_blocks() {
    for is_forward in [true, false] {
        let db = open(&MemVfs::new());
        let snapshot = delete_in_parts(&db, 21_000);
        let scan = || {
            let mut scan = db.range(..);
            if is_forward { scan.next() } else { scan.next_back() }
        };
        let (found, _, passed) = cost_of(&db, scan);
        assert!(found.is_none() && passed == 21_000, "{passed} deleted keys");
        assert_eq!(db.statistics().deleted_ranges_recorded, 1);
        let (found, blocks, passed) = cost_of(&db, scan);
        assert!(found.is_none());
        assert!(blocks <= 2 * 2 * PARTS && passed <= PARTS, "{blocks} blocks, {passed} deleted keys");
        assert_eq!(snapshot.range(&db.default_keyspace(), ..).count(), 21_000);
    }
}

/// Several spans of one flush, with visible entries between them.
#[test]
fn a_scan_notes_each_span_of_deleted_keys() {
    let db = open(&MemVfs::new());
    (0..100_000).for_each(|number| db.put(key(number), [7; 20]).unwrap());
    db.flush().unwrap();
    let snapshot = db.snapshot();
    for span in [1_000..9_000, 40_000..45_000, 90_000..100_000] {
        span.for_each(|number| db.delete(key(number)).unwrap());
    }
    db.flush().unwrap();
    assert_eq!(db.range(..).count(), 77_000);
    assert_eq!(db.statistics().deleted_ranges_recorded, 3);
    let (count, _, passed) = cost_of(&db, || db.range(..).count());
    assert_eq!((count, passed), (77_000, 0));
    assert_eq!(db.range(key(40_000)..).next().unwrap().unwrap().0.as_ref(), key(45_000));
    assert_eq!(snapshot.range(&db.default_keyspace(), ..).count(), 100_000);
}

#[test]
fn nothing_is_noted_if_ranges_are_switched_off() {
    let db = open_with(&MemVfs::new(), options(0).deleted_range_keys(0));
    let _snapshot = delete_in_parts(&db, 14_000);
    assert_eq!(db.range(..).count(), 0);
    assert_eq!(db.statistics().deleted_ranges_recorded, 0);
}

/// Random spans of deletes, puts into them, range deletes, flushes and reopens; scans and snapshots against a map.
#[test]
fn recorded_ranges_change_no_answer() {
    for seed in 0..4 {
        let mut random = SplitMix64::new(seed);
        let vfs = MemVfs::new();
        let mut db = open(&vfs);
        let mut map = BTreeMap::new();
        let mut recorded_count = 0;
        for round in 0..8 {
            let begin = random.below(20_000);
            for number in begin..begin + 12_000 {
                db.put(key(number), round.to_string()).unwrap();
                map.insert(key(number).to_vec(), round.to_string().into_bytes());
            }
            if random.below(2) == 0 {
                db.flush().unwrap();
            }
            let snapshot = (db.snapshot(), map.clone());
            let (begin, step) = (random.below(20_000), 1 + random.below(3_000));
            for number in (begin..begin + 14_000).filter(|number| number % step != 1) {
                db.delete(key(number)).unwrap();
                map.remove(&key(number)[..]);
            }
            if random.below(4) == 0 {
                let lower = random.below(30_000);
                db.delete_range(key(lower)..key(lower + 500)).unwrap();
                map.retain(|found, _| {
                    !(key(lower)..key(lower + 500)).contains(&found[..].try_into().unwrap())
                });
            }
            db.flush().unwrap();
            for _ in 0..random.below(50) {
                let number = random.below(30_000);
                db.put(key(number), "new").unwrap();
                map.insert(key(number).to_vec(), b"new".to_vec());
            }
            check(db.range(..), &map);
            check(snapshot.0.range(&db.default_keyspace(), ..), &snapshot.1);
            recorded_count += db.statistics().deleted_ranges_recorded;
            drop(snapshot);
            if random.below(3) == 0 {
                drop(db);
                db = open(&vfs);
                check(db.range(..), &map);
            }
        }
        assert!(recorded_count > 4, "seed {seed}: {recorded_count} ranges");
        assert!(db.verify().unwrap().is_sound());
    }
}

fn check(scan: tamis::Scan, map: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let found: Vec<_> =
        scan.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect();
    let expected: Vec<_> = map.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    assert!(found == expected, "{} entries instead of {}", found.len(), expected.len());
}

/// Writes that follow each flush at once, while another thread scans.
#[test]
fn ranges_that_scans_note_hide_no_concurrent_write() {
    let db = open_with(&MemVfs::new(), options(2));
    for round in 0..6_u64 {
        (0..12_000).for_each(|number| db.put(key(number), round.to_be_bytes()).unwrap());
        (0..12_000).for_each(|number| db.delete(key(number)).unwrap());
        let flusher = std::thread::scope(|scope| {
            let flushed = scope.spawn(|| {
                db.flush()?;
                db.range(..).try_for_each(|entry| entry.map(drop))
            });
            for number in (0..12_000).step_by(101) {
                db.put(key(number), "kept").unwrap();
                assert_eq!(db.get(key(number)).unwrap().as_deref(), Some(&b"kept"[..]));
            }
            flushed.join().unwrap()
        });
        flusher.unwrap();
        assert_eq!(db.range(..).count(), 12_000_usize.div_ceil(101));
        db.wait_for_compactions().unwrap();
        assert_eq!(db.range(..).count(), 12_000_usize.div_ceil(101));
    }
}

/// All keys between the ends are deleted, and scans record that. The keys at the ends are not.
#[test]
fn scans_that_end_at_a_bound_after_deleted_keys_delete_no_entry() {
    let db = open_with(&MemVfs::new(), options(0).deleted_range_keys(2));
    let range = || db.range(key(0)..=key(9));
    for _ in 0..3 {
        (0..=9).for_each(|number| db.put(key(number), "value").unwrap());
        (1..9).for_each(|number| db.delete(key(number)).unwrap());
        let seeks: [fn(&mut tamis::Scan); 6] = [
            |scan| scan.seek(key(1)).unwrap(),
            |scan| scan.seek(key(200)).unwrap(),
            |scan| scan.seek_for_prev(key(8)).unwrap(),
            |scan| scan.seek_for_prev([]).unwrap(),
            tamis::Scan::seek_to_first,
            tamis::Scan::seek_to_last,
        ];
        for (first, second) in seeks.iter().flat_map(|first| seeks.iter().map(move |second| (first, second)))
        {
            for is_forward in [true, false] {
                let mut scan = range();
                for seek in [first, second] {
                    seek(&mut scan);
                    while if is_forward { scan.move_next() } else { scan.move_prev() }.unwrap() {}
                }
                assert_eq!((range().count(), range().rev().count()), (2, 2));
            }
        }
        assert!(db.get(key(0)).unwrap().is_some() && db.get(key(9)).unwrap().is_some());
        db.flush().unwrap();
        assert!(db.get(key(0)).unwrap().is_some() && db.get(key(9)).unwrap().is_some());
    }
    assert!(db.statistics().deleted_ranges_recorded > 0);
}

#[test]
fn scans_over_partitions_with_many_deleted_keys_delete_no_entry() {
    const COUNT: u64 = 40_000;
    let layout = Layout::Partitioned { tables_per_partition: 4 };
    let default_keyspace = small_keyspace().layout(layout);
    let db = open_with(&MemVfs::new(), options(0).deleted_range_keys(2).default_keyspace(default_keyspace));
    let mut random = SplitMix64::new(7);
    let mut map = BTreeMap::new();
    for _ in 0..COUNT {
        let number = random.below(COUNT);
        db.put(key(number), [1; 60]).unwrap();
        map.insert(key(number).to_vec(), vec![1; 60]);
    }
    db.flush().unwrap();
    let partition_count = db.statistics().keyspaces.iter().map(|keyspace| keyspace.partition_count).max();
    assert!(partition_count >= Some(10), "{partition_count:?}");
    for number in (0..COUNT).filter(|_| random.below(10) > 0) {
        db.delete(key(number)).unwrap();
        map.remove(&key(number)[..]);
    }
    for _ in 0..3 {
        assert_eq!(db.range(..).rev().count(), map.len());
        check(db.range(..), &map);
        let (mut both, mut count) = (db.range(..), 0);
        while both.next().is_some() {
            count += 1 + usize::from(both.next_back().is_some());
        }
        assert_eq!(count, map.len());
    }
    db.flush().unwrap();
    check(db.range(..), &map);
}

/// A scan that moved backward over keys of a range tombstone, up to its end, noted a range down to a key of an earlier movement, or to the first key
/// of all: keys that it had not visited were lost for later scans.
#[test]
fn a_backward_scan_notes_no_keys_that_it_has_not_visited() {
    let db = open_with(&MemVfs::new(), options(0).deleted_range_keys(1));
    for key in ["a", "b", "m", "n"] {
        db.put(key, "value").unwrap();
    }
    db.delete_range("m".."o").unwrap();
    assert_eq!(db.range("l"..).rev().count(), 0);
    assert_eq!(db.range(..).count(), 2);
    assert!(db.range("a".."c").rev().count() == 2 && db.first().unwrap().is_some());
}

/// The last write has the number of the next scan. The scan returned its key, and passed the older entry of the key, which a range tombstone
/// deletes, with the next step: later scans did not find the key.
#[test]
fn a_scan_notes_no_key_that_it_has_returned() {
    let db = open_with(&MemVfs::new(), options(0).deleted_range_keys(1));
    for key in ["a", "k", "l"] {
        db.put(key, "old").unwrap();
    }
    db.flush().unwrap();
    db.delete_range("b".."z").unwrap();
    db.put("k", "new").unwrap();
    for _ in 0..3 {
        assert_eq!(db.range("k"..).count(), 1);
        assert_eq!(db.range(..).count(), 2);
        assert_eq!(db.range(.."l").rev().count(), 2);
    }
}

/// A run that waited at its smallest key, within a range tombstone of a newer memtable, jumped over the tombstone after the memtable's entry of the
/// same key had been returned. The key counted as passed: the scan noted a range with a visible entry as empty.
#[test]
fn a_jump_over_a_range_tombstone_passes_no_newer_entry() {
    for key_count in [1, 2] {
        let db = open_with(&MemVfs::new(), options(0).deleted_range_keys(key_count));
        for prefix in ["f", "g", "h"] {
            db.put([prefix, "0"].concat(), "old").unwrap();
            db.put([prefix, "1"].concat(), "old").unwrap();
            db.flush().unwrap();
        }
        db.delete_range("f0"..="h7").unwrap();
        for key in ["f0", "g0", "h0"] {
            db.put(key, "new").unwrap();
        }
        for _ in 0..3 {
            assert_eq!(db.range("f0"..="hh").count(), 3);
            assert_eq!(db.range("f0"..="hh").rev().count(), 3);
            assert_eq!(db.range("h0"..="hc").count(), 1);
            assert_eq!(db.range("h0"..="hc").rev().count(), 1);
            assert_eq!(db.multi_range(["h0"..="hc"]).into_iter().map(Iterator::count).sum::<usize>(), 1);
        }
    }
}
