//! Tests that files in memory behave like real files, and that a crash loses unsynced data only.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::{collections::BTreeMap, io::ErrorKind, path::Path, sync::Arc};

use proptest::prelude::*;

use crate::{Access, File, LockMode, MemVfs, Vfs, tests::proptest_config};

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn file_with(vfs: &MemVfs, name: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = vfs.create(path(name)).unwrap();
    file.append(bytes).unwrap();
    file
}

#[test]
fn open_handles_and_mappings_survive_remove() {
    let vfs = MemVfs::new();
    file_with(&vfs, "/a", b"abc");
    let handle = vfs.open(path("/a"), Access::Buffered).unwrap();
    let mapped = vfs.open(path("/a"), Access::Mapped).unwrap();
    vfs.remove(path("/a")).unwrap();
    let mut buffer = [0; 2];
    handle.read_at(1, &mut buffer).unwrap();
    assert_eq!(&buffer, b"bc");
    assert_eq!(***mapped.mapping().unwrap(), b"abc"[..]);
    assert!(!vfs.exists(path("/a")).unwrap());
}

#[test]
fn a_mapping_does_not_change_after_open() {
    let vfs = MemVfs::new();
    let writer = file_with(&vfs, "/a", b"abc");
    let mapped = vfs.open(path("/a"), Access::Mapped).unwrap();
    writer.append(b"def").unwrap();
    assert_eq!(***mapped.mapping().unwrap(), b"abc"[..]);
    assert_eq!(mapped.length().unwrap(), 3);
    assert_eq!(vfs.read(path("/a")).unwrap(), b"abcdef");
}

#[test]
fn clones_share_files_and_locks_but_crash_clones_do_not() {
    let vfs = MemVfs::new();
    let other = vfs.clone();
    file_with(&vfs, "/a", b"abc").sync().unwrap();
    vfs.sync_dir(path("/")).unwrap();
    assert_eq!(other.read(path("/a")).unwrap(), b"abc");
    drop(vfs.lock(path("/"), LockMode::Exclusive).unwrap());
    let _lock = vfs.lock(path("/"), LockMode::Exclusive).unwrap();
    assert_eq!(other.lock(path("/"), LockMode::Shared).unwrap_err().kind(), ErrorKind::WouldBlock);
    let after = vfs.crash_clone(1);
    let _free = after.lock(path("/"), LockMode::Exclusive).unwrap();
    after.remove(path("/a")).unwrap();
    assert!(vfs.exists(path("/a")).unwrap());
}

