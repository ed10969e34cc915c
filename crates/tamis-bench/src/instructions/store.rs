//! Reads and writes of a store: memtable, tables, scans of runs, of a sorted view and of one run, a flush.

use std::{path::Path, sync::Arc};

use tamis::{Db, Durability, KeyspaceOptions, Layout, Options, OsVfs, Runtime, Views, WriteBatch};
use tamis_workload::{KeySet, SplitMix64};

use super::{Case, Work};
use crate::BenchError;

const RUN_COUNT: usize = 4;
const KEYS_PER_RUN: usize = 5_000;
const KEY_COUNT: usize = RUN_COUNT * KEYS_PER_RUN;
const OPERATION_COUNT: usize = 2_000;
const STEP_COUNT: usize = 20_000;
const TRANSACTION_COUNT: usize = 200;
/// Reads of each kind before those that are counted.
const QUERIES_BEFORE: usize = 20_000;
const SEED: u64 = 42;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("store: get, memtable", OPERATION_COUNT, |folder| gets(memtable_store(folder)?, true)),
        Case::new("store: get, tables", OPERATION_COUNT, |folder| {
            gets(tables_store(folder, Sorted::Not)?, true)
        }),
        Case::new("store: get, absent", OPERATION_COUNT, |folder| {
            gets(tables_store(folder, Sorted::Not)?, false)
        }),
        Case::new("store: seek, 4 runs", OPERATION_COUNT, |folder| seeks(folder, Sorted::Not)),
        Case::new("store: closed empty range, 4 runs", OPERATION_COUNT, empty_ranges),
        Case::new("store: next, 4 runs", STEP_COUNT - 1, |folder| steps(folder, Sorted::Not, true)),
        Case::new("store: prev, 4 runs", STEP_COUNT - 1, |folder| steps(folder, Sorted::Not, false)),
        Case::new("store: next, 4 runs that share every second key", STEP_COUNT - 1, |folder| {
            steps_in(shared_store(folder)?, true)
        }),
        Case::new("view: get, absent", OPERATION_COUNT, |folder| {
            gets(tables_store(folder, Sorted::ByView)?, false)
        }),
        Case::new("view: seek, 4 runs", OPERATION_COUNT, |folder| seeks(folder, Sorted::ByView)),
        Case::new("view: next, 4 runs", STEP_COUNT - 1, |folder| steps(folder, Sorted::ByView, true)),
        Case::new("view: prev, 4 runs", STEP_COUNT - 1, |folder| steps(folder, Sorted::ByView, false)),
        Case::new("store: seek, 1 run", OPERATION_COUNT, |folder| seeks(folder, Sorted::InOneRun)),
        Case::new("store: next, 1 run", STEP_COUNT - 1, |folder| steps(folder, Sorted::InOneRun, true)),
        Case::new("store: prev, 1 run", STEP_COUNT - 1, |folder| steps(folder, Sorted::InOneRun, false)),
        Case::new("partitions: seek, 1 run each", OPERATION_COUNT, partition_seeks),
        Case::new("store: put", OPERATION_COUNT, puts),
        Case::new("store: put in batches of 100", OPERATION_COUNT, batches),
        Case::new("store: flush, entries", KEY_COUNT, flush),
        Case::new("store: ten gets, batch of ten puts", TRANSACTION_COUNT, |folder| transfers(folder, false)),
        Case::new("store: transaction of ten gets, ten puts", TRANSACTION_COUNT, |folder| {
            transfers(folder, true)
        }),
    ]
}

/// Reads and writes ten keys of the tables at a time, in a transaction or without.
fn transfers(folder: &Path, in_transactions: bool) -> Result<Work, BenchError> {
    let store = tables_store(folder, Sorted::Not)?;
    let keyspace = store.db.keyspace("counted")?;
    Ok(Box::new(move || {
        let mut random = SplitMix64::new(SEED);
        let mut sum = 0;
        for _ in 0..TRANSACTION_COUNT {
            let keys: Vec<_> =
                (0..10).map(|_| store.key(random.below(KEY_COUNT as u64) as usize, true)).collect();
            if in_transactions {
                let transaction = store.db.transaction();
                for key in keys {
                    sum += transaction.get(&keyspace, key)?.map_or(0, |value| value.len());
                    transaction.put(&keyspace, key, [8; 100])?;
                }
                transaction.commit()?;
                continue;
            }
            let mut batch = WriteBatch::new();
            for key in keys {
                sum += keyspace.get(key)?.map_or(0, |value| value.len());
                batch.put(&keyspace, key, [8; 100])?;
            }
            store.db.write(batch)?;
        }
        Ok(sum as u64)
    }))
}

