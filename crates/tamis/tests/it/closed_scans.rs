//! A scan that is kept over the close of its store continues until another open deletes tables that it has not reached.

use std::sync::Arc;

use tamis::{Db, Error, Scan};
use tamis_vfs::{Access, MemVfs};

use crate::support::{inline_options, open_on, small_keyspace};

const COUNT: u32 = 3_000;

fn open(vfs: &MemVfs) -> Db {
    let options = inline_options().table_access(Access::Buffered).default_keyspace(small_keyspace());
    open_on(Arc::new(vfs.clone()), options).unwrap()
}

/// A scan that has returned one entry, of tables that were replaced since.
fn kept_scan(db: &Db) -> Scan {
    let put = |value: u8| (0..COUNT).for_each(|key| db.put(key.to_be_bytes(), [value; 100]).unwrap());
    put(1);
    db.flush().unwrap();
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    let mut scan = db.range(..);
    assert_eq!(&*scan.next().unwrap().unwrap().0, 0_u32.to_be_bytes());
    put(2);
    db.flush().unwrap();
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    scan
}

/// Reads the scan to its end: right entries, then perhaps an error.
fn read(scan: Scan) -> (u32, Option<Error>) {
    let mut next = 1_u32;
    for entry in scan {
        match entry {
            Ok((key, value)) => {
                assert_eq!((&*key, &*value), (&next.to_be_bytes()[..], &[1; 100][..]));
                next += 1;
            }
            Err(error) => return (next, Some(error)),
        }
    }
    (next, None)
}

#[test]
fn a_scan_continues_after_the_close_of_its_store() {
    let db = open(&MemVfs::new());
    let scan = kept_scan(&db);
    db.close().unwrap();
    assert!(matches!(read(scan), (COUNT, None)));
}

/// The tables of a dropped keyspace have no reader except the scan, so that those behind its position are not open.
#[test]
fn a_scan_ends_where_another_open_has_deleted_its_tables() {
    let vfs = MemVfs::new();
    let db = open(&vfs);
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    (0..COUNT).for_each(|key| keyspace.put(key.to_be_bytes(), [1; 100]).unwrap());
    db.flush().unwrap();
    db.compact_range(&keyspace, ..).unwrap();
    drop(keyspace);
    db.close().unwrap();
    let db = open(&vfs);
    let mut scan = db.keyspace("k").unwrap().range(..);
    assert_eq!(&*scan.next().unwrap().unwrap().0, 0_u32.to_be_bytes());
    db.drop_keyspace("k").unwrap();
    db.close().unwrap();
    let db = open(&vfs);
    let (next, error) = read(scan);
    assert!(next < COUNT);
    assert!(matches!(&error, Some(Error::MissingFile { .. })), "{error:?}");
    drop(db);
}
