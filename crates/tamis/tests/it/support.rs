//! Shared by the modules: small options, a database in memory, random numbers from a seed.

pub(crate) mod filter_store;

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tamis::{
    Clock, Db, Error, Event, EventListener, Filters, Keyspace, KeyspaceOptions, ManualClock, Options,
    Runtime, TableFilter, TableFilterStatistics,
};
use tamis_vfs::{MemVfs, OperationKind, Vfs};
pub(crate) use tamis_workload::SplitMix64;

/// The folder of every database in memory: an absolute path of the system.
pub(crate) const FOLDER: &str = if cfg!(windows) { r"C:\db" } else { "/db" };

/// The path of a table next to the folder of the database.
pub(crate) fn outside_table(number: u64) -> PathBuf {
    Path::new(FOLDER).with_file_name(format!("{number}.table"))
}

/// The operations that change the state after a crash.
pub(crate) const CHANGING: [OperationKind; 11] = [
    OperationKind::Create,
    OperationKind::Reuse,
    OperationKind::Append,
    OperationKind::Sync,
    OperationKind::Truncate,
    OperationKind::Rename,
    OperationKind::HardLink,
    OperationKind::Remove,
    OperationKind::CreateDir,
    OperationKind::SyncDir,
    // Changes no file: the last one, see `CHANGING_FILES`.
    OperationKind::Lock,
];

/// Those that change files.
pub(crate) const CHANGING_FILES: &[OperationKind] = CHANGING.split_at(10).0;

/// Whether tests try many seeds and sizes: `TAMIS_DEEP=1`, for a nightly run.
pub(crate) fn is_deep() -> bool {
    std::env::var_os("TAMIS_DEEP").is_some()
}

/// Whether sweeps try every operation: `TAMIS_SWEEPS=1` (as `.ci/run`) or `TAMIS_DEEP=1`. Without them a sweep tries a share.
pub(crate) fn is_complete() -> bool {
    is_deep() || std::env::var_os("TAMIS_SWEEPS").is_some()
}

/// A sweep tries one operation of this many: a prime, because operations and the bytes of files repeat in even steps.
pub(crate) fn sweep_stride() -> u64 {
    if is_complete() { 1 } else { 5 }
}

/// The seeds of a property test: `least` of them (or a share, as of a sweep), and more until the time of the test is over. Prints how many cases ran.
#[derive(Debug)]
pub(crate) struct Cases {
    least: u64,
    next: u64,
    start: Instant,
}

impl Cases {
    #[expect(
        clippy::disallowed_methods,
        reason = "a loaded machine runs fewer cases, and no case sees the time"
    )]
    pub(crate) fn at_least(least: u64) -> Self {
        Self { least: least.div_ceil(sweep_stride()), next: 0, start: Instant::now() }
    }
}

impl Iterator for Cases {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let share = Duration::from_secs(if is_deep() { 30 } else { 3 });
        let is_over = self.next >= self.least && self.start.elapsed() >= share;
        self.next += u64::from(!is_over);
        (!is_over).then(|| self.next - 1)
    }
}

impl Drop for Cases {
    fn drop(&mut self) {
        // The test harness hides what `println` prints in a test that passes.
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        let mut errors = std::io::stderr();
        let _ = writeln!(errors, "{test}: {} cases in {:.1?}", self.next, self.start.elapsed());
    }
}

/// Puts an entry into the store and its model.
pub(crate) fn put(db: &Db, model: &mut Model, number: u64, value: Vec<u8>) {
    let key = number.to_be_bytes();
    db.put(key, &value).unwrap();
    model.insert(key.to_vec(), value);
}

/// Everything runs on the calling thread, in the same order every time.
pub(crate) fn inline_options() -> Options {
    Options::default().workers(0).cache_bytes(1 << 20).log_bytes_max(1 << 20).deleted_range_keys(2)
}

/// One row for each filter family, and some combinations: no answer depends on them.
pub(crate) const FILTERS: [&str; 20] = [
    "blocked-bloom@10",
    "prefix-bloom:bytes=2@10",
    "prefix-bloom:bytes=12@10",
    "prefix-bloom:bytes=2+5,separator=0x00+a,points=yes@10",
    "elastic@9",
    "surf@18",
    "surf-base",
    "surf-hash:bits=4",
    "surf-real:bits=8",
    "surf-mixed:hash=2,real=4",
    "rosetta@12",
    "blocked-bloom@4 rosetta:probe-cap=64@16",
    "blocked-bloom@4 surf-real@20 prefix-bloom:bytes=3@6",
    "proteus@12",
    "proteus:trie=13,prefix=40@30",
    "proteus:trie=40@60",
    "1pbf:prefix=45,layout=lines@10",
    "1pbf:prefix=90,probe-cap=30@10",
    "2pbf:first=20,second=61@14",
    "grafite@12",
];

/// The filters of a row of [`FILTERS`], for every table.
pub(crate) fn filters(row: &str) -> Filters {
    Filters::each(table_filters(row))
}

/// The filters of the tables of the keyspace at `position` in the statistics.
pub(crate) fn filters_of_tables(db: &Db, position: usize) -> Vec<TableFilterStatistics> {
    let name = db.statistics().keyspaces.swap_remove(position).name;
    db.table_filters(&db.keyspace(&name).unwrap()).unwrap()
}

