//! Sorted views for fuzzing: views of any bytes, built views compared with a sorted list, and views whose bytes were changed and
//! whose checksums were corrected.

use std::sync::Arc;

use tamis_vfs::Access;

use super::{files, pieces, table::environment};
use crate::{
    cursor::Cursor,
    error::Result,
    key::{BoundKind, Kind, SEQUENCE_MAX},
    view::{
        build::build_view,
        check::check_view,
        checksums::{correct_checksums, correct_section_checksums, directory_of, page_count_of},
        cursor::ViewCursor,
        memory_run::{Entry, MemoryRun, count_before, first_at},
        reader::View,
        rebuild::rebuild_view,
        scan::ViewScan,
        writer::{ViewOptions, ViewOwner},
    },
};

const NUMBER: u64 = 5;
/// Moves on a damaged view.
const MOVE_COUNT: usize = 100;
/// The bytes of the view of runs.
fn build(options: ViewOptions, runs: &[MemoryRun]) -> Vec<u8> {
    let mut bytes = Vec::new();
    build_view(options, &named(runs, 100), &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })
    .expect("memory takes bytes");
    bytes
}

/// The bytes of the view of `old_runs` and a new run.
fn rebuild(owner: ViewOwner, old: &Arc<View>, old_runs: &[MemoryRun], new: &MemoryRun) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let (old_runs, new) = (old_runs.to_vec().into(), named(std::slice::from_ref(new), 200));
    rebuild_view(owner, old, &old_runs, &new, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })?;
    Ok(bytes)
}

fn open(bytes: &[u8], access: Access) -> Result<Arc<View>> {
    let vfs = files(&[("000005.view", bytes)]);
    View::open(&environment(&vfs, access), NUMBER)
}

/// A view of any bytes, or one built of pieces of the input. The first byte selects how it is made.
pub fn view(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    if choice & 1 == 0 {
        let _ = open(rest, Access::Buffered);
        let _ = open(rest, Access::Mapped);
        return;
    }
    let segment_size = [16, 32, 64].get(usize::from(choice >> 1) % 3).copied().unwrap_or(16);
    let run_count = usize::from(choice >> 5) + 1;
    let owner = ViewOwner { number: NUMBER, ..ViewOwner::default() };
    let options = ViewOptions { segment_size, owner };
    let (&change_count, rest) = rest.split_first().unwrap_or((&0, rest));
    let (changes, entries) = rest.split_at_checked(4 * usize::from(change_count)).unwrap_or((&[], rest));
    let runs = runs_of(entries, run_count);
    let bytes = build(options, &runs);
    let view = open(&bytes, Access::Mapped).expect("a built view opens");
    compare(&view, &runs);
    rebuilt(options, &runs);
    changed(owner, &bytes, &runs, changes);
}

