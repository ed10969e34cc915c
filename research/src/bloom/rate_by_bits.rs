//! False positive rates and times of the point filters by size.

use tamis_filter::KeySet;
use tamis_workload::{KeySet as IntegerSet, QuerySet, RangeMax};

use crate::forms;
use tamis_bench::{
    Axis, BenchError, Context, Definition, Plot, Point, Row, Size,
    filter::{FilterInput, Ranges},
};

/// The families; the parameters of a fuse filter determine its size.
const FAMILIES: [&str; 3] = ["blocked-bloom", "bloom", "binary-fuse:bits=8"];
/// Bits per key.
const BITS: [f64; 7] = [6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0];

/// The experiment.
pub(super) const RATE_BY_BITS: Definition = Definition {
    name: "bloom-rate-by-bits",
    title: "Point filters: false positive rate by size",
    source: "",
    about: "Uniform 64-bit keys, absent points. A blocked Bloom filter has one cache miss per query and a slightly higher rate than a standard one of the same size; the binary fuse filter is the smallest for its rate.",
    points,
    measure,
    plots: &[Plot {
        name: "rate",
        title: "False positive rate by bits per key",
        x: "bits_per_key",
        y: "fpr",
        series: "family",
        y_axis: Axis::Log,
        ..Plot::NEW
    }],
    paper: &[],
};

fn points(size: Size) -> Vec<Point> {
    let key_count: u64 = size.pick(20_000, 1_000_000, 10_000_000);
    let point = |family: &str, bits: f64| {
        Point::new().with("family", family).with("bits", bits).with("keys", key_count)
    };
    let of_family = |family: &'static str| {
        let bits: &[f64] = if family.starts_with("binary-fuse") { &[0.0] } else { &BITS };
        bits.iter().map(move |bits| point(family, *bits)).collect::<Vec<_>>()
    };
    FAMILIES.into_iter().flat_map(of_family).collect()
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let key_count = point.integer("keys")? as usize;
    let input = context.input(&format!("uniform {key_count}"), |context| {
        let keys = IntegerSet::Uniform.generate(key_count, context.seed());
        let queries = QuerySet::Uniform(RangeMax::Point)
            .generate(IntegerSet::Uniform, &keys, key_count.min(1_000_000), context.seed() + 1)
            .map_err(BenchError::other)?;
        let mut set = KeySet::new();
        for key in &keys {
            set.push(&key.to_be_bytes())?;
        }
        Ok(FilterInput {
            keys: set.into(),
            queries: Ranges::from_integers(&queries),
            ..FilterInput::default()
        })
    })?;
    forms::measure(point.text("family")?, Some(point.number("bits")?), &input, context)
}
