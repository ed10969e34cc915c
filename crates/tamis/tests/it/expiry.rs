//! Entries that expire: invisible at once, for snapshots by their time, and without space later.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tamis::{
    Clock, Db, Error, Keyspace, KeyspaceOptions, Layout, ManualClock, MergeOperator, Views, WriteBatch,
};
use tamis_vfs::MemVfs;

use crate::support::{inline_options, key, open_with_clock, outside_table, small_keyspace, time_of, totals};

struct World {
    vfs: MemVfs,
    clock: Arc<ManualClock>,
    db: Db,
}

impl World {
    fn new() -> Self {
        let (vfs, clock) = (MemVfs::new(), Arc::new(ManualClock::default()));
        let db = open_with_clock(&vfs, inline_options(), &clock).unwrap();
        Self { vfs, clock, db }
    }

    fn in_seconds(&self, seconds: u64) -> SystemTime {
        time_of(&self.clock) + Duration::from_secs(seconds)
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn reopen(self) -> Self {
        let Self { vfs, clock, db } = self;
        db.close().unwrap();
        let db = open_with_clock(&vfs, inline_options(), &clock).unwrap();
        Self { vfs, clock, db }
    }
}

fn keys(keyspace: &Keyspace) -> Vec<String> {
    let as_text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
    let forward: Vec<String> = keyspace.iter().map(|entry| as_text(&entry.unwrap().0)).collect();
    let mut backward: Vec<String> = keyspace.iter().rev().map(|entry| as_text(&entry.unwrap().0)).collect();
    backward.reverse();
    assert_eq!(forward, backward, "both directions");
    forward
}

#[test]
fn an_expired_entry_is_invisible_at_once_and_hides_what_it_has_replaced() {
    for views in [Views::On, Views::Off] {
        for flushes in [false, true] {
            let world = World::new();
            let keyspace = world.db.create_keyspace("k", small_keyspace().views(views)).unwrap();
            let flush = || {
                if flushes {
                    world.db.flush().unwrap()
                }
            };
            keyspace.put("a", "old").unwrap();
            keyspace.put("d", "stays").unwrap();
            flush();
            keyspace.put_until("a", "new", world.in_seconds(10)).unwrap();
            keyspace.put_until("b", "1", world.in_seconds(20)).unwrap();
            flush();
            keyspace.put_until("c", "1", world.in_seconds(10)).unwrap();
            keyspace.put("c", "2").unwrap();
            assert_eq!(keys(&keyspace), ["a", "b", "c", "d"]);
            assert_eq!(keyspace.get("a").unwrap().as_deref(), Some(&b"new"[..]));
            let scanned = keyspace.iter().next().unwrap().unwrap().1;
            assert_eq!(&*scanned, b"new");
            let snapshot = world.db.snapshot();
            world.pass(9);
            assert!(keyspace.contains("a").unwrap());
            world.pass(1);
            assert!(!keyspace.contains("a").unwrap(), "not even the value that it has replaced");
            assert_eq!(keys(&keyspace), ["b", "c", "d"]);
            assert_eq!(keyspace.multi_get(["a", "b"]).unwrap().iter().flatten().count(), 1);
            assert_eq!(keyspace.first().unwrap().unwrap().0, "b");
            assert_eq!(snapshot.get(&keyspace, "a").unwrap().as_deref(), Some(&b"new"[..]));
            assert_eq!(snapshot.range(&keyspace, ..).count(), 4, "the snapshot has the time of its begin");
            keyspace.put("a", "again").unwrap();
            assert_eq!(keys(&keyspace), ["a", "b", "c", "d"]);
            drop(snapshot);
            world.pass(100);
            world.db.flush().unwrap();
            world.db.compact_range(&keyspace, ..).unwrap();
            assert_eq!(keys(&keyspace), ["a", "c", "d"]);
            assert_eq!(totals(&world.db).0, 3, "the compaction has dropped the expired entries");
        }
    }
}

#[test]
fn a_compaction_keeps_what_an_older_snapshot_sees() {
    let world = World::new();
    let keyspace = world.db.default_keyspace();
    keyspace.put_until("a", "1", world.in_seconds(5)).unwrap();
    let snapshot = world.db.snapshot();
    world.pass(10);
    world.db.flush().unwrap();
    world.db.compact_range(&keyspace, ..).unwrap();
    assert!(!keyspace.contains("a").unwrap());
    assert_eq!(snapshot.get(&keyspace, "a").unwrap().as_deref(), Some(&b"1"[..]));
    let transaction = world.db.transaction();
    assert_eq!(transaction.get(&keyspace, "a").unwrap(), None);
    drop(snapshot);
}

#[test]
fn an_own_write_that_expires_is_no_read_of_others() {
    let world = World::new();
    let keyspace = world.db.default_keyspace();
    let transaction = world.db.transaction();
    transaction.put_until(&keyspace, "a", "own", world.in_seconds(5)).unwrap();
    keyspace.put("a", "other").unwrap();
    assert_eq!(transaction.get(&keyspace, "a").unwrap().as_deref(), Some(&b"own"[..]));
    transaction.commit().unwrap();
    assert_eq!(keyspace.get("a").unwrap().as_deref(), Some(&b"own"[..]));
    world.pass(5);
    assert_eq!(keyspace.get("a").unwrap(), None);
    assert_eq!(keyspace.approximate_count(..).unwrap(), 2, "until a compaction");
}

#[test]
fn few_early_entries_do_not_rewrite_a_table() {
    let world = World::new();
    let keyspace = world.db.create_keyspace("k", small_keyspace()).unwrap();
    for number in 0..400 {
        let time = world.in_seconds(if number % 20 == 0 { 100 + number } else { 100_000 });
        keyspace.put_until(key(number), [7; 100], time).unwrap();
    }
    world.db.flush().unwrap();
    world.db.wait_for_compactions().unwrap();
    let before = world.db.statistics().compaction_bytes_written;
    for _ in 0..90 {
        world.pass(1_000);
        world.db.put("other", "1").unwrap();
        world.db.wait_for_compactions().unwrap();
    }
    assert_eq!(world.db.statistics().compaction_bytes_written, before);
    world.pass(20_000);
    world.db.put("other", "1").unwrap();
    world.db.wait_for_compactions().unwrap();
    assert_eq!(table_bytes(&world), 0, "the table was dropped as a whole");
}

#[test]
fn puts_of_a_keyspace_expire_at_its_age() {
    let world = World::new();
    let options = small_keyspace().expire_after(Some(Duration::from_secs(60)));
    let keyspace = world.db.create_keyspace("sessions", options).unwrap();
    keyspace.put("a", "1").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&keyspace, "b", "1").unwrap();
    world.db.write(batch).unwrap();
    world.db.transact(|transaction| transaction.put(&keyspace, "c", "1")).unwrap();
    let mut table = keyspace.table_writer(outside_table(1)).unwrap();
    table.put("d", "1").unwrap();
    let table = table.finish().unwrap();
    world.db.ingest(&keyspace, [&table.path]).unwrap();
    world.pass(30);
    keyspace.put("b", "2").unwrap();
    assert_eq!(keys(&keyspace), ["a", "b", "c", "d"]);
    world.pass(30);
    assert_eq!(keys(&keyspace), ["b"]);
    // A change applies to later puts.
    keyspace.set_options(keyspace.options().expire_after(None)).unwrap();
    keyspace.put("e", "1").unwrap();
    world.pass(1_000_000);
    assert_eq!(keys(&keyspace), ["e"]);
    drop(keyspace);
    let world = world.reopen();
    let keyspace = world.db.keyspace("sessions").unwrap();
    assert_eq!(keyspace.options().expire_after, None);
    assert_eq!(keys(&keyspace), ["e"]);
}

