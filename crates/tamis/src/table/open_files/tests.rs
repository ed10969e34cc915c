#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::{path::Path, sync::Arc};

use tamis_vfs::{Access, MemVfs, OperationKind, RecordVfs, Vfs};

use super::{OpenFiles, count_max_of};

#[test]
fn the_maximum_leaves_descriptors_to_others() {
    let limits = [Some(16), Some(64), Some(256), Some(1024), None].map(count_max_of);
    assert_eq!(limits, [8, 16, 160, 736, 74_968]);
}

#[test]
fn the_file_that_was_not_used_for_longest_is_closed_and_opened_again() {
    let vfs = RecordVfs::new(Arc::new(MemVfs::new()));
    let open_files = OpenFiles::with_limits(2, 0);
    let shared: Arc<dyn Vfs> = Arc::new(vfs.clone());
    let files: Vec<_> = (0..4_u8)
        .map(|number| {
            let path = format!("/{number}");
            vfs.create(Path::new(&path)).unwrap().append(&[number]).unwrap();
            open_files.open(&shared, Path::new(&path), Access::Buffered).unwrap().file
        })
        .collect();
    assert_eq!(open_files.count(), 2);
    let opens = || vfs.operations().iter().filter(|operation| operation.kind == OperationKind::Open).count();
    let before = opens();
    let read = |number: u8| {
        let mut byte = [0];
        files[usize::from(number)].read_at(0, &mut byte).unwrap();
        assert_eq!(byte, [number]);
    };
    read(3);
    read(2);
    assert_eq!(opens() - before, 0, "the files opened last are open");
    read(0);
    read(0);
    assert_eq!(opens() - before, 1);
    for _ in 0..3 {
        (0..4).for_each(read);
        assert!(open_files.count() <= 2);
    }
    drop(files);
    assert_eq!(open_files.count(), 0);
}

#[test]
fn files_beyond_the_maximum_of_mappings_are_read_without_one() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    let path = Path::new("/1");
    vfs.create(path).unwrap().append(&[7]).unwrap();
    let open_files = OpenFiles::with_limits(2, 2);
    let open = || open_files.open(&vfs, path, Access::Mapped).unwrap();
    let files = [open(), open(), open(), open()];
    let mapped: Vec<bool> = files.iter().map(|open| open.file.mapping().is_some()).collect();
    assert_eq!(mapped, [true, true, false, false]);
    for open in &files {
        let mut byte = [0];
        open.file.read_at(0, &mut byte).unwrap();
        assert_eq!((byte, open.access == Access::Mapped), ([7], open.file.mapping().is_some()));
    }
    drop(files);
    assert!(open().file.mapping().is_some(), "dropped mappings no longer count");
}
