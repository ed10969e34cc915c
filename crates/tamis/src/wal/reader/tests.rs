//! Chains with gaps, foreign and obsolete segments; and that reading writes nothing.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::sync::Arc;

use tamis_vfs::{FaultVfs, MemVfs, OperationKind, RecordVfs, Rule, Vfs};

use super::*;
use crate::{
    frame::{file_bytes::PIECE_BYTES, put_frame_parts},
    options::Durability,
    wal::tests::support::{
        DATABASE_ID, Numbers, append, folder_in, log_files, new_vfs, open_log, path, payload, remove_below,
        replayed, replayed_with, vfs_of, write,
    },
};

fn known() -> KnownLog {
    KnownLog { database_id: DATABASE_ID, ..KnownLog::default() }
}

/// One record in each of `count` segments.
fn chain(count: u64, durability: Durability) -> MemVfs {
    let vfs = new_vfs();
    let mut log = open_log(Arc::new(vfs.clone()), &Numbers::default(), &[]).unwrap();
    for id in 1..=count {
        append(&mut log, id, durability).unwrap();
        if id < count {
            log.rotate().unwrap();
        }
    }
    vfs
}

/// A segment with one record.
fn segment(number: u64, previous: SegmentEnd, id: u64) -> Vec<u8> {
    let header = SegmentHeader {
        database_id: DATABASE_ID,
        number,
        previous: previous.number,
        previous_bytes: previous.bytes,
        previous_synced: previous.synced,
    };
    let mut bytes = header.encode();
    let seed = segment_seed(DATABASE_ID, number);
    put_frame_parts(&mut bytes, seed, HEADER_BYTES, 0, &[&payload(id)]).unwrap();
    bytes
}

#[test]
fn a_missing_segment_of_a_synced_log_is_an_error() {
    for gone in [1, 2] {
        let vfs = chain(3, Durability::Synced);
        vfs.remove(&path(gone)).unwrap();
        assert!(matches!(replayed(&vfs, 0), Err(Error::MissingFile { path: p, .. }) if p == path(gone)));
        assert!(matches!(replayed(&vfs, gone), Err(Error::MissingFile { .. })));
        let (ids, report) = replayed(&vfs, gone + 1).unwrap();
        assert_eq!(ids, (gone + 1..=3).collect::<Vec<_>>());
        assert_eq!(report.obsolete, (1..gone).collect::<Vec<_>>());
    }
}

#[test]
fn replay_ends_at_an_unsynced_gap_and_reports_it() {
    let vfs = chain(4, Durability::Buffered);
    vfs.remove(&path(2)).unwrap();
    let lengths: Vec<u64> = log_files(&vfs).values().map(|bytes| bytes.len() as u64).collect();
    let (ids, report) = replayed(&vfs, 0).unwrap();
    assert_eq!((ids, &report.obsolete[..]), (vec![1], &[3, 4][..]));
    let truncations = [(3, lengths[1]), (4, lengths[2])].map(|(n, bytes)| WalTruncation {
        file: path(n),
        offset: 0,
        bytes,
    });
    assert_eq!(report.truncations, truncations);
}

#[test]
fn a_torn_unsynced_segment_ends_replay_and_drops_the_later_ones() {
    let mut files = log_files(&chain(3, Durability::Buffered));
    files.get_mut("000002.log").unwrap()[80] ^= 1;
    let length = files["000002.log"].len() as u64;
    let (ids, report) = replayed(&vfs_of(&files), 0).unwrap();
    assert_eq!((ids, &report.obsolete[..]), (vec![1], &[3][..]));
    assert_eq!(
        report.truncations[0],
        WalTruncation { file: path(2), offset: HEADER_BYTES, bytes: length - HEADER_BYTES }
    );
    assert_eq!(report.truncations[1].file, path(3));
    assert_eq!(report.segments[1], SegmentEnd { number: 2, bytes: HEADER_BYTES, synced: 0 });
}

#[test]
fn the_next_header_proves_that_a_segment_was_synced() {
    let end = |synced| SegmentEnd { number: 1, bytes: segment(1, NONE, 1).len() as u64, synced };
    for synced in [0, end(0).bytes] {
        let mut files = [
            ("000001.log".to_owned(), segment(1, NONE, 1)),
            ("000002.log".to_owned(), segment(2, end(synced), 2)),
        ];
        files[0].1[90] ^= 1;
        let result = replayed(&vfs_of(&files.into()), 0);
        assert_eq!(matches!(result, Err(Error::Corruption(found)) if found.file == path(1)), synced > 0);
    }
}

const NONE: SegmentEnd = SegmentEnd { number: 0, bytes: 0, synced: 0 };

