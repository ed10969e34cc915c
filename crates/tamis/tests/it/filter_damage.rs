//! Damaged filters: answers stay correct, and each fault is reported and counted once, whether it is found when a table is opened or
//! when an evicted filter is read again.

use std::{
    io::ErrorKind,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use tamis::{
    Db, Event, EventListener, Filters, Keyspace, KeyspaceOptions, ManualClock, Options, OsVfs, Runtime,
    TableFilter,
};
use tamis_vfs::{Access, FaultVfs, MemVfs, OperationKind, Rule, Vfs};
use tempfile::TempDir;

use crate::support::{
    FOLDER, filter_designs,
    filter_store::{absent_points, blocks, design, filled_on, open_with_filters, run_background_jobs},
    filters, inline_options, key, table_filters,
};

const KEY_COUNT: u64 = 6_000;

/// Records the filters that were ignored.
#[derive(Debug, Default)]
struct Ignored(Mutex<Vec<(PathBuf, String)>>);

impl EventListener for Ignored {
    fn on_event(&self, event: &Event) {
        if let Event::FilterCorrupt { file, reason } = event {
            self.0.lock().unwrap().push((file.clone(), reason.clone()));
        }
    }
}

/// A store with a listener.
struct Store {
    db: Db,
    keyspace: Keyspace,
    ignored: Arc<Ignored>,
}

impl Store {
    fn open(folder: &Path, table_access: Access, pinned_bytes: u64) -> Self {
        Self::open_on(Arc::new(OsVfs), folder, table_access, pinned_bytes)
    }

    fn open_on(vfs: Arc<dyn Vfs>, folder: &Path, table_access: Access, pinned_bytes: u64) -> Self {
        let ignored = Arc::new(Ignored::default());
        let listener: Arc<dyn EventListener> = Arc::<Ignored>::clone(&ignored);
        // The memory for indexes and filters is a hundredth: the sampled queries have room, too.
        let options = inline_options()
            .table_access(table_access)
            .cache_bytes(pinned_bytes * 100)
            .cache_pinned_percent(1)
            .listener(listener);
        let db = Db::open_on(vfs, folder, options, Runtime::default()).unwrap();
        let keyspace = db.keyspace("k").unwrap();
        Self { db, keyspace, ignored }
    }

    /// A store of two filters with memory for all but half of one: that of the first half was evicted.
    fn open_with_one_evicted(vfs: Arc<dyn Vfs>, folder: &Path, table_access: Access) -> Self {
        let store = Self::open_on(Arc::clone(&vfs), folder, table_access, 4 << 20);
        store.check_answers();
        let all = store.db.statistics().cache_pinned_bytes;
        drop(store);
        let store = Self::open_on(vfs, folder, table_access, all - KEY_COUNT / 2 * 10 / 8 / 2);
        assert!(store.ask(0, 300) > 0.95);
        assert!(store.ask(1, 3_000) > 0.5, "it is loaded as more lookups probe it");
        assert_eq!(store.ask(0, 20), 0.0, "and the other was evicted");
        store
    }

    /// The reported filters, which must be the counted ones.
    fn ignored(&self) -> Vec<(PathBuf, String)> {
        let reported = self.ignored.0.lock().unwrap().clone();
        assert_eq!(self.db.statistics().corrupt_filters, reported.len() as u64);
        reported
    }

    /// Looks up absent keys of the first or second half; returns the share that a filter rejected.
    fn ask(&self, half: u64, count: u64) -> f64 {
        let rejected =
            || -> u64 { self.db.statistics().reads.iter().map(|level| level.points.rejected).sum() };
        let before = rejected();
        for number in 0..count {
            let number = half * KEY_COUNT / 2 + number % (KEY_COUNT / 2 - 1);
            assert!(self.keyspace.get(key(2 * number + 1)).unwrap().is_none());
        }
        (rejected() - before) as f64 / count as f64
    }

    fn check_answers(&self) {
        for number in (0..KEY_COUNT).step_by(7) {
            assert_eq!(self.keyspace.get(key(2 * number)).unwrap().as_deref(), Some(b"value".as_slice()));
            assert!(self.keyspace.get(key(2 * number + 1)).unwrap().is_none());
        }
    }
}

/// Two adjacent tables with the even numbers of each half, and filter files for them if `rebuilt` is true.
fn fill(filter: &str, rebuilt: Option<&str>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let db = Db::open_with(folder.path(), inline_options()).unwrap();
    let options = KeyspaceOptions::default().level0_runs(8).filters(filters(filter));
    let keyspace = db.create_keyspace("k", options).unwrap();
    for half in 0..2 {
        for number in half * KEY_COUNT / 2..(half + 1) * KEY_COUNT / 2 {
            keyspace.put(key(2 * number), b"value").unwrap();
        }
        db.flush().unwrap();
    }
    if let Some(rebuilt) = rebuilt {
        db.rebuild_filters(&keyspace, &[rebuilt.parse::<TableFilter>().unwrap()]).unwrap();
    }
    drop(keyspace);
    db.close().unwrap();
    folder
}

/// The files with a suffix, and the start of the filter in each.
fn encoded_filters(folder: &Path, suffix: &str) -> Vec<(PathBuf, u64)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|found| found == suffix)).collect();
    paths.sort();
    let filter_of = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(4).position(|window| window == b"TFLT").unwrap();
        (path, at as u64)
    };
    paths.into_iter().map(filter_of).collect()
}

