//! Compares operations on a store with ordered maps of the standard library: writes of every durability, batches over two
//! keyspaces, reads in both directions, snapshots, flushes, compactions, reopening with other layouts, views and filters, and power failures.
//!
//! After a power failure the state of the store equals its state after some write that is not older than the last synced one:
//! no synced write is lost, and batches are atomic.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use arbitrary::{Arbitrary, Unstructured};
use tamis::{
    Compression, Db, Durability, Filters, Keyspace, KeyspaceOptions, Layout, Options, Runtime, Scan,
    Snapshot, Views, WriteBatch,
};
use tamis_vfs::{Access, MemVfs};

/// Maximum number of operations per input.
const OPERATION_COUNT_MAX: usize = 120;
/// Name of the second keyspace; the first is the default one.
const SECOND: &str = "second";

#[derive(Debug, Arbitrary)]
enum Operation {
    Put { write: Write, durability: u8 },
    Delete { is_second: bool, key: u8, durability: u8 },
    Batch { writes: Vec<Write>, durability: u8 },
    Get { is_second: bool, key: u8 },
    Scan { is_second: bool, lower: u8, upper: u8, steps: Vec<bool> },
    Skip { is_second: bool, counts: Vec<u8> },
    Count { is_second: bool },
    TakeSnapshot,
    ReadSnapshot { is_second: bool },
    Persist,
    Flush,
    Compact { is_second: bool, lower: u8, upper: u8 },
    Reopen,
    Change { is_second: bool, layout: u8, views: u8, filters: u8 },
    Verify,
    LosePower { seed: u64 },
}

#[derive(Debug, Arbitrary)]
struct Write {
    is_second: bool,
    key: u8,
    /// 0 means a delete.
    value: u16,
}

/// The first part of the input; the rest are operations.
#[derive(Debug, Arbitrary)]
struct Setup {
    access: u8,
    compression: u8,
    has_filter: bool,
    /// Of the second keyspace.
    layout: u8,
    /// Of both keyspaces.
    views: u8,
    level0_runs: u8,
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
/// The content of both keyspaces.
type Maps = [Map; 2];

/// See the documentation of this module.
pub fn db_ops(data: &[u8]) {
    let mut source = Unstructured::new(data);
    let Ok(setup) = Setup::arbitrary(&mut source) else { return };
    let mut run = Run::new(&setup);
    for _ in 0..OPERATION_COUNT_MAX {
        match Operation::arbitrary(&mut source) {
            Ok(operation) if !source.is_empty() => run.apply(&operation),
            _ => break,
        }
    }
    run.check_all();
}

/// One of 30 keys: short, long, with common prefixes, prefixes of each other.
fn key(number: u8) -> Vec<u8> {
    let number = number % 30;
    let (kind, length) = (number % 5, usize::from(number / 5));
    match kind {
        0 => vec![number],
        1 => [b"common prefix ".as_slice(), &[7; 6][..length]].concat(),
        2 => vec![0xFF; length * 50 + 1],
        3 => vec![0; length * 3 + 1],
        _ => format!("key {number}").into_bytes(),
    }
}

/// A value that contains its number; some are larger than a block.
fn value(number: u16) -> Vec<u8> {
    let length = if number.is_multiple_of(37) { 9_000 } else { usize::from(number % 300) };
    number.to_le_bytes().into_iter().cycle().take(length).collect()
}

fn layout(number: u8) -> Layout {
    match number % 3 {
        0 => Layout::Leveled,
        1 => {
            Layout::Tiered { runs_per_level: 2 + u32::from(number / 3 % 4), space_amplification_percent: 150 }
        }
        _ => Layout::Partitioned { tables_per_partition: 4 },
    }
}

fn views(number: u8) -> Views {
    [Views::On, Views::Auto, Views::Off][usize::from(number % 3)]
}

fn filters(number: u8) -> Filters {
    match number % 3 {
        0 => Filters::none(),
        1 => Filters::auto(f32::from(number / 3 % 64 + 1)),
        _ => Filters::bits(10.0),
    }
}

fn durability(number: u8) -> Durability {
    match number % 3 {
        0 => Durability::Deferred,
        1 => Durability::Buffered,
        _ => Durability::Synced,
    }
}

struct Run {
    vfs: MemVfs,
    options: Options,
    db: Db,
    keyspaces: [Keyspace; 2],
    /// The states of the store after the last synced write and after each later write.
    history: Vec<Maps>,
    snapshots: Vec<(Snapshot, Maps)>,
}

impl Run {
    fn new(setup: &Setup) -> Self {
        let access = [Access::Mapped, Access::Buffered, Access::Direct][usize::from(setup.access % 3)];
        let compression = [Compression::None, Compression::Lz4, Compression::Zstd(1)];
        let keyspace_options = KeyspaceOptions::default()
            .memtable_bytes(64 << 10)
            .table_bytes(64 << 10)
            .compression(vec![compression[usize::from(setup.compression % 3)]])
            .filters(Filters::bits(if setup.has_filter { 10.0 } else { 0.0 }))
            .layout(layout(setup.layout))
            .views(views(setup.views))
            .level0_runs(2 + u32::from(setup.level0_runs % 30));
        let default_keyspace = keyspace_options.clone().layout(Layout::Leveled);
        let options = Options::default()
            .workers(0)
            .table_access(access)
            .cache_bytes(1 << 20)
            .default_keyspace(default_keyspace);
        let vfs = MemVfs::new();
        let db = open(&vfs, &options);
        db.create_keyspace(SECOND, keyspace_options).expect("a new name");
        let keyspaces = keyspaces(&db);
        // Later opens may change the options of the keyspaces.
        let options = options.default_keyspace(KeyspaceOptions::default());
        Self { vfs, options, db, keyspaces, history: vec![Maps::default()], snapshots: Vec::new() }
    }

