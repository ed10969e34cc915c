//! Measures the figures that deletes must meet, on the file system of the machine, and prints them with their limits.
//!
//! `cargo run --release -p tamis-bench --bin delete-figures` takes some minutes and needs a quiet machine; `-- --quick` uses a
//! twentieth of the entries. Exit codes: 0 all limits are met; 1 a limit is missed; 2 the measurement failed or an argument is
//! unknown.

use std::{process::ExitCode, time::Duration};

use tamis::{Clock as _, Db, Keyspace, KeyspaceOptions, Snapshot, SystemClock, WriteBatch};
use tamis_bench::limits::{Limits, Result};
use tamis_workload::SplitMix64;

/// The time that the background gets for its jobs.
const BACKGROUND: Duration = Duration::from_secs(2);
const PREFIX: &[u8] = b"p";
const VALUE: [u8; 100] = [7; 100];
const MILLISECOND: Duration = Duration::from_millis(1);
const TENTH: Duration = Duration::from_micros(100);
/// Runs of puts, and as many of deletes.
const PARTS: u64 = 7;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let scale = match words.as_slice() {
        [] => 1,
        ["--quick"] => 20,
        _ => {
            eprintln!("usage: delete-figures [--quick]");
            return ExitCode::from(2);
        }
    };
    let mut figures = Figures { scale, limits: Limits::new() };
    let result = figures.measure_all();
    figures.limits.exit_code(&result)
}

/// One store on disk.
struct Store {
    folder: tempfile::TempDir,
    db: Db,
    keyspace: Keyspace,
    clock: SystemClock,
}

impl Store {
    fn new(options: KeyspaceOptions) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let db = Db::open(folder.path())?;
        let keyspace = db.create_keyspace("k", options)?;
        Ok(Self { folder, db, keyspace, clock: SystemClock::default() })
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

    /// Flushes, and waits until no compaction is due.
    fn settle(&self) -> Result<()> {
        self.db.flush()?;
        Ok(self.db.wait_for_compactions()?)
    }

    /// Blocks that reads have used.
    fn blocks(&self) -> u64 {
        let statistics = self.db.statistics();
        statistics.blocks_read + statistics.cache_hits
    }

    /// The result of a call, its time and its blocks.
    fn measure<R>(&self, call: impl FnOnce() -> tamis::Result<R>) -> Result<(R, Duration, u64)> {
        let blocks = self.blocks();
        let start = self.clock.now();
        let result = call()?;
        let time = self.clock.now().saturating_sub(start);
        Ok((result, time, self.blocks() - blocks))
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
        for file in std::fs::read_dir(self.folder.path())? {
            let file = file?;
            if file.path().extension().is_some_and(|extension| extension == "table") {
                bytes += file.metadata()?.len();
            }
        }
        Ok(bytes)
    }

    /// Entries in tables.
    fn entries(&self) -> u64 {
        let keyspaces = self.db.statistics().keyspaces;
        let keyspace = keyspaces.iter().filter(|keyspace| keyspace.name == "k");
        keyspace.flat_map(|keyspace| &keyspace.levels).map(|level| level.entry_count).sum()
    }
}

fn key(number: u64) -> Vec<u8> {
    [PREFIX, &number.to_be_bytes()].concat()
}

/// The first step of a scan of the prefix.
fn first_step(store: &Store, is_backward: bool) -> tamis::Result<bool> {
    let mut scan = store.keyspace.prefix(PREFIX);
    if !is_backward {
        return scan.move_next();
    }
    scan.seek_to_last();
    scan.move_prev()
}

/// A memtable of 4 MiB.
fn small_memtable() -> KeyspaceOptions {
    KeyspaceOptions { memtable_bytes: 4 << 20, ..KeyspaceOptions::default() }
}

/// Measures and prints.
struct Figures {
    /// Numbers of entries are divided by it.
    scale: u64,
    limits: Limits,
}

impl Figures {
    fn measure_all(&mut self) -> Result<()> {
        self.queue("queue, memtable of 4 MiB", small_memtable(), 100_000)?;
        self.queue("queue, default options, 1,000,000 deletes", KeyspaceOptions::default(), 1_000_000)?;
        self.delete_one_by_one()?;
        self.delete_range()?;
        self.scan_deleted_prefix(false)?;
        self.scan_deleted_prefix(true)?;
        self.overwrite_under_snapshot(false)?;
        self.overwrite_under_snapshot(true)
    }

    fn time(&mut self, name: &str, limit: Duration, value: Duration) {
        let shown = if limit == Duration::MAX { "-".to_owned() } else { format!("{limit:?}") };
        self.limits.add(name, &shown, &format!("{value:.1?}"), value <= limit);
    }

    fn count(&mut self, name: &str, limit: u64, value: u64) {
        self.limits.add(name, &limit.to_string(), &value.to_string(), value <= limit);
    }

    fn percent(&mut self, name: &str, limit: u64, part: u64, all: u64) {
        let percent = 100.0 * part as f64 / all.max(1) as f64;
        self.limits.add(name, &format!("{limit} %"), &format!("{percent:.1} %"), percent <= limit as f64);
    }