/// Changes a byte in place: every process that has the file open sees it.
fn damage((path, offset): &(PathBuf, u64), at: u64) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset + at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], offset + at).unwrap();
}

const ACCESSES: [Access; 3] = [Access::Mapped, Access::Buffered, Access::Direct];

#[test]
fn a_damaged_filter_of_a_table_is_reported_and_ignored() {
    for access in ACCESSES {
        let folder = fill("blocked-bloom@10", None);
        let places = encoded_filters(folder.path(), "table");
        damage(&places[0], 500);
        let store = Store::open(folder.path(), access, 4 << 20);
        store.check_answers();
        let ignored = store.ignored();
        assert_eq!(ignored.len(), 1, "{access:?}: {ignored:?}");
        assert_eq!(ignored[0].0, places[0].0);
        assert!(ignored[0].1.contains("checksum"), "{ignored:?}");
        assert_eq!(store.ask(0, 100), 0.0);
        assert!(store.ask(1, 1_000) > 0.95);
        assert_eq!(store.ignored().len(), 1);
        assert!(!store.db.verify().unwrap().is_sound());
    }
}

#[test]
fn a_damaged_filter_file_is_reported_and_replaced_by_the_tables_own_filter() {
    for access in ACCESSES {
        for rebuilt in ["blocked-bloom@14", "elastic@12"] {
            let folder = fill("blocked-bloom@10", Some(rebuilt));
            let places = encoded_filters(folder.path(), "filter");
            assert_eq!(places.len(), 2);
            // The header: no part of the filter can be used.
            damage(&places[0], 20);
            let store = Store::open(folder.path(), access, 4 << 20);
            store.check_answers();
            let ignored = store.ignored();
            assert_eq!(ignored.len(), 1, "{access:?} {rebuilt}: {ignored:?}");
            assert_eq!(ignored[0].0, places[0].0);
            assert!(store.ask(0, 1_000) > 0.95 && store.ask(1, 1_000) > 0.95, "{access:?} {rebuilt}");
            assert!(!store.db.verify().unwrap().is_sound());
        }
    }
}

/// Envelope and directory of an elastic filter.
const UNITS_BEGIN: u64 = 128;

