//! Promises of the partitioned layout, next to the leveled layout with the same sizes. The same entries are loaded in the same random
//! order into both stores, which then take the same reads and updates in alternation. Times of writes include the compactions that the
//! writes cause.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tamis::{Clock as _, Db, KeyspaceOptions, Layout, Options};
use tamis_bench::{
    BenchError, Context, Point, Row, VALUE_BYTES,
    driver::{Measured, TamisStore},
    filter::median,
};
use tamis_workload::{KeyForm, Operation, OperationKind, SplitMix64, Workload};

use super::{Result, median_ratio};
use crate::{
    layouts::{PART_BYTES_MIN, amplification, composite, longest_seconds, statistics},
    stores::{Shape, operation, seeks},
};

const ENTRIES_FULL: u64 = 50_000_000;
/// Memtable and tables of the full size; they are scaled with the entries.
const MEMTABLE_BYTES_FULL: u64 = 64 << 20;
/// Number of entries with the same key prefix: the same share of a memtable as in the paper.
const ENTRIES_PER_PREFIX: u64 = 1024;
/// Client threads of the YCSB workloads.
const THREADS: usize = 2;
/// Measured times of opening a store, each of another copy.
const OPENS: usize = 5;
/// Entries that are written between two counts of the partitions of the store whose open is timed.
const STEP_ENTRIES: u64 = 100_000;
/// Every so many-th entry of this store is updated after its views are built.
const ENTRIES_PER_LATE_UPDATE: usize = 10;
/// The interval between two reads of the memory counters.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row> {
    let (part, entries) = (point.text("part")?, point.integer("entries")?);
    if part == "open" {
        return open_time(context, point.integer("partitions")?);
    }
    let pair: Arc<[Filled; 2]> = context.input(&format!("layouts of {entries}"), |context| {
        let leveled = context.part(0.0..0.4, |context| Filled::new(Layout::Leveled, entries, context))?;
        let partitioned =
            context.part(0.4..0.8, |context| Filled::new(Layout::partitioned(), entries, context))?;
        Ok([leveled, partitioned])
    })?;
    context.progress(0.8)?;
    context.part(0.8..1.0, |context| match part {
        "fill" => {
            let [leveled, partitioned] = &*pair;
            let memory_ratio = partitioned.memory as f64 / leveled.memory.max(1) as f64;
            Ok(of_costs(leveled.cost, partitioned.cost).with("memory_ratio", memory_ratio))
        }
        "seek" => measure_seeks(&pair, entries, 0, context),
        "seek-50" => measure_seeks(&pair, entries, 50, context),
        "composite" => {
            let seed = context.seed();
            let items = || composite(entries, ENTRIES_PER_PREFIX, entries / 2, seed);
            write(&pair, (1, 1), || items().map(|item| operation(OperationKind::Update, item)), context)
        }
        mix => {
            // Half reads, and half updates or read-modify-writes, of Zipfian items.
            let workload: Workload = mix.parse().map_err(BenchError::other)?;
            let count = entries / 10 * THREADS as u64;
            write(&pair, (THREADS, 2), || workload.operations(entries, count, 1), context)
        }
    })
}

/// The size of the process in memory, without mapped files: views are mapped.
fn anonymous_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kibibytes.unwrap_or(0) * 1024
}

/// Runs `work`; returns its result and the peak of the memory that it adds.
fn with_peak<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let (before, mut peak) = (anonymous_bytes(), 0);
            while !is_done.load(Ordering::Relaxed) {
                peak = anonymous_bytes().max(peak);
                std::thread::park_timeout(SAMPLE_INTERVAL);
            }
            peak.saturating_sub(before)
        });
        let result = work();
        is_done.store(true, Ordering::Relaxed);
        sampler.thread().unpark();
        (result, sampler.join().unwrap_or(0))
    })
}

/// The cost of writes, compactions included.
#[derive(Clone, Copy)]
struct Cost {
    seconds: f64,
    amplification: f64,
    /// The longest operation.
    gap_seconds: f64,
}

impl Cost {
    fn of(measured: &Measured) -> Self {
        Self {
            seconds: measured.seconds,
            amplification: amplification(measured).unwrap_or_default(),
            gap_seconds: longest_seconds(measured),
        }
    }
}

/// The costs of the second store relative to the first.
fn of_costs(leveled: Cost, partitioned: Cost) -> Row {
    Row::new()
        .with("write_amplification", partitioned.amplification)
        .with("written_ratio", partitioned.amplification / leveled.amplification)
        .with("speed_ratio", leveled.seconds / partitioned.seconds)
        .with("gap_seconds", partitioned.gap_seconds)
}

/// A filled store, the cost of the fill, and its peak of memory.
struct Filled {
    store: TamisStore,
    shape: Shape,
    cost: Cost,
    memory: u64,
    /// Deleted after the store is closed.
    _folder: tempfile::TempDir,
}

