//! When bytes reach the operating system and the disk, and what a failed append or sync leaves.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::io::ErrorKind;

use tamis_vfs::{FaultVfs, MemVfs, OperationKind, RecordVfs, Rule};

use super::*;
use crate::frame::frame_bytes;
use crate::wal::testing::{
    DEFERRED_BYTES_MAX, Numbers, append, log_files, new_vfs, open_log, payload, replayed,
};

fn fault_log() -> (MemVfs, Arc<FaultVfs>, Log) {
    let inner = new_vfs();
    let vfs = Arc::new(FaultVfs::new(Arc::new(inner.clone())));
    let log = open_log(Arc::clone(&vfs) as Arc<dyn Vfs>, &Numbers::default(), &[]).unwrap();
    (inner, vfs, log)
}

fn found(vfs: &dyn Vfs) -> Vec<u64> {
    replayed(vfs, 0).unwrap().0
}

#[test]
fn deferred_records_wait_in_the_process_up_to_the_bound() {
    let (vfs, _, mut log) = fault_log();
    let record = payload(1);
    let now = Duration::from_millis(5);
    log.append(&[&record], Durability::Deferred, now).unwrap();
    log.append(&[&payload(2)], Durability::Deferred, now * 2).unwrap();
    assert_eq!((found(&vfs), log.deferred_since()), (vec![], Some(now)));
    let file_bytes = |vfs: &MemVfs| log_files(vfs)["000001.log"].len();
    let mut id = 3;
    while file_bytes(&vfs) == HEADER_BYTES as usize {
        log.append(&[&payload(id)], Durability::Deferred, now).unwrap();
        id += 1;
    }
    assert!(file_bytes(&vfs) > DEFERRED_BYTES_MAX);
    assert_eq!((found(&vfs), log.deferred_since()), ((1..id).collect(), None));
    log.append(&[&payload(id)], Durability::Deferred, now).unwrap();
    log.flush_deferred().unwrap();
    assert_eq!((found(&vfs).last(), log.deferred_since()), (Some(&id), None));
}

#[test]
fn a_buffered_record_takes_the_deferred_ones_along_in_one_write() {
    let vfs = Arc::new(RecordVfs::new(Arc::new(new_vfs())));
    let mut log = open_log(Arc::clone(&vfs) as Arc<dyn Vfs>, &Numbers::default(), &[]).unwrap();
    vfs.reset();
    append(&mut log, 1, Durability::Deferred).unwrap();
    append(&mut log, 2, Durability::Deferred).unwrap();
    assert_eq!(vfs.operations(), []);
    append(&mut log, 3, Durability::Buffered).unwrap();
    assert_eq!(vfs.operations().len(), 1);
    vfs.reset();
    append(&mut log, 4, Durability::Synced).unwrap();
    let kinds: Vec<_> = vfs.operations().iter().map(|operation| operation.kind).collect();
    assert_eq!(kinds, [OperationKind::Append, OperationKind::Sync, OperationKind::SyncDir]);
    vfs.reset();
    append(&mut log, 5, Durability::Synced).unwrap();
    assert_eq!(vfs.operations().len(), 2, "the folder is synced once per segment");
    log.persist(Durability::Synced).unwrap();
    assert_eq!(vfs.operations().len(), 2, "nothing new, nothing to sync");
    assert_eq!(found(&*vfs), [1, 2, 3, 4, 5]);
}

#[test]
fn parts_become_one_record() {
    let (vfs, _, mut log) = fault_log();
    log.append(&[&payload(1), &payload(2)], Durability::Buffered, Duration::ZERO).unwrap();
    let (ids, report) = replayed(&vfs, 0).unwrap();
    assert_eq!((ids, report.records), (vec![1, 2], 1));
}

#[test]
fn a_sync_makes_earlier_segments_durable_too() {
    let (vfs, _, mut log) = fault_log();
    append(&mut log, 1, Durability::Buffered).unwrap();
    assert_eq!(log.rotate().unwrap(), 2);
    append(&mut log, 2, Durability::Buffered).unwrap();
    assert_eq!(log.rotate().unwrap(), 3);
    append(&mut log, 3, Durability::Synced).unwrap();
    for seed in 0..50 {
        assert_eq!(found(&vfs.crash_clone(seed)), [1, 2, 3]);
    }
}

#[test]
fn replayed_segments_are_synced_before_a_later_record_counts_as_durable() {
    let (vfs, _, mut log) = fault_log();
    append(&mut log, 1, Durability::Buffered).unwrap();
    drop(log);
    let (_, report) = replayed(&vfs, 0).unwrap();
    let mut log = open_log(Arc::new(vfs.clone()), &Numbers::starting_at(2), &report.segments).unwrap();
    append(&mut log, 2, Durability::Synced).unwrap();
    for seed in 0..50 {
        assert_eq!(found(&vfs.crash_clone(seed)), [1, 2]);
    }
}

#[test]
fn rotation_parts_records_by_number_and_leaves_no_empty_segment() {
    let (vfs, _, mut log) = fault_log();
    assert_eq!((log.number(), log.rotate().unwrap()), (1, 1));
    append(&mut log, 1, Durability::Deferred).unwrap();
    assert_eq!((log.rotate().unwrap(), log.rotate().unwrap()), (2, 2));
    append(&mut log, 2, Durability::Deferred).unwrap();
    let bytes = HEADER_BYTES + frame_bytes(HEADER_BYTES, 0, payload(1).len() as u64);
    assert_eq!(log.segments()[0], (1, bytes));
    assert_eq!(log.total_bytes(), bytes + log.segment_bytes());
    log.remove_below(2).unwrap();
    log.flush_deferred().unwrap();
    assert_eq!(log.segments().len(), 1);
    assert_eq!(log_files(&vfs).keys().collect::<Vec<_>>(), ["000002.log"]);
    assert_eq!(replayed(&vfs, 2).unwrap().0, [2]);
}

