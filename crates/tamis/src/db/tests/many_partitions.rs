//! A store with 10,000 partitions, in a process that may have few open files: each operation uses the tables that it needs, and no others.

use std::{collections::BTreeMap, sync::Arc};

use tamis_vfs::{Access, FaultVfs, MemVfs, OperationKind, RecordVfs, Vfs};

use super::{partition_at, set_flushing};
use crate::{
    db::Db,
    error::Result,
    observe::{
        metrics::KeyspaceStatistics,
        steps::{self, Step},
    },
    options::{KeyspaceOptions, Layout, Options},
    slice::Slice,
    store::runtime::Runtime,
};

const PARTITIONS: u64 = 10_000;
const TABLES_PER_PARTITION: u64 = 2;
/// Descriptors of the process.
const OPEN_FILES_MAX: u64 = 64;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store and the operations on its files.
struct Store {
    db: Db,
    record: RecordVfs,
}

impl Store {
    fn open(memory: &MemVfs, workers: usize) -> Self {
        let record = RecordVfs::new(Arc::new(memory.clone()));
        let faults = FaultVfs::new(Arc::new(record.clone()));
        faults.limit_open_files(OPEN_FILES_MAX);
        // A union takes at most half as many tables as a partition may have: two neighbours have more.
        let layout = Layout::Partitioned { tables_per_partition: 4 };
        let default_keyspace = KeyspaceOptions::default().layout(layout);
        // Mapped tables need no descriptors.
        let table_access = Access::Buffered;
        let options =
            Options::default().workers(workers).table_access(table_access).default_keyspace(default_keyspace);
        let vfs: Arc<dyn Vfs> = Arc::new(faults);
        Self { db: Db::open_on(vfs, "/db", options, Runtime::deterministic(7)).unwrap(), record }
    }

    fn put(&self, model: &mut Model, (partition, position): (u64, u64), value: &str) {
        let key = key(partition, position);
        self.db.put(&key, value).unwrap();
        model.insert(key, value.as_bytes().to_vec());
    }

    fn keyspace(&self) -> KeyspaceStatistics {
        self.db.statistics().keyspaces.remove(0)
    }

    /// How many times a table was opened since the last reset of the record.
    fn opened_tables(&self) -> u64 {
        self.record.tally_of(OperationKind::Open, ".table").count
    }

    fn created_tables(&self) -> u64 {
        let operations = self.record.operations();
        let renamed = operations.iter().filter(|operation| operation.kind == OperationKind::Rename);
        let targets = renamed.filter_map(|operation| operation.target.as_ref());
        targets.filter(|target| target.extension().is_some_and(|end| end == "table")).count() as u64
    }
}

fn key(partition: u64, position: u64) -> Vec<u8> {
    (partition * 4 + position).to_be_bytes().to_vec()
}

/// Creates the partitions by one edit. Two memtables wait meanwhile, and each flush adds a table to every partition.
fn create(memory: &MemVfs) -> Model {
    let store = Store::open(memory, 0);
    let mut model = Model::new();
    set_flushing(&store.db, true);
    let state = store.db.default_keyspace().state;
    for round in 0..TABLES_PER_PARTITION {
        (0..PARTITIONS).for_each(|partition| store.put(&mut model, (partition, round), "old"));
        let _log = store.db.engine.store.log.lock();
        assert!(state.rotate_memtable());
    }
    partition_at(&store.db, (0..PARTITIONS).map(|index| if index == 0 { Vec::new() } else { key(index, 0) }));
    set_flushing(&store.db, false);
    store.db.flush().unwrap();
    store.db.wait_for_compactions().unwrap();
    assert_eq!(store.created_tables(), TABLES_PER_PARTITION * PARTITIONS);
    store.db.close().unwrap();
    model
}

fn check_scans(db: &Db, model: &Model) {
    let found = |entry: Result<(Slice, Slice)>| {
        let (key, value) = entry.unwrap();
        (key.to_vec(), value.to_vec())
    };
    let expected = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
    assert!(db.range(..).map(found).eq(model.iter().map(expected)));
    assert!(db.range(..).rev().map(found).eq(model.iter().rev().map(expected)));
}

#[test]
fn a_store_of_10000_partitions_uses_the_tables_that_it_needs() {
    let memory = MemVfs::new();
    let mut model = create(&memory);

    let store = Store::open(&memory, 0);
    assert_eq!(store.opened_tables(), 0);
    let keyspace = store.keyspace();
    assert_eq!(keyspace.partition_count as u64, PARTITIONS);
    let table_count: usize = keyspace.levels.iter().map(|level| level.table_count).sum();
    assert_eq!(table_count as u64, TABLES_PER_PARTITION * PARTITIONS);

    // A flush writes a table for each partition that it touches, and an edit that names no others.
    store.record.reset();
    let touched = [3, PARTITIONS / 2 + 1, PARTITIONS - 1];
    touched.into_iter().for_each(|partition| store.put(&mut model, (partition, 2), "new"));
    store.db.flush().unwrap();
    assert_eq!(store.created_tables(), touched.len() as u64);
    assert_eq!(store.opened_tables(), 0);
    let written = store.record.tally(OperationKind::Append).bytes;
    assert!(written < 64 << 10, "a flush of three entries writes {written} bytes");

    store.record.reset();
    let some: Vec<_> = model.iter().step_by(997).collect();
    for (key, value) in &some {
        assert_eq!(store.db.get(key).unwrap().as_deref(), Some(value.as_slice()));
    }
    assert!(store.opened_tables() <= TABLES_PER_PARTITION * some.len() as u64);

    // A flush goes once through the deleted ranges, for all partitions together.
    steps::take(Step::ComparedTombstone);
    let deleted = (7..PARTITIONS).step_by(20);
    let deleted_count = deleted.clone().count() as u64;
    for partition in deleted {
        store.db.delete_range(key(partition, 3)..key(partition + 1, 0)).unwrap();
    }
    store.db.flush().unwrap();
    let compared = steps::take(Step::ComparedTombstone) as u64;
    assert!(compared <= PARTITIONS + deleted_count, "{compared} range tombstones compared");
    assert_eq!(store.created_tables(), 0, "there is nothing to delete");

    check_scans(&store.db, &model);
    let statistics = store.db.statistics();
    assert!(statistics.open_files <= statistics.open_files_max, "{} files", statistics.open_files);
    assert!(statistics.open_files_max < OPEN_FILES_MAX / 2);
    assert_eq!((statistics.compactions, statistics.partition_decisions.unite.count), (0, 0));
    let report = store.db.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.faults);
    store.put(&mut model, (1, 3), "in the log");
    store.db.close().unwrap();

    // Other threads sync the tables of a flush, while a scan has files open.
    let store = Store::open(&memory, 2);
    let mut scan = store.db.range(..);
    assert!(scan.move_next().unwrap());
    for partition in (0..PARTITIONS).step_by(20) {
        store.put(&mut model, (partition, 3), "new");
    }
    store.db.flush().unwrap();
    store.db.wait_for_compactions().unwrap();
    assert_eq!(store.created_tables(), PARTITIONS / 20 + 1);
    drop(scan);
    for (key, value) in model.iter().step_by(997) {
        assert_eq!(store.db.get(key).unwrap().as_deref(), Some(value.as_slice()));
    }
    assert_eq!(store.keyspace().partition_count as u64, PARTITIONS);
    assert_eq!(store.db.statistics().jobs_failed, 0);
}
