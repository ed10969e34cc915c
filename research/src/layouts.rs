//! Whole stores of the REMIX paper: the partitioned layout next to the leveled and the tiered one, as in Section 5.2 of the
//! REMIX paper.
//!
//! The paper compares RemixDB with other stores; here the layouts of one store are compared, with equal sizes. Data, memtable, cache and
//! tables have the ratios of the paper down to the least sizes that the store takes, and every other option has its default. Tables are
//! read through the cache. All operations run on one thread, through the driver of `tamis-bench`.

use std::sync::Arc;

use tamis::{Access, KeyspaceOptions, KeyspaceStatistics, Options};
use tamis_bench::{
    BenchError, Context, Point, Row,
    driver::{Measured, TamisStore},
};
use tamis_workload::{
    KeyForm, Operation, OperationKind, ScrambledZipfian, SplitMix64, Workload, ZipfianComposite,
};

use crate::stores::{Shape, operation, seeks};

/// Length of a key.
const KEY_BYTES: u64 = 16;
/// The data of the largest store relative to memtable and cache, and to a table, as in the paper: 256 GB, 4 GB and 64 MB.
const DATA_PER_MEMTABLE: u64 = 64;
const DATA_PER_TABLE: u64 = 4096;
/// The least size of memtables and tables, and of the cache.
pub(crate) const PART_BYTES_MIN: u64 = 64 << 10;
const CACHE_BYTES_MIN: u64 = 256 << 10;
/// Minimum number of keys with the same prefix. They have the same share of a memtable as in the paper.
const PREFIX_KEYS_MIN: u64 = 4;
const PREFIXES_PER_MEMTABLE: u64 = 460;
const MEMTABLES: u64 = 64;
/// The entries that a scan of YCSB E reads: that of its seek, and 50 more.
const SCAN_ENTRIES: u32 = 51;

impl Shape {
    /// The shape of a point. The order is `sequential` (ascending dense keys), `shuffled` (dense keys in random order) or `hashed` (keys
    /// all over the key space, in random order). Memtable, cache and tables have a share of the largest store of the experiment.
    fn of(point: &Point) -> Result<Self, BenchError> {
        let (entries, value_bytes) = (point.integer("entries")?, point.integer("value_bytes")?);
        let data_bytes = point.integer("entries_max").unwrap_or(entries) * (value_bytes + KEY_BYTES);
        let memtable = (data_bytes / DATA_PER_MEMTABLE).max(PART_BYTES_MIN);
        let keyspace = KeyspaceOptions::default()
            .memtable_bytes(memtable)
            .table_bytes((data_bytes / DATA_PER_TABLE).max(PART_BYTES_MIN))
            .layout(point.text("layout")?.parse()?);
        let cache_bytes = memtable.max(CACHE_BYTES_MIN);
        let options = Options::default().cache_bytes(cache_bytes).table_access(Access::Buffered);
        let order = point.text("order")?;
        Ok(Self {
            form: if order == "hashed" { KeyForm::Hex } else { KeyForm::Ordered },
            is_shuffled: order == "shuffled",
            ..Self::new(options, keyspace, entries, value_bytes as usize)
        })
    }
}

/// Items of a Zipfian-composite distribution: a few ranges of neighbours most often, uniform within them.
pub(crate) fn composite(entries: u64, per_prefix: u64, count: u64, seed: u64) -> impl Iterator<Item = u64> {
    let mut random = SplitMix64::new(seed);
    let composite = ZipfianComposite::new(entries / per_prefix);
    (0..count).map(move |_| {
        let drawn = composite.draw(&mut random);
        (drawn >> 16) * per_prefix + drawn % per_prefix
    })
}

/// A loaded store that is closed; the folder is deleted with the last reference.
struct Loaded {
    folder: tempfile::TempDir,
    shape: Shape,
    costs: Row,
}

/// The loaded store of a point, shared with others.
fn loaded(point: &Point, context: &mut Context<'_>) -> Result<Arc<Loaded>, BenchError> {
    let shape = Shape::of(point)?;
    context.input(&format!("{shape:?}"), |context| {
        let folder = context.scratch()?;
        let (store, measured) = context.part(0.0..0.6, |context| shape.fill(folder.path(), context))?;
        let costs = costs(&store, &measured)?;
        store.db.close()?;
        Ok(Loaded { folder, shape, costs })
    })
}

impl Loaded {
    /// Runs operations that modify the store on a copy that shares the table files.
    fn run_on_copy(
        &self,
        operations: impl Iterator<Item = Operation>,
        context: &mut Context<'_>,
    ) -> Result<Row, BenchError> {
        let folder = context.scratch()?;
        let path = folder.path().join("copy");
        let original = TamisStore::open(self.folder.path(), &self.shape.options)?;
        original.db.checkpoint(&path)?;
        original.db.close()?;
        let store = TamisStore::open(&path, &self.shape.options)?;
        let measured =
            context.part(0.6..1.0, |context| self.shape.run_present(&store, operations, 1, context))?;
        let costs = costs(&store, &measured)?;
        store.db.close()?;
        Ok(costs)
    }
}

