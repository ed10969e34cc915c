//! The cost of writes and seeks in steps, which only tests count.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use tamis_vfs::MemVfs;

use super::Db;
use crate::{
    observe::steps::{self, Step},
    options::{Filters, KeyspaceOptions, Layout, OpenMode, Options, Views},
    store::{keyspace_state::RANGE_TOMBSTONES_MIN, runtime::Runtime},
    version::edit::{Change, VersionEdit},
};

mod many_partitions;
mod pauses;
mod throttled_writes;

const KEYSPACES: usize = 1_000;
const LOG_BYTES_MAX: u64 = 1 << 20;

/// Flushes of all keyspaces are running for as long as `is_flushing` is set.
fn set_flushing(db: &Db, is_flushing: bool) {
    for keyspace in db.engine.store.keyspaces.load().values() {
        if is_flushing {
            assert!(keyspace.flush_slot.try_take_for_flush());
        } else {
            keyspace.flush_slot.give_back();
        }
    }
}

/// Replaces the only partition of the default keyspace by empty ones with these lower bounds.
fn partition_at(db: &Db, lowers: impl IntoIterator<Item = Vec<u8>>) {
    let version = Arc::clone(&db.default_keyspace().state.read_state.load().version);
    let installer = &db.engine.store.installer;
    let keyspace = version.id;
    let removals = version
        .partitions
        .iter()
        .map(|partition| Change::RemovePartition { keyspace, partition: partition.id });
    let additions = lowers.into_iter().map(|lower| Change::AddPartition {
        keyspace,
        partition: installer.versions.new_partition_id(),
        lower,
        flushed_sequence: 0,
    });
    installer.install(VersionEdit { changes: removals.chain(additions).collect() }).unwrap();
}

#[test]
fn commits_over_the_log_limit_do_not_visit_all_keyspaces() {
    let options = Options::default().workers(0).log_bytes_max(LOG_BYTES_MAX);
    let db = Db::open_on(Arc::new(MemVfs::new()), "/db", options, Runtime::deterministic(7)).unwrap();
    for index in 0..KEYSPACES {
        let keyspace = db.create_keyspace(&index.to_string(), KeyspaceOptions::default()).unwrap();
        keyspace.put("key", "value").unwrap();
    }
    set_flushing(&db, true);
    while db.statistics().log_bytes <= LOG_BYTES_MAX {
        db.put("large", [0; 64 << 10]).unwrap();
    }
    steps::take(Step::Segment);
    for index in 0..1_000_u32 {
        db.put(index.to_be_bytes(), "value").unwrap();
    }
    assert!(db.statistics().log_bytes > LOG_BYTES_MAX);
    let visited = steps::take(Step::Segment);
    assert!(visited <= 2 * KEYSPACES, "1,000 commits visited {visited} keyspaces");

    // When the flushes end, the log shrinks again, and the next time it grows over the limit, too.
    set_flushing(&db, false);
    db.engine.background.run_due();
    for _ in 0..3 {
        for _ in 0..32 {
            db.put("large", [0; 64 << 10]).unwrap();
        }
        let logged = db.statistics().log_bytes;
        assert!(logged <= LOG_BYTES_MAX + (128 << 10), "{logged} bytes of log");
    }
}

/// A store with 1,000 keyspaces of five tables each, in which no job is due.
fn store_of_5000_tables() -> Db {
    let options = Options::default().workers(0);
    let db = Db::open_on(Arc::new(MemVfs::new()), "/db", options, Runtime::deterministic(7)).unwrap();
    let keyspace_options = KeyspaceOptions::default().level0_runs(8);
    for index in 0..KEYSPACES {
        db.create_keyspace(&index.to_string(), keyspace_options.clone()).unwrap();
    }
    for round in 0..5_u32 {
        for index in 0..KEYSPACES {
            db.keyspace(&index.to_string()).unwrap().put(round.to_be_bytes(), "value").unwrap();
        }
        db.flush().unwrap();
    }
    db.wait_for_compactions().unwrap();
    db
}

fn table_count(db: &Db) -> usize {
    let keyspaces = db.statistics().keyspaces;
    keyspaces.iter().flat_map(|keyspace| &keyspace.levels).map(|level| level.table_count).sum()
}

/// The picks, and the tables that they examined, since the last call.
fn take_picks() -> (usize, usize) {
    (steps::take(Step::Pick), steps::take(Step::PickedTable))
}

