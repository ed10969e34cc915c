//! Proteus, Figures 6 to 9: stores of integers and of domain names, and queries that change.

use super::{
    shift::{self, Transition},
    steady::{Steady, measure},
};
use tamis_bench::{Axis, BenchError, Context, Definition, Plot, Point, Row, Size};

const FILTERS: [&str; 8] =
    ["none", "blocked-bloom", "prefix-bloom", "surf", "rosetta", "proteus", "grafite", "auto"];
const SHIFTING_FILTERS: [&str; 6] = ["none", "blocked-bloom", "surf-real", "rosetta", "proteus", "auto"];
/// Bits per key of the shifts.
const SHIFT_BITS: u64 = 12;

/// Keys, and empty ranges.
const WORKLOADS: [(&str, &str); 4] =
    [("normal", "upto_20"), ("normal", "halves_30"), ("uniform", "near_10_5"), ("gaps", "real_8")];
/// Keys, and the queries at the beginning and at the end.
const TRANSITIONS: [(&str, &str, &str); 2] =
    [("normal", "upto_20", "near_10_5"), ("uniform", "near_10_5", "upto_20")];

const TIME: Plot = Plot {
    name: "time",
    title: "Nanoseconds per query",
    x: "bits",
    y: "ns_per_query",
    series: "filters",
    panel: "keys,queries",
    y_axis: Axis::Log,
    ..Plot::NEW
};
const RATE: Plot = Plot { name: "rate", title: "False positive rate", y: "false_positive_rate", ..TIME };

const TIMELINE: &[Plot] = &[
    Plot {
        name: "time",
        title: "Cumulative seconds",
        x: "batch",
        y: "cumulative_seconds",
        series: "filters",
        panel: "keys",
        ..Plot::NEW
    },
    Plot {
        name: "blocks",
        title: "Blocks per query",
        x: "batch",
        y: "blocks_per_query",
        series: "filters",
        panel: "keys",
        y_axis: Axis::Log,
        ..Plot::NEW
    },
    Plot {
        name: "ratio",
        title: "Blocks relative to a store that was built for the new queries",
        x: "batch",
        y: "ratio_to_new",
        series: "filters",
        panel: "keys",
        y_axis: Axis::Log,
        ..Plot::NEW
    },
];

/// Integers.
pub(super) const FIGURE_6: Definition = Definition {
    name: "proteus-figure-6",
    title: "Proteus: empty ranges in a store of integers",
    source: "Proteus, Figure 6",
    about: "Long uniform ranges, short ranges near keys, and both, at 8 to 18 bits per key. Dense user ids are generated. The paper: \"Proteus achieves the lowest latency across all workloads on low memory budgets, improving upon SuRF and Rosetta by as much as 3.3x and 3.9x respectively.\"",
    points: points_6,
    measure: measure_point,
    plots: &[
        TIME,
        RATE,
        Plot { name: "speed-up", title: "Speed relative to SuRF", y: "speed_up_over_surf", ..TIME },
    ],
    paper: &[],
};

/// Queries that change gradually.
pub(super) const FIGURE_7: Definition = Definition {
    name: "proteus-figure-7",
    title: "Proteus: queries that change gradually",
    source: "Proteus, Figure 7",
    about: "The share of the new queries grows from 0 to 1 in 20 batches, while twice as many keys are put as the store had. The paper: \"Proteus is resilient to the extreme workload shifts and is able to instantiate new designs to maintain a consistently low Seek latency.\"",
    points: shift_points,
    measure: |point, context| shift::measure(point, Transition::Gradual, context),
    plots: TIMELINE,
    paper: &[],
};

/// Queries that change at once.
pub(super) const FIGURE_8: Definition = Definition {
    name: "proteus-figure-8",
    title: "Proteus: queries that change at once",
    source: "Proteus, Figure 8",
    about: "As proteus-figure-7; the queries change in the middle, at batch 10. The paper: \"the decrease in performance is temporary as the filters are rebuilt using the updated query cache.\"",
    points: shift_points,
    measure: |point, context| shift::measure(point, Transition::Immediate, context),
    plots: TIMELINE,
    paper: &[],
};

/// Domain names.
pub(super) const FIGURE_9E: Definition = Definition {
    name: "proteus-figure-9e",
    title: "Proteus: empty ranges in a store of domain names",
    source: "Proteus, Figure 9 e, f",
    about: "Ranges from an absent domain name to the name padded to 253 bytes plus up to 2^30. The paper: Proteus reduces the latency by as much as 5.3x over SuRF, which needs at least 16 bits per key.",
    points: points_9e,
    measure: measure_point,
    plots: &[TIME, RATE],
    paper: &[],
};

fn points_of(size: Size, workloads: &[(&str, &str)], bits: &[u64]) -> Vec<Point> {
    let mut points = Vec::new();
    for workload in workloads {
        for bits in bits {
            for filters in FILTERS {
                points.push(Steady::of_papers(size, *workload, filters, *bits).point());
            }
        }
    }
    points
}

fn points_6(size: Size) -> Vec<Point> {
    points_of(
        size,
        WORKLOADS.get(size.pick(2, 0, 0)..).unwrap_or_default(),
        size.pick(&[12][..], &[8, 12, 16], &[8, 10, 12, 14, 16, 18]),
    )
}

fn points_9e(size: Size) -> Vec<Point> {
    points_of(
        size,
        &[("domains", "padded")],
        size.pick(&[12][..], &[8, 12, 16, 20], &[8, 10, 12, 14, 16, 18, 20, 24]),
    )
}

fn shift_points(size: Size) -> Vec<Point> {
    let entries = size.pick(2_000, 150_000, 2_000_000);
    // The small size tests one transition.
    let transitions = TRANSITIONS.get(..size.pick(1, 2, 2)).unwrap_or_default();
    let filters = if size == Size::Small { &["proteus", "auto"][..] } else { &SHIFTING_FILTERS };
    shift::points(entries, transitions, filters, SHIFT_BITS)
}

fn measure_point(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let prefix = if point.text("keys")? == "domains" { "bytes=12" } else { "bits=44" };
    measure(point, (prefix, "surf"), context)
}