/// Fills several tables of entries that expire, each table later than the previous one.
fn fill_tables(world: &World, keyspace: &Keyspace) -> u64 {
    for table in 0..8_u64 {
        for number in 0..200 {
            let time = world.in_seconds(100 + 10 * table + number / 50);
            keyspace.put_until(key(table * 1_000 + number), [7; 100], time).unwrap();
        }
        world.db.flush().unwrap();
    }
    world.db.wait_for_compactions().unwrap();
    table_bytes(world)
}

fn expired_bytes(world: &World) -> u64 {
    world.db.statistics().keyspaces.iter().map(|keyspace| keyspace.expired_bytes).sum()
}

fn table_bytes(world: &World) -> u64 {
    totals(&world.db).1
}

#[test]
fn the_space_of_expired_entries_comes_back_without_reads_and_writes() {
    for layout in [Layout::Leveled, Layout::tiered(), Layout::partitioned()] {
        let world = World::new();
        let keyspace = world.db.create_keyspace("k", small_keyspace().layout(layout)).unwrap();
        let full = fill_tables(&world, &keyspace);
        assert_eq!(expired_bytes(&world), 0);
        let before = world.db.statistics();
        world.pass(10_000);
        assert!(expired_bytes(&world) >= full / 2, "{layout}");
        // Any call lets due jobs run.
        world.db.put("other", "1").unwrap();
        world.db.wait_for_compactions().unwrap();
        let after = world.db.statistics();
        assert_eq!(table_bytes(&world), 0, "{layout}");
        assert_eq!(expired_bytes(&world), 0, "{layout}");
        assert_eq!(after.compaction_bytes_read, before.compaction_bytes_read, "{layout}: no table was read");
    }
}

