//! A job that divides or splits a partition pauses flushes at its end. However much is flushed or ingested while it runs, it cuts few bytes
//! in this pause: else writers would wait for it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tamis_vfs::{FaultVfs, MemVfs, Operation, OperationKind, Rule, Vfs};

use crate::{
    db::Db,
    options::{KeyspaceOptions, Layout, Options},
    store::runtime::Runtime,
    version::edit::{Change, VersionEdit},
};

const MEMTABLE_BYTES: u64 = 64 << 10;
const KEY_COUNT: u64 = 240;
const PARTITIONED: Layout = Layout::Partitioned { tables_per_partition: 10 };

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The work of another thread while the job runs, before each table of the job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Fills a memtable, which is flushed.
    Flush,
    /// Ingests a table.
    Ingest,
}

/// Works before tables of the job as long as flushes are not paused, and counts what the job writes in the pause.
struct Load {
    db: OnceLock<Db>,
    work: Work,
    /// Before each table of the job with a number that this divides.
    interval: u64,
    times_left: AtomicU64,
    table_count: AtomicU64,
    paused_bytes: AtomicU64,
    is_working: AtomicBool,
    model: Mutex<Model>,
}

impl Load {
    fn new(work: Work, interval: u64, times: u64) -> Self {
        Self {
            db: OnceLock::new(),
            work,
            interval,
            times_left: AtomicU64::new(times),
            table_count: AtomicU64::new(0),
            paused_bytes: AtomicU64::new(0),
            is_working: AtomicBool::new(false),
            model: Mutex::default(),
        }
    }

    /// Called before each operation of the job on a new table, and of the work itself.
    fn before(&self, operation: &Operation) {
        let Some(db) = self.db.get() else { return };
        if self.is_working.swap(true, Ordering::SeqCst) {
            return;
        }
        if db.default_keyspace().state.flush_slot.is_taken() {
            self.paused_bytes.fetch_add(operation.length_bytes, Ordering::SeqCst);
        } else if operation.kind == OperationKind::Create {
            let number = self.table_count.fetch_add(1, Ordering::SeqCst);
            let left = self.times_left.load(Ordering::SeqCst);
            if left > 0 && number.is_multiple_of(self.interval) {
                self.times_left.store(left - 1, Ordering::SeqCst);
                self.work(db, left);
            }
        }
        self.is_working.store(false, Ordering::SeqCst);
    }

    /// Writes to keys of all new partitions.
    fn work(&self, db: &Db, round: u64) {
        let mut model = self.model.lock().unwrap();
        let entries = (0..KEY_COUNT).step_by(3).map(|number| (key(number), vec![round as u8; 1_000]));
        let entries: Vec<_> = entries.collect();
        if self.work == Work::Flush {
            let flushes = db.statistics().flushes;
            entries.iter().for_each(|(key, value)| db.put(key, value).unwrap());
            assert!(db.statistics().flushes > flushes, "a memtable was filled");
        } else {
            let path = format!("/{round}");
            let mut table = db.default_keyspace().table_writer(&path).unwrap();
            entries.iter().for_each(|(key, value)| table.put(key, value).unwrap());
            table.finish().unwrap();
            db.ingest(&db.default_keyspace(), [path]).unwrap();
        }
        model.extend(entries);
    }
}

fn key(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn options(layout: Layout) -> Options {
    let default_keyspace =
        KeyspaceOptions::default().memtable_bytes(MEMTABLE_BYTES).table_bytes(MEMTABLE_BYTES).layout(layout);
    Options::default().workers(0).default_keyspace(default_keyspace)
}

/// A leveled store with a large run in key order, and with a small table of keys anywhere.
fn leveled_store(memory: &MemVfs, model: &mut Model) {
    let db =
        Db::open_on(Arc::new(memory.clone()), "/db", options(Layout::Leveled), Runtime::deterministic(7));
    let db = db.unwrap();
    let mut put = |number: u64, value: Vec<u8>| {
        db.put(key(number), &value).unwrap();
        model.insert(key(number), value);
    };
    (0..KEY_COUNT).for_each(|number| put(number, vec![1; 4_000]));
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    (0..KEY_COUNT).step_by(40).for_each(|number| put(number, vec![2; 500]));
    db.flush().unwrap();
    db.close().unwrap();
}

/// Changes the layout of the store under load; returns the bytes that jobs wrote while flushes were paused.
fn paused_bytes(work: Work, interval: u64, times: u64) -> u64 {
    let memory = MemVfs::new();
    let mut model = Model::new();
    leveled_store(&memory, &mut model);
    let load = Arc::new(Load::new(work, interval, times));
    *load.model.lock().unwrap() = model;
    let faults = FaultVfs::new(Arc::new(memory));
    let hook = Arc::clone(&load);
    let kinds = [OperationKind::Create, OperationKind::Append];
    faults.add_rule(Rule::slow(move |operation| hook.before(operation)).on(&kinds).path(".tmp"));
    let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
    let db = Db::open_on(vfs, "/db", options(Layout::Leveled), Runtime::deterministic(7)).unwrap();
    let version = Arc::clone(&db.default_keyspace().state.read_state.load().version);
    let partitioned = (*version.options).clone().layout(PARTITIONED);
    let change = Change::SetOptions { keyspace: version.id, options: partitioned };
    db.engine.store.installer.install(VersionEdit { changes: vec![change] }).unwrap();
    // The first edit after an open begins a manifest, with an operation that the load must not follow.
    let db = load.db.get_or_init(|| db);
    db.wait_for_compactions().unwrap();
    faults.clear_rules();
    let statistics = db.statistics();
    let partition_count = statistics.keyspaces.first().map_or(0, |keyspace| keyspace.partition_count);
    assert!(statistics.partition_decisions.divide.count > 0 && partition_count > 3, "{statistics:?}");
    let entries = db.range(..).map(|entry| entry.unwrap());
    let found: Model = entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    assert!(found == *load.model.lock().unwrap(), "entries are lost");
    assert!(db.verify().unwrap().is_sound());
    load.paused_bytes.load(Ordering::SeqCst)
}

/// Flushes were paused while all tables were cut that had been flushed since the job began.
#[test]
fn a_division_cuts_no_flushed_table_while_flushes_are_paused() {
    for times in [0, 1, 20] {
        let bytes = paused_bytes(Work::Flush, 1, times);
        assert!(bytes <= MEMTABLE_BYTES / 8, "{times} flushes: {bytes} bytes");
    }
}

#[test]
fn a_division_cuts_large_ingested_tables_before_it_pauses_flushes() {
    let bytes = paused_bytes(Work::Ingest, 2, 2);
    assert!(bytes <= MEMTABLE_BYTES / 8, "{bytes} bytes");
}

/// Tables are ingested during all passes, so that much is always left to cut: the last tables are cut in the pause.
#[test]
fn a_division_ends_although_tables_are_always_ingested() {
    let bytes = paused_bytes(Work::Ingest, 5, u64::MAX);
    assert!(bytes > MEMTABLE_BYTES / 8, "{bytes} bytes: the job ended before the last pass");
}
