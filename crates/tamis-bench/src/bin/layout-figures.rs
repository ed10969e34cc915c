//! Measures the figures that the partitioned layout must meet, next to the leveled layout with the same sizes, and prints them with their
//! limits.
//!
//! The same entries are loaded in the same random order into a leveled and a partitioned store, which then take the same reads and updates
//! in alternation. Every other option has its default. Times of writes include the compactions that the writes cause.
//!
//! `cargo run --release -p tamis-bench --bin layout-figures` takes 50 million entries with a memtable of 64 MiB and needs a quiet machine
//! and 40 GB of disk; `-- --quick` takes a twentieth, `-- --entries N` another number. Memtable and tables are scaled with the
//! entries; `-- --table-bytes N` sets the size of tables, `-- --partitions N` the partitions of the store whose open is timed. That store
//! is then read completely; `ulimit -n` can set a limit of open files. `-- --only seeks`, `ycsb`, `composite` or `open` measures one part,
//! after the fill that it needs. Stores are created in the temporary folder (`TMPDIR`). Exit codes: 0 all limits
//! are met; 1 a limit is missed; 2 the measurement failed or an argument is unknown.

use std::{
    path::Path,
    process::ExitCode,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use tamis::{Clock as _, Db, Keyspace, KeyspaceOptions, KeyspaceStatistics, Layout, Options, SystemClock};
use tamis_bench::{
    driver::bytes_written,
    limits::{self, Limits, Result},
};
use tamis_workload::{
    Permutation, ScrambledZipfian, SplitMix64, ZipfianComposite, mix64, operations::hex_digits,
};

const ENTRIES_FULL: u64 = 50_000_000;
const ENTRIES_QUICK: u64 = ENTRIES_FULL / 20;
/// Of the full size.
const MEMTABLE_BYTES_FULL: u64 = 64 << 20;
/// Tables of a memtable, for both layouts: as with the default options.
const TABLES_PER_MEMTABLE: u64 = 1;
/// The least size of memtables and tables that the store takes.
const BYTES_MIN: u64 = 64 << 10;
const VALUE_BYTES: usize = 100;
/// Number of entries with the same key prefix: the same share of a memtable as in the paper.
const ENTRIES_PER_PREFIX: u64 = 1024;
/// Client threads of the YCSB workloads.
const THREADS: u64 = 2;
/// Measured times of opening a store, each of another copy.
const OPENS: usize = 5;
/// Every so many-th entry of the store whose open is timed is updated after its views are built.
const ENTRIES_PER_LATE_UPDATE: u64 = 10;
/// The interval between two reads of the memory counters.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);
const PARTITIONS: usize = 1_000;
const KEYSPACE: &str = "figures";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((sizes, only)) = parse(&arguments) else {
        eprintln!(
            "usage: layout-figures [--quick | --entries N] [--table-bytes N] [--partitions N] [--only seeks|ycsb|composite|open]"
        );
        return ExitCode::from(2);
    };
    let mut figures = Figures { sizes, only, limits: Limits::new() };
    let result = figures.measure_all();
    figures.limits.exit_code(&result)
}

#[derive(Clone, Copy)]
struct Sizes {
    entries: u64,
    memtable_bytes: u64,
    table_bytes: u64,
    /// Of the store whose open is timed.
    partitions: usize,
}

/// A part of the measurements that can be selected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Seeks,
    Ycsb,
    Composite,
    Open,
}

impl Part {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "seeks" => Some(Self::Seeks),
            "ycsb" => Some(Self::Ycsb),
            "composite" => Some(Self::Composite),
            "open" => Some(Self::Open),
            _ => None,
        }
    }
}

/// The sizes, and the only part to measure.
fn parse(arguments: &[String]) -> Option<(Sizes, Option<Part>)> {
    let (mut entries, mut table_bytes, mut only) = (ENTRIES_FULL, None, None);
    let mut partitions = PARTITIONS;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--quick" => entries = ENTRIES_QUICK,
            "--entries" => entries = rest.next()?.parse().ok().filter(|&entries| entries > 0)?,
            "--table-bytes" => table_bytes = Some(rest.next()?.parse().ok()?),
            "--partitions" => partitions = rest.next()?.parse().ok()?,
            "--only" => only = Some(Part::parse(rest.next()?)?),
            _ => return None,
        }
    }
    Some((Sizes { partitions, ..Sizes::new(entries, table_bytes)? }, only))
}

