//! The file of a view is that of other runs, of another keyspace or store, or an older copy: it is reported, dropped and built again, and
//! no read uses it.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis::{Db, Keyspace, OpenMode, Runtime, Views};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use crate::{
    support::{FOLDER, key, open_on},
    views::{Store, all, all_backward, fill, value, view_files, views_of},
};

const RUNS: u64 = 3;
const KEYS: u64 = 900;

/// The store in a folder in memory, with its own listener.
fn store_in(memory: &MemVfs) -> Store {
    Store { vfs: Arc::new(memory.clone()), ..Store::new(Views::On) }
}

fn path_of_view(memory: &MemVfs) -> PathBuf {
    let [name] = &view_files(memory)[..] else { panic!("one view") };
    Path::new(FOLDER).join(name)
}

fn replace(memory: &MemVfs, path: &Path, bytes: &[u8]) {
    memory.remove(path).unwrap();
    memory.create(path).unwrap().append(bytes).unwrap();
}

/// A copy of the folder.
fn copy(memory: &MemVfs) -> MemVfs {
    let copied = MemVfs::new();
    copied.create_dir_all(Path::new(FOLDER)).unwrap();
    for entry in memory.list(Path::new(FOLDER)).unwrap() {
        let path = Path::new(FOLDER).join(&entry.name);
        copied.create(&path).unwrap().append(&memory.read(&path).unwrap()).unwrap();
    }
    copied
}

/// A store with a view over all of its runs, closed.
fn filled(seed: u64) -> MemVfs {
    let memory = MemVfs::new();
    let store = store_in(&memory);
    let db = Db::open_on(Arc::clone(&store.vfs), FOLDER, store.options.clone(), Runtime::deterministic(seed));
    let db = db.unwrap();
    let keyspace = db.create_keyspace("k", store.keyspace.clone()).unwrap();
    fill(&db, &keyspace, KEYS, RUNS);
    drop(keyspace);
    db.close().unwrap();
    memory
}

/// The store drops the only view and builds it again; verify and the event say why.
fn check_is_replaced(memory: &MemVfs, reason: &str) {
    let expected = {
        let without = copy(memory);
        without.remove(&path_of_view(&without)).unwrap();
        let (_db, keyspace) = store_in(&without).open();
        all(&keyspace)
    };
    assert!(!expected.is_empty());
    let path = path_of_view(memory);
    let vfs: Arc<dyn Vfs> = Arc::new(memory.clone());
    let faults = Db::verify_folder_on(vfs, FOLDER).unwrap().faults;
    assert!(faults.len() == 1 && faults[0].file == path, "{faults:?}");
    let store = store_in(memory);
    let (db, keyspace) = store.open();
    assert_eq!((all(&keyspace), all_backward(&keyspace)), (expected.clone(), expected));
    let failed = store.listener.failed.lock().unwrap().clone();
    assert!(failed.len() == 1 && failed[0].contains(reason), "{failed:?}, expected {reason}");
    assert_eq!(store.listener.built.lock().unwrap().len(), 1);
    assert_eq!((views_of(&db).open_count, db.statistics().views_built), (1, 1));
    assert_ne!(path_of_view(memory), path);
    let report = db.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.faults);
}

#[test]
fn the_view_of_another_store_is_replaced() {
    // The same operations: number, run ids and counts are equal.
    let (memory, other) = (filled(7), filled(8));
    let path = path_of_view(&memory);
    assert_eq!(path, path_of_view(&other));
    replace(&memory, &path, &other.read(&path).unwrap());
    check_is_replaced(&memory, "of database");
}

/// The view of the same store before a run was added to it.
#[test]
fn the_view_of_fewer_runs_is_replaced() {
    let memory = filled(7);
    let old = memory.read(&path_of_view(&memory)).unwrap();
    let (db, keyspace) = store_in(&memory).open();
    keyspace.put(key(1), value(1, 1)).unwrap();
    db.flush().unwrap();
    assert_eq!(views_of(&db).run_count as u64, RUNS + 1);
    drop(keyspace);
    db.close().unwrap();
    replace(&memory, &path_of_view(&memory), &old);
    check_is_replaced(&memory, "expected view");
}

#[test]
fn the_view_of_another_keyspace_is_replaced() {
    let memory = MemVfs::new();
    let store = store_in(&memory);
    let (db, keyspace) = store.open();
    fill(&db, &keyspace, KEYS, RUNS);
    let first = path_of_view(&memory);
    let other = db.create_keyspace("other", store.keyspace.clone()).unwrap();
    fill(&db, &other, KEYS - 1, RUNS);
    drop((keyspace, other));
    db.close().unwrap();
    let mut paths = view_files(&memory).into_iter().map(|name| Path::new(FOLDER).join(name));
    let second = paths.find(|path| *path != first).unwrap();
    replace(&memory, &second, &memory.read(&first).unwrap());
    let vfs: Arc<dyn Vfs> = Arc::new(memory.clone());
    let faults = Db::verify_folder_on(vfs, FOLDER).unwrap().faults;
    assert!(faults.len() == 1 && faults[0].file == second, "{faults:?}");
    let store = store_in(&memory);
    let (db, keyspace) = store.open();
    let other = db.keyspace("other").unwrap();
    assert_eq!((all(&keyspace).len() as u64, all(&other).len() as u64), (KEYS, KEYS - 1));
    assert_eq!((store.listener.failed.lock().unwrap().len(), db.statistics().views_built), (1, 1));
    assert!(db.verify().unwrap().is_sound());
}

