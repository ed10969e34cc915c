//! A log that lost segments, or parts of them that were synced: the next open, `verify` and `repair` name each one.

use std::{io::ErrorKind, path::Path, sync::Arc};

use tamis::{Db, Durability, Error, KeyspaceOptions, OpenMode, Options, Runtime, WriteBatch};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use crate::support::{FOLDER, inline_options, open_in_memory, open_on, small_keyspace};

/// The log segments of the folder with their bytes, oldest first.
fn segments(vfs: &MemVfs) -> Vec<(String, Vec<u8>)> {
    let mut names: Vec<String> = vfs.list(Path::new(FOLDER)).unwrap().into_iter().map(|e| e.name).collect();
    names.retain(|name| name.ends_with(".log"));
    names.sort();
    names.into_iter().map(|name| (name.clone(), vfs.read(&Path::new(FOLDER).join(name)).unwrap())).collect()
}

fn put(db: &Db, number: u32, durability: Durability) {
    let mut batch = WriteBatch::new();
    batch.put(&db.default_keyspace(), number.to_be_bytes(), [7; 100]).unwrap();
    db.write_with(batch, durability).unwrap();
}

/// The files as they are: what a process leaves that is killed.
fn copy_of(vfs: &MemVfs) -> MemVfs {
    let copy = MemVfs::new();
    copy.create_dir_all(Path::new(FOLDER)).unwrap();
    for entry in vfs.list(Path::new(FOLDER)).unwrap() {
        let path = Path::new(FOLDER).join(entry.name);
        copy.create(&path).unwrap().append(&vfs.read(&path).unwrap()).unwrap();
    }
    copy
}

/// A copy of the files in which a segment is removed (`None`), or cut.
fn damaged(vfs: &MemVfs, (name, bytes): &(String, Vec<u8>), length: Option<usize>) -> MemVfs {
    let copy = copy_of(vfs);
    let path = Path::new(FOLDER).join(name);
    copy.remove(&path).unwrap();
    if let Some(length) = length {
        copy.create(&path).unwrap().append(&bytes[..length]).unwrap();
    }
    copy
}

/// The store does not open, `verify` names the segment, and a repair reports that writes may be lost; `kept`: those that are not.
fn check_is_found(files: &MemVfs, name: &str, length: Option<usize>, kept: &[u32]) {
    let what = format!("{name} of {length:?} bytes");
    for read_only in [false, true] {
        let before = segments(files);
        match open_in_memory(
            files,
            inline_options().mode(if read_only { OpenMode::Reader } else { OpenMode::CreateIfMissing }),
        ) {
            Err(Error::MissingFile { path, .. }) if length.is_none() => {
                assert!(path.ends_with(name), "{what}: {path:?}");
            }
            Err(Error::Corruption(found)) if length.is_some() => {
                assert!(found.file.ends_with(name), "{what}: {found:?}");
                assert!(!found.expected.is_empty() && !found.got.is_empty());
            }
            other => panic!("{what}: {:?}", other.map(drop)),
        }
        assert!(segments(files) == before, "{what}: the refused store is unchanged");
    }
    let report = Db::verify_folder_on(Arc::new(files.clone()), FOLDER).unwrap();
    let of_segment = report.faults.iter().filter(|fault| fault.file.ends_with(name)).count();
    assert_eq!((of_segment, report.faults.len()), (1, 1), "{what}: {:?}", report.faults);
    let report = Db::repair_on(Arc::new(files.clone()), FOLDER, &Runtime::deterministic(9)).unwrap();
    assert!(report.lost_ranges.iter().any(|lost| lost.why.contains(name)), "{what}: {report:?}");
    let db = open_in_memory(files, inline_options()).unwrap();
    for number in kept {
        assert!(db.get(number.to_be_bytes()).unwrap().is_some(), "{what}: {number}");
    }
    assert!(db.verify().unwrap().is_sound(), "{what}");
    put(&db, 1_000, Durability::Synced);
    db.close().unwrap();
    drop(open_in_memory(files, inline_options()).unwrap());
}