#[test]
fn after_a_full_disk_the_log_goes_on_in_a_new_segment_and_keeps_deferred_records() {
    for truncates in [true, false] {
        let (inner, vfs, mut log) = fault_log();
        append(&mut log, 1, Durability::Synced).unwrap();
        append(&mut log, 2, Durability::Deferred).unwrap();
        let full = vfs.add_rule(Rule::disk_full(30));
        if !truncates {
            vfs.add_rule(Rule::error(ErrorKind::Other).on(&[OperationKind::Truncate]));
        }
        for id in 3..6 {
            let error = append(&mut log, id, Durability::Buffered).unwrap_err();
            assert!(matches!(error, Error::DiskFull { .. }), "{error}");
        }
        assert!(log.refusal().is_none());
        vfs.remove_rule(full);
        append(&mut log, 6, Durability::Buffered).unwrap();
        assert_eq!(found(&inner), [1, 2, 6], "the file could be cut: {truncates}");
        assert_eq!(log_files(&inner).len(), 2, "failing again and again leaves no files");
        append(&mut log, 7, Durability::Synced).unwrap();
        for seed in 0..20 {
            assert_eq!(found(&inner.crash_clone(seed)), [1, 2, 6, 7]);
        }
    }
}

/// Deferred frames get shorter when they are moved to a segment of which nothing is synced.
#[test]
fn a_record_that_fails_in_a_new_segment_leaves_nothing_of_itself_behind_deferred_ones() {
    for deferred_count in 1..4 {
        let (inner, vfs, mut log) = fault_log();
        append(&mut log, 1, Durability::Synced).unwrap();
        for id in 0..deferred_count {
            append(&mut log, 2 + id, Durability::Deferred).unwrap();
        }
        let failing = |nth| Rule::error(ErrorKind::Other).on(&[OperationKind::Append]).nth(nth);
        vfs.add_rule(failing(1));
        append(&mut log, 10, Durability::Buffered).unwrap_err();
        // The header of the new segment passes, what stands behind it does not.
        vfs.add_rule(failing(2));
        append(&mut log, 11, Durability::Buffered).unwrap_err();
        append(&mut log, 12, Durability::Buffered).unwrap();
        append(&mut log, 13, Durability::Synced).unwrap();
        let expected: Vec<u64> = [1].into_iter().chain(2..2 + deferred_count).chain([12, 13]).collect();
        assert_eq!(found(&inner), expected);
    }
}

#[test]
fn a_segment_whose_first_append_fails_is_not_left() {
    let (inner, vfs, mut log) = fault_log();
    for id in 1..5 {
        vfs.add_rule(Rule::short_append(3).nth(if id == 1 { 1 } else { 2 }));
        append(&mut log, id, Durability::Buffered).unwrap_err();
        assert!(log_files(&inner).is_empty());
    }
    append(&mut log, 5, Durability::Buffered).unwrap();
    assert_eq!((found(&inner), log_files(&inner).len()), (vec![5], 1));
}

#[test]
fn a_failed_rotation_changes_nothing() {
    let (inner, vfs, mut log) = fault_log();
    append(&mut log, 1, Durability::Buffered).unwrap();
    vfs.add_rule(Rule::error(ErrorKind::StorageFull).on(&[OperationKind::Create]));
    assert!(matches!(log.rotate(), Err(Error::DiskFull { .. })));
    assert_eq!(log.number(), 1);
    append(&mut log, 2, Durability::Buffered).unwrap();
    assert_eq!(found(&inner), [1, 2]);
}

#[test]
fn a_failed_sync_is_final_and_names_its_cause() {
    for kind in [OperationKind::Sync, OperationKind::SyncDir] {
        for error in [ErrorKind::Other, ErrorKind::StorageFull] {
            let (inner, vfs, mut log) = fault_log();
            append(&mut log, 1, Durability::Buffered).unwrap();
            vfs.add_rule(Rule::error(error).on(&[kind]));
            append(&mut log, 2, Durability::Synced).unwrap_err();
            for durability in [Durability::Deferred, Durability::Buffered, Durability::Synced] {
                match append(&mut log, 3, durability) {
                    Err(Error::WritesRefused { cause }) => assert!(cause.contains("sync /db"), "{cause}"),
                    other => panic!("{other:?}"),
                }
            }
            assert!(matches!(log.rotate(), Err(Error::WritesRefused { .. })));
            assert!(matches!(log.persist(Durability::Synced), Err(Error::WritesRefused { .. })));
            assert!(matches!(log.close(), Err(Error::WritesRefused { .. })));
            assert_eq!(found(&inner)[0], 1);
        }
    }
}

#[test]
fn a_record_that_does_not_fit_is_refused_and_the_log_goes_on() {
    let (inner, _, mut log) = fault_log();
    let part = vec![0; 1 << 28];
    let parts = [part.as_slice(); 16];
    let error = log.append(&parts, Durability::Buffered, Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::BatchTooLarge { .. }));
    append(&mut log, 1, Durability::Buffered).unwrap();
    assert_eq!(found(&inner), [1]);
}