#[test]
fn picks_cost_in_proportion_to_what_changes() {
    let db = store_of_5000_tables();
    assert_eq!(table_count(&db), 5 * KEYSPACES);
    take_picks();

    let keyspaces: Vec<_> = (0..KEYSPACES).map(|index| db.keyspace(&index.to_string()).unwrap()).collect();
    for keyspace in &keyspaces {
        keyspace.put("key", "value").unwrap();
        keyspace.delete("key").unwrap();
        assert_eq!(keyspace.get("key").unwrap(), None);
    }
    assert_eq!(take_picks(), (0, 0), "writes and reads that change no table");

    db.wait_for_compactions().unwrap();
    drop(db.snapshot());
    assert_eq!(take_picks(), (0, 0), "an idle store");

    // A pick follows each change of the tables, and examines those of its keyspace.
    let small = KeyspaceOptions::default().memtable_bytes(64 << 10);
    let other = db.create_keyspace("other", small).unwrap();
    take_picks();
    let before = db.statistics();
    for index in 0..100_u32 {
        other.put(index.to_be_bytes(), [0; 4 << 10]).unwrap();
    }
    let after = db.statistics();
    let flush_count = usize::try_from(after.flushes - before.flushes).unwrap();
    let job_count = usize::try_from(after.trivial_moves - before.trivial_moves).unwrap();
    assert!(flush_count >= 5 && job_count >= 1, "{flush_count} flushes, {job_count} moves");
    let (picks, tables) = take_picks();
    let change_count = flush_count + 2 * job_count;
    assert!((1..=change_count).contains(&picks), "{picks} picks for {change_count} changes");
    assert!(tables <= 10 * change_count, "{tables} tables for {change_count} changes");

    // A released snapshot concerns the keyspaces that were flushed since it was taken.
    let snapshot = db.snapshot();
    for keyspace in keyspaces.iter().take(3) {
        keyspace.put("key", "newer").unwrap();
    }
    db.flush().unwrap();
    take_picks();
    drop(snapshot);
    db.put("key", "value").unwrap();
    let (picks, tables) = take_picks();
    assert_eq!(picks, 3, "the keyspaces that were written under the snapshot");
    assert!(tables <= 3 * 8, "{tables} tables");
}

/// Reads find ranges without entries, note them and use them while a writer holds the log's lock.
#[test]
fn reads_need_no_lock_of_writers() {
    let options = Options::default().workers(0);
    let db = Db::open_on(Arc::new(MemVfs::new()), "/db", options, Runtime::deterministic(7)).unwrap();
    for number in 0..1_000_u64 {
        db.put(number.to_be_bytes(), "value").unwrap();
    }
    db.flush().unwrap();
    let snapshot = db.snapshot();
    (1..500_u64).for_each(|number| db.delete(number.to_be_bytes()).unwrap());
    db.delete_range(500_u64.to_be_bytes()..999_u64.to_be_bytes()).unwrap();
    let log = db.engine.store.log.lock();
    let noted = || db.engine.store.context.metrics.deleted_ranges_recorded.get();
    assert_eq!((db.range(..).count(), noted()), (2, 1));
    assert_eq!((db.range(..).rev().count(), noted()), (2, 1));
    assert_eq!(snapshot.range(&db.default_keyspace(), ..).count(), 1_000);
    assert!(db.get(700_u64.to_be_bytes()).unwrap().is_none() && db.snapshot().sequence() > 0);
    drop(log);
}

#[test]
fn a_memtable_with_many_range_tombstones_is_flushed() {
    let options = Options::default().workers(0);
    let db = Db::open_on(Arc::new(MemVfs::new()), "/db", options, Runtime::deterministic(7)).unwrap();
    let keyspace = db.default_keyspace();
    let count = RANGE_TOMBSTONES_MIN;
    for number in 0..=2 * count {
        let (lower, upper) = ((2 * number).to_be_bytes(), (2 * number + 1).to_be_bytes());
        keyspace.delete_range(lower..upper).unwrap();
    }
    assert_eq!(db.statistics().flushes, 2);
    let read_state = keyspace.state.read_state.load();
    assert_eq!(read_state.memtable.memtable.range_tombstones().count(), 1);
}

/// Every snapshot sees other tombstones, so that the fragments have a number of sequence numbers in proportion to the square of the
/// number of tombstones.
#[test]
fn a_flush_and_a_compaction_fragment_each_range_tombstone_once() {
    const COUNT: u64 = 200;
    let options = Options::default().workers(0);
    let db = Db::open_on(Arc::new(MemVfs::new()), "/db", options, Runtime::deterministic(7)).unwrap();
    let keyspace = db.default_keyspace();
    (0..2 * COUNT).for_each(|number| keyspace.put(number.to_be_bytes(), "old").unwrap());
    let mut snapshots = Vec::new();
    for half in 1..=COUNT {
        keyspace.delete_range((COUNT - half).to_be_bytes()..(COUNT + half).to_be_bytes()).unwrap();
        snapshots.push((half, db.snapshot()));
    }
    let check = || {
        for (half, snapshot) in &snapshots {
            let left = snapshot.range(&keyspace, ..).map(|entry| entry.unwrap().0.to_vec());
            let below = 0..COUNT - half;
            let expected = below.chain(COUNT + half..2 * COUNT).map(|number| number.to_be_bytes().to_vec());
            assert!(left.eq(expected), "within {half} of the middle");
            assert!(snapshot.get(&keyspace, (COUNT - half).to_be_bytes()).unwrap().is_none());
        }
    };
    check();
    steps::take(Step::FragmentedTombstone);
    db.flush().unwrap();
    assert_eq!(steps::take(Step::FragmentedTombstone) as u64, COUNT);
    check();
    db.compact_range(&keyspace, ..).unwrap();
    let fragmented = steps::take(Step::FragmentedTombstone) as u64;
    assert!((1..=COUNT).contains(&fragmented), "{fragmented} range tombstones");
    check();
}

