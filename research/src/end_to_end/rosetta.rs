//! Rosetta, Figures 5, 6 and 9: short empty ranges in a store of integers.

use super::{
    construction,
    steady::{Steady, VALUE_BYTES, measure},
    store::Shape,
};
use tamis_bench::{Axis, BenchError, Context, Definition, Plot, Point, Row, Size, published};

/// Bits per key, as in the paper.
const BITS: u64 = 22;
/// Prefixes of the longest range.
const PREFIX: &str = "bits=58";
const FILTERS: [&str; 8] =
    ["none", "blocked-bloom", "prefix-bloom", "surf", "rosetta", "proteus", "grafite", "auto"];

/// Keys, queries without their length, and their name in the paper.
const WORKLOADS: [(&str, &str, &str); 3] =
    [("uniform", "exact", "uniform"), ("uniform", "next", "correlated"), ("normal", "exact", "skewed")];

const TIME: Plot = Plot {
    name: "time",
    title: "Nanoseconds per query",
    x: "length",
    y: "ns_per_query",
    series: "filters",
    panel: "workload",
    x_axis: Axis::Log,
    y_axis: Axis::Log,
    ..Plot::NEW
};

/// Ranges of 2 to 64 integers.
pub(super) const FIGURE_5: Definition = Definition {
    name: "rosetta-figure-5",
    title: "Rosetta: empty ranges of 2 to 64 integers in a store",
    source: "Rosetta, Figure 5",
    about: "Empty ranges in a store with values of 512 bytes, at 22 bits per key: (A) uniform, (B) directly after a key, (C) normally distributed keys, (D) next to the usual filters. The paper: Rosetta is up to 4 times as fast as SuRF, and up to 40 times as fast as the default; for ranges of up to 16 its mean rate of false positives is 0.00012, that of SuRF 0.0242.",
    points: points_5,
    measure: measure_point,
    plots: &[
        TIME,
        Plot { name: "rate", title: "False positive rate", y: "false_positive_rate", ..TIME },
        Plot {
            name: "reads",
            title: "Blocks read per query",
            y: "blocks_read_per_query",
            y_axis: Axis::Linear,
            ..TIME
        },
    ],
    paper: &[
        published("filters=rosetta; queries=exact_8; workload=uniform", "false_positive_rate", 0.00012),
        published("filters=surf; queries=exact_8; workload=uniform", "false_positive_rate", 0.0242),
    ],
};

/// The cost of building filters.
pub(super) const FIGURE_6: Definition = Definition {
    name: "rosetta-figure-6",
    title: "Rosetta: filters in the time of a fill",
    source: "Rosetta, Figure 6",
    about: "(A) All data in up to 30 runs of L0, (B) compacted: the time of a fill, and of building the filters of all tables again. The paper: the construction of Rosetta costs 14 % less than that of SuRF, and compactions cost 0.006 us per byte with Rosetta, 0.008 with SuRF, 0.007 without filters.",
    points: points_6,
    measure: construction::measure,
    plots: &[
        Plot {
            name: "fill",
            title: "Nanoseconds per entry of a fill",
            x: "entries",
            y: "fill_ns_per_entry",
            series: "filters",
            panel: "level0_runs",
            x_axis: Axis::Log,
            ..Plot::NEW
        },
        Plot {
            name: "build",
            title: "Nanoseconds per key to build the filters again",
            x: "entries",
            y: "build_ns_per_key",
            series: "filters",
            panel: "level0_runs",
            x_axis: Axis::Log,
            ..Plot::NEW
        },
    ],
    paper: &[],
};

/// Memory and disk.
pub(super) const FIGURE_9: Definition = Definition {
    name: "rosetta-figure-9",
    title: "Rosetta: empty ranges in memory and on disk",
    source: "Rosetta, Figure 9",
    about: "Empty uniform ranges of 16 integers, with tables in memory (mapped) and read with direct I/O. The paper: Rosetta takes longer to probe, and has the least total in memory, too.",
    points: points_9,
    measure: measure_point,
    plots: &[Plot {
        name: "time",
        title: "Nanoseconds per query",
        x: "filters",
        y: "ns_per_query",
        series: "access",
        y_axis: Axis::Log,
        ..Plot::NEW
    }],
    paper: &[],
};

fn points_5(size: Size) -> Vec<Point> {
    let lengths = size.pick(&[8_u64][..], &[2, 8, 16, 64], &[2, 4, 8, 16, 32, 64]);
    let mut points = Vec::new();
    for (keys, kind, workload) in WORKLOADS {
        for length in lengths {
            let queries = format!("{kind}_{length}");
            for filters in FILTERS {
                let point = Steady::of_papers(size, (keys, &queries), filters, BITS).point();
                points.push(point.with("workload", workload).with("length", *length));
            }
        }
    }
    points
}

fn points_6(size: Size) -> Vec<Point> {
    let entries = size.pick(&[3_000_u64][..], &[200_000, 400_000], &[1_000_000, 2_000_000, 4_000_000]);
    let mut points = Vec::new();
    for level0_runs in [30_u64, 3] {
        for entries in entries {
            for filters in FILTERS {
                let point = Point::new().with("keys", "uniform").with("filters", filters).with("bits", BITS);
                let point = point.with("level0_runs", level0_runs).with("value_bytes", VALUE_BYTES);
                points.push(point.with("entries", *entries).needing(Shape::needs(*entries, VALUE_BYTES)));
            }
        }
    }
    points
}

fn points_9(size: Size) -> Vec<Point> {
    let mut points = Vec::new();
    for access in ["mapped", "direct"] {
        for filters in FILTERS {
            points.push(
                Steady { access, ..Steady::of_papers(size, ("uniform", "exact_16"), filters, BITS) }.point(),
            );
        }
    }
    points
}

fn measure_point(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    measure(point, (PREFIX, "surf"), context)
}