#[test]
fn a_table_with_some_expired_entries_is_rewritten() {
    let world = World::new();
    let keyspace = world.db.create_keyspace("k", small_keyspace()).unwrap();
    for number in 0..400 {
        let time = world.in_seconds(if number % 2 == 0 { 10 } else { 10_000 });
        keyspace.put_until(key(number), [7; 100], time).unwrap();
    }
    world.db.flush().unwrap();
    world.db.wait_for_compactions().unwrap();
    let full = table_bytes(&world);
    // The times of expiry are estimated as equally distributed.
    world.pass(5_000);
    world.db.put("other", "1").unwrap();
    world.db.wait_for_compactions().unwrap();
    assert!(table_bytes(&world) < full * 3 / 4, "{} of {full} bytes", table_bytes(&world));
    assert_eq!(keyspace.iter().count(), 200);
}

#[test]
fn expired_entries_stay_expired_if_the_clock_is_set_back() {
    let world = World::new();
    let keyspace = world.db.default_keyspace();
    keyspace.put_until("a", "1", world.in_seconds(10)).unwrap();
    keyspace.put_until("b", "1", world.in_seconds(10_000)).unwrap();
    world.pass(100);
    assert_eq!(keys(&keyspace), ["b"]);
    let World { vfs, db, .. } = world;
    drop(keyspace);
    db.close().unwrap();
    // A new clock begins at the time at which the first one began.
    let clock = Arc::new(ManualClock::default());
    let db = open_with_clock(&vfs, inline_options(), &clock).unwrap();
    let keyspace = db.default_keyspace();
    assert_eq!(keys(&keyspace), ["b"]);
    // Times are compared with the store's time.
    assert!(keyspace.put_until("c", "1", time_of(&clock) + Duration::from_secs(50)).is_err());
    keyspace.put_until("c", "1", time_of(&clock) + Duration::from_secs(150)).unwrap();
    assert_eq!(keys(&keyspace), ["b", "c"]);
}

#[test]
fn operands_on_a_value_that_expires_apply_to_nothing_afterwards() {
    let world = World::new();
    let options = small_keyspace().merge(Some(MergeOperator::append(b",")));
    let keyspace = world.db.create_keyspace("k", options).unwrap();
    let value = || keyspace.get("a").unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap());
    keyspace.put_until("a", "base", world.in_seconds(10)).unwrap();
    keyspace.merge("a", "1").unwrap();
    world.db.flush().unwrap();
    keyspace.merge("a", "2").unwrap();
    world.db.flush().unwrap();
    assert_eq!(value().as_deref(), Some("base,1,2"));
    world.db.compact_range(&keyspace, ..).unwrap();
    assert_eq!(value().as_deref(), Some("base,1,2"));
    world.pass(10);
    assert_eq!(value().as_deref(), Some("1,2"));
    world.db.compact_range(&keyspace, ..).unwrap();
    assert_eq!(value().as_deref(), Some("1,2"));
    assert_eq!(keyspace.iter().next().unwrap().unwrap().1, "1,2");
}

#[test]
fn times_that_are_not_in_the_future_are_refused() {
    let world = World::new();
    let keyspace = world.db.default_keyspace();
    let now = time_of(&world.clock);
    let refused = [
        now,
        now - Duration::from_millis(1),
        SystemTime::UNIX_EPOCH,
        SystemTime::UNIX_EPOCH - Duration::from_secs(1),
        SystemTime::UNIX_EPOCH + Duration::from_millis(1 << 47),
        SystemTime::UNIX_EPOCH + Duration::from_secs(i64::MAX as u64),
    ];
    for time in refused {
        for result in [
            keyspace.put_until("a", "1", time),
            WriteBatch::new().put_until(&keyspace, "a", "1", time),
            world.db.transaction().put_until(&keyspace, "a", "1", time),
        ] {
            let Err(Error::InvalidArgument { what, .. }) = result else { panic!("{time:?}: {result:?}") };
            assert_eq!(what, "time of expiry");
        }
    }
    keyspace.put_until("a", "1", now + Duration::from_millis(1)).unwrap();
    keyspace.put_until("b", "1", SystemTime::UNIX_EPOCH + Duration::from_millis((1 << 47) - 1)).unwrap();
    assert_eq!(keys(&keyspace), ["a", "b"]);
    let refused = |options: KeyspaceOptions| {
        let result = world.db.create_keyspace("k", options);
        assert!(matches!(result, Err(Error::InvalidArgument { what: "expire_after", .. })), "{result:?}");
    };
    refused(small_keyspace().expire_after(Some(Duration::ZERO)));
    refused(small_keyspace().expire_after(Some(Duration::from_nanos(1_500_000))));
    refused(small_keyspace().expire_after(Some(Duration::MAX)));
    let merging = small_keyspace().merge(Some(MergeOperator::max()));
    refused(merging.expire_after(Some(Duration::from_secs(1))));
    let too_long = vec![0; tamis::VALUE_LENGTH_MAX];
    assert!(matches!(
        keyspace.put_until("c", &too_long, now + Duration::from_secs(1)),
        Err(Error::ValueTooLong { .. })
    ));
    assert!(world.clock.since_epoch() > Duration::ZERO);
}