    fn now(&self) -> &Maps {
        self.history.last().expect("the history is not empty")
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Put { write, durability } => self.write(std::slice::from_ref(write), *durability),
            Operation::Delete { is_second, key, durability } => {
                self.write(&[Write { is_second: *is_second, key: *key, value: 0 }], *durability);
            }
            Operation::Batch { writes, durability } => self.write(writes, *durability),
            Operation::Get { is_second, key: number } => {
                let (index, key) = (usize::from(*is_second), key(*number));
                let found = self.keyspaces[index].get(&key).expect("no corruption");
                assert_eq!(found.as_deref(), self.now()[index].get(&key).map(Vec::as_slice));
            }
            Operation::Scan { is_second, lower, upper, steps } => {
                let index = usize::from(*is_second);
                let (lower, upper) = (key(*lower), key(*upper));
                let scan = self.keyspaces[index].range(lower.clone()..upper.clone());
                let expected = self.now()[index].iter().filter(|(key, _)| (&lower..&upper).contains(key));
                check_scan(scan, expected.collect(), steps);
            }
            Operation::Skip { is_second, counts } => {
                let index = usize::from(*is_second);
                check_skips(self.keyspaces[index].range(..), &self.now()[index], counts);
            }
            Operation::Count { is_second } => {
                // Not exact without a view: only that it returns.
                let keyspace = &self.keyspaces[usize::from(*is_second)];
                keyspace.approximate_count(..).expect("no corruption");
            }
            Operation::TakeSnapshot => self.snapshots.push((self.db.snapshot(), self.now().clone())),
            Operation::ReadSnapshot { is_second } => {
                let Some((snapshot, maps)) = self.snapshots.first() else { return };
                let index = usize::from(*is_second);
                let scan = snapshot.range(&self.keyspaces[index], ..);
                check_scan(scan, maps[index].iter().collect(), &[]);
            }
            Operation::Persist => {
                self.db.persist(Durability::Synced).expect("syncs in memory do not fail");
                self.clear_history();
            }
            Operation::Flush => self.db.flush().expect("flushes in memory do not fail"),
            Operation::Compact { is_second, lower, upper } => {
                let range = key(*lower)..=key(*upper);
                let keyspace = &self.keyspaces[usize::from(*is_second)];
                self.db.compact_range(keyspace, range).expect("no corruption");
            }
            Operation::Reopen => self.reopen(),
            Operation::Change { is_second, layout: layout_number, views: views_number, filters: number } => {
                let keyspace = &self.keyspaces[usize::from(*is_second)];
                let options = keyspace.options();
                let options = match layout_number / 3 % 3 {
                    0 => options.views(views(*views_number)),
                    1 => options.layout(layout(*layout_number)),
                    _ => options.filters(filters(*number)),
                };
                keyspace.set_options(options).expect("all values are within their bounds");
            }
            Operation::Verify => {
                let report = self.db.verify().expect("files in memory can be read");
                assert!(report.is_sound(), "{:?}", report.faults);
            }
            Operation::LosePower { seed } => self.lose_power(*seed),
        }
    }

