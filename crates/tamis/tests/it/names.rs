//! A store is a folder and not a path: it stays in its folder when the names around it change, and has one owner under all names.
//!
//! Tests that depend on the process (the current folder, another owner, another user) run in another process: the test starts itself.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{fs::symlink, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
};

use tamis::{Db, Durability, Error, OpenMode, Options, Runtime, TableWriter, WriteBatch};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, OsVfs, Rule, Vfs};

use crate::support::{inline_options, open_in_memory, open_on, small_keyspace};

/// Names the task to the other process.
const TASK: &str = "TAMIS_TEST_NAMES_TASK";

/// Runs [`child`] with a task in another process, with this current folder.
fn run(task: &str, folder: &Path) -> Output {
    command(task, folder).output().unwrap()
}

fn command(task: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "names::child", "--nocapture"]).env(TASK, task).current_dir(folder);
    command
}

fn check(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Not a test: the body of the other processes.
#[test]
fn child() {
    match std::env::var(TASK).as_deref() {
        Ok("change folder") => change_folder(),
        Ok("open under all names") => open_under_all_names(),
        Ok("read") => drop(read_only(Path::new("store")).unwrap()),
        Ok("try to read") => {
            let refused = read_only(Path::new("store")).unwrap_err();
            assert!(
                matches!(&refused, Error::ReaderRefused { path } if path.ends_with("store/readers")),
                "{refused}"
            );
        }
        Ok("write") => Db::open("store").unwrap().put("written", "by the other").unwrap(),
        Ok("try to write") => assert!(matches!(Db::open("store"), Err(Error::Locked { .. }))),
        _ => {}
    }
}

fn read_only(path: &Path) -> tamis::Result<Db> {
    Db::open_with(path, Options::default().mode(OpenMode::Reader))
}

fn put_synced(db: &Db, key: &str) -> tamis::Result<()> {
    let mut batch = WriteBatch::new();
    batch.put(&db.default_keyspace(), key, "value")?;
    db.write_with(batch, Durability::Synced)
}

/// Names and bytes of the files of a folder; without those in folders.
fn contents(vfs: &dyn Vfs, folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = vfs.list(folder).unwrap().into_iter().filter(|entry| !entry.is_dir);
    entries.map(|entry| (entry.name.clone(), vfs.read(&folder.join(&entry.name)).unwrap())).collect()
}

/// The current folder is `one`; next to it is `two`, with another store.
fn change_folder() {
    let db = Db::open("store").unwrap();
    let mut table = TableWriter::create("new.table", &small_keyspace()).unwrap();
    table.put("from a table", "1").unwrap();
    db.put("before", "1").unwrap();
    std::env::set_current_dir("../two").unwrap();
    table.finish().unwrap();
    put_synced(&db, "after").unwrap();
    db.flush().unwrap();
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    for index in 0..5_000_u32 {
        keyspace.put(index.to_be_bytes(), [7; 100]).unwrap();
    }
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    db.checkpoint("copy").unwrap();
    assert!(db.verify().unwrap().is_sound());
    drop(keyspace);
    db.close().unwrap();
}

/// *Found*: after a change of the current folder, the store wrote into the folder that had its name there.
#[test]
fn a_change_of_the_current_folder_moves_no_file() {
    let root = tempfile::tempdir().unwrap();
    let [one, two] = ["one", "two"].map(|name| root.path().join(name));
    for (folder, key) in [(&one, "first"), (&two, "second")] {
        let db = Db::open(folder.join("store")).unwrap();
        db.put(key, "1").unwrap();
        db.close().unwrap();
    }
    let before = contents(&OsVfs, &two.join("store"));
    check(&run("change folder", &one));
    assert_eq!(contents(&OsVfs, &two.join("store")), before);
    assert!(one.join("new.table").exists() && !two.join("new.table").exists());
    assert_eq!(Db::open(two.join("store")).unwrap().get("second").unwrap().unwrap(), b"1");
    for store in [one.join("store"), two.join("copy")] {
        let db = Db::open(store).unwrap();
        let keys: Vec<_> = db.range(..).map(|entry| entry.unwrap().0).collect();
        assert_eq!(keys, [&b"after"[..], b"before", b"first"]);
        assert_eq!(db.keyspace("k").unwrap().range(..).count(), 5_000);
    }
}

/// The current folder has the store `store`, which the parent process has open, and a link to it.
fn open_under_all_names() {
    let parent = std::os::unix::process::parent_id();
    let names = ["store", "link", "./store/", "store/../store", "/proc/self/cwd/store", "link/../store"];
    let absolute = std::env::current_dir().unwrap().join("store");
    for name in names.map(Path::new).into_iter().chain([absolute.as_path()]) {
        let error = Db::open(name).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{}: {error}", name.display());
        let text = error.to_string();
        assert!(text.contains(&format!("open for writing by process {parent}; close it there")), "{text}");
        let reader = read_only(name);
        if absolute.join("CURRENT").exists() {
            assert!(reader.unwrap().get("key").unwrap().is_some());
        } else {
            assert!(matches!(reader, Err(Error::Locked { .. })), "{reader:?}");
        }
    }
}

/// *Found*: a second open succeeded while the first was open, after the file `LOCK` was removed, in the same process, too.
#[test]
fn a_store_has_one_owner_under_all_names() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("store");
    let db = Db::open(&path).unwrap();
    put_synced(&db, "key").unwrap();
    symlink("store", root.path().join("link")).unwrap();
    for round in 0..2 {
        check(&run("open under all names", root.path()));
        for name in ["store", "link", "link/../store/."] {
            let error = Db::open(root.path().join(name)).unwrap_err();
            let owner = format!("open for writing by this process, process {};", std::process::id());
            assert!(error.to_string().contains(&owner), "{error}");
        }
        // No file is the lock: all that the open store does not need are removed.
        for name in contents(&OsVfs, &path).into_keys().filter(|_| round == 0) {
            if !["log", "manifest", "table"].iter().any(|suffix| name.ends_with(suffix)) {
                OsVfs.remove(&path.join(name)).unwrap();
            }
        }
    }
    drop(db);
}

