//! Figures 8 and 11: false positive rate by memory and number of keys, for uniform, correlated and skewed workloads.

use tamis_workload::KeySet as IntegerSet;

use super::inputs::{Integers, Place};
use tamis_bench::{Axis, BenchError, Context, Definition, Plot, Point, Row, Size};

const FAMILIES: [&str; 2] = ["rosetta", "surf-real"];

/// The workloads: name, keys, start of ranges.
const WORKLOADS: [(&str, IntegerSet, Place); 3] = [
    ("uniform", IntegerSet::Uniform, Place::Uniform),
    ("correlated", IntegerSet::Uniform, Place::Correlated),
    ("skewed", IntegerSet::Normal, Place::Uniform),
];

const PLOTS: &[Plot] = &[Plot {
    name: "rate",
    title: "False positive rate by bits per key, for each number of keys",
    x: "bits",
    y: "fpr",
    series: "family,keys",
    panel: "workload",
    y_axis: Axis::Log,
    ..Plot::NEW
}];

/// The longest ranges of the paper.
pub(super) const FIGURE_8: Definition = Definition {
    name: "rosetta-figure-8",
    title: "Rosetta and SuRF: ranges of 64 keys by memory, data and workload",
    source: "Rosetta, Figure 8",
    about: "Empty ranges of 64 keys, the longest of the paper. In the paper Rosetta is better on all workloads, most of all on the correlated one; SuRF is better only with very little memory.",
    points: |size| points(size, 64),
    measure,
    plots: PLOTS,
    paper: &[],
};

/// Shorter ranges.
pub(super) const FIGURE_11: Definition = Definition {
    name: "rosetta-figure-11",
    title: "Rosetta and SuRF: ranges of 16 keys by memory, data and workload",
    source: "Rosetta, Figure 11",
    about: "Empty ranges of 16 keys. In the paper Rosetta is almost always better.",
    points: |size| points(size, 16),
    measure,
    plots: PLOTS,
    paper: &[],
};

fn points(size: Size, range_size: u64) -> Vec<Point> {
    let key_counts: &[u64] = size.pick(&[3000], &[1_000_000], &[10_000_000, 20_000_000, 30_000_000]);
    let bits: &[f64] =
        size.pick(&[12.0, 22.0], &[10.0, 14.0, 18.0, 22.0, 26.0], &[10.0, 14.0, 18.0, 22.0, 26.0, 32.0]);
    let mut points = Vec::new();
    for (workload, _, _) in WORKLOADS {
        for key_count in key_counts {
            for bits in bits {
                let point = |family: &'static str| {
                    Point::new()
                        .with("workload", workload)
                        .with("keys", *key_count)
                        .with("range_size", range_size)
                        .with("bits", *bits)
                        .with("family", family)
                };
                points.extend(FAMILIES.map(point));
            }
        }
    }
    points
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let name = point.text("workload")?;
    let known = WORKLOADS.into_iter().find(|(known, _, _)| *known == name);
    let (_, set, place) = known.ok_or_else(|| BenchError::other(format!("no workload {name}")))?;
    let key_count = point.integer("keys")? as usize;
    let integers = Integers { set, key_count, place, range_size: point.integer("range_size")? };
    integers.measure(point, context)
}