impl Sizes {
    fn new(entries: u64, table_bytes: Option<u64>) -> Option<Self> {
        let memtable = u128::from(MEMTABLE_BYTES_FULL) * u128::from(entries) / u128::from(ENTRIES_FULL);
        let memtable_bytes = u64::try_from(memtable).ok()?.max(BYTES_MIN);
        let table_bytes = table_bytes.unwrap_or(memtable_bytes / TABLES_PER_MEMTABLE).max(BYTES_MIN);
        Some(Self { entries, memtable_bytes, table_bytes, partitions: PARTITIONS })
    }

    fn keyspace(&self, layout: Layout) -> KeyspaceOptions {
        let Self { memtable_bytes, table_bytes, .. } = *self;
        KeyspaceOptions { memtable_bytes, table_bytes, layout, ..KeyspaceOptions::default() }
    }
}

/// Bytes of the process in memory, without mapped files.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kibibytes.unwrap_or(0) * 1024
}

/// Runs `work`; returns its result and its peak memory.
fn with_peak<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut peak = 0;
            while !is_done.load(Ordering::Relaxed) {
                peak = anonymous_bytes().max(peak);
                std::thread::park_timeout(SAMPLE_INTERVAL);
            }
            peak
        });
        let result = work();
        is_done.store(true, Ordering::Relaxed);
        sampler.thread().unpark();
        (result, sampler.join().unwrap_or(0))
    })
}

/// One store on disk.
struct Store {
    db: Db,
    keyspace: Keyspace,
    clock: SystemClock,
    /// When the last write ended, in nanoseconds of the clock, and the longest time between two of them.
    written_at: AtomicU64,
    longest_gap: AtomicU64,
}

/// The cost of writes, compactions included.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    /// Without the compactions after the last write.
    client_seconds: f64,
    /// Bytes written for each byte of the user.
    amplification: f64,
    longest_gap: f64,
}

impl Store {
    fn open(folder: &Path, options: &KeyspaceOptions) -> Result<Self> {
        let db = Db::open_with(folder, Options::default())?;
        let keyspace = db.get_or_create_keyspace(KEYSPACE, options.clone())?;
        let clock = SystemClock::default();
        Ok(Self { db, keyspace, clock, written_at: AtomicU64::new(0), longest_gap: AtomicU64::new(0) })
    }

