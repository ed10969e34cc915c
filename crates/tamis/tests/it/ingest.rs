//! Tables built outside of the store: refusals, installed tables, and writers during an ingest.
//!
//! `crash.rs` and `fault.rs` test that an ingest is atomic under every failure. `model.rs` tests that it is newer than all earlier writes
//! and older than all later ones, with snapshots, compactions and reopens.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use tamis::{
    Access, Compression, Db, Error, IngestOptions, IngestReport, KeyspaceOptions, Layout, OpenMode, Runtime,
    TableFilter, TableWriter, VALUE_LENGTH_MAX,
};
use tamis_vfs::{FaultVfs, MemVfs, Operation, OperationKind, Rule, Vfs};

use crate::support::{CHANGING, FOLDER, inline_options, open_in_memory, open_on, small_keyspace};

fn build(vfs: &MemVfs, path: &str, numbers: std::ops::Range<u32>, text: &str) {
    let mut table = TableWriter::create_on(Arc::new(vfs.clone()), path, &KeyspaceOptions::default()).unwrap();
    for number in numbers {
        table.put(number.to_be_bytes(), format!("{text} {number}")).unwrap();
    }
    table.finish().unwrap();
}

/// A refused ingest leaves no file in the folder of the store.
fn table_count(vfs: &MemVfs) -> usize {
    let entries = vfs.list(Path::new(FOLDER)).unwrap();
    entries.iter().filter(|entry| entry.name.ends_with(".table")).count()
}

/// There is no listener.
#[test]
fn filters_that_cannot_be_built_are_reported_with_the_table() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    for (filters, count) in [(["blocked-bloom@10", "surf@2"], 1), (["blocked-bloom@10", "surf@20"], 0)] {
        let filters = tamis::Filters::per_level([filters.map(|filter| filter.parse().unwrap()).to_vec()]);
        let path = format!("/{count}.table");
        let options = small_keyspace().filters(filters);
        let mut table = TableWriter::create_on(Arc::clone(&vfs), &path, &options).unwrap();
        for number in 0..1000_u32 {
            table.put(number.to_be_bytes(), "value").unwrap();
        }
        let refused = table.finish().unwrap().failed_filters;
        assert_eq!(refused.len(), count, "{refused:?}");
        assert!(refused.iter().all(|reason| reason.contains("surf@2")), "{refused:?}");
    }
}

#[test]
fn ingested_tables_return_equal_entries_in_every_access_mode_and_compression() {
    for access in [Access::Mapped, Access::Buffered, Access::Direct] {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd(3)] {
            let vfs = MemVfs::new();
            let db = open_in_memory(&vfs, inline_options().table_access(access)).unwrap();
            for number in 0..500_u32 {
                db.put(number.to_be_bytes(), "old").unwrap();
            }
            let snapshot = db.snapshot();
            let options = small_keyspace().compression(vec![compression]);
            let mut table = TableWriter::create_on(Arc::new(vfs.clone()), "/t", &options).unwrap();
            for number in (0..1_000_u32).step_by(2) {
                match number % 10 {
                    0 => table.delete(number.to_be_bytes()).unwrap(),
                    _ => table.put(number.to_be_bytes(), "new").unwrap(),
                }
            }
            let file = table.finish().unwrap();
            assert_eq!((file.entry_count, file.tombstone_count), (500, 100));
            let report = db.ingest(&db.default_keyspace(), ["/t"]).unwrap();
            assert_eq!((report.table_count, report.entry_count, report.sequence), (1, 500, 501));
            assert!(!vfs.exists(Path::new("/t")).unwrap(), "it was moved");
            let check = |db: &Db| {
                for number in 0..1_000_u32 {
                    let expected: Option<&[u8]> = match number {
                        _ if number % 10 == 0 => None,
                        _ if number % 2 == 0 => Some(b"new"),
                        0..500 => Some(b"old"),
                        _ => None,
                    };
                    assert_eq!(db.get(number.to_be_bytes()).unwrap().as_deref(), expected, "{number}");
                }
                assert_eq!(db.range(..).count(), 400 + 250);
                assert_eq!(db.range(..).rev().count(), 400 + 250);
                assert!(db.verify().unwrap().is_sound());
            };
            check(&db);
            let keyspace = db.default_keyspace();
            assert_eq!(snapshot.range(&keyspace, ..).count(), 500);
            assert_eq!(snapshot.range(&keyspace, ..).rev().count(), 500);
            assert_eq!(snapshot.get(&keyspace, 2_u32.to_be_bytes()).unwrap().as_deref(), Some(&b"old"[..]));
            db.rebuild_filters(&keyspace, &[TableFilter::bits(12.0)]).unwrap();
            check(&db);
            drop((snapshot, keyspace));
            db.close().unwrap();
            let db = open_in_memory(&vfs, inline_options().table_access(access)).unwrap();
            check(&db);
            db.compact_range(&db.default_keyspace(), ..).unwrap();
            check(&db);
        }
    }
}

