//! Definitions of the figures, and their measurements.

use std::{hint::black_box, sync::Arc};

use tamis::Keyspace;
use tamis_workload::{Operation, OperationKind, ScrambledZipfian, SplitMix64, Workload, ZipfianComposite};

use super::store::{self, LAYOUTS, Loaded, Shape, value};
use tamis_bench::{Axis, BenchError, Context, Definition, Plot, Point, Row, Size, published};

/// Bytes of a value where the experiment does not vary it.
const VALUE_BYTES: u64 = 120;
/// Entries of the largest store.
const SMALL: u64 = 10_000;
const MEDIUM: u64 = 500_000;
const FULL: u64 = 4_000_000;
/// Minimum number of keys with the same prefix. They have the same share of a memtable as in the paper.
const PREFIX_KEYS_MIN: u64 = 4;
const PREFIXES_PER_MEMTABLE: u64 = 460;
const MEMTABLES: u64 = 64;
/// The entries that a scan of YCSB E reads after its seek.
const SCAN_ENTRIES: u64 = 50;

const RATE: Plot = Plot {
    name: "throughput",
    title: "Million operations per second",
    x: "pattern",
    y: "mops",
    series: "layout",
    ..Plot::NEW
};
const WRITTEN: Plot =
    Plot { name: "written", title: "Bytes written per byte of the user", y: "write_amplification", ..RATE };
const READ: Plot =
    Plot { name: "read", title: "Bytes read per byte of the user", y: "read_amplification", ..RATE };

/// Value sizes.
pub(super) const FIGURE_14: Definition = Definition {
    name: "remix-figure-14",
    title: "REMIX: seeks after a load in key order, value sizes",
    source: "REMIX, Figure 14",
    about: "Sequential, Zipfian and uniform seeks in stores that were loaded in key order, values of 40, 120 and 400 bytes. The paper: \"The throughput with a uniform access pattern is about 50% lower than that of sequential access.\"",
    points: value_size_points,
    measure: measure_value_sizes,
    plots: &[Plot { panel: "value_bytes", ..RATE }],
    paper: &[],
};

/// Store sizes.
pub(super) const FIGURE_15: Definition = Definition {
    name: "remix-figure-15",
    title: "REMIX: scans after a load in random order, store sizes",
    source: "REMIX, Figure 15",
    about: "Zipfian seeks and scans of 10 and 50 entries in stores of four sizes that were loaded in random order, with one size of the cache. The paper: \"The performance differences among the stores become smaller with longer scans.\"",
    points: store_size_points,
    measure: measure_store_sizes,
    plots: &[
        Plot { x: "entries", panel: "steps", x_axis: Axis::Log, ..RATE },
        Plot {
            name: "read",
            title: "Bytes read per operation",
            x: "entries",
            y: "bytes_read_per_operation",
            panel: "steps",
            x_axis: Axis::Log,
            ..RATE
        },
    ],
    paper: &[],
};

/// A random load.
pub(super) const FIGURE_16: Definition = Definition {
    name: "remix-figure-16",
    title: "REMIX: load in random order",
    source: "REMIX, Figure 16",
    about: "A load of distinct keys in random order, compactions included: throughput and total I/O. The paper: \"RemixDB achieves low WA and high write throughput at the cost of increased read I/O.\"",
    points: load_points,
    measure: measure_load,
    plots: &[
        Plot { x: "layout", series: "", ..RATE },
        Plot { x: "layout", series: "", ..WRITTEN },
        Plot { x: "layout", series: "", ..READ },
    ],
    paper: &[published("layout=partitioned", "write_amplification", 4.88)],
};

/// Updates.
pub(super) const FIGURE_17: Definition = Definition {
    name: "remix-figure-17",
    title: "REMIX: sequential and skewed updates",
    source: "REMIX, Figure 17",
    about: "As many sequential, Zipfian and Zipfian-composite updates as entries, of a store that was loaded in random order, compactions included. The paper: \"The Zipfian-Composite workload has weaker spatial locality than Zipfian, resulting in higher compaction I/O cost.\"",
    points: update_points,
    measure: measure_updates,
    plots: &[RATE, WRITTEN, READ],
    paper: &[published("layout=partitioned; pattern=sequential", "write_amplification", 2.0)],
};

/// YCSB.
pub(super) const FIGURE_18: Definition = Definition {
    name: "remix-figure-18",
    title: "REMIX: YCSB A to F",
    source: "REMIX, Figure 18",
    about: "The YCSB core workloads on a store that was loaded in random order, compactions included; a scan reads 50 entries. The paper: \"RemixDB outperforms the other stores except in workload D, where the read requests (95%) query the most recent updates.\"",
    points: ycsb_points,
    measure: measure_ycsb,
    plots: &[Plot { x: "workload", ..RATE }, Plot { x: "workload", ..WRITTEN }],
    paper: &[],
};

/// The shape of a point's store, and the point with its parameters.
fn shape_of(
    layout: &str,
    order: &'static str,
    (entries, entries_max): (u64, u64),
    value_bytes: u64,
) -> (Shape, Point) {
    let shape = Shape { layout: layout.to_owned(), order, entries, entries_max, value_bytes };
    let point = Point::new().with("layout", layout).with("entries", entries).with("value_bytes", value_bytes);
    let point = point.needing(shape.needs());
    (shape, point)
}

