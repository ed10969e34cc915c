//! Tests of what differs from Unix.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;

#[test]
fn an_open_folder_is_neither_renamed_nor_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (path, moved) = (directory.path().join("store"), directory.path().join("moved"));
    OsVfs.create_dir_all(&path).unwrap();
    let folder = OsVfs.open_folder(&path).unwrap();
    assert!(fs::rename(&path, &moved).is_err());
    assert!(fs::remove_dir(&path).is_err());
    folder.create_dir_all(&path.join("below/deep")).unwrap();
    folder.create(&path.join("below/deep/a")).unwrap().append(b"bytes").unwrap();
    folder.rename(&path.join("below/deep/a"), &path.join("b")).unwrap();
    folder.check_folder().unwrap();
    assert_eq!(OsVfs.read(&path.join("b")).unwrap(), b"bytes");
    drop(folder);
    fs::rename(&path, &moved).unwrap();
}

#[test]
fn a_mapped_file_is_renamed_and_then_removed_when_its_mapping_ends() {
    let directory = tempfile::tempdir().unwrap();
    let [path, obsolete] = ["1.table", "1.obsolete"].map(|name| directory.path().join(name));
    OsVfs.create(&path).unwrap().append(b"abc").unwrap();
    let file = OsVfs.open(&path, Access::Mapped).unwrap();
    OsVfs.rename(&path, &obsolete).unwrap();
    assert_eq!(***file.mapping().unwrap(), b"abc"[..]);
    let removed = OsVfs.remove(&obsolete);
    assert_eq!(***file.mapping().unwrap(), b"abc"[..]);
    drop(file);
    if removed.is_err() {
        OsVfs.remove(&obsolete).unwrap();
    }
    assert!(!OsVfs.exists(&obsolete).unwrap());
}

#[test]
fn the_file_of_the_lock_is_not_listed() {
    let directory = tempfile::tempdir().unwrap();
    let lock = OsVfs.lock(directory.path(), LockMode::Exclusive).unwrap();
    assert_eq!(OsVfs.list(directory.path()).unwrap(), []);
    drop(lock);
    assert!(directory.path().join(LOCK_NAME).exists());
}
