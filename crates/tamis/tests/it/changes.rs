//! The change feed: each commit once, in order, across restarts and in readers, and never one left out.

use std::{ops::ControlFlow, path::Path, time::Duration};

use tamis::{
    BatchWrite, Change, Changes, Db, Durability, Error, KeepChanges, MergeOperator, OpenMode, Position,
    Vfs as _, WriteBatch,
};
use tamis_vfs::MemVfs;

use crate::support::{FOLDER, SplitMix64, inline_options, key, open_in_memory, small_keyspace};

fn open(vfs: &MemVfs, keep: KeepChanges) -> Db {
    open_in_memory(vfs, inline_options().default_keyspace(small_keyspace()).keep_changes(keep)).unwrap()
}

fn all(changes: &mut Changes) -> Vec<Change> {
    std::iter::from_fn(|| changes.try_next().unwrap()).collect()
}

/// Applies a change to another store.
fn apply(copy: &Db, change: &Change) {
    let write = |keyspace: &str, batch: &mut WriteBatch, write: BatchWrite<'_>| {
        let keyspace = copy.keyspace(keyspace).unwrap();
        match write {
            BatchWrite::Put { key, value } => batch.put(&keyspace, key, value).unwrap(),
            BatchWrite::PutUntil { key, value, time } => {
                batch.put_until(&keyspace, key, value, time).unwrap()
            }
            BatchWrite::Merge { key, operand } => batch.merge(&keyspace, key, operand).unwrap(),
            BatchWrite::Delete { key } => batch.delete(&keyspace, key).unwrap(),
            BatchWrite::DeleteRange { lower, upper: Some(upper) } => {
                batch.delete_range(&keyspace, lower..upper).unwrap()
            }
            BatchWrite::DeleteRange { lower, upper: None } => batch.delete_range(&keyspace, lower..).unwrap(),
            other => panic!("{other:?}"),
        }
    };
    let mut batch = WriteBatch::new();
    match change {
        Change::Batch(committed) => {
            committed.writes().for_each(|(keyspace, one)| write(keyspace, &mut batch, one))
        }
        Change::Ingest(tables) => tables
            .for_each(|one| {
                write(tables.keyspace(), &mut batch, one);
                ControlFlow::Continue(())
            })
            .unwrap(),
        Change::KeyspaceCreated { name, .. } => {
            let options = small_keyspace().merge(Some(MergeOperator::append(b",")));
            copy.create_keyspace(name, options).map(drop).unwrap();
        }
        Change::KeyspaceDropped { name, .. } => copy.drop_keyspace(name).unwrap(),
        other => panic!("{other:?}"),
    }
    copy.write(batch).unwrap();
}

fn contents(db: &Db) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let names = db.keyspace_names();
    let of = |name: String| {
        let entries = db.keyspace(&name).unwrap().iter().map(Result::unwrap);
        entries.map(move |(key, value)| (name.clone(), key.to_vec(), value.to_vec())).collect::<Vec<_>>()
    };
    names.into_iter().flat_map(of).collect()
}

fn write_something(db: &Db, random: &mut SplitMix64, round: u64) {
    let other = db.keyspace("other");
    let default = db.default_keyspace();
    match random.below(16) {
        0 => drop(
            db.get_or_create_keyspace("other", small_keyspace().merge(Some(MergeOperator::append(b",")))),
        ),
        1 if other.is_ok() && random.below(4) == 0 => db.drop_keyspace("other").unwrap(),
        2 => db.flush().unwrap(),
        3 => db.delete_range(key(random.below(200))..key(200 + random.below(200))).unwrap(),
        4 => {
            let path = Path::new(FOLDER).parent().unwrap().join(format!("{round}.table"));
            let mut table = default.table_writer(&path).unwrap();
            for number in 0..20 {
                table.put(key(number * 7 + round % 7), "ingested").unwrap();
            }
            table.delete_range(key(300)..key(310)).unwrap();
            let file = table.finish().unwrap();
            db.ingest(&default, [&file.path]).unwrap();
        }
        5 => db.compact_range(&default, ..).unwrap(),
        6 => {
            let far = std::time::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
            db.put_until(key(random.below(400)), "until", far).unwrap();
        }
        7..9 if other.is_ok() => other.unwrap().merge(key(random.below(9)), "x").unwrap(),
        9 => {
            db.transact(|transaction| transaction.put(&default, key(random.below(400)), "transaction"))
                .unwrap();
        }
        _ => {
            let mut batch = WriteBatch::new();
            for _ in 0..1 + random.below(9) {
                batch.put(&default, key(random.below(400)), random.next_u64().to_be_bytes()).unwrap();
                batch.delete(&default, key(random.below(400))).unwrap();
                if let Ok(other) = &other {
                    batch.put(other, key(random.below(400)), [0; 200]).unwrap();
                }
            }
            let durability =
                [Durability::Deferred, Durability::Buffered, Durability::Synced][random.below(3) as usize];
            db.write_with(batch, durability).unwrap();
        }
    }
}

