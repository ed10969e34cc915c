#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::{path::Path, sync::Arc};

use tamis_vfs::{Access, MemVfs, OperationKind, RecordVfs, Vfs};

use super::{DirectBuffer, OpenFiles, count_max_of};

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

/// The descriptor of a file may be closed while the file is in use: a foreign file with its name was read then.
#[test]
fn a_file_that_is_opened_again_must_be_the_same() {
    for access in [Access::Buffered, Access::Direct] {
        let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
        let content = |last: u8, length: usize| [vec![1; length - 1], vec![last]].concat();
        let write = |path: &str, bytes: &[u8]| {
            let _ = vfs.remove(Path::new(path));
            vfs.create(Path::new(path)).unwrap().append(bytes).unwrap();
        };
        let open_files = OpenFiles::with_limits(1, 0);
        let open = |path: &str| open_files.open(&vfs, Path::new(path), access).unwrap().file;
        write("/1", &content(1, 8_192));
        write("/2", &content(1, 4_096));
        let file = open("/1");
        let read = || {
            let mut buffer = DirectBuffer::zeroed(4_096);
            file.read_at(0, buffer.bytes_mut())
        };
        let close = || drop(open("/2"));
        close();
        write("/1", &content(2, 8_192));
        let refused = read().unwrap_err().to_string();
        assert!(
            refused.contains("got 0x02") && refused.contains("expected footer checksum 0x01"),
            "{refused}"
        );
        write("/1", &content(1, 4_096));
        let refused = read().unwrap_err().to_string();
        assert!(refused.contains("expected 8192 bytes, got 4096"), "{refused}");
        write("/1", &content(1, 8_192));
        read().unwrap();
    }
}
