//! Mistakes of programs: each gets a typed error that says what to do, and nothing is lost or changed.

use std::{
    fs, io::ErrorKind, ops::Bound, os::unix::fs::PermissionsExt, path::Path, process::Command, sync::Arc,
};

use tamis::{
    Compression, Db, Durability, Error, Filters, KEY_LENGTH_MAX, KeyspaceOptions, OpenMode, Options,
    TableFilter, VALUE_LENGTH_MAX, WriteBatch,
};
use tamis_vfs::{Access, FaultVfs, MemVfs, OperationKind, OsVfs, Rule, Vfs};

use crate::support::{FOLDER, inline_options, open_in_memory, open_on, small_keyspace};

/// The text of the error contains the value that was given and the advice.
#[track_caller]
fn says<T>(result: tamis::Result<T>, phrase: &str) -> Error {
    let Err(error) = result else { panic!("no error that says {phrase:?}") };
    let text = error.to_string();
    assert!(text.contains(phrase), "{text:?} does not say {phrase:?}");
    error
}

fn memory() -> (MemVfs, Db) {
    let vfs = MemVfs::new();
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    (vfs, db)
}

#[test]
fn keys_and_values_outside_their_bounds_are_refused_everywhere_and_leave_all_as_it_was() {
    let (_, db) = memory();
    let keyspace = db.default_keyspace();
    let long = vec![b'k'; KEY_LENGTH_MAX + 1];
    for result in [
        db.put("", "value"),
        db.delete(""),
        db.get("").map(drop),
        db.multi_get(["fine", ""]).map(drop),
        keyspace.contains("").map(drop),
        db.snapshot().get(&keyspace, "").map(drop),
        WriteBatch::new().put(&keyspace, "", "value"),
    ] {
        assert!(matches!(says(result, "use 1 to 65,535 bytes"), Error::KeyEmpty));
    }
    for result in [
        db.put(&long, "value"),
        db.delete(&long),
        db.get(&long).map(drop),
        WriteBatch::new().delete(&keyspace, &long),
    ] {
        let error = says(result, "use 1 to 65,535 bytes");
        assert!(matches!(error, Error::KeyTooLong { length: 65_536 }));
    }
    // Zeroed and never touched: no memory is used.
    let huge = vec![0; VALUE_LENGTH_MAX + 1];
    let mut batch = WriteBatch::new();
    batch.put(&keyspace, "before", "1").unwrap();
    let size = batch.size_bytes();
    for result in [db.put("key", &huge), batch.put(&keyspace, "key", &huge)] {
        assert!(matches!(says(result, "268,435,456 bytes (256 MiB)"), Error::ValueTooLong { .. }));
    }
    assert_eq!((batch.len(), batch.size_bytes()), (1, size), "a refusal leaves the batch as it was");
    db.write(batch).unwrap();
    assert_eq!(db.range(..).count(), 1);

    let longest = vec![b'k'; KEY_LENGTH_MAX];
    db.put(&longest, [7; 100_000]).unwrap();
    db.put([0], "").unwrap();
    db.flush().unwrap();
    assert_eq!(db.get(&longest).unwrap().unwrap(), &[7; 100_000]);
    assert_eq!(db.get([0]).unwrap().unwrap(), &[]);
}

