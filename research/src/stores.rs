//! Shared by the experiments on whole stores: values, loads, settling, and operations by name, which the driver of `tamis-bench` runs.

use std::path::Path;

use tamis::{Db, Keyspace, KeyspaceOptions, Options, WriteBatch};
use tamis_bench::{
    BenchError, Context,
    driver::{Drive, Measured, Script, TamisOptions, TamisStore, Values, drive},
};
use tamis_workload::{KeyForm, Operation, OperationKind, Permutation, SplitMix64, Workload};

use OperationKind::{Insert, Range, Scan, ScanBack, Update};

/// Size of a write batch, in entries.
const BATCH_ENTRIES: usize = 1_000;

/// A value that differs from others.
pub(crate) fn value(random: &mut SplitMix64, value_bytes: usize) -> Vec<u8> {
    let mut value = vec![0; value_bytes];
    tamis_workload::fill_value(random.next_u64(), &mut value);
    value
}

/// Writes keys in their order, each with a value, in batches.
pub(crate) fn put_all<K: AsRef<[u8]>>(
    (db, keyspace): (&Db, &Keyspace),
    keys: impl ExactSizeIterator<Item = K>,
    value_bytes: usize,
    context: &mut Context<'_>,
) -> Result<(), BenchError> {
    let mut random = SplitMix64::new(context.seed());
    let count = keys.len();
    let mut batch = WriteBatch::new();
    for (index, key) in keys.enumerate() {
        batch.put(keyspace, key, value(&mut random, value_bytes))?;
        if batch.len() == BATCH_ENTRIES {
            db.write(std::mem::take(&mut batch))?;
            context.progress(index as f64 / count as f64)?;
        }
    }
    Ok(db.write(batch)?)
}

/// Flushes, and waits until no compaction is due.
pub(crate) fn settle(db: &Db) -> Result<(), BenchError> {
    db.flush()?;
    Ok(db.wait_for_compactions()?)
}

/// The entries of a store, and its options.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) options: TamisOptions,
    pub(crate) form: KeyForm,
    /// Whether entries are loaded in random order.
    pub(crate) is_shuffled: bool,
    pub(crate) entries: u64,
    pub(crate) value_bytes: u64,
}

impl Shape {
    /// A store in which hashed entries are loaded in random order.
    pub(crate) fn new(options: Options, keyspace: KeyspaceOptions, entries: u64, value_bytes: usize) -> Self {
        let options = TamisOptions { options, keyspace, durability: tamis::Durability::Buffered };
        Self { options, form: KeyForm::Hex, is_shuffled: true, entries, value_bytes: value_bytes as u64 }
    }

    /// The operations that load the entries.
    pub(crate) fn load_script(&self, seed: u64) -> Script {
        let permutation = Permutation::new(self.entries, seed);
        let item = |place| if self.is_shuffled { permutation.at(place) } else { place };
        Script::deal((0..self.entries).map(|place| operation(Insert, item(place))), self.form, 1)
    }

    /// Creates a store with its entries.
    pub(crate) fn fill(
        &self,
        folder: &Path,
        context: &mut Context<'_>,
    ) -> Result<(TamisStore, Measured), BenchError> {
        let script = self.load_script(context.seed());
        let store = TamisStore::open(folder, &self.options)?;
        let measured = self.run_script(&store, &script, context)?;
        Ok((store, measured))
    }

    /// Runs operations; the time of writes includes the compactions that they cause.
    pub(crate) fn run(
        &self,
        store: &TamisStore,
        operations: impl Iterator<Item = Operation>,
        threads: usize,
        context: &mut Context<'_>,
    ) -> Result<Measured, BenchError> {
        self.run_script(store, &Script::deal(operations, self.form, threads), context)
    }

    /// As [`Self::run`], with operations that exist before.
    pub(crate) fn run_script(
        &self,
        store: &TamisStore,
        script: &Script,
        context: &mut Context<'_>,
    ) -> Result<Measured, BenchError> {
        let values = Values::new(self.value_bytes as usize, context.seed());
        let mut measured = drive(store, &Drive::new(script, &values), context)?;
        if measured.user_bytes > 0 {
            measured.seconds += measured.settle(store, context)?.as_secs_f64();
        }
        Ok(measured)
    }

    /// As [`Self::run`]; fails if a read finds nothing.
    pub(crate) fn run_present(
        &self,
        store: &TamisStore,
        operations: impl Iterator<Item = Operation>,
        threads: usize,
        context: &mut Context<'_>,
    ) -> Result<Measured, BenchError> {
        let mut reads = 0;
        let is_read = |operation: &Operation| !matches!(operation.kind, Insert | Update);
        let operations = operations.inspect(|operation| reads += u64::from(is_read(operation)));
        let measured = self.run(store, operations, threads, context)?;
        if measured.found < reads {
            return Err(BenchError::other("a loaded key was not found"));
        }
        Ok(measured)
    }
}

/// An operation on an item; a scan reads one entry.
pub(crate) fn operation(kind: OperationKind, item: u64) -> Operation {
    Operation { kind, item, limit: 1, distance: 0, length: 0 }
}

/// Seeks that read the entry found and `steps` more.
pub(crate) fn seeks(items: impl Iterator<Item = u64>, steps: u64) -> impl Iterator<Item = Operation> {
    items.map(move |item| Operation { limit: steps as u32 + 1, ..operation(Scan, item) })
}

/// Operations by name on the hashed entries of a store: `get`, `get-absent`, `seek` and `seek-back` between the keys and from there on,
/// with `-50` and 50 more entries, `empty-range` anywhere, and the workloads of `tamis-workload`.
pub(crate) fn operations(
    name: &str,
    entries: u64,
    count: u64,
    seed: u64,
) -> Result<Box<dyn Iterator<Item = Operation>>, BenchError> {
    let mut random = SplitMix64::new(seed);
    let (kind, limit, length) = match name {
        "seek" => (Scan, 1, 0),
        "seek-50" => (Scan, 51, 0),
        "seek-back" => (ScanBack, 1, 0),
        "seek-back-50" => (ScanBack, 51, 0),
        "empty-range" => (Range, 1, 1 << 16),
        name => {
            let name = match name {
                "get" => "readrandom",
                "get-absent" => "readmissing",
                name => name,
            };
            let workload: Workload = name.parse().map_err(BenchError::other)?;
            return Ok(Box::new(workload.operations(entries, count, seed)));
        }
    };
    let drawn = move |_| Operation { limit, length, ..operation(kind, random.next_u64()) };
    Ok(Box::new((0..count).map(drawn)))
}