#[test]
fn ingest_refuses_files_that_are_no_tables_and_leaves_no_file() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    let keyspace = db.default_keyspace();
    let count = table_count(&vfs);
    build(&vfs, "/low", 0..50, "low");
    build(&vfs, "/high", 49..90, "high");
    let overlap = db.ingest(&keyspace, ["/low", "/high"]).unwrap_err();
    assert!(overlap.to_string().contains("one after the other"), "{overlap}");
    let own = vfs.list(Path::new(FOLDER)).unwrap().into_iter().find(|entry| entry.name.ends_with(".table"));
    let own = Path::new(FOLDER).join(own.unwrap().name);
    assert!(matches!(db.ingest(&keyspace, [&own]), Err(Error::Corruption(found)) if found.file == own));
    vfs.create(Path::new("/text")).unwrap().append(b"no table").unwrap();
    assert!(
        matches!(db.ingest(&keyspace, ["/text"]), Err(Error::Corruption(found)) if found.file == Path::new("/text"))
    );
    assert!(
        matches!(db.ingest(&keyspace, ["/missing"]), Err(Error::Io { path, .. }) if path == Path::new("/missing"))
    );
    assert_eq!(db.ingest(&keyspace, [] as [&str; 0]).unwrap().table_count, 0);
    assert_eq!((table_count(&vfs), db.range(..).count()), (count, 1));

    let other = MemVfs::new();
    let other = open_in_memory(&other, inline_options()).unwrap();
    assert!(matches!(db.ingest(&other.default_keyspace(), ["/low"]), Err(Error::InvalidArgument { .. })));
    db.close().unwrap();
    let db = open_in_memory(&vfs, inline_options().mode(OpenMode::Reader)).unwrap();
    assert!(matches!(db.ingest(&db.default_keyspace(), ["/low"]), Err(Error::ReadOnly { .. })));
}

#[test]
fn a_damaged_table_is_refused_wherever_the_damage_is() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    build(&vfs, "/whole", 0..100, "value");
    let whole = vfs.read(Path::new("/whole")).unwrap();
    let mut refused = 0;
    for place in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x10;
        let path = format!("/{place}");
        vfs.create(Path::new(&path)).unwrap().append(&bytes).unwrap();
        match db.ingest(&db.default_keyspace(), [&path]) {
            Err(Error::Corruption(found)) => assert_eq!(found.file, Path::new(&path)),
            Err(Error::UnknownFormat { file, .. }) => assert_eq!(file, Path::new(&path)),
            Err(other) => panic!("{place}: {other}"),
            // Between the sections.
            Ok(_) => {
                assert_eq!(whole[place], 0);
                continue;
            }
        }
        refused += 1;
        vfs.remove(Path::new(&path)).unwrap();
    }
    assert!(refused * 7 > whole.len() / 2, "{refused}");
    for length in [0, 63, 64, whole.len() / 2, whole.len() - 1] {
        let path = format!("/cut {length}");
        vfs.create(Path::new(&path)).unwrap().append(&whole[..length]).unwrap();
        assert!(matches!(db.ingest(&db.default_keyspace(), [&path]), Err(Error::Corruption(_))), "{length}");
    }
}