#[test]
fn range_tombstones_are_counted_per_level() {
    let options = Options::default().workers(0);
    let db = Db::open_on(Arc::new(MemVfs::new()), "/db", options, Runtime::deterministic(7)).unwrap();
    let keyspace = db.default_keyspace();
    keyspace.put("b", "old").unwrap();
    let _snapshot = db.snapshot();
    for (lower, upper) in [("a", "c"), ("d", "e"), ("f", "g")] {
        keyspace.delete_range(lower..upper).unwrap();
    }
    keyspace.put("z", "new").unwrap();
    db.flush().unwrap();
    let levels = db.statistics().keyspaces.remove(0).levels;
    let count: u64 = levels.iter().map(|level| level.range_tombstone_count).sum();
    assert!((1..=3).contains(&count), "{count} range tombstones");
}

/// A filter builder that panics at this key.
const PANIC_KEY: &[u8] = crate::table::filter_block::PANIC_KEY;

#[test]
fn a_panic_in_a_filter_builder_is_a_background_error() {
    let bloom = || vec!["blocked-bloom@12".parse().unwrap()];
    // At the flush, and at the merge into the next level.
    let filters = [Filters::per_level([bloom(), bloom()]), Filters::per_level([Vec::new(), bloom()])];
    for (workers, filters) in [0, 2].into_iter().flat_map(|workers| filters.clone().map(|f| (workers, f))) {
        let vfs = Arc::new(MemVfs::new());
        let default_keyspace = KeyspaceOptions::default().filters(filters);
        let options = Options::default().workers(workers).default_keyspace(default_keyspace);
        let db = Db::open_on(vfs.clone(), "/db", options, Runtime::deterministic(7)).unwrap();
        let mut results = Vec::new();
        for value in ["old", "new"] {
            for key in [b"a".as_slice(), PANIC_KEY, b"z"] {
                // After the panic writes are refused.
                results.push(db.put(key, value));
            }
            results.push(db.flush());
        }
        results.push(db.compact_range(&db.default_keyspace(), ..));
        assert!(results.iter().any(Result::is_err), "no job has panicked");
        let refused = db.put("late", "value").unwrap_err().to_string();
        assert!(refused.contains("a filter builder panics"), "{refused}");
        assert!(db.get(PANIC_KEY).unwrap().is_some() && db.get("z").unwrap().is_some());
        // Both return: with the error, if a job was due.
        let _ = (db.wait_for_compactions(), db.close());
        let options = Options::default().mode(OpenMode::Reader);
        let db = Db::open_on(vfs, "/db", options, Runtime::deterministic(7)).unwrap();
        assert!(db.get(PANIC_KEY).unwrap().is_some() && db.get("z").unwrap().is_some());
    }
}

/// A scan merges the runs of the partition that it is in, and of no other.
#[test]
fn a_seek_in_a_store_of_many_partitions_merges_the_runs_of_one() {
    const KEYS: u64 = 4_000;
    let layout = Layout::Partitioned { tables_per_partition: 6 };
    let keyspace = KeyspaceOptions::default()
        .layout(layout)
        .memtable_bytes(1 << 20)
        .table_bytes(64 << 10)
        .views(Views::Off);
    let options = Options::default().workers(0).default_keyspace(keyspace);
    let db = Db::open_on(Arc::new(MemVfs::new()), "/db", options, Runtime::deterministic(7)).unwrap();
    for round in 0..4 {
        for number in 0..KEYS {
            let key = number * 2_654_435_761 % KEYS;
            db.put(key.to_be_bytes(), [round; 1_000]).unwrap();
        }
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let partition_count = db.statistics().keyspaces.first().unwrap().partition_count as u64;
    assert!(partition_count >= 20, "{partition_count}");

    steps::take(Step::MergedSource);
    for number in (0..KEYS).step_by(97) {
        let mut scan = db.range(..);
        scan.seek(number.to_be_bytes()).unwrap();
        assert!(scan.move_next().unwrap());
        assert_eq!(scan.key(), number.to_be_bytes());
        let merged = steps::take(Step::MergedSource);
        assert!(merged <= 2 * 6, "a seek merges {merged} sources of {partition_count} partitions");
    }
    assert_eq!(db.range(..).count() as u64, KEYS);
    let merged = steps::take(Step::MergedSource) as u64;
    assert!(merged <= 7 * partition_count, "a scan merges {merged} sources of {partition_count} partitions");
}