#[test]
fn a_copy_that_applies_all_changes_is_the_store() {
    for seed in 0..6 {
        let (vfs, copy) = (MemVfs::new(), open(&MemVfs::new(), KeepChanges::default()));
        let mut random = SplitMix64::new(seed);
        let mut position = Position::default();
        for part in 0..8 {
            let db = open(&vfs, KeepChanges::bytes(1 << 30));
            let reader = (part % 2 == 1)
                .then(|| open_in_memory(&vfs, inline_options().mode(OpenMode::Reader)).unwrap());
            for round in 0..60 {
                write_something(&db, &mut random, part * 100 + round);
                if random.below(8) == 0 {
                    db.persist(Durability::Buffered).unwrap();
                    let mut changes = reader.as_ref().unwrap_or(&db).changes(position).unwrap();
                    for change in all(&mut changes) {
                        assert!(change.position() > position, "{change:?} after {position:?}");
                        position = change.position();
                        apply(&copy, &change);
                    }
                    assert_eq!(changes.position(), position);
                    assert_eq!(contents(&copy), contents(&db), "seed {seed}, part {part}, round {round}");
                    assert_eq!(position.sequence(), db.snapshot().sequence());
                }
            }
        }
    }
}

#[test]
fn a_feed_waits_for_changes_and_ends_with_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path()).unwrap();
    let mut changes = db.changes(Position::default()).unwrap();
    assert!(changes.try_next().unwrap().is_none());
    let has_all = &std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(move || {
            let found: Vec<u64> = (0..100).map(|_| changes.next().unwrap().position().sequence()).collect();
            has_all.store(true, std::sync::atomic::Ordering::Release);
            (found, changes.next())
        });
        for number in 0..100 {
            let durability = if number % 2 == 0 { Durability::Deferred } else { Durability::Buffered };
            let mut batch = WriteBatch::new();
            batch.put(&db.default_keyspace(), key(number), "").unwrap();
            db.write_with(batch, durability).unwrap();
        }
        // The feed has the last one when it waits for another: then the store is closed.
        while !has_all.load(std::sync::atomic::Ordering::Acquire) {
            std::thread::yield_now();
        }
        db.clone().close().unwrap();
        let (found, end) = waiting.join().unwrap();
        assert!(
            found == (1..=100).collect::<Vec<_>>() && matches!(end, Err(Error::Closed)),
            "{found:?} {end:?}"
        );
    });
}

#[test]
fn a_consumer_that_is_too_slow_learns_where_it_can_begin() {
    let vfs = MemVfs::new();
    let fill = |db: &Db| {
        for number in 0..3_000 {
            db.put(key(number), [0; 100]).unwrap();
        }
        db.flush().unwrap();
    };
    let db = open(&vfs, KeepChanges::default());
    let mut slow = db.changes(Position::default()).unwrap();
    fill(&db);
    fill(&db);
    let lost = std::iter::repeat_with(|| slow.try_next()).find_map(Result::err).unwrap();
    let Error::ChangesLost { first_available } = lost else { panic!("{lost}") };
    assert!(first_available > 3_000 && first_available <= 6_000, "{first_available}");
    // The documented way to begin again.
    let snapshot = db.snapshot();
    db.put("new", "").unwrap();
    assert_eq!(all(&mut db.changes(Position::after(snapshot.sequence())).unwrap()).len(), 1);
    let ahead = db.changes(Position::after(snapshot.sequence() + 5));
    assert!(matches!(ahead, Err(Error::InvalidArgument { .. })), "{ahead:?}");
    drop((slow, snapshot, db));
    let db = open(&vfs, KeepChanges::bytes(250_000));
    let position = Position::after(db.snapshot().sequence());
    fill(&db);
    assert!(matches!(
        db.changes(position).map(|mut changes| changes.try_next()),
        Err(Error::ChangesLost { .. })
    ));
    let logs = vfs.list(FOLDER.as_ref()).unwrap().into_iter().filter(|entry| entry.name.ends_with(".log"));
    let bytes: u64 = logs.map(|entry| entry.length).sum();
    assert!((150_000..500_000).contains(&bytes), "{bytes} bytes of the log");
    drop(db);
    // Without the option, the open deletes what only the feed needed.
    drop(open(&vfs, KeepChanges::default()));
    let logs = vfs.list(FOLDER.as_ref()).unwrap().into_iter().filter(|entry| entry.name.ends_with(".log"));
    assert!(logs.map(|entry| entry.length).sum::<u64>() < 150_000);
}