#[test]
fn bounds_that_hold_no_key_give_empty_scans() {
    let (_, db) = memory();
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    // In tables of two levels and in the memtable.
    for round in 0..3_u32 {
        for index in 0..400_u32 {
            keyspace.put((10 * index + round).to_be_bytes(), [0; 200]).unwrap();
        }
        match round {
            0 => db.compact_range(&keyspace, ..).unwrap(),
            1 => db.flush().unwrap(),
            _ => {}
        }
    }
    let at = |index: u32| index.to_be_bytes().to_vec();
    let snapshot = db.snapshot();
    for (low, high) in [(0, 0), (0, 1), (1_000, 1_000), (1_000, 3_000), (5, 8), (3_990, 9_999)] {
        let (low, high) = (at(low), at(high));
        let mut empty = vec![
            (Bound::Included(high.clone()), Bound::Excluded(low.clone())),
            (Bound::Excluded(high.clone()), Bound::Included(low.clone())),
            (Bound::Excluded(low.clone()), Bound::Excluded(low.clone())),
            (Bound::Included(low.clone()), Bound::Excluded(low.clone())),
            (Bound::Excluded(low.clone()), Bound::Included(low.clone())),
            (Bound::Unbounded, Bound::Excluded(Vec::new())),
        ];
        if low != high {
            empty.push((Bound::Included(high), Bound::Included(low.clone())));
        }
        for bounds in empty {
            assert_eq!(keyspace.range(bounds.clone()).count(), 0, "{bounds:?}");
            assert_eq!(keyspace.range(bounds.clone()).rev().count(), 0, "{bounds:?}");
            assert_eq!(snapshot.range(&keyspace, bounds.clone()).count(), 0, "{bounds:?}");
            let mut scan = keyspace.range(bounds.clone());
            scan.seek(&low).unwrap();
            assert!(!scan.move_next().unwrap() && !scan.move_prev().unwrap(), "{bounds:?}");
            scan.seek_for_prev(&low).unwrap();
            assert!(!scan.move_prev().unwrap() && !scan.move_next().unwrap(), "{bounds:?}");
            assert_eq!((scan.key(), scan.value()), (&[][..], &[][..]));
            db.compact_range(&keyspace, bounds).unwrap();
        }
    }
    // The empty key and keys longer than any are bounds like others.
    assert_eq!(keyspace.range(Vec::new()..).count(), 1_200);
    assert_eq!(keyspace.range(..=vec![0xFF; 100_000]).count(), 1_200);
    assert_eq!(keyspace.range(vec![0xFF; 100_000]..).count(), 0);
    assert_eq!(keyspace.prefix("").count(), 1_200);
    assert_eq!(keyspace.prefix([0xFF, 0xFF]).count(), 0);
    let mut scan = keyspace.range(..);
    scan.seek("").unwrap();
    assert!(scan.move_next().unwrap());
    assert_eq!(scan.key(), at(0));
}

#[test]
fn names_of_keyspaces_are_checked() {
    let (_, db) = memory();
    let create = |name: &str| db.create_keyspace(name, KeyspaceOptions::default());
    for name in ["", "x".repeat(256).as_str(), "\u{e9}".repeat(128).as_str()] {
        assert!(matches!(says(create(name), "use 1 to 255 bytes"), Error::InvalidArgument { .. }));
    }
    for name in ["x".repeat(255).as_str(), "a/b", ".", "\u{1F40D} \0\n", " "] {
        create(name).unwrap().put("key", name).unwrap();
        assert_eq!(db.keyspace(name).unwrap().get("key").unwrap().unwrap(), name);
        assert!(matches!(says(create(name), "choose another name"), Error::KeyspaceExists { .. }));
    }
    assert!(matches!(says(create("default"), "exists already"), Error::KeyspaceExists { .. }));
    assert!(matches!(says(db.keyspace("none"), "create it first"), Error::KeyspaceNotFound { .. }));
    assert!(matches!(says(db.drop_keyspace("none"), "\"none\""), Error::KeyspaceNotFound { .. }));
    says(db.drop_keyspace("default"), "can't be dropped");
    assert_eq!(db.keyspace_names().len(), 6);
}