#[test]
fn the_blocks_of_a_trusted_table_are_verified_by_reads() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let trusted = |db: &Db, path| {
        db.ingest_with(&db.default_keyspace(), [path], IngestOptions::default().trusted(true))
    };
    build(&vfs, "/whole", 0..100, "value");
    let mut bytes = vfs.read(Path::new("/whole")).unwrap();
    trusted(&db, "/whole").unwrap();
    assert_eq!(db.iter().count(), 100);
    let value = bytes.windows(5).position(|found| found == b"value").unwrap();
    bytes[value] ^= 1;
    vfs.create(Path::new("/damaged")).unwrap().append(&bytes).unwrap();
    trusted(&db, "/damaged").unwrap();
    assert!(matches!(db.iter().try_for_each(|entry| entry.map(drop)), Err(Error::Corruption(_))));
    vfs.create(Path::new("/cut")).unwrap().append(&bytes[..bytes.len() - 1]).unwrap();
    assert!(matches!(trusted(&db, "/cut"), Err(Error::Corruption(_))));
}

#[test]
fn a_table_writer_refuses_what_a_store_could_not_take() {
    let vfs = MemVfs::new();
    let shared: Arc<dyn Vfs> = Arc::new(vfs.clone());
    let begin = || TableWriter::create_on(Arc::clone(&shared), "/t", &KeyspaceOptions::default());
    let mut table = begin().unwrap();
    table.put("b", "1").unwrap();
    for key in ["b", "a"] {
        let error = table.put(key, "2").unwrap_err().to_string();
        assert!(error.contains("ascending order"), "{error}");
    }
    assert!(matches!(table.put("", "2"), Err(Error::KeyEmpty)));
    assert!(matches!(table.put([b'z'; 65_536], "2"), Err(Error::KeyTooLong { .. })));
    assert!(matches!(table.put("z", vec![0; VALUE_LENGTH_MAX + 1]), Err(Error::ValueTooLong { .. })));
    drop(table);
    assert_eq!(vfs.list(Path::new("/")).unwrap().len(), 0, "a writer that is dropped leaves nothing");
    assert!(matches!(begin().unwrap().finish(), Err(Error::InvalidArgument { .. })));
    let mut table = begin().unwrap();
    table.put("a", "1").unwrap();
    table.finish().unwrap();
    assert!(matches!(begin(), Err(Error::Io { .. })), "an existing file stays");
    let options = KeyspaceOptions::default().block_bytes(5_000);
    assert!(matches!(TableWriter::create_on(shared, "/u", &options), Err(Error::InvalidArgument { .. })));
}

/// A deleted range of an ingested table deletes the keys of the store, not those of the table.
#[test]
fn an_ingest_deletes_ranges_and_keeps_the_keys_of_its_tables() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let keyspace = db.default_keyspace();
    for number in 0..100_u32 {
        db.put(format!("{number:02}"), "old").unwrap();
    }
    let before = db.snapshot();
    let mut table = keyspace.table_writer("/replacement.table").unwrap();
    table.delete_prefix("2").unwrap();
    table.delete_range("15".."23").unwrap();
    table.put("17", "new").unwrap();
    table.put("25", "new").unwrap();
    let refused = table.delete_range("14".."16").unwrap_err().to_string();
    assert!(refused.contains("below the table's first key"), "{refused}");
    table.delete_range("40"..="41").unwrap();
    let file = table.finish().unwrap();
    assert_eq!((file.entry_count, file.tombstone_count, file.range_tombstone_count), (3, 1, 2));
    db.ingest(&keyspace, [&file.path]).unwrap();
    let check = |db: &Db| {
        let found: Vec<_> = db.range("1".."5").map(|entry| entry.unwrap().0.to_vec()).collect();
        let found: Vec<_> = found.iter().map(|key| std::str::from_utf8(key).unwrap()).collect();
        let expected: Vec<String> = (10..50)
            .filter(|number| !(15..30).contains(number) && !(40..42).contains(number))
            .chain([17, 25])
            .map(|number| format!("{number:02}"))
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect();
        assert_eq!(found, expected);
        let backward: Vec<_> = db.range("1".."5").rev().map(|entry| entry.unwrap().0.to_vec()).collect();
        assert!(backward.iter().rev().map(Vec::as_slice).eq(expected.iter().map(String::as_bytes)));
        assert_eq!(db.get("17").unwrap().as_deref(), Some(b"new".as_slice()));
        assert_eq!(db.get("18").unwrap(), None);
    };
    check(&db);
    assert_eq!(before.range(&keyspace, "1".."5").count(), 40);
    drop(before);
    db.compact_range(&keyspace, ..).unwrap();
    check(&db);
    // A table that contains only deletes.
    let mut table = keyspace.table_writer("/deletes.table").unwrap();
    table.delete_range(..).unwrap();
    db.ingest(&keyspace, [table.finish().unwrap().path]).unwrap();
    assert_eq!(db.range(..).count(), 0);
    assert!(db.verify().unwrap().is_sound());
}

