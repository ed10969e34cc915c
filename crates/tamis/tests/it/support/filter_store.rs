//! A store of random keys whose filters are chosen from its queries, and these queries.

use std::{sync::Arc, time::Duration};

use tamis::{Db, Filters, Keyspace, KeyspaceOptions, ManualClock, Options, Runtime, WriteBatch};
use tamis_vfs::MemVfs;
use tamis_workload::{SplitMix64, mix64};

use super::{FOLDER, filter_designs};

/// Keys of a store.
pub(crate) const KEY_COUNT: u64 = 20_000;

pub(crate) fn key(number: u64) -> [u8; 8] {
    mix64(number).to_be_bytes()
}

/// Ranges anywhere.
pub(crate) fn uniform_ranges(keyspace: &Keyspace, count: u64, seed: u64) {
    let mut random = SplitMix64::new(seed);
    for _ in 0..count {
        let lower = random.next_u64() >> 1;
        let upper = lower + (32 << random.below(16));
        assert!(keyspace.range(lower.to_be_bytes()..=upper.to_be_bytes()).count() < 2);
    }
}

/// Reads uniform ranges until the filters suit them, and no check is due.
pub(crate) fn choose_for_uniform_ranges(db: &Db, keyspace: &Keyspace, clock: &ManualClock) {
    uniform_ranges(keyspace, 100_000, 5);
    db.check_filters(keyspace).unwrap();
    run_background_jobs(db, clock);
}

/// Asserts that close ranges read as few blocks as with the filters that a check chooses after many more of them.
pub(crate) fn assert_suits_close_ranges(db: &Db, keyspace: &Keyspace) {
    let (read, design_before) = (blocks(db, || close_ranges(keyspace, 2_000)), design(db));
    close_ranges(keyspace, 100_000);
    db.check_filters(keyspace).unwrap();
    let best = blocks(db, || close_ranges(keyspace, 2_000));
    assert!(
        read as f64 <= 1.2 * best as f64 + 4.0,
        "{read} blocks with {design_before}, {best} later with {}",
        design(db)
    );
}

/// A store whose clock is moved by the test.
pub(crate) fn filled_with_clock() -> (Db, Keyspace, Arc<ManualClock>) {
    filled_with(KeyspaceOptions::default())
}

/// As [`filled_with_clock`], with these options of the keyspace.
pub(crate) fn filled_with(options: KeyspaceOptions) -> (Db, Keyspace, Arc<ManualClock>) {
    filled_on(&MemVfs::new(), options)
}

/// As [`filled_with`], in these files.
pub(crate) fn filled_on(vfs: &MemVfs, options: KeyspaceOptions) -> (Db, Keyspace, Arc<ManualClock>) {
    let (db, clock) = open_with_clock(vfs, Options::default());
    let keyspace = db.create_keyspace("k", options).unwrap();
    for numbers in (0..KEY_COUNT).step_by(1_000) {
        let mut batch = WriteBatch::new();
        for number in numbers..numbers + 1_000 {
            batch.put(&keyspace, key(number), [7; 60]).unwrap();
        }
        db.write(batch).unwrap();
    }
    db.flush().unwrap();
    (db, keyspace, clock)
}

/// Opens a store of [`filled_on`], and changes the filters of its keyspace.
pub(crate) fn open_with_filters(vfs: &MemVfs, filters: Filters) -> (Db, Keyspace, Arc<ManualClock>) {
    let (db, clock) = open_with_clock(vfs, Options::default());
    let keyspace = db.keyspace("k").unwrap();
    keyspace.set_options(keyspace.options().filters(filters)).unwrap();
    (db, keyspace, clock)
}

fn open_with_clock(vfs: &MemVfs, options: Options) -> (Db, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    let runtime = Runtime { clock: Arc::<ManualClock>::clone(&clock), ..Runtime::deterministic(1) };
    let options = options.workers(0);
    (Db::open_on(Arc::new(vfs.clone()), FOLDER, options, runtime).unwrap(), clock)
}

/// Gets of absent keys, each one once.
pub(crate) fn absent_points(keyspace: &Keyspace, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert!(keyspace.get(key(KEY_COUNT + number)).unwrap().is_none());
    }
}

/// Ranges directly above keys.
pub(crate) fn close_ranges(keyspace: &Keyspace, count: u64) {
    let mut random = SplitMix64::new(3);
    for _ in 0..count {
        let lower = u64::from_be_bytes(key(random.below(KEY_COUNT))).saturating_add(1 + random.below(1_000));
        let upper = lower.saturating_add(16);
        assert!(keyspace.range(lower.to_be_bytes()..=upper.to_be_bytes()).count() < 2);
    }
}

pub(crate) fn design(db: &Db) -> String {
    filter_designs(db, 1).join(" + ")
}

/// Blocks that `work` reads or finds in the cache.
pub(crate) fn blocks(db: &Db, work: impl FnOnce()) -> u64 {
    let touched = || db.statistics().blocks_read + db.statistics().cache_hits;
    let before = touched();
    work();
    touched() - before
}

/// Lets the background jobs of a store without workers run.
pub(crate) fn run_background_jobs(db: &Db, clock: &ManualClock) {
    clock.advance(Duration::from_secs(2));
    db.put("unrelated", "value").unwrap();
}