/// The statistics of the keyspace of a store.
pub(crate) fn statistics(store: &TamisStore) -> Result<KeyspaceStatistics, BenchError> {
    let mut keyspaces = store.db.statistics().keyspaces.into_iter();
    let found = keyspaces.find(|keyspace| keyspace.name == store.keyspace.name());
    found.ok_or_else(|| BenchError::other("the store has no statistics of its keyspace"))
}

/// The longest operation in seconds.
pub(crate) fn longest_seconds(measured: &Measured) -> f64 {
    measured.latencies.iter().map(|(_, histogram)| histogram.max() as f64 * 1e-9).fold(0.0, f64::max)
}

/// Bytes written per byte of the user.
pub(crate) fn amplification(measured: &Measured) -> Option<f64> {
    let written = measured.counters.bytes_written? as f64;
    (measured.user_bytes > 0).then(|| written / measured.user_bytes as f64)
}

/// The cost of operations, with the compactions that they caused.
fn costs(store: &TamisStore, measured: &Measured) -> Result<Row, BenchError> {
    let counters = measured.counters;
    let read = counters.bytes_read.unwrap_or(0) + counters.compaction_bytes_read.unwrap_or(0);
    let read_amplification = (measured.user_bytes > 0).then(|| read as f64 / measured.user_bytes as f64);
    let shape = statistics(store)?;
    Ok(Row::new()
        .with("mops", measured.rate() / 1e6)
        .with("write_amplification", amplification(measured))
        .with("read_amplification", read_amplification)
        .with("bytes_written", counters.bytes_written)
        .with("bytes_read", read)
        .with("bytes_read_per_operation", read as f64 / measured.operation_count.max(1) as f64)
        .with("longest_operation_seconds", longest_seconds(measured))
        .with("partitions", shape.partition_count)
        .with("runs", shape.levels.iter().map(|level| level.run_count).sum::<usize>())
        .with_digest(measured.digest))
}

/// The items of a pattern.
fn items(pattern: &str, entries: u64, count: u64, seed: u64) -> Box<dyn Iterator<Item = u64>> {
    let mut random = SplitMix64::new(seed);
    match pattern {
        "sequential" => Box::new((0..count).map(move |place| place % entries)),
        "zipfian" => {
            let zipfian = ScrambledZipfian::new(entries);
            Box::new((0..count).map(move |_| zipfian.draw(&mut random)))
        }
        "uniform" => Box::new((0..count).map(move |_| random.below(entries))),
        _ => {
            let per_prefix = (entries / MEMTABLES / PREFIXES_PER_MEMTABLE).max(PREFIX_KEYS_MIN);
            Box::new(composite(entries, per_prefix, count, seed))
        }
    }
}

/// Sequential, Zipfian or uniform seeks.
pub(crate) fn measure_reads(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (entries, count) = (point.integer("entries")?, point.integer("count")?);
    let (pattern, steps) = (point.text("pattern")?, point.integer("steps")?);
    let loaded = loaded(point, context)?;
    let store = TamisStore::open(loaded.folder.path(), &loaded.shape.options)?;
    let pass = |seed: u64, context: &mut Context<'_>| {
        loaded.shape.run_present(&store, seeks(items(pattern, entries, count, seed), steps), 1, context)
    };
    // Views are built during these seeks, once the seeks have cost as much as a build.
    let seed = context.seed();
    context.part(0.6..0.8, |context| pass(seed ^ 1, context))?;
    store.db.wait_for_compactions()?;
    let measured = context.part(0.8..1.0, |context| pass(seed ^ 2, context))?;
    let costs = costs(&store, &measured)?;
    store.db.close()?;
    Ok(costs)
}

/// The load itself.
pub(crate) fn measure_load(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    Ok(loaded(point, context)?.costs.clone())
}

/// Sequential, Zipfian or Zipfian-composite updates.
pub(crate) fn measure_updates(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (entries, count) = (point.integer("entries")?, point.integer("count")?);
    let items = items(point.text("pattern")?, entries, count, context.seed() ^ 1);
    loaded(point, context)?.run_on_copy(items.map(|item| operation(OperationKind::Update, item)), context)
}

/// A YCSB workload.
pub(crate) fn measure_ycsb(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (entries, count) = (point.integer("entries")?, point.integer("count")?);
    let workload: Workload = point.text("workload")?.parse().map_err(BenchError::other)?;
    let operations = workload.operations(entries, count, context.seed() ^ 1);
    let operations = operations.map(|operation| Operation { limit: SCAN_ENTRIES, ..operation });
    loaded(point, context)?.run_on_copy(operations, context)
}
