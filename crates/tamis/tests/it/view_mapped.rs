//! The file of a mapped view is overwritten while it is open: no answer changes, no read panics, and the view is built again.

use std::{fs::File, ops::Range, os::unix::fs::FileExt as _, path::PathBuf};

use tamis::{Db, Keyspace, Views};
use tamis_vfs::Access;
use tempfile::TempDir;

use crate::{
    support::{SplitMix64, key},
    views::{Store, all, all_backward, fill, value, views_of},
};

const KEYS: u64 = 4_000;
const RUNS: u64 = 4;

/// A store of mapped files with an open view over all runs.
struct Mapped {
    folder: TempDir,
    store: Store,
    db: Db,
    keyspace: Keyspace,
}

impl Mapped {
    fn filled() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(Views::On);
        let options = store.options.clone().table_access(Access::Mapped);
        let db = Db::open_with(folder.path(), options).unwrap();
        let keyspace = db.get_or_create_keyspace("k", store.keyspace.clone()).unwrap();
        fill(&db, &keyspace, KEYS, RUNS);
        assert_eq!(views_of(&db).open_count, 1);
        Self { folder, store, db, keyspace }
    }

    fn path(&self) -> PathBuf {
        let mut paths = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        paths.find(|path| path.extension().is_some_and(|name| name == "view")).unwrap()
    }

    fn file(&self) -> File {
        File::options().read(true).write(true).open(self.path()).unwrap()
    }

    fn failed_count(&self) -> usize {
        self.store.listener.failed.lock().unwrap().len()
    }

    /// Adds a run.
    fn flush(&self) {
        self.keyspace.put(key(0), value(0, 0)).unwrap();
        self.db.flush().unwrap();
    }
}

#[test]
fn a_mapped_view_that_is_overwritten_is_replaced_by_a_merge() {
    let mapped = Mapped::filled();
    let (db, keyspace) = (&mapped.db, &mapped.keyspace);
    let expected = all(keyspace);
    let length = mapped.file().metadata().unwrap().len() as usize;
    mapped.file().write_all_at(&vec![0; length], 0).unwrap();
    let mut scan = keyspace.range(..);
    scan.seek(key(4_001)).unwrap();
    assert!(scan.move_next().unwrap() && scan.key() == key(4_002));
    assert!(scan.move_prev().unwrap() && scan.key() == key(4_000));
    assert_eq!(mapped.failed_count(), 1);
    assert_eq!((all(keyspace), all_backward(keyspace)), (expected.clone(), expected.clone()));
    mapped.flush();
    assert_eq!((views_of(db).open_count, all(keyspace)), (1, expected), "another view was built");
}

/// The bytes of the numbers of entries and of live keys before each page, which end with those of all of them.
fn counts_in(bytes: &[u8]) -> Range<usize> {
    let is_end = |&place: &usize| bytes[place..place + 8] == KEYS.to_le_bytes();
    let ends: Vec<_> = (0..bytes.len() - 8).step_by(8).filter(is_end).collect();
    let [.., first, second] = &ends[..] else { panic!("two lists") };
    first + 8 - (second - first)..second + 8
}

/// The whole file has the largest numbers, or any; or only the counts in the page index have the largest ones.
#[test]
fn reads_of_an_overwritten_page_index_do_not_panic() {
    for turn in 0..3 {
        let mapped = Mapped::filled();
        let keyspace = &mapped.keyspace;
        let mut bytes = std::fs::read(mapped.path()).unwrap();
        match turn {
            0 => bytes.fill(0xFF),
            1 => {
                let mut random = SplitMix64::new(3);
                bytes.iter_mut().for_each(|byte| *byte = random.next_u64() as u8);
            }
            _ => {
                let counts = counts_in(&bytes);
                bytes[counts].fill(0xFF);
            }
        }
        let mut scans: Vec<_> = (0..6).map(|_| keyspace.range(..)).collect();
        scans.iter_mut().for_each(|scan| assert!(scan.move_next().unwrap()));
        mapped.file().write_all_at(&bytes, 0).unwrap();
        // The view is not trusted any more: results may be errors, or wrong where the bytes are, but the calls return.
        for (number, scan) in scans.iter_mut().enumerate() {
            let _ = match number {
                0 => scan.nth(1_000).is_some(),
                1 => scan.move_next().is_ok(),
                2 => scan.seek(key(500)).and_then(|()| scan.move_next()).is_ok(),
                3 => scan.seek_for_prev(key(500)).and_then(|()| scan.move_prev()).is_ok(),
                4 => scan.nth(70).is_some(),
                _ => scan.move_prev().is_ok(),
            };
        }
        let _ = keyspace.approximate_count(key(100)..key(5_000));
        let _ = keyspace.get(key(7));
        mapped.flush();
        mapped.flush();
    }
}

/// A page that no read has touched since it was damaged: the view to which a run is added is removed, and another one is built from the runs.
#[test]
fn a_damaged_page_is_not_copied_to_the_next_view() {
    let mapped = Mapped::filled();
    let (db, keyspace) = (&mapped.db, &mapped.keyspace);
    let expected = all(keyspace);
    // An infix within the first pages, far behind the key that the next run has.
    let mut byte = [0];
    mapped.file().read_exact_at(&mut byte, 3_000).unwrap();
    mapped.file().write_all_at(&[byte[0] ^ 0x10], 3_000).unwrap();
    let before = db.statistics();
    mapped.flush();
    let statistics = db.statistics();
    assert_eq!(mapped.failed_count(), 1, "{:?}", mapped.store.listener.failed.lock().unwrap());
    assert_eq!((views_of(db).open_count, views_of(db).run_count as u64), (1, RUNS + 1));
    let built =
        (statistics.views_built - before.views_built, statistics.views_rebuilt - before.views_rebuilt);
    assert_eq!(built, (1, 0), "from scratch");
    assert_eq!((all(keyspace), all_backward(keyspace)), (expected.clone(), expected));
    assert!(db.verify().unwrap().is_sound());
}
