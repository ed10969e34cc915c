//! The best filter by workload: Figures 1 and 5 of the paper.
//!
//! Proteus and Rosetta get a sample of 20,000 queries. SuRF chooses its suffix from the sample too, so it is at least as good as
//! the best fixed variant of the paper. If the budget is below the minimum size of SuRF, its row contains the reason.

use crate::{
    forms,
    integers::{Length, Place, integer_input},
};
use tamis_bench::{Axis, BenchError, Context, Definition, Plot, Point, Row, Size};

const SAMPLE_COUNT: usize = 20_000;
/// Proteus, optimised for the rate only as in the paper, and the families to compare with.
const FAMILIES: [&str; 3] = ["proteus:probe-cost=0,probe-cap=16384", "surf", "rosetta"];

/// Rates by length of queries and distance from keys.
pub(super) const FIGURE_1: Definition = Definition {
    name: "proteus-figure-1",
    title: "Rates by length of queries and distance from keys",
    source: "Proteus, Figure 1",
    about: "Uniform keys, 12 bits per key. SuRF is good for queries far from keys, Rosetta for short queries near keys; Proteus adapts its design to the queries.",
    points: points_1,
    measure,
    plots: &[Plot {
        name: "rates",
        title: "False positive rate by length of queries and distance from keys (powers of two)",
        x: "length_log2",
        y: "distance_log2",
        heat: "fpr",
        panel: "family",
        ..Plot::NEW
    }],
    paper: &[],
};

/// Rates by budget, for each key set and kind of queries.
pub(super) const FIGURE_5: Definition = Definition {
    name: "proteus-figure-5",
    title: "Rates by budget, for kinds of keys and queries",
    source: "Proteus, Figure 5",
    about: "Points, ranges of up to 32 and up to 2^20 values, and a mix of points and ranges. Generated key sets replace the real ones of the paper: books is skewed, facebook is dense with uniform gaps.",
    points: points_5,
    measure,
    plots: &[Plot {
        name: "rates",
        title: "False positive rate by bits per key",
        x: "bits",
        y: "fpr",
        series: "family",
        panel: "set,place,length",
        y_axis: Axis::Log,
        ..Plot::NEW
    }],
    paper: &[],
};

fn counts(size: Size) -> Point {
    Point::new()
        .with("keys", size.pick(2_000_u64, 100_000, 10_000_000))
        .with("queries", size.pick(500_u64, 50_000, 1_000_000))
}

fn points_1(size: Size) -> Vec<Point> {
    let step = size.pick(14, 5, 4);
    let mut points = Vec::new();
    for length in (0..=28_u64).step_by(step) {
        for distance in (4..=60_u64).step_by(step) {
            for family in FAMILIES {
                let point = counts(size).with("set", "uniform").with("place", "correlated");
                let point = point.with("length_log2", length).with("distance_log2", distance);
                points.push(point.with("bits", 12_u64).with("family", family));
            }
        }
    }
    points
}

fn points_5(size: Size) -> Vec<Point> {
    let step = size.pick(14, 4, 2);
    let kinds = [
        ("uniform", "uniform"),
        ("uniform", "correlated"),
        ("uniform", "split"),
        ("normal", "uniform"),
        ("normal", "correlated"),
        ("normal", "split"),
        ("books", "real"),
        ("facebook", "real"),
    ];
    let mut points = Vec::new();
    for (set, place) in kinds {
        for length in ["point", "small", "large", "mixed"] {
            if place == "split" && length != "small" {
                continue;
            }
            for bits in (8..=22_u64).step_by(step) {
                for family in FAMILIES {
                    let point = counts(size).with("set", set).with("place", place).with("length", length);
                    points.push(point.with("bits", bits).with("family", family));
                }
            }
        }
    }
    points
}

/// The start and length distributions of the queries of a point.
fn kind(point: &Point) -> Result<(Place, Length), BenchError> {
    if let Ok(length) = point.integer("length_log2") {
        let length = if length == 0 { Length::Point } else { Length::UpTo(1 << length) };
        return Ok((Place::Correlated(1 << point.integer("distance_log2")?), length));
    }
    let place = match point.text("place")? {
        "correlated" => Place::Correlated(1024),
        "split" => Place::Split(1 << 30),
        "real" => Place::Real,
        _ => Place::Uniform,
    };
    // Dense keys have no long empty ranges.
    let large = if point.text("set")? == "facebook" { 1 << 10 } else { 1 << 20 };
    let length = match point.text("length")? {
        "point" => Length::Point,
        "small" => Length::UpTo(32),
        "large" => Length::UpTo(large),
        _ => Length::Mixed(large),
    };
    Ok((place, length))
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let kind = kind(point)?;
    let set = point.text("set")?;
    let (key_count, query_count) = (point.integer("keys")? as usize, point.integer("queries")? as usize);
    let input = context.input(&format!("{set} {kind:?} {key_count} {query_count}"), |context| {
        let samples = SAMPLE_COUNT.min(query_count);
        Ok(integer_input(set, kind, (key_count, query_count, samples), context.seed()))
    })?;
    forms::measure(point.text("family")?, Some(point.number("bits")?), &input, context)
}
