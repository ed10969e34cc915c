//! Queries without a result in a store whose filters the store chooses, and with each family at the same memory.

use super::steady::{Steady, measure};
use tamis_bench::{Axis, BenchError, Context, Definition, Plot, Point, Row, Size, VALUE_BYTES};

/// The filters of the points, with their bits per key.
const FILTERS: [(&str, u64); 9] = [
    ("auto", 16),
    ("blocked-bloom", 10),
    ("blocked-bloom", 16),
    ("surf", 16),
    ("rosetta", 16),
    ("proteus", 16),
    ("1pbf", 16),
    ("2pbf", 16),
    ("grafite", 16),
];
/// Kinds of keys and of queries without a result.
const QUERIES: [(&str, &str); 13] = [
    ("uniform", "uniform_r0"),
    ("uniform", "uniform_r32"),
    ("uniform", "uniform_r1m"),
    ("uniform", "correlated_r32"),
    ("events", "points"),
    ("events", "uniform_r1024"),
    ("events", "correlated_r32"),
    ("domains", "points"),
    ("domains", "prefix_b64"),
    ("emails", "points"),
    ("emails", "prefix_b96"),
    ("composite", "points"),
    ("composite", "ranges"),
];
const BLOCKS: Plot = Plot {
    name: "blocks",
    title: "Blocks read per query",
    x: "filters",
    y: "blocks_per_query",
    series: "queries",
    panel: "keys",
    ..Plot::NEW
};

/// The experiment.
pub(super) const FILTERS_AT_WORK: Definition = Definition {
    name: "store-filters",
    title: "Queries without a result: the filters that the store chooses and each family",
    source: "",
    about: "Blocks read and time of points, ranges and prefixes without a result, in a settled store of 116-byte entries, with the filters that the store chooses and with each family at the same maximum memory.",
    points,
    measure: |point: &Point, context: &mut Context<'_>| -> Result<Row, BenchError> {
        measure(point, ("bytes=4", "surf"), context)
    },
    plots: &[
        BLOCKS,
        Plot { name: "time", title: "Nanoseconds per query", y: "ns_per_query", y_axis: Axis::Log, ..BLOCKS },
    ],
    paper: &[],
};

fn points(size: Size) -> Vec<Point> {
    let of = |(keys, queries): (&'static str, &'static str)| {
        FILTERS.map(|(filters, bits)| {
            let steady = Steady {
                keys,
                value_bytes: VALUE_BYTES as u64,
                entries: size.pick(20_000, 1_000_000, 10_000_000),
                queries,
                count: size.pick(2_000, 50_000, 200_000),
                filters,
                bits,
                access: "mapped",
            };
            steady.point()
        })
    };
    QUERIES.into_iter().flat_map(of).collect()
}