/// *Found*: two read-only opens excluded each other, and writers.
#[test]
fn readers_share_a_store_with_a_writer() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("store");
    Db::open(&path).unwrap().put("key", "value").unwrap();
    let readers = [read_only(&path).unwrap(), read_only(&path).unwrap()];
    check(&run("read", root.path()));
    check(&run("write", root.path()));
    assert_eq!(readers[0].get("key").unwrap(), readers[1].get("key").unwrap());
    assert!(readers[1].get("written").unwrap().is_none());
    readers[1].refresh().unwrap();
    assert!(readers[1].get("written").unwrap().is_some());
    let writer = Db::open(&path).unwrap();
    check(&run("read", root.path()));
    assert_eq!(writer.statistics().readers.len(), 2);
    drop(readers);
    assert_eq!(writer.statistics().readers, []);
}

/// A user who may only read the folder locks it: no process can write meanwhile.
#[test]
fn a_user_without_the_permission_to_write_takes_the_shared_lock() {
    const OTHER_USER: u32 = 65_534;
    let root = tempfile::tempdir().unwrap();
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(root.path(), 0o755);
    let path = root.path().join("store");
    let writer = Db::open(&path).unwrap();
    mode(&path, 0o755);
    // The other user must be able to run this program: it is copied.
    let program = root.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    mode(&program, 0o755);
    let run_as_other_user = |task: &str| {
        let mut command = Command::new(&program);
        command.args(["--exact", "names::child", "--nocapture"]).env(TASK, task);
        command.current_dir(root.path()).uid(OTHER_USER).gid(OTHER_USER).output()
    };
    match run_as_other_user("try to read") {
        Err(error) => return println!("skipped: this user can't start a process of another one: {error}"),
        Ok(output) => check(&output),
    }
    // As the error advises.
    fs::create_dir(path.join("readers")).unwrap();
    mode(&path.join("readers"), 0o777);
    check(&run_as_other_user("read").unwrap());
    fs::remove_dir(path.join("readers")).unwrap();
    writer.close().unwrap();
    check(&run_as_other_user("read").unwrap());
    assert!(!path.join("readers").exists());
}

type Rename = Box<dyn Fn(&Path, &Path)>;

/// A store in a file system, and how another program renames and removes folders there.
struct Place {
    vfs: Arc<dyn Vfs>,
    root: PathBuf,
    rename: Rename,
    remove: Box<dyn Fn(&Path)>,
}

impl Place {
    fn open(&self, name: &str) -> tamis::Result<Db> {
        let runtime = Runtime::deterministic(7);
        Db::open_on(Arc::clone(&self.vfs), self.root.join(name), inline_options(), runtime)
    }
}

fn places(root: &Path) -> [Place; 2] {
    let memory = MemVfs::new();
    let (renamed, removed) = (memory.clone(), memory.clone());
    [
        Place {
            vfs: Arc::new(OsVfs),
            root: root.to_path_buf(),
            rename: Box::new(|source, target| {
                assert!(Command::new("mv").args([source, target]).status().unwrap().success());
            }),
            remove: Box::new(|path| fs::remove_dir_all(path).unwrap()),
        },
        Place {
            vfs: Arc::new(memory),
            root: "/".into(),
            rename: Box::new(move |source, target| renamed.rename_folder(source, target).unwrap()),
            remove: Box::new(move |path| removed.remove_folder(path).unwrap()),
        },
    ]
}

#[test]
fn a_renamed_folder_is_still_the_store() {
    let root = tempfile::tempdir().unwrap();
    for place in places(root.path()) {
        let db = place.open("store").unwrap();
        db.put("before", "1").unwrap();
        (place.rename)(&place.root.join("store"), &place.root.join("moved"));
        put_synced(&db, "after").unwrap();
        db.flush().unwrap();
        db.put("last", "3").unwrap();
        db.create_keyspace("k", small_keyspace()).unwrap();
        assert!(matches!(place.open("moved"), Err(Error::Locked { .. })));
        db.close().unwrap();
        assert!(!place.vfs.exists(&place.root.join("store")).unwrap());
        let db = place.open("moved").unwrap();
        let keys: Vec<_> = db.range(..).map(|entry| entry.unwrap().0).collect();
        assert_eq!(keys, [&b"after"[..], b"before", b"last"]);
    }
}

