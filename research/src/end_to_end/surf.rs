//! SuRF, Figures 5 and 6: a store of sensor events.

use super::steady::{Steady, measure};
use tamis_bench::{Axis, BenchError, Context, Definition, Plot, Point, Row, Size, published};

/// Bits per key, as in the paper.
const BITS: u64 = 14;
const VALUE_BYTES: u64 = 1_000;
/// SuRF-Real is the paper's best for ranges.
const SURF: &str = "surf-real";
/// Prefixes of 65,536 ns.
const PREFIX: &str = "bytes=6";
const FILTERS: [&str; 9] = [
    "none",
    "blocked-bloom",
    "prefix-bloom",
    "surf-hash",
    "surf-real",
    "rosetta",
    "proteus",
    "grafite",
    "auto",
];

/// Points.
pub(super) const FIGURE_5: Definition = Definition {
    name: "surf-figure-5",
    title: "SuRF: absent points in a store of sensor events",
    source: "SuRF, Figure 5",
    about: "Events of 2,000 sensors with values of 1 KB; lookups of a random sensor at a random time. The paper: \"Using filters in point queries reduces I/O because they prevent unnecessary block retrieval.\"",
    points: points_5,
    measure: measure_point,
    plots: &[
        Plot {
            name: "reads",
            title: "Blocks read per query",
            x: "filters",
            y: "blocks_read_per_query",
            ..Plot::NEW
        },
        Plot {
            name: "time",
            title: "Nanoseconds per query",
            x: "filters",
            y: "ns_per_query",
            y_axis: Axis::Log,
            ..Plot::NEW
        },
    ],
    paper: &[published("filters=none", "blocks_read_per_query", 1.5)],
};

/// Closed ranges.
pub(super) const FIGURE_6: Definition = Definition {
    name: "surf-figure-6",
    title: "SuRF: closed ranges in a store of sensor events",
    source: "SuRF, Figure 6",
    about: "As surf-figure-5, with time ranges of which a share is empty. The paper: \"Using SuRF-Real, however, speeds up the query by 5x when 99% of the queries return empty.\"",
    points: points_6,
    measure: measure_point,
    plots: &[
        Plot {
            name: "reads",
            title: "Blocks read per query",
            x: "empty_percent",
            y: "blocks_read_per_query",
            series: "filters",
            ..Plot::NEW
        },
        Plot {
            name: "speed-up",
            title: "Speed relative to no filter",
            x: "empty_percent",
            y: "speed_up_over_none",
            series: "filters",
            ..Plot::NEW
        },
    ],
    paper: &[
        published("filters=surf-real; queries=span_99", "speed_up_over_none", 5.0),
        published("filters=blocked-bloom; queries=span_99", "speed_up_over_none", 1.0),
    ],
};

fn steady<'a>(size: Size, queries: &'a str, filters: &'a str) -> Steady<'a> {
    Steady {
        keys: "events",
        value_bytes: VALUE_BYTES,
        entries: size.pick(4_000, 300_000, 5_000_000),
        queries,
        // The paper's 50,000 queries.
        count: size.pick(600, 20_000, 50_000),
        filters,
        bits: BITS,
        access: "direct",
    }
}

fn points_5(size: Size) -> Vec<Point> {
    FILTERS.iter().map(|filters| steady(size, "points", filters).point()).collect()
}

fn points_6(size: Size) -> Vec<Point> {
    let shares = size.pick(&[99_u64][..], &[10, 50, 90, 99], &[10, 25, 50, 75, 90, 95, 99]);
    let mut points = Vec::new();
    for share in shares {
        let queries = format!("span_{share}");
        for filters in FILTERS {
            points.push(steady(size, &queries, filters).point().with("empty_percent", *share));
        }
    }
    points
}

fn measure_point(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    measure(point, (PREFIX, SURF), context)
}
