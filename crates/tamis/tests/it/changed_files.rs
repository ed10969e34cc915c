//! Another program changes, shortens or removes the table files of an open store.

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use tamis::{Access, Db, Error, Options};

use crate::support::{SplitMix64, small_keyspace};

const KEY_COUNT: u32 = 2_000;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn value(number: u32) -> Vec<u8> {
    vec![number as u8; 100]
}

/// A store whose entries are all in tables. Its folder has no others: closing deletes those that compactions have replaced.
fn store(folder: &Path, options: Options) -> Db {
    let options = options.default_keyspace(small_keyspace());
    let db = Db::open_with(folder, options.clone()).unwrap();
    for number in 0..KEY_COUNT {
        db.put(key(number), value(number)).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    db.close().unwrap();
    Db::open_with(folder, options).unwrap()
}

fn table_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut tables: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|name| name == "table")).collect();
    tables.sort();
    assert!(tables.len() >= 2);
    tables
}

/// Overwrites bytes of the data blocks.
fn change(path: &Path, random: &mut SplitMix64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let blocks = file.metadata().unwrap().len() / 2 / 4096;
    for block in 0..blocks {
        let bytes: Vec<u8> = (0..64).map(|_| random.next_u64() as u8).collect();
        file.write_all_at(&bytes, block * 4096 + 16 + random.below(3_000)).unwrap();
    }
}

fn read_all(db: &Db) -> Vec<Result<Option<Vec<u8>>, Error>> {
    (0..KEY_COUNT).map(|number| db.get(key(number)).map(|value| value.map(|value| value.to_vec()))).collect()
}

/// Blocks of a mapped table that changed later were reported as damaged "with a correct checksum", or as entries of a newer program.
#[test]
fn a_mapped_table_that_changed_after_its_first_read_is_a_checksum_error() {
    let folder = tempfile::tempdir().unwrap();
    let db = store(folder.path(), Options::default());
    read_all(&db);
    let mut error_count = 0;
    let mut check = |error: Option<Error>| match error {
        Some(Error::Corruption(found)) => {
            assert!(!found.got.contains("correct checksum"), "{found:?}");
            error_count += 1;
        }
        Some(other) => panic!("{other}"),
        None => {}
    };
    let mut random = SplitMix64::new(4);
    for _ in 0..20 {
        table_files(folder.path()).iter().for_each(|path| change(path, &mut random));
        read_all(&db).into_iter().for_each(|found| check(found.err()));
        db.range(..).for_each(|entry| check(entry.err()));
        db.range(..).rev().for_each(|entry| check(entry.err()));
    }
    assert!(error_count > 0);
}

#[test]
fn changed_and_shortened_tables_are_errors_in_buffered_and_direct_access() {
    for table_access in [Access::Buffered, Access::Direct] {
        let folder = tempfile::tempdir().unwrap();
        let db = store(folder.path(), Options::default().table_access(table_access).cache_bytes(0));
        read_all(&db);
        let files = table_files(folder.path());
        change(&files[0], &mut SplitMix64::new(5));
        fs::OpenOptions::new().write(true).open(&files[1]).unwrap().set_len(4096).unwrap();
        let found = read_all(&db);
        for (number, found) in (0..).zip(&found) {
            match found {
                Ok(found) => assert_eq!(*found, Some(value(number)), "a wrong answer"),
                Err(error) => assert!(matches!(error, Error::Corruption(_) | Error::Io { .. }), "{error}"),
            }
        }
        assert!(found.iter().any(Result::is_err));
    }
}

/// A table that is truncated before it is read for the first time.
#[test]
fn a_shortened_mapped_table_is_an_error_at_its_first_read() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), Options::default()).close().unwrap();
    let db = Db::open(folder.path()).unwrap();
    let files = table_files(folder.path());
    fs::OpenOptions::new().write(true).open(&files[0]).unwrap().set_len(5_000).unwrap();
    let found = read_all(&db);
    assert!(found.iter().any(|found| matches!(found, Err(Error::Corruption(_)))));
    drop(db);
    let refused = Db::open(folder.path());
    assert!(matches!(&refused, Err(Error::Corruption(found)) if found.what == "table length"), "{refused:?}");
}

/// Open tables were verified instead of the files: a store without half of its tables was reported as intact.
#[test]
fn verify_of_an_open_store_reads_the_files() {
    for table_access in [Access::Mapped, Access::Buffered] {
        let folder = tempfile::tempdir().unwrap();
        let db = store(folder.path(), Options::default().table_access(table_access));
        read_all(&db);
        assert!(db.verify().unwrap().is_sound());
        let files = table_files(folder.path());
        let (removed, rest) = files.split_at(files.len() / 2);
        #[expect(clippy::disallowed_methods, reason = "another program removes the files")]
        removed.iter().for_each(|path| fs::remove_file(path).unwrap());
        change(&rest[0], &mut SplitMix64::new(6));
        let report = db.verify().unwrap();
        for path in removed.iter().chain(&rest[..1]) {
            assert!(report.faults.iter().any(|fault| fault.file == *path), "{path:?}: {report:?}");
        }
    }
}

#[test]
fn a_checkpoint_of_a_shortened_or_changed_table_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (source, target) = (folder.path().join("store"), folder.path().join("copy"));
    let db = store(&source, Options::default().table_access(Access::Buffered));
    read_all(&db);
    let is_empty = || fs::read_dir(&target).unwrap().next().is_none();
    let path = &table_files(&source)[1];
    let bytes = fs::read(path).unwrap();

    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(5_000).unwrap();
    let refused = db.checkpoint(&target);
    assert!(matches!(&refused, Err(Error::Corruption(found)) if found.file == *path), "{refused:?}");
    assert!(is_empty());

    fs::write(path, &bytes).unwrap();
    change(path, &mut SplitMix64::new(7));
    let refused = db.checkpoint_verified(&target);
    assert!(matches!(&refused, Err(Error::Corruption(found)) if found.file == *path), "{refused:?}");
    assert!(is_empty());

    fs::write(path, &bytes).unwrap();
    db.checkpoint_verified(&target).unwrap();
    assert_eq!(Db::open(&target).unwrap().range(..).count(), KEY_COUNT as usize);
}