/// An emptied or removed newest segment opened silently: nothing said that it had been there.
#[test]
fn a_clean_close_records_the_segments_and_their_lengths() {
    let vfs = MemVfs::new();
    for number in 0..3 {
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        put(&db, number, if number == 1 { Durability::Buffered } else { Durability::Synced });
        db.close().unwrap();
    }
    let all = segments(&vfs);
    assert_eq!(all.len(), 3);
    for (index, segment) in all.iter().enumerate() {
        let kept: Vec<u32> = (0..3).filter(|number| (*number as usize) < index).collect();
        // The last record only has a mark, and is not synced.
        let synced = segment.1.len() - if index == 2 { 20 } else { 0 };
        for length in [None, Some(0), Some(1), Some(63), Some(64), Some(synced - 1)] {
            check_is_found(&damaged(&vfs, segment, length), &segment.0, length, &kept);
        }
    }
    // Nothing else changed.
    let report = Db::verify_folder_on(Arc::new(vfs.clone()), FOLDER).unwrap();
    assert!(report.is_sound(), "{:?}", report.faults);
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    assert_eq!(db.range(..).count(), 3);
}

/// The mark of the last record proves nothing about lost data: it may be torn.
#[test]
fn a_torn_mark_after_a_clean_close_is_no_damage() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    put(&db, 0, Durability::Buffered);
    db.close().unwrap();
    let segment = segments(&vfs).pop().unwrap();
    let files = damaged(&vfs, &segment, Some(segment.1.len() - 1));
    let db = open_in_memory(&files, inline_options()).unwrap();
    assert!(db.get(0_u32.to_be_bytes()).unwrap().is_some());
}

/// A store that was killed: the edit of each flush records how far the log was synced.
#[test]
fn a_killed_store_knows_the_segments_that_were_synced_at_its_last_flush() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let busy = db.create_keyspace("busy", small_keyspace()).unwrap();
    put(&db, 0, Durability::Synced);
    // Several memtables of 64 KiB: each begins a segment, and entry 0 keeps all of them.
    for number in 0..200_u32 {
        busy.put(number.to_be_bytes(), [7; 1_000]).unwrap();
        if number % 20 == 0 {
            put(&db, 1 + number, Durability::Synced);
        }
    }
    assert!(db.statistics().flushes > 1, "{:?}", db.statistics());
    let all = segments(&vfs);
    assert!(all.len() > 2);
    // All but the newest were synced; the last flush began after it.
    for segment in &all[..all.len() - 1] {
        for length in [None, Some(0), Some(64)] {
            check_is_found(&damaged(&vfs, segment, length), &segment.0, length, &[]);
        }
    }
    drop(db);
}

/// The segments of a checkpoint are recorded, too.
#[test]
fn a_checkpoint_records_its_segments() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    put(&db, 0, Durability::Buffered);
    db.checkpoint("/copy").unwrap();
    let entries = vfs.list(Path::new("/copy")).unwrap();
    let name = &entries.iter().find(|entry| entry.name.ends_with(".log")).unwrap().name;
    vfs.remove(&Path::new("/copy").join(name)).unwrap();
    let opened = Db::open_on(Arc::new(vfs), "/copy", inline_options(), Runtime::deterministic(7));
    assert!(matches!(opened, Err(Error::MissingFile { path, .. }) if path.ends_with(name)));
}