/// How the entries of the runs are sorted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sorted {
    Not,
    ByView,
    InOneRun,
}

struct Store {
    db: Db,
    /// Sorted; even positions are in the store.
    keys: Vec<u64>,
}

/// The `index`-th key that is in the store, or one between such keys.
impl Store {
    fn key(&self, index: usize, is_present: bool) -> [u8; 8] {
        let position = index % KEY_COUNT * 2 + usize::from(!is_present);
        self.keys.get(position).copied().unwrap_or_default().to_be_bytes()
    }
}

fn empty_store(folder: &Path, keyspace: KeyspaceOptions) -> Result<Store, BenchError> {
    // One thread, one seed, and a clock that is moved by hand.
    let options = Options::default().workers(0);
    let db = Db::open_on(Arc::new(OsVfs), folder, options, Runtime::deterministic(SEED))?;
    db.create_keyspace("counted", keyspace)?;
    Ok(Store { db, keys: KeySet::Uniform.generate(2 * KEY_COUNT, SEED) })
}

/// Runs are not compacted.
fn runs_only(views: Views) -> KeyspaceOptions {
    KeyspaceOptions::default().level0_runs(64).views(views)
}

/// Keys are dealt to the runs in turn, so that all runs overlap.
fn fill(store: &Store, run: usize) -> Result<(), BenchError> {
    let keyspace = store.db.keyspace("counted")?;
    let mut batch = WriteBatch::new();
    for index in (run..KEY_COUNT).step_by(RUN_COUNT) {
        batch.put(&keyspace, store.key(index, true), [7; 100])?;
    }
    Ok(store.db.write(batch)?)
}

/// Runs of which each also has every second key of the run before it.
fn shared_store(folder: &Path) -> Result<Store, BenchError> {
    let store = empty_store(folder, runs_only(Views::Off))?;
    let keyspace = store.db.keyspace("counted")?;
    for run in 0..RUN_COUNT {
        let mut batch = WriteBatch::new();
        let before = run.checked_sub(1).into_iter();
        let shared = before.flat_map(|run| (run..KEY_COUNT).step_by(2 * RUN_COUNT));
        for index in shared.chain((run..KEY_COUNT).step_by(RUN_COUNT)) {
            batch.put(&keyspace, store.key(index, true), [7; 100])?;
        }
        store.db.write(batch)?;
        store.db.flush()?;
    }
    verify_blocks(&store)?;
    Ok(store)
}

fn memtable_store(folder: &Path) -> Result<Store, BenchError> {
    let store = empty_store(folder, runs_only(Views::Off))?;
    (0..RUN_COUNT).try_for_each(|run| fill(&store, run))?;
    Ok(store)
}

fn tables_store(folder: &Path, sorted: Sorted) -> Result<Store, BenchError> {
    let store =
        empty_store(folder, runs_only(if sorted == Sorted::ByView { Views::On } else { Views::Off }))?;
    for run in 0..RUN_COUNT {
        fill(&store, run)?;
        store.db.flush()?;
    }
    if sorted == Sorted::InOneRun {
        store.db.compact_range(&store.db.keyspace("counted")?, ..)?;
    }
    verify_blocks(&store)?;
    sample_queries(&store)?;
    Ok(store)
}

/// Reads all entries: blocks of mapped tables are verified at their first use, which is not counted.
fn verify_blocks(store: &Store) -> Result<(), BenchError> {
    for entry in store.db.keyspace("counted")?.range(..) {
        entry?;
    }
    Ok(())
}

/// Reads until the store samples as few queries as it does in the long run.
fn sample_queries(store: &Store) -> Result<(), BenchError> {
    let keyspace = store.db.keyspace("counted")?;
    let key = store.key(0, true);
    for _ in 0..QUERIES_BEFORE {
        keyspace.get(key)?;
        keyspace.range(key..=key).next().transpose()?;
        keyspace.range(key..).next().transpose()?;
    }
    Ok(())
}

/// Positions of keys in random order.
fn positions(count: usize) -> Vec<usize> {
    let mut random = SplitMix64::new(SEED);
    (0..count).map(|_| usize::try_from(random.below(KEY_COUNT as u64)).unwrap_or_default()).collect()
}

fn gets(store: Store, is_present: bool) -> Result<Work, BenchError> {
    let keyspace = store.db.keyspace("counted")?;
    let keys: Vec<[u8; 8]> =
        positions(OPERATION_COUNT).into_iter().map(|index| store.key(index, is_present)).collect();
    Ok(Box::new(move || {
        let _ = &store;
        let mut bytes = 0;
        for key in &keys {
            bytes += keyspace.get(key)?.map_or(0, |value| value.len() as u64);
        }
        Ok(bytes)
    }))
}

