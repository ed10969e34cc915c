//! Promises of the partitioned layout, next to the leveled layout with the same sizes. The same entries are loaded in the same random
//! order into both stores, which then take the same reads and updates in alternation. Times of writes include the compactions that the
//! writes cause.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tamis::{Clock as _, Db, Keyspace, KeyspaceOptions, Layout, Options, SystemClock};
use tamis_bench::{BenchError, Context, Point, Row, VALUE_BYTES, driver::bytes_written, filter::median};
use tamis_workload::{
    Permutation, ScrambledZipfian, SplitMix64, ZipfianComposite, mix64, operations::hex_digits,
};

use super::{Result, get_present, median_ratio, seconds, seek, statistics_of};
use crate::stores::settle;

const ENTRIES_FULL: u64 = 50_000_000;
/// Memtable and tables of the full size; they are scaled with the entries.
const MEMTABLE_BYTES_FULL: u64 = 64 << 20;
/// The least size of memtables and tables that the store takes.
const BYTES_MIN: u64 = 64 << 10;
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
const KEYSPACE: &str = "layout";

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row> {
    let (part, entries) = (point.text("part")?, point.integer("entries")?);
    if part == "open" {
        return open_time(context, point.integer("partitions")?);
    }
    let pair: Arc<[Filled; 2]> = context.input(&format!("layouts of {entries}"), |context| {
        let leveled = context.part(0.0..0.4, |context| fill(Layout::Leveled, entries, context))?;
        let partitioned = context.part(0.4..0.8, |context| fill(Layout::partitioned(), entries, context))?;
        Ok([leveled, partitioned])
    })?;
    context.progress(0.8)?;
    match part {
        "fill" => {
            let [leveled, partitioned] = &*pair;
            let memory_ratio = partitioned.memory as f64 / leveled.memory as f64;
            Ok(of_costs(&leveled.cost, &partitioned.cost).with("memory_ratio", memory_ratio))
        }
        "seek" => seeks(&pair, entries, 0),
        "seek-50" => seeks(&pair, entries, 50),
        "ycsb-a" => ycsb(&pair, entries, false),
        "ycsb-f" => ycsb(&pair, entries, true),
        _ => composite_updates(&pair, entries),
    }
}

fn keyspace_options(entries: u64, layout: Layout) -> KeyspaceOptions {
    let bytes = (MEMTABLE_BYTES_FULL as f64 * (entries as f64 / ENTRIES_FULL as f64)) as u64;
    let bytes = bytes.max(BYTES_MIN);
    KeyspaceOptions::default().memtable_bytes(bytes).table_bytes(bytes).layout(layout)
}

/// Bytes of the process in memory, without mapped files: views are mapped.
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
    amplification: f64,
    gap_seconds: f64,
}

/// A filled store, the cost of the fill, and its peak of memory.
struct Filled {
    store: Store,
    cost: Cost,
    memory: u64,
    /// Deleted after the store is closed.
    _folder: tempfile::TempDir,
}

/// The costs of the second store relative to the first.
fn of_costs(leveled: &Cost, partitioned: &Cost) -> Row {
    Row::new()
        .with("write_amplification", partitioned.amplification)
        .with("written_ratio", partitioned.amplification / leveled.amplification)
        .with("speed_ratio", leveled.seconds / partitioned.seconds)
        .with("gap_seconds", partitioned.gap_seconds)
}

impl Store {
    fn open(folder: &Path, options: KeyspaceOptions) -> Result<Self> {
        let db = Db::open_with(folder, Options::default())?;
        let keyspace = db.get_or_create_keyspace(KEYSPACE, options)?;
        let clock = SystemClock::default();
        Ok(Self { db, keyspace, clock, written_at: AtomicU64::new(0), longest_gap: AtomicU64::new(0) })
    }

    fn now(&self) -> u64 {
        self.clock.now().as_nanos() as u64
    }

    /// Writes an entry; `round` changes the value.
    fn put(&self, number: u64, round: u64) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        tamis_workload::fill_value(number ^ round << 40, &mut value);
        self.keyspace.put(hex_digits(number), value)?;
        let now = self.now();
        let gap = now.saturating_sub(self.written_at.swap(now, Ordering::Relaxed));
        self.longest_gap.fetch_max(gap, Ordering::Relaxed);
        Ok(())
    }

    /// Runs `count` operations by each of `threads` threads, with writes among them; waits until their compactions have ended.
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
        seconds(threads, count, operation)?;
        settle(&self.db)?;
        let seconds = (self.clock.now() - start).as_secs_f64();
        let after = self.db.statistics();
        let user_bytes = (after.user_bytes_written - before.user_bytes_written).max(1);
        Ok(Cost {
            seconds,
            amplification: (bytes_written(&after) - bytes_written(&before)) as f64 / user_bytes as f64,
            gap_seconds: self.longest_gap.load(Ordering::Relaxed) as f64 * 1e-9,
        })
    }

    fn seek(&self, number: u64, steps: u64) -> Result<()> {
        seek(&self.keyspace, hex_digits(number), steps, false)
    }
}

fn fill(layout: Layout, entries: u64, context: &mut Context<'_>) -> Result<Filled> {
    let folder = context.scratch()?;
    let order = Permutation::new(entries, 1);
    let store = Store::open(folder.path(), keyspace_options(entries, layout))?;
    let (cost, memory) = with_peak(|| store.write(1, entries, |number, _| store.put(order.at(number), 0)));
    Ok(Filled { store, cost: cost?, memory, _folder: folder })
}

