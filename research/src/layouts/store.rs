//! Stores of the experiments: their options, how they are loaded, and the cost of operations.

use std::path::Path;

use tamis::{Access, Clock as _, Db, Keyspace, KeyspaceOptions, Layout, Options, Statistics};
use tamis_workload::{Permutation, SplitMix64, mix64, operations::hex_digits};

use crate::stores::{settle, value};
use tamis_bench::{BenchError, Context, Row, driver::bytes_written};

/// Keys are 16 hexadecimal digits, as in the paper.
const KEY_BYTES: u64 = 16;
/// The data of the largest store relative to memtable and cache, and to a table, as in the paper: 256 GB, 4 GB and 64 MB.
const DATA_PER_MEMTABLE: u64 = 64;
const DATA_PER_TABLE: u64 = 4096;
/// The least size of memtables and tables, and of the cache.
const PART_BYTES_MIN: u64 = 64 << 10;
const CACHE_BYTES_MIN: u64 = 256 << 10;
/// Operations between two reports of the progress.
const REPORT_INTERVAL: u64 = 1024;

/// The entries of a store and their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) layout: String,
    /// `sequential`: ascending dense keys. `shuffled`: dense keys in random order. `hashed`: keys all over the key space, in random order.
    pub(super) order: String,
    pub(super) entries: u64,
    /// The entries of the largest store of the experiment: memtable, cache and tables have a share of its data.
    pub(super) entries_max: u64,
    pub(super) value_bytes: u64,
}

impl Shape {
    fn data_bytes(&self) -> u64 {
        self.entries_max * (self.value_bytes + KEY_BYTES)
    }

    /// The key of an entry.
    pub(super) fn key(&self, number: u64) -> [u8; 16] {
        hex_digits(if self.order == "hashed" { mix64(number) } else { number })
    }

    fn options(&self) -> Result<Options, BenchError> {
        let memtable = (self.data_bytes() / DATA_PER_MEMTABLE).max(PART_BYTES_MIN);
        let default_keyspace = KeyspaceOptions::default()
            .memtable_bytes(memtable)
            .table_bytes((self.data_bytes() / DATA_PER_TABLE).max(PART_BYTES_MIN))
            .layout(self.layout.parse::<Layout>()?);
        Ok(Options::default()
            .cache_bytes(memtable.max(CACHE_BYTES_MIN))
            .table_access(Access::Buffered)
            .default_keyspace(default_keyspace))
    }

    fn open(&self, folder: &Path) -> Result<Db, BenchError> {
        Ok(Db::open_with(folder, self.options()?)?)
    }

    /// Creates a store, loads its entries, and waits until no compaction is due.
    pub(super) fn load(&self, context: &mut Context<'_>) -> Result<Loaded, BenchError> {
        let folder = context.scratch()?;
        let db = self.open(folder.path())?;
        let permutation = Permutation::new(self.entries, context.seed());
        let mut random = SplitMix64::new(context.seed());
        let costs = write(&db, self.entries, context, |keyspace, place| {
            let number = if self.order == "shuffled" { permutation.at(place) } else { place };
            Ok(keyspace.put(self.key(number), value(&mut random, self.value_bytes as usize))?)
        })?;
        db.close()?;
        Ok(Loaded { folder, shape: self.clone(), costs })
    }
}

/// A loaded store that is closed; the folder is deleted with the last reference.
pub(super) struct Loaded {
    folder: tempfile::TempDir,
    pub(super) shape: Shape,
    pub(super) costs: Costs,
}

impl Loaded {
    /// Opens the store for reads.
    pub(super) fn open(&self) -> Result<Db, BenchError> {
        self.shape.open(self.folder.path())
    }

    /// Opens a copy that shares the table files. It is deleted with the returned folder.
    pub(super) fn open_copy(&self, context: &Context<'_>) -> Result<(Db, tempfile::TempDir), BenchError> {
        let folder = context.scratch()?;
        let path = folder.path().join("copy");
        let db = self.open()?;
        db.checkpoint(&path)?;
        db.close()?;
        Ok((self.shape.open(&path)?, folder))
    }
}

/// The cost of operations, with the compactions that they caused.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Costs {
    pub(super) operation_count: u64,
    pub(super) seconds: f64,
    pub(super) user_bytes: u64,
    pub(super) written_bytes: u64,
    /// By reads and compactions.
    pub(super) read_bytes: u64,
    /// The longest operation, in seconds.
    pub(super) longest_seconds: f64,
    pub(super) partition_count: usize,
    pub(super) run_count: usize,
}

impl Costs {
    pub(super) fn row(&self) -> Row {
        let per_user_byte = |bytes: u64| (self.user_bytes > 0).then(|| bytes as f64 / self.user_bytes as f64);
        Row::new()
            .with("mops", self.operation_count as f64 / self.seconds.max(1e-9) / 1e6)
            .with("write_amplification", per_user_byte(self.written_bytes))
            .with("read_amplification", per_user_byte(self.read_bytes))
            .with("bytes_written", self.written_bytes)
            .with("bytes_read", self.read_bytes)
            .with("longest_operation_seconds", self.longest_seconds)
            .with("partitions", self.partition_count)
            .with("runs", self.run_count)
    }
}

fn read_bytes(statistics: &Statistics) -> u64 {
    statistics.bytes_read + statistics.compaction_bytes_read
}

/// Runs operations, each with its number.
pub(super) fn run(
    db: &Db,
    count: u64,
    context: &mut Context<'_>,
    operation: impl FnMut(&Keyspace, u64) -> Result<(), BenchError>,
) -> Result<Costs, BenchError> {
    measure(db, count, context, operation, |_| Ok(()))
}

/// As [`run`], with writes among the operations: waits until no compaction is due.
pub(super) fn write(
    db: &Db,
    count: u64,
    context: &mut Context<'_>,
    operation: impl FnMut(&Keyspace, u64) -> Result<(), BenchError>,
) -> Result<Costs, BenchError> {
    measure(db, count, context, operation, settle)
}

fn measure(
    db: &Db,
    count: u64,
    context: &mut Context<'_>,
    mut operation: impl FnMut(&Keyspace, u64) -> Result<(), BenchError>,
    settle: impl FnOnce(&Db) -> Result<(), BenchError>,
) -> Result<Costs, BenchError> {
    let keyspace = db.default_keyspace();
    let before = db.statistics();
    let start = context.clock().now();
    let (mut ended, mut longest) = (start, std::time::Duration::ZERO);
    for number in 0..count {
        operation(&keyspace, number)?;
        let now = context.clock().now();
        longest = longest.max(now - ended);
        ended = now;
        if number % REPORT_INTERVAL == 0 {
            context.progress(number as f64 / count as f64)?;
            ended = context.clock().now();
        }
    }
    settle(db)?;
    let seconds = (context.clock().now() - start).as_secs_f64();
    let after = db.statistics();
    let shape = after.keyspaces.first();
    let run_count = |keyspace: &tamis::KeyspaceStatistics| {
        keyspace.levels.iter().map(|level| level.run_count).sum::<usize>()
    };
    Ok(Costs {
        operation_count: count,
        seconds,
        user_bytes: after.user_bytes_written - before.user_bytes_written,
        written_bytes: bytes_written(&after) - bytes_written(&before),
        read_bytes: read_bytes(&after) - read_bytes(&before),
        longest_seconds: longest.as_secs_f64(),
        partition_count: shape.map_or(0, |keyspace| keyspace.partition_count),
        run_count: shape.map_or(0, run_count),
    })
}
