#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use tamis_filter::auto::Prices;
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use super::*;
use crate::{
    compaction::{
        flush::{Layout, flush},
        flush_split::LowerOverlap,
        plan::{Action, PlanInput, PlanSpec, Reason},
    },
    key::Kind,
    memtable::{ChunkPool, Memtable},
    options::Options,
    version::{catalog::Catalog, test_support::catalog_of, version::KeyspaceVersion},
};

const FOLDER: &str = "/db";

/// The keys `a` to `z`, and the deleted range from `k` to `p` with sequence number 30.
fn memtable() -> Arc<Memtable> {
    let memtable = Memtable::new(&ChunkPool::new());
    for (sequence, key) in (1..).zip(b'a'..=b'z') {
        memtable.insert(&[key], sequence, Kind::Put, &[key; 100]);
    }
    memtable.insert(b"k", 30, Kind::RangeTombstone, b"p");
    memtable
}

/// Calls `work` with the context of a job that keeps all versions.
fn with_context<R>(
    vfs: &Arc<dyn Vfs>,
    version: &KeyspaceVersion,
    work: impl FnOnce(&JobContext<'_>) -> R,
) -> R {
    let number = AtomicU64::new(version.tables().map(|table| table.number()).max().unwrap_or(0) + 1);
    work(&JobContext {
        vfs,
        folder: Path::new(FOLDER),
        version,
        database_id: 77,
        filter_seed: 88,
        is_direct: false,
        listener: None,
        next_number: &|| number.fetch_add(1, Ordering::Relaxed),
        read_points: vec![0],
        sampled_queries: Arc::default(),
        prices: Prices::default(),
        is_cancelled: &AtomicBool::new(false),
        between_tables: &|| {},
    })
}

fn version_of(catalog: &Catalog) -> Arc<KeyspaceVersion> {
    Arc::clone(catalog.keyspaces.get(&1).unwrap())
}

/// A catalog with the memtable in L0, and the plan that divides it at `m`: into a new run of level 3 and the run of level 5.
fn divided_at_m(vfs: &Arc<dyn Vfs>) -> (Catalog, Plan) {
    let catalog = catalog_of(Vec::new(), &Arc::default());
    let layout = Layout { lower_overlap: LowerOverlap::Large, is_direct: false, newer: &Vec::new };
    let edit =
        with_context(vfs, &version_of(&catalog), |context| flush(context, &memtable(), &layout)).unwrap();
    let catalog = catalog.apply(&edit, &Arc::default()).unwrap().catalog;
    let version = version_of(&catalog);
    let partition = version.partitions.first().unwrap();
    let run = partition.level(0).unwrap().runs().first().unwrap();
    let output = |level, run_age, upper: Option<&[u8]>| PlanOutput {
        partition: 1,
        level,
        run_age,
        upper: upper.map(<[u8]>::to_vec),
    };
    let spec = PlanSpec {
        action: Action::Merge,
        reason: Reason::Level0,
        inputs: vec![PlanInput { level: 0, run_age: run.age(), tables: run.tables().to_vec() }],
        trivial_moves: Vec::new(),
        outputs: vec![output(3, 9, Some(b"m")), output(5, 0, None)],
        depth: 1,
        score: 1.0,
    };
    let plan = Plan::new(1, partition, spec).unwrap();
    (catalog, plan)
}

fn files(vfs: &dyn Vfs) -> Vec<String> {
    let entries = vfs.list(Path::new(FOLDER)).unwrap().into_iter();
    entries.map(|entry| entry.name).filter(|name| name.ends_with(".table")).collect()
}

#[test]
fn a_plan_with_several_outputs_divides_entries_and_range_tombstones() {
    let vfs: Arc<dyn Vfs> = Arc::new(MemVfs::new());
    vfs.create_dir_all(Path::new(FOLDER)).unwrap();
    let (catalog, plan) = divided_at_m(&vfs);
    let tables = TableCache::new(&vfs, Path::new(FOLDER), &Options::default(), &Arc::default());
    let merged = with_context(&vfs, &version_of(&catalog), |context| merge(context, &tables, &plan)).unwrap();
    let applied = catalog.apply(&merged.edit, &Arc::default()).unwrap();
    let version = version_of(&applied.catalog);
    let partition = version.partitions.first().unwrap();
    let mut found = Vec::new();
    for (level, run) in partition.runs() {
        let mut cursor = RunCursor::new(RunTables::read_once(run.tables(), &tables));
        cursor.seek_first().unwrap();
        let mut keys = String::new();
        while cursor.is_valid() {
            keys.extend(cursor.key().iter().map(|byte| char::from(*byte)));
            cursor.next().unwrap();
        }
        let tombstones = range_tombstones_of(run.tables().iter(), &tables).unwrap();
        let ranges = tombstones.into_iter().map(|range| (range.lower, range.upper)).collect::<Vec<_>>();
        found.push((level, run.age(), keys, ranges));
    }
    let range = |lower: &[u8], upper: &[u8]| vec![(lower.to_vec(), upper.to_vec())];
    let expected = [
        (3, 9, "abcdefghijkl".to_owned(), range(b"k", b"m")),
        (5, 0, "mnopqrstuvwxyz".to_owned(), range(b"m", b"p")),
    ];
    assert_eq!(found, expected);
    assert_eq!(merged.files.len(), 2);
}

#[test]
fn a_merge_that_fails_leaves_no_table_of_any_output() {
    let memory = MemVfs::new();
    memory.create_dir_all(Path::new(FOLDER)).unwrap();
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
    let (catalog, plan) = divided_at_m(&vfs);
    let before = files(&memory);
    let tables = TableCache::new(&vfs, Path::new(FOLDER), &Options::default(), &Arc::default());
    // The first output is complete when the table of the second one is created.
    faults.add_rule(Rule::error(std::io::ErrorKind::Other).on(&[OperationKind::Create]).nth(2));
    let failed = with_context(&vfs, &version_of(&catalog), |context| merge(context, &tables, &plan));
    assert!(matches!(failed, Err(crate::error::Error::Io { .. })), "{failed:?}");
    assert_eq!(files(&memory), before);
}