/// Pieces as keys: empty ones repeat the previous key, so that keys have versions.
fn runs_of(data: &[u8], run_count: usize) -> Vec<MemoryRun> {
    let mut runs: Vec<Vec<Entry>> = vec![Vec::new(); run_count];
    let mut last = b"first".to_vec();
    for (sequence, piece) in (1_u64..).zip(pieces(data)) {
        if !piece.is_empty() {
            last = piece.to_vec();
        }
        let kind = if sequence.is_multiple_of(5) { Kind::Tombstone } else { Kind::Put };
        let run = (sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % run_count;
        if let Some(run) = runs.get_mut(run) {
            run.push((last.clone(), sequence, kind, Vec::new()));
        }
    }
    runs.into_iter().map(MemoryRun::new).collect()
}

fn named(runs: &[MemoryRun], first: u64) -> Vec<(u64, MemoryRun)> {
    (first..).zip(runs.iter().cloned()).collect()
}

/// All moves return the entries of a sorted list.
fn compare(view: &Arc<View>, runs: &[MemoryRun]) {
    let faults = check_view(view, runs).expect("memory can be read");
    assert!(faults.is_empty(), "{faults:?}");
    let all = MemoryRun::new(runs.iter().flat_map(|run| run.entries.iter().cloned()).collect());
    let all = &all.entries;
    let runs: Arc<[MemoryRun]> = runs.to_vec().into();
    let mut cursor = ViewCursor::new(view, &runs).expect("they are its runs");
    let at = |cursor: &ViewCursor<Arc<[MemoryRun]>>| {
        cursor.is_valid().then(|| (cursor.key().to_vec(), cursor.sequence()))
    };
    let entry_at = |number: usize| all.get(number).map(|entry| (entry.0.clone(), entry.1));
    for (key, sequence, ..) in all.iter() {
        let longer = [key.as_slice(), &[0]].concat();
        for (key, sequence) in [(key, *sequence), (key, SEQUENCE_MAX), (&longer, SEQUENCE_MAX)] {
            cursor.seek(key, sequence).expect("memory can be read");
            assert_eq!(at(&cursor), entry_at(first_at(all, key, sequence)));
            for kind in [BoundKind::Excluded, BoundKind::Included] {
                cursor.seek_for_prev(key, kind).expect("memory can be read");
                let last = count_before(all, key, kind).wrapping_sub(1);
                assert_eq!(at(&cursor), entry_at(last));
            }
        }
    }
    let mut scan = ViewScan::new(cursor, SEQUENCE_MAX);
    let mut count = 0;
    scan.seek_first().expect("memory can be read");
    while scan.is_valid() {
        count += 1;
        scan.next().expect("memory can be read");
    }
    assert_eq!(count, view.live_count());
}

/// The view of all runs, built from that of all but the last one.
fn rebuilt(options: ViewOptions, runs: &[MemoryRun]) {
    let Some((last, first)) = runs.split_last() else { return };
    let old = open(&build(options, first), Access::Buffered).expect("a built view opens");
    let bytes = rebuild(options.owner, &old, first, last).expect("memory takes bytes");
    let view = open(&bytes, Access::Mapped).expect("a rebuilt view opens");
    compare(&view, runs);
}

/// Changes bytes of a view before its directory, four of the input each (offset, value), and corrects the checksums: each use returns.
fn changed(owner: ViewOwner, bytes: &[u8], runs: &[MemoryRun], changes: &[u8]) {
    let mut changed = bytes.to_vec();
    for &[low, middle, high, value] in changes.as_chunks::<4>().0 {
        let offset = u32::from_le_bytes([low, middle, high, 0]) as usize % directory_of(bytes).0;
        if let Some(byte) = changed.get_mut(offset) {
            *byte ^= value;
        }
    }
    if changed == bytes {
        return;
    }
    let new = MemoryRun::new(vec![(b"new".to_vec(), 9_999, Kind::Put, Vec::new())]);
    let mut with_all = changed.clone();
    correct_checksums(&mut with_all, page_count_of(bytes));
    correct_section_checksums(&mut changed);
    for changed in [with_all, changed] {
        let Ok(view) = open(&changed, Access::Mapped) else { continue };
        let _ = check_view(&view, runs);
        let _ = use_damaged(&view, runs);
        let _ = rebuild(owner, &view, runs, &new);
    }
}

fn use_damaged(view: &Arc<View>, runs: &[MemoryRun]) -> Result<()> {
    let runs: Arc<[MemoryRun]> = runs.to_vec().into();
    for key in runs.iter().flat_map(|run| run.entries.iter()).map(|entry| &entry.0).take(MOVE_COUNT) {
        let mut cursor = ViewCursor::new(view, &runs)?;
        let _ = cursor.seek(key, 3);
        for _ in 0..MOVE_COUNT {
            if cursor.is_valid() {
                let _ = cursor.next();
            }
        }
        let _ = cursor.seek_for_prev(key, BoundKind::Included);
        for _ in 0..MOVE_COUNT {
            if cursor.is_valid() {
                let _ = cursor.prev();
            }
        }
        let mut scan = ViewScan::new(cursor, 50);
        let _ = scan.seek(key);
    }
    Ok(())
}