#[test]
fn old_changes_are_deleted_by_age_and_ingested_tables_with_them() {
    let vfs = MemVfs::new();
    let keep = KeepChanges::bytes(1 << 30).time(Duration::from_secs(60));
    let clock = std::sync::Arc::new(tamis::ManualClock::default());
    let options = inline_options().default_keyspace(small_keyspace()).keep_changes(keep);
    let db = crate::support::open_with_clock(&vfs, options, &clock).unwrap();
    let ingested = || {
        vfs.list(FOLDER.as_ref()).unwrap().iter().filter(|entry| entry.name.ends_with(".ingested")).count()
    };
    let path = Path::new(FOLDER).parent().unwrap().join("new.table");
    let mut table = db.default_keyspace().table_writer(&path).unwrap();
    table.put(key(1), "ingested").unwrap();
    let file = table.finish().unwrap();
    db.ingest(&db.default_keyspace(), [&file.path]).unwrap();
    db.put(key(1), "newer").unwrap();
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    let changes = all(&mut db.changes(Position::default()).unwrap());
    let [Change::Ingest(tables), Change::Batch(_)] = changes.as_slice() else { panic!("{changes:?}") };
    let mut count = 0;
    let counted = tables.for_each(|write| {
        assert_eq!(write, BatchWrite::Put { key: &key(1), value: b"ingested" });
        count += 1;
        ControlFlow::Continue(())
    });
    assert!(counted.is_ok() && count == 1 && ingested() == 1);
    clock.advance(Duration::from_secs(100));
    for _ in 0..2 {
        db.put(key(2), "").unwrap();
        db.flush().unwrap();
    }
    assert_eq!(ingested(), 0);
    assert!(matches!(tables.for_each(|_| ControlFlow::Continue(())), Err(Error::ChangesLost { .. })));
    assert!(matches!(db.changes(Position::default()), Err(Error::ChangesLost { .. })));
}

#[test]
fn writes_that_were_refused_are_no_changes() {
    use tamis_vfs::{FaultVfs, OperationKind, Rule};
    let memory = MemVfs::new();
    let faulty = FaultVfs::new(std::sync::Arc::new(memory.clone()));
    let db = crate::support::open_on(std::sync::Arc::new(faulty.clone()), inline_options()).unwrap();
    let mut changes = db.changes(Position::default()).unwrap();
    let mut expected = Vec::new();
    for number in 0..60_u64 {
        if number % 3 == 1 {
            let rule = if number % 2 == 0 {
                Rule::error(std::io::ErrorKind::Other)
            } else {
                Rule::error_after(std::io::ErrorKind::Other)
            };
            faulty.add_rule(rule.on(&[OperationKind::Append]).path(".log"));
        }
        if db.put(key(number), "").is_ok() {
            expected.push(key(number));
        }
        if number % 5 == 0 {
            assert!(changes.try_next().unwrap().is_some() || expected.is_empty());
        }
    }
    assert!(expected.len() < 60);
    let found = all(&mut db.changes(Position::default()).unwrap());
    let keys = found.iter().map(|change| match change {
        Change::Batch(batch) => match batch.writes().next() {
            Some((_, BatchWrite::Put { key, .. })) => key.to_vec(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    assert_eq!(keys.collect::<Vec<_>>(), expected);
}

/// *Found*: records before the position counted as read, so that a feed in a long segment lost its next change.
#[test]
fn a_feed_begins_in_the_middle_of_a_long_segment() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options().log_bytes_max(1 << 30)).unwrap();
    for number in 0..12_000 {
        db.put(key(number), [0; 1_000]).unwrap();
    }
    let position = Position::after(db.snapshot().sequence());
    let reader = open_in_memory(&vfs, inline_options().mode(OpenMode::Reader)).unwrap();
    let mut feeds = [db.changes(position).unwrap(), reader.changes(position).unwrap()];
    db.put("next", "").unwrap();
    for changes in &mut feeds {
        assert_eq!(all(changes).len(), 1);
    }
    let middle = Position::after(6_000);
    assert_eq!(all(&mut reader.changes(middle).unwrap()).len(), 6_001);
    assert!(matches!(db.changes(Position::after(20_000)), Err(Error::InvalidArgument { .. })));
}

#[test]
fn a_wait_ends_with_a_change_or_at_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path()).unwrap();
    let mut changes = db.changes(Position::default()).unwrap();
    assert!(changes.next_within(Duration::ZERO).unwrap().is_none());
    assert!(changes.next_within(Duration::from_millis(3)).unwrap().is_none());
    let (sender, received) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| sender.send(changes.next()));
        db.put("apple", "red").unwrap();
        let change = received.recv().unwrap().unwrap();
        assert_eq!(change.position(), Position::after(1));
    });
    db.put("apple", "green").unwrap();
    assert!(changes.next_within(Duration::MAX).unwrap().is_some());
    db.close().unwrap();
    assert!(matches!(changes.next(), Err(Error::Closed)));
}
