//! Comparison with all figures of the authors' SuRF program: size, false positives, times in calibration units.
//!
//! `reference_figures.tsv` has the figures of that program on the published inputs: the smaller result of two settings of its dense levels
//! (ratios 16 and 64), a million queries per set (words: 331,736 points and 226,301 ranges). The calibration unit of its machine is 160 ns
//! at 1 million keys and 540 ns at 10 million.

use std::sync::Arc;

use tamis_filter::Budget;
use tamis_workload::{
    KeySet as IntegerSet, NON_EMPTY_SEED, PUBLIC_KEY_SEED, QUERY_SEED, QuerySet, non_empty_ranges,
};

use crate::words::{self, reference_unit_ns};
use tamis_bench::{
    BenchError, Context, Point, Row, Size, Value,
    filter::{Calibration, Figures, FilterInput, Outcome, Plan, Ranges},
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

/// Key set, number of keys, queries and family of the figures.
pub(crate) fn inputs(_: &str, size: Size) -> Vec<Value> {
    let is_chosen = |reference: &Reference| match size {
        Size::Small => {
            let Reference { key_set, key_count, queries, .. } = reference;
            (*key_set, *key_count) == ("uniform", 1_000_000) && queries.starts_with("uniform_r0")
        }
        Size::Medium => reference.key_count <= 1_000_000,
        Size::Full => true,
    };
    let mut inputs: Vec<_> = references()
        .filter(is_chosen)
        .map(|own| (size.pick(10_000, own.key_count, own.key_count), own.key_set, own.queries, own.family))
        .collect();
    // Points that share inputs must be adjacent.
    inputs.sort_by_key(|&(count, key_set, queries, _)| (count, key_set, queries));
    let values = |(count, key_set, queries, family): (u64, &str, &str, &str)| {
        Value::List(vec![key_set.into(), count.into(), queries.into(), family.into()])
    };
    inputs.into_iter().map(values).collect()
}

fn reference_of(point: &Point) -> Result<Option<Reference>, BenchError> {
    let (key_set, key_count) = (point.text("key_set")?, point.integer("keys")?);
    let of = (key_set, key_count, point.text("family")?, point.text("queries")?);
    Ok(references().find(|own| (own.key_set, own.key_count, own.family, own.queries) == of))
}

/// The offsets of the seeds from the public ones: none, and those of the second column.
const SEED_DISTANCES: [u64; 2] = [0, 100];
/// Number of queries per set.
const QUERY_COUNT: usize = 1_000_000;

/// An input of the reference program: keys, queries, and ranges with a key.
fn published(
    context: &mut Context<'_>,
    (key_set_name, key_count): (&str, u64),
    query_set: &str,
    distance: u64,
) -> Result<Arc<FilterInput>, BenchError> {
    let name = format!("{key_set_name} {key_count} {query_set} {distance}");
    if key_set_name == "words" {
        let (keys, queries) = words::words()?;
        return context.input(&name, |_| words::words_input(&keys, &queries, query_set));
    }
    let set: IntegerSet = key_set_name.parse().map_err(BenchError::other)?;
    let of: QuerySet = query_set.parse().map_err(BenchError::other)?;
    let build = |_: &mut Context<'_>| {
        let keys = set.generate(key_count as usize, PUBLIC_KEY_SEED + distance);
        let query_count = QUERY_COUNT.min(key_count as usize * 10);
        let queries =
            of.generate(set, &keys, query_count, QUERY_SEED + distance).map_err(BenchError::other)?;
        let present = non_empty_ranges(&keys, QUERY_COUNT / 10, NON_EMPTY_SEED + distance);
        let bytes: Vec<[u8; 8]> = keys.iter().map(|key| key.to_be_bytes()).collect();
        Ok(FilterInput {
            keys: words::key_set(bytes.iter().map(<[u8; 8]>::as_slice))?.into(),
            queries: Ranges::from_integers(&queries),
            samples: Ranges::default(),
            present: Ranges::from_integers(&present),
        })
    };
    context.input(&name, build)
}

fn figures(point: &Point, context: &mut Context<'_>, distance: u64) -> Result<Figures, BenchError> {
    let of = (point.text("key_set")?, point.integer("keys")?);
    let input = published(context, of, point.text("queries")?, distance)?;
    let spec = point.text("family")?.parse()?;
    let plan = Plan { spec: &spec, seed: context.seed(), budget: Budget::BY_PARAMETERS, input: &input };
    let unit_count = if point.text("key_set")? == "words" { words::UNIT_KEY_COUNT } else { input.keys.len() };
    match plan.measure_with(context.clock(), &Calibration::new(unit_count))? {
        Outcome::Figures(figures) => Ok(*figures),
        Outcome::Refused(reason) => Err(BenchError::other(reason)),
    }
}

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let [public, other] = SEED_DISTANCES;
    // The word list has no seed.
    let are_words = point.text("key_set")? == "words";
    if are_words && !words::are_installed() {
        return Ok(Row::new().with("refused", words::MISSING));
    }
    let ours = figures(point, context, public)?;
    context.progress(0.5)?;
    let second = if are_words { None } else { Some(figures(point, context, other)?) };
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