    fn statistics(&self) -> Option<KeyspaceStatistics> {
        self.db.statistics().keyspaces.into_iter().find(|keyspace| keyspace.name == KEYSPACE)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.now().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Writes an entry; `round` changes the value.
    fn put(&self, number: u64, round: u64) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        tamis_workload::fill_value(number ^ round << 40, &mut value);
        self.keyspace.put(hex_digits(number), value)?;
        let now = self.now();
        let before = self.written_at.swap(now, Ordering::Relaxed);
        let gap = now.saturating_sub(before);
        if gap > self.longest_gap.load(Ordering::Relaxed) {
            self.longest_gap.fetch_max(gap, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Prints partitions, tables and jobs.
    fn print_shape(&self) {
        let statistics = self.db.statistics();
        let Some(keyspace) = self.statistics() else { return };
        let sum = |of: fn(&tamis::LevelStatistics) -> usize| keyspace.levels.iter().map(of).sum::<usize>();
        println!(
            "    {} partitions, {} runs, {} tables; bytes of user {}, log {}, flushes {}, compactions {}, views {}; {} flushes, \
             {} compactions, {} splits, {} divisions, {} unions, {} carried; throttled {:.2} s, stopped {:.2} s",
            keyspace.partition_count,
            sum(|level| level.run_count),
            sum(|level| level.table_count),
            statistics.user_bytes_written,
            statistics.log_bytes_written,
            statistics.flush_bytes_written,
            statistics.compaction_bytes_written,
            statistics.view_bytes_written,
            statistics.flushes,
            statistics.compactions,
            statistics.partition_decisions.split.count,
            statistics.partition_decisions.divide.count,
            statistics.partition_decisions.unite.count,
            statistics.partition_decisions.abort.count,
            statistics.throttled_microseconds as f64 * 1e-6,
            statistics.stopped_microseconds as f64 * 1e-6,
        );
    }

    fn settle(&self) -> Result<()> {
        self.db.flush()?;
        Ok(self.db.wait_for_compactions()?)
    }

    /// Runs `count` operations by each of `threads` threads; each gets the numbers of its operations.
    fn run(
        &self,
        threads: u64,
        count: u64,
        operation: impl Fn(u64, &mut SplitMix64) -> Result<()> + Sync,
    ) -> Result<f64> {
        limits::seconds(&self.clock, threads, count, operation)
    }

    /// As [`Self::run`], with writes among the operations; waits until their compactions have ended.
    fn write(
        &self,
        threads: u64,
        count: u64,
        operation: impl Fn(u64, &mut SplitMix64) -> Result<()> + Sync,
    ) -> Result<Cost> {
        let before = self.db.statistics();
        self.written_at.store(self.now(), Ordering::Relaxed);
        self.longest_gap.store(0, Ordering::Relaxed);
        let start = self.clock.now();
        let client_seconds = self.run(threads, count, operation)?;
        self.settle()?;
        let seconds = (self.clock.now() - start).as_secs_f64();
        let after = self.db.statistics();
        let user_bytes = (after.user_bytes_written - before.user_bytes_written).max(1);
        Ok(Cost {
            seconds,
            client_seconds,
            amplification: (bytes_written(&after) - bytes_written(&before)) as f64 / user_bytes as f64,
            longest_gap: self.longest_gap.load(Ordering::Relaxed) as f64 * 1e-9,
        })
    }
}

/// Seeks to an entry, then takes `steps` entries.
fn seek(store: &Store, number: u64, steps: usize) -> Result<()> {
    limits::seek(&store.keyspace, hex_digits(number), steps, false)
}

/// A filled store, and the cost of the fill.
struct Filled {
    folder: tempfile::TempDir,
    cost: Cost,
    /// The peak. Views are mapped: they take no part of it.
    memory: u64,
}

/// Measures and prints.
struct Figures {
    sizes: Sizes,
    only: Option<Part>,
    limits: Limits,
}

impl Figures {
    fn measure_all(&mut self) -> Result<()> {
        let only = self.only;
        let is_wanted = |part: Part| only.is_none_or(|only| only == part);
        if only != Some(Part::Open) {
            self.measure_pair(&is_wanted)?;
        }
        if is_wanted(Part::Open) { self.open_time() } else { Ok(()) }
    }

    /// Fills both stores, and compares them.
    fn measure_pair(&mut self, is_wanted: &dyn Fn(Part) -> bool) -> Result<()> {
        let leveled = self.fill(Layout::Leveled)?;
        let partitioned = self.fill(Layout::partitioned())?;
        self.compare_fills(&leveled, &partitioned);
        let open = |filled: &Filled, layout| Store::open(filled.folder.path(), &self.sizes.keyspace(layout));
        let pair = [open(&leveled, Layout::Leveled)?, open(&partitioned, Layout::partitioned())?];
        if is_wanted(Part::Seeks) {
            self.seeks(&pair)?;
        }
        if is_wanted(Part::Ycsb) {
            for (name, is_rmw) in [("YCSB A", false), ("YCSB F", true)] {
                self.ycsb(&pair, name, is_rmw)?;
            }
        }
        if is_wanted(Part::Composite) { self.composite_updates(&pair) } else { Ok(()) }
    }

    fn fill(&self, layout: Layout) -> Result<Filled> {
        let folder = tempfile::tempdir()?;
        let entries = self.sizes.entries;
        let order = Permutation::new(entries, 1);
        let work = || {
            let store = Store::open(folder.path(), &self.sizes.keyspace(layout))?;
            let cost = store.write(1, entries, |number, _| store.put(order.at(number), 0))?;
            print_cost(&format!("random fill, {layout}"), &cost);
            store.print_shape();
            store.db.close()?;
            Ok::<_, Box<dyn std::error::Error>>(cost)
        };
        let (cost, memory) = with_peak(work);
        Ok(Filled { folder, cost: cost?, memory })
    }

    fn compare_fills(&mut self, leveled: &Filled, partitioned: &Filled) {
        let (Filled { cost: other, .. }, Filled { cost, .. }) = (leveled, partitioned);
        self.limits.at_most("random fill: bytes written per byte", 4.9, cost.amplification);
        let ratio = cost.amplification / other.amplification;
        self.limits.at_most("random fill: bytes written, partitioned / leveled", 0.75, ratio);
        self.limits.at_least("random fill: speed, partitioned / leveled", 1.2, other.seconds / cost.seconds);
        self.limits.at_most(
            "random fill: longest time without a completed write, seconds",
            0.5,
            cost.longest_gap,
        );
        self.limits.at_most(
            "random fill: peak of memory, partitioned / leveled",
            1.1,
            partitioned.memory as f64 / leveled.memory as f64,
        );
    }

    /// Throughput with the second store divided by that with the first: the median of alternating rounds.
    fn ratio(
        stores: &[Store; 2],
        count: u64,
        operation: impl Fn(&Store, &mut SplitMix64) -> Result<()> + Sync,
    ) -> Result<f64> {
        limits::median_ratio(|| {
            let seconds = |store: &Store| store.run(1, count, |_, random| operation(store, random));
            let [leveled, partitioned] = stores;
            Ok([seconds(leveled)?, seconds(partitioned)?])
        })
    }

    fn seeks(&mut self, stores: &[Store; 2]) -> Result<()> {
        let entries = self.sizes.entries;
        // Automatic views are built once seeks have cost as much as a build.
        let warm_up = entries / 2;
        for store in stores {
            store.run(1, warm_up, |_, random| seek(store, random.below(entries), 0))?;
            store.db.wait_for_compactions()?;
        }
        for steps in [0, 50] {
            let count = if steps == 0 { 200_000 } else { 40_000 };
            let ratio =
                Self::ratio(stores, count, |store, random| seek(store, random.below(entries), steps))?;
            let name = format!("seek + {steps}: speed, partitioned / leveled");
            self.limits.at_least(&name, 1.0, ratio);
        }
        for (layout, store) in ["leveled", "partitioned"].iter().zip(stores) {
            let views = store.statistics().map(|statistics| statistics.views).unwrap_or_default();
            println!("  {layout}: {} views of {} runs, {} bytes", views.count, views.run_count, views.bytes);
        }
        Ok(())
    }

    /// Half reads, and half updates or read-modify-writes, of Zipfian items.
    fn ycsb(&mut self, stores: &[Store; 2], name: &str, is_rmw: bool) -> Result<()> {
        let entries = self.sizes.entries;
        let items = ScrambledZipfian::new(entries);
        let pass = |store: &Store, round: u64| {
            store.write(THREADS, entries / 10, |_, random| {
                let (is_read, item) = (random.below(2) == 0, items.draw(random));
                if is_read || is_rmw {
                    limits::get_present(&store.keyspace, hex_digits(item))?;
                }
                if is_read { Ok(()) } else { store.put(item, round) }
            })
        };
        let [leveled, partitioned] = stores;
        let (mut others, mut own, mut gap) = (0.0, 0.0, 0.0_f64);
        for round in 1..=2 {
            let (other, cost) = (pass(leveled, round)?, pass(partitioned, round)?);
            print_cost(&format!("{name}, leveled"), &other);
            print_cost(&format!("{name}, partitioned"), &cost);
            partitioned.print_shape();
            others += other.seconds;
            own += cost.seconds;
            gap = gap.max(cost.longest_gap);
        }
        self.limits.at_least(&format!("{name}: speed, partitioned / leveled"), 1.2, others / own);
        self.limits.at_most(&format!("{name}: longest time without a completed write, seconds"), 0.5, gap);
        Ok(())
    }

    fn composite_updates(&mut self, stores: &[Store; 2]) -> Result<()> {
        let entries = self.sizes.entries;
        let composite = ZipfianComposite::new(entries / ENTRIES_PER_PREFIX);
        let pass = |store: &Store| {
            store.write(1, entries / 2, |_, random| {
                let drawn = composite.draw(random);
                let number = (drawn >> 16) * ENTRIES_PER_PREFIX + drawn % ENTRIES_PER_PREFIX;
                store.put(number, 3)
            })
        };
        let [leveled, partitioned] = stores;
        let (other, cost) = (pass(leveled)?, pass(partitioned)?);
        print_cost("Zipfian-composite updates, leveled", &other);
        leveled.print_shape();
        print_cost("Zipfian-composite updates, partitioned", &cost);
        partitioned.print_shape();
        let ratio = cost.amplification / other.amplification;
        self.limits.at_most("Zipfian-composite updates: bytes written, partitioned / leveled", 0.5, ratio);
        let name = "Zipfian-composite updates: longest time without a completed write, seconds";
        self.limits.at_most(name, 0.5, cost.longest_gap);
        Ok(())
    }

    /// Opens a store of many partitions that were split by random writes, and reads all of it.
    fn open_time(&mut self) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let options = KeyspaceOptions {
            // The paper's ratio.
            memtable_bytes: BYTES_MIN * 64,
            table_bytes: BYTES_MIN,
            layout: Layout::partitioned(),
            ..KeyspaceOptions::default()
        };
        let mut store = Store::open(folder.path(), &options)?;
        let mut written = 0;
        while store.statistics().map_or(0, |statistics| statistics.partition_count) < self.sizes.partitions {
            store.run(1, 100_000, |number, _| store.put(mix64(written + number), 0))?;
            store.settle()?;
            written += 100_000;
        }
        // Seeks pay for views, and later edits change partitions that have one.
        store.run(1, written / 2, |_, random| seek(&store, random.next_u64(), 0))?;
        store.db.wait_for_compactions()?;
        store.run(1, written / ENTRIES_PER_LATE_UPDATE, |number, _| {
            store.put(mix64(number * ENTRIES_PER_LATE_UPDATE), 1)
        })?;
        store.settle()?;
        print_views(&store);
        store.db.close()?;
        // Each open for writing begins a new manifest: only the first open of a folder replays the edits.
        let mut seconds = Vec::new();
        for _ in 0..OPENS {
            let copy = copy_of(folder.path())?;
            let start = store.clock.now();
            let db = Db::open(copy.path())?;
            seconds.push((store.clock.now() - start).as_secs_f64());
            db.close()?;
        }
        let name = format!("opening a store of {} partitions, seconds", self.sizes.partitions);
        self.limits.at_most(&name, 0.1, limits::median(seconds));
        store = Store::open(folder.path(), &options)?;
        let found = store.keyspace.range::<&[u8]>(..).count() as u64;
        let report = store.db.verify()?;
        if found != written || !report.is_sound() {
            return Err(format!("{found} entries of {written}; {:?}", report.faults).into());
        }
        let statistics = store.db.statistics();
        println!("  {} of at most {} open files", statistics.open_files, statistics.open_files_max);
        Ok(())
    }
}

/// A copy of a closed store. Files that never change are linked.
fn copy_of(store: &Path) -> Result<tempfile::TempDir> {
    let copy = tempfile::tempdir()?;
    let mut manifest_bytes = 0;
    for entry in std::fs::read_dir(store)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let target = copy.path().join(&name);
        if path.extension().is_some_and(|end| end == "table" || end == "view") {
            std::fs::hard_link(&path, &target)?;
        } else if path.is_file() {
            let bytes = std::fs::copy(&path, &target)?;
            manifest_bytes += if path.extension().is_some_and(|end| end == "manifest") { bytes } else { 0 };
        }
    }
    println!("  a manifest of {manifest_bytes} bytes is replayed");
    Ok(copy)
}

/// Prints how many partitions have views.
fn print_views(store: &Store) {
    if let Some(keyspace) = store.statistics() {
        println!("  {} views of {} partitions", keyspace.views.count, keyspace.partition_count);
    }
}

fn print_cost(what: &str, cost: &Cost) {
    let Cost { seconds, client_seconds, amplification, longest_gap } = cost;
    println!(
        "  {what}: {seconds:.1} s ({client_seconds:.1} s until the last write), {amplification:.2} bytes written per byte, \
         longest time without a write {longest_gap:.3} s"
    );
}