fn seeks(folder: &Path, sorted: Sorted) -> Result<Work, BenchError> {
    seeks_in(tables_store(folder, sorted)?)
}

fn seeks_in(store: Store) -> Result<Work, BenchError> {
    let keyspace = store.db.keyspace("counted")?;
    let keys: Vec<[u8; 8]> =
        positions(OPERATION_COUNT).into_iter().map(|index| store.key(index, false)).collect();
    Ok(Box::new(move || {
        let _ = &store;
        let mut found = 0;
        for key in &keys {
            found += u64::from(keyspace.range(*key..).next().transpose()?.is_some());
        }
        Ok(found)
    }))
}

/// Seeks in a store of several partitions with one run each.
fn partition_seeks(folder: &Path) -> Result<Work, BenchError> {
    // A flush of more tables than a partition may have, which is divided at the gaps between them.
    let keyspace =
        KeyspaceOptions::default().table_bytes(64 << 10).layout(Layout::partitioned()).views(Views::Off);
    let store = empty_store(folder, keyspace)?;
    (0..RUN_COUNT).try_for_each(|run| fill(&store, run))?;
    store.db.flush()?;
    store.db.wait_for_compactions()?;
    let statistics = store.db.statistics();
    let is_divided = statistics.keyspaces.iter().any(|keyspace| keyspace.partition_count > 2);
    assert!(is_divided, "the store has several partitions");
    verify_blocks(&store)?;
    sample_queries(&store)?;
    seeks_in(store)
}

fn empty_ranges(folder: &Path) -> Result<Work, BenchError> {
    let store = tables_store(folder, Sorted::Not)?;
    let keyspace = store.db.keyspace("counted")?;
    let keys: Vec<[u8; 8]> =
        positions(OPERATION_COUNT).into_iter().map(|index| store.key(index, false)).collect();
    Ok(Box::new(move || {
        let _ = &store;
        let mut found = 0;
        for key in &keys {
            let upper = (u64::from_be_bytes(*key) + 16).to_be_bytes();
            found += u64::from(keyspace.range(*key..=upper).next().transpose()?.is_some());
        }
        Ok(found)
    }))
}

fn steps(folder: &Path, sorted: Sorted, is_forward: bool) -> Result<Work, BenchError> {
    steps_in(tables_store(folder, sorted)?, is_forward)
}

fn steps_in(store: Store, is_forward: bool) -> Result<Work, BenchError> {
    let keyspace = store.db.keyspace("counted")?;
    let mut scan = keyspace.range(..);
    // The seek and the first step position the scan, which is not counted.
    if !is_forward {
        scan.seek_for_prev([0xFF; 9])?;
    }
    if is_forward {
        scan.move_next()?
    } else {
        scan.move_prev()?
    };
    Ok(Box::new(move || {
        let _ = &store;
        let mut bytes = 0;
        for _ in 1..STEP_COUNT {
            let is_valid = if is_forward { scan.move_next()? } else { scan.move_prev()? };
            bytes += u64::from(is_valid) * scan.value().len() as u64;
        }
        Ok(bytes)
    }))
}

fn puts(folder: &Path) -> Result<Work, BenchError> {
    let store = memtable_store(folder)?;
    let keyspace = store.db.keyspace("counted")?;
    let keys: Vec<[u8; 8]> =
        positions(OPERATION_COUNT).into_iter().map(|index| store.key(index, false)).collect();
    Ok(Box::new(move || {
        let _ = &store;
        for key in &keys {
            keyspace.put(key, [7; 100])?;
        }
        Ok(keys.len() as u64)
    }))
}

fn batches(folder: &Path) -> Result<Work, BenchError> {
    let store = memtable_store(folder)?;
    let keyspace = store.db.keyspace("counted")?;
    let keys: Vec<[u8; 8]> =
        positions(OPERATION_COUNT).into_iter().map(|index| store.key(index, false)).collect();
    Ok(Box::new(move || {
        for keys in keys.chunks(100) {
            let mut batch = WriteBatch::new();
            for key in keys {
                batch.put(&keyspace, key, [7; 100])?;
            }
            store.db.write_with(batch, Durability::Deferred)?;
        }
        Ok(keys.len() as u64)
    }))
}

fn flush(folder: &Path) -> Result<Work, BenchError> {
    let store = memtable_store(folder)?;
    Ok(Box::new(move || {
        store.db.flush()?;
        Ok(store.db.statistics().flushes)
    }))
}
