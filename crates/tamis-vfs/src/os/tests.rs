//! Tests that `OsVfs` and `MemVfs` return the same results, and tests of what only `OsVfs` has. Tests of what Windows does
//! differently are in `windows/tests.rs`.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use proptest::prelude::*;

use crate::{Access, DIRECT_ALIGNMENT_BYTES, File, LockMode, MemVfs, OsVfs, Vfs, tests::proptest_config};

/// A step on one of a few names. A step that is not possible must fail with the same error in both.
#[derive(Debug, Clone)]
enum Step {
    Create(u8),
    Append(u8, u8),
    Truncate(u8, u8),
    Sync(u8),
    ReadAt(u8, u8, u8),
    Open(u8),
    OpenMapped(u8),
    Rename(u8, u8),
    Link(u8, u8),
    Remove(u8),
    Exists(u8),
    List(u8),
    SyncDir(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0..9_u8;
    prop_oneof![
        3 => name.clone().prop_map(Step::Create),
        4 => (name.clone(), any::<u8>()).prop_map(|(name, count)| Step::Append(name, count)),
        1 => (name.clone(), any::<u8>()).prop_map(|(name, length)| Step::Truncate(name, length)),
        1 => name.clone().prop_map(Step::Sync),
        3 => (name.clone(), any::<u8>(), any::<u8>()).prop_map(|(n, at, count)| Step::ReadAt(n, at, count)),
        2 => name.clone().prop_map(Step::Open),
        1 => name.clone().prop_map(Step::OpenMapped),
        2 => (name.clone(), name.clone()).prop_map(|(source, target)| Step::Rename(source, target)),
        2 => (name.clone(), name.clone()).prop_map(|(source, target)| Step::Link(source, target)),
        2 => name.clone().prop_map(Step::Remove),
        1 => name.clone().prop_map(Step::Exists),
        1 => (0..4_u8).prop_map(Step::List),
        1 => (0..4_u8).prop_map(Step::SyncDir),
    ]
}

/// Names 0 to 3 are in the directory itself, 4 to 6 in a subdirectory, 7 in a missing directory, and 8 below a file.
fn name_of(name: u8) -> String {
    match name {
        0..4 => format!("file-{name}"),
        4..7 => format!("below/file-{name}"),
        7 => "missing/file".to_owned(),
        _ => "file-0/file".to_owned(),
    }
}

fn directory_of(directory: u8) -> &'static str {
    ["", "below", "missing", "file-0"][usize::from(directory)]
}

/// A file system with the last handle of each name.
struct Side<'a> {
    vfs: &'a dyn Vfs,
    root: &'a Path,
    handles: [Option<Arc<dyn File>>; 9],
}

impl Side<'_> {
    /// Does a step and returns its result as text.
    fn run(&mut self, step: &Step) -> String {
        let file = |name: u8| self.root.join(name_of(name));
        let directory = |directory: u8| self.root.join(directory_of(directory));
        let vfs = self.vfs;
        match *step {
            Step::Create(name) => self.keep(name, vfs.create(&file(name))),
            Step::Open(name) => self.keep(name, vfs.open(&file(name), Access::Buffered)),
            Step::OpenMapped(name) => match vfs.open(&file(name), Access::Mapped) {
                Ok(mapped) => format!("{:?} {:?}", mapped.length().unwrap(), &***mapped.mapping().unwrap()),
                Err(error) => kind_of(&error),
            },
            Step::Append(name, count) => self.with(name, |file| file.append(&vec![count; count.into()])),
            Step::Truncate(name, length) => self.with(name, |file| file.truncate(length.into())),
            Step::Sync(name) => self.with(name, |file| file.sync()),
            Step::ReadAt(name, offset, count) => self.with(name, |file| {
                let mut buffer = vec![0; count.into()];
                file.read_at(offset.into(), &mut buffer).map(|()| buffer)
            }),
            Step::Rename(source, target) => {
                self.close_on_windows();
                outcome(vfs.rename(&file(source), &file(target)))
            }
            Step::Link(source, target) => outcome(vfs.hard_link(&file(source), &file(target))),
            Step::Remove(name) => {
                self.close_on_windows();
                outcome(vfs.remove(&file(name)))
            }
            Step::Exists(name) => outcome(vfs.exists(&file(name))),
            Step::List(name) => outcome(vfs.list(&directory(name))),
            Step::SyncDir(name) => outcome(vfs.sync_dir(&directory(name))),
        }
    }

    /// Some file systems of Windows, and Wine, refuse to replace an open file, and keep the name of a removed one until it is closed.
    fn close_on_windows(&mut self) {
        if cfg!(windows) {
            self.handles = Default::default();
        }
    }

    fn keep(&mut self, name: u8, opened: std::io::Result<Arc<dyn File>>) -> String {
        outcome(opened.map(|file| self.handles[usize::from(name)] = Some(file)))
    }

    fn with<T: std::fmt::Debug>(
        &self,
        name: u8,
        act: impl FnOnce(&dyn File) -> std::io::Result<T>,
    ) -> String {
        match &self.handles[usize::from(name)] {
            Some(file) => format!("{} {}", outcome(act(file.as_ref())), file.length().unwrap()),
            None => "no handle".to_owned(),
        }
    }
}

