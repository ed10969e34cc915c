//! Readers next to a writer: what they see, what the writer keeps for them, and what it deletes when they have ended.

use std::{sync::Arc, time::Duration};

use tamis::{Db, Error, Keyspace, Layout, OpenMode, Options, Vfs as _, WriteBatch};
use tamis_vfs::{FaultVfs, LockMode, MemVfs, OperationKind, Rule};

use crate::support::{
    FOLDER, Model, SplitMix64, check_entries, inline_options, key, open_in_memory, open_on, small_keyspace,
    write_at_random,
};

fn reader(vfs: &MemVfs) -> Db {
    open_in_memory(vfs, inline_options().mode(OpenMode::Reader)).unwrap()
}

fn writer(vfs: &MemVfs) -> Db {
    open_in_memory(vfs, inline_options().default_keyspace(small_keyspace())).unwrap()
}

fn file_count(vfs: &MemVfs, ending: &str) -> usize {
    let entries = vfs.list(FOLDER.as_ref()).unwrap();
    entries.iter().filter(|entry| entry.name.ends_with(ending)).count()
}

fn reader_count(vfs: &MemVfs) -> usize {
    vfs.list(&std::path::Path::new(FOLDER).join("readers")).map_or(0, |entries| entries.len())
}

/// Replaces all entries, so that the tables from before are obsolete.
fn fill(db: &Db, value: u8) {
    for number in 0..2_000 {
        db.put(key(number), [value; 100]).unwrap();
    }
    db.compact_range(&db.default_keyspace(), ..).unwrap();
}

#[test]
fn a_reader_sees_what_was_written_before_it_opened_and_moves_on_with_refresh() {
    let vfs = MemVfs::new();
    let db = writer(&vfs);
    let mut model = Model::new();
    let mut random = SplitMix64::new(1);
    let first = reader(&vfs);
    check_entries(&first, &model);
    for round in 0..100 {
        let before = model.clone();
        for _ in 0..40 {
            let (key, value) =
                (random.below(1_500).to_be_bytes().to_vec(), vec![1; random.below(400) as usize]);
            db.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        if round % 10 == 0 {
            write_at_random(&db, &mut model, &mut random, (1, 40));
        }
        let all = |db: &Db| -> Model {
            db.iter().map(Result::unwrap).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
        };
        assert!(all(&first) == before && all(&reader(&vfs)) == model);
        first.refresh().unwrap();
        check_entries(&first, &model);
    }
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    check_entries(&first, &model);
    first.refresh().unwrap();
    check_entries(&first, &model);
    assert!(db.statistics().flushes > 3, "the log was replayed into new memtables");
}

#[test]
fn scans_and_snapshots_of_a_reader_do_not_move_with_it() {
    let vfs = MemVfs::new();
    let db = writer(&vfs);
    let other = db.create_keyspace("other", small_keyspace()).unwrap();
    for number in 0..500 {
        db.put(key(number), "old").unwrap();
    }
    other.put("a", "old").unwrap();
    db.flush().unwrap();
    let reader = reader(&vfs);
    let (snapshot, scan) = (reader.snapshot(), reader.iter());
    let transaction = reader.transaction();
    let default = reader.default_keyspace();
    assert_eq!(transaction.get(&default, key(1)).unwrap().as_deref(), Some(b"old".as_slice()));
    for number in 0..500 {
        db.put(key(number), "new").unwrap();
    }
    db.drop_keyspace("other").unwrap();
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    let other = reader.keyspace("other").unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.get(key(7)).unwrap().as_deref(), Some(b"new".as_slice()));
    assert_eq!(snapshot.get(&default, key(7)).unwrap().as_deref(), Some(b"old".as_slice()));
    assert_eq!(transaction.get(&default, key(7)).unwrap().as_deref(), Some(b"old".as_slice()));
    assert!(snapshot.iter(&default).all(|entry| &*entry.unwrap().1 == b"old"));
    assert_eq!(scan.map(|entry| entry.unwrap()).filter(|(_, value)| &**value == b"old").count(), 500);
    assert!(matches!(other.get("a"), Err(Error::KeyspaceDropped)));
    assert!(matches!(reader.keyspace("other"), Err(Error::KeyspaceNotFound { .. })));
    assert!(matches!(reader.put("a", ""), Err(Error::ReadOnly { .. })));
}

