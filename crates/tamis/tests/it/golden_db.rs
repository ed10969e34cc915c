//! Whole databases with frozen bytes, which the program writes, opens and reads. `TAMIS_REWRITE=1` rewrites them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis::{Compression, Db, Filters, KeyspaceOptions, OpenMode, Options, TableFilter, Views, WriteBatch};
#[cfg(not(feature = "zstd"))]
use tamis::{Error, Runtime};
use tamis_vfs::{MemVfs, OsVfs, Vfs};

use crate::support::{FOLDER, inline_options, open_in_memory};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The contents of each keyspace.
type Models = BTreeMap<&'static str, Model>;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

struct Program {
    db: Db,
    models: Models,
}

impl Program {
    fn put(&mut self, batch: &mut WriteBatch, name: &'static str, key: &[u8], value: &[u8]) {
        let keyspace = self.db.keyspace(name).unwrap();
        batch.put(&keyspace, key, value).unwrap();
        self.models.entry(name).or_default().insert(key.to_vec(), value.to_vec());
    }

    fn delete(&mut self, batch: &mut WriteBatch, name: &'static str, key: &[u8]) {
        batch.delete(&self.db.keyspace(name).unwrap(), key).unwrap();
        self.models.entry(name).or_default().remove(key);
    }

    /// Numbered keys with values that contain their round; every seventh key is deleted instead.
    fn round(&mut self, name: &'static str, round: u32, numbers: std::ops::Range<u32>) {
        let mut batch = WriteBatch::new();
        for number in numbers {
            let key = format!("{name}/{number:05}").into_bytes();
            if round > 0 && number % 7 == 0 {
                self.delete(&mut batch, name, &key);
            } else {
                self.put(&mut batch, name, &key, format!("round {round} of {number}").as_bytes());
            }
        }
        self.db.write(batch).unwrap();
    }
}

/// Without compression: the output of its crates may change; the golden tables show that old output stays readable.
fn options() -> KeyspaceOptions {
    KeyspaceOptions::default()
        .filters(Filters::per_level([
            vec![TableFilter::bits(12.0)],
            vec![TableFilter::bits(8.0)],
            Vec::new(),
        ]))
        .level0_runs(8)
}

/// The options of the database, with the filters that were the default.
fn frozen_options() -> Options {
    let default_keyspace = KeyspaceOptions::default().filters(Filters::bits(10.0));
    inline_options().default_keyspace(default_keyspace)
}

/// Creates the database: tables of two levels, runs at L0, a filter file, tombstones, a value larger than a block, a
/// dropped keyspace, and a log to replay.
fn write_all(vfs: &MemVfs) -> Models {
    let db = open_in_memory(vfs, frozen_options()).unwrap();
    db.create_keyspace("events", options().size_ratio(4)).unwrap();
    db.create_keyspace("dropped", options()).unwrap().put("gone", "gone").unwrap();
    db.create_keyspace("users", options().block_bytes(8192)).unwrap();
    db.drop_keyspace("dropped").unwrap();
    let mut program = Program { db, models: Models::new() };
    program.round("events", 0, 0..300);
    program.round("users", 0, 0..100);
    let all = program.db.keyspace("events").unwrap();
    program.db.compact_range(&all, ..).unwrap();
    program.round("events", 1, 100..200);
    program.db.flush().unwrap();
    program.round("events", 2, 150..320);
    program.round("users", 2, 50..120);
    program.db.flush().unwrap();
    program.db.rebuild_filters(&program.db.keyspace("users").unwrap(), &[TableFilter::bits(16.0)]).unwrap();
    // In all keyspaces, only in the log.
    let mut batch = WriteBatch::new();
    let large: Vec<u8> = (0..9_000_u32).map(|index| (index % 251) as u8).collect();
    program.put(&mut batch, "default", b"large", &large);
    program.put(&mut batch, "default", &[0], b"");
    program.put(&mut batch, "default", &[0xFF; 40], b"last");
    program.put(&mut batch, "users", b"users/00001", b"in the log");
    program.delete(&mut batch, "events", b"events/00001");
    program.db.write(batch).unwrap();
    drop(all);
    let Program { db, models } = program;
    db.close().unwrap();
    models
}

fn files(vfs: &dyn Vfs, folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = vfs.list(folder).unwrap().into_iter().filter(|entry| !entry.is_dir).map(|entry| entry.name);
    names.map(|name| (name.clone(), vfs.read(&folder.join(&name)).unwrap())).collect()
}

