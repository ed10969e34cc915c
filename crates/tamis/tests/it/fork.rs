//! A store belongs to the process that opened it: a forked child gets errors, and leaves the parent's files and lock alone.
//!
//! *Found*: the child's `put` returned Ok and was lost, and dropping the `Db` in the child panicked.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use tamis::{
    Db, Durability, Error, Keyspace, KeyspaceOptions, Options, Scan, Snapshot, TableWriter, WriteBatch,
};
use tamis_vfs::{Access, OsVfs, Vfs as _};

use crate::support::small_keyspace;

/// Runs `work` in a forked child, and returns whether it ended without a panic.
fn succeeds_in_child(work: impl FnOnce()) -> bool {
    // SAFETY: the child runs `work` and ends; `work` takes no lock that another thread of this process may hold.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child process");
    if child == 0 {
        // SAFETY: a child that waits for a lock forever is killed, and the test fails.
        unsafe { libc::alarm(60) };
        let is_ok = catch_unwind(AssertUnwindSafe(work)).is_ok();
        // SAFETY: ends the child without the code that runs at the end of the parent.
        unsafe { libc::_exit(i32::from(!is_ok)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child that was just created.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = OsVfs.list(folder).unwrap().into_iter();
    entries.map(|entry| (entry.name.clone(), OsVfs.read(&folder.join(&entry.name)).unwrap())).collect()
}

fn is_forked<T>(result: tamis::Result<T>) -> bool {
    matches!(result, Err(Error::Forked))
}

/// Every call that can fail.
fn use_in_child(db: &Db, snapshot: &Snapshot) {
    let keyspace = db.default_keyspace();
    assert!(is_forked(db.put("key", "lost")));
    assert!(is_forked(db.delete("key")));
    assert!(is_forked(db.delete_range("a".."z")));
    let mut batch = WriteBatch::new();
    batch.put(&keyspace, "key", "lost").unwrap();
    assert!(is_forked(db.write_with(batch, Durability::Synced)));
    assert!(is_forked(db.persist(Durability::Synced)));
    assert!(is_forked(db.flush()));
    assert!(is_forked(db.get("key")));
    assert!(is_forked(db.multi_get(["key"])));
    assert!(is_forked(db.first()));
    assert!(is_forked(db.range(..).next().unwrap()));
    assert!(is_forked(db.prefix("k").next_back().unwrap()));
    assert!(is_forked(keyspace.approximate_count(..)));
    assert!(is_forked(snapshot.get(&keyspace, "key")));
    assert!(is_forked(db.snapshot().get(&keyspace, "key")));
    assert!(is_forked(db.create_keyspace("new", KeyspaceOptions::default())));
    assert!(is_forked(db.drop_keyspace("k")));
    assert!(is_forked(db.compact_range(&keyspace, ..)));
    assert!(is_forked(db.wait_for_compactions()));
    assert!(is_forked(db.check_filters(&keyspace)));
    assert!(is_forked(db.open_tables(&keyspace)));
    assert!(is_forked(db.sampled_queries(&keyspace)));
    assert!(is_forked(db.verify()));
    assert!(is_forked(db.checkpoint("/nowhere")));
    assert!(is_forked(db.ingest(&keyspace, ["/nowhere.table"])));
    assert_eq!(db.statistics(), tamis::Statistics::default());
    assert!(is_forked(db.clone().close()));
}

/// The handles of a store.
struct Handles {
    db: Db,
    keyspace: Keyspace,
    snapshot: Snapshot,
    scan: Scan,
    table: TableWriter,
}

fn handles(root: &Path, table_access: Access) -> Handles {
    let db = Db::open_with(root.join("store"), Options::default().table_access(table_access)).unwrap();
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    for index in 0..3_000_u32 {
        keyspace.put(index.to_be_bytes(), [7; 100]).unwrap();
    }
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    db.put("logged", "1").unwrap();
    let snapshot = db.snapshot();
    let mut scan = keyspace.range(..);
    // The third step takes an entry without the merge.
    for _ in 0..3 {
        scan.next().unwrap().unwrap();
    }
    let mut table = TableWriter::create(root.join("new.table"), &small_keyspace()).unwrap();
    table.put("a", "1").unwrap();
    Handles { db, keyspace, snapshot, scan, table }
}

#[test]
fn a_forked_child_gets_errors_and_its_drops_change_nothing() {
    for table_access in [Access::Mapped, Access::Buffered] {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("store");
        let mut handles = Some(handles(root.path(), table_access));
        let (before, files) = (contents(&path), OsVfs.list(root.path()).unwrap());
        let is_ok = succeeds_in_child(|| {
            // The child takes its copy of the handles and drops it.
            let Handles { db, keyspace, snapshot, mut scan, mut table } = handles.take().unwrap();
            use_in_child(&db, &snapshot);
            assert!(is_forked(table.put("b", "2")));
            assert!(is_forked(table.finish()));
            assert!(is_forked(scan.seek([0])));
            assert!(is_forked(scan.next().unwrap()));
            drop((scan, snapshot, keyspace));
            drop(db);
            assert!(matches!(Db::open(&path), Err(Error::Locked { .. })), "the parent has it open");
        });
        assert!(is_ok);
        assert_eq!((contents(&path), OsVfs.list(root.path()).unwrap()), (before, files));

        let Handles { db, keyspace, snapshot, scan, mut table } = handles.unwrap();
        assert!(matches!(Db::open(&path), Err(Error::Locked { .. })), "the child did not unlock the folder");
        assert_eq!(scan.map(Result::unwrap).count(), 2_997);
        table.put("b", "2").unwrap();
        assert_eq!(table.finish().unwrap().entry_count, 2);
        assert_eq!(snapshot.get(&db.default_keyspace(), "logged").unwrap().unwrap(), b"1");
        keyspace.put("after", "1").unwrap();
        db.flush().unwrap();
        drop((keyspace, snapshot));
        db.close().unwrap();
        let db = Db::open(&path).unwrap();
        assert_eq!(db.get("logged").unwrap().unwrap(), b"1");
        assert_eq!(db.keyspace("k").unwrap().range(..).count(), 3_001);
    }
}

/// A child opens its own stores.
#[test]
fn a_forked_child_opens_other_stores() {
    let root = tempfile::tempdir().unwrap();
    let _parent = Db::open(root.path().join("parent")).unwrap();
    let path = root.path().join("child");
    assert!(succeeds_in_child(|| {
        let db = Db::open(&path).unwrap();
        db.put("key", "value").unwrap();
        db.flush().unwrap();
        db.close().unwrap();
    }));
    assert_eq!(Db::open(&path).unwrap().get("key").unwrap().unwrap(), b"value");
}

/// The parent's transactions are not those of the child, which ends none of them.
#[test]
fn transactions_of_the_parent_are_refused_in_a_child_and_continue_in_the_parent() {
    let root = tempfile::tempdir().unwrap();
    let db = Db::open(root.path().join("store")).unwrap();
    let keyspace = db.default_keyspace();
    db.put("key", "value").unwrap();
    let optimistic = db.transaction();
    optimistic.put(&keyspace, "optimistic", "1").unwrap();
    let exclusive = db.exclusive().unwrap();
    exclusive.put(&keyspace, "exclusive", "1").unwrap();
    let mut handles = Some((optimistic, exclusive));
    assert!(succeeds_in_child(|| {
        let (optimistic, exclusive) = handles.take().unwrap();
        let mut scan = optimistic.iter(&keyspace);
        assert!(is_forked(scan.next().unwrap()));
        drop(scan);
        assert!(is_forked(optimistic.get(&keyspace, "key")));
        assert!(is_forked(optimistic.put(&keyspace, "key", "lost")));
        assert!(is_forked(optimistic.commit()));
        assert!(is_forked(db.exclusive()));
        drop(exclusive);
    }));
    let (optimistic, exclusive) = handles.unwrap();
    exclusive.commit().unwrap();
    optimistic.commit().unwrap();
    assert_eq!(db.iter().count(), 3);
}