/// The temporary file of a killed process made every later writer of the same table fail with "file exists".
#[test]
fn a_table_writer_replaces_the_temporary_file_of_a_killed_process() {
    let vfs = MemVfs::new();
    let shared: Arc<dyn Vfs> = Arc::new(vfs.clone());
    let begin = || TableWriter::create_on(Arc::clone(&shared), "/t", &KeyspaceOptions::default());
    let mut killed = begin().unwrap();
    (0..50_000_u32).for_each(|number| killed.put(number.to_be_bytes(), vec![7; 100]).unwrap());
    let refused = begin().unwrap_err().to_string();
    assert!(refused.contains("another writer"), "{refused}");
    std::mem::forget(killed);
    vfs.release_locks();
    let left = vfs.list(Path::new("/")).unwrap();
    assert!(left.len() == 1 && left[0].length > 1 << 20, "{left:?}");
    let mut table = begin().unwrap();
    table.put("key", "value").unwrap();
    table.finish().unwrap();
    let names: Vec<_> = vfs.list(Path::new("/")).unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(names, ["t"]);
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    db.ingest(&db.default_keyspace(), ["/t"]).unwrap();
    assert_eq!(db.range(..).count(), 1);
}

#[test]
fn without_hard_links_the_files_are_copied() {
    let memory = MemVfs::new();
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    faults.add_rule(Rule::error(ErrorKind::CrossesDevices).on(&[OperationKind::HardLink]).times(u64::MAX));
    let db = open_on(Arc::new(faults), inline_options()).unwrap();
    build(&memory, "/t", 0..1_000, "copied");
    db.ingest(&db.default_keyspace(), ["/t"]).unwrap();
    assert!(!memory.exists(Path::new("/t")).unwrap());
    assert_eq!(db.range(..).count(), 1_000);
    let report = db.checkpoint("/copy").unwrap();
    assert_eq!(report.linked_file_count, 0);
    assert_eq!(open_copy(&memory, "/copy").range(..).count(), 1_000);
}

fn open_copy(memory: &MemVfs, folder: &str) -> Db {
    Db::open_on(Arc::new(memory.clone()), folder, inline_options(), Runtime::deterministic(7)).unwrap()
}

