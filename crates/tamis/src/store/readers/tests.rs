#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::{path::Path, sync::Arc};

use tamis_vfs::{Folder, MemVfs, Vfs};

use super::{READERS, ReadVersion, RegisteredReaders, Registration};
use crate::file_name::FileName;

fn folder() -> (Arc<MemVfs>, Folder) {
    let vfs = Arc::new(MemVfs::new());
    vfs.create_dir_all(Path::new("/db")).unwrap();
    let folder = Folder::open(&*vfs, Path::new("/db")).unwrap();
    (vfs, folder)
}

fn version(tables: &[u64]) -> ReadVersion {
    let files = tables.iter().flat_map(|number| [FileName::Table(*number), FileName::View(number + 1)]);
    ReadVersion { process_id: 7, since: 1_000, sequence: 9, files: files.collect() }
}

#[test]
fn a_reader_needs_all_files_until_it_lists_its_own() {
    let (_vfs, folder) = folder();
    assert!(RegisteredReaders::find(&folder).unwrap().is_empty());
    let reader = Registration::create(&folder).unwrap();
    let found = RegisteredReaders::find(&folder).unwrap();
    assert!(found.may_need_all() && found.need(FileName::Log(3)));
    reader.set_version(&version(&[3, 300])).unwrap();
    let found = RegisteredReaders::find(&folder).unwrap();
    assert!(!found.may_need_all() && !found.is_empty());
    let names =
        [FileName::Table(3), FileName::View(4), FileName::Table(300), FileName::Table(4), FileName::Log(3)];
    assert_eq!(names.map(|name| found.need(name)), [true, true, true, false, false]);
    let statistics = found.statistics(|name| if name == FileName::Table(3) { 10 } else { 0 }, 4_000);
    let [statistics] = statistics.as_slice() else { panic!("{statistics:?}") };
    assert_eq!((statistics.process_id, statistics.age.as_millis(), statistics.held_bytes), (7, 3_000, 10));
    drop(reader);
    assert!(RegisteredReaders::find(&folder).unwrap().is_empty());
}

#[test]
fn the_file_of_a_killed_reader_is_removed() {
    let (vfs, folder) = folder();
    let reader = Registration::create(&folder).unwrap();
    std::mem::forget(reader);
    assert!(RegisteredReaders::find(&folder).unwrap().may_need_all());
    let crashed = vfs.crash_clone(1);
    let folder = Folder::open(&crashed, Path::new("/db")).unwrap();
    assert!(RegisteredReaders::find(&folder).unwrap().is_empty());
    assert_eq!(crashed.list(&Path::new("/db").join(READERS)).unwrap(), []);
}

#[test]
fn a_damaged_list_counts_as_none() {
    let bytes = version(&[1, 2, 3, 1_000_000]).encode();
    assert_eq!(ReadVersion::decode(&bytes), Some(version(&[1, 2, 3, 1_000_000])));
    for position in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1;
        assert_eq!(ReadVersion::decode(&damaged), None);
        assert_eq!(ReadVersion::decode(&bytes[..position]), None);
    }
}
