//! Tests that operations are counted by kind and by file.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::{path::Path, sync::Arc};

use crate::{Access, MemVfs, OperationKind, RecordVfs, Tally, Vfs};

fn path(name: &str) -> &Path {
    Path::new(name)
}

#[test]
fn operations_and_bytes_are_counted_by_kind_and_suffix() {
    let vfs = RecordVfs::new(Arc::new(MemVfs::new()));
    let log = vfs.create(path("/1.log")).unwrap();
    let current = vfs.create(path("/CURRENT")).unwrap();
    log.append(b"abc").unwrap();
    log.append(b"de").unwrap();
    current.append(b"x").unwrap();
    log.sync().unwrap();
    log.read_at(1, &mut [0; 2]).unwrap();
    assert_eq!(vfs.tally_of(OperationKind::Append, ".log"), Tally { count: 2, bytes: 5 });
    assert_eq!(vfs.tally_of(OperationKind::Append, "CURRENT"), Tally { count: 1, bytes: 1 });
    assert_eq!(vfs.tally(OperationKind::Append), Tally { count: 3, bytes: 6 });
    assert_eq!(vfs.tally_of(OperationKind::Read, ".log"), Tally { count: 1, bytes: 2 });
    assert_eq!(vfs.tally(OperationKind::Sync).count, 1);
    assert_eq!(vfs.tally(OperationKind::Remove), Tally::default());
}

#[test]
fn the_log_lists_kind_name_offset_and_length_in_order() {
    let vfs = RecordVfs::new(Arc::new(MemVfs::new()));
    let log = vfs.create(path("/1.log")).unwrap();
    log.append(b"abc").unwrap();
    log.append(b"de").unwrap();
    log.truncate(4).unwrap();
    vfs.rename(path("/1.log"), path("/2.log")).unwrap();
    let operations = vfs.operations();
    let seen: Vec<_> = operations
        .iter()
        .map(|operation| (operation.kind, operation.file_name(), operation.offset, operation.length_bytes))
        .collect();
    let name = "1.log".to_owned();
    assert_eq!(
        seen,
        [
            (OperationKind::Create, name.clone(), 0, 0),
            (OperationKind::Append, name.clone(), 0, 3),
            (OperationKind::Append, name.clone(), 3, 2),
            (OperationKind::Truncate, name.clone(), 4, 0),
            (OperationKind::Rename, name, 0, 0),
        ]
    );
    assert_eq!(operations[4].target.as_deref(), Some(path("/2.log")));
}

#[test]
fn a_read_counts_every_block_that_it_overlaps() {
    let vfs = RecordVfs::new(Arc::new(MemVfs::new()));
    vfs.create(path("/1.table")).unwrap().append(&[0; 4096 * 4]).unwrap();
    let table = vfs.open(path("/1.table"), Access::Buffered).unwrap();
    assert_eq!(vfs.blocks_read(".table", 4096), 0);
    table.read_at(0, &mut [0; 4096]).unwrap();
    assert_eq!(vfs.blocks_read(".table", 4096), 1);
    table.read_at(4095, &mut [0; 2]).unwrap();
    assert_eq!(vfs.blocks_read(".table", 4096), 3);
    assert_eq!(vfs.blocks_read(".log", 4096), 0);
    vfs.reset();
    assert_eq!(vfs.blocks_read(".table", 4096), 0);
    assert!(vfs.operations().is_empty());
    table.read_at(4096, &mut [0; 8192]).unwrap();
    assert_eq!(vfs.blocks_read(".table", 4096), 2);
}

#[test]
fn reads_through_a_mapping_are_not_counted() {
    let vfs = RecordVfs::new(Arc::new(MemVfs::new()));
    vfs.create(path("/1.table")).unwrap().append(b"abc").unwrap();
    let table = vfs.open(path("/1.table"), Access::Mapped).unwrap();
    vfs.reset();
    assert_eq!(***table.mapping().unwrap(), b"abc"[..]);
    assert_eq!(vfs.tally(OperationKind::Read), Tally::default());
}

#[test]
fn failed_operations_are_recorded_too() {
    let vfs = RecordVfs::new(Arc::new(MemVfs::new()));
    vfs.open(path("/none"), Access::Buffered).unwrap_err();
    assert_eq!(vfs.tally_of(OperationKind::Open, "none").count, 1);
}
