//! Sorted views for fuzzing: views of any bytes, built views compared with a sorted list, and views whose bytes were changed and
//! whose checksums were corrected. Views have filters, in parts of a few keys or in one part.

use std::{ops::Bound, sync::Arc};

use tamis_filter::KeyRange;
use tamis_vfs::Access;

use super::{files, pieces, table::environment};
use crate::{
    cursor::Cursor,
    error::Result,
    key::{Kind, SEQUENCE_MAX},
    table::{
        filter_plan::FilterPlan,
        format::{KIND_FILTER, KIND_VIEW, KIND_VIEW_FILTER_PARTS},
    },
    view::{
        build::build_view_with_filters,
        check::check_view,
        checksums::{correct_checksums, directory_of, page_count_of, records_of},
        cursor::ViewCursor,
        filter_builder::FilterJob,
        memory_run::{Entry, MemoryRun, count_before, first_at},
        reader::View,
        rebuild::rebuild_view_with_filters,
        scan::ViewScan,
        spool::Spool,
        writer::{ViewOptions, ViewOwner},
    },
};

const NUMBER: u64 = 5;
/// Moves on a damaged view.
const MOVE_COUNT: usize = 100;
/// Less than a page of an index or a filter, so that spools have files.
const SPOOL_BYTES: usize = 64;
const FILTERS: [&[&str]; 6] = [
    &[],
    &["blocked-bloom@12"],
    &["surf-mixed:hash=2,real=4"],
    &["bloom@10", "proteus@14"],
    &["grafite@14"],
    &["rosetta@16"],
];
/// Bytes of the keys of a part.
const PART_BYTES: [u64; 4] = [1, 60, 400, u64::MAX];

/// How views are built.
struct Build {
    options: ViewOptions,
    plan: Option<FilterPlan>,
    part_bytes: u64,
}

impl Build {
    fn new(options: ViewOptions, choice: u8) -> Self {
        let names = FILTERS.get(usize::from(choice) % FILTERS.len()).copied().unwrap_or_default();
        let filters = names.iter().map(|name| name.parse().expect("the name of a family"));
        let plan = (!names.is_empty()).then(|| FilterPlan::given(filters.collect()));
        let part_bytes = PART_BYTES.get(usize::from(choice >> 6)).copied().unwrap_or(u64::MAX);
        Self { options, plan, part_bytes }
    }

    fn spool() -> Spool {
        Spool::in_memory().with_memory(SPOOL_BYTES)
    }