#[test]
fn batches_keyspaces_ingests_and_reopening_reach_a_reader() {
    let vfs = MemVfs::new();
    let db = writer(&vfs);
    let reader = reader(&vfs);
    let left = db.create_keyspace("left", small_keyspace()).unwrap();
    for number in 0..300 {
        let mut batch = WriteBatch::new();
        batch.put(&db.default_keyspace(), key(number), "value").unwrap();
        batch.put(&left, key(number), "value").unwrap();
        db.write(batch).unwrap();
    }
    reader.refresh().unwrap();
    let of = |keyspace: &Keyspace| keyspace.iter().count();
    assert_eq!((reader.iter().count(), of(&reader.keyspace("left").unwrap())), (300, 300));
    let table = std::path::Path::new(FOLDER).parent().unwrap().join("new.table");
    let mut tables = left.table_writer(&table).unwrap();
    tables.put("ingested", "").unwrap();
    let table = tables.finish().unwrap();
    db.ingest(&left, [&table.path]).unwrap();
    left.delete_range(key(0)..key(100)).unwrap();
    reader.refresh().unwrap();
    assert_eq!(of(&reader.keyspace("left").unwrap()), 201);
    drop(left);
    db.close().unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.iter().count(), 300);
    let db = writer(&vfs);
    db.put("after", "").unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.iter().count(), 301);
    db.flush().unwrap();
    let db = {
        drop(db);
        writer(&vfs)
    };
    db.put("later", "").unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.iter().count(), 302);
}

#[test]
fn the_writer_keeps_the_files_of_readers_and_deletes_them_when_they_have_ended() {
    let vfs = MemVfs::new();
    let db = writer(&vfs);
    fill(&db, 0);
    let tables = file_count(&vfs, ".table");
    let (reader, other) = (reader(&vfs), reader(&vfs));
    assert_eq!(reader_count(&vfs), 2);
    fill(&db, 0);
    let with_reader = file_count(&vfs, ".table");
    assert!(with_reader > tables + tables / 2, "{with_reader} instead of {tables}");
    let statistics = db.statistics();
    assert_eq!(statistics.readers.len(), 2);
    for found in &statistics.readers {
        assert_eq!(found.process_id, std::process::id());
        assert!(found.held_bytes > 2_000 * 100 && found.sequence == 2_000, "{found:?}");
    }
    // Tables that the reader had not opened yet.
    assert_eq!(reader.iter().map(Result::unwrap).count(), 2_000);
    reader.refresh().unwrap();
    drop(other);
    fill(&db, 0);
    fill(&db, 0);
    let with_reader = file_count(&vfs, ".table");
    assert!((tables + tables / 2..3 * tables).contains(&with_reader), "{with_reader} instead of {tables}");
    // It is killed: its file stays, and its lock ends.
    std::mem::forget(reader);
    let vfs = vfs.crash_clone(1);
    drop(db);
    let db = writer(&vfs);
    assert_eq!(db.statistics().readers, []);
    assert_eq!(reader_count(&vfs), 0);
    assert!(file_count(&vfs, ".table") < with_reader - tables / 2);
}