/// The designs of these filters.
pub(crate) fn filter_designs(db: &Db, position: usize) -> Vec<String> {
    filters_of_tables(db, position).into_iter().flat_map(|table| table.designs).collect()
}

/// The filters of one table.
pub(crate) fn table_filters(row: &str) -> Vec<TableFilter> {
    row.split(' ').map(|filter| filter.parse().unwrap()).collect()
}

/// Rebuilds the filters of all tables: those of a row of [`FILTERS`], or those with which the tables were written. Filters that do not
/// suit the keys of a table are refused.
pub(crate) fn rebuild_filters(db: &Db, keyspace: &Keyspace, row: Option<&str>) {
    match db.rebuild_filters(keyspace, &row.map_or_else(Vec::new, table_filters)) {
        Ok(()) | Err(Error::InvalidArgument { .. }) => {}
        Err(error) => panic!("filters {row:?}: {error}"),
    }
}

/// Small memtables and tables, so that few writes make many files.
pub(crate) fn small_keyspace() -> KeyspaceOptions {
    KeyspaceOptions::default().memtable_bytes(64 << 10).table_bytes(64 << 10).size_ratio(3).level0_runs(2)
}

/// Keys in the order of their numbers.
pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("key/{number:08}").into_bytes()
}

pub(crate) fn open_in_memory(vfs: &MemVfs, options: Options) -> tamis::Result<Db> {
    open_on(Arc::new(vfs.clone()), options)
}

pub(crate) fn open_on(vfs: Arc<dyn Vfs>, options: Options) -> tamis::Result<Db> {
    Db::open_on(vfs, FOLDER, options, Runtime::deterministic(7))
}

/// As [`open_in_memory`], with a clock of the test.
pub(crate) fn open_with_clock(vfs: &MemVfs, options: Options, clock: &Arc<ManualClock>) -> tamis::Result<Db> {
    let runtime = Runtime { clock: Arc::<ManualClock>::clone(clock), ..Runtime::deterministic(7) };
    Db::open_on(Arc::new(vfs.clone()), FOLDER, options, runtime)
}

/// The time of a manual clock, for entries that expire.
pub(crate) fn time_of(clock: &ManualClock) -> SystemTime {
    SystemTime::UNIX_EPOCH + clock.since_epoch()
}

/// The entries and the bytes of all tables.
pub(crate) fn totals(db: &Db) -> (u64, u64) {
    let keyspaces = db.statistics().keyspaces;
    let levels = || keyspaces.iter().flat_map(|keyspace| &keyspace.levels);
    (levels().map(|level| level.entry_count).sum(), levels().map(|level| level.bytes).sum())
}

/// Changes the options of a keyspace.
pub(crate) fn change_options(
    db: &Db,
    keyspace: &str,
    change: impl FnOnce(KeyspaceOptions) -> KeyspaceOptions,
) -> tamis::Result<()> {
    let keyspace = db.keyspace(keyspace)?;
    keyspace.set_options(change(keyspace.options()))
}

/// All events, in the order in which they were reported.
#[derive(Debug, Default)]
pub(crate) struct EventLog(pub(crate) Mutex<Vec<Event>>, Condvar);

impl EventLog {
    /// Waits until the condition holds, which is checked after each event and ten times a second, or at the limit: what an event reports may be visible later.
    /// False if that takes so long without an event.
    pub(crate) fn wait_until(&self, limit: Duration, mut is_met: impl FnMut() -> bool) -> bool {
        let slice = limit.min(Duration::from_millis(100));
        let mut slices = limit.as_millis() / slice.as_millis();
        let mut events = self.0.lock();
        while !MutexGuard::unlocked(&mut events, &mut is_met) {
            if slices == 0 {
                return false;
            }
            slices -= u128::from(self.1.wait_for(&mut events, slice).timed_out());
        }
        true
    }
}

impl EventListener for EventLog {
    fn on_event(&self, event: &Event) {
        self.0.lock().push(event.clone());
        self.1.notify_all();
    }
}

/// The entries that a keyspace should have.
pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Asserts that the default keyspace has exactly the entries of the model, for scans and gets, and that the store is sound.
pub(crate) fn check_entries(db: &Db, model: &Model) {
    let all: Model =
        db.range(..).map(|entry| entry.unwrap()).map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    assert!(all == *model, "{} entries instead of {}", all.len(), model.len());
    for (key, value) in model {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(value.as_slice()));
    }
    let report = db.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.faults);
}

/// Overwrites, deletes and inserts at random, and flushes `flush_count` times, each after `write_count` writes.
pub(crate) fn write_at_random(
    db: &Db,
    model: &mut Model,
    random: &mut SplitMix64,
    (flush_count, write_count): (u64, u64),
) {
    for round in 0..flush_count {
        for _ in 0..write_count {
            let key = random.below(1_500).to_be_bytes().to_vec();
            if random.below(5) == 0 {
                db.delete(&key).unwrap();
                model.remove(&key);
            } else {
                let value = vec![round as u8; random.below(400) as usize];
                db.put(&key, &value).unwrap();
                model.insert(key, value);
            }
        }
        db.flush().unwrap();
    }
}
