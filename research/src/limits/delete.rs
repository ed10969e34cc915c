//! Promises of deletes: the time and the blocks of reads near deleted entries, and the bytes that remain on disk.

use std::time::Duration;

use tamis::{Clock as _, Db, Keyspace, KeyspaceOptions, Snapshot, SystemClock, WriteBatch};
use tamis_bench::{BenchError, Context, Point, Row, VALUE_BYTES};
use tamis_workload::SplitMix64;

use super::{Result, blocks, statistics_of};
use crate::stores::settle;

/// The time that the background gets for its jobs.
const BACKGROUND: Duration = Duration::from_secs(2);
const PREFIX: &[u8] = b"p";
const VALUE: [u8; VALUE_BYTES] = [7; VALUE_BYTES];
/// Runs of puts, and as many of deletes.
const PARTS: u64 = 7;

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row> {
    let count = point.integer("entries")?;
    context.progress(0.0)?;
    match point.text("part")? {
        "queue, memtable of 4 MiB" => queue(context, small_memtable(), count),
        "queue, default options" => queue(context, KeyspaceOptions::default(), count),
        "single deletes" => delete_one_by_one(context, count),
        "range delete" => delete_range(context, count),
        "scan of single deletes" => scan_deleted(context, count, false, false),
        "scan back of single deletes" => scan_deleted(context, count, false, true),
        "scan of a range delete" => scan_deleted(context, count, true, false),
        "scan back of a range delete" => scan_deleted(context, count, true, true),
        "overwritten under a snapshot" => overwrite_under_snapshot(context, count, false),
        _ => overwrite_under_snapshot(context, count, true),
    }
}

/// One store on disk.
struct Store {
    db: Db,
    keyspace: Keyspace,
    clock: SystemClock,
    folder: tempfile::TempDir,
}

impl Store {
    fn new(context: &Context<'_>, options: KeyspaceOptions) -> Result<Self> {
        let folder = context.scratch()?;
        let db = Db::open(folder.path())?;
        let keyspace = db.create_keyspace("k", options)?;
        Ok(Self { db, keyspace, clock: SystemClock::default(), folder })
    }

    /// Applies `change` to the keys of all numbers, in batches of 100.
    fn write(
        &self,
        numbers: impl Iterator<Item = u64>,
        change: impl Fn(&mut WriteBatch, &Keyspace, Vec<u8>) -> tamis::Result<()>,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        for number in numbers {
            change(&mut batch, &self.keyspace, key(number))?;
            if batch.len() == 100 {
                self.db.write(std::mem::take(&mut batch))?;
            }
        }
        Ok(self.db.write(batch)?)
    }

    fn put(&self, numbers: impl Iterator<Item = u64>) -> Result<()> {
        self.write(numbers, |batch, keyspace, key| batch.put(keyspace, key, VALUE))
    }

    fn delete(&self, numbers: impl Iterator<Item = u64>) -> Result<()> {
        self.write(numbers, |batch, keyspace, key| batch.delete(keyspace, key))
    }

    /// The result of a call, its microseconds and its blocks.
    fn measure<R>(&self, call: impl FnOnce() -> tamis::Result<R>) -> Result<(R, f64, u64)> {
        let (before, start) = (blocks(&self.db), self.clock.now());
        let result = call()?;
        let time = self.clock.now().saturating_sub(start);
        Ok((result, time.as_secs_f64() * 1e6, blocks(&self.db) - before))
    }

    fn wait(&self, time: Duration) {
        let end = self.clock.now() + time;
        while self.clock.now() < end {
            std::thread::park_timeout(end.saturating_sub(self.clock.now()));
        }
    }

    /// Bytes of the tables on disk.
    fn table_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        for file in std::fs::read_dir(self.folder.path()).map_err(BenchError::io(self.folder.path()))? {
            let path = file.map_err(BenchError::io(self.folder.path()))?.path();
            if path.extension().is_some_and(|extension| extension == "table") {
                bytes += path.metadata().map_or(0, |metadata| metadata.len());
            }
        }
        Ok(bytes)
    }

    fn levels(&self) -> Result<Vec<tamis::LevelStatistics>> {
        Ok(statistics_of(&self.db, "k")?.levels)
    }
}

fn key(number: u64) -> Vec<u8> {
    [PREFIX, &number.to_be_bytes()].concat()
}

fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

/// A memtable of 4 MiB.
fn small_memtable() -> KeyspaceOptions {
    KeyspaceOptions::default().memtable_bytes(4 << 20)
}

/// Puts at the tail, deletes at the head, 1,000 live entries.
fn queue(context: &mut Context<'_>, options: KeyspaceOptions, count: u64) -> Result<Row> {
    let store = Store::new(context, options)?;
    store.put(0..1_000)?;
    let (mut times, mut blocks_max) = (Vec::new(), 0);
    for number in 0..count {
        store.keyspace.put(key(number + 1_000), VALUE)?;
        store.keyspace.delete(key(number))?;
        if number % 50 == 49 {
            let (first, time, blocks) = store.measure(|| store.keyspace.first())?;
            if first.is_none_or(|(found, _)| found.as_ref() != key(number + 1)) {
                return Err(BenchError::other("the queue has another first entry"));
            }
            times.push(time);
            blocks_max = blocks_max.max(blocks);
            context.progress(number as f64 / count as f64)?;
        }
    }
    times.sort_by(f64::total_cmp);
    let p99 = times.get(times.len() * 99 / 100).copied();
    Ok(Row::new().with("first_us_p99", p99).with("blocks_max", blocks_max))
}

