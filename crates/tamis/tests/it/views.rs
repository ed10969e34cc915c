//! Sorted views in a store: what scans cost with them, when they are built, and that damage and failures change no result.

use std::{
    io::ErrorKind,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use tamis::{
    Db, Error, Event, EventListener, Filters, Keyspace, KeyspaceOptions, Layout, OpenMode, Options, Runtime,
    Snapshot, ViewStatistics, Views,
};
use tamis_vfs::{Access, FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use crate::support::{EventLog, FOLDER, SplitMix64, inline_options, key, small_keyspace, table_filters};

/// Counts the events of views.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    pub(crate) built: Mutex<Vec<(usize, bool)>>,
    pub(crate) failed: Mutex<Vec<String>>,
}

impl EventListener for Listener {
    fn on_event(&self, event: &Event) {
        match event {
            Event::ViewBuilt { run_count, is_rebuilt, .. } => {
                self.built.lock().unwrap().push((*run_count, *is_rebuilt));
            }
            Event::ViewFailed { reason, .. } => self.failed.lock().unwrap().push(reason.clone()),
            _ => {}
        }
    }
}

/// A store in memory with one keyspace whose runs are merged by calls only.
pub(crate) struct Store {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) options: Options,
    pub(crate) keyspace: KeyspaceOptions,
    pub(crate) listener: Arc<Listener>,
}

impl Store {
    pub(crate) fn new(views: Views) -> Self {
        let keyspace = KeyspaceOptions::default()
            .memtable_bytes(64 << 20)
            .level0_runs(64)
            .filters(Filters::bits(10.0))
            .views(views);
        let listener = Arc::new(Listener::default());
        let options = inline_options()
            .cache_bytes(64 << 20)
            .table_access(Access::Buffered)
            .listener(Arc::clone(&listener) as Arc<dyn EventListener>);
        Self { vfs: Arc::new(MemVfs::new()), options, keyspace, listener }
    }

    pub(crate) fn open(&self) -> (Db, Keyspace) {
        let runtime = Runtime::deterministic(7);
        let db = Db::open_on(Arc::clone(&self.vfs), FOLDER, self.options.clone(), runtime).unwrap();
        let keyspace = db.get_or_create_keyspace("k", self.keyspace.clone()).unwrap();
        (db, keyspace)
    }
}

pub(crate) fn value(number: u64, version: u64) -> Vec<u8> {
    format!("{number}/{version}/{}", "x".repeat(60)).into_bytes()
}

/// Keys `0, 2, 4, ...` in `run_count` runs that all span the whole range.
pub(crate) fn fill(db: &Db, keyspace: &Keyspace, count: u64, run_count: u64) {
    for run in 0..run_count {
        for number in (run..count).step_by(run_count as usize) {
            keyspace.put(key(2 * number), value(2 * number, 0)).unwrap();
        }
        db.flush().unwrap();
    }
}

pub(crate) fn views_of(db: &Db) -> ViewStatistics {
    db.statistics().keyspaces.iter().find(|keyspace| keyspace.name == "k").unwrap().views
}

pub(crate) fn blocks_touched(db: &Db) -> u64 {
    let statistics = db.statistics();
    statistics.blocks_read + statistics.cache_hits
}