#[test]
fn a_damaged_unit_is_reported_and_the_others_stay_in_use() {
    for access in ACCESSES {
        for (rebuilt, suffix) in [(None, "table"), (Some("elastic:units=4@12"), "filter")] {
            let folder = fill("elastic:units=4@12", rebuilt);
            let places = encoded_filters(folder.path(), suffix);
            damage(&places[0], UNITS_BEGIN + 300);
            let store = Store::open(folder.path(), access, 4 << 20);
            store.check_answers();
            let ignored = store.ignored();
            assert_eq!(ignored.len(), 1, "{access:?} {suffix}: {ignored:?}");
            assert_eq!(ignored[0].0, places[0].0);
            // A mapped filter is used as a whole, and a damaged filter file is replaced by the table's own filter.
            let least = match (access, suffix) {
                (Access::Mapped, "table") => 0.0,
                _ => 0.95,
            };
            let rejected = store.ask(0, 2_000);
            assert!(
                rejected >= least && (least > 0.0) == (rejected > 0.0),
                "{access:?} {suffix}: {rejected}"
            );
            if access != Access::Mapped {
                let designs = filter_designs(&store.db, 1);
                let is_left = |units: &str| designs.iter().any(|filter| filter.contains(units));
                assert!(is_left("elastic: 3 of 4 units") && is_left("elastic: 4 of 4 units"), "{designs:?}");
            }
            assert_eq!(store.ignored().len(), 1);
            assert!(!store.db.verify().unwrap().is_sound());
        }
    }
}

/// A mapped filter is never evicted.
#[test]
fn a_filter_that_was_dropped_and_then_damaged_is_reported_once() {
    for access in [Access::Buffered, Access::Direct] {
        for (rebuilt, suffix) in [(None, "table"), (Some("blocked-bloom@10"), "filter")] {
            let folder = fill("blocked-bloom@10", rebuilt);
            let places = encoded_filters(folder.path(), suffix);
            let store = Store::open_with_one_evicted(Arc::new(OsVfs), folder.path(), access);
            assert_eq!(store.ignored(), []);
            // The one that is in memory is not read again.
            places.iter().for_each(|place| damage(place, 500));
            assert_eq!(store.ask(0, 20_000), 0.0, "{access:?} {suffix}: it can't be read again");
            let ignored = store.ignored();
            assert_eq!(ignored.len(), 1, "{access:?} {suffix}: {ignored:?}");
            assert!(places.iter().any(|(path, _)| *path == ignored[0].0));
            store.check_answers();
            store.ask(0, 5_000);
            assert_eq!(store.ignored().len(), 1, "it is not read again");
        }
    }
}

