//! Measurements of the figures.

use std::{hint::black_box, sync::Arc};

use tamis::Keyspace;
use tamis_workload::{Operation, OperationKind, ScrambledZipfian, SplitMix64, Workload, ZipfianComposite};

use super::store::{self, Loaded, Shape};
use crate::stores::value;
use tamis_bench::{BenchError, Context, Point, Row};

/// Minimum number of keys with the same prefix. They have the same share of a memtable as in the paper.
const PREFIX_KEYS_MIN: u64 = 4;
const PREFIXES_PER_MEMTABLE: u64 = 460;
const MEMTABLES: u64 = 64;
/// The entries that a scan of YCSB E reads after its seek.
const SCAN_ENTRIES: u64 = 50;

/// The shape of the store of a point. Memtables and tables have a share of the largest store of the experiment.
fn shape(point: &Point) -> Result<Shape, BenchError> {
    let entries = point.integer("entries")?;
    Ok(Shape {
        layout: point.text("layout")?.to_owned(),
        order: point.text("order")?.to_owned(),
        entries,
        entries_max: point.integer("entries_max").unwrap_or(entries),
        value_bytes: point.integer("value_bytes")?,
    })
}

/// The loaded store of a point, shared with others.
fn loaded(point: &Point, context: &mut Context<'_>) -> Result<Arc<Loaded>, BenchError> {
    let shape = shape(point)?;
    context.input(&format!("{shape:?}"), |context| context.part(0.0..0.6, |context| shape.load(context)))
}

/// Seeks to a key, and reads the entry found and `steps` more. Returns how many there are.
fn seek(keyspace: &Keyspace, key: &[u8], steps: u64) -> Result<u64, BenchError> {
    let mut scan = keyspace.range(..);
    scan.seek(key)?;
    let mut found = 0;
    while found <= steps && scan.move_next()? {
        // The paper copies the entries to a buffer.
        black_box([scan.key(), scan.value()].concat());
        found += 1;
    }
    Ok(found)
}

/// Seeks to the entries that `numbers` names; each must exist.
fn measure_seeks(
    loaded: &Loaded,
    (count, steps): (u64, u64),
    context: &mut Context<'_>,
    mut number: impl FnMut(u64) -> u64,
) -> Result<Row, BenchError> {
    let db = loaded.open()?;
    let mut operation =
        |keyspace: &Keyspace, place| match seek(keyspace, &loaded.shape.key(number(place)), steps)? {
            0 => Err(BenchError::other("a loaded key was not found")),
            _ => Ok(()),
        };
    // Views are built during these seeks, once the seeks have cost as much as a build.
    context.part(0.6..0.8, |context| store::run(&db, count, context, &mut operation))?;
    db.wait_for_compactions()?;
    let costs = context.part(0.8..1.0, |context| store::run(&db, count, context, &mut operation))?;
    db.close()?;
    Ok(costs.row().with("bytes_read_per_operation", costs.read_bytes as f64 / count.max(1) as f64))
}

/// Sequential, Zipfian or uniform seeks.
pub(crate) fn measure_reads(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let entries = point.integer("entries")?;
    let amount = (point.integer("count")?, point.integer("steps")?);
    let loaded = loaded(point, context)?;
    let mut random = SplitMix64::new(context.seed() ^ 1);
    let zipfian = ScrambledZipfian::new(entries);
    match point.text("pattern")? {
        "sequential" => measure_seeks(&loaded, amount, context, |place| place % entries),
        "zipfian" => measure_seeks(&loaded, amount, context, |_| zipfian.draw(&mut random)),
        _ => measure_seeks(&loaded, amount, context, |_| random.below(entries)),
    }
}

/// The load itself.
pub(crate) fn measure_load(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    Ok(loaded(point, context)?.costs.row())
}

/// Sequential, Zipfian or Zipfian-composite updates.
pub(crate) fn measure_updates(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (entries, count) = (point.integer("entries")?, point.integer("count")?);
    let loaded = loaded(point, context)?;
    let (db, folder) = loaded.open_copy(context)?;
    let mut random = SplitMix64::new(context.seed() ^ 1);
    let zipfian = ScrambledZipfian::new(entries);
    let per_prefix = (entries / MEMTABLES / PREFIXES_PER_MEMTABLE).max(PREFIX_KEYS_MIN);
    let composite = ZipfianComposite::new(entries / per_prefix);
    let pattern = point.text("pattern")?;
    let mut values = SplitMix64::new(context.seed() ^ 2);
    let costs = context.part(0.6..1.0, |context| {
        store::write(&db, count, context, |keyspace, place| {
            let number = match pattern {
                "sequential" => place % entries,
                "zipfian" => zipfian.draw(&mut random),
                _ => {
                    let drawn = composite.draw(&mut random);
                    (drawn >> 16) * per_prefix + drawn % per_prefix
                }
            };
            Ok(keyspace
                .put(loaded.shape.key(number), value(&mut values, loaded.shape.value_bytes as usize))?)
        })
    })?;
    db.close()?;
    drop(folder);
    Ok(costs.row())
}

/// A YCSB workload.
pub(crate) fn measure_ycsb(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (entries, count) = (point.integer("entries")?, point.integer("count")?);
    let workload: Workload = point.text("workload")?.parse().map_err(BenchError::other)?;
    let loaded = loaded(point, context)?;
    let (db, folder) = loaded.open_copy(context)?;
    let mut operations = workload.operations(entries, count, context.seed() ^ 1);
    let mut values = SplitMix64::new(context.seed() ^ 2);
    let costs = context.part(0.6..1.0, |context| {
        store::write(&db, count, context, |keyspace, _| match operations.next() {
            Some(operation) => execute(keyspace, &loaded.shape, &operation, &mut values),
            None => Ok(()),
        })
    })?;
    db.close()?;
    drop(folder);
    Ok(costs.row())
}

fn execute(
    keyspace: &Keyspace,
    shape: &Shape,
    operation: &Operation,
    values: &mut SplitMix64,
) -> Result<(), BenchError> {
    let key = shape.key(operation.item);
    let get = || match keyspace.get(key)? {
        Some(value) => {
            black_box(value);
            Ok(())
        }
        None => Err(BenchError::other(format!("item {} was not found", operation.item))),
    };
    match operation.kind {
        OperationKind::Read => get(),
        OperationKind::Scan => seek(keyspace, &key, SCAN_ENTRIES).map(drop),
        OperationKind::ReadModifyWrite => {
            get()?;
            Ok(keyspace.put(key, value(values, shape.value_bytes as usize))?)
        }
        _ => Ok(keyspace.put(key, value(values, shape.value_bytes as usize))?),
    }
}
