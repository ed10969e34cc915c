//! Figure 7: absent points by bits per key, compared with point filters.

use tamis_workload::KeySet as IntegerSet;

use super::inputs::{Integers, Place};
use tamis_bench::{Axis, BenchError, Context, Definition, Plot, Point, Row, Size};

/// Rosetta, two Bloom filters (RocksDB's is blocked), and SuRF with both kinds of suffixes.
const FAMILIES: [&str; 5] = ["rosetta", "bloom", "blocked-bloom", "surf-hash", "surf-real"];

/// The experiment.
pub(super) const FIGURE_7: Definition = Definition {
    name: "rosetta-figure-7",
    title: "Rosetta: absent points by bits per key",
    source: "Rosetta, Figure 7",
    about: "Uniform 64-bit keys, absent points. In the paper Rosetta equals the Bloom filter of RocksDB and is better with more memory; SuRF is an order of magnitude worse.",
    points,
    measure,
    plots: &[Plot {
        name: "rate",
        title: "False positive rate by bits per key",
        x: "bits",
        y: "fpr",
        series: "family",
        y_axis: Axis::Log,
        ..Plot::NEW
    }],
    paper: &[],
};

fn points(size: Size) -> Vec<Point> {
    let key_count: u64 = size.pick(3000, 1_000_000, 50_000_000);
    let bits: &[f64] =
        size.pick(&[10.0, 20.0], &[10.0, 14.0, 18.0, 20.0], &[10.0, 12.0, 14.0, 16.0, 18.0, 20.0]);
    let point = |bits: f64, family: &'static str| {
        Point::new().with("bits", bits).with("family", family).with("keys", key_count)
    };
    bits.iter().flat_map(|bits| FAMILIES.map(|family| point(*bits, family))).collect()
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let integers = Integers {
        set: IntegerSet::Uniform,
        key_count: point.integer("keys")? as usize,
        place: Place::Uniform,
        range_size: 1,
    };
    integers.measure(point, context)
}
