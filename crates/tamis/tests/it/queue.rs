//! Queues: puts at the end, deletes at the front. The first entry is found at the cost of a few blocks in any state.

use std::sync::Arc;

use tamis::{Db, KeyspaceOptions, Options, Runtime, Statistics, TableWriter};
use tamis_vfs::MemVfs;

use crate::support::{FOLDER, is_complete};

const LIVE_COUNT: u64 = 1_000;

fn open(vfs: &MemVfs, memtable_bytes: u64) -> Db {
    let options = Options::default()
        .workers(0)
        .default_keyspace(KeyspaceOptions::default().memtable_bytes(memtable_bytes));
    Db::open_on(Arc::new(vfs.clone()), FOLDER, options, Runtime::deterministic(1)).unwrap()
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Blocks that a call reads from tables, and deleted keys that it passes.
fn cost_of<T>(db: &Db, read: impl FnOnce() -> T) -> (T, u64, u64) {
    let before: Statistics = db.statistics();
    let result = read();
    let after = db.statistics();
    (result, after.blocks_read - before.blocks_read, after.deleted_keys_passed - before.deleted_keys_passed)
}

/// A consumer that reads the first entry before it deletes it.
#[test]
fn the_first_entry_of_a_queue_costs_a_few_blocks_in_any_state() {
    let count = if is_complete() { 60_000 } else { 20_000 };
    for memtable_bytes in [64 << 10, 1 << 20, 64 << 20] {
        let vfs = MemVfs::new();
        let db = open(&vfs, memtable_bytes);
        let mut head = 0;
        for tail in 0..count {
            db.put(key(tail), [7; 100]).unwrap();
            if tail < LIVE_COUNT {
                continue;
            }
            let (first, blocks, passed) = cost_of(&db, || db.first().unwrap().unwrap());
            assert_eq!(first.0.as_ref(), key(head));
            assert!(blocks <= 16, "memtable of {memtable_bytes}, entry {head}: {blocks} blocks");
            assert!(passed <= 64, "memtable of {memtable_bytes}, entry {head}: {passed} deleted keys");
            db.delete(key(head)).unwrap();
            head += 1;
            match tail % 20_000 {
                7_000 => db.flush().unwrap(),
                9_000 => db.compact_range(&db.default_keyspace(), ..).unwrap(),
                _ => {}
            }
        }
        assert!(db.statistics().deleted_ranges_recorded > 100);
        let (last, blocks, _) = cost_of(&db, || db.last().unwrap().unwrap());
        assert!(last.0.as_ref() == key(count - 1) && blocks <= 16, "{blocks} blocks");
        assert_eq!(db.range(..).count() as u64, LIVE_COUNT);
        db.flush().unwrap();
        assert_eq!(db.range(..).rev().count() as u64, LIVE_COUNT);
        assert!(db.verify().unwrap().is_sound());
    }
}

/// A consumer that knows its keys deletes without reading: the first scan passes all deleted keys, the second none.
#[test]
fn the_second_scan_of_a_queue_passes_no_deleted_key() {
    let vfs = MemVfs::new();
    let db = open(&vfs, 64 << 20);
    for tail in 0..20_000_u64 {
        db.put(key(tail), [7; 100]).unwrap();
        if let Some(head) = tail.checked_sub(LIVE_COUNT) {
            db.delete(key(head)).unwrap();
        }
    }
    let (_, _, passed) = cost_of(&db, || db.first().unwrap());
    assert!(passed > 18_000, "{passed}");
    let (first, _, passed) = cost_of(&db, || db.first().unwrap().unwrap());
    assert_eq!((first.0.as_ref(), passed), (&key(19_000)[..], 0));
    // An entry within the range, and one more delete.
    db.put(key(500), "urgent").unwrap();
    assert_eq!(db.first().unwrap().unwrap().1.as_ref(), b"urgent");
    db.delete(key(500)).unwrap();
    let (first, _, passed) = cost_of(&db, || db.first().unwrap().unwrap());
    assert_eq!((first.0.as_ref(), passed), (&key(19_000)[..], 0));
    // The flush does not write the deleted keys.
    db.flush().unwrap();
    let tables = &db.statistics().keyspaces[0].levels;
    let entry_count: u64 = tables.iter().map(|level| level.entry_count).sum();
    assert!(entry_count <= LIVE_COUNT + 2, "{entry_count}");
}

/// Deleted keys of a memtable and of tables below, or of tables alone, forward and backward; snapshots see what they saw.
#[test]
fn scans_record_deleted_ranges_in_both_directions() {
    for (is_forward, is_flushed) in [(true, false), (false, false), (true, true), (false, true)] {
        let vfs = MemVfs::new();
        let db = open(&vfs, 64 << 20);
        for number in 0..10_000_u64 {
            db.put(key(number), [7; 20]).unwrap();
        }
        db.flush().unwrap();
        let before = db.snapshot();
        for number in 1_000..9_000_u64 {
            db.delete(key(number)).unwrap();
        }
        if is_flushed {
            db.flush().unwrap();
        }
        let count = || {
            let scan = db.range(key(500)..key(9_500));
            if is_forward { scan.count() } else { scan.rev().count() }
        };
        let (found, _, passed) = cost_of(&db, count);
        assert_eq!((found, passed), (1_000, 8_000));
        let (found, blocks, passed) = cost_of(&db, count);
        assert_eq!((found, passed), (1_000, 0));
        assert!(blocks < 20, "{blocks}");
        assert_eq!(before.range(&db.default_keyspace(), key(500)..key(9_500)).count(), 9_000);
        // Seeks end after the range as well.
        let mut scan = db.range(..);
        scan.seek(key(4_000)).unwrap();
        assert!(scan.move_next().unwrap() && scan.key() == key(9_000));
        scan.seek_for_prev(key(4_000)).unwrap();
        assert!(scan.move_prev().unwrap() && scan.key() == key(999));
        // Writes after the recorded range are newer than it.
        db.put(key(5_000), [9]).unwrap();
        db.flush().unwrap();
        assert_eq!(db.get(key(5_000)).unwrap().as_deref(), Some(&[9][..]));
        drop((scan, before));
        drop(db);
        let db = open(&vfs, 64 << 20);
        assert_eq!(db.range(key(500)..key(9_500)).count(), 1_001);
    }
}

/// Ingested tables are below the memtable and are newer than what it has recorded.
#[test]
fn ranges_recorded_in_an_empty_memtable_do_not_hide_ingested_tables() {
    let vfs = MemVfs::new();
    let db = open(&vfs, 64 << 20);
    for number in 0..5_000_u64 {
        db.put(key(number), [7]).unwrap();
    }
    db.flush().unwrap();
    let snapshot = db.snapshot();
    for number in 1..4_999_u64 {
        db.delete(key(number)).unwrap();
    }
    db.flush().unwrap();
    assert_eq!(db.range(..).count(), 2);
    assert_eq!(db.statistics().deleted_ranges_recorded, 1);
    let mut table = TableWriter::create_on(Arc::new(vfs.clone()), "/t", &KeyspaceOptions::default()).unwrap();
    for number in 400..600_u64 {
        table.put(key(number), [8]).unwrap();
    }
    table.finish().unwrap();
    db.ingest(&db.default_keyspace(), ["/t"]).unwrap();
    assert_eq!(db.range(..).count(), 202);
    assert_eq!(db.get(key(500)).unwrap().as_deref(), Some(&[8][..]));
    db.put(key(0), [9]).unwrap();
    db.flush().unwrap();
    assert_eq!(db.range(..).count(), 202);
    assert_eq!(snapshot.range(&db.default_keyspace(), ..).count(), 5_000);
}

/// Writers and a reader at the same time: the reader finds exactly the existing keys.
#[test]
fn ranges_are_recorded_while_writers_run() {
    let vfs = MemVfs::new();
    let db = open(&vfs, 1 << 20);
    let produced = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..40_000_u64 {
                db.put(key(number), number.to_le_bytes()).unwrap();
                produced.store(number + 1, std::sync::atomic::Ordering::Release);
            }
        });
        let mut head = 0;
        while head < 40_000 {
            let known = produced.load(std::sync::atomic::Ordering::Acquire);
            match db.first().unwrap() {
                Some((found, value)) => {
                    assert_eq!((found.as_ref(), value.as_ref()), (&key(head)[..], &head.to_le_bytes()[..]));
                    db.delete(key(head)).unwrap();
                    head += 1;
                }
                None => assert!(known <= head, "entry {head} is not found"),
            }
        }
    });
    assert!(db.first().unwrap().is_none());
}

/// Few deleted keys of a table, but in a row: after a scan has passed them, no other one does.
#[test]
fn deleted_keys_are_passed_once() {
    let vfs = MemVfs::new();
    let db = open(&vfs, 64 << 20);
    let keyspace = db.default_keyspace();
    for number in 0..100_000_u64 {
        db.put(key(number), [7; 100]).unwrap();
    }
    db.compact_range(&keyspace, ..).unwrap();
    for number in 40_000..42_000_u64 {
        db.delete(key(number)).unwrap();
    }
    db.flush().unwrap();
    let count = || db.range(key(39_990)..key(42_010)).count();
    let (found, blocks, passed) = cost_of(&db, count);
    assert_eq!((found, passed), (20, 2_000));
    assert!(blocks > 40, "{blocks}");
    let (found, blocks, passed) = cost_of(&db, count);
    assert_eq!((found, passed), (20, 0));
    assert!(blocks <= 4, "{blocks}");
    assert_eq!(db.range(..).count(), 98_000);
}