fn delete_one_by_one(context: &Context<'_>, count: u64) -> Result<Row> {
    let store = Store::new(context, small_memtable())?;
    store.put(0..count)?;
    settle(&store.db)?;
    let before = store.table_bytes()?;
    store.delete(0..count)?;
    store.db.flush()?;
    store.wait(BACKGROUND);
    let (first, time, blocks) = store.measure(|| store.keyspace.first())?;
    if first.is_some() {
        return Err(BenchError::other("a deleted entry is visible"));
    }
    let row = Row::new().with("us", time).with("blocks", blocks);
    Ok(row.with("bytes_percent", percent(store.table_bytes()?, before)))
}

fn delete_range(context: &Context<'_>, count: u64) -> Result<Row> {
    let store = Store::new(context, small_memtable())?;
    store.put(0..count)?;
    settle(&store.db)?;
    let before = store.table_bytes()?;
    let (log, blocks_before) = (store.db.statistics().log_bytes_written, blocks(&store.db));
    let ((), time, _) = store.measure(|| store.keyspace.delete_prefix(PREFIX))?;
    let log_bytes = store.db.statistics().log_bytes_written - log;
    store.db.flush()?;
    store.wait(BACKGROUND);
    let row = Row::new().with("us", time).with("log_bytes", log_bytes);
    let row = row.with("blocks", blocks(&store.db) - blocks_before);
    Ok(row.with("bytes_percent", percent(store.table_bytes()?, before)))
}

/// A store with 14 runs whose entries are all deleted, and the snapshot that keeps the background from compacting them.
fn deleted_prefix(context: &Context<'_>, count: u64, by_range: bool) -> Result<(Store, Snapshot)> {
    let part_of = |part| (0..count).filter(move |number| number % PARTS == part);
    let options = KeyspaceOptions::default().level0_runs(64).memtable_bytes(64 << 20);
    let store = Store::new(context, options)?;
    for part in 0..PARTS {
        store.put(part_of(part))?;
        store.db.flush()?;
    }
    let snapshot = store.db.snapshot();
    for part in 0..PARTS {
        match by_range && part + 1 == PARTS {
            true => store.keyspace.delete_prefix(PREFIX)?,
            false => store.delete(part_of(part))?,
        }
        store.db.flush()?;
    }
    let run_count: usize = store.levels()?.iter().map(|level| level.run_count).sum();
    match run_count as u64 == 2 * PARTS {
        true => Ok((store, snapshot)),
        false => Err(BenchError::Other(format!("{run_count} runs instead of {}", 2 * PARTS))),
    }
}

fn scan_deleted(context: &mut Context<'_>, count: u64, by_range: bool, is_backward: bool) -> Result<Row> {
    let first_step = |store: &Store| {
        store.measure(|| {
            let mut scan = store.keyspace.prefix(PREFIX);
            if !is_backward {
                return scan.move_next();
            }
            scan.seek_to_last();
            scan.move_prev()
        })
    };
    let (store, _snapshot) = deleted_prefix(context, count, by_range)?;
    let (_, at_once, blocks) = first_step(&store)?;
    drop(store);
    context.progress(0.5)?;
    let (store, snapshot) = deleted_prefix(context, count, by_range)?;
    // The background has scanned the deleted keys; the snapshot keeps it from compacting them.
    store.db.wait_for_compactions()?;
    let (_, first, _) = first_step(&store)?;
    let (_, second, _) = first_step(&store)?;
    drop(snapshot);
    store.db.compact_range(&store.keyspace, ..)?;
    let (_, compacted, _) = first_step(&store)?;
    let row = Row::new().with("us_at_once", at_once).with("blocks_at_once", blocks);
    Ok(row.with("us_first", first).with("us_second", second).with("us_compacted", compacted))
}

fn overwrite_under_snapshot(context: &Context<'_>, count: u64, by_request: bool) -> Result<Row> {
    let store = Store::new(context, small_memtable())?;
    store.put(0..count)?;
    let snapshot = store.db.snapshot();
    let mut random = SplitMix64::new(7);
    let mut numbers: Vec<u64> = (0..count).collect();
    numbers.sort_by_cached_key(|_| random.next_u64());
    store.put(numbers.into_iter())?;
    settle(&store.db)?;
    drop(snapshot);
    match by_request {
        true => store.db.compact_range(&store.keyspace, ..)?,
        false => store.wait(BACKGROUND),
    }
    let entries: u64 = store.levels()?.iter().map(|level| level.entry_count).sum();
    Ok(Row::new().with("entries_percent", percent(entries, count)))
}