#[test]
fn a_reopened_and_a_repaired_store_keep_the_files_of_readers() {
    let vfs = MemVfs::new();
    let db = writer(&vfs);
    fill(&db, 0);
    let (early, _) = (reader(&vfs), fill(&db, 0));
    drop(db);
    let db = writer(&vfs);
    let late = reader(&vfs);
    fill(&db, 0);
    drop(db);
    vfs.remove(&std::path::Path::new(FOLDER).join("CURRENT")).unwrap();
    Db::repair_on(Arc::new(vfs.clone()), FOLDER, &tamis::Runtime::deterministic(1)).unwrap();
    assert_eq!(early.iter().map(Result::unwrap).count(), 2_000);
    assert_eq!(late.iter().map(Result::unwrap).count(), 2_000);
    let db = writer(&vfs);
    db.put("new", "").unwrap();
    late.refresh().unwrap();
    assert_eq!(late.iter().map(Result::unwrap).count(), 2_001);
    drop((early, late));
    fill(&db, 0);
    assert_eq!(db.statistics().readers, []);
}

#[test]
fn a_reader_refreshes_itself() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path()).unwrap();
    let reader = Db::open_reader(folder.path()).unwrap();
    assert!(matches!(reader.refresh_every(Duration::ZERO), Err(Error::InvalidArgument { .. })));
    reader.refresh_every(Duration::from_millis(2)).unwrap();
    reader.refresh_every(Duration::from_millis(1)).unwrap();
    for number in 0..20 {
        db.put(key(number), "").unwrap();
        while reader.get(key(number)).unwrap().is_none() {
            std::thread::yield_now();
        }
    }
    db.refresh_every(Duration::from_secs(1)).unwrap();
    db.refresh().unwrap();
    reader.clone().close().unwrap();
    assert!(matches!(reader.refresh(), Err(Error::Closed)));
    assert_eq!(db.statistics().readers, []);
}

#[test]
fn a_checkpoint_and_a_verification_of_a_reader_have_its_state() {
    let vfs = MemVfs::new();
    let db = writer(&vfs);
    let mut model = Model::new();
    write_at_random(&db, &mut model, &mut SplitMix64::new(2), (3, 200));
    let reader = reader(&vfs);
    write_at_random(&db, &mut model, &mut SplitMix64::new(3), (3, 200));
    let copy = std::path::Path::new(FOLDER).parent().unwrap().join("copy");
    let report = reader.checkpoint(&copy).unwrap();
    assert_eq!(report.sequence, db.snapshot().sequence());
    db.put("later", "").unwrap();
    check_entries(
        &Db::open_on(Arc::new(vfs.clone()), &copy, inline_options(), tamis::Runtime::deterministic(1))
            .unwrap(),
        &model,
    );
    assert!(reader.verify().unwrap().is_sound());
    assert!(Db::verify_folder_on(Arc::new(vfs.clone()), FOLDER).unwrap().is_sound());
}

#[test]
fn a_reader_that_may_not_register_needs_a_folder_without_a_writer() {
    let vfs = MemVfs::new();
    drop(writer(&vfs));
    let faulty = FaultVfs::new(Arc::new(vfs.clone()));
    faulty.add_rule(
        Rule::error(std::io::ErrorKind::PermissionDenied).on(&[OperationKind::CreateDir]).forever(),
    );
    let read_only = inline_options().mode(OpenMode::Reader);
    let reader = open_on(Arc::new(faulty.clone()), read_only.clone()).unwrap();
    reader.refresh().unwrap();
    let refused = open_in_memory(&vfs, inline_options());
    assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
    drop(reader);
    let _db = writer(&vfs);
    let refused = open_on(Arc::new(faulty), read_only);
    assert!(
        matches!(&refused, Err(Error::ReaderRefused { path }) if path.ends_with("readers")),
        "{refused:?}"
    );
}

#[test]
fn a_folder_without_a_store_gets_no_file_of_a_reader() {
    let vfs = MemVfs::new();
    vfs.create_dir_all(FOLDER.as_ref()).unwrap();
    let refused = open_in_memory(&vfs, inline_options().mode(OpenMode::Reader));
    assert!(matches!(refused, Err(Error::NotADatabase { .. })));
    assert_eq!(vfs.list(FOLDER.as_ref()).unwrap(), []);
    drop(vfs.lock(FOLDER.as_ref(), LockMode::Exclusive).unwrap());
}