/// Writes to a copy of a store after it was copied: the next runs have the ids, and the next view the number, of those of the original.
fn grow(memory: &MemVfs, count: u64) {
    grow_from(memory, 0, count);
}

fn grow_from(memory: &MemVfs, first: u64, count: u64) {
    let (db, keyspace): (Db, Keyspace) = store_in(memory).open();
    for number in first..first + count {
        keyspace.put(key(2 * number + 1), value(number, count)).unwrap();
    }
    db.flush().unwrap();
    drop(keyspace);
    db.close().unwrap();
}

/// The view of a backup that was written to, under the same name and over runs with the same ids.
#[test]
fn a_view_of_a_copy_of_the_store_is_replaced() {
    let memory = filled(7);
    let backup = copy(&memory);
    grow(&memory, 20);
    grow(&backup, 30);
    let path = path_of_view(&memory);
    assert_eq!(path, path_of_view(&backup));
    replace(&memory, &path, &backup.read(&path).unwrap());
    check_is_replaced(&memory, "entries up to sequence number");
}

/// A store that is opened read-only merges the runs.
#[test]
fn a_read_only_store_does_not_use_the_view_of_a_copy() {
    let memory = filled(7);
    let backup = copy(&memory);
    grow(&memory, 20);
    grow(&backup, 30);
    let path = path_of_view(&memory);
    replace(&memory, &path, &backup.read(&path).unwrap());
    let mut store = store_in(&memory);
    store.options.mode = OpenMode::Reader;
    let db = open_on(Arc::clone(&store.vfs), store.options.clone());
    let db = db.unwrap();
    let keyspace = db.keyspace("k").unwrap();
    for number in 0..400 {
        let mut scan = keyspace.range(..);
        scan.seek(key(number)).unwrap();
        let expected = if number < 40 { number } else { number.next_multiple_of(2) };
        assert!(scan.move_next().unwrap() && scan.key() == key(expected), "{number}");
    }
    assert_eq!((views_of(&db).open_count, store.listener.failed.lock().unwrap().len()), (0, 1));
}

/// The view of a copy that has as many other keys: only a comparison with the runs shows that its order is wrong.
#[test]
fn repair_drops_a_view_of_other_keys() {
    let memory = filled(7);
    let backup = copy(&memory);
    grow_from(&memory, 0, 20);
    grow_from(&backup, 100, 20);
    let path = path_of_view(&memory);
    replace(&memory, &path, &backup.read(&path).unwrap());
    let vfs: Arc<dyn Vfs> = Arc::new(memory.clone());
    let faults = Db::verify_folder_on(Arc::clone(&vfs), FOLDER).unwrap().faults;
    assert!(!faults.is_empty() && faults.iter().all(|fault| fault.file == path), "{faults:?}");
    let report = Db::repair_on(Arc::clone(&vfs), FOLDER, &Runtime::deterministic(9)).unwrap();
    assert!(report.faults.len() == 1 && report.lost_ranges.is_empty(), "{report:?}");
    assert!(Db::verify_folder_on(Arc::clone(&vfs), FOLDER).unwrap().is_sound());
    let (db, keyspace) = store_in(&memory).open();
    assert_eq!((views_of(&db).open_count, all(&keyspace).len() as u64), (1, KEYS + 20));
}

/// The reads of tables fail from any of them on.
#[test]
fn verify_reports_a_view_that_it_could_not_compare() {
    let faults = FaultVfs::new(Arc::new(filled(7)));
    let store = Store { vfs: Arc::new(faults.clone()), ..Store::new(Views::On) };
    let (db, _keyspace) = store.open();
    for number in 1.. {
        let rule = Rule::error(ErrorKind::Other)
            .on(&[OperationKind::Read])
            .path(".table")
            .nth(number)
            .times(u64::MAX);
        let rule = faults.add_rule(rule);
        let report = db.verify();
        let is_hit = faults.hit_count(rule) > 0;
        faults.clear_rules();
        let is_sound = report.is_ok_and(|report| report.is_sound());
        assert_eq!(is_sound, !is_hit, "read {number}");
        if !is_hit {
            assert!(number > RUNS, "{number} reads");
            return;
        }
    }
}