#[test]
fn bytes_after_the_valid_part_are_not_part_of_the_log() {
    let mut first = segment(1, NONE, 1);
    let end = SegmentEnd { number: 1, bytes: first.len() as u64, synced: first.len() as u64 };
    let (seed, offset) = (segment_seed(DATABASE_ID, 1), first.len() as u64);
    put_frame_parts(&mut first, seed, offset, 0, &[&payload(2)]).unwrap();
    let files = [("000001.log".to_owned(), first), ("000002.log".to_owned(), segment(2, end, 3))];
    let (ids, report) = replayed(&vfs_of(&files.into()), 0).unwrap();
    assert_eq!((ids, report.truncations), (vec![1, 3], vec![]));
}

/// The fault was reported of the segment before, whose torn end only the damaged header knew.
#[test]
fn a_damaged_header_is_the_damage_and_not_the_end_that_it_knew() {
    let mut files = log_files(&chain(3, Durability::Synced));
    files.get_mut("000001.log").unwrap().extend_from_slice(b"a record that was cut off");
    assert_eq!(replayed(&vfs_of(&files), 0).unwrap().0, [1, 2, 3]);
    files.get_mut("000002.log").unwrap()[27] ^= 1;
    let Err(Error::Corruption(found)) = replayed(&vfs_of(&files), 0) else { panic!("no damage") };
    assert_eq!((&found.file, found.offset), (&path(2), 0));
}

/// The fault was reported of an abandoned segment: only the damaged header says that the log begins with it.
#[test]
fn a_damaged_header_is_the_damage_and_not_an_abandoned_segment_before() {
    let mut files = log_files(&chain(3, Durability::Synced));
    let second = files.get_mut("000002.log").unwrap();
    let header = SegmentHeader {
        database_id: DATABASE_ID,
        number: 2,
        previous: 0,
        previous_bytes: 0,
        previous_synced: 0,
    };
    second[..HEADER_BYTES as usize].copy_from_slice(&header.encode());
    files.insert("000001.log".to_owned(), b"an abandoned segment".repeat(10));
    assert_eq!(replayed(&vfs_of(&files), 0).unwrap().0, [2, 3]);
    files.get_mut("000002.log").unwrap()[27] ^= 1;
    let Err(Error::Corruption(found)) = replayed(&vfs_of(&files), 0) else { panic!("no damage") };
    assert_eq!((&found.file, found.offset), (&path(2), 0));
    let vfs = vfs_of(&files);
    let (report, faults) =
        salvage(&LogFiles::find(&folder_in(&vfs).unwrap(), known()).unwrap(), &mut |_, _| {});
    let kept: Vec<u64> = report.segments.iter().map(|end| end.number).collect();
    assert_eq!((kept, faults.len()), (vec![3], 2), "{faults:?}");
}

#[test]
fn abandoned_segments_are_skipped() {
    let vfs = chain(2, Durability::Synced);
    let last = replayed(&vfs, 0).unwrap().1.segments[1];
    write(&vfs, &path(5), &segment(9, NONE, 9)[..20]); // a header that was cut off
    write(&vfs, &path(6), &segment(6, last, 9)); // whole, but no later segment names it
    write(&vfs, &path(7), &segment(7, last, 3));
    let (ids, report) = replayed(&vfs, 0).unwrap();
    assert_eq!((ids, &report.obsolete[..], report.truncations.len()), (vec![1, 2, 3], &[5, 6][..], 0));
}

#[test]
fn a_torn_header_is_reported_and_an_empty_last_segment_is_not() {
    let vfs = chain(1, Durability::Synced);
    write(&vfs, &path(2), b"");
    let (ids, report) = replayed(&vfs, 0).unwrap();
    assert_eq!((ids, report.truncations, report.obsolete), (vec![1], vec![], vec![2]));
    write(&vfs, &path(3), &[0; 64]);
    let (ids, report) = replayed(&vfs, 0).unwrap();
    assert_eq!((ids, report.obsolete), (vec![1], vec![2, 3]));
    assert_eq!(report.truncations, [WalTruncation { file: path(3), offset: 0, bytes: 64 }]);
}

#[test]
fn a_log_of_another_database_is_refused() {
    let vfs = chain(1, Durability::Synced);
    let other = KnownLog { database_id: DATABASE_ID + 1, ..KnownLog::default() };
    let files = LogFiles::find(&folder_in(&vfs).unwrap(), other).unwrap();
    let result = replay(&files, &mut |_, _| panic!("no entry is returned"));
    assert!(matches!(result, Err(Error::Corruption(found)) if found.offset == 8 && found.file == path(1)));
}

