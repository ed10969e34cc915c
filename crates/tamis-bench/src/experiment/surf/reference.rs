//! Comparison with all figures of the authors' SuRF program: size, false positives, times in calibration units.

use tamis_filter::Budget;

use super::inputs::{SEED_DISTANCES, published};
use super::reference_figures::{REFERENCES, Reference};
use crate::experiment::words::{self, reference_unit_ns};
use crate::{
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

fn points(size: Size) -> Vec<Point> {
    let is_chosen = |reference: &&Reference| match size {
        Size::Small => reference.key_set == "uniform" && reference.key_count == 1_000_000,
        Size::Medium => reference.key_count <= 1_000_000,
        Size::Full => true,
    };
    let of = |reference: &'static Reference| {
        reference.queries.iter().map(move |(queries, ..)| {
            Point::new()
                .with("key_set", reference.key_set)
                .with("keys", size.pick(10_000, reference.key_count, reference.key_count))
                .with("queries", *queries)
                .with("family", reference.family)
        })
    };
    let mut points: Vec<Point> = REFERENCES.iter().filter(is_chosen).flat_map(of).collect();
    if size == Size::Small {
        points.retain(|point| point.text("queries").is_ok_and(|queries| queries.starts_with("uniform_r0")));
    }
    // Points that share inputs must be adjacent.
    points.sort_by_cached_key(|point| {
        let text = |name: &str| point.text(name).unwrap_or_default().to_owned();
        (point.integer("keys").unwrap_or(0), text("key_set"), text("queries"))
    });
    points
}

/// The reference figures of a point: the filter, its false positives, and nanoseconds per query.
fn reference_of(point: &Point) -> Result<Option<(&'static Reference, u64, f64)>, BenchError> {
    let (key_set, key_count) = (point.text("key_set")?, point.integer("keys")?);
    let (family, queries) = (point.text("family")?, point.text("queries")?);
    let of = |reference: &&Reference| {
        (reference.key_set, reference.key_count, reference.family) == (key_set, key_count, family)
    };
    Ok(REFERENCES.iter().find(of).and_then(|reference| {
        let found = reference.queries.iter().find(|(name, ..)| *name == queries);
        found.map(|(_, false_positives, query_ns)| (reference, *false_positives, *query_ns))
    }))
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
    row.fields.set("reference_false_positives", reference.map(|(_, false_positives, _)| false_positives));
    row.fields.set("size_ratio", reference.map(|(reference, ..)| size / reference.bits_per_key));
    // Compares the times in calibration units of each machine.
    let there = reference.map(|(reference, ..)| reference_unit_ns(reference.key_count));
    let ratio = |ours: f64, theirs: f64| there.map(|there| ours / (theirs / there));
    row.fields.set("query_ratio", reference.and_then(|(_, _, query_ns)| ratio(query, query_ns)));
    row.fields.set("build_ratio", reference.and_then(|(reference, ..)| ratio(build, reference.build_ns)));
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