/// At each time a reader sees a state of the store, and never an older one than before.
#[test]
fn readers_next_to_concurrent_writes_see_whole_batches() {
    for layout in [Layout::Leveled, Layout::partitioned()] {
        let vfs = MemVfs::new();
        let options = small_keyspace().layout(layout);
        let db = open_in_memory(&vfs, Options::default().default_keyspace(options.clone())).unwrap();
        let other = db.create_keyspace("other", options).unwrap();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (vfs, is_done) = (&vfs, &is_done);
                scope.spawn(move || {
                    let mut db = reader(vfs);
                    let mut last = 0;
                    while !is_done.load(std::sync::atomic::Ordering::Acquire) {
                        if thread == 0 {
                            db.refresh().unwrap();
                        } else {
                            db = reader(vfs);
                        }
                        let snapshot = db.snapshot();
                        let (left, right) = (db.default_keyspace(), db.keyspace("other").unwrap());
                        let read = |keyspace: &Keyspace| {
                            snapshot.get(keyspace, "counter").unwrap().map(|value| value.to_vec())
                        };
                        assert_eq!(read(&left), read(&right));
                        let count =
                            read(&left).map_or(0, |value| u64::from_be_bytes(value.try_into().unwrap()));
                        assert!(count >= last, "{count} after {last}");
                        last = count;
                        let values = snapshot.range(&left, "k".."l").map(|entry| entry.unwrap().1.to_vec());
                        assert!(values.into_iter().all(|value| value.len() >= 8));
                    }
                });
            }
            let mut random = SplitMix64::new(9);
            for number in 0_u64..20_000 {
                let mut batch = WriteBatch::new();
                for keyspace in [&db.default_keyspace(), &other] {
                    batch.put(keyspace, "counter", number.to_be_bytes()).unwrap();
                    batch.put(keyspace, format!("k{}", random.below(3_000)), [7; 60]).unwrap();
                }
                db.write(batch).unwrap();
            }
            is_done.store(true, std::sync::atomic::Ordering::Release);
        });
    }
}

/// *Found*: a reader that counted by names let the writer delete a table that a snapshot had from before the writer was opened again.
#[test]
fn snapshots_of_readers_keep_their_files_when_the_writer_is_opened_again() {
    let vfs = MemVfs::new();
    let db = writer(&vfs);
    fill(&db, 1);
    let reader = reader(&vfs);
    let snapshot = reader.snapshot();
    drop(db);
    let db = writer(&vfs);
    reader.refresh().unwrap();
    fill(&db, 2);
    reader.refresh().unwrap();
    fill(&db, 3);
    reader.refresh().unwrap();
    db.put("last", "").unwrap();
    db.flush().unwrap();
    let values = snapshot.iter(&reader.default_keyspace()).map(|entry| entry.unwrap().1[0]);
    assert!(values.eq(std::iter::repeat_n(1, 2_000)));
}

/// *Found*: a list that could not be written left the files of the new version without protection.
#[test]
fn a_reader_without_space_for_its_list_keeps_all_files() {
    let vfs = MemVfs::new();
    let db = writer(&vfs);
    fill(&db, 0);
    let faulty = FaultVfs::new(Arc::new(vfs.clone()));
    let reader = open_on(Arc::new(faulty.clone()), inline_options().mode(OpenMode::Reader)).unwrap();
    fill(&db, 0);
    faulty.add_rule(Rule::error(std::io::ErrorKind::StorageFull).on(&[OperationKind::Append]));
    assert!(matches!(reader.refresh(), Err(Error::DiskFull { .. } | Error::Io { .. })));
    fill(&db, 0);
    fill(&db, 0);
    assert_eq!(reader.iter().map(Result::unwrap).count(), 2_000);
    reader.refresh().unwrap();
    fill(&db, 0);
    assert_eq!(reader.iter().map(Result::unwrap).count(), 2_000);
}
