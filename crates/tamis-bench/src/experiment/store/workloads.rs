//! YCSB, the classic micro benchmarks, empty closed ranges, and shifting mixes, each on a store of its own.

use std::time::Duration;

use tamis::Clock as _;
use tamis_workload::{
    Workload,
    operations::{MICRO, RANGES, SHIFTS, YCSB},
};

use super::load::{self, FORM, VALUE_BYTES};
use crate::{
    Axis, BenchError, Context, Definition, Plot, Point, Row, Size,
    driver::{Drive, Latencies, Process, Script, Store as _, TamisStore, Values, drive},
};

const RATE: Plot = Plot {
    name: "rate",
    title: "Operations in a second",
    x: "workload",
    y: "operations_per_second",
    series: "threads",
    y_axis: Axis::Log,
    ..Plot::NEW
};
const AMPLIFICATION: Plot = Plot {
    name: "write-amplification",
    title: "Bytes written for each byte of the user's",
    y: "write_amplification",
    y_axis: Axis::Linear,
    ..RATE
};
const BLOCKS: Plot = Plot {
    name: "blocks",
    title: "Blocks read for each operation",
    y: "blocks_read_per_operation",
    y_axis: Axis::Linear,
    ..RATE
};

/// The experiment.
pub(super) const YCSB_ALL: Definition = Definition {
    name: "store-ycsb",
    title: "YCSB A to F",
    source: "",
    about: "The core workloads by their standard: 16-byte keys, 100-byte values, Zipfian 0.99 (D: the latest). Each runs on a store that was loaded for it.",
    points: |size| points(size, &YCSB),
    measure,
    plots: &[RATE, AMPLIFICATION],
    paper: &[],
};

/// The experiment.
pub(super) const MICRO_ALL: Definition = Definition {
    name: "store-micro",
    title: "The classic micro benchmarks",
    source: "",
    about: "Fills, overwrites, reads of present and absent keys, seeks with n entries in both directions, deletes, reads while another thread writes. Fills count until the store is at rest.",
    points: |size| points(size, &MICRO),
    measure,
    plots: &[RATE, AMPLIFICATION],
    paper: &[],
};

/// The experiment.
pub(super) const EMPTY_RANGES: Definition = Definition {
    name: "store-empty-ranges",
    title: "Closed ranges without a key",
    source: "",
    about: "Ranges of 1,024 numbers just above a key, up to 1,024 above one, and anywhere: what a range costs that finds nothing.",
    points: |size| points(size, &RANGES),
    measure,
    plots: &[RATE, BLOCKS],
    paper: &[],
};

/// The experiment.
pub(super) const SHIFTING: Definition = Definition {
    name: "store-shift",
    title: "Mixes that shift",
    source: "",
    about: "From reads to writes, from absent points to empty ranges, from far ranges to near ones, and a hot spot that moves through all keys.",
    points: |size| points(size, &SHIFTS),
    measure,
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
            let point = point.with("entries", entries).with("operations", operations);
            points.push(point.needing(load::needs(entries, operations)));
        }
    }
    points
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let workload: Workload = point.text("workload")?.parse().map_err(BenchError::other)?;
    let threads = point.integer("threads")? as usize;
    let (entries, count) = (point.integer("entries")?, point.integer("operations")?);
    let folder = context.scratch()?;
    let row = if workload.is_fill {
        filled(folder.path(), &workload, entries, threads, context)?
    } else {
        run(folder.path(), &workload, entries, count, threads, context)?
    };
    // The store is deleted before the next is loaded.
    folder.close().map_err(BenchError::io("the scratch folder"))?;
    Ok(row)
}

/// A fill: its time and its bytes count until the store is at rest.
fn filled(
    folder: &std::path::Path,
    workload: &Workload,
    entries: u64,
    threads: usize,
    context: &mut Context<'_>,
) -> Result<Row, BenchError> {
    let store = TamisStore::open(folder, &load::options(entries))?;
    let (before, process_before) = (store.counters(), Process::now());
    let mut measured = load::fill(&store, workload, entries, threads, context)?;
    let start = context.clock().now();
    measured.counters = load::settled(&store, before)?;
    let settling = context.clock().now() - start;
    measured.process = Process::now().since(process_before);
    let fill_seconds = measured.seconds;
    measured.seconds += settling.as_secs_f64();
    let row = measured.row().with("fill_seconds", fill_seconds);
    load::with_space(row, &store)
}

/// A run on a loaded store.
fn run(
    folder: &std::path::Path,
    workload: &Workload,
    entries: u64,
    count: u64,
    threads: usize,
    context: &mut Context<'_>,
) -> Result<Row, BenchError> {
    let store = load::loaded(folder, entries, context)?;
    let mut script = Script::deal(workload.operations(entries, count, context.seed()), FORM, threads);
    if workload.has_writer {
        script = script.and_beside(workload.writer(entries, count, context.seed()), FORM);
    }
    let values = Values::new(VALUE_BYTES, context.seed());
    let what = Drive {
        script: &script,
        values: &values,
        warm_up: count / threads as u64 / 10,
        latencies: Latencies::Every,
        time_max: (context.size() == Size::Full).then_some(TIME_MAX),
        // Values differ from the loaded ones.
        round: 1,
    };
    let mut measured = drive(&store, &what, context)?;
    // What the writes still cause belongs to them; the time of the operations does not grow by it.
    let settled = load::settled(&store, measured.counters_before)?;
    if measured.user_bytes > 0 {
        measured.counters.bytes_written = settled.bytes_written;
    }
    let row = measured.row();
    let absent = ["readmissing", "empty-near", "empty-far", "empty-correlated"].contains(&workload.name);
    if absent && measured.found > 0 {
        return Err(BenchError::Other(format!("{} entries found where none is", measured.found)));
    }
    load::with_space(row, &store)
}

/// The longest run at full size.
const TIME_MAX: Duration = Duration::from_secs(120);