#[test]
fn a_crash_clone_is_deterministic_per_seed() {
    let vfs = MemVfs::new();
    for name in ["/a", "/b", "/c"] {
        file_with(&vfs, name, &[7; 2000]);
    }
    let contents = |seed| {
        let after = vfs.crash_clone(seed);
        let names = after.list(path("/")).unwrap();
        names.into_iter().map(|entry| after.read(&path("/").join(entry.name)).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(contents(5), contents(5));
    assert!((0..20).any(|seed| contents(seed) != contents(5)));
}

/// Produces every case of the drawing in the module documentation, and no other.
#[test]
fn unsynced_bytes_survive_or_are_lost_torn_or_corrupt() {
    let vfs = MemVfs::new();
    let file = file_with(&vfs, "/a", &[1; 700]);
    vfs.sync_dir(path("/")).unwrap();
    file.sync().unwrap();
    file.append(&[2; 900]).unwrap();
    file.append(&[3; 900]).unwrap();
    let whole = vfs.read(path("/a")).unwrap();
    let (mut all, mut none, mut first, mut torn, mut zeroed, mut garbage) = (0, 0, 0, 0, 0, 0);
    for seed in 0..400 {
        let found = vfs.crash_clone(seed).read(path("/a")).unwrap();
        assert_eq!(found[..700], whole[..700], "synced bytes changed with seed {seed}");
        assert!(found.len() <= whole.len());
        let is_prefix = whole.starts_with(&found);
        all += usize::from(found == whole);
        none += usize::from(found.len() == 700);
        first += usize::from(is_prefix && found.len() == 1600);
        torn += usize::from(is_prefix && found.len() > 1600 && found.len() < whole.len());
        zeroed += usize::from(found[700..].contains(&0));
        garbage += usize::from(found[700..].iter().any(|byte| *byte > 3));
    }
    assert!([all, none, first, torn, zeroed, garbage].iter().all(|count| *count > 10));
}

#[test]
fn a_crash_may_undo_an_unsynced_truncation() {
    let vfs = MemVfs::new();
    let file = file_with(&vfs, "/a", b"abcdef");
    vfs.sync_dir(path("/")).unwrap();
    file.sync().unwrap();
    file.truncate(3).unwrap();
    let found: Vec<Vec<u8>> = (0..50).map(|seed| vfs.crash_clone(seed).read(path("/a")).unwrap()).collect();
    assert!(found.iter().any(|bytes| bytes == b"abcdef") && found.iter().any(|bytes| bytes == b"abc"));
    file.sync().unwrap();
    assert!((0..50).all(|seed| vfs.crash_clone(seed).read(path("/a")).unwrap() == b"abc"));
}

#[test]
fn a_crash_keeps_or_loses_a_rename_atomically() {
    let vfs = MemVfs::new();
    file_with(&vfs, "/CURRENT", b"old").sync().unwrap();
    file_with(&vfs, "/CURRENT.tmp", b"new").sync().unwrap();
    vfs.sync_dir(path("/")).unwrap();
    vfs.rename(path("/CURRENT.tmp"), path("/CURRENT")).unwrap();
    // A later file with the old name of a renamed file must not remove the only durable name of that file.
    file_with(&vfs, "/CURRENT.tmp", b"next").sync().unwrap();
    let (mut old, mut new) = (0, 0);
    for seed in 0..60 {
        let after = vfs.crash_clone(seed);
        match after.read(path("/CURRENT")).unwrap().as_slice() {
            b"old" => {
                old += 1;
                assert_eq!(after.read(path("/CURRENT.tmp")).unwrap(), b"new");
            }
            b"new" => new += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(old > 0 && new > 0);
}

#[test]
fn hard_links_still_share_one_file_after_a_crash() {
    let vfs = MemVfs::new();
    let file = file_with(&vfs, "/a", b"abc");
    vfs.hard_link(path("/a"), path("/b")).unwrap();
    vfs.sync_dir(path("/")).unwrap();
    file.append(&[9; 3000]).unwrap();
    for seed in 0..20 {
        let after = vfs.crash_clone(seed);
        assert_eq!(after.read(path("/a")).unwrap(), after.read(path("/b")).unwrap());
    }
}

/// A crash never reorders data that one thread synced in order.
#[test]
fn a_crash_clone_is_consistent_during_concurrent_writes() {
    let vfs = MemVfs::new();
    let (first, second) = (file_with(&vfs, "/first", b""), file_with(&vfs, "/second", b""));
    // These files are between the two in name order. Copying them gives the writer time.
    for number in 0..200 {
        file_with(&vfs, &format!("/large-{number}"), &[1; 4096]);
    }
    vfs.sync_dir(path("/")).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..2000 {
                for file in [&first, &second] {
                    file.append(b"x").unwrap();
                    file.sync().unwrap();
                }
            }
        });
        let mut seed = 0;
        while !writer.is_finished() {
            seed += 1;
            let after = vfs.crash_clone(seed);
            let [first, second] = ["/first", "/second"].map(|name| after.read(path(name)).unwrap().len());
            assert!(first >= second, "{first} < {second}");
        }
    });
}

#[test]
fn direct_reads_must_be_aligned() {
    let vfs = MemVfs::new();
    file_with(&vfs, "/a", &[1; 8192]);
    let file = vfs.open(path("/a"), Access::Direct).unwrap();
    assert_eq!(file.read_at(1, &mut [0; 10]).unwrap_err().kind(), ErrorKind::InvalidInput);
}

/// One step of a scenario that ends with a power loss.
#[derive(Debug, Clone)]
enum Step {
    Create(u8),
    Append(u8, u16),
    Sync(u8),
    Rename(u8, u8),
    Link(u8, u8),
    Remove(u8),
    SyncDir,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..5_u8).prop_map(Step::Create),
        (0..5_u8, 0..2000_u16).prop_map(|(name, count)| Step::Append(name, count)),
        (0..5_u8).prop_map(Step::Sync),
        (0..5_u8, 0..5_u8).prop_map(|(source, target)| Step::Rename(source, target)),
        (0..5_u8, 0..5_u8).prop_map(|(source, target)| Step::Link(source, target)),
        (0..5_u8).prop_map(Step::Remove),
        Just(Step::SyncDir),
    ]
}

/// A file of the model: handle, all bytes, synced length.
struct ModelFile {
    file: Arc<dyn File>,
    bytes: Vec<u8>,
    synced: usize,
}