/// The name of an option, and a function that sets it to an invalid value.
type Change<T> = (&'static str, fn(&mut T));

#[test]
fn an_option_out_of_range_is_refused_with_its_name_and_range() {
    let vfs = MemVfs::new();
    let refused: [Change<Options>; 2] = [
        ("workers", |options| options.workers = 65),
        ("log_bytes_max", |options| options.log_bytes_max = (1 << 20) - 1),
    ];
    for (name, change) in refused {
        let mut options = inline_options();
        change(&mut options);
        let error = says(open_in_memory(&vfs, options), "use");
        assert!(matches!(error, Error::InvalidArgument { what, .. } if what == name), "{error}");
        assert!(!vfs.exists(Path::new(FOLDER)).unwrap(), "a refused open leaves nothing");
    }
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let refused: [Change<KeyspaceOptions>; 18] = [
        ("memtable_bytes", |options| options.memtable_bytes = (64 << 10) - 1),
        ("memtable_bytes", |options| options.memtable_bytes = (4 << 30) + 1),
        ("block_bytes", |options| options.block_bytes = 2_048),
        ("block_bytes", |options| options.block_bytes = 131_072),
        ("block_bytes", |options| options.block_bytes = 5_000),
        ("block_bytes", |options| options.block_bytes = 0),
        ("table_bytes", |options| options.table_bytes = 1),
        ("table_bytes", |options| options.table_bytes = u64::MAX),
        ("compression", |options| options.compression = vec![Compression::Zstd(0)]),
        ("compression", |options| options.compression = vec![Compression::None, Compression::Zstd(20)]),
        ("filters", |options| options.filters = Filters::bits(-1.0)),
        ("filters", |options| options.filters = Filters::bits(65.0)),
        ("filters", |options| options.filters = Filters::bits(f32::NAN)),
        ("filters", |options| options.filters = Filters::bits(f32::INFINITY)),
        ("size_ratio", |options| *options = options.clone().size_ratio(1)),
        ("size_ratio", |options| *options = options.clone().size_ratio(21)),
        ("level0_runs", |options| *options = options.clone().level0_runs(0)),
        ("level0_runs", |options| *options = options.clone().level0_runs(65)),
    ];
    for (name, change) in refused {
        let mut options = KeyspaceOptions::default();
        change(&mut options);
        let error = says(db.create_keyspace("k", options), "use");
        assert!(matches!(error, Error::InvalidArgument { what, .. } if what == name), "{error}");
    }
    assert_eq!(db.keyspace_names(), ["default"]);
}

#[test]
fn an_open_changes_no_file_of_a_foreign_folder() {
    let folder = tempfile::tempdir().unwrap();
    let photos = folder.path().join("photos");
    fs::create_dir(&photos).unwrap();
    fs::write(photos.join("cat.jpg"), "cat").unwrap();
    let error =
        says(Db::open(&photos), "name the folder of a store, or an empty or new folder to create one");
    assert!(matches!(error, Error::NotADatabase { .. }));
    assert!(error.to_string().contains("cat.jpg"), "{error}");
    assert_eq!(fs::read_dir(&photos).unwrap().count(), 1, "nothing was added");
    // A file where the folder should be.
    let error = says(Db::open(photos.join("cat.jpg")), "it is a file");
    assert!(matches!(error, Error::NotADatabase { .. }));
    assert_eq!(fs::read(photos.join("cat.jpg")).unwrap(), b"cat");

    // Foreign files in the folder are reported and stay.
    let store = folder.path().join("store");
    Db::open(&store).unwrap().put("key", "value").unwrap();
    fs::write(store.join("notes.txt"), "notes").unwrap();
    fs::create_dir(store.join("000007.table")).unwrap();
    let db = Db::open(&store).unwrap();
    assert_eq!(db.open_report().foreign_files, ["000007.table", "notes.txt"]);
    assert_eq!(db.get("key").unwrap().unwrap(), b"value");
    drop(db);
    assert!(store.join("notes.txt").exists() && store.join("000007.table").exists());
}

#[test]
fn a_database_without_the_file_that_names_its_manifest_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path()).unwrap();
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    drop(db);
    OsVfs.rename(&folder.path().join("CURRENT"), &folder.path().join("CURRENT.txt")).unwrap();
    let error = says(Db::open(folder.path()), "restore it from a copy");
    assert!(matches!(error, Error::MissingFile { .. }), "{error}");
    OsVfs.rename(&folder.path().join("CURRENT.txt"), &folder.path().join("CURRENT")).unwrap();
    assert_eq!(Db::open(folder.path()).unwrap().get("key").unwrap().unwrap(), b"value");
}

#[test]
fn a_missing_folder_is_created_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/store");
    for options in [Options::default().mode(OpenMode::Existing), Options::default().mode(OpenMode::Reader)] {
        let error = says(Db::open_with(&path, options), "it is missing");
        assert!(matches!(error, Error::NotADatabase { .. }));
        assert!(!folder.path().join("deep").exists());
    }
    assert!(Db::open(&path).unwrap().open_report().is_new);
    let options = Options::default().mode(OpenMode::Existing);
    assert!(!Db::open_with(&path, options).unwrap().open_report().is_new);
}

const CHILD_FOLDER: &str = "TAMIS_TEST_CHILD_FOLDER";

