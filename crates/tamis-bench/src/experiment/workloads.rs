//! YCSB, micro benchmarks, empty closed ranges, and shifting mixes, each on a separate store.

use std::time::Duration;

use tamis::Layout;
use tamis_workload::{
    Workload,
    operations::{MICRO, RANGES, SHIFTS, YCSB},
};

use super::load::{self, FILL_SHARE, FORM, VALUE_BYTES};
use crate::{
    Axis, BenchError, Context, Definition, Plot, Point, Row, Size,
    driver::{Drive, Script, TamisStore, Values, drive},
    machine::Memory,
};

const RATE: Plot = Plot {
    name: "rate",
    title: "Operations per second",
    x: "workload",
    y: "operations_per_second",
    series: "threads,layout",
    y_axis: Axis::Log,
    ..Plot::NEW
};
const AMPLIFICATION: Plot = Plot {
    name: "write-amplification",
    title: "Write amplification",
    y: "write_amplification",
    y_axis: Axis::Linear,
    ..RATE
};
const BLOCKS: Plot = Plot {
    name: "blocks",
    title: "Blocks read per operation",
    y: "blocks_read_per_operation",
    y_axis: Axis::Linear,
    ..RATE
};

/// The experiment.
pub(super) const YCSB_ALL: Definition = Definition {
    name: "store-ycsb",
    title: "YCSB A to F",
    source: "",
    about: "The YCSB core workloads: 16-byte keys, 100-byte values, Zipfian 0.99 (D: latest). Each runs on a freshly loaded store.",
    points: &|size| points(size, &YCSB),
    measure: &measure,
    plots: &[RATE, AMPLIFICATION],
    paper: &[],
};

/// The experiment.
pub(super) const MICRO_ALL: Definition = Definition {
    name: "store-micro",
    title: "Micro benchmarks",
    source: "",
    about: "Fills, overwrites, reads of present and absent keys, seeks with n entries in both directions, deletes, reads while another thread writes. The time of a fill includes settling: the flush and all compactions.",
    points: &|size| points(size, &MICRO),
    measure: &measure,
    plots: &[RATE, AMPLIFICATION],
    paper: &[],
};

/// The experiment.
pub(super) const EMPTY_RANGES: Definition = Definition {
    name: "store-empty-ranges",
    title: "Empty closed ranges",
    source: "",
    about: "The cost of ranges without a key: 1,024 numbers directly above a key, up to 1,024 above a key, and anywhere.",
    points: &|size| points(size, &RANGES),
    measure: &measure,
    plots: &[RATE, BLOCKS],
    paper: &[],
};

/// The experiment.
pub(super) const SHIFTING: Definition = Definition {
    name: "store-shift",
    title: "Shifting workloads",
    source: "",
    about: "Workloads that change from reads to writes, from absent points to empty ranges, from ranges far from keys to ranges near keys, and a hot spot that moves through all keys.",
    points: &|size| points(size, &SHIFTS),
    measure: &measure,
    plots: &[RATE, BLOCKS],
    paper: &[],
};

fn points(size: Size, workloads: &[Workload]) -> Vec<Point> {
    let entries = load::entries(size);
    let operations = size.pick(10_000, 500_000, 5_000_000);
    let mut points = Vec::new();
    for workload in workloads {
        for threads in [1_u64, 2] {
            let point = Point::new().with("workload", workload.name).with("threads", threads);
            let point =
                point.with("layout", "leveled").with("entries", entries).with("operations", operations);
            points.push(point.needing(load::needs(entries, operations)));
        }
    }
    points
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let workload: Workload = point.text("workload")?.parse().map_err(BenchError::other)?;
    let threads = point.integer("threads")? as usize;
    let (entries, count) = (point.integer("entries")?, point.integer("operations")?);
    let layout: Layout = point.text("layout")?.parse()?;
    let folder = context.scratch()?;
    let row = if workload.is_fill {
        filled(folder.path(), &workload, (entries, layout), threads, context)?
    } else {
        run(folder.path(), &workload, (entries, layout), (count, threads), context)?
    };
    // Deletes the store before the next one is loaded.
    folder.close().map_err(BenchError::io("the scratch folder"))?;
    Ok(row)
}

/// Measures a fill; time and bytes include settling.
fn filled(
    folder: &std::path::Path,
    workload: &Workload,
    (entries, layout): (u64, Layout),
    threads: usize,
    context: &mut Context<'_>,
) -> Result<Row, BenchError> {
    let script = load::fill_script(workload, entries, threads, context.seed());
    let values = Values::new(VALUE_BYTES, context.seed());
    let memory = Memory::start();
    let store = TamisStore::open(folder, &load::options(entries, layout))?;
    let what = Drive::new(&script, &values);
    let mut measured = context.part(0.0..FILL_SHARE, |context| drive(&store, &what, context))?;
    let settling = context.part(FILL_SHARE..1.0, |context| measured.settle(&store, context))?.as_secs_f64();
    let fill_seconds = measured.seconds;
    measured.seconds += settling;
    let row = measured.row().with("fill_seconds", fill_seconds).with("settle_seconds", settling);
    load::with_space(load::with_memory(row, &memory), &store)
}

/// The progress of a point at the end of the load and of the run, estimated from their operations.
fn shares(entries: u64, count: u64) -> (f64, f64) {
    let (load, run) = (entries as f64 * LOAD_WEIGHT, count as f64);
    let whole = load + run * (1.0 + SETTLE_WEIGHT);
    (load / whole, (load + run) / whole)
}

/// Measures a workload on a loaded store.
fn run(
    folder: &std::path::Path,
    workload: &Workload,
    (entries, layout): (u64, Layout),
    (count, threads): (u64, usize),
    context: &mut Context<'_>,
) -> Result<Row, BenchError> {
    let mut script = Script::deal(workload.operations(entries, count, context.seed()), FORM, threads);
    if workload.has_writer {
        script = script.with_background(workload.writer(entries, count, context.seed()), FORM);
    }
    let values = Values::new(VALUE_BYTES, context.seed());
    let what = Drive {
        warm_up: count / threads as u64 / 10,
        time_max: (context.size() == Size::Full).then_some(TIME_MAX),
        // The values differ from the loaded ones.
        round: 1,
        ..Drive::new(&script, &values)
    };
    // The script of the load is dropped before the memory of the store is measured.
    let mut memory = Memory::start();
    let (load_end, run_end) = shares(entries, count);
    let store = context.part(0.0..load_end, |context| load::loaded(folder, entries, layout, context))?;
    memory.reset_peak();
    let mut measured = context.part(load_end..run_end, |context| drive(&store, &what, context))?;
    let mut settling = None;
    if measured.user_bytes > 0 {
        let time = context.part(run_end..1.0, |context| measured.settle(&store, context))?;
        settling = Some(time.as_secs_f64());
    }
    let row = measured.row().with("settle_seconds", settling);
    let absent = ["readmissing", "empty-near", "empty-far", "empty-correlated"].contains(&workload.name);
    if absent && measured.found > 0 {
        return Err(BenchError::Other(format!("{} entries found, expected none", measured.found)));
    }
    load::with_space(load::with_memory(row, &memory), &store)
}

/// Estimated time of loading an entry, and of settling per operation, relative to an operation.
const LOAD_WEIGHT: f64 = 1.5;
const SETTLE_WEIGHT: f64 = 0.1;
/// Maximum time of a run of the full size.
const TIME_MAX: Duration = Duration::from_secs(120);
