//! Figures 4, 7, 8 and 11: integers, and empty ranges of one size.

use crate::{
    forms,
    integers::{Length, Place, integer_input},
};
use tamis_bench::{Axis, BenchError, Context, Definition, Plot, Point, Row, Size};

/// Maximum number of queries, and of sample queries.
const QUERIES_MAX: usize = 1_000_000;
const SAMPLE_MAX: usize = 20_000;

/// The allocation of bits with default and with zero costs of probes.
const ALLOCATIONS: [&str; 2] = ["rosetta", "rosetta:probe-cost=0"];
/// Rosetta, two Bloom filters (RocksDB's is blocked), and SuRF with both kinds of suffixes.
const POINT_FAMILIES: [&str; 5] = ["rosetta", "bloom", "blocked-bloom", "surf-hash", "surf-real"];
const RANGE_FAMILIES: [&str; 2] = ["rosetta", "surf-real"];

const BY_BITS: Plot = Plot {
    name: "rate",
    title: "False positive rate by bits per key",
    x: "bits",
    y: "fpr",
    series: "family",
    y_axis: Axis::Log,
    ..Plot::NEW
};
const BY_BITS_AND_DATA: Plot = Plot { series: "family,keys", panel: "workload", ..BY_BITS };
const BY_SIZE: Plot =
    Plot { title: "False positive rate by size of ranges", x: "range_size", x_axis: Axis::Log, ..BY_BITS };

/// Allocations of bits to levels.
pub(super) const FIGURE_4: Definition = Definition {
    name: "rosetta-figure-4",
    title: "Rosetta: rate and probes by allocation and size of ranges",
    source: "Rosetta, Figure 4",
    about: "Uniform 64-bit keys, 10 bits per key, empty ranges shortly after a key, where only deep levels help. In the paper the single level has the best rate for all sizes, but clearly the most probes from 32 keys; which is what free probes choose; the default here balances both.",
    points: |size| {
        let sizes: &[u64] =
            size.pick(&[2, 32, 512], &[2, 8, 32, 128, 512], &[2, 4, 8, 16, 32, 64, 128, 256, 512]);
        let keys = size.pick(3000, 1_000_000, 10_000_000);
        let of =
            |range_size: &u64| ALLOCATIONS.map(|family| point("correlated", keys, *range_size, 10.0, family));
        sizes.iter().flat_map(of).collect()
    },
    measure,
    plots: &[
        BY_SIZE,
        Plot {
            name: "probes",
            title: "Probes per query by size of ranges",
            y: "probes_per_query",
            ..BY_SIZE
        },
        Plot { name: "time", title: "Nanoseconds per query by size of ranges", y: "query_ns", ..BY_SIZE },
    ],
    paper: &[],
};

/// Points.
pub(super) const FIGURE_7: Definition = Definition {
    name: "rosetta-figure-7",
    title: "Rosetta: absent points by bits per key",
    source: "Rosetta, Figure 7",
    about: "Uniform 64-bit keys, absent points. In the paper Rosetta equals the Bloom filter of RocksDB and is better with more memory; SuRF is an order of magnitude worse.",
    points: |size| {
        let bits: &[f64] =
            size.pick(&[10.0, 20.0], &[10.0, 14.0, 18.0, 20.0], &[10.0, 12.0, 14.0, 16.0, 18.0, 20.0]);
        let keys = size.pick(3000, 1_000_000, 50_000_000);
        bits.iter()
            .flat_map(|bits| POINT_FAMILIES.map(|family| point("uniform", keys, 1, *bits, family)))
            .collect()
    },
    measure,
    plots: &[BY_BITS],
    paper: &[],
};

/// The longest ranges of the paper.
pub(super) const FIGURE_8: Definition = Definition {
    name: "rosetta-figure-8",
    title: "Rosetta and SuRF: ranges of 64 keys by memory, data and workload",
    source: "Rosetta, Figure 8",
    about: "Empty ranges of 64 keys, the longest of the paper. In the paper Rosetta is better on all workloads, most of all on the correlated one; SuRF is better only with very little memory.",
    points: |size| by_bits_and_data(size, 64),
    measure,
    plots: &[BY_BITS_AND_DATA],
    paper: &[],
};

/// Shorter ranges.
pub(super) const FIGURE_11: Definition = Definition {
    name: "rosetta-figure-11",
    title: "Rosetta and SuRF: ranges of 16 keys by memory, data and workload",
    source: "Rosetta, Figure 11",
    about: "Empty ranges of 16 keys. In the paper Rosetta is almost always better.",
    points: |size| by_bits_and_data(size, 16),
    measure,
    plots: &[BY_BITS_AND_DATA],
    paper: &[],
};

fn point(workload: &str, keys: u64, range_size: u64, bits: f64, family: &str) -> Point {
    let point = Point::new().with("workload", workload).with("keys", keys).with("range_size", range_size);
    point.with("bits", bits).with("family", family)
}

fn by_bits_and_data(size: Size, range_size: u64) -> Vec<Point> {
    let key_counts: &[u64] = size.pick(&[3000], &[1_000_000], &[10_000_000, 20_000_000, 30_000_000]);
    let bits: &[f64] =
        size.pick(&[12.0, 22.0], &[10.0, 14.0, 18.0, 22.0, 26.0], &[10.0, 14.0, 18.0, 22.0, 26.0, 32.0]);
    let mut points = Vec::new();
    for workload in ["uniform", "correlated", "skewed"] {
        for keys in key_counts {
            for bits in bits {
                points.extend(RANGE_FAMILIES.map(|family| point(workload, *keys, range_size, *bits, family)));
            }
        }
    }
    points
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (workload, range_size) = (point.text("workload")?, point.integer("range_size")?);
    let (set, place) = match workload {
        "correlated" => ("uniform", Place::Correlated(1024)),
        "skewed" => ("normal", Place::Uniform),
        _ => ("uniform", Place::Uniform),
    };
    let keys = point.integer("keys")? as usize;
    let input = context.input(&format!("{workload} {keys} {range_size}"), |context| {
        let queries = keys.min(QUERIES_MAX);
        let counts = (keys, queries, (queries / 10).min(SAMPLE_MAX));
        Ok(integer_input(set, (place, Length::Exact(range_size)), counts, context.seed()))
    })?;
    forms::measure(point.text("family")?, Some(point.number("bits")?), &input, context)
}
