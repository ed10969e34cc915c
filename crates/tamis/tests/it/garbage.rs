//! Compactions drop deleted and obsolete entries although no level exceeds its size: space and read speed are restored without a
//! call, as soon as no snapshot needs the entries, at a bounded cost.

use std::{path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tamis::{
    CompactionReason, Db, Event, EventListener, Keyspace, KeyspaceOptions, Options, Runtime, Statistics,
};
use tamis_vfs::{Access, MemVfs, OperationKind, RecordVfs, Vfs};

use crate::support::{EventLog, FOLDER, SplitMix64, inline_options, key};

const BLOCK: u64 = 4096;

/// A store on a recording file system, without workers: all due jobs end within the call that made them due.
struct Store {
    vfs: RecordVfs,
    db: Db,
    keyspace: Keyspace,
}

fn options() -> KeyspaceOptions {
    KeyspaceOptions::default().memtable_bytes(256 << 10).table_bytes(256 << 10)
}

impl Store {
    fn new() -> Self {
        Self::with(inline_options().table_access(Access::Buffered), Runtime::deterministic(7))
    }

    fn with(options: Options, runtime: Runtime) -> Self {
        let vfs = RecordVfs::new(Arc::new(MemVfs::new()));
        let db = Db::open_on(Arc::new(vfs.clone()), FOLDER, options, runtime).unwrap();
        let keyspace = db.create_keyspace("k", self::options()).unwrap();
        Self { vfs, db, keyspace }
    }

    fn put_all(&self, numbers: impl Iterator<Item = u64>, fill: u8) {
        let mut batch = tamis::WriteBatch::new();
        for number in numbers {
            batch.put(&self.keyspace, key(number), [fill; 100]).unwrap();
            if batch.len() == 100 {
                self.db.write(std::mem::take(&mut batch)).unwrap();
            }
        }
        self.db.write(batch).unwrap();
    }

    fn statistics(&self) -> Statistics {
        self.db.statistics()
    }

    /// Entries in tables.
    fn entries(&self) -> u64 {
        let statistics = self.statistics();
        let keyspace = statistics.keyspaces.iter().find(|keyspace| keyspace.name == "k").unwrap();
        keyspace.levels.iter().map(|level| level.entry_count).sum()
    }

    /// Bytes of all table files.
    fn table_bytes(&self) -> u64 {
        let folder = Path::new(FOLDER);
        let names = self.vfs.list(folder).unwrap().into_iter().map(|entry| entry.name);
        let tables = names.filter(|name| name.ends_with(".table"));
        tables.map(|name| self.vfs.read(&folder.join(name)).unwrap().len() as u64).sum()
    }

    /// Blocks that `work` and the jobs that it makes due read from tables.
    fn table_blocks_read(&self, work: impl FnOnce()) -> u64 {
        self.vfs.reset();
        work();
        self.vfs.tally_of(OperationKind::Read, ".table").bytes.div_ceil(BLOCK)
    }

    fn first_is_none_within(&self, blocks: u64) {
        let read = self.table_blocks_read(|| assert!(self.keyspace.first().unwrap().is_none()));
        assert!(read <= blocks, "first() reads {read} blocks");
    }
}

/// A permutation of the numbers below `count`, which 7919 does not divide.
fn shuffled(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |number| number * 7919 % count)
}