/// The record is written after the last sync of the log: a power failure at any operation of the close finds no false damage.
#[test]
fn a_power_failure_during_a_close_is_no_damage() {
    for nth in 1.. {
        let memory = MemVfs::new();
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let db = open_on(Arc::new(faults.clone()), inline_options());
        let db = db.unwrap();
        put(&db, 0, Durability::Synced);
        put(&db, 1, Durability::Buffered);
        let crashed = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let (target, from) = (Arc::clone(&crashed), memory.clone());
        let hook = move |_: &tamis_vfs::Operation| {
            *target.lock() = (0..8).map(|seed| from.crash_clone(seed)).collect();
        };
        faults.add_rule(Rule::slow(hook).nth(nth).times(1));
        db.close().unwrap();
        let copies = std::mem::take(&mut *crashed.lock());
        if copies.is_empty() {
            assert!(nth > 5, "a close has more operations");
            return;
        }
        for copy in copies {
            let db = open_in_memory(&copy, inline_options()).unwrap();
            assert!(db.get(0_u32.to_be_bytes()).unwrap().is_some());
            assert!(db.verify().unwrap().is_sound());
        }
    }
}

/// A segment was read as a whole: the open of a store with a long segment took that much memory more than the writer.
#[test]
fn segments_are_read_in_pieces() {
    let memory = MemVfs::new();
    let db = open_in_memory(&memory, inline_options().log_bytes_max(64 << 20)).unwrap();
    for number in 0..30_000_u32 {
        put(&db, number, Durability::Buffered);
    }
    let long = vec![5; 1 << 20];
    db.put("long", &long).unwrap();
    put(&db, 30_000, Durability::Buffered);
    let longest = segments(&memory).iter().map(|(_, bytes)| bytes.len()).max().unwrap();
    assert!(longest > 4 << 20, "{longest}");
    // Also if the tail is torn, and each byte after it is searched for a mark.
    for torn in [0, 300_000] {
        let newest = segments(&memory).pop().unwrap();
        let files = damaged(&memory, &newest, Some(newest.1.len() - torn));
        let vfs = FaultVfs::new(Arc::new(files));
        let most = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let counted = Arc::clone(&most);
        let hook = move |operation: &tamis_vfs::Operation| {
            counted.fetch_max(operation.length_bytes, std::sync::atomic::Ordering::Relaxed);
        };
        vfs.add_rule(Rule::slow(hook).on(&[OperationKind::Read]).path(".log"));
        let db = open_on(Arc::new(vfs), inline_options()).unwrap();
        assert_eq!(db.get("long").unwrap().is_some(), torn == 0);
        let most = most.load(std::sync::atomic::Ordering::Relaxed);
        // A record is read as a whole.
        let limit = if torn == 0 { (1 << 20) + 100 } else { 256 << 10 };
        assert!(most > 0 && most <= limit, "{most} bytes at once");
    }
}

/// A segment without a record is removed when the first append to it fails: the store would be unreadable if a flush had recorded it.
#[test]
fn a_segment_without_records_is_not_missed() {
    for nth in 1.. {
        let memory = MemVfs::new();
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let vfs = Arc::new(faults.clone());
        let db = Db::open_on(vfs, FOLDER, Options::default().workers(0), Runtime::deterministic(1)).unwrap();
        let keyspaces = ["a", "b"].map(|name| {
            let options = KeyspaceOptions::default().memtable_bytes(8 << 20);
            let keyspace = db.create_keyspace(name, options).unwrap();
            // Too much for one flush of both.
            (0..40_u32).for_each(|number| keyspace.put(number.to_be_bytes(), [7; 64 << 10]).unwrap());
            keyspace
        });
        // The disk is full before the second table is complete.
        let full = Rule::error(ErrorKind::StorageFull).on(&[OperationKind::Append]);
        faults.add_rule(full.clone().path(".t").nth(nth).forever());
        let is_whole = db.flush().is_ok();
        faults.add_rule(full.path(".log").forever());
        assert!(keyspaces[0].put("later", "refused").is_err());
        let db_of_next = open_in_memory(&copy_of(&memory), inline_options()).unwrap();
        for name in ["a", "b"] {
            assert_eq!(db_of_next.keyspace(name).unwrap().range(..).count(), 40);
        }
        assert!(db_of_next.verify().unwrap().is_sound());
        if is_whole {
            assert!(nth > 2, "no table was written");
            return;
        }
    }
}
