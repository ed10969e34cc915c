//! Range deletes and queues: reads cost a few blocks, and deleted bytes leave the tables without a request.

use std::sync::{Arc, Mutex};

use tamis::{Db, Durability, KeyspaceOptions, Options, Runtime, Snapshot};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule};

use crate::support::{FOLDER, is_deep, sweep_stride};

/// The maximum number of blocks of `first()`, and of the range before the first entry.
const BLOCKS_MAX: u64 = 8;
/// The maximum number of deleted keys that it passes one by one, and of jumps over ranges.
const PASSED_MAX: u64 = 64;

/// One of this many reads is checked: collecting statistics costs more than a read.
const CHECK_INTERVAL: u64 = 7;

fn options(memtable_bytes: u64) -> Options {
    let default_keyspace = KeyspaceOptions::default().memtable_bytes(memtable_bytes);
    Options::default().workers(0).default_keyspace(default_keyspace)
}

fn open(memtable_bytes: u64) -> Db {
    Db::open_on(Arc::new(MemVfs::new()), FOLDER, options(memtable_bytes), Runtime::deterministic(1)).unwrap()
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// The result of reads, and the blocks that they use, cached ones included.
fn cost_of<T>(db: &Db, read: impl FnOnce() -> T) -> (T, u64) {
    let blocks = || db.statistics().blocks_read + db.statistics().cache_hits;
    let before = blocks();
    let result = read();
    (result, blocks() - before)
}

/// As [`cost_of`], with deleted keys that were passed.
fn passed_by<T>(db: &Db, read: impl FnOnce() -> T) -> (T, u64, u64) {
    let before = db.statistics().deleted_keys_passed;
    let (result, blocks) = cost_of(db, read);
    (result, blocks, db.statistics().deleted_keys_passed - before)
}

fn table_bytes(db: &Db) -> u64 {
    db.statistics().keyspaces.iter().flat_map(|keyspace| &keyspace.levels).map(|level| level.bytes).sum()
}

/// A queue whose consumer reads the first entry and deletes `count` ones, by `delete`.
fn consume(memtable_bytes: u64, count: u64, delete: impl Fn(&Db, u64)) {
    let total = if is_deep() { 1_000_000 } else { 100_000 / sweep_stride() };
    const LIVE: u64 = 1_000;
    let db = open(memtable_bytes);
    let mut head = 0;
    for tail in 0..total {
        db.put(key(tail), [7; 40]).unwrap();
        if tail < LIVE + head {
            continue;
        }
        let first = || db.first().unwrap().unwrap().0.to_vec();
        if (head / count).is_multiple_of(CHECK_INTERVAL) {
            let (found, blocks, passed) = passed_by(&db, first);
            assert_eq!(found, key(head));
            assert!(blocks <= BLOCKS_MAX, "first() at {head}: {blocks} blocks");
            assert!(passed <= PASSED_MAX, "first() at {head}: {passed} deleted keys");
            let (before, blocks, passed) = passed_by(&db, || db.range(..key(head)).count());
            assert_eq!(before, 0);
            assert!(blocks <= BLOCKS_MAX, "the range before {head}: {blocks} blocks");
            assert!(passed <= PASSED_MAX, "the range before {head}: {passed} deleted keys");
        } else {
            assert_eq!(first(), key(head));
        }
        delete(&db, head);
        head += count;
        if head % (total / 4) == 0 {
            db.flush().unwrap();
        }
    }
    assert_eq!(db.range(..).count() as u64, total - head);
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn the_first_entry_of_a_queue_of_range_deletes_costs_few_blocks() {
    for memtable_bytes in [256 << 10, 64 << 20] {
        consume(memtable_bytes, 10, |db, head| db.delete_range(key(head)..key(head + 10)).unwrap());
    }
}

#[test]
fn the_first_entry_of_a_queue_of_deletes_costs_few_blocks() {
    for memtable_bytes in [256 << 10, 64 << 20] {
        consume(memtable_bytes, 1, |db, head| db.delete(key(head)).unwrap());
    }
}

/// The range tombstones of a queue are in several runs, each with other entries behind them. A run is read at most once: not where newer runs
/// delete its entries.
#[test]
fn runs_with_range_tombstones_cost_the_first_entry_one_block_each() {
    let db = open(64 << 20);
    (0..100_000).for_each(|number| db.put(key(number), [7; 40]).unwrap());
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    let mut head = 0;
    for round in 1..4 {
        (0..1_000).for_each(|number| db.put(key(round * 1_000_000 + number), [7; 40]).unwrap());
        for _ in 0..500 {
            db.delete_range(key(head)..key(head + 10)).unwrap();
            head += 10;
        }
        db.flush().unwrap();
        let statistics = db.statistics();
        let runs: usize = statistics.keyspaces[0].levels.iter().map(|level| level.run_count).sum();
        assert_eq!(runs as u64, 1 + round, "no compaction is due");
        let (first, blocks) = cost_of(&db, || db.first().unwrap().unwrap().0.to_vec());
        assert_eq!(first, key(head));
        assert!(blocks <= 1 + round, "first(): {blocks} blocks of {runs} runs");
        let (count, blocks) = cost_of(&db, || db.range(key(7)..key(head + 1)).count());
        assert_eq!(count, 1);
        assert!(blocks <= 1 + round, "a range: {blocks} blocks of {runs} runs");
    }
}

/// Deleted ranges that are not adjacent, in a row.
#[test]
fn jumps_over_many_range_tombstones_are_noted_as_one_range() {
    let db = open(64 << 20);
    (0..20_000).for_each(|number| db.put(key(number), [7; 20]).unwrap());
    db.flush().unwrap();
    let _snapshot = db.snapshot();
    for number in (0..10_000).step_by(2) {
        db.delete_range(key(number)..key(number + 1)).unwrap();
        db.delete(key(number + 1)).unwrap();
    }
    let first = || db.first().unwrap().unwrap().0.to_vec();
    let (found, _, passed) = passed_by(&db, first);
    assert!(found == key(10_000) && passed >= 10_000, "{passed}");
    let (found, blocks, passed) = passed_by(&db, first);
    assert!(found == key(10_000) && passed == 0 && blocks <= BLOCKS_MAX, "{passed} keys, {blocks} blocks");
}

/// Entries with the prefixes of 100,000 users, five each.
fn fill_users(db: &Db) {
    for user in 0..100_000_u64 {
        for entry in 0..5_u8 {
            db.put([&key(user)[..], &[entry]].concat(), [3; 55]).unwrap();
        }
    }
    db.flush().unwrap();
}

fn shuffled(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| number * 7_919 % count)
}

/// Blocks of gets, and of scans of 50 entries.
fn read_blocks(db: &Db, users: &[u64], snapshot: Option<&Snapshot>) -> (u64, u64) {
    let keyspace = db.default_keyspace();
    let ((), gets) = cost_of(db, || {
        for user in users {
            let key = [&key(*user)[..], &[2]].concat();
            let found = match snapshot {
                Some(snapshot) => snapshot.get(&keyspace, key).unwrap(),
                None => db.get(key).unwrap(),
            };
            assert!(found.is_some(), "user {user}");
        }
    });
    let ((), scans) = cost_of(db, || {
        for user in users {
            let found = match snapshot {
                Some(snapshot) => snapshot.range(&keyspace, key(*user)..).take(50).count(),
                None => db.range(key(*user)..).take(50).count(),
            };
            assert!(found > 0, "user {user}");
        }
    });
    (gets, scans)
}

#[test]
fn random_prefix_deletes_leave_no_garbage_and_cheap_reads() {
    let db = open(64 << 20);
    fill_users(&db);
    let full = table_bytes(&db);
    for user in shuffled(100_000).take(90_000) {
        db.delete_prefix(key(user)).unwrap();
    }
    let idle = table_bytes(&db);
    let live: Vec<u64> = shuffled(100_000).skip(90_000).step_by(11).collect();
    let before = read_blocks(&db, &live, None);
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    let compacted = table_bytes(&db);
    let after = read_blocks(&db, &live, None);
    println!("{full} bytes, {idle} when idle, {compacted} compacted; blocks {before:?}, {after:?} compacted");
    assert!(2 * idle <= 3 * compacted, "{idle} bytes when idle, {compacted} compacted");
    assert!(2 * before.0 <= 3 * after.0, "gets: {} blocks, {} compacted", before.0, after.0);
    assert!(2 * before.1 <= 3 * after.1, "scans: {} blocks, {} compacted", before.1, after.1);
    assert_eq!(db.range(..).count(), 50_000);
}

/// 100,000 range deletes with and without 50 snapshots that are taken meanwhile.
#[test]
fn range_deletes_under_snapshots_keep_reads_cheap() {
    let store = |has_snapshots: bool| {
        let db = open(64 << 20);
        fill_users(&db);
        let mut snapshots = Vec::new();
        for (number, user) in shuffled(100_000).enumerate() {
            let entry = (number % 2) as u8;
            let lower = [&key(user)[..], &[3 * entry]].concat();
            db.delete_range(lower.clone()..[&lower[..], &[0]].concat()).unwrap();
            if has_snapshots && number % 2_000 == 0 {
                snapshots.push(db.snapshot());
            }
        }
        db.flush().unwrap();
        (db, snapshots)
    };
    let users: Vec<u64> = shuffled(100_000).step_by(101).collect();
    let (alone, _) = store(false);
    let without = read_blocks(&alone, &users, None);
    let (db, snapshots) = store(true);
    for snapshot in [None, snapshots.last(), snapshots.get(25), snapshots.first()] {
        let with = read_blocks(&db, &users, snapshot);
        println!("blocks with snapshots {with:?}, without {without:?}");
        assert!(with.0 <= 2 * without.0, "gets: {} blocks, {} without snapshots", with.0, without.0);
        assert!(with.1 <= 2 * without.1, "scans: {} blocks, {} without snapshots", with.1, without.1);
    }
    assert_eq!(db.range(..).count(), 400_000);
}

/// A scan passes deleted keys while the memtable is empty; then a power failure interrupts the next flush before its edit. The log has
/// every sequence number of the table that is left, so that it is no table of a lost manifest.
#[test]
fn scans_take_no_sequence_number_that_the_log_does_not_have() {
    let memory = MemVfs::new();
    let vfs = FaultVfs::new(Arc::new(memory.clone()));
    let open = |vfs| Db::open_on(vfs, FOLDER, options(64 << 20), Runtime::deterministic(1)).unwrap();
    let db = open(Arc::new(vfs.clone()));
    (0..2_000).for_each(|number| db.put(key(number), [7]).unwrap());
    db.flush().unwrap();
    (0..1_999).for_each(|number| db.delete(key(number)).unwrap());
    let snapshot = db.snapshot();
    db.flush().unwrap();
    assert_eq!(db.range(..).count(), 1);
    db.put(key(7), "new").unwrap();
    assert_eq!(db.range(..).count(), 2);
    db.persist(Durability::Synced).unwrap();
    let killed: Arc<Mutex<Option<MemVfs>>> = Arc::default();
    let slot = Arc::clone(&killed);
    let hook = Rule::slow(move |_| {
        slot.lock().unwrap().get_or_insert_with(|| memory.crash_clone(0));
    });
    vfs.add_rule(hook.on(&[OperationKind::Append]).path(".manifest"));
    db.flush().unwrap();
    drop((snapshot, db));
    let killed = killed.lock().unwrap().take().expect("the flush has written an edit");
    let db = open(Arc::new(killed));
    let report = db.open_report();
    assert!(report.quarantined_files.is_empty() && report.foreign_files.is_empty(), "{report:?}");
    assert!(report.removed_file_count > 0, "the flush had written its table: {report:?}");
    assert_eq!(db.range(..).count(), 2);
}

/// A scan proved a range empty at its sequence number; a compaction has dropped a newer put and its delete since. A reader between them, which
/// keeps the put, must find it.
#[test]
fn a_range_that_an_old_scan_finds_empty_hides_no_newer_entry() {
    let db = open(64 << 20);
    (0..1_000).for_each(|number| db.put(key(number), [7]).unwrap());
    (0..1_000).for_each(|number| db.delete(key(number)).unwrap());
    let mut old = db.range(..);
    db.put(key(500), "new").unwrap();
    let mut between = db.range(..);
    db.delete(key(500)).unwrap();
    db.flush().unwrap();
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    assert!(old.next().is_none());
    let (found, value) = between.next().expect("the put is older than this scan").unwrap();
    assert_eq!((&*found, &*value), (key(500).as_slice(), b"new".as_slice()));
    assert!(between.next().is_none() && db.first().unwrap().is_none());
}

/// The largest ranges, with about the bytes that a compaction would reclaim; adjacent ones are one.
#[test]
fn deleted_ranges_are_listed_with_the_bytes_that_they_delete() {
    let db = open(64 << 20);
    (0..10_000).for_each(|number| db.put(key(number), [7; 100]).unwrap());
    db.flush().unwrap();
    let whole = table_bytes(&db);
    for number in 0..100 {
        db.delete_range(key(10 * number)..key(10 * number + 10)).unwrap();
    }
    db.delete_range(key(5_000)..key(5_100)).unwrap();
    db.delete_range(key(20_000)..).unwrap();
    assert!(db.deleted_ranges(&db.default_keyspace()).unwrap().is_empty(), "they are in memory");
    db.put(key(1), "stays").unwrap();
    db.flush().unwrap();
    let tables = db.tables(&db.default_keyspace()).unwrap();
    assert_eq!(tables.len(), 2, "no compaction is due: {tables:?}");
    let ranges = db.deleted_ranges(&db.default_keyspace()).unwrap();
    let bounds: Vec<_> =
        ranges.iter().map(|range| (range.lower.as_slice(), range.upper.as_slice())).collect();
    let [first, end] = [key(0), key(1_000)];
    assert_eq!(bounds[0], (&first[..], &end[..]));
    let [from, to] = [key(5_000), key(5_100)];
    assert_eq!(bounds[1..], [(&from[..], &to[..])], "a range without older entries is dropped by the flush");
    let share = |index: usize| ranges[index].bytes as f64 / whole as f64;
    assert!((share(0) - 0.1).abs() < 0.02 && (share(1) - 0.01).abs() < 0.01, "{ranges:?} of {whole}");
}

#[test]
fn tables_have_their_places_and_key_ranges() {
    let db = open(64 << 20);
    for run in 0..3 {
        (0..10).for_each(|number| db.put(key(3 * number + run), "value").unwrap());
        if run > 0 {
            db.delete(key(0)).unwrap();
        }
        db.flush().unwrap();
    }
    let keyspace = db.default_keyspace();
    let tables = db.tables(&keyspace).unwrap();
    let statistics = db.statistics();
    let sum = |of: fn(&tamis::LevelStatistics) -> u64| -> u64 {
        statistics.keyspaces[0].levels.iter().map(of).sum()
    };
    assert_eq!(tables.iter().map(|table| table.bytes).sum::<u64>(), sum(|level| level.bytes));
    assert_eq!(tables.iter().map(|table| table.entry_count).sum::<u64>(), sum(|level| level.entry_count));
    assert_eq!(
        tables.iter().map(|table| table.tombstone_count).sum::<u64>(),
        sum(|level| level.tombstone_count)
    );
    // The newest run is the first, and begins with its tombstone.
    let newest = tables.iter().find(|table| table.level == 0 && table.run == 0).unwrap();
    assert_eq!((newest.entry_count, newest.tombstone_count), (11, 1));
    assert_eq!((newest.smallest_key.as_slice(), newest.largest_key.as_slice()), (&key(0)[..], &key(29)[..]));
    let other = open(64 << 20);
    assert!(other.tables(&keyspace).is_err() && other.deleted_ranges(&keyspace).is_err());
}