/// As [`fill`], with filters that the store has chosen for absent keys.
fn fill_with_chosen_filters() -> TempDir {
    let folder = fill("blocked-bloom@10", None);
    let db = Db::open_with(folder.path(), inline_options()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    keyspace.set_options(keyspace.options().filters(Filters::default())).unwrap();
    for number in 0..KEY_COUNT - 1 {
        assert!(keyspace.get(key(2 * number + 1)).unwrap().is_none());
    }
    assert_eq!(db.check_filters(&keyspace).unwrap(), 2);
    drop(keyspace);
    db.close().unwrap();
    folder
}

#[test]
fn a_check_replaces_a_chosen_filter_that_was_dropped_and_then_damaged() {
    let folder = fill_with_chosen_filters();
    let places = encoded_filters(folder.path(), "filter");
    let store = Store::open_with_one_evicted(Arc::new(OsVfs), folder.path(), Access::Buffered);
    assert_eq!(store.db.check_filters(&store.keyspace).unwrap(), 0, "an evicted filter is as good as before");
    places.iter().for_each(|place| damage(place, 500));
    assert_eq!(store.ask(0, 20_000), 0.0, "it can't be read again");
    assert_eq!(store.ignored().len(), 1);
    assert_eq!(store.db.check_filters(&store.keyspace).unwrap(), 1);
    assert!(store.ask(0, 20_000) > 0.3, "the new one is loaded as lookups probe it");
    store.check_answers();
}

#[test]
fn a_filter_is_read_again_after_an_error_that_passes() {
    let folder = fill("blocked-bloom@10", Some("blocked-bloom@10"));
    let faults = FaultVfs::new(Arc::new(OsVfs));
    let store = Store::open_with_one_evicted(Arc::new(faults.clone()), folder.path(), Access::Buffered);
    let reads = [OperationKind::Open, OperationKind::Read];
    let rule = faults.add_rule(Rule::error(ErrorKind::Other).on(&reads).path(".filter").forever());
    assert_eq!(store.ask(0, 10_000), 0.0, "it can't be read");
    assert!(faults.hit_count(rule) > 0);
    faults.clear_rules();
    assert!(store.ask(0, 20_000) > 0.3, "it is read again");
    assert_eq!(store.ignored(), []);
}

#[test]
fn a_unit_that_was_dropped_and_then_damaged_is_reported_once() {
    for access in [Access::Buffered, Access::Direct] {
        let folder = fill("elastic:units=4@12", None);
        let places = encoded_filters(folder.path(), "table");
        let store = Store::open(folder.path(), access, 4 << 20);
        store.check_answers();
        let all = store.db.statistics().cache_pinned_bytes;
        drop(store);
        // Memory for half of the units.
        let store = Store::open(folder.path(), access, all - KEY_COUNT * 12 / 8 / 2);
        assert!(store.ask(0, 100) > 0.95);
        store.ask(1, 40_000);
        assert_eq!(store.ask(0, 20), 0.0, "all units were evicted");
        damage(&places[0], UNITS_BEGIN + 300);
        store.ask(0, 40_000);
        let ignored = store.ignored();
        assert_eq!(ignored.len(), 1, "{access:?}: {ignored:?}");
        assert_eq!(ignored[0].0, places[0].0);
        assert!(store.ask(0, 2_000) > 0.7, "others came back");
        store.check_answers();
        assert_eq!(store.ignored().len(), 1, "it is not read again");
    }
}

/// The files of a store whose table has chosen filters, in its own file or in a filter file.
fn closed_store(has_file: bool) -> MemVfs {
    let vfs = MemVfs::new();
    let (db, keyspace, _) = filled_on(&vfs, KeyspaceOptions::default());
    absent_points(&keyspace, 0..2_000);
    if has_file {
        db.rebuild_filters(&keyspace, &table_filters("surf-base")).unwrap();
        assert_eq!(db.check_filters(&keyspace).unwrap(), 1, "chosen filters are in a filter file");
    }
    drop(keyspace);
    db.close().unwrap();
    vfs
}

/// Damages the header of each filter in the files with a suffix; returns their number.
fn damage_all(vfs: &MemVfs, suffix: &str) -> u64 {
    let mut count = 0;
    for entry in vfs.list(Path::new(FOLDER)).unwrap() {
        let path = Path::new(FOLDER).join(&entry.name);
        if !entry.name.ends_with(suffix) {
            continue;
        }
        let mut bytes = vfs.read(&path).unwrap();
        let filters = bytes.windows(4).enumerate().filter(|(_, window)| *window == b"TFLT");
        let places: Vec<usize> = filters.map(|(at, _)| at).collect();
        places.iter().for_each(|at| bytes[at + 9] ^= 1);
        count += places.len() as u64;
        vfs.remove(&path).unwrap();
        vfs.create(&path).unwrap().append(&bytes).unwrap();
    }
    count
}

/// Independent of prices: the clock does not advance, so none is measured, and filters that can't be used are replaced at any price.
#[test]
fn a_check_replaces_damaged_filters_and_the_store_is_sound_again() {
    for has_file in [false, true] {
        let vfs = closed_store(has_file);
        let damaged = damage_all(&vfs, ".table") + damage_all(&vfs, ".filter");
        let least = if has_file { 2 } else { 1 };
        assert!(damaged >= least, "{damaged}");

        let (db, keyspace, _) = open_with_filters(&vfs, Filters::default());
        let read = blocks(&db, || absent_points(&keyspace, 0..1_000));
        assert!(db.statistics().corrupt_filters >= least && read >= 1_000, "{read}");
        assert_eq!(design(&db), "", "no filter is left");
        assert_eq!(db.check_filters(&keyspace).unwrap(), 1);
        assert_eq!(db.statistics().filters_replaced, 1);
        let read = blocks(&db, || absent_points(&keyspace, 10_000..11_000));
        assert!(read < 100, "{read} blocks for 1,000 absent keys: {}", design(&db));
        drop(keyspace);
        db.close().unwrap();

        let (db, keyspace, _) = open_with_filters(&vfs, Filters::default());
        let read = blocks(&db, || absent_points(&keyspace, 20_000..21_000));
        assert!(read < 100, "{read} blocks after an open: {}", design(&db));
        assert_eq!(db.check_filters(&keyspace).unwrap(), 0, "nothing is left to replace");
    }
}

/// No query is asked after the damage, so that nothing else makes the table due. A table whose filter file is damaged has its own filters
/// instead.
#[test]
fn a_damaged_filter_alone_is_replaced_in_the_background() {
    for (is_damaged, has_file) in [(false, false), (true, false), (true, true)] {
        let vfs = closed_store(has_file);
        if is_damaged {
            damage_all(&vfs, if has_file { ".filter" } else { ".table" });
        }

        let (db, keyspace, clock) = open_with_filters(&vfs, Filters::default());
        db.open_tables(&keyspace).unwrap();
        assert_eq!(db.statistics().corrupt_filters > 0, is_damaged);
        (0..5).for_each(|_| run_background_jobs(&db, &clock));
        let statistics = db.statistics();
        let expected = u64::from(is_damaged);
        let counts = (statistics.filters_checked, statistics.filters_replaced);
        assert_eq!(counts, (expected, expected), "damaged: {is_damaged}, filter file: {has_file}");
        drop(keyspace);
        db.close().unwrap();

        let (db, keyspace, _) = open_with_filters(&vfs, Filters::default());
        let read = blocks(&db, || absent_points(&keyspace, 20_000..21_000));
        assert!(read < 100, "{read} blocks after an open: {}", design(&db));
        assert_eq!(db.statistics().corrupt_filters, 0, "damaged: {is_damaged}, filter file: {has_file}");
    }
}

#[test]
fn a_repair_of_a_filter_that_failed_is_tried_again_once_reads_have_paid_for_it() {
    let vfs = closed_store(false);
    damage_all(&vfs, ".table");
    let faults = FaultVfs::new(Arc::new(vfs));
    let clock = Arc::new(ManualClock::default());
    let runtime = Runtime { clock: Arc::<ManualClock>::clone(&clock), ..Runtime::deterministic(1) };
    let options = Options::default().workers(0);
    let db = Db::open_on(Arc::new(faults.clone()), FOLDER, options, runtime).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let creates = Rule::error(ErrorKind::StorageFull).on(&[OperationKind::Create]).forever();
    let rule = faults.add_rule(creates);
    db.open_tables(&keyspace).unwrap();
    for _ in 0..20 {
        run_background_jobs(&db, &clock);
    }
    assert_eq!(faults.hit_count(rule), 1, "nothing was lost by the failure");
    // The damaged filter admits all keys.
    for round in 0..20 {
        absent_points(&keyspace, 20_000 + round * 1_000..21_000 + round * 1_000);
        run_background_jobs(&db, &clock);
    }
    let tries = faults.hit_count(rule);
    assert!((2..4).contains(&tries), "each try costs twice as much as the previous one: {tries}");
    assert_eq!(db.statistics().filters_replaced, 0);
    faults.clear_rules();
    for round in 0..40 {
        absent_points(&keyspace, 20_000 + round * 1_000..21_000 + round * 1_000);
        run_background_jobs(&db, &clock);
    }
    assert_eq!(db.statistics().filters_replaced, 1);
}
