//! Figure 4: false positive rate and probes of the bit allocation strategies, by size of ranges.

use tamis_workload::KeySet as IntegerSet;

use super::inputs::{Integers, Place};
use tamis_bench::{Axis, BenchError, Context, Definition, Plot, Point, Row, Size};

/// The strategies of the paper, its first-cut solution, and the default strategy with default and with zero probe costs.
const FAMILIES: [&str; 6] = [
    "rosetta:strategy=single",
    "rosetta:strategy=optimised",
    "rosetta:strategy=variable",
    "rosetta:strategy=first-cut",
    "rosetta",
    "rosetta:probe-cost=0",
];

/// The experiment.
pub(super) const FIGURE_4: Definition = Definition {
    name: "rosetta-figure-4",
    title: "Rosetta: rate and probes by strategy and size of ranges",
    source: "Rosetta, Figure 4",
    about: "Uniform 64-bit keys, 10 bits per key, empty ranges shortly after a key, where only deep levels help. In the paper the single level has the best rate for all sizes, but clearly the most probes from 32 keys; the default strategy here balances both.",
    points,
    measure,
    plots: &[
        Plot {
            name: "rate",
            title: "False positive rate by size of ranges",
            x: "range_size",
            y: "fpr",
            series: "family",
            x_axis: Axis::Log,
            y_axis: Axis::Log,
            ..Plot::NEW
        },
        Plot {
            name: "probes",
            title: "Probes per query by size of ranges",
            x: "range_size",
            y: "probes_per_query",
            series: "family",
            x_axis: Axis::Log,
            y_axis: Axis::Log,
            ..Plot::NEW
        },
        Plot {
            name: "time",
            title: "Nanoseconds per query by size of ranges",
            x: "range_size",
            y: "query_ns",
            series: "family",
            x_axis: Axis::Log,
            y_axis: Axis::Log,
            ..Plot::NEW
        },
    ],
    paper: &[],
};

fn points(size: Size) -> Vec<Point> {
    let key_count: u64 = size.pick(3000, 1_000_000, 10_000_000);
    let sizes: &[u64] =
        size.pick(&[2, 32, 512], &[2, 8, 32, 128, 512], &[2, 4, 8, 16, 32, 64, 128, 256, 512]);
    let point = |range_size: u64, family: &'static str| {
        Point::new()
            .with("range_size", range_size)
            .with("family", family)
            .with("bits", 10.0)
            .with("keys", key_count)
    };
    sizes.iter().flat_map(|size| FAMILIES.map(|family| point(*size, family))).collect()
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let integers = Integers {
        set: IntegerSet::Uniform,
        key_count: point.integer("keys")? as usize,
        place: Place::Correlated,
        range_size: point.integer("range_size")?,
    };
    integers.measure(point, context)
}