#[test]
fn an_unknown_kind_is_reported_with_its_record() {
    let vfs = new_vfs();
    let mut log = open_log(Arc::new(vfs.clone()), &Numbers::default(), &[]).unwrap();
    let mut strange = payload(1);
    // After the count and the first sequence number.
    strange[2] |= 5;
    append(&mut log, 1, Durability::Buffered).unwrap();
    let offset = log.segment_bytes();
    log.append(&[&strange], Durability::Buffered, std::time::Duration::ZERO).unwrap();
    match replayed(&vfs, 0) {
        Err(Error::UnknownEntryKind { file, offset: found, kind: 5 }) => {
            assert_eq!((file, found), (path(1), offset))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn reading_writes_nothing() {
    let mut files = log_files(&chain(3, Durability::Buffered));
    files.get_mut("000003.log").unwrap().pop();
    let vfs = RecordVfs::new(Arc::new(vfs_of(&files)));
    vfs.reset();
    let (_, report) = replayed(&vfs, 0).unwrap();
    assert_eq!(report.truncations.len(), 1);
    let reads = [OperationKind::OpenFolder, OperationKind::Open, OperationKind::Read, OperationKind::List];
    assert!(vfs.operations().iter().all(|operation| reads.contains(&operation.kind)));
}

#[test]
fn errors_of_the_callback_end_replay() {
    let vfs = chain(2, Durability::Buffered);
    let files = LogFiles::find(&folder_in(&vfs).unwrap(), known()).unwrap();
    let mut segments = Vec::new();
    let result = replay(&files, &mut |_, place| {
        segments.push(place.segment);
        if place.segment == 2 { Err(Error::Closed) } else { Ok(()) }
    });
    assert!(matches!(result, Err(Error::Closed)));
    assert_eq!(segments, [1, 1, 2], "record 1 has two entries");
}

/// Flips a bit of the first record of segment 1, then removes the segment: both were synced.
fn expect_proven(vfs: &MemVfs, context: &str) {
    let mut files = log_files(vfs);
    files.get_mut("000001.log").unwrap()[100] ^= 1;
    let result = replayed(&vfs_of(&files), 0);
    assert!(matches!(result, Err(Error::Corruption(found)) if found.file == path(1)), "{context}");
    files.get_mut("000001.log").unwrap()[20] ^= 1;
    let result = replayed(&vfs_of(&files), 0);
    assert!(matches!(result, Err(Error::Corruption(found)) if found.offset == 0), "{context}");
    files.remove("000001.log");
    assert!(matches!(replayed(&vfs_of(&files), 0), Err(Error::MissingFile { .. })), "{context}");
}

#[test]
fn a_sync_of_a_later_segment_proves_the_earlier_ones() {
    let vfs = chain(1, Durability::Buffered);
    let previous = replayed(&vfs, 0).unwrap().1.segments;
    let mut log = open_log(Arc::new(vfs.clone()), &Numbers::starting_at(2), &previous).unwrap();
    append(&mut log, 2, Durability::Synced).unwrap();
    append(&mut log, 3, Durability::Buffered).unwrap();
    expect_proven(&vfs, "by the mark of record 3");
    let vfs = new_vfs();
    let mut log = open_log(Arc::new(vfs.clone()), &Numbers::default(), &[]).unwrap();
    append(&mut log, 1, Durability::Buffered).unwrap();
    log.rotate().unwrap();
    append(&mut log, 2, Durability::Synced).unwrap();
    log.rotate().unwrap();
    expect_proven(&vfs, "by the header of segment 3");
}

#[test]
fn the_next_header_shows_a_sync_after_a_failed_append() {
    let inner = new_vfs();
    let vfs = Arc::new(FaultVfs::new(Arc::new(inner.clone())));
    let mut log = open_log(Arc::clone(&vfs) as Arc<dyn Vfs>, &Numbers::default(), &[]).unwrap();
    append(&mut log, 1, Durability::Buffered).unwrap();
    let length = log.segment_bytes();
    vfs.add_rule(Rule::short_append(10));
    append(&mut log, 2, Durability::Buffered).unwrap_err();
    assert_eq!(log_files(&inner)["000001.log"].len() as u64, length, "the torn record is truncated");
    log.persist(Durability::Synced).unwrap();
    append(&mut log, 3, Durability::Buffered).unwrap();
    expect_proven(&inner, "by the header of segment 2");
}

#[test]
fn salvage_reports_every_fault_and_returns_all_readable_entries() {
    let mut files = log_files(&chain(4, Durability::Synced));
    files.get_mut("000002.log").unwrap()[100] ^= 1;
    files.get_mut("000003.log").unwrap()[10] ^= 1;
    let vfs = vfs_of(&files);
    assert!(replayed(&vfs, 0).is_err());
    let found = LogFiles::find(&folder_in(&vfs).unwrap(), known()).unwrap();
    let mut ids = std::collections::BTreeSet::new();
    let (_, faults) = salvage(&found, &mut |entry, _| {
        ids.insert(entry.sequence / 4);
    });
    let places: Vec<_> = faults
        .iter()
        .map(|fault| match fault {
            Error::Corruption(found) => (found.file.clone(), found.offset),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(places, [(path(2), 64), (path(3), 0)]);
    assert_eq!(ids.into_iter().collect::<Vec<_>>(), [1, 4]);

    files.remove("000002.log");
    let vfs = vfs_of(&files);
    let found = LogFiles::find(&folder_in(&vfs).unwrap(), known()).unwrap();
    let mut count = 0;
    let (_, faults) = salvage(&found, &mut |_, _| count += 1);
    assert_eq!((faults.len(), count > 0), (1, true), "{faults:?}");
}

/// A verification reads during writes: it sees the log as it was when it was pinned.
#[test]
fn later_appends_are_not_read_and_pinned_segments_stay() {
    let vfs = new_vfs();
    let mut log = open_log(Arc::new(vfs.clone()), &Numbers::default(), &[]).unwrap();
    append(&mut log, 1, Durability::Buffered).unwrap();
    let (ends, pin) = (log.ends().collect::<Vec<_>>(), log.pin_segments());
    let found = LogFiles::of_open_log(&ends, &folder_in(&vfs).unwrap(), known());
    append(&mut log, 2, Durability::Buffered).unwrap();
    let next = log.rotate().unwrap();
    remove_below(&mut log, &vfs, next).unwrap();
    let mut ids = Vec::new();
    let take = &mut |entry: BatchEntry<'_>, _| {
        ids.push(entry.sequence / 4);
        Ok(())
    };
    let report = replay(&found, take).unwrap();
    assert_eq!((report.records, report.truncations.len(), &ids[..]), (1, 0, &[1, 1][..]));
    drop(pin);
    remove_below(&mut log, &vfs, next).unwrap();
    assert_eq!(log_files(&vfs).len(), 1);
    assert!(
        matches!(replay(&found, &mut |_, _| Ok(())), Err(Error::MissingFile { path, .. }) if path == self::path(1))
    );
}

/// The facts that the manifest has prove what no segment does.
#[test]
fn a_recorded_segment_that_is_missing_or_short_is_damage() {
    let whole = log_files(&chain(2, Durability::Buffered));
    let lengths = whole.values().map(|bytes| bytes.len() as u64);
    let synced: BTreeMap<u64, u64> = (1..).zip(lengths).collect();
    let known = || KnownLog { synced: synced.clone(), ..known() };
    assert_eq!(replayed_with(&vfs_of(&whole), known()).unwrap().0, [1, 2]);
    for (number, name) in [(1, "000001.log"), (2, "000002.log")] {
        let mut files = whole.clone();
        files.remove(name);
        let missing = replayed_with(&vfs_of(&files), known());
        assert!(matches!(missing, Err(Error::MissingFile { path, .. }) if path == self::path(number)));
        for length in 0..whole[name].len() {
            let mut files = whole.clone();
            files.get_mut(name).unwrap().truncate(length);
            let short = replayed_with(&vfs_of(&files), known());
            assert!(matches!(short, Err(Error::Corruption(found)) if found.file == path(number)), "{length}");
        }
    }
    let needed = KnownLog { first_needed: 2, synced: BTreeMap::new(), ..known() };
    let mut files = whole.clone();
    files.remove("000001.log");
    assert_eq!(replayed_with(&vfs_of(&files), needed).unwrap().0, [2]);
}

/// Records that cross the pieces, and a longer one.
#[test]
fn records_longer_than_a_piece_and_between_pieces_are_read() {
    let vfs = new_vfs();
    let mut log = open_log(Arc::new(vfs.clone()), &Numbers::default(), &[]).unwrap();
    let lengths = [100_000, 100_000, 100_000, 600_000, 1, 250_000, PIECE_BYTES as usize];
    for (index, length) in lengths.into_iter().enumerate() {
        let mut batch = crate::batch::WriteBatch::new();
        batch.put_in(0, b"key", &vec![index as u8; length]).unwrap();
        let payload = batch.assign_sequences(index as u64 + 1).to_vec();
        log.append(&[&payload], Durability::Synced, std::time::Duration::ZERO).unwrap();
    }
    let read = |vfs: &MemVfs| {
        let found = LogFiles::find(&folder_in(vfs).unwrap(), known()).unwrap();
        let mut values = Vec::new();
        let report = replay(&found, &mut |entry, _| {
            assert!(entry.value.iter().all(|&byte| usize::from(byte) == values.len()));
            values.push(entry.value.len());
            Ok(())
        });
        report.map(|_| values)
    };
    assert_eq!(read(&vfs).unwrap(), lengths);
    // A flipped bit in the first one: the mark of a record in a later piece proves that it was synced.
    let mut files = log_files(&vfs);
    files.get_mut("000001.log").unwrap()[1_000] ^= 1;
    assert!(matches!(read(&vfs_of(&files)), Err(Error::Corruption(found)) if found.offset == HEADER_BYTES));
}