fn seeks(pair: &[Filled; 2], entries: u64, steps: u64) -> Result<Row> {
    // Automatic views are built once seeks have cost as much as a build.
    for Filled { store, .. } in pair {
        seconds(1, entries / 2, |_, random| store.seek(random.below(entries), 0))?;
        store.db.wait_for_compactions()?;
    }
    let count = (if steps == 0 { 200_000 } else { 40_000 }).min(entries / 5);
    let ratio = median_ratio(|| {
        let seconds =
            |filled: &Filled| seconds(1, count, |_, random| filled.store.seek(random.below(entries), steps));
        let [leveled, partitioned] = pair;
        Ok([seconds(leveled)?, seconds(partitioned)?])
    })?;
    Ok(Row::new().with("speed_ratio", ratio))
}

/// Two rounds of half reads, and half updates or read-modify-writes, of Zipfian items.
fn ycsb(pair: &[Filled; 2], entries: u64, is_rmw: bool) -> Result<Row> {
    let items = ScrambledZipfian::new(entries);
    let pass = |Filled { store, .. }: &Filled, round: u64| {
        store.write(THREADS, entries / 10, |_, random| {
            let (is_read, item) = (random.below(2) == 0, items.draw(random));
            if is_read || is_rmw {
                get_present(&store.keyspace, hex_digits(item))?;
            }
            if is_read { Ok(()) } else { store.put(item, round) }
        })
    };
    let both = |filled: &Filled| {
        let (one, two) = (pass(filled, 1)?, pass(filled, 2)?);
        Ok::<_, BenchError>(Cost {
            seconds: one.seconds + two.seconds,
            amplification: (one.amplification + two.amplification) / 2.0,
            gap_seconds: one.gap_seconds.max(two.gap_seconds),
        })
    };
    let [leveled, partitioned] = pair;
    Ok(of_costs(&both(leveled)?, &both(partitioned)?))
}

fn composite_updates(pair: &[Filled; 2], entries: u64) -> Result<Row> {
    let composite = ZipfianComposite::new(entries / ENTRIES_PER_PREFIX);
    let pass = |Filled { store, .. }: &Filled| {
        store.write(1, entries / 2, |_, random| {
            let drawn = composite.draw(random);
            store.put((drawn >> 16) * ENTRIES_PER_PREFIX + drawn % ENTRIES_PER_PREFIX, 3)
        })
    };
    let [leveled, partitioned] = pair;
    Ok(of_costs(&pass(leveled)?, &pass(partitioned)?))
}

/// Opens a store of many partitions that were split by random writes, and reads all of it.
fn open_time(context: &mut Context<'_>, partitions: u64) -> Result<Row> {
    let folder = context.scratch()?;
    let options = KeyspaceOptions::default()
        // The paper's ratio.
        .memtable_bytes(BYTES_MIN * 64)
        .table_bytes(BYTES_MIN)
        .layout(Layout::partitioned());
    let store = Store::open(folder.path(), options)?;
    let mut written = 0;
    let count = || statistics_of(&store.db, KEYSPACE).map(|found| found.partition_count as u64);
    while count()? < partitions {
        seconds(1, 100_000, |number, _| store.put(mix64(written + number), 0))?;
        settle(&store.db)?;
        written += 100_000;
        context.progress(0.5 * count()? as f64 / partitions as f64)?;
    }
    // Seeks pay for views, and later edits change partitions that have one.
    seconds(1, written / 2, |_, random| store.seek(random.next_u64(), 0))?;
    store.db.wait_for_compactions()?;
    seconds(1, written / ENTRIES_PER_LATE_UPDATE, |number, _| {
        store.put(mix64(number * ENTRIES_PER_LATE_UPDATE), 1)
    })?;
    settle(&store.db)?;
    let views = statistics_of(&store.db, KEYSPACE)?.views.count;
    store.db.close()?;
    // Each open for writing begins a new manifest: only the first open of a folder replays the edits.
    let mut opens = Vec::new();
    for _ in 0..OPENS {
        let copy = copy_of(folder.path(), context)?;
        let start = store.clock.now();
        let db = Db::open(copy.path())?;
        opens.push((store.clock.now() - start).as_secs_f64());
        db.close()?;
    }
    let db = Db::open(folder.path())?;
    let found = db.keyspace(KEYSPACE)?.range(..).count() as u64;
    let report = db.verify()?;
    if found != written || !report.is_sound() {
        return Err(BenchError::Other(format!("{found} entries of {written}; {:?}", report.faults)));
    }
    let row = Row::new().with("seconds", median(&mut opens)).with("views", views as u64);
    Ok(row.with("open_files", db.statistics().open_files))
}

/// A copy of a closed store. Files that never change are linked.
fn copy_of(store: &Path, context: &Context<'_>) -> Result<tempfile::TempDir> {
    let copy = context.scratch()?;
    let paths = std::fs::read_dir(store).map_err(BenchError::io(store))?.flatten().map(|entry| entry.path());
    for path in paths.filter(|path| path.is_file()) {
        let target = copy.path().join(path.file_name().unwrap_or_default());
        if path.extension().is_some_and(|end| end == "table" || end == "view") {
            std::fs::hard_link(&path, &target)
        } else {
            std::fs::copy(&path, &target).map(drop)
        }
        .map_err(BenchError::io(&path))?;
    }
    Ok(copy)
}