fn outcome<T: std::fmt::Debug>(result: std::io::Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => kind_of(&error),
    }
}

/// Windows does not say that a folder above a file is a file.
fn kind_of(error: &std::io::Error) -> String {
    let kind = match error.kind() {
        ErrorKind::NotADirectory if cfg!(windows) => ErrorKind::NotFound,
        kind => kind,
    };
    format!("{kind:?}")
}

proptest! {
    #![proptest_config(proptest_config(300))]
    #[test]
    fn os_vfs_and_mem_vfs_return_the_same_results(steps in prop::collection::vec(step(), 1..80)) {
        let directory = tempfile::tempdir().unwrap();
        let memory = MemVfs::new();
        let root = Path::new("/root");
        OsVfs.create_dir_all(&directory.path().join("below")).unwrap();
        memory.create_dir_all(&root.join("below")).unwrap();
        let mut real = Side { vfs: &OsVfs, root: directory.path(), handles: Default::default() };
        let mut model = Side { vfs: &memory, root, handles: Default::default() };
        for step in &steps {
            prop_assert_eq!(real.run(step), model.run(step), "at {:?}", step);
        }
        for directory in 0..2 {
            prop_assert_eq!(real.run(&Step::List(directory)), model.run(&Step::List(directory)));
        }
    }
}

type Rename = Box<dyn Fn(&Path, &Path)>;

/// A file system with an empty directory `store`, and how another program renames and removes directories.
struct Place {
    vfs: Arc<dyn Vfs>,
    root: PathBuf,
    rename: Rename,
    remove: Box<dyn Fn(&Path)>,
}

fn places(directory: &tempfile::TempDir) -> [Place; 2] {
    let memory = MemVfs::new();
    let (renamed, removed) = (memory.clone(), memory.clone());
    let places = [
        Place {
            vfs: Arc::new(OsVfs),
            root: directory.path().to_path_buf(),
            rename: Box::new(|source, target| OsVfs.rename(source, target).unwrap()),
            remove: Box::new(|path| std::fs::remove_dir_all(path).unwrap()),
        },
        Place {
            vfs: Arc::new(memory),
            root: "/".into(),
            rename: Box::new(move |source, target| renamed.rename_folder(source, target).unwrap()),
            remove: Box::new(move |path| removed.remove_folder(path).unwrap()),
        },
    ];
    for place in &places {
        place.vfs.create_dir_all(&place.root.join("store")).unwrap();
    }
    places
}

#[test]
fn an_exclusive_lock_excludes_all_others_and_shared_locks_only_exclusive_ones() {
    let directory = tempfile::tempdir().unwrap();
    for Place { vfs, root, .. } in places(&directory) {
        let path = root.join("store");
        let lock = vfs.lock(&path, LockMode::Exclusive).unwrap();
        for mode in [LockMode::Exclusive, LockMode::Shared] {
            let error = vfs.lock(&path, mode).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            assert!(error.to_string().starts_with("for writing by "), "{error}");
        }
        drop(lock);
        let first = vfs.lock(&path, LockMode::Shared).unwrap();
        let second = vfs.lock(&path, LockMode::Shared).unwrap();
        drop(first);
        let error = vfs.lock(&path, LockMode::Exclusive).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(error.to_string().starts_with("for reading by "), "{error}");
        drop(second);
        vfs.lock(&path, LockMode::Exclusive).unwrap();
        // The lock leaves no file in the directory.
        assert_eq!(vfs.list(&path).unwrap(), []);
    }
}

