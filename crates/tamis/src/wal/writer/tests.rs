//! Tests of when bytes reach the operating system and the disk, and of what a failed append or sync leaves.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::{
    io::ErrorKind,
    sync::atomic::{AtomicU64, Ordering},
};

use tamis_vfs::{FaultVfs, MemVfs, OperationKind, RecordVfs, Rule, Vfs};

use super::*;
use crate::frame::frame_bytes;
use crate::store::runtime::ManualClock;
use crate::wal::tests::support::{
    DATABASE_ID, DEFERRED_BYTES_MAX, Numbers, append, folder, folder_in, log_files, new_vfs, open_log, path,
    payload, remove_below, replayed,
};

fn fault_log() -> (MemVfs, Arc<FaultVfs>, Log) {
    let inner = new_vfs();
    let vfs = Arc::new(FaultVfs::new(Arc::new(inner.clone())));
    let log = open_log(Arc::clone(&vfs) as Arc<dyn Vfs>, &Numbers::default(), &[]).unwrap();
    (inner, vfs, log)
}

fn found(vfs: &(impl Vfs + Clone)) -> Vec<u64> {
    replayed(vfs, 0).unwrap().0
}

#[test]
fn deferred_records_stay_in_the_process_up_to_the_limit() {
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
fn a_buffered_record_and_the_deferred_ones_are_one_write() {
    let vfs = Arc::new(RecordVfs::new(Arc::new(new_vfs())));
    let mut log = open_log(Arc::clone(&vfs) as Arc<dyn Vfs>, &Numbers::default(), &[]).unwrap();
    vfs.reset();
    append(&mut log, 1, Durability::Deferred).unwrap();
    append(&mut log, 2, Durability::Deferred).unwrap();
    assert_eq!(vfs.operations(), []);
    append(&mut log, 3, Durability::Buffered).unwrap();
    assert_eq!(vfs.operations().len(), 1);
    log.rotate().unwrap();
    vfs.reset();
    append(&mut log, 4, Durability::Synced).unwrap();
    let kinds: Vec<_> = vfs.operations().iter().map(|operation| operation.kind).collect();
    let sync = OperationKind::Sync;
    assert_eq!(kinds, [OperationKind::Append, sync, sync, OperationKind::SyncDir], "both segments");
    vfs.reset();
    append(&mut log, 5, Durability::Synced).unwrap();
    assert_eq!(vfs.operations().len(), 2, "the folder is synced once per segment");
    log.persist(Durability::Synced).unwrap();
    assert_eq!(vfs.operations().len(), 2, "nothing new to sync");
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
fn rotation_separates_records_by_number_and_leaves_no_empty_segment() {
    let (vfs, _, mut log) = fault_log();
    assert_eq!((log.number(), log.rotate().unwrap()), (1, 1));
    append(&mut log, 1, Durability::Deferred).unwrap();
    assert_eq!((log.rotate().unwrap(), log.rotate().unwrap()), (2, 2));
    append(&mut log, 2, Durability::Deferred).unwrap();
    let bytes = HEADER_BYTES + frame_bytes(HEADER_BYTES, 0, payload(1).len() as u64);
    assert_eq!(log.segments()[0], (1, bytes));
    assert_eq!(log.total_bytes(), bytes + log.segment_bytes());
    remove_below(&mut log, &vfs, 2).unwrap();
    log.flush_deferred().unwrap();
    assert_eq!(log.segments().len(), 1);
    assert_eq!(replayed(&vfs, 2).unwrap().0, [2]);
    log.close().unwrap();
    assert_eq!(log_files(&vfs).keys().collect::<Vec<_>>(), ["000002.log"]);
}

/// Names and lengths.
fn lengths(vfs: &dyn Vfs) -> Vec<(String, usize)> {
    log_files(vfs).into_iter().map(|(name, bytes)| (name, bytes.len())).collect()
}

#[test]
fn a_segment_that_was_filled_quickly_becomes_the_next_one() {
    let vfs = Arc::new(RecordVfs::new(Arc::new(new_vfs())));
    let mut log = open_log(Arc::clone(&vfs) as Arc<dyn Vfs>, &Numbers::default(), &[]).unwrap();
    for id in 1..9 {
        append(&mut log, id, Durability::Synced).unwrap();
    }
    assert_eq!(log.rotate().unwrap(), 2);
    append(&mut log, 9, Durability::Buffered).unwrap();
    remove_below(&mut log, &*vfs, 2).unwrap();
    let spare = folder().join("000001.log.obsolete");
    assert!(vfs.read(&spare).unwrap().is_empty(), "it is empty");
    assert_eq!(lengths(&*vfs).len(), 1, "and not under the name of a segment");
    assert_eq!(log.segments().len(), 1, "and is no part of the log");
    vfs.reset();
    assert_eq!(log.rotate().unwrap(), 3);
    let kinds: Vec<_> = vfs.operations().iter().map(|operation| operation.kind).collect();
    assert_eq!(kinds, [OperationKind::Rename, OperationKind::Append]);
    append(&mut log, 10, Durability::Buffered).unwrap();
    assert_eq!(
        lengths(&*vfs).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["000002.log", "000003.log"]
    );
    assert_eq!(replayed(&*vfs, 2).unwrap().0, [9, 10]);
}

#[test]
fn a_segment_that_was_filled_slowly_is_not_recycled_and_one_that_is_being_read_not_removed() {
    let clock = Arc::new(ManualClock::default());
    for is_slow in [true, false] {
        let (vfs, numbers) = (new_vfs(), AtomicU64::new(1));
        let setup = LogSetup {
            folder: folder_in(&vfs).unwrap(),
            database_id: DATABASE_ID,
            deferred_bytes_max: DEFERRED_BYTES_MAX,
            keep_changes: KeepChanges::default(),
            next_number: Box::new(move || numbers.fetch_add(1, Ordering::SeqCst)),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
        };
        let mut log = Log::create(setup, &[], &[]).unwrap();
        append(&mut log, 1, Durability::Buffered).unwrap();
        let hold = if is_slow { None } else { Some(log.pin_segments()) };
        clock.advance(RECYCLED_AGE_MAX * if is_slow { 2 } else { 0 });
        log.rotate().unwrap();
        append(&mut log, 2, Durability::Buffered).unwrap();
        remove_below(&mut log, &vfs, 2).unwrap();
        let left = if is_slow { &["000002.log"][..] } else { &["000001.log", "000002.log"] };
        assert_eq!(log_files(&vfs).keys().collect::<Vec<_>>(), left, "slow: {is_slow}");
        // From then on segments are recycled as usual.
        drop(hold);
        log.rotate().unwrap();
        append(&mut log, 3, Durability::Buffered).unwrap();
        remove_below(&mut log, &vfs, 3).unwrap();
        assert_eq!(log_files(&vfs).keys().collect::<Vec<_>>(), ["000003.log"]);
        let recycled = if is_slow { "000002.log.obsolete" } else { "000001.log.obsolete" };
        assert!(vfs.exists(&folder().join(recycled)).unwrap());
    }
}

#[test]
fn the_log_continues_if_a_segment_can_not_be_recycled() {
    for kind in [OperationKind::Reuse, OperationKind::Rename, OperationKind::Remove] {
        for rule in [Rule::error(ErrorKind::Other), Rule::error_after(ErrorKind::Other)] {
            for durability in [Durability::Synced, Durability::Buffered] {
                let (_, vfs, mut log) = fault_log();
                append(&mut log, 1, durability).unwrap();
                log.rotate().unwrap();
                append(&mut log, 2, durability).unwrap();
                let rule = vfs.add_rule(rule.clone().on(&[kind]).forever());
                let removed = remove_below(&mut log, &*vfs, 2);
                log.rotate().unwrap();
                // Also if the obsolete segment is gone, and was never synced.
                append(&mut log, 3, Durability::Synced).unwrap();
                vfs.remove_rule(rule);
                assert!(removed.is_ok() || kind == OperationKind::Remove);
                remove_below(&mut log, &*vfs, 2).unwrap();
                log.rotate().unwrap();
                append(&mut log, 4, Durability::Synced).unwrap();
                assert_eq!(replayed(&*vfs, 2).unwrap().0, [2, 3, 4], "{kind:?}");
                assert_eq!(log.segments().len(), 3);
            }
        }
    }
}

#[test]
fn a_header_of_an_obsolete_segment_is_torn_and_of_a_needed_one_damage() {
    let vfs = new_vfs();
    let mut log = open_log(Arc::new(vfs.clone()), &Numbers::default(), &[]).unwrap();
    append(&mut log, 1, Durability::Buffered).unwrap();
    log.rotate().unwrap();
    append(&mut log, 2, Durability::Buffered).unwrap();
    // After a crash a recycled segment can have the new name and the old bytes.
    vfs.rename(&FileName::Log(1).path(folder()), &FileName::Log(3).path(folder())).unwrap();
    let (found, report) = replayed(&vfs, 2).unwrap();
    assert_eq!((found, report.truncations.len()), (vec![2], 1));
    assert!(matches!(replayed(&vfs, 1), Err(Error::Corruption(_))), "segment 1 is needed");
}

#[test]
fn after_a_full_disk_the_log_continues_in_a_new_segment_with_deferred_records() {
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
        assert!(log.background_error().is_none());
        vfs.remove_rule(full);
        append(&mut log, 6, Durability::Buffered).unwrap();
        assert_eq!(found(&inner), [1, 2, 6], "truncation works: {truncates}");
        assert_eq!(log_files(&inner).len(), 2, "repeated failures leave no files");
        append(&mut log, 7, Durability::Synced).unwrap();
        for seed in 0..20 {
            assert_eq!(found(&inner.crash_clone(seed)), [1, 2, 6, 7]);
        }
    }
}

/// Deferred frames get shorter when they are moved to a segment of which nothing is synced.
#[test]
fn a_record_that_fails_in_a_new_segment_is_removed_from_the_pending_frames() {
    for deferred_count in 1..4 {
        let (inner, vfs, mut log) = fault_log();
        append(&mut log, 1, Durability::Synced).unwrap();
        for id in 0..deferred_count {
            append(&mut log, 2 + id, Durability::Deferred).unwrap();
        }
        let failing = |nth| Rule::error(ErrorKind::Other).on(&[OperationKind::Append]).nth(nth);
        vfs.add_rule(failing(1));
        append(&mut log, 10, Durability::Buffered).unwrap_err();
        // The header of the new segment is written, the record after it is not.
        vfs.add_rule(failing(2));
        append(&mut log, 11, Durability::Buffered).unwrap_err();
        append(&mut log, 12, Durability::Buffered).unwrap();
        append(&mut log, 13, Durability::Synced).unwrap();
        let expected: Vec<u64> = [1].into_iter().chain(2..2 + deferred_count).chain([12, 13]).collect();
        assert_eq!(found(&inner), expected);
    }
}

#[test]
fn a_segment_whose_first_append_fails_is_removed() {
    let (inner, vfs, mut log) = fault_log();
    for id in 1..5 {
        vfs.add_rule(Rule::short_append(3).nth(if id == 1 { 1 } else { 2 }));
        append(&mut log, id, Durability::Buffered).unwrap_err();
        assert!(log_files(&inner).is_empty());
    }
    append(&mut log, 5, Durability::Buffered).unwrap();
    assert_eq!((found(&inner), log_files(&inner).len()), (vec![5], 1));
}

/// The first segment may be closed before it has a record; the reader also needs the name of the one that is first then.
#[test]
fn the_name_of_the_first_segment_is_durable_after_an_earlier_one_failed() {
    let (inner, vfs, mut log) = fault_log();
    let rule = vfs.add_rule(Rule::error(ErrorKind::StorageFull).on(&[OperationKind::Append]));
    append(&mut log, 1, Durability::Buffered).unwrap_err();
    vfs.remove_rule(rule);
    append(&mut log, 2, Durability::Buffered).unwrap();
    log.rotate().unwrap();
    append(&mut log, 3, Durability::Buffered).unwrap();
    for seed in 0..100 {
        let found = found(&inner.crash_clone(seed));
        assert!([2, 3].starts_with(&found), "{found:?}");
    }
}

/// A checkpoint had recorded the segment, and failed because the file was missing.
#[test]
fn a_segment_whose_first_append_fails_stays_while_it_is_pinned() {
    for is_pinned in [false, true] {
        let (inner, vfs, mut log) = fault_log();
        let pin = is_pinned.then(|| log.pin_segments());
        vfs.add_rule(Rule::error(ErrorKind::Other).on(&[OperationKind::Append]));
        append(&mut log, 1, Durability::Buffered).unwrap_err();
        assert_eq!(log_files(&inner).contains_key("000001.log"), is_pinned);
        drop(pin);
        append(&mut log, 2, Durability::Synced).unwrap();
        assert_eq!(found(&inner), [2]);
    }
}

/// A crash lost the segment of later records, and brought the failed record back in the segment that was removed or truncated.
#[test]
fn a_failed_record_does_not_return_after_a_later_one_was_acknowledged() {
    for has_record in [false, true] {
        let (inner, vfs, mut log) = fault_log();
        append(&mut log, 1, Durability::Synced).unwrap();
        log.rotate().unwrap();
        log.persist(Durability::Synced).unwrap();
        if has_record {
            append(&mut log, 2, Durability::Buffered).unwrap();
        }
        vfs.add_rule(Rule::error_after(ErrorKind::Other).on(&[OperationKind::Append]));
        append(&mut log, 8, Durability::Buffered).unwrap_err();
        append(&mut log, 9, Durability::Buffered).unwrap();
        let mut later_count = 0;
        for seed in 0..200 {
            let found = found(&inner.crash_clone(seed));
            assert!(!found.contains(&8), "{found:?}");
            later_count += usize::from(found.contains(&9));
        }
        assert!((1..200).contains(&later_count), "crashes keep and lose the later record");
    }
}

/// The log after a crash that lost its front: the second segment exists, the header of the first one does not. The first
/// recovery is killed before it removed anything, so that the second one continues from a segment that is in the page cache
/// only.
#[test]
fn dropped_segments_are_removed_after_the_new_log_is_synced() {
    let (inner, _, mut log) = fault_log();
    append(&mut log, 1, Durability::Buffered).unwrap();
    log.rotate().unwrap();
    append(&mut log, 2, Durability::Buffered).unwrap();
    let second = log_files(&inner)["000002.log"].clone();
    let vfs = new_vfs();
    for (number, bytes) in [(1, &[][..]), (2, &second)] {
        let file = vfs.create(&path(number)).unwrap();
        file.append(bytes).unwrap();
        file.sync().unwrap();
    }
    vfs.sync_dir(&folder()).unwrap();
    let numbers = Numbers::starting_at(3);
    let cut = replayed(&vfs, 0).unwrap().1;
    assert_eq!((&cut.segments[..], &cut.obsolete[..]), (&[][..], &[1, 2][..]));
    drop(open_log(Arc::new(vfs.clone()), &numbers, &cut.segments).unwrap());
    let report = replayed(&vfs, 0).unwrap().1;
    assert_eq!((report.segments.len(), &report.obsolete[..]), (1, &[1, 2][..]));
    let mut log = open_log(Arc::new(vfs.clone()), &numbers, &report.segments).unwrap();
    log.persist(Durability::Synced).unwrap();
    for number in report.obsolete {
        vfs.remove(&path(number)).unwrap();
        for seed in 0..100 {
            assert!(found(&vfs.crash_clone(seed)).is_empty());
        }
    }
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
fn a_failed_sync_is_fatal_and_reports_its_cause() {
    for kind in [OperationKind::Sync, OperationKind::SyncDir] {
        for error in [ErrorKind::Other, ErrorKind::StorageFull] {
            let (inner, vfs, mut log) = fault_log();
            append(&mut log, 1, Durability::Buffered).unwrap();
            log.rotate().unwrap();
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
fn a_record_that_does_not_fit_is_refused_and_the_log_continues() {
    let (inner, _, mut log) = fault_log();
    let part = vec![0; 1 << 28];
    let parts = [part.as_slice(); 16];
    let error = log.append(&parts, Durability::Buffered, Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::BatchTooLarge { .. }));
    append(&mut log, 1, Durability::Buffered).unwrap();
    assert_eq!(found(&inner), [1]);
}