#[test]
fn deleting_every_key_restores_space_and_read_speed() {
    const COUNT: u64 = 50_000;
    type Order = (&'static str, fn() -> Box<dyn Iterator<Item = u64>>);
    let orders: [Order; 3] = [
        ("ascending", || Box::new(0..COUNT)),
        ("descending", || Box::new((0..COUNT).rev())),
        ("random", || Box::new(shuffled(COUNT))),
    ];
    for (name, order) in orders {
        let store = Store::new();
        store.put_all(shuffled(COUNT), 1);
        store.db.flush().unwrap();
        let full = store.table_bytes();
        for number in order() {
            store.keyspace.delete(key(number)).unwrap();
        }
        store.db.flush().unwrap();
        let left = store.table_bytes();
        assert!(left * 10 < full, "{name}: {left} of {full} bytes are left");
        store.first_is_none_within(8);
    }
}

/// A store whose keys were all overwritten, with a snapshot before the overwrites if requested.
fn overwritten(count: u64, has_snapshot: bool) -> (Store, Option<tamis::Snapshot>) {
    let store = Store::new();
    store.put_all(shuffled(count), 1);
    let snapshot = has_snapshot.then(|| store.db.snapshot());
    store.put_all(shuffled(count), 2);
    store.db.flush().unwrap();
    (store, snapshot)
}

/// Versions that a snapshot kept in the same tables as newer ones are dropped after its release. (Versions that are hidden by other
/// levels are merged when a level is due, as without a snapshot.)
#[test]
fn obsolete_versions_are_reclaimed_after_their_snapshot() {
    const COUNT: u64 = 30_000;
    let without_snapshot = overwritten(COUNT, false).0.entries();
    for (is_compacted, is_requested) in [(false, false), (false, true), (true, false), (true, true)] {
        let (store, snapshot) = overwritten(COUNT, true);
        let compact = || store.db.compact_range(&store.keyspace, ..).unwrap();
        if is_compacted {
            compact();
        }
        assert_eq!(store.entries(), 2 * COUNT, "the snapshot sees the older versions");
        let snapshot = snapshot.unwrap();
        assert_eq!(snapshot.get(&store.keyspace, key(7)).unwrap().unwrap(), &[1; 100]);
        drop(snapshot);
        if is_requested {
            compact();
        } else {
            store.keyspace.put(key(7), [2; 100]).unwrap();
        }
        let entries_max = if is_compacted || is_requested { COUNT } else { without_snapshot };
        assert!(store.entries() <= entries_max, "{} entries, at most {entries_max}", store.entries());
        assert_eq!(store.keyspace.range(..).count() as u64, COUNT);
        assert_eq!(store.keyspace.get(key(7)).unwrap().unwrap(), &[2; 100]);
    }
}

#[test]
fn workers_compact_after_a_snapshot_is_released() {
    const COUNT: u64 = 5_000;
    let log = Arc::new(EventLog::default());
    let listener: Arc<dyn EventListener> = Arc::<EventLog>::clone(&log);
    let options = inline_options().workers(2).listener(listener);
    let store = Store::with(options, Runtime::system());
    store.put_all(0..COUNT, 1);
    let snapshot = store.db.snapshot();
    store.put_all(0..COUNT, 2);
    store.db.flush().unwrap();
    store.db.wait_for_compactions().unwrap();
    assert_eq!(store.entries(), 2 * COUNT);
    drop(snapshot);
    let is_reclaimed = log.wait_until(Duration::from_secs(300), || store.entries() == COUNT);
    assert!(is_reclaimed, "{} entries", store.entries());
}

#[test]
fn a_range_delete_drops_whole_tables_without_reading_them() {
    const COUNT: u64 = 50_000;
    let store = Store::new();
    store.put_all(shuffled(COUNT), 1);
    store.db.flush().unwrap();
    let full = store.table_bytes();
    let read = store.table_blocks_read(|| {
        store.keyspace.delete_range(key(0)..key(COUNT / 100 * 99)).unwrap();
        store.db.flush().unwrap();
    });
    let left = store.table_bytes();
    // A merge reads the table at the bound, of which the tombstone covers a part.
    let part = options().table_bytes / BLOCK;
    assert!(read <= 20 + part, "{read} blocks");
    assert!(left * 10 < full, "{left} of {full} bytes are left");
    assert!(store.statistics().dropped_tables > 10);
    assert_eq!(store.keyspace.first().unwrap().unwrap().0, &key(COUNT / 100 * 99));
}

/// A snapshot keeps the deleted tables until it is released.
#[test]
fn a_snapshot_keeps_the_tables_that_a_range_tombstone_deletes() {
    const COUNT: u64 = 20_000;
    let store = Store::new();
    store.put_all(shuffled(COUNT), 1);
    store.db.flush().unwrap();
    let snapshot = store.db.snapshot();
    store.keyspace.clear().unwrap();
    store.db.flush().unwrap();
    assert_eq!(snapshot.range(&store.keyspace, ..).count() as u64, COUNT);
    drop(snapshot);
    store.keyspace.put("the next write", "").unwrap();
    assert_eq!(store.entries(), 0);
    assert_eq!(store.keyspace.range(..).count(), 1);
}

#[derive(Debug, Default)]
struct GarbageBytes(Mutex<u64>);

impl EventListener for GarbageBytes {
    fn on_event(&self, event: &Event) {
        if let Event::Compacted { reason: CompactionReason::Garbage, bytes_written, .. } = event {
            *self.0.lock() += bytes_written;
        }
    }
}

/// Random writes of `key_count` keys, a share of them deletes: bytes written by compactions of garbage, and by all others.
fn extra_writes(key_count: u64, delete_percent: u64) -> (u64, u64) {
    let listener = Arc::new(GarbageBytes::default());
    let reported: Arc<dyn EventListener> = Arc::<GarbageBytes>::clone(&listener);
    let options = inline_options().listener(reported);
    let store = Store::with(options, Runtime::deterministic(7));
    let mut random = SplitMix64::new(11);
    for _ in 0..100_000 {
        let key = key(random.below(key_count));
        if random.below(100) < delete_percent {
            store.keyspace.delete(key).unwrap();
        } else {
            store.keyspace.put(key, [3; 100]).unwrap();
        }
    }
    store.db.flush().unwrap();
    let extra = *listener.0.lock();
    let statistics = store.statistics();
    (extra, statistics.flush_bytes_written + statistics.compaction_bytes_written - extra)
}

#[test]
fn a_random_fill_with_a_tenth_of_deletes_writes_at_most_a_tenth_more() {
    for (key_count, delete_percent, percent_max) in
        [(100_000, 10, 10), (1_000_000, 10, 10), (100_000, 50, 100)]
    {
        let (extra, others) = extra_writes(key_count, delete_percent);
        println!("{key_count} keys, {delete_percent} % deletes: {extra} bytes in addition to {others}");
        assert!(extra * 100 <= others * percent_max, "{extra} bytes in addition to {others}");
    }
}

/// Keys are put at the tail and deleted at the head: each flush deletes the entries of the previous one.
#[test]
fn compactions_reclaim_the_deleted_entries_of_a_queue() {
    let store = Store::new();
    for number in 0..60_000 {
        store.keyspace.put(key(number), [1; 100]).unwrap();
        if number >= 1_000 {
            store.keyspace.delete(key(number - 1_000)).unwrap();
        }
    }
    store.db.flush().unwrap();
    assert!(store.entries() < 4_000, "{} entries", store.entries());
}
