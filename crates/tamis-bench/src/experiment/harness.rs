//! The overhead of the driver: operations on a store that does nothing.

use tamis_workload::{KeyForm, Workload};

use crate::{
    BenchError, Context, Definition, Needs, Plot, Point, Row, Size,
    driver::{Drive, EmptyStore, Latencies, Script, Values, drive},
};

/// The experiment.
pub(super) const HARNESS: Definition = Definition {
    name: "store-harness",
    title: "Overhead of the driver, on a store that does nothing",
    source: "",
    about: "Nanoseconds per operation of the driver itself: below 60 if every latency is recorded, below 20 with one in 16.",
    points: &points,
    measure: &measure,
    plots: &[Plot {
        name: "cost",
        title: "Nanoseconds per operation on a store that does nothing",
        x: "workload",
        y: "ns_per_operation",
        series: "latencies",
        panel: "threads",
        ..Plot::NEW
    }],
    paper: &[],
};

/// Approximate bytes of an encoded operation.
const OPERATION_BYTES: u64 = 64;

fn points(size: Size) -> Vec<Point> {
    let count: u64 = size.pick(200_000, 5_000_000, 20_000_000);
    let mut points = Vec::new();
    for threads in [1_u64, 2] {
        for workload in ["readrandom", "overwrite", "ycsb-a", "empty-near"] {
            for latencies in ["every", "one-in-16"] {
                let point = Point::new().with("workload", workload).with("latencies", latencies);
                let needs = Needs { disk_bytes: 0, memory_bytes: count * OPERATION_BYTES };
                points.push(point.with("threads", threads).with("operations", count).needing(needs));
            }
        }
    }
    points
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let workload: Workload = point.text("workload")?.parse().map_err(BenchError::other)?;
    let (threads, count) = (point.integer("threads")?, point.integer("operations")?);
    let operations = workload.operations(1_000_000, count, context.seed());
    let script = Script::deal(operations, KeyForm::Hex, threads as usize);
    let values = Values::new(100, context.seed());
    let latencies = if point.text("latencies")? == "every" { Latencies::Every } else { Latencies::OneIn16 };
    let what = Drive { warm_up: 1000, latencies, ..Drive::new(&script, &values) };
    let measured = drive(&EmptyStore, &what, context)?;
    // Time of one thread per operation, independent of the number of threads.
    let ns = measured.seconds * 1e9 * threads as f64 / measured.operation_count.max(1) as f64;
    Ok(measured.row().with("ns_per_operation", ns))
}
