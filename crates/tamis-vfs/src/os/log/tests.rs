//! Tests that preallocation does not change the content of a log, and which bytes follow its end.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::{fs, mem, sync::Arc};

use super::*;
use crate::{Access, OsVfs, Vfs};

fn bytes(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|index| ((seed * 31 + index * 7) % 251) as u8 + 1).collect()
}

/// Appends of sizes around the limits between the append paths.
fn fill(file: &dyn File) -> Vec<u8> {
    let start = file.length().unwrap();
    let mut expected = Vec::new();
    let sizes = [1, 100, 4095, 4096, 4097, LARGE_BYTES - 1, LARGE_BYTES, LARGE_BYTES + 1, 150, 3 << 20, 7];
    for (seed, size) in sizes.into_iter().cycle().take(33).enumerate() {
        let part = bytes(seed, size);
        file.append(&part).unwrap();
        expected.extend_from_slice(&part);
        assert_eq!(file.length().unwrap(), start + expected.len() as u64);
    }
    for seed in 0..30_000 {
        let part = bytes(seed, 140);
        file.append(&part).unwrap();
        expected.extend_from_slice(&part);
    }
    expected
}

#[test]
fn appends_of_all_sizes_are_read_by_every_handle() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let file = OsVfs.create_log(&path).unwrap();
    let expected = fill(&*file);
    let mut own = vec![0; expected.len()];
    file.read_at(0, &mut own).unwrap();
    assert_eq!(own, expected);
    assert!(file.read_at(1, &mut own).is_err(), "preallocated bytes are not content");
    let other = OsVfs.read(&path).unwrap();
    assert_eq!(other.get(..expected.len()).unwrap(), expected);
    assert!(other.len() as u64 <= expected.len() as u64 + WINDOW_BYTES_MAX);
    assert!(other.iter().skip(expected.len()).all(|&byte| byte == 0));
    file.sync().unwrap();
    drop(file);
    assert_eq!(OsVfs.read(&path).unwrap(), expected, "dropping the handle removes the preallocated bytes");
}

#[test]
fn a_file_without_preallocation_has_the_same_content() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let file = LogFile::new(fs::File::create_new(&path).unwrap());
    file.preallocation.lock().next_bytes = None;
    let expected = fill(&file);
    assert_eq!(OsVfs.read(&path).unwrap(), expected);
}

#[test]
fn preallocation_can_be_disabled_after_appends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let file = LogFile::new(fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap());
    let mut expected = fill(&file);
    let mut preallocation = file.preallocation.lock();
    file.disable_preallocation(&mut preallocation).unwrap();
    drop(preallocation);
    assert_eq!(OsVfs.read(&path).unwrap(), expected);
    expected.extend(fill(&file));
    assert_eq!(OsVfs.read(&path).unwrap(), expected);
}

#[test]
fn truncate_removes_bytes_and_the_next_append_starts_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let file = OsVfs.create_log(&path).unwrap();
    let mut expected = fill(&*file);
    assert!(file.truncate(expected.len() as u64 + 1).is_err());
    for length in [expected.len() - 5, 4096, 4095, 0] {
        file.truncate(length as u64).unwrap();
        expected.truncate(length);
        assert_eq!(OsVfs.read(&path).unwrap(), expected);
        file.append(b"again").unwrap();
        expected.extend_from_slice(b"again");
        assert_eq!(file.length().unwrap(), expected.len() as u64);
    }
    drop(file);
    assert_eq!(OsVfs.read(&path).unwrap(), expected);
}

#[test]
fn a_killed_process_leaves_its_appends_and_zero_bytes_after_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let file = OsVfs.create_log(&path).unwrap();
    file.append(b"record").unwrap();
    // A killed process runs no destructor.
    mem::forget(Arc::clone(&file));
    let found = OsVfs.open(&path, Access::Buffered).unwrap();
    let mut start = [0; 6];
    found.read_at(0, &mut start).unwrap();
    assert_eq!(&start, b"record");
    let all = OsVfs.read(&path).unwrap();
    assert!(all.iter().skip(6).all(|&byte| byte == 0));
}

#[test]
fn a_reused_log_is_empty_and_appends_like_a_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let file = OsVfs.create_log(&path).unwrap();
    let first = fill(&*file);
    drop(file);
    let blocks = |path| MetadataExt::blocks(&fs::metadata(path).unwrap());
    let before = blocks(&path);
    let file = OsVfs.reuse_log(&path).unwrap().unwrap();
    assert_eq!(file.length().unwrap(), 0);
    assert!(file.read_at(0, &mut [0]).is_err());
    let found = OsVfs.read(&path).unwrap();
    assert_eq!(found.len(), first.len());
    assert!(found.iter().all(|&byte| byte == 0), "old content remains");
    let next = directory.path().join("next");
    OsVfs.rename(&path, &next).unwrap();
    let few = bytes(5, 10_000);
    few.chunks(100).for_each(|part| file.append(part).unwrap());
    file.sync().unwrap();
    assert_eq!(blocks(&next), before, "the disk blocks are reused");
    let found = OsVfs.read(&next).unwrap();
    assert_eq!(found.get(..few.len()).unwrap(), few);
    assert!(found.iter().skip(few.len()).all(|&byte| byte == 0));
    // The log grows beyond its former length.
    let mut expected = few;
    expected.extend(fill(&*file));
    expected.extend(fill(&*file));
    drop(file);
    assert_eq!(OsVfs.read(&next).unwrap(), expected);
}

#[test]
fn a_log_with_two_names_is_not_reused() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("log"), directory.path().join("copy"));
    let file = OsVfs.create_log(&path).unwrap();
    file.append(b"kept").unwrap();
    drop(file);
    OsVfs.hard_link(&path, &copy).unwrap();
    assert!(OsVfs.reuse_log(&path).unwrap().is_none());
    assert_eq!(OsVfs.read(&copy).unwrap(), b"kept");
}

#[test]
fn a_reused_small_log_stays_small() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let file = OsVfs.create_log(&path).unwrap();
    file.append(&bytes(1, 10_000)).unwrap();
    drop(file);
    let file = OsVfs.reuse_log(&path).unwrap().unwrap();
    file.append(&bytes(2, 9_000)).unwrap();
    let length = fs::metadata(&path).unwrap().len();
    assert!(length <= 10_000 + WINDOW_BYTES_MIN, "{length} bytes on the disk");
}