    fn job(&self) -> Option<FilterJob<'_>> {
        let job = |plan| FilterJob::new(plan, Self::spool()).with_key_memory(self.part_bytes);
        self.plan.as_ref().map(job)
    }

    /// The bytes of the view of runs.
    fn build(&self, runs: &[MemoryRun]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let runs = named(runs, 100);
        build_view_with_filters(self.options, &runs, self.job(), Self::spool(), &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })
        .expect("memory takes bytes");
        bytes
    }

    /// The bytes of the view of `old_runs` and a new run.
    fn rebuild(&self, old: &Arc<View>, old_runs: &[MemoryRun], new: &MemoryRun) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let (owner, old_runs) = (self.options.owner, old_runs.to_vec().into());
        let new = named(std::slice::from_ref(new), 200);
        rebuild_view_with_filters(owner, old, &old_runs, &new, self.job(), Self::spool(), &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        Ok(bytes)
    }
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
    let (tag_bytes, run_count) = ((choice >> 3) % 3, usize::from(choice >> 5) + 1);
    let owner = ViewOwner { number: NUMBER, ..ViewOwner::default() };
    let options = ViewOptions { segment_size, tag_bytes, owner, ..ViewOptions::default() };
    let (&filters, rest) = rest.split_first().unwrap_or((&0, rest));
    let (&change_count, rest) = rest.split_first().unwrap_or((&0, rest));
    let (changes, entries) = rest.split_at_checked(4 * usize::from(change_count)).unwrap_or((&[], rest));
    let (build, runs) = (Build::new(options, filters), runs_of(entries, run_count));
    let bytes = build.build(&runs);
    let view = open(&bytes, Access::Mapped).expect("a built view opens");
    let has_keys = runs.iter().any(|run| !run.entries.is_empty());
    assert_eq!(view.has_filter(), has_keys && build.plan.is_some());
    compare(&view, &runs);
    rebuilt(&build, &runs);
    changed(&build, &bytes, &runs, changes);
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
            for is_inclusive in [false, true] {
                cursor.seek_for_prev(key, is_inclusive).expect("memory can be read");
                let last = count_before(all, key, is_inclusive).wrapping_sub(1);
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
fn rebuilt(build: &Build, runs: &[MemoryRun]) {
    let Some((last, first)) = runs.split_last() else { return };
    let old = open(&build.build(first), Access::Buffered).expect("a built view opens");
    let bytes = build.rebuild(&old, first, last).expect("memory takes bytes");
    let view = open(&bytes, Access::Mapped).expect("a rebuilt view opens");
    assert_eq!(view.has_filter(), old.has_filter() && !last.entries.is_empty());
    compare(&view, runs);
}

/// Changes bytes of a view before its directory, four of the input each (offset, value), and corrects the checksums: each use returns,
/// and filters that were not changed admit all keys.
fn changed(build: &Build, bytes: &[u8], runs: &[MemoryRun], changes: &[u8]) {
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
    for is_index_intact in [true, false] {
        let mut changed = changed.clone();
        correct_checksums(&mut changed, page_count_of(bytes), is_index_intact);
        let Ok(view) = open(&changed, Access::Mapped) else { continue };
        if has_same_filters(bytes, &changed) {
            let mut keys = runs.iter().flat_map(|run| run.entries.iter()).map(|entry| &entry.0);
            assert!(keys.all(|key| view.filters_admit_key(key)), "unchanged filters admit all keys");
        }
        let _ = check_view(&view, runs);
        let _ = use_damaged(&view, runs);
        let _ = build.rebuild(&view, runs, &new);
    }
}

/// Whether the filters of two views, and the header with the seed of their digests, are the same.
fn has_same_filters(before: &[u8], after: &[u8]) -> bool {
    let kinds = [KIND_VIEW, KIND_FILTER, KIND_VIEW_FILTER_PARTS];
    records_of(before).iter().filter(|record| kinds.contains(&record.kind)).all(|record| {
        let range = record.offset as usize..(record.offset + record.length) as usize;
        before.get(range.clone()) == after.get(range)
    })
}

fn use_damaged(view: &Arc<View>, runs: &[MemoryRun]) -> Result<()> {
    let _ = (view.expected_range_rate(), view.filter_families());
    let runs: Arc<[MemoryRun]> = runs.to_vec().into();
    for key in runs.iter().flat_map(|run| run.entries.iter()).map(|entry| &entry.0).take(MOVE_COUNT) {
        let mut cursor = ViewCursor::new(view, &runs)?;
        let _ = cursor.seek(key, 3);
        for _ in 0..MOVE_COUNT {
            if cursor.is_valid() {
                let _ = cursor.next();
            }
        }
        let _ = cursor.seek_for_prev(key, true);
        for _ in 0..MOVE_COUNT {
            if cursor.is_valid() {
                let _ = cursor.prev();
            }
        }
        let mut scan = ViewScan::new(cursor, 50);
        let _ = scan.get(key);
        let _ = scan.denies_range(&KeyRange::point(key));
        let _ = scan.denies_range(&KeyRange::closed(key, &[0xFF; 20]));
        let _ = scan.denies_range(&KeyRange::prefix(key));
        let _ = scan.count(Bound::Included(key), Bound::Unbounded);
    }
    Ok(())
}