/// Not a test: the body that [`a_database_has_one_owner`] runs in another process.
#[test]
fn child_that_opens_a_folder() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else { return };
    for read_only in [false, true] {
        let opened = Db::open_with(
            Path::new(&folder),
            Options::default().mode(if read_only { OpenMode::Reader } else { OpenMode::CreateIfMissing }),
        );
        match opened {
            Ok(db) => println!("child: {:?}", db.get("key").unwrap()),
            Err(error @ Error::Locked { .. }) => println!("child: {error}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_database_has_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open(folder.path()).unwrap();
    db.put("key", "value").unwrap();
    let child = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "bad_input::child_that_opens_a_folder", "--nocapture"]);
        let output = command.env(CHILD_FOLDER, folder.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(matches!(
        says(Db::open(folder.path()), "is open for writing by this process, process "),
        Error::Locked { .. }
    ));
    assert_eq!(
        child()
            .matches(&format!(
                "the store is open for writing by process {}; close it there first",
                std::process::id()
            ))
            .count(),
        1
    );
    assert_eq!(child().matches("Some(b\"value\")").count(), 1, "a reader next to it");
    // A handle of a keyspace and a snapshot keep the database open as well; close ends it for all.
    let (keyspace, snapshot) = (db.default_keyspace(), db.snapshot());
    drop(db);
    assert!(matches!(Db::open(folder.path()), Err(Error::Locked { .. })));
    drop(keyspace);
    assert!(matches!(Db::open(folder.path()), Err(Error::Locked { .. })));
    drop(snapshot);
    assert_eq!(child().matches("Some(b\"value\")").count(), 2);
    let db = Db::open(folder.path()).unwrap();
    let _other = db.clone();
    db.close().unwrap();
    assert_eq!(Db::open(folder.path()).unwrap().get("key").unwrap().unwrap(), b"value");
}

/// Names and bytes of all files of a folder.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let entries = entries.filter(|entry| entry.file_type().unwrap().is_file());
    let mut files: Vec<_> = entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// A store with tables, a log with a torn tail, and leftover files.
fn untidy_store(folder: &Path) {
    let db = Db::open(folder).unwrap();
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    for index in 0..2_000_u32 {
        keyspace.put(index.to_be_bytes(), [1; 100]).unwrap();
    }
    db.flush().unwrap();
    keyspace.put("logged", "2").unwrap();
    db.close().unwrap();
    drop(keyspace);
    let log = contents(folder).into_iter().rfind(|(name, _)| name.ends_with(".log")).unwrap();
    fs::write(folder.join(&log.0), [log.1.as_slice(), b"torn"].concat()).unwrap();
    fs::write(folder.join("999999.table"), "an orphan").unwrap();
    fs::write(folder.join("000003.table.obsolete"), "on its way out").unwrap();
}

fn check_read_only(folder: &Path) {
    let db = Db::open_with(folder, Options::default().mode(OpenMode::Reader)).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    assert_eq!(keyspace.range(..).count(), 2_001);
    assert_eq!(keyspace.get("logged").unwrap().unwrap(), b"2");
    assert_eq!(db.snapshot().range(&keyspace, ..).rev().count(), 2_001);
    assert_eq!(db.open_report().wal_truncations.len(), 1, "a torn tail is reported, and not truncated");
    let mut batch = WriteBatch::new();
    batch.put(&keyspace, "a", "b").unwrap();
    for result in [
        db.put("a", "b"),
        keyspace.delete("a"),
        db.write(batch.clone()),
        db.write_with(batch, Durability::Deferred),
        db.persist(Durability::Synced),
        db.flush(),
        db.compact_range(&keyspace, ..),
        db.rebuild_filters(&keyspace, &[TableFilter::bits(12.0)]),
        db.create_keyspace("new", KeyspaceOptions::default()).map(drop),
        db.drop_keyspace("k"),
    ] {
        assert!(matches!(says(result, "open it for writing"), Error::ReadOnly { .. }));
    }
    assert!(db.verify().unwrap().is_sound());
    db.close().unwrap();
}

#[test]
fn a_read_only_store_writes_no_file_and_refuses_writes() {
    let folder = tempfile::tempdir().unwrap();
    untidy_store(folder.path());
    let before = contents(folder.path());
    check_read_only(folder.path());
    assert!(contents(folder.path()) == before, "a file was changed");
}

#[test]
fn a_folder_that_can_not_be_written_opens_read_only_and_says_so_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    untidy_store(folder.path());
    let set_mode = |mode, file_mode| {
        for entry in fs::read_dir(folder.path()).unwrap() {
            fs::set_permissions(entry.unwrap().path(), fs::Permissions::from_mode(file_mode)).unwrap();
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(0o555, 0o444);
    let is_root = fs::write(folder.path().join("probe"), "").is_ok();
    if is_root {
        OsVfs.remove(&folder.path().join("probe")).unwrap();
        println!("skipped: this user may write anywhere");
    } else {
        assert!(matches!(says(Db::open(folder.path()), "change its permissions"), Error::NotWritable { .. }));
        check_read_only(folder.path());
    }
    set_mode(0o755, 0o644);
    assert_eq!(Db::open(folder.path()).unwrap().keyspace("k").unwrap().range(..).count(), 2_001);

    // The same on a file system that refuses new files.
    let (memory, db) = memory();
    db.put("key", "value").unwrap();
    drop(db);
    let vfs = FaultVfs::new(Arc::new(memory));
    for kind in [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem] {
        vfs.clear_rules();
        vfs.add_rule(Rule::error(kind).on(&[OperationKind::Create]).forever());
        let open = |read_only| {
            let options =
                inline_options().mode(if read_only { OpenMode::Reader } else { OpenMode::CreateIfMissing });
            open_on(Arc::new(vfs.clone()), options)
        };
        assert!(matches!(says(open(false), "open the store as a reader"), Error::NotWritable { .. }));
        assert_eq!(open(true).unwrap().get("key").unwrap().unwrap(), b"value");
    }
}

#[test]
fn after_close_every_call_says_that_the_database_was_closed() {
    let (_, db) = memory();
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    for index in 0..1_000_u32 {
        keyspace.put(index.to_be_bytes(), [1; 200]).unwrap();
    }
    let snapshot = db.snapshot();
    let mut begun = keyspace.range(..);
    assert!(begun.move_next().unwrap());
    let other = db.clone();
    db.close().unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&keyspace, "a", "b").unwrap();
    for result in [
        other.put("a", "b"),
        keyspace.delete("a"),
        other.write(batch),
        other.persist(Durability::Buffered),
        other.get("a").map(drop),
        other.multi_get(["a"]).map(drop),
        keyspace.first().map(drop),
        keyspace.last().map(drop),
        keyspace.range(..).next().unwrap().map(drop),
        keyspace.prefix("a").move_next().map(drop),
        snapshot.get(&keyspace, "a").map(drop),
        snapshot.range(&keyspace, ..).next_back().unwrap().map(drop),
        other.flush(),
        other.compact_range(&keyspace, ..),
        other.rebuild_filters(&keyspace, &[TableFilter::bits(12.0)]),
        other.wait_for_compactions(),
        other.create_keyspace("new", KeyspaceOptions::default()).map(drop),
        other.drop_keyspace("k"),
        other.verify().map(drop),
    ] {
        assert!(matches!(says(result, "open it again"), Error::Closed));
    }
    assert_eq!(begun.count(), 999, "an open scan continues");
    assert!(other.snapshot().sequence() > 0);
    assert_eq!(other.statistics().keyspaces.len(), 2);
    other.close().unwrap();
}

/// Keyspaces of two databases have the same small ids: writes to one were applied to the other.
#[test]
fn a_keyspace_of_another_database_is_refused() {
    let ((_, here), (_, there)) = (memory(), memory());
    let (mine, theirs) = (here.default_keyspace(), there.default_keyspace());
    mine.put("key", "mine").unwrap();
    theirs.put("key", "theirs").unwrap();
    let snapshot = here.snapshot();
    let mut batch = WriteBatch::new();
    batch.put(&theirs, "key", "changed").unwrap();
    let size = batch.size_bytes();
    for result in [
        batch.put(&mine, "key", "changed"),
        batch.delete(&mine, "key"),
        here.write(batch.clone()),
        here.compact_range(&theirs, ..),
        here.rebuild_filters(&theirs, &[TableFilter::bits(12.0)]),
        snapshot.get(&theirs, "key").map(drop),
        snapshot.multi_get(&theirs, ["key"]).map(drop),
        snapshot.range(&theirs, ..).next().unwrap().map(drop),
        snapshot.prefix(&theirs, "k").next_back().unwrap().map(drop),
    ] {
        let error = says(result, "use a keyspace of the store that is called");
        assert!(matches!(error, Error::InvalidArgument { what: "keyspace", .. }));
    }
    assert_eq!((batch.len(), batch.size_bytes()), (1, size));
    assert_eq!(mine.get("key").unwrap().unwrap(), b"mine");
    there.write(batch.clone()).unwrap();
    assert_eq!(theirs.get("key").unwrap().unwrap(), b"changed");
    // After a clear the batch can be written to any database.
    batch.clear();
    batch.put(&mine, "key", "changed").unwrap();
    here.write(batch).unwrap();
    assert_eq!(mine.get("key").unwrap().unwrap(), b"changed");
}

#[test]
fn budgets_of_any_size_open() {
    for access in [Access::Buffered, Access::Mapped] {
        for cache_bytes in [0, 1, 99, 1 << 50, u64::MAX] {
            let vfs = MemVfs::new();
            let options =
                inline_options().cache_bytes(cache_bytes).table_access(access).log_bytes_max(u64::MAX);
            let db = open_in_memory(&vfs, options).unwrap();
            db.put("key", "value").unwrap();
            db.flush().unwrap();
            assert_eq!(db.get("key").unwrap().unwrap(), b"value");
        }
    }
}