/// A copy in memory.
fn copy(source: &Path) -> MemVfs {
    let vfs = MemVfs::new();
    vfs.create_dir_all(Path::new(FOLDER)).unwrap();
    for (name, bytes) in files(&OsVfs, source) {
        vfs.create(&Path::new(FOLDER).join(name)).unwrap().append(&bytes).unwrap();
    }
    vfs
}

fn check(db: &Db, models: &Models) {
    assert_eq!(db.keyspace_names(), ["default", "events", "users"]);
    check_contents(db, models);
}

fn check_contents(db: &Db, models: &Models) {
    for (name, model) in models {
        let keyspace = db.keyspace(name).unwrap();
        let own = |entry: tamis::Result<(tamis::Slice, tamis::Slice)>| {
            let (key, value) = entry.unwrap();
            (key.to_vec(), value.to_vec())
        };
        let forward: Vec<_> = keyspace.range(..).map(own).collect();
        let mut backward: Vec<_> = keyspace.range(..).rev().map(own).collect();
        backward.reverse();
        let expected: Vec<_> = model.clone().into_iter().collect();
        assert!(forward == expected && backward == expected, "{name}");
        for number in 0..330 {
            let key = format!("{name}/{number:05}").into_bytes();
            assert_eq!(keyspace.get(&key).unwrap().as_deref(), model.get(&key).map(Vec::as_slice));
        }
    }
    let report = db.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.faults);
    assert_eq!(db.statistics().corrupt_filters, 0);
}

#[test]
fn a_database_is_written_as_the_frozen_one() {
    let vfs = MemVfs::new();
    let models = write_all(&vfs);
    compare_with_frozen(&vfs, &golden("db"));
    assert!(models["events"].len() > 200 && models["users"].len() > 80);
}

/// Writes the frozen files of a database.
fn rewrite(folder: &Path, written: &BTreeMap<String, Vec<u8>>) {
    OsVfs.create_dir_all(folder).unwrap();
    for name in files(&OsVfs, folder).keys() {
        OsVfs.remove(&folder.join(name)).unwrap();
    }
    for (name, bytes) in written {
        OsVfs.create(&folder.join(name)).unwrap().append(bytes).unwrap();
    }
}

/// The files of a database are the frozen ones.
fn compare_with_frozen(vfs: &MemVfs, folder: &Path) {
    let written = files(vfs, Path::new(FOLDER));
    if std::env::var_os("TAMIS_REWRITE").is_some() {
        rewrite(folder, &written);
    }
    let frozen = files(&OsVfs, folder);
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&written), names(&frozen));
    for (name, bytes) in &frozen {
        let first = bytes.iter().zip(&written[name]).position(|(frozen, written)| frozen != written);
        assert!(*bytes == written[name], "{name} is not written as it was: first other byte {first:?}");
    }
}

/// Creates a database with a view that was rebuilt: four runs with old versions and tombstones.
fn write_with_view(vfs: &MemVfs) -> Models {
    let db = open_in_memory(vfs, frozen_options()).unwrap();
    let options = KeyspaceOptions::default().filters(Filters::none()).level0_runs(64).views(Views::On);
    db.create_keyspace("viewed", options).unwrap();
    let mut program = Program { db, models: Models::new() };
    for (round, numbers) in [(0, 0..300), (1, 100..220), (2, 50..330), (0, 320..360)] {
        program.round("viewed", round, numbers);
        program.db.flush().unwrap();
    }
    let statistics = program.db.statistics();
    assert_eq!((statistics.views_built, statistics.views_rebuilt), (1, 2));
    let Program { db, models } = program;
    db.close().unwrap();
    models
}

#[test]
fn a_database_with_a_view_is_written_as_the_frozen_one() {
    let vfs = MemVfs::new();
    write_with_view(&vfs);
    compare_with_frozen(&vfs, &golden("db_with_view"));
}