fn entries(size: Size) -> u64 {
    size.pick(SMALL, MEDIUM, FULL)
}

/// The shape of the store of a point. All stores of an experiment but those of figure 15 have the same number of entries.
fn shape(point: &Point, order: &'static str, entries_max: u64) -> Result<Shape, BenchError> {
    let size = (point.integer("entries")?, entries_max);
    Ok(shape_of(point.text("layout")?, order, size, point.integer("value_bytes")?).0)
}

/// The loaded store of a point, shared with others.
fn loaded(shape: &Shape, context: &mut Context<'_>) -> Result<Arc<Loaded>, BenchError> {
    context.input(&format!("{shape:?}"), |context| context.part(0.0..0.6, |context| shape.load(context)))
}

fn value_size_points(size: Size) -> Vec<Point> {
    let mut points = Vec::new();
    for layout in LAYOUTS {
        for value_bytes in [40, 120, 400] {
            for pattern in ["sequential", "zipfian", "uniform"] {
                // The same number of bytes for all values.
                let count = entries(size) * (VALUE_BYTES + 16) / (value_bytes + 16);
                let (_, point) = shape_of(layout, "sequential", (count, count), value_bytes);
                points
                    .push(point.with("pattern", pattern).with("count", size.pick(1_000, 50_000, 1_000_000)));
            }
        }
    }
    points
}

fn store_size_points(size: Size) -> Vec<Point> {
    let mut points = Vec::new();
    for layout in LAYOUTS {
        for divisor in [64, 16, 4, 1] {
            for steps in [0_u64, 10, 50] {
                let sizes = (entries(size) / divisor, entries(size));
                let (_, point) = shape_of(layout, "hashed", sizes, VALUE_BYTES);
                points.push(point.with("steps", steps).with("count", size.pick(500, 20_000, 500_000)));
            }
        }
    }
    points
}

fn load_points(size: Size) -> Vec<Point> {
    let point = |layout| {
        shape_of(layout, "hashed", (entries(size), entries(size)), VALUE_BYTES).1.with("pattern", "load")
    };
    LAYOUTS.into_iter().map(point).collect()
}

fn update_points(size: Size) -> Vec<Point> {
    let mut points = Vec::new();
    for layout in LAYOUTS {
        for pattern in ["sequential", "zipfian", "zipfian-composite"] {
            let (_, point) = shape_of(layout, "shuffled", (entries(size), entries(size)), VALUE_BYTES);
            points.push(point.with("pattern", pattern).with("count", entries(size)));
        }
    }
    points
}

fn ycsb_points(size: Size) -> Vec<Point> {
    let mut points = Vec::new();
    for layout in LAYOUTS {
        for workload in tamis_workload::operations::YCSB {
            let (_, point) = shape_of(layout, "hashed", (entries(size), entries(size)), VALUE_BYTES);
            points.push(point.with("workload", workload.name).with("count", entries(size) / 4));
        }
    }
    points
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

fn measure_value_sizes(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (entries, count) = (point.integer("entries")?, point.integer("count")?);
    let loaded = loaded(&shape(point, "sequential", entries)?, context)?;
    let mut random = SplitMix64::new(context.seed() ^ 1);
    let zipfian = ScrambledZipfian::new(entries);
    match point.text("pattern")? {
        "sequential" => measure_seeks(&loaded, (count, 0), context, |place| place % entries),
        "zipfian" => measure_seeks(&loaded, (count, 0), context, |_| zipfian.draw(&mut random)),
        _ => measure_seeks(&loaded, (count, 0), context, |_| random.below(entries)),
    }
}

fn measure_store_sizes(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (count, steps) = (point.integer("count")?, point.integer("steps")?);
    let loaded = loaded(&shape(point, "hashed", entries(context.size()))?, context)?;
    let mut random = SplitMix64::new(context.seed() ^ 1);
    let zipfian = ScrambledZipfian::new(loaded.shape.entries);
    measure_seeks(&loaded, (count, steps), context, |_| zipfian.draw(&mut random))
}

fn measure_load(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let shape = shape(point, "hashed", point.integer("entries")?)?;
    Ok(loaded(&shape, context)?.costs.row())
}

fn measure_updates(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (entries, count) = (point.integer("entries")?, point.integer("count")?);
    let loaded = loaded(&shape(point, "shuffled", entries)?, context)?;
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
            Ok(keyspace.put(loaded.shape.key(number), value(&mut values, VALUE_BYTES))?)
        })
    })?;
    db.close()?;
    drop(folder);
    Ok(costs.row())
}

fn measure_ycsb(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (entries, count) = (point.integer("entries")?, point.integer("count")?);
    let workload: Workload = point.text("workload")?.parse().map_err(BenchError::other)?;
    let loaded = loaded(&shape(point, "hashed", entries)?, context)?;
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
            Ok(keyspace.put(key, value(values, VALUE_BYTES))?)
        }
        _ => Ok(keyspace.put(key, value(values, VALUE_BYTES))?),
    }
}