/// Writers that never pause do not starve an ingest, and their later writes are newer than it.
#[test]
fn an_ingest_is_not_starved_by_writers() {
    let vfs = MemVfs::new();
    let options = inline_options().workers(2);
    let db = Db::open_on(Arc::new(vfs.clone()), FOLDER, options, Runtime::system()).unwrap();
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3_u32 {
            let (keyspace, is_done) = (&keyspace, &is_done);
            scope.spawn(move || {
                let mut number = 0_u64;
                while !is_done.load(Ordering::Relaxed) {
                    keyspace.put((1_000 * thread).to_be_bytes(), number.to_be_bytes()).unwrap();
                    number += 1;
                }
            });
        }
        for round in 0..10_u32 {
            let path = format!("/{round}");
            build(&vfs, &path, 0..3_000, &format!("round {round}"));
            db.ingest(&keyspace, [&path]).unwrap();
            let found = keyspace.get(1_500_u32.to_be_bytes()).unwrap();
            assert_eq!(found.as_deref(), Some(format!("round {round} 1500").as_bytes()));
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(keyspace.range(..).count(), 3_000);
    assert!(db.verify().unwrap().is_sound());
}

/// The tables of the store.
fn tables_of(vfs: &MemVfs) -> Vec<PathBuf> {
    let names = vfs.list(Path::new(FOLDER)).unwrap().into_iter().map(|entry| entry.name);
    names.filter(|name| name.ends_with(".table")).map(|name| Path::new(FOLDER).join(name)).collect()
}

fn ingest_with(db: &Db, path: &str, keep: bool) -> tamis::Result<IngestReport> {
    db.ingest_with(&db.default_keyspace(), [path], IngestOptions::default().keep(keep))
}

/// The store kept a hard link: a program that wrote to the ingested file changed the answers of the store, without an error.
#[test]
fn no_name_outside_of_the_store_leads_to_an_ingested_file() {
    for (keep, other_name) in [(false, false), (false, true), (true, false)] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut table = TableWriter::create(path("new"), &KeyspaceOptions::default()).unwrap();
        (0..100_u32).for_each(|number| table.put(number.to_be_bytes(), "value").unwrap());
        table.finish().unwrap();
        let whole = std::fs::read(path("new")).unwrap();
        if other_name {
            std::fs::hard_link(path("new"), path("other")).unwrap();
        }
        let check = |db: &Db| {
            let values = db.range(..).map(|entry| entry.unwrap().1.to_vec());
            assert!(values.eq(std::iter::repeat_n(b"value".to_vec(), 100)));
            assert!(db.verify().unwrap().is_sound());
        };
        let db = Db::open(path("store")).unwrap();
        let report = ingest_with(&db, path("new").to_str().unwrap(), keep).unwrap();
        assert_eq!(report.kept, Vec::<PathBuf>::new());
        check(&db);
        let left = [path("new").exists(), path("other").exists()];
        assert_eq!(left, [keep, other_name], "keep {keep}, other name {other_name}");
        for name in ["new", "other"].into_iter().filter(|name| path(name).exists()) {
            assert_eq!(std::fs::read(path(name)).unwrap(), whole);
            std::fs::write(path(name), vec![7; whole.len()]).unwrap();
        }
        check(&db);
        db.close().unwrap();
        check(&Db::open(path("store")).unwrap());
    }
}

#[cfg(unix)]
#[test]
fn a_table_behind_a_symbolic_link_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut table = TableWriter::create(path("real"), &KeyspaceOptions::default()).unwrap();
    table.put("key", "value").unwrap();
    table.finish().unwrap();
    std::os::unix::fs::symlink(path("real"), path("link")).unwrap();
    let db = Db::open(path("store")).unwrap();
    ingest_with(&db, path("link").to_str().unwrap(), false).unwrap();
    assert!(!path("link").exists() && path("real").exists());
    std::fs::write(path("real"), "changed").unwrap();
    assert_eq!(db.get("key").unwrap().as_deref(), Some(b"value".as_slice()));
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn a_source_that_cannot_be_removed_is_reported_and_the_store_has_a_copy() {
    let memory = MemVfs::new();
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    faults.add_rule(
        Rule::error(ErrorKind::PermissionDenied).on(&[OperationKind::Remove]).path("/t").times(u64::MAX),
    );
    let db = open_on(Arc::new(faults), inline_options()).unwrap();
    build(&memory, "/t", 0..100, "value");
    assert_eq!(ingest_with(&db, "/t", false).unwrap().kept, [Path::new("/t")]);
    assert!(memory.is_only_name(Path::new("/t")).unwrap());
    assert_eq!(db.range(..).count(), 100);
    drop(db);
    let db = open_in_memory(&memory, inline_options()).unwrap();
    assert_eq!(db.range(..).count(), 100);
    assert!(db.verify().unwrap().is_sound());
}

/// A store, and a table of 100 entries that another name leads to, if `is_shared`.
fn store_and_table(is_shared: bool) -> (MemVfs, Vec<u8>) {
    let memory = MemVfs::new();
    open_in_memory(&memory, inline_options()).unwrap().close().unwrap();
    memory.create_dir_all(Path::new("/in")).unwrap();
    build(&memory, "/in/t", 0..100, "value");
    if is_shared {
        memory.hard_link(Path::new("/in/t"), Path::new("/in/other")).unwrap();
        memory.sync_dir(Path::new("/in")).unwrap();
    }
    let whole = memory.read(Path::new("/in/t")).unwrap();
    (memory, whole)
}

const WAYS: [(bool, bool); 3] = [(false, false), (false, true), (true, false)];

