//! The number of log segments over many opens.

use std::path::Path;

use tamis::{Db, KeyspaceOptions, Options};
use tamis_vfs::{MemVfs, Vfs};

use crate::support::{FOLDER, inline_options, open_in_memory};

fn segment_count(vfs: &MemVfs) -> usize {
    let entries = vfs.list(Path::new(FOLDER)).unwrap();
    entries.iter().filter(|entry| entry.name.ends_with(".log")).count()
}

/// If processes wrote little and ended before a flush, one segment per open remained, and each open replayed all of them.
#[test]
fn a_thousand_opens_with_one_write_each_leave_few_segments() {
    for workers in [0, 1] {
        let vfs = MemVfs::new();
        for number in 0..1000_u32 {
            let db = open_in_memory(&vfs, inline_options().workers(workers)).unwrap();
            let count = segment_count(&vfs);
            assert!(count <= 4, "{count} segments after open {number} with {workers} workers");
            db.put(number.to_be_bytes(), "value").unwrap();
            db.close().unwrap();
        }
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        assert_eq!(db.range(..).count(), 1000);
    }
}

#[test]
fn opens_without_writes_leave_few_segments() {
    let vfs = MemVfs::new();
    for _ in 0..20 {
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        assert!(segment_count(&vfs) <= 4);
        db.close().unwrap();
    }
}

#[test]
fn opens_with_writes_to_a_dropped_keyspace_leave_few_segments() {
    let vfs = MemVfs::new();
    for _ in 0..20 {
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        assert!(segment_count(&vfs) <= 4);
        let keyspace = db.create_keyspace("short-lived", KeyspaceOptions::default()).unwrap();
        keyspace.put("key", "value").unwrap();
        db.drop_keyspace("short-lived").unwrap();
        db.close().unwrap();
    }
}

/// Each open left a log segment or a small table to the next one: 200 of them left 56 files.
#[test]
fn short_lived_processes_leave_few_files() {
    for workers in [0, 2] {
        let folder = tempfile::tempdir().unwrap();
        let options = || Options::default().workers(workers);
        for number in 0..200_u32 {
            let db = Db::open_with(folder.path(), options()).unwrap();
            db.put(number.to_be_bytes(), "value").unwrap();
            db.close().unwrap();
        }
        let mut names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert!(names.len() <= 20, "{workers} workers: {} files: {names:?}", names.len());
        assert_eq!(Db::open(folder.path()).unwrap().range(..).count(), 200);
    }
}