/// *Found*: after `mv store old; mkdir store`, half of the files went into the new folder, and every call said Ok.
#[test]
fn a_replaced_folder_takes_no_more_writes_and_the_new_one_gets_no_file() {
    let writes: [fn(&Db) -> tamis::Result<()>; 5] = [
        |db| put_synced(db, "lost"),
        |db| db.persist(Durability::Synced),
        Db::flush,
        |db| db.create_keyspace("k", small_keyspace()).map(drop),
        |db| db.clone().close(),
    ];
    for (index, write) in writes.into_iter().enumerate() {
        let root = tempfile::tempdir().unwrap();
        for place in places(root.path()) {
            let [path, old] = ["store", "old"].map(|name| place.root.join(name));
            let db = place.open("store").unwrap();
            put_synced(&db, "kept").unwrap();
            db.flush().unwrap();
            db.put("in the log", "2").unwrap();
            (place.rename)(&path, &old);
            place.vfs.create_dir_all(&path).unwrap();
            let error = write(&db).unwrap_err();
            assert!(matches!(error, Error::FolderLost { .. }), "write {index}: {error}");
            assert!(error.to_string().contains("another one has its name"), "{error}");
            // Reads still work until the store is closed.
            match db.get("kept") {
                Err(error) => assert!(index == 4 && matches!(error, Error::Closed), "{error}"),
                Ok(found) => assert_eq!(found.unwrap(), b"value"),
            }
            drop(db);
            assert_eq!(place.vfs.list(&path).unwrap(), [], "write {index}");
            let db = place.open("old").unwrap();
            assert_eq!(db.get("kept").unwrap().unwrap(), b"value");
            assert_eq!(db.get("in the log").unwrap().unwrap(), b"2");
            // The new folder is another store.
            assert!(place.open("store").unwrap().open_report().is_new);
        }
    }
}

#[test]
fn a_removed_folder_takes_no_more_writes() {
    for is_synced in [true, false] {
        let root = tempfile::tempdir().unwrap();
        for place in places(root.path()) {
            let path = place.root.join("store");
            let db = place.open("store").unwrap();
            db.put("key", "value").unwrap();
            (place.remove)(&path);
            let error = if is_synced { put_synced(&db, "lost") } else { db.flush() }.unwrap_err();
            assert!(matches!(error, Error::FolderLost { .. }), "{error}");
            assert!(error.to_string().contains("the folder was removed"), "{error}");
            assert!(db.close().is_err());
            assert!(!place.vfs.exists(&path).unwrap());
        }
    }
}

/// *Found*: a checkpoint into the folder of the store itself.
#[test]
fn a_checkpoint_is_not_made_in_the_folder_of_its_store() {
    let root = tempfile::tempdir().unwrap();
    for place in places(root.path()) {
        let path = place.root.join("store");
        let db = place.open("store").unwrap();
        db.put("key", "value").unwrap();
        let mut targets = vec![path.clone(), path.join("copy"), path.join("deep/copy")];
        if place.root == root.path() {
            symlink(&path, place.root.join("link")).unwrap();
            targets.extend(["link", "link/copy", "store/../link/copy"].map(|name| place.root.join(name)));
        }
        let before = place.vfs.list(&path).unwrap();
        for target in targets {
            let error = db.checkpoint(&target).unwrap_err();
            assert!(error.to_string().contains("which is in the folder of the store"), "{error}");
        }
        assert_eq!(place.vfs.list(&path).unwrap(), before);
        db.checkpoint(place.root.join("storey")).unwrap();
        db.close().unwrap();
        assert_eq!(place.open("storey").unwrap().get("key").unwrap().unwrap(), b"value");
    }
}

#[test]
fn a_file_system_without_locks_is_refused_or_used_without_the_lock() {
    let memory = MemVfs::new();
    open_in_memory(&memory, inline_options()).unwrap().put("key", "value").unwrap();
    let vfs = Arc::new(FaultVfs::new(Arc::new(memory)));
    vfs.add_rule(Rule::error(std::io::ErrorKind::Unsupported).on(&[OperationKind::Lock]).forever());
    for read_only in [false, true] {
        let open = |lock| {
            let options = inline_options().lock(lock).mode(if read_only {
                OpenMode::Reader
            } else {
                OpenMode::CreateIfMissing
            });
            open_on(vfs.clone(), options)
        };
        let error = open(true).unwrap_err();
        assert!(matches!(error, Error::LockUnsupported { .. }));
        assert!(error.to_string().contains("switch `Options::lock` off"), "{error}");
        assert_eq!(open(false).unwrap().get("key").unwrap().unwrap(), b"value");
    }
}