#[test]
fn a_crash_at_any_operation_of_an_ingest_leaves_the_file_or_the_store_with_all_entries() {
    for (keep, is_shared) in WAYS {
        let (memory, whole) = store_and_table(is_shared);
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let db = open_on(Arc::new(faults.clone()), inline_options());
        let db = db.unwrap();
        let (watched, counts) = (memory.clone(), Arc::new(Mutex::new([0; 3])));
        let seen = Arc::clone(&counts);
        let crash = move |operation: &Operation| {
            for seed in 0..8 {
                let crashed = watched.crash_clone(seed);
                let has_file = crashed.read(Path::new("/in/t")).is_ok_and(|bytes| bytes == whole);
                let db = open_in_memory(&crashed, inline_options()).unwrap();
                let count = db.range(..).count();
                let context = format!("keep {keep}, shared {is_shared}, seed {seed}, before {operation:?}");
                assert!(count == 0 || count == 100, "{count} entries: {context}");
                assert!(has_file || count == 100 && !keep, "all is lost: {context}");
                assert!(db.verify().unwrap().is_sound(), "{context}");
                seen.lock()[usize::from(has_file) + usize::from(has_file && count == 0)] += 1;
            }
        };
        faults.add_rule(Rule::slow(crash).on(&CHANGING).times(u64::MAX));
        ingest_with(&db, "/in/t", keep).unwrap();
        db.close().unwrap();
        let [only_store, both, only_file] = *counts.lock();
        assert!(both > 0 && only_file > 0 && (only_store > 0) != keep, "{only_store} {both} {only_file}");
        assert_eq!(memory.exists(Path::new("/in/t")).unwrap(), keep);
    }
}

#[test]
fn an_error_at_any_operation_of_an_ingest_leaves_the_file_whole() {
    for (keep, is_shared) in WAYS {
        for is_done in [false, true] {
            let mut nth = 0;
            loop {
                nth += 1;
                let (memory, whole) = store_and_table(is_shared);
                let faults = FaultVfs::new(Arc::new(memory.clone()));
                let vfs = Arc::new(faults.clone());
                let db = open_on(vfs, inline_options()).unwrap();
                let error = if is_done { Rule::error_after } else { Rule::error };
                let rule = faults.add_rule(error(ErrorKind::Other).nth(nth));
                let ingested = ingest_with(&db, "/in/t", keep);
                let is_hit = faults.hit_count(rule) > 0;
                faults.clear_rules();
                let context = format!("keep {keep}, shared {is_shared}, done {is_done}, operation {nth}");
                let has_file = memory.read(Path::new("/in/t")).is_ok_and(|bytes| bytes == whole);
                match &ingested {
                    Ok(report) => {
                        assert!(has_file == keep || report.kept == [Path::new("/in/t")], "{context}");
                        assert_eq!(db.range(..).count(), 100, "{context}");
                        let shared = |path: &PathBuf| !memory.is_only_name(path).unwrap();
                        assert!(!tables_of(&memory).iter().any(shared), "{context}");
                    }
                    Err(error) => assert!(has_file, "{context}: {error}"),
                }
                drop(db);
                let db = open_in_memory(&memory, inline_options()).unwrap();
                let count = db.range(..).count();
                assert!(count == 100 || count == 0 && ingested.is_err(), "{context}: {count}");
                assert!(db.verify().unwrap().is_sound(), "{context}");
                if !is_hit {
                    assert!(ingested.is_ok() && nth > 10, "{context}");
                    break;
                }
            }
        }
    }
}

