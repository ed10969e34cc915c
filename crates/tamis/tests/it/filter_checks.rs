//! Checks of filters in the background: each shift of the queries is noticed, also of small tables and after other shifts.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
};

use parking_lot::Mutex;
use tamis::{
    Db, Error, Event, EventListener, Keyspace, KeyspaceOptions, ManualClock, Options, Runtime, Views,
};
use tamis_vfs::{Access, FaultVfs, MemVfs, OperationKind, Rule};

use crate::support::{
    EventLog, FOLDER,
    filter_store::{
        KEY_COUNT, assert_suits_close_ranges, blocks, choose_for_uniform_ranges, close_ranges, design,
        filled_with, filled_with_clock, key, run_background_jobs, uniform_ranges,
    },
    small_keyspace, table_filters,
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
        close_ranges(&keyspace, 4_000);
        run_background_jobs(&db, &clock);
    }
    let of_close = design(&db);
    assert!(replaced() > once, "{of_uniform}, then {of_close}");
    let read = blocks(&db, || close_ranges(&keyspace, 2_000));
    assert!(read * 4 < shifted, "{read} blocks, {shifted} before: {of_uniform}, then {of_close}");
}

/// The sample has few queries of the time after it began again when the counters are read: they are enough.
#[test]
fn a_shift_is_noticed_however_many_queries_run_between_two_looks() {
    let (db, keyspace, clock) = filled_with_clock();
    choose_for_uniform_ranges(&db, &keyspace, &clock);
    let before = db.statistics().filters_replaced;
    for _ in 0..4 {
        close_ranges(&keyspace, 100_000);
        run_background_jobs(&db, &clock);
    }
    assert!(db.statistics().filters_replaced > before, "{}", design(&db));
    let read = blocks(&db, || close_ranges(&keyspace, 2_000));
    assert!(read <= 100, "{read} blocks for 2,000 ranges without a key: {}", design(&db));
}

/// Each of the tables that are due at once is checked with the new queries only.
#[test]
fn all_tables_that_are_due_wait_for_the_queries_after_a_shift() {
    let small = KeyspaceOptions::default().memtable_bytes(256 << 10).table_bytes(256 << 10);
    let (db, keyspace, clock) = filled_with(small.level0_runs(64).views(Views::Off));
    choose_for_uniform_ranges(&db, &keyspace, &clock);
    for _ in 0..6 {
        close_ranges(&keyspace, 20_000);
        run_background_jobs(&db, &clock);
    }
    assert_suits_close_ranges(&db, &keyspace);
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
        let options = Options::default().workers(0).table_access(table_access).listener(listener);
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

const VALUE_BYTES: usize = 600;

/// A store whose only worker is in a check of filters: it is held at its first read of the table.
struct HeldCheck {
    db: Db,
    keyspace: Keyspace,
    events: Arc<EventLog>,
    release: Sender<()>,
    /// Bytes of the table that the worker has read.
    read_bytes: Arc<AtomicU64>,
}

/// The ends of two channels: the hook reports that the worker reads the table, and waits for its release.
type Hold = Mutex<Option<(Sender<()>, Receiver<()>)>>;

impl HeldCheck {
    fn new() -> Self {
        let (vfs, events) = (FaultVfs::new(Arc::new(MemVfs::new())), Arc::new(EventLog::default()));
        let options = Options::default()
            .workers(1)
            .table_access(Access::Buffered)
            .cache_bytes(1 << 20)
            .listener(Arc::<EventLog>::clone(&events));
        let runtime = Runtime::deterministic(1);
        let db = Db::open_on(Arc::new(vfs.clone()), FOLDER, options, runtime).unwrap();
        let keyspace = db.create_keyspace("k", KeyspaceOptions::default()).unwrap();
        (0..KEY_COUNT).for_each(|number| keyspace.put(key(number), [7; VALUE_BYTES]).unwrap());
        db.flush().unwrap();
        db.rebuild_filters(&keyspace, &table_filters("blocked-bloom@10")).unwrap();

        let ((send_reached, reached), (release, released)) = (channel(), channel());
        let hold: Hold = Mutex::new(Some((send_reached, released)));
        let read_bytes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&read_bytes);
        let hook = Rule::slow(move |operation| {
            let is_worker =
                std::thread::current().name().is_some_and(|name| name.starts_with("tamis-worker"));
            if !is_worker {
                return;
            }
            let first = hold.lock().take();
            if let Some((reached, released)) = first {
                reached.send(()).unwrap();
                released.recv().unwrap();
            }
            counted.fetch_add(operation.length_bytes, Ordering::SeqCst);
        });
        vfs.add_rule(hook.on(&[OperationKind::Read]).path(".table"));
        close_ranges(&keyspace, 4_000);
        reached.recv().unwrap();
        Self { db, keyspace, events, release, read_bytes }
    }

    /// Asserts that the check has ended long before it has read the table.
    fn assert_stopped(read_bytes: &AtomicU64, events: &EventLog) {
        let (read, all) = (read_bytes.load(Ordering::SeqCst), KEY_COUNT * VALUE_BYTES as u64);
        assert!(read < all / 2, "{read} bytes read of a table of {all} bytes");
        let events = events.0.lock();
        let is_unexpected =
            |event: &&Event| matches!(event, Event::FiltersReplaced { .. } | Event::JobFailed { .. });
        assert!(!events.iter().any(|event| is_unexpected(&event)), "{events:?}");
    }
}

/// A check reads a table of any size, and chooses for as long as it was written: writers would wait for it.
#[test]
fn a_flush_that_falls_due_during_a_check_does_not_wait_for_it() {
    let held = HeldCheck::new();
    let other = held.db.create_keyspace("other", small_keyspace()).unwrap();
    (0..1_500_u32).for_each(|number| other.put(number.to_be_bytes(), [7; 60]).unwrap());
    held.release.send(()).unwrap();
    while held.db.statistics().filters_replaced == 0 {
        std::thread::yield_now();
    }
    held.db.close().unwrap();
    let events = held.events.0.lock();
    let place = |wanted: fn(&Event) -> bool| events.iter().position(wanted);
    let flushed = place(|event| matches!(event, Event::Flushed { keyspace, .. } if keyspace == "other"));
    let replaced = place(|event| matches!(event, Event::FiltersReplaced { .. }));
    assert!(flushed.is_some() && flushed < replaced, "{events:?}");
}

#[test]
fn closing_the_store_stops_a_check() {
    let HeldCheck { db, keyspace, events, release, read_bytes } = HeldCheck::new();
    std::thread::scope(|scope| {
        let closed = scope.spawn(|| db.close());
        while !matches!(keyspace.get(key(0)), Err(Error::Closed)) {
            std::thread::yield_now();
        }
        release.send(()).unwrap();
        closed.join().unwrap().unwrap();
    });
    HeldCheck::assert_stopped(&read_bytes, &events);
}

#[test]
fn dropping_a_keyspace_stops_the_check_of_its_table() {
    let HeldCheck { db, events, release, read_bytes, .. } = HeldCheck::new();
    db.drop_keyspace("k").unwrap();
    release.send(()).unwrap();
    // It waits for the worker.
    db.close().unwrap();
    HeldCheck::assert_stopped(&read_bytes, &events);
}
