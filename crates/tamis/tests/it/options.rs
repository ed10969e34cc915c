//! Options that decide how a folder is opened and what stays in the process: what each of them changes.

use std::path::Path;

use tamis::{Durability, Error, Options, WriteBatch};
use tamis_vfs::{MemVfs, Vfs};

use crate::support::{FOLDER, inline_options, open_in_memory};

#[test]
fn a_missing_database_is_made_only_where_that_is_asked_for() {
    let vfs = MemVfs::new();
    let refused = open_in_memory(&vfs, Options { create_if_missing: false, ..inline_options() });
    assert!(matches!(refused, Err(Error::NotADatabase { .. })), "{refused:?}");
    assert!(vfs.list(Path::new(FOLDER)).unwrap_or_default().is_empty(), "a refusal leaves nothing behind");

    open_in_memory(&vfs, inline_options()).unwrap().close().unwrap();
    open_in_memory(&vfs, Options { create_if_missing: false, ..inline_options() }).unwrap();
}

#[test]
fn a_read_only_open_reads_everything_refuses_writes_and_changes_no_file() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    db.put("flushed", "1").unwrap();
    db.flush().unwrap();
    db.put("logged", "2").unwrap();
    db.close().unwrap();
    let contents = |vfs: &MemVfs| -> Vec<_> {
        let files = vfs.list(Path::new(FOLDER)).unwrap().into_iter();
        files
            .map(|file| (file.name.clone(), vfs.read(&Path::new(FOLDER).join(&file.name)).unwrap()))
            .collect()
    };
    let before = contents(&vfs);

    let db = open_in_memory(&vfs, Options { read_only: true, ..inline_options() }).unwrap();
    assert_eq!(db.get("flushed").unwrap().as_deref(), Some(b"1".as_slice()));
    assert_eq!(db.get("logged").unwrap().as_deref(), Some(b"2".as_slice()));
    assert!(matches!(db.put("key", "value"), Err(Error::ReadOnly { .. })));
    db.close().unwrap();
    assert_eq!(contents(&vfs), before);
}

#[test]
fn deferred_writes_wait_in_the_process_up_to_their_bound() {
    let log_bytes = |deferred_bytes_max: usize| {
        let vfs = MemVfs::new();
        let db = open_in_memory(&vfs, Options { deferred_bytes_max, ..inline_options() }).unwrap();
        for number in 0..10_u8 {
            let mut batch = WriteBatch::new();
            batch.put(&db.default_keyspace(), [number + 1], [0; 100]).unwrap();
            db.write_with(batch, Durability::Deferred).unwrap();
        }
        let files = vfs.list(Path::new(FOLDER)).unwrap();
        let logs = files.iter().filter(|file| file.name.ends_with(".log"));
        logs.map(|file| file.length).sum::<u64>()
    };
    let (all_waits, some_waits, none_waits) = (log_bytes(1 << 20), log_bytes(500), log_bytes(0));
    assert!(all_waits < 500, "{all_waits} bytes were given to the system");
    assert!(some_waits > all_waits && none_waits > some_waits, "{all_waits} {some_waits} {none_waits}");
    assert!(none_waits > 1_000, "{none_waits} bytes were given to the system");
}
