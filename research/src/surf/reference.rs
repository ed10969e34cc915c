//! Comparison with all figures of the authors' SuRF program: size, false positives, times in calibration units.
//!
//! `reference_figures.tsv` has the figures of that program on the published inputs: the smaller result of two settings of its dense levels
//! (ratios 16 and 64), a million queries per set (words: 331,736 points and 226,301 ranges). The calibration unit of its machine is 160 ns
//! at 1 million keys and 540 ns at 10 million.

use tamis_filter::Budget;

use super::inputs::{SEED_DISTANCES, published};
use crate::words::{self, reference_unit_ns};
use tamis_bench::{
    Axis, BenchError, Context, Definition, Plot, Point, Row, Size,
    filter::{Calibration, Figures, Outcome, Plan},
};

/// The experiment.
pub(super) const REFERENCE: Definition = Definition {
    name: "surf-reference",
    title: "SuRF compared with the program of its authors",
    source: "",
    about: "The published inputs, and the same with the seeds 142 to 145 in a second column. A ratio below 1 means smaller or faster than the reference. Times are compared in calibration units.",
    points,
    measure,
    plots: &[Plot {
        name: "time",
        title: "Query time relative to the reference",
        x: "queries",
        y: "query_ratio",
        series: "family",
        panel: "key_set",
        y_axis: Axis::Linear,
        ..Plot::NEW
    }],
    paper: &[],
};

/// One query set and one filter of the reference program.
struct Reference {
    key_set: &'static str,
    key_count: u64,
    /// The name of the family in Tamis.
    family: &'static str,
    bits_per_key: f64,
    build_ns: f64,
    queries: &'static str,
    false_positives: u64,
    query_ns: f64,
}

fn references() -> impl Iterator<Item = Reference> {
    include_str!("reference_figures.tsv").lines().skip(1).filter_map(|line| {
        let mut cells = line.split('\t');
        Some(Reference {
            key_set: cells.next()?,
            key_count: cells.next()?.parse().ok()?,
            family: cells.next()?,
            bits_per_key: cells.next()?.parse().ok()?,
            build_ns: cells.next()?.parse().ok()?,
            queries: cells.next()?,
            false_positives: cells.next()?.parse().ok()?,
            query_ns: cells.next()?.parse().ok()?,
        })
    })
}

fn points(size: Size) -> Vec<Point> {
    let is_chosen = |reference: &Reference| match size {
        Size::Small => {
            let Reference { key_set, key_count, queries, .. } = reference;
            (*key_set, *key_count) == ("uniform", 1_000_000) && queries.starts_with("uniform_r0")
        }
        Size::Medium => reference.key_count <= 1_000_000,
        Size::Full => true,
    };
    let of = |reference: Reference| {
        Point::new()
            .with("key_set", reference.key_set)
            .with("keys", size.pick(10_000, reference.key_count, reference.key_count))
            .with("queries", reference.queries)
            .with("family", reference.family)
    };
    let mut points: Vec<Point> = references().filter(is_chosen).map(of).collect();
    // Points that share inputs must be adjacent.
    points.sort_by_cached_key(|point| {
        let text = |name: &str| point.text(name).unwrap_or_default().to_owned();
        (point.integer("keys").unwrap_or(0), text("key_set"), text("queries"))
    });
    points
}

fn reference_of(point: &Point) -> Result<Option<Reference>, BenchError> {
    let (key_set, key_count) = (point.text("key_set")?, point.integer("keys")?);
    let of = (key_set, key_count, point.text("family")?, point.text("queries")?);
    Ok(references().find(|own| (own.key_set, own.key_count, own.family, own.queries) == of))
}

fn figures(point: &Point, context: &mut Context<'_>, distance: u64) -> Result<Option<Figures>, BenchError> {
    let of = (point.text("key_set")?, point.integer("keys")?);
    let Some(input) = published(context, of, point.text("queries")?, distance)? else { return Ok(None) };
    let spec = point.text("family")?.parse()?;
    let plan = Plan { spec: &spec, seed: context.seed(), budget: Budget::BY_PARAMETERS, input: &input };
    let unit_count = if point.text("key_set")? == "words" { words::UNIT_KEY_COUNT } else { input.keys.len() };
    match plan.measure_with(context.clock(), &Calibration::new(unit_count))? {
        Outcome::Figures(figures) => Ok(Some(*figures)),
        Outcome::Refused(reason) => Err(BenchError::other(reason)),
    }
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let [public, other] = SEED_DISTANCES;
    let Some(ours) = figures(point, context, public)? else {
        return Ok(Row::new().with("refused", words::MISSING));
    };
    context.progress(0.5)?;
    // The word list has no seed.
    let second = if point.text("key_set")? == "words" { None } else { figures(point, context, other)? };
    let (size, build, query) = (ours.bits_per_key(), ours.build.units, ours.query.units);
    let fpr = ours.answers.fpr();
    let mut row = Outcome::Figures(Box::new(ours)).into_row()?;
    let reference = reference_of(point)?;
    if let Some(reference) = reference {
        // Compares the times in calibration units of each machine.
        let there = reference_unit_ns(reference.key_count);
        let ratio = |ours: f64, theirs: f64| ours / (theirs / there);
        row.fields.set("reference_false_positives", reference.false_positives);
        row.fields.set("size_ratio", size / reference.bits_per_key);
        row.fields.set("query_ratio", ratio(query, reference.query_ns));
        row.fields.set("build_ratio", ratio(build, reference.build_ns));
    }
    row.fields.set("fpr", fpr);
    row.fields.set("fpr_other_seeds", second.as_ref().map(|second| second.answers.fpr()));
    row.fields.set("query_ns_other_seeds", second.as_ref().map(|second| second.query.ns));
    if second.is_some_and(|second| second.false_negatives() > 0) {
        return Err(BenchError::other(
            "false negative with the other seeds: a range with a key was rejected",
        ));
    }
    Ok(row)
}