    fn write(&mut self, writes: &[Write], number: u8) {
        let mut batch = WriteBatch::new();
        let mut maps = self.now().clone();
        for write in writes {
            let index = usize::from(write.is_second);
            let (keyspace, key) = (&self.keyspaces[index], key(write.key));
            if write.value == 0 {
                batch.delete(keyspace, &key).expect("keys are within their limits");
                maps[index].remove(&key);
            } else {
                let value = value(write.value);
                batch.put(keyspace, &key, &value).expect("keys and values are within their limits");
                maps[index].insert(key, value);
            }
        }
        let is_empty = batch.is_empty();
        self.db.write_with(batch, durability(number)).expect("writes in memory do not fail");
        self.history.push(maps);
        if durability(number) == Durability::Synced && !is_empty {
            self.clear_history();
        }
    }

    /// Drops the history after all writes are synced.
    fn clear_history(&mut self) {
        self.history.drain(..self.history.len() - 1);
    }

    fn reopen(&mut self) {
        self.snapshots.clear();
        self.db.clone().close().expect("closing in memory does not fail");
        self.replace(self.vfs.clone());
        self.check_all();
    }

    /// Closes the old handle before opening the new one, because both need the lock of the folder.
    fn replace(&mut self, vfs: MemVfs) {
        let elsewhere = open(&MemVfs::new(), &self.options);
        elsewhere.create_keyspace(SECOND, KeyspaceOptions::default()).expect("a new name");
        self.keyspaces = keyspaces(&elsewhere);
        self.db = elsewhere;
        self.db = open(&vfs, &self.options);
        self.keyspaces = keyspaces(&self.db);
        self.vfs = vfs;
    }

    fn lose_power(&mut self, seed: u64) {
        self.snapshots.clear();
        let after = self.vfs.crash_clone(seed);
        self.replace(after);
        let found = [contents(&self.keyspaces[0]), contents(&self.keyspaces[1])];
        assert!(self.history.contains(&found), "the state never existed, or is older than the last sync");
        // The recovered state is the oldest state after the next crash.
        self.db.persist(Durability::Synced).expect("syncs in memory do not fail");
        self.history = vec![found];
    }

    fn check_all(&self) {
        for (keyspace, map) in self.keyspaces.iter().zip(self.now()) {
            assert_eq!(contents(keyspace), *map);
            check_scan(keyspace.range(..), map.iter().collect(), &[true, false, false]);
        }
    }
}

fn open(vfs: &MemVfs, options: &Options) -> Db {
    Db::open_on(Arc::new(vfs.clone()), Path::new("/store"), options.clone(), Runtime::deterministic(1))
        .expect("the store opens")
}

fn keyspaces(db: &Db) -> [Keyspace; 2] {
    [db.default_keyspace(), db.keyspace(SECOND).expect("it was created with the store")]
}

fn contents(keyspace: &Keyspace) -> Map {
    let entries = keyspace.range(..).map(|entry| entry.expect("no corruption"));
    entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

/// Compares the entries after skipped ones with the model.
fn check_skips(mut scan: Scan, model: &Map, counts: &[u8]) {
    let mut expected = model.iter();
    for count in counts {
        let found = scan.nth(usize::from(*count)).transpose().expect("no corruption");
        let wanted = expected.nth(usize::from(*count));
        let found = found.map(|(key, value)| (key.to_vec(), value.to_vec()));
        assert_eq!(found, wanted.map(|(key, value)| (key.clone(), value.clone())));
    }
}

/// Reads a scan from both ends in the order of the steps (forward after them), and compares it with the expected entries.
fn check_scan(mut scan: Scan, expected: Vec<(&Vec<u8>, &Vec<u8>)>, steps: &[bool]) {
    let mut expected = expected.into_iter();
    for is_backward in steps.iter().copied().chain(std::iter::repeat(false)) {
        let (found, wanted) = if is_backward {
            (scan.next_back(), expected.next_back())
        } else {
            (scan.next(), expected.next())
        };
        let found = found.transpose().expect("no corruption");
        let found = found.map(|(key, value)| (key.to_vec(), value.to_vec()));
        let is_end = wanted.is_none();
        assert_eq!(found, wanted.map(|(key, value)| (key.clone(), value.clone())));
        if is_end {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