pub(crate) fn all(keyspace: &Keyspace) -> Vec<(Vec<u8>, Vec<u8>)> {
    let entries = keyspace.range(..).map(|entry| entry.unwrap());
    entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

pub(crate) fn all_backward(keyspace: &Keyspace) -> Vec<(Vec<u8>, Vec<u8>)> {
    let entries = keyspace.range(..).rev().map(|entry| entry.unwrap());
    let mut found: Vec<_> = entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    found.reverse();
    found
}

#[test]
fn a_seek_over_eight_runs_reads_about_one_block() {
    let store = Store::new(Views::On);
    let (db, keyspace) = store.open();
    fill(&db, &keyspace, 16_000, 8);
    assert_eq!((views_of(&db).open_count, views_of(&db).run_count), (1, 8));
    let mut random = SplitMix64::new(1);
    for is_backward in [false, true] {
        let before = blocks_touched(&db);
        for _ in 0..500 {
            let sought = random.below(32_000);
            let mut scan = keyspace.range(..);
            if is_backward {
                scan.seek_for_prev(key(sought)).unwrap();
                assert!(scan.move_prev().unwrap());
                assert_eq!(scan.key(), key(sought / 2 * 2));
            } else {
                scan.seek(key(sought)).unwrap();
                assert_eq!(scan.move_next().unwrap(), sought <= 31_998);
            }
        }
        let blocks = blocks_touched(&db) - before;
        assert!(blocks <= 650, "{blocks} blocks for 500 seeks, backward: {is_backward}");
    }
}

#[test]
fn a_scan_over_old_versions_and_tombstones_reads_none_of_them() {
    let blocks = |views| {
        let store = Store::new(views);
        let (db, keyspace) = store.open();
        let even = |number: u64| key(2 * number);
        for version in 0..8 {
            // The newest version of a key is in the last run that has it; half of the keys are deleted there.
            for number in 0..4_000 {
                match version {
                    7 if number % 2 == 0 => keyspace.delete(even(number)).unwrap(),
                    _ => keyspace.put(even(number), value(number, version)).unwrap(),
                }
            }
            db.flush().unwrap();
        }
        let before = blocks_touched(&db);
        assert_eq!(all(&keyspace).len(), 2_000);
        assert_eq!(all_backward(&keyspace).len(), 2_000);
        blocks_touched(&db) - before
    };
    let (with, without) = (blocks(Views::On), blocks(Views::Off));
    assert!(5 * with < without, "{with} blocks with a view, {without} without");
}

/// A scan stays in the view when it meets entries of memtables: puts, new versions and deletes.
#[test]
fn entries_of_memtables_cost_a_scan_of_a_view_no_block() {
    let store = Store::new(Views::On);
    let (db, keyspace) = store.open();
    fill(&db, &keyspace, 16_000, 8);
    let blocks_of_scans = || {
        let before = blocks_touched(&db);
        let mut random = SplitMix64::new(21);
        for turn in 0..200 {
            let mut scan = keyspace.range(..);
            scan.seek(key(1_000 + random.below(30_000))).unwrap();
            for _ in 0..40 {
                assert!(if turn % 2 == 0 { scan.move_next() } else { scan.move_prev() }.unwrap());
            }
        }
        blocks_touched(&db) - before
    };
    let without = blocks_of_scans();
    for number in (0..32_000).step_by(30) {
        match number % 90 {
            0 => keyspace.delete(key(number)).unwrap(),
            30 => keyspace.put(key(number), value(number, 1)).unwrap(),
            _ => keyspace.put(key(number + 1), value(number, 1)).unwrap(),
        }
    }
    let with = blocks_of_scans();
    assert!(with <= without + without / 20, "{with} blocks with entries in memtables, {without} without");
}

/// `nth`, `skip` and `step_by` of a scan read the entries that they return, and none between.
#[test]
fn entries_that_an_iterator_skips_cost_no_block() {
    let run = |views| {
        let store = Store::new(views);
        let (db, keyspace) = store.open();
        fill(&db, &keyspace, 16_000, 8);
        let blocks_of = |read: &mut dyn FnMut()| {
            let before = blocks_touched(&db);
            read();
            blocks_touched(&db) - before
        };
        let key_at = |number: usize| keyspace.range(..).nth(number).unwrap().unwrap().0.to_vec();
        let of_nth = blocks_of(&mut || {
            for number in [100, 5_000, 15_999] {
                assert_eq!(key_at(number), key(2 * number as u64));
            }
            assert!(keyspace.range(..).nth(16_000).is_none());
        });
        let of_step_by = blocks_of(&mut || {
            let found: Vec<_> =
                keyspace.range(key(1)..key(30_000)).step_by(1_000).map(Result::unwrap).collect();
            let expected: Vec<_> = (0..15).map(|number| key(2 + 2_000 * number)).collect();
            assert_eq!(found.iter().map(|(key, _)| key.to_vec()).collect::<Vec<_>>(), expected);
        });
        // Entries of memtables count, and hide those of the view.
        for number in [10_001, 20_001] {
            keyspace.put(key(number), value(number, 1)).unwrap();
        }
        keyspace.delete(key(4)).unwrap();
        let with_memtable = blocks_of(&mut || {
            assert_eq!((key_at(1_000), key_at(9_000)), (key(2_002), key(2 * 9_000)));
            assert_eq!((key_at(5_000), key_at(15_000)), (key(10_001), key(2 * 14_999)));
        });
        [of_nth, of_step_by, with_memtable]
    };
    let (with, without) = (run(Views::On), run(Views::Off));
    assert!(with[0] <= 12 && with[1] <= 36 && with[2] <= 45, "{with:?} blocks");
    assert!(without.iter().all(|blocks| *blocks > 250), "{without:?} blocks without a view");
}

/// Random keys of eight bytes in eight runs.
fn fill_at_random(db: &Db, keyspace: &Keyspace, random: &mut SplitMix64) {
    for _ in 0..8 {
        for number in 0..2_000 {
            keyspace.put(random.next_u64().to_be_bytes(), value(number, 0)).unwrap();
        }
        db.flush().unwrap();
    }
}

/// The blocks that 2,000 closed ranges without keys read.
fn blocks_of_empty_ranges(db: &Db, keyspace: &Keyspace, random: &mut SplitMix64) -> u64 {
    let before = blocks_touched(db);
    for _ in 0..2_000 {
        let lower = random.next_u64();
        assert_eq!(keyspace.range(lower.to_be_bytes()..(lower | 0xFFFF_FFFF).to_be_bytes()).count(), 0);
    }
    blocks_touched(db) - before
}

/// The filters of the tables reject them.
#[test]
fn closed_ranges_without_keys_read_few_blocks() {
    let mut store = Store::new(Views::On);
    store.keyspace.filters = Filters::each(table_filters("surf-real:bits=16"));
    let (db, keyspace) = store.open();
    let mut random = SplitMix64::new(2);
    fill_at_random(&db, &keyspace, &mut random);
    assert_eq!(views_of(&db).open_count, 1);
    let blocks = blocks_of_empty_ranges(&db, &keyspace, &mut random);
    assert!(blocks <= 40, "{blocks} blocks for 2,000 empty ranges");
}

/// Overwritten and deleted keys, range tombstones in a covered run and in the memtable, a run that is not covered: gets and counts at
/// several snapshots.
#[test]
fn point_reads_and_scans_agree_with_views() {
    for filters in [Filters::none(), Filters::bits(2.0)] {
        let mut store = Store::new(Views::On);
        store.keyspace.filters = filters;
        let (db, keyspace) = store.open();
        let mut snapshots = Vec::new();
        let mut random = SplitMix64::new(7);
        for round in 0..6 {
            for _ in 0..300 {
                let number = random.below(500);
                match random.below(4) {
                    0 => keyspace.delete(key(number)).unwrap(),
                    _ => keyspace.put(key(number), value(number, round)).unwrap(),
                }
            }
            if round == 3 {
                keyspace.delete_range(key(100)..key(140)).unwrap();
            }
            snapshots.push(db.snapshot());
            if round < 5 {
                db.flush().unwrap();
            }
        }
        assert_eq!(views_of(&db).open_count, 1);
        keyspace.delete_range(key(300)..key(320)).unwrap();
        snapshots.push(db.snapshot());
        for snapshot in &snapshots {
            let entries = snapshot.range(&keyspace, ..).map(|entry| entry.unwrap());
            let expected: std::collections::BTreeMap<_, _> =
                entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            for number in 0..510 {
                let found = snapshot.get(&keyspace, key(number)).unwrap().map(|value| value.to_vec());
                assert_eq!(found.as_ref(), expected.get(&key(number)), "{number}");
            }
        }
    }
}

#[test]
fn counts_are_exact_within_a_view() {
    let store = Store::new(Views::On);
    let (db, keyspace) = store.open();
    let mut expected = std::collections::BTreeSet::new();
    let mut random = SplitMix64::new(11);
    for round in 0..6 {
        for _ in 0..2_000 {
            let number = random.below(6_000);
            if random.below(3) == 0 {
                keyspace.delete(key(number)).unwrap();
                expected.remove(&number);
            } else {
                keyspace.put(key(number), value(number, round)).unwrap();
                expected.insert(number);
            }
        }
        db.flush().unwrap();
    }
    // Some runs were compacted because of the deleted keys; the view has all others.
    assert!(views_of(&db).open_count == 1 && views_of(&db).run_count > 1);
    let check = |keyspace: &Keyspace, expected: &std::collections::BTreeSet<u64>, random: &mut SplitMix64| {
        for _ in 0..200 {
            let (one, other) = (random.below(6_000), random.below(6_000));
            let (from, to) = (one.min(other), one.max(other));
            let count = expected.range(from..to).count() as u64;
            let inclusive = expected.range(from..=to).count() as u64;
            assert_eq!(keyspace.approximate_count(key(from)..key(to)).unwrap(), count);
            assert_eq!(keyspace.approximate_count(key(from)..=key(to)).unwrap(), inclusive);
        }
        assert_eq!(keyspace.approximate_count(..).unwrap(), expected.len() as u64);
    };
    let before = blocks_touched(&db);
    check(&keyspace, &expected, &mut random);
    let blocks = blocks_touched(&db) - before;
    assert!(blocks <= 2 * 400, "{blocks} blocks for 400 counts");
    // Memtables are counted with the view: new keys, and deleted ranges.
    for number in 7_000..7_100 {
        keyspace.put(key(number), value(number, 9)).unwrap();
        expected.insert(number);
    }
    keyspace.delete_range(key(1_000)..key(2_000)).unwrap();
    expected.retain(|number| !(1_000..2_000).contains(number));
    check(&keyspace, &expected, &mut random);
}

/// A store that is opened read-only has no background: reads open the view once it saves more than the open costs.
#[test]
fn reads_of_a_read_only_store_open_its_view() {
    let mut store = Store::new(Views::On);
    store.keyspace.filters = Filters::none();
    let (db, keyspace) = store.open();
    fill(&db, &keyspace, 16_000, 8);
    let expected = all(&keyspace);
    db.close().unwrap();
    let options = store.options.clone().mode(OpenMode::Reader);
    let open = || {
        let runtime = Runtime::deterministic(7);
        Db::open_on(Arc::clone(&store.vfs), FOLDER, options.clone(), runtime).unwrap()
    };
    let db = open();
    let keyspace = db.keyspace("k").unwrap();
    let read = |number: u64| keyspace.range(..).seek(key(61 * number % 32_000)).unwrap();
    (0..10).for_each(read);
    assert_eq!(views_of(&db).open_count, 0, "ten reads save less than the open costs");
    (0..100).for_each(read);
    assert_eq!(views_of(&db).open_count, 1);
    let before = blocks_touched(&db);
    (0..500).for_each(read);
    let blocks = blocks_touched(&db) - before;
    assert!(blocks <= 650, "{blocks} blocks for 500 reads");
    assert_eq!(all(&keyspace), expected);
    db.close().unwrap();
    // A damaged view is reported and not used.
    let [name] = &view_files(&*store.vfs)[..] else { panic!("one view") };
    let path = Path::new(FOLDER).join(name);
    let mut bytes = store.vfs.read(&path).unwrap();
    bytes[70] ^= 1;
    store.vfs.remove(&path).unwrap();
    store.vfs.create(&path).unwrap().append(&bytes).unwrap();
    let db = open();
    let keyspace = db.keyspace("k").unwrap();
    for _ in 0..200 {
        assert_eq!(*keyspace.range(key(10)..).next().unwrap().unwrap().1, value(10, 0));
    }
    assert_eq!((views_of(&db).open_count, store.listener.failed.lock().unwrap().len()), (0, 1));
}

#[test]
fn a_change_of_views_builds_or_removes_them() {
    let store = Store::new(Views::Off);
    let (db, keyspace) = store.open();
    fill(&db, &keyspace, 1_000, 4);
    let expected = all(&keyspace);
    assert_eq!(views_of(&db).count, 0);
    db.close().unwrap();
    for (views, count) in [(Views::On, 1), (Views::Auto, 1), (Views::Off, 0), (Views::On, 1)] {
        for is_change in [true, false] {
            let (options, runtime) = (store.options.clone(), Runtime::deterministic(7));
            let db = Db::open_on(Arc::clone(&store.vfs), FOLDER, options, runtime).unwrap();
            let keyspace = db.keyspace("k").unwrap();
            if is_change {
                keyspace.set_options(keyspace.options().views(views)).unwrap();
            }
            assert_eq!(keyspace.options(), keyspace.options().views(views));
            assert_eq!((views_of(&db).count, all(&keyspace)), (count, expected.clone()), "{views}");
            db.close().unwrap();
            assert_eq!(view_files(&*store.vfs).len(), count, "{views}");
        }
    }
}

#[test]
fn runs_that_the_view_does_not_cover_are_merged_with_it() {
    let store = Store::new(Views::On);
    let (db, keyspace) = store.open();
    fill(&db, &keyspace, 3_000, 4);
    let snapshot = db.snapshot();
    let expected_before = all(&keyspace);
    // In the memtable, then in a run that joins the view.
    for number in 0..600 {
        match number % 3 {
            0 => keyspace.delete(key(2 * number)).unwrap(),
            1 => keyspace.put(key(2 * number), value(number, 1)).unwrap(),
            _ => keyspace.put(key(2 * number + 1), value(number, 1)).unwrap(),
        }
    }
    keyspace.delete_range(key(2_000)..key(2_100)).unwrap();
    let expected = all(&keyspace);
    assert_eq!(expected.len(), 3_000 - 200 + 200 - 50);
    assert_eq!(all_backward(&keyspace), expected);
    db.flush().unwrap();
    assert_eq!((views_of(&db).run_count, db.statistics().views_rebuilt), (5, 4 - 2 + 1));
    assert_eq!((all(&keyspace), all_backward(&keyspace)), (expected.clone(), expected));
    let at_snapshot = |snapshot: &Snapshot| -> Vec<_> {
        let entries = snapshot.range(&keyspace, ..).map(|entry| entry.unwrap());
        entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    };
    assert_eq!(at_snapshot(&snapshot), expected_before, "a snapshot older than a run of the view");
    let events = store.listener.built.lock().unwrap().clone();
    assert_eq!(events, [(2, false), (3, true), (4, true), (5, true)]);
}

#[test]
fn a_reopened_store_uses_its_earlier_view() {
    for layout in [Layout::Leveled, Layout::tiered()] {
        let mut store = Store::new(Views::On);
        store.keyspace.layout = layout;
        if layout != Layout::Leveled {
            store.keyspace.layout =
                Layout::Tiered { runs_per_level: 16, space_amplification_percent: 10_000 };
        }
        let (db, keyspace) = store.open();
        fill(&db, &keyspace, 4_000, 6);
        let expected = all(&keyspace);
        db.close().unwrap();
        let (db, keyspace) = store.open();
        assert_eq!((views_of(&db).open_count, views_of(&db).run_count), (1, 6));
        assert_eq!((db.statistics().views_built, db.statistics().views_discarded), (0, 0));
        assert_eq!(all(&keyspace), expected);
        assert!(db.verify().unwrap().is_sound());
    }
}

#[test]
fn compactions_make_a_view_obsolete_and_its_file_is_deleted() {
    let store = Store::new(Views::On);
    let (db, keyspace) = store.open();
    fill(&db, &keyspace, 2_000, 4);
    let expected = all(&keyspace);
    assert_eq!(view_files(&*store.vfs).len(), 1);
    let mut old = keyspace.range(..);
    assert!(old.move_next().unwrap());
    db.compact_range(&keyspace, (std::ops::Bound::Unbounded::<Vec<u8>>, std::ops::Bound::Unbounded)).unwrap();
    assert_eq!(views_of(&db).count, 0, "one run needs no view");
    assert_eq!(all(&keyspace), expected);
    let mut count = 1;
    while old.move_next().unwrap() {
        count += 1;
    }
    assert_eq!(count, expected.len(), "a scan keeps the view that it uses");
    drop(old);
    db.close().unwrap();
    assert_eq!(view_files(&*store.vfs), [] as [String; 0]);
}

pub(crate) fn view_files(vfs: &dyn Vfs) -> Vec<String> {
    let entries = vfs.list(Path::new(FOLDER)).unwrap();
    entries.into_iter().map(|entry| entry.name).filter(|name| name.ends_with(".view")).collect()
}

#[test]
fn views_are_built_automatically_once_seeks_have_cost_as_much() {
    let store = Store::new(Views::Auto);
    let (db, keyspace) = store.open();
    fill(&db, &keyspace, 4_000, 8);
    let next_flush = || {
        keyspace.put(key(1), value(1, 1)).unwrap();
        db.flush().unwrap();
    };
    next_flush();
    assert_eq!(views_of(&db).count, 0, "no scan has merged the runs");
    let mut random = SplitMix64::new(3);
    for _ in 0..40_000 {
        let mut scan = keyspace.range(..);
        scan.seek(key(random.below(8_000))).unwrap();
    }
    next_flush();
    assert_eq!((views_of(&db).count, views_of(&db).run_count), (1, 10), "all runs overlap");
    assert_eq!(all(&keyspace).len(), 4_001);
}

#[test]
fn a_keyspace_without_views_builds_none_in_any_open() {
    let mut store = Store::new(Views::Off);
    let (db, keyspace) = store.open();
    fill(&db, &keyspace, 1_000, 4);
    assert_eq!((views_of(&db).count, db.statistics().views_built), (0, 0));
    db.close().unwrap();
    store.keyspace = store.keyspace.views(Views::Auto);
    let (db, keyspace) = store.open();
    let with_views = store.keyspace.clone().views(Views::On);
    assert!(matches!(
        keyspace.check_options(&with_views),
        Err(Error::KeyspaceOption { option: "views", .. })
    ));
    fill(&db, &keyspace, 1_000, 1);
    assert_eq!(views_of(&db).count, 0, "an existing keyspace keeps its options");
}

#[test]
fn every_flipped_byte_of_a_view_is_found_and_the_view_is_built_again() {
    let memory = MemVfs::new();
    let store = Store { vfs: Arc::new(memory.clone()), ..Store::new(Views::On) };
    let (db, keyspace) = store.open();
    fill(&db, &keyspace, 600, 3);
    let expected = all(&keyspace);
    db.close().unwrap();
    let [name] = &view_files(&memory)[..] else { panic!("one view") };
    let path = Path::new(FOLDER).join(name);
    let bytes = memory.read(&path).unwrap();
    // Zero bytes up to the alignment of the file are not checked.
    for offset in (0..bytes.len()).step_by(1 + bytes.len() / 250) {
        let copied = MemVfs::new();
        copied.create_dir_all(Path::new(FOLDER)).unwrap();
        for entry in memory.list(Path::new(FOLDER)).unwrap() {
            let source = Path::new(FOLDER).join(&entry.name);
            let mut content = memory.read(&source).unwrap();
            if source == path {
                content[offset] ^= 0x10;
            }
            copied.create(&source).unwrap().append(&content).unwrap();
        }
        let listener = Arc::new(Listener::default());
        let store = Store {
            vfs: Arc::new(copied),
            options: store.options.clone().listener(Arc::clone(&listener) as Arc<dyn EventListener>),
            keyspace: store.keyspace.clone(),
            listener: Arc::clone(&listener),
        };
        let (db, keyspace) = store.open();
        assert_eq!((all(&keyspace), all_backward(&keyspace)), (expected.clone(), expected.clone()));
        let failed = listener.failed.lock().unwrap().len();
        assert_eq!(listener.built.lock().unwrap().len(), failed, "offset {offset}");
        assert_eq!((views_of(&db).open_count, views_of(&db).run_count), (1, 3), "offset {offset}");
        assert!(db.verify().unwrap().is_sound());
    }
}

#[test]
fn a_disk_that_is_full_while_a_view_is_written_changes_nothing() {
    let memory = MemVfs::new();
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let store = Store { vfs: Arc::new(faults.clone()), ..Store::new(Views::On) };
    let (db, keyspace) = store.open();
    faults.add_rule(Rule::error(ErrorKind::Other).on(&[OperationKind::Rename]).path(".view").times(u64::MAX));
    fill(&db, &keyspace, 500, 3);
    assert_eq!(views_of(&db).count, 0);
    let failed = || store.listener.failed.lock().unwrap().len();
    assert!(failed() > 0);
    let expected = all(&keyspace);
    drop((db, keyspace));
    faults.clear_rules();
    // The first file with this ending becomes CURRENT.
    let full = Rule::error(ErrorKind::StorageFull).on(&[OperationKind::Append]).path(".tmp").nth(2);
    let rule = faults.add_rule(full);
    let failed_before = failed();
    let (db, keyspace) = store.open();
    assert_eq!((faults.hit_count(rule), failed() - failed_before), (1, 1));
    assert_eq!((views_of(&db).count, all(&keyspace).len()), (0, 500));
    let left = memory.list(Path::new(FOLDER)).unwrap();
    assert!(left.iter().all(|entry| !entry.name.ends_with(".tmp")), "{left:?}");
    keyspace.put(key(0), value(0, 0)).unwrap();
    drop((db, keyspace));
    let (db, keyspace) = store.open();
    assert_eq!(views_of(&db).count, 1);
    assert_eq!(all(&keyspace), expected);
}

#[test]
fn a_checkpoint_has_the_views() {
    let store = Store::new(Views::On);
    let (db, keyspace) = store.open();
    fill(&db, &keyspace, 1_000, 4);
    let expected = all(&keyspace);
    db.checkpoint("/copy").unwrap();
    let copy = Db::open_on(Arc::clone(&store.vfs), "/copy", store.options.clone(), Runtime::deterministic(8));
    let copy = copy.unwrap();
    assert_eq!((views_of(&copy).open_count, copy.statistics().views_built), (1, 0));
    assert_eq!(all(&copy.keyspace("k").unwrap()), expected);
}

/// Writers, scans and compactions on threads, with views built in between.
#[test]
fn scans_are_right_while_views_are_built() {
    let mut store = Store::new(Views::On);
    let log = Arc::new(EventLog::default());
    store.keyspace = small_keyspace().views(Views::On);
    store.options.workers = 2;
    store.options.listener = Some(Arc::<EventLog>::clone(&log));
    let runtime = Runtime { seed: 3, ..Runtime::system() };
    let db = Db::open_on(Arc::clone(&store.vfs), FOLDER, store.options.clone(), runtime).unwrap();
    let keyspace = db.get_or_create_keyspace("k", store.keyspace.clone()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let keyspace = &keyspace;
            scope.spawn(move || {
                for round in 0..10 {
                    for number in 0..1_500 {
                        keyspace.put(key(2 * number + thread), value(number, round)).unwrap();
                    }
                }
            });
        }
        scope.spawn(|| {
            let mut random = SplitMix64::new(9);
            for _ in 0..300 {
                let snapshot = db.snapshot();
                let from = key(random.below(3_000));
                let forward: Vec<_> =
                    snapshot.range(&keyspace, from.clone()..).take(50).map(Result::unwrap).collect();
                let last = forward.last().map_or(from.clone(), |(key, _)| key.to_vec());
                let mut backward: Vec<_> =
                    snapshot.range(&keyspace, from..=last).rev().map(Result::unwrap).collect();
                backward.reverse();
                assert_eq!(forward, backward);
            }
        });
    });
    db.wait_for_compactions().unwrap();
    let expected: Vec<_> = (0..3_000).map(|number| (key(number), value(number / 2, 9))).collect();
    assert_eq!(all(&keyspace), expected);
    // Views are built when nothing else is due: two overlapping runs stay until one is.
    let is_built = (0..1_000).any(|round| {
        keyspace.put(key(round % 100), value(0, 9)).unwrap();
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
        log.wait_until(Duration::from_millis(10), || db.statistics().views_built > 0)
    });
    assert!(is_built);
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn verify_finds_a_damaged_view_and_repair_drops_it() {
    let memory = MemVfs::new();
    let store = Store { vfs: Arc::new(memory.clone()), ..Store::new(Views::On) };
    let (db, keyspace) = store.open();
    fill(&db, &keyspace, 600, 3);
    let expected = all(&keyspace);
    db.close().unwrap();
    let path = Path::new(FOLDER).join(&view_files(&memory)[0]);
    let mut bytes = memory.read(&path).unwrap();
    bytes[70] ^= 1;
    memory.remove(&path).unwrap();
    memory.create(&path).unwrap().append(&bytes).unwrap();
    let faults = Db::verify_folder_on(Arc::clone(&store.vfs), FOLDER).unwrap().faults;
    assert!(faults.len() == 1 && faults[0].file == path, "{faults:?}");
    let report = Db::repair_on(Arc::clone(&store.vfs), FOLDER, &Runtime::deterministic(9)).unwrap();
    assert!(report.faults.len() == 1 && report.lost_ranges.is_empty(), "{report:?}");
    assert!(Db::verify_folder_on(Arc::clone(&store.vfs), FOLDER).unwrap().is_sound());
    let (db, keyspace) = store.open();
    assert_eq!((views_of(&db).run_count, all(&keyspace)), (3, expected));
}