impl Filled {
    fn new(layout: Layout, entries: u64, context: &mut Context<'_>) -> Result<Self> {
        let folder = context.scratch()?;
        let bytes = (MEMTABLE_BYTES_FULL as f64 * (entries as f64 / ENTRIES_FULL as f64)) as u64;
        let bytes = bytes.max(PART_BYTES_MIN);
        let keyspace = KeyspaceOptions::default().memtable_bytes(bytes).table_bytes(bytes).layout(layout);
        let shape = Shape::new(Options::default(), keyspace, entries, VALUE_BYTES);
        let shape = Shape { form: KeyForm::Ordered, ..shape };
        let script = shape.load_script(context.seed());
        let store = TamisStore::open(folder.path(), &shape.options)?;
        let (measured, memory) = with_peak(|| shape.run_script(&store, &script, context));
        Ok(Self { store, shape, cost: Cost::of(&measured?), memory, _folder: folder })
    }
}

/// Seeks to uniform items.
fn uniform_seeks(entries: u64, count: u64, steps: u64) -> impl Iterator<Item = Operation> {
    let mut random = SplitMix64::new(0);
    seeks((0..count).map(move |_| random.below(entries)), steps)
}

fn measure_seeks(pair: &[Filled; 2], entries: u64, steps: u64, context: &mut Context<'_>) -> Result<Row> {
    // Automatic views are built once seeks have cost as much as a build.
    for Filled { store, shape, .. } in pair {
        shape.run(store, uniform_seeks(entries, entries / 2, 0), 1, context)?;
        store.db.wait_for_compactions()?;
    }
    let count = (if steps == 0 { 200_000 } else { 40_000 }).min(entries / 5);
    let mut seconds = |filled: &Filled| -> Result<f64> {
        let operations = uniform_seeks(entries, count, steps);
        Ok(filled.shape.run_present(&filled.store, operations, 1, context)?.seconds)
    };
    let [leveled, partitioned] = pair;
    let ratio = median_ratio(|| Ok([seconds(leveled)?, seconds(partitioned)?]))?;
    Ok(Row::new().with("speed_ratio", ratio))
}

/// Runs the same operations on both stores, some times.
fn write<I: Iterator<Item = Operation>>(
    pair: &[Filled; 2],
    (threads, passes): (usize, u32),
    operations: impl Fn() -> I,
    context: &mut Context<'_>,
) -> Result<Row> {
    let mut all = |filled: &Filled| -> Result<Cost> {
        let mut sum = Cost { seconds: 0.0, amplification: 0.0, gap_seconds: 0.0 };
        for _ in 0..passes {
            let measured = filled.shape.run_present(&filled.store, operations(), threads, context)?;
            let cost = Cost::of(&measured);
            sum.seconds += cost.seconds;
            sum.amplification += cost.amplification / f64::from(passes);
            sum.gap_seconds = sum.gap_seconds.max(cost.gap_seconds);
        }
        Ok(sum)
    };
    let [leveled, partitioned] = pair;
    Ok(of_costs(all(leveled)?, all(partitioned)?))
}

/// Opens a store of many partitions that were split by random writes, and reads all of it.
fn open_time(context: &mut Context<'_>, partitions: u64) -> Result<Row> {
    let folder = context.scratch()?;
    let keyspace = KeyspaceOptions::default()
        // The paper's ratio.
        .memtable_bytes(PART_BYTES_MIN * 64)
        .table_bytes(PART_BYTES_MIN)
        .layout(Layout::partitioned());
    let shape = Shape::new(Options::default(), keyspace, 0, VALUE_BYTES);
    let store = TamisStore::open(folder.path(), &shape.options)?;
    let mut written = 0;
    let count = || statistics(&store).map(|found| found.partition_count as u64);
    while count()? < partitions {
        let items = written..written + STEP_ENTRIES;
        shape.run(&store, items.map(|item| operation(OperationKind::Insert, item)), 1, context)?;
        written += STEP_ENTRIES;
        context.progress(0.5 * count()? as f64 / partitions as f64)?;
    }
    // Seeks pay for views, and later edits change partitions that have one.
    shape.run(&store, uniform_seeks(written, written / 2, 0), 1, context)?;
    store.db.wait_for_compactions()?;
    let items = (0..written).step_by(ENTRIES_PER_LATE_UPDATE);
    shape.run(&store, items.map(|item| operation(OperationKind::Update, item)), 1, context)?;
    let (views, name) = (statistics(&store)?.views.count, store.keyspace.name().to_owned());
    store.db.close()?;
    // Each open for writing begins a new manifest: only the first open of a folder replays the edits.
    let mut opens = Vec::new();
    for _ in 0..OPENS {
        let copy = copy_of(folder.path(), context)?;
        let start = context.clock().now();
        let db = Db::open(copy.path())?;
        opens.push((context.clock().now() - start).as_secs_f64());
        db.close()?;
    }
    let db = Db::open(folder.path())?;
    let found = db.keyspace(&name)?.range(..).count() as u64;
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