#[test]
fn the_view_of_a_frozen_database_is_used_and_rebuilt() {
    let models = write_with_view(&MemVfs::new());
    let vfs = copy(&golden("db_with_view"));
    let shared: Arc<dyn Vfs> = Arc::new(vfs.clone());
    assert!(Db::verify_folder_on(shared, FOLDER).unwrap().is_sound());
    let db = open_in_memory(&vfs, inline_options()).unwrap();
    let views = |db: &Db| {
        let keyspaces = db.statistics().keyspaces;
        keyspaces.iter().find(|keyspace| keyspace.name == "viewed").unwrap().views
    };
    let statistics = db.statistics();
    assert_eq!((statistics.views_built, statistics.views_rebuilt), (0, 0));
    assert_eq!((views(&db).open_count, views(&db).run_count), (1, 4));
    check_contents(&db, &models);
    let keyspace = db.keyspace("viewed").unwrap();
    let mut models = models;
    for number in 340..400 {
        let key = format!("viewed/{number:05}").into_bytes();
        keyspace.put(&key, "later").unwrap();
        models.get_mut("viewed").unwrap().insert(key, b"later".to_vec());
    }
    db.flush().unwrap();
    assert_eq!((db.statistics().views_rebuilt, views(&db).run_count), (1, 5));
    check_contents(&db, &models);
}

#[test]
fn a_frozen_database_is_read_and_written_to() {
    let mut models = write_all(&MemVfs::new());
    let vfs = copy(&golden("db"));
    let before = files(&vfs, Path::new(FOLDER));
    let db = open_in_memory(&vfs, inline_options().mode(OpenMode::Reader)).unwrap();
    let report = db.open_report();
    assert!(
        !report.is_new && report.replayed_entries == 5 && report.wal_truncations.is_empty(),
        "{report:?}"
    );
    check(&db, &models);
    let events = db.keyspace("events").unwrap().options();
    assert_eq!(events, events.clone().size_ratio(4));
    db.close().unwrap();
    assert!(files(&vfs, Path::new(FOLDER)) == before);

    let db = open_in_memory(&vfs, inline_options()).unwrap();
    check(&db, &models);
    let users = db.keyspace("users").unwrap();
    users.put("users/00002", "later").unwrap();
    models.get_mut("users").unwrap().insert(b"users/00002".to_vec(), b"later".to_vec());
    db.compact_range(&users, ..).unwrap();
    db.flush().unwrap();
    check(&db, &models);
    db.clone().close().unwrap();
    check(&open_in_memory(&vfs, inline_options()).unwrap(), &models);
}

/// A keyspace in one table, whose blocks are compressed with Zstandard. Other versions of Zstandard write other bytes.
#[cfg(feature = "zstd")]
fn write_with_zstandard(vfs: &MemVfs) -> Models {
    let db = open_in_memory(vfs, frozen_options()).unwrap();
    let compression = vec![Compression::Zstd(3)];
    db.create_keyspace("packed", options().compression(compression)).unwrap();
    let mut program = Program { db, models: Models::new() };
    program.round("packed", 0, 0..300);
    program.db.flush().unwrap();
    let Program { db, models } = program;
    db.close().unwrap();
    models
}

#[cfg(feature = "zstd")]
#[test]
fn a_frozen_database_with_zstandard_is_read() {
    let written = MemVfs::new();
    let models = write_with_zstandard(&written);
    let folder = golden("db_with_zstandard");
    if std::env::var_os("TAMIS_REWRITE").is_some() {
        rewrite(&folder, &files(&written, Path::new(FOLDER)));
    }
    let db = open_in_memory(&copy(&folder), inline_options()).unwrap();
    check_contents(&db, &models);
}

/// A program without Zstandard reads no block of such a store, repairs nothing and creates no such keyspace; each error says why.
#[cfg(not(feature = "zstd"))]
#[test]
fn zstandard_is_refused_without_its_feature() {
    let is_refused = |error: Error, name: &str| {
        let text = error.to_string();
        assert!(matches!(error, Error::ZstdUnavailable { .. }), "{text}");
        assert!(text.contains(name) && text.contains("feature `zstd` of the crate `tamis`"), "{text}");
    };
    let vfs = copy(&golden("db_with_zstandard"));
    let before = files(&vfs, Path::new(FOLDER));
    is_refused(open_in_memory(&vfs, inline_options()).unwrap_err(), "\"packed\"");
    let repaired = Db::repair_on(Arc::new(vfs.clone()), FOLDER, &Runtime::deterministic(7));
    is_refused(repaired.unwrap_err(), ".table");
    assert!(files(&vfs, Path::new(FOLDER)) == before, "the store is not changed");

    let db = Db::open_on(Arc::new(vfs), "/other", inline_options(), Runtime::deterministic(7)).unwrap();
    let packed = KeyspaceOptions::default().compression(vec![Compression::Zstd(3)]);
    is_refused(db.create_keyspace("packed", packed).unwrap_err(), "a new keyspace");
}