    /// Puts at the tail, deletes at the head, 1,000 live entries.
    fn queue(&mut self, name: &str, options: KeyspaceOptions, delete_count: u64) -> Result<()> {
        let store = Store::new(options)?;
        store.put(0..1_000)?;
        let (mut times, mut blocks_max) = (Vec::new(), 0);
        for number in 0..delete_count / self.scale {
            store.keyspace.put(key(number + 1_000), VALUE)?;
            store.keyspace.delete(key(number))?;
            if number % 50 == 49 {
                let (first, time, blocks) = store.measure(|| store.keyspace.first())?;
                if first.is_none_or(|(found, _)| found.as_ref() != key(number + 1)) {
                    return Err("the queue has another first entry".into());
                }
                times.push(time);
                blocks_max = blocks_max.max(blocks);
            }
        }
        times.sort_unstable();
        let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
        self.time(&format!("{name}: first, p99"), TENTH / 2, p99);
        self.count(&format!("{name}: first, most blocks"), 16, blocks_max);
        Ok(())
    }

    fn delete_one_by_one(&mut self) -> Result<()> {
        let count = 500_000 / self.scale;
        let store = Store::new(small_memtable())?;
        store.put(0..count)?;
        store.settle()?;
        let before = store.table_bytes()?;
        store.delete(0..count)?;
        store.db.flush()?;
        store.wait(BACKGROUND);
        let (first, time, blocks) = store.measure(|| store.keyspace.first())?;
        if first.is_some() {
            return Err("a deleted entry is visible".into());
        }
        let name = "500,000 single deletes, 2 s later";
        self.time(&format!("{name}: first"), MILLISECOND, time);
        self.count(&format!("{name}: blocks of first"), 8, blocks);
        self.percent(&format!("{name}: bytes on disk"), 10, store.table_bytes()?, before);
        Ok(())
    }

    fn delete_range(&mut self) -> Result<()> {
        let store = Store::new(small_memtable())?;
        store.put(0..1_000_000 / self.scale)?;
        store.settle()?;
        let before = store.table_bytes()?;
        let (log, blocks) = (store.db.statistics().log_bytes_written, store.blocks());
        let ((), time, _) = store.measure(|| store.keyspace.delete_prefix(PREFIX))?;
        let name = "range delete of 1,000,000 entries";
        self.time(name, MILLISECOND, time);
        self.count(&format!("{name}: bytes of log"), 200, store.db.statistics().log_bytes_written - log);
        store.db.flush()?;
        store.wait(BACKGROUND);
        self.count(&format!("{name}: blocks read in 2 s"), 20, store.blocks() - blocks);
        self.percent(&format!("{name}: bytes on disk"), 10, store.table_bytes()?, before);
        Ok(())
    }

    /// A store with 14 runs whose entries are all deleted, and the snapshot that keeps the background from compacting them.
    fn deleted_prefix(&self, by_range: bool) -> Result<(Store, Snapshot)> {
        let count = 200_000 / self.scale;
        let part_of = |part| (0..count).filter(move |number| number % PARTS == part);
        let store =
            Store::new(KeyspaceOptions { level0_runs: 64, memtable_bytes: 64 << 20, ..small_memtable() })?;
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
        let levels = store.db.statistics().keyspaces.into_iter().flat_map(|keyspace| keyspace.levels);
        let run_count: usize = levels.map(|level| level.run_count).sum();
        match run_count as u64 == 2 * PARTS {
            true => Ok((store, snapshot)),
            false => Err(format!("{run_count} runs instead of {}", 2 * PARTS).into()),
        }
    }

    fn scan_deleted_prefix(&mut self, by_range: bool) -> Result<()> {
        let limit = if by_range { TENTH } else { 5 * MILLISECOND };
        let kind = if by_range { "range delete" } else { "200,000 single deletes" };
        for is_backward in [false, true] {
            let direction = if is_backward { "backward" } else { "forward" };
            let name = format!("{kind}, 14 runs, {direction} scan");
            let (store, _snapshot) = self.deleted_prefix(by_range)?;
            let (_, time, blocks) = store.measure(|| first_step(&store, is_backward))?;
            let limit_of_immediate = if by_range { limit } else { Duration::MAX };
            self.time(&format!("{name}, at once ({blocks} blocks)"), limit_of_immediate, time);
            drop(store);
            let (store, snapshot) = self.deleted_prefix(by_range)?;
            // The background has scanned the deleted keys; the snapshot keeps it from compacting them.
            store.db.wait_for_compactions()?;
            let scan = || first_step(&store, is_backward);
            for round in ["first", "second"] {
                let (_, time, blocks) = store.measure(scan)?;
                self.time(&format!("{name}, {round} ({blocks} blocks)"), limit, time);
            }
            drop(snapshot);
            store.db.compact_range::<&[u8]>(&store.keyspace, ..)?;
            let (_, time, _) = store.measure(scan)?;
            self.time(&format!("{name}, compacted"), TENTH, time);
        }
        Ok(())
    }

    fn overwrite_under_snapshot(&mut self, by_request: bool) -> Result<()> {
        let count = 300_000 / self.scale;
        let store = Store::new(small_memtable())?;
        store.put(0..count)?;
        let snapshot = store.db.snapshot();
        let mut random = SplitMix64::new(7);
        let mut numbers: Vec<u64> = (0..count).collect();
        numbers.sort_by_cached_key(|_| random.next_u64());
        store.put(numbers.into_iter())?;
        store.settle()?;
        drop(snapshot);
        match by_request {
            true => store.db.compact_range::<&[u8]>(&store.keyspace, ..)?,
            false => store.wait(BACKGROUND),
        }
        // Versions whose replacement is in a shallower level wait for the size of that level.
        let (how, limit) = if by_request { ("compact_range", 100) } else { ("2 s later", 125) };
        let name = format!("300,000 overwritten under a snapshot, {how}: entries in tables");
        self.percent(&name, limit, store.entries(), count);
        Ok(())
    }
}