#[test]
fn an_open_folder_is_the_same_directory_under_any_name() {
    let directory = tempfile::tempdir().unwrap();
    // Windows refuses to rename an open folder.
    let skipped = usize::from(cfg!(windows));
    for Place { vfs, root, rename, remove } in places(&directory).into_iter().skip(skipped) {
        let (path, moved) = (root.join("store"), root.join("moved"));
        let folder = vfs.open_folder(&path).unwrap();
        folder.create(&path.join("a")).unwrap().append(b"old").unwrap();
        rename(&path, &moved);
        folder.check_folder().unwrap();
        let names = |path: &Path| -> Vec<String> {
            vfs.list(path).unwrap().into_iter().map(|entry| entry.name).collect()
        };
        assert_eq!(names(&moved), ["a"]);

        // Another directory takes the name.
        vfs.create_dir_all(&path).unwrap();
        assert!(folder.check_folder().unwrap_err().to_string().contains("another one has its name"));
        assert_eq!(folder.read(&path.join("a")).unwrap(), b"old");
        folder.rename(&path.join("a"), &path.join("b")).unwrap();
        folder.hard_link(&path.join("b"), &path.join("c")).unwrap();
        folder.create_log(&path.join("d")).unwrap();
        folder.create_direct(&path.join("e")).unwrap();
        folder.create_exclusive(&path.join("f")).unwrap();
        folder.create_dir_all(&path.join("below/deep")).unwrap();
        folder.create(&path.join("below/g")).unwrap();
        folder.remove(&path.join("e")).unwrap();
        folder.sync_dir(&path).unwrap();
        drop(folder.reuse_log(&path.join("d")).unwrap());
        assert!(folder.exists(&path.join("f")).unwrap());
        assert_eq!(folder.list(&path).unwrap().len(), 5);
        assert_eq!(names(&moved), ["b", "below", "c", "d", "f"]);
        assert_eq!(names(&moved.join("below")), ["deep", "g"]);
        assert_eq!(names(&path), [] as [&str; 0]);
        let lock = folder.lock(&path, LockMode::Exclusive).unwrap();
        assert!(vfs.lock(&moved, LockMode::Exclusive).is_err());
        assert!(vfs.lock(&path, LockMode::Exclusive).is_ok());
        drop(lock);
        // Other paths have the same meaning as before.
        folder.hard_link(&path.join("b"), &root.join("outside")).unwrap();
        assert_eq!(vfs.read(&root.join("outside")).unwrap(), b"old");

        remove(&moved);
        assert!(folder.check_folder().unwrap_err().to_string().contains("removed"));
        assert_eq!(folder.create(&path.join("h")).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(folder.create_dir_all(&path.join("h")).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(names(&path), [] as [&str; 0]);
    }
}

#[test]
fn a_path_is_within_a_folder_under_any_name() {
    let directory = tempfile::tempdir().unwrap();
    for Place { vfs, root, .. } in places(&directory) {
        let path = root.join("store");
        for (other, is_within) in
            [("store", true), ("store/new/deep", true), ("", false), ("storey/new", false), ("other", false)]
        {
            assert_eq!(vfs.is_within(&root.join(other), &path).unwrap(), is_within, "{other}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_path_is_within_a_folder_that_symbolic_links_lead_to() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    OsVfs.create_dir_all(&root.join("store")).unwrap();
    std::os::unix::fs::symlink(root.join("store"), root.join("link")).unwrap();
    for other in ["link", "link/new", "store/../link/.", "./store/new/"] {
        assert!(OsVfs.is_within(&root.join(other), &root.join("store")).unwrap(), "{other}");
    }
    let folder = OsVfs.open_folder(&root.join("store")).unwrap();
    OsVfs.rename(&root.join("store"), &root.join("moved")).unwrap();
    assert!(folder.is_within(&root.join("moved/new"), &root.join("store")).unwrap());
    assert!(!folder.is_within(&root.join("new"), &root.join("store")).unwrap());
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_elsewhere_later_does_not_replace_the_folder() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for name in ["1", "2"] {
        OsVfs.create_dir_all(&root.join(name)).unwrap();
    }
    let link = root.join("current");
    std::os::unix::fs::symlink(root.join("1"), &link).unwrap();
    let folder = OsVfs.open_folder(&link).unwrap();
    OsVfs.remove(&link).unwrap();
    std::os::unix::fs::symlink(root.join("2"), &link).unwrap();
    folder.check_folder().unwrap();
    folder.create(&link.join("a")).unwrap();
    assert!(OsVfs.exists(&root.join("1/a")).unwrap());
}

#[test]
fn direct_reads_return_the_same_bytes_and_fail_past_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("1.table");
    let bytes: Vec<u8> = (0..3 * DIRECT_ALIGNMENT_BYTES + 100).map(|i| (i % 251) as u8).collect();
    let writer = OsVfs.create(&path).unwrap();
    writer.append(&bytes).unwrap();
    writer.sync().unwrap();

    let file = OsVfs.open(&path, Access::Direct).unwrap();
    let mut space = vec![0; 4 * DIRECT_ALIGNMENT_BYTES];
    let skipped = space.as_ptr().align_offset(DIRECT_ALIGNMENT_BYTES);
    let aligned = &mut space[skipped..skipped + 2 * DIRECT_ALIGNMENT_BYTES];
    file.read_at(DIRECT_ALIGNMENT_BYTES as u64, aligned).unwrap();
    assert_eq!(aligned, &bytes[DIRECT_ALIGNMENT_BYTES..3 * DIRECT_ALIGNMENT_BYTES]);
    let past = file.read_at(2 * DIRECT_ALIGNMENT_BYTES as u64, aligned).unwrap_err();
    assert_eq!(past.kind(), ErrorKind::UnexpectedEof);
    assert_eq!(file.length().unwrap(), bytes.len() as u64);
}

#[test]
fn the_mapping_of_an_empty_file_is_empty() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("empty");
    OsVfs.create(&path).unwrap();
    let file = OsVfs.open(&path, Access::Mapped).unwrap();
    assert_eq!(***file.mapping().unwrap(), b""[..]);
    assert_eq!(file.length().unwrap(), 0);
    file.will_need(0, 10);
}

#[cfg(unix)]
#[test]
fn a_mapping_stays_valid_after_the_file_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("1.table");
    OsVfs.create(&path).unwrap().append(b"abc").unwrap();
    let file = OsVfs.open(&path, Access::Mapped).unwrap();
    OsVfs.remove(&path).unwrap();
    assert_eq!(***file.mapping().unwrap(), b"abc"[..]);
    let mut buffer = [0; 2];
    file.read_at(1, &mut buffer).unwrap();
    assert_eq!(&buffer, b"bc");
    // Hints with any range are accepted.
    file.will_need(0, 3);
    file.will_need(2, u64::MAX);
    file.will_need(u64::MAX, u64::MAX);
}

#[test]
fn directories_cannot_be_opened_as_files() {
    let directory = tempfile::tempdir().unwrap();
    for access in [Access::Buffered, Access::Direct, Access::Mapped] {
        assert_eq!(OsVfs.open(directory.path(), access).unwrap_err().kind(), ErrorKind::IsADirectory);
    }
}

#[test]
fn create_dir_all_creates_parents_and_accepts_existing_directories() {
    let directory = tempfile::tempdir().unwrap();
    let deep = directory.path().join("a/b/c");
    OsVfs.create_dir_all(&deep).unwrap();
    OsVfs.create_dir_all(&deep).unwrap();
    assert!(deep.is_dir());
    OsVfs.create(&directory.path().join("file")).unwrap();
    assert!(OsVfs.create_dir_all(&directory.path().join("file")).is_err());
    assert!(OsVfs.create_dir_all(&directory.path().join("file/below")).is_err());
}

#[cfg(unix)]
#[test]
fn free_space_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    assert!(OsVfs.free_space(directory.path()).unwrap().unwrap() > 0);
}

#[cfg(unix)]
#[test]
fn hard_link_follows_symbolic_links() {
    let directory = tempfile::tempdir().unwrap();
    let [file, symbolic, linked] = ["file", "symbolic", "linked"].map(|name| directory.path().join(name));
    OsVfs.create(&file).unwrap().append(b"bytes").unwrap();
    std::os::unix::fs::symlink(&file, &symbolic).unwrap();
    OsVfs.hard_link(&symbolic, &linked).unwrap();
    OsVfs.remove(&symbolic).unwrap();
    OsVfs.remove(&file).unwrap();
    assert_eq!(OsVfs.read(&linked).unwrap(), b"bytes");
    assert!(OsVfs.hard_link(&linked, &linked).is_err_and(|error| error.kind() == ErrorKind::AlreadyExists));
}

/// Whole pages bypass the page cache and others use it, in any order; the content is the same.
#[test]
fn a_direct_file_contains_appends_of_any_length() {
    let directory = tempfile::tempdir().unwrap();
    let page = DIRECT_ALIGNMENT_BYTES;
    let sequences: [&[usize]; 6] = [
        &[page, 3 * page, 512 * page, 700 * page],
        &[5 * page, 7, page, page - 7, 2 * page],
        &[0, 1, page],
        &[1_300 * page + 5],
        &[2 * page, 2 * page],
        &[],
    ];
    for (number, lengths) in sequences.into_iter().enumerate() {
        let path = directory.path().join(format!("file-{number}"));
        let file = OsVfs.create_direct(&path).unwrap();
        assert_eq!(OsVfs.create_direct(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
        let mut expected = Vec::new();
        for (turn, &length) in lengths.iter().enumerate() {
            let bytes: Vec<u8> = (0..length).map(|at| (at / 7 + turn) as u8).collect();
            file.append(&bytes).unwrap();
            expected.extend_from_slice(&bytes);
            assert_eq!(file.length().unwrap(), expected.len() as u64);
        }
        file.sync().unwrap();
        assert!(OsVfs.read(&path).unwrap() == expected, "{lengths:?}");
        // Truncates in the middle of a page and appends there.
        let cut = expected.len() / 3;
        file.truncate(cut as u64).unwrap();
        assert_eq!(file.truncate(cut as u64 + 1).unwrap_err().kind(), ErrorKind::InvalidInput);
        expected.truncate(cut);
        file.append(&[9; 8192]).unwrap();
        expected.extend_from_slice(&[9; 8192]);
        let mut found = vec![0; expected.len()];
        file.read_at(0, &mut found).unwrap();
        assert!(found == expected, "{lengths:?}");
        file.append(&[8; 4096]).unwrap();
        assert_eq!(OsVfs.read(&path).unwrap().len(), expected.len() + 4096);
    }
}

/// Regression: a temporary file of a killed process made every later `create` of its name fail.
#[test]
fn an_exclusive_file_is_reused_only_if_it_is_not_locked() {
    let directory = tempfile::tempdir().unwrap();
    let memory = MemVfs::new();
    memory.create_dir_all(directory.path()).unwrap();
    for vfs in [&OsVfs as &dyn Vfs, &memory] {
        let path = directory.path().join("table.tmp");
        let target = directory.path().join("table");
        let first = vfs.create_exclusive(&path).unwrap();
        first.append(b"of a live writer").unwrap();
        assert_eq!(vfs.create_exclusive(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(vfs.read(&path).unwrap(), b"of a live writer");
        // A killed process leaves the file in this state.
        drop(first);
        let second = vfs.create_exclusive(&path).unwrap();
        assert_eq!((second.length().unwrap(), vfs.read(&path).unwrap().len()), (0, 0));
        second.append(b"whole").unwrap();
        second.sync().unwrap();
        vfs.rename(&path, &target).unwrap();
        // The renamed file is still locked; its former name is free.
        assert_eq!(vfs.create_exclusive(&target).unwrap_err().kind(), ErrorKind::AlreadyExists);
        let third = vfs.create_exclusive(&path).unwrap();
        third.append(b"another").unwrap();
        assert_eq!(vfs.read(&target).unwrap(), b"whole");
        drop((second, third));
        let missing = vfs.create_exclusive(&directory.path().join("missing/table.tmp"));
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
        vfs.remove(&path).unwrap();
        vfs.remove(&target).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn an_exclusive_file_does_not_follow_a_symbolic_link() {
    let directory = tempfile::tempdir().unwrap();
    let (other, link) = (directory.path().join("other"), directory.path().join("table.tmp"));
    OsVfs.create(&other).unwrap().append(b"of others").unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    assert!(OsVfs.create_exclusive(&link).is_err());
    assert_eq!(OsVfs.read(&other).unwrap(), b"of others");
}

/// Threads repeatedly create the same name: two never have it at once, and a renamed file keeps its content.
#[test]
fn an_exclusive_file_has_one_writer_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("table.tmp");
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let (path, directory) = (&path, directory.path());
            scope.spawn(move || {
                for round in 0..50 {
                    let file = loop {
                        match OsVfs.create_exclusive(path) {
                            Ok(file) => break file,
                            Err(_) => std::thread::yield_now(),
                        }
                    };
                    file.append(&[thread; 100]).unwrap();
                    let target = directory.join(format!("{thread}-{round}"));
                    OsVfs.rename(path, &target).unwrap();
                    drop(file);
                    assert_eq!(OsVfs.read(&target).unwrap(), [thread; 100]);
                }
            });
        }
    });
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 200, "every file has its own name");
}
