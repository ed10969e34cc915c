//! Checks of filters in the background: each shift of the queries is noticed, also of small tables and after other shifts.

use std::{ops::Range, sync::Arc};

use parking_lot::Mutex;
use tamis::{Db, Event, EventListener, Keyspace, KeyspaceOptions, ManualClock, Options, Runtime};
use tamis_vfs::{Access, MemVfs};

use crate::support::{
    FOLDER,
    filter_store::{
        blocks, close_ranges, design, filled_with_clock, key, run_background_jobs, uniform_ranges,
    },
    table_filters,
};

/// Filters whose answers are counted from 0 again after each replacement.
#[test]
fn a_shift_after_a_shift_is_noticed() {
    let (db, keyspace, clock) = filled_with_clock();
    let replaced = || db.statistics().filters_replaced;
    db.rebuild_filters(&keyspace, &table_filters("blocked-bloom@10")).unwrap();
    // More answers than later ones: those would not show if they were counted on.
    uniform_ranges(&keyspace, 12_000, 5);
    run_background_jobs(&db, &clock);
    let (once, of_uniform) = (replaced(), design(&db));
    assert_eq!(once, 1, "{of_uniform}");
    let shifted = blocks(&db, || close_ranges(&keyspace, 2_000));
    for _ in 0..4 {
        close_ranges(&keyspace, 2_000);
        run_background_jobs(&db, &clock);
    }
    let of_close = design(&db);
    assert!(replaced() > once, "{of_uniform}, then {of_close}");
    let read = blocks(&db, || close_ranges(&keyspace, 2_000));
    assert!(read * 4 < shifted, "{read} blocks, {shifted} before: {of_uniform}, then {of_close}");
}

/// A store of keyspaces with these names and one small table each, whose filters reject no ranges.
struct SmallTables {
    db: Db,
    keyspaces: Vec<Keyspace>,
    clock: Arc<ManualClock>,
    replaced: Arc<Replaced>,
}

/// The keyspaces whose filters were replaced, in order.
#[derive(Debug, Default)]
struct Replaced(Mutex<Vec<String>>);

impl EventListener for Replaced {
    fn on_event(&self, event: &Event) {
        if let Event::FiltersReplaced { keyspace, .. } = event {
            self.0.lock().push(keyspace.clone());
        }
    }
}

const SMALL_COUNT: u64 = 4_000;

impl SmallTables {
    fn new(names: &[&str], table_access: Access) -> Self {
        let (clock, replaced) = (Arc::new(ManualClock::default()), Arc::new(Replaced::default()));
        let runtime = Runtime { clock: Arc::<ManualClock>::clone(&clock), ..Runtime::deterministic(1) };
        let listener = Arc::<Replaced>::clone(&replaced);
        let options = Options { workers: 0, table_access, listener: Some(listener), ..Options::default() };
        let db = Db::open_on(Arc::new(MemVfs::new()), FOLDER, options, runtime).unwrap();
        let keyspaces = names.iter().map(|name| {
            let keyspace = db.create_keyspace(name, KeyspaceOptions::default()).unwrap();
            (0..SMALL_COUNT).for_each(|number| keyspace.put(key(number), b"value").unwrap());
            db.flush().unwrap();
            db.rebuild_filters(&keyspace, &table_filters("blocked-bloom@10")).unwrap();
            keyspace
        });
        let keyspaces = keyspaces.collect();
        Self { db, keyspaces, clock, replaced }
    }

    /// Ranges without a key, one after each key with one of these numbers.
    fn read_empty_ranges(&self, keyspace: usize, numbers: Range<u64>) {
        for number in numbers {
            let lower = u64::from_be_bytes(key(number)).saturating_add(1).to_be_bytes();
            let upper = [lower.as_slice(), &[0]].concat();
            assert_eq!(self.keyspaces[keyspace].range(lower.to_vec()..=upper).count(), 0);
        }
    }

    fn checked(&self) -> u64 {
        run_background_jobs(&self.db, &self.clock);
        self.db.statistics().filters_checked
    }
}

/// A check takes 6 ms, as long as 3,000 reads of a mapped block are expected to take.
#[test]
fn a_small_table_is_checked_once_false_positives_have_cost_as_much() {
    let store = SmallTables::new(&["k"], Access::Mapped);
    let before = store.checked();
    store.read_empty_ranges(0, 0..2_500);
    assert_eq!(store.checked(), before, "too few");
    store.read_empty_ranges(0, 2_500..3_500);
    assert_eq!(store.checked(), before + 1);
    assert_eq!(*store.replaced.0.lock(), ["k"]);
    let read = blocks(&store.db, || store.read_empty_ranges(0, 3_500..SMALL_COUNT));
    assert!(read < 50, "{read} blocks for 500 ranges without a key: {}", design(&store.db));
}

#[test]
fn the_table_with_the_most_false_positives_is_checked_first() {
    for (counts, order) in [([4_000, 1_500], ["a", "b"]), ([1_500, 4_000], ["b", "a"])] {
        let store = SmallTables::new(&["a", "b"], Access::Buffered);
        (0..2).for_each(|keyspace| store.read_empty_ranges(keyspace, 0..counts[keyspace]));
        store.checked();
        assert_eq!(*store.replaced.0.lock(), order);
    }
}