/// Ingests and compactions of one keyspace flushed the memtables of all keyspaces.
#[test]
fn ingests_and_compactions_flush_only_their_own_keyspace() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options().log_bytes_max(64 << 20)).unwrap();
    for number in 0..100 {
        let keyspace = db.create_keyspace(&format!("k{number}"), small_keyspace()).unwrap();
        keyspace.put("key", "value").unwrap();
    }
    let keyspace = db.keyspace("k7").unwrap();
    for round in 0..20_u32 {
        keyspace.put(round.to_be_bytes(), "value").unwrap();
        build(&vfs, "/t", 1_000 * round + 1_000..1_000 * round + 1_100, "value");
        db.ingest(&keyspace, ["/t"]).unwrap();
        keyspace.put(round.to_be_bytes(), "later").unwrap();
        db.compact_range(&keyspace, ..).unwrap();
    }
    assert_eq!(db.statistics().flushes, 40, "two in each round");
    // A segment for each flush, which the memtables of the other keyspaces need, would be 40 files.
    let entries = vfs.list(Path::new(FOLDER)).unwrap();
    assert!(entries.iter().filter(|entry| entry.name.ends_with(".log")).count() <= 3, "{entries:?}");
    let check = |db: &Db| {
        for number in 0..100 {
            let keyspace = db.keyspace(&format!("k{number}")).unwrap();
            let expected = if number == 7 { 1 + 20 + 2_000 } else { 1 };
            assert_eq!(keyspace.range(..).count(), expected, "k{number}");
        }
        assert!(db.verify().unwrap().is_sound());
    };
    check(&db);
    drop((keyspace, db));
    check(&open_in_memory(&vfs, inline_options()).unwrap());
}

/// Trivial moves never joined them: they stayed a thousand files.
#[test]
fn many_small_disjoint_tables_are_joined() {
    let tiered = Layout::Tiered { runs_per_level: 4, space_amplification_percent: 200 };
    for (layout, count, steps) in [(Layout::Leveled, 1_000_u32, [1, 389]), (tiered, 300, [1, 77])] {
        for step in steps {
            let vfs = MemVfs::new();
            let default_keyspace = KeyspaceOptions::default().layout(layout);
            let db = open_in_memory(&vfs, inline_options().default_keyspace(default_keyspace)).unwrap();
            let mut bytes = 0;
            for number in 0..count {
                let number = number * step % count;
                build(&vfs, "/t", 20 * number..20 * number + 20, &"value".repeat(20));
                bytes += db.ingest(&db.default_keyspace(), ["/t"]).unwrap().bytes;
            }
            db.wait_for_compactions().unwrap();
            let left = tables_of(&vfs).len();
            assert!(left <= 60, "{left} tables, {layout:?}, {step}");
            // In any order, later tables come between the keys of joined ones, and are merged with them.
            let written = db.statistics().compaction_bytes_written;
            let factor = if step == 1 { 6 } else { 20 };
            assert!(written <= factor * bytes, "{written} bytes written for {bytes}, {layout:?}, {step}");
            assert_eq!(db.range(..).count(), 20 * count as usize);
            assert!(db.verify().unwrap().is_sound());
        }
    }
}

/// Tables whose files fit into one, but not their bytes before compression: they were joined and divided again, again and again.
#[test]
fn joined_tables_are_not_divided_again() {
    let vfs = MemVfs::new();
    let compression = vec![Compression::Zstd(1)];
    let default_keyspace =
        KeyspaceOptions::default().table_bytes(64 << 10).compression(compression).level0_runs(2);
    let db = open_in_memory(&vfs, inline_options().default_keyspace(default_keyspace)).unwrap();
    for number in 0..160_u32 {
        db.put(number.to_be_bytes(), "value".repeat(2_000)).unwrap();
        if number % 4 == 3 {
            db.flush().unwrap();
        }
    }
    db.wait_for_compactions().unwrap();
    assert!(tables_of(&vfs).len() < 20, "{} tables", tables_of(&vfs).len());
    assert!(db.statistics().compactions < 80, "{} compactions", db.statistics().compactions);
    assert_eq!(db.range(..).count(), 160);
}

/// It would be removed from its keyspace.
#[test]
fn a_table_of_the_own_folder_is_refused() {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let other = db.create_keyspace("other", KeyspaceOptions::default()).unwrap();
    build(&vfs, "/t", 0..1, "value");
    db.ingest(&other, ["/t"]).unwrap();
    let ingested = tables_of(&vfs).pop().unwrap();
    for keep in [false, true] {
        let refused =
            db.ingest_with(&db.default_keyspace(), [&ingested], IngestOptions::default().keep(keep));
        assert!(matches!(&refused, Err(Error::InvalidArgument { .. })), "{refused:?}");
    }
    assert_eq!(other.range(..).count(), 1);
    assert!(db.verify().unwrap().is_sound());
}