proptest! {
    #![proptest_config(proptest_config(1000))]

    /// After a crash every name refers to a file that had this name at the last sync of the directory or later,
    /// and that file has all its synced bytes. Names that did not change since that sync exist.
    #[test]
    fn a_crash_keeps_all_synced_data(steps in prop::collection::vec(step(), 1..40), seed: u64) {
        let vfs = MemVfs::new();
        let mut files: Vec<ModelFile> = Vec::new();
        let mut names: BTreeMap<u8, usize> = BTreeMap::new();
        let mut durable: BTreeMap<u8, usize> = BTreeMap::new();
        let mut assigned: Vec<(u8, usize)> = Vec::new();
        let mut changed: Vec<u8> = Vec::new();
        let mut unnamed: Vec<usize> = Vec::new();
        for step in steps {
            match step {
                Step::Create(name) if !names.contains_key(&name) => {
                    let file = vfs.create(path(&format!("/{name}"))).unwrap();
                    let mark = [files.len() as u8 + 1; 16].to_vec();
                    file.append(&mark).unwrap();
                    file.sync().unwrap();
                    names.insert(name, files.len());
                    files.push(ModelFile { file, bytes: mark, synced: 16 });
                    changed.push(name);
                }
                Step::Append(name, count) if names.contains_key(&name) => {
                    let file = &mut files[names[&name]];
                    let bytes = vec![count as u8; usize::from(count)];
                    file.file.append(&bytes).unwrap();
                    file.bytes.extend_from_slice(&bytes);
                }
                Step::Sync(name) if names.contains_key(&name) => {
                    let file = &mut files[names[&name]];
                    file.file.sync().unwrap();
                    file.synced = file.bytes.len();
                }
                Step::Rename(source, target) if names.contains_key(&source) => {
                    vfs.rename(path(&format!("/{source}")), path(&format!("/{target}"))).unwrap();
                    if names.get(&target) != names.get(&source) {
                        let index = names.remove(&source).unwrap();
                        unnamed.extend(names.get(&target));
                        names.insert(target, index);
                        changed.extend([source, target]);
                    }
                }
                Step::Link(source, target) if names.contains_key(&source) && !names.contains_key(&target) => {
                    vfs.hard_link(path(&format!("/{source}")), path(&format!("/{target}"))).unwrap();
                    names.insert(target, names[&source]);
                    changed.push(target);
                }
                Step::Remove(name) if names.contains_key(&name) => {
                    vfs.remove(path(&format!("/{name}"))).unwrap();
                    unnamed.extend(names.remove(&name));
                    changed.push(name);
                }
                Step::SyncDir => {
                    vfs.sync_dir(path("/")).unwrap();
                    durable = names.clone();
                    assigned.clear();
                    changed.clear();
                    unnamed.clear();
                }
                _ => {}
            }
            assigned.extend(names.iter().map(|(name, index)| (*name, *index)));
        }
        let after = vfs.crash_clone(seed);
        for name in 0..5_u8 {
            let file = path(&format!("/{name}")).to_path_buf();
            let is_there = after.exists(&file).unwrap();
            if !changed.contains(&name) {
                prop_assert_eq!(is_there, durable.contains_key(&name), "name {} was synced", name);
            }
            if is_there {
                let found = after.read(&file).unwrap();
                let index = usize::from(found[0]) - 1;
                prop_assert!(assigned.contains(&(name, index)) || durable.get(&name) == Some(&index));
                prop_assert!(found.len() >= files[index].synced && found.len() <= files[index].bytes.len());
                prop_assert_eq!(&found[..files[index].synced], &files[index].bytes[..files[index].synced]);
            }
        }
        // A file that was renamed or linked, and lost no name by a removal or replacement, still has a name.
        for index in durable.values().filter(|index| !unnamed.contains(index)) {
            let is_found = (0..5_u8).any(|name| {
                after.read(path(&format!("/{name}"))).is_ok_and(|found| usize::from(found[0]) - 1 == *index)
            });
            prop_assert!(is_found, "file {} is lost", index);
        }
    }
}

#[test]
fn a_reused_log_may_contain_old_bytes_until_it_is_synced() {
    let vfs = MemVfs::new();
    let path = Path::new("/log");
    let log = vfs.create_log(path).unwrap();
    log.append(&[1; 5_000]).unwrap();
    log.sync().unwrap();
    vfs.sync_dir(Path::new("/")).unwrap();
    let log = vfs.reuse_log(path).unwrap().unwrap();
    log.append(&[2; 1_500]).unwrap();
    let after: Vec<_> = (0..200).map(|seed| vfs.crash_clone(seed).read(path).unwrap()).collect();
    assert!(after.iter().all(|bytes| bytes.len() == 5_000));
    let has = |byte| after.iter().filter(|bytes| bytes.contains(&byte)).count();
    for byte in 0..3 {
        assert!((20..200).contains(&has(byte)), "{byte}: {}", has(byte));
    }
    log.sync().unwrap();
    let after: Vec<_> = (0..50).map(|seed| vfs.crash_clone(seed).read(path).unwrap()).collect();
    assert!(after.iter().all(|bytes| bytes.starts_with(&[2; 1_500]) && !bytes.contains(&1)));
}

#[test]
fn release_locks_and_a_crash_unlock_exclusive_files() {
    let vfs = MemVfs::new();
    std::mem::forget(vfs.create_exclusive(path("/a")).unwrap());
    assert_eq!(vfs.create_exclusive(path("/a")).unwrap_err().kind(), ErrorKind::AlreadyExists);
    vfs.sync_dir(path("/")).unwrap();
    vfs.crash_clone(1).create_exclusive(path("/a")).unwrap();
    vfs.release_locks();
    vfs.create_exclusive(path("/a")).unwrap();
}
