//! How much dearer the chosen filters would be without one of the families, or without pairs of range filters.
//!
//! The choice ranks all combinations of families; without a family the first combination that has none of its filters would be chosen.
//! Both are built and probed, as in `accuracy.rs`.

use tamis_bench::{BenchError, Context, Point, Row};
use tamis_filter::{
    Family,
    auto::{Effort, Part, Scored, rank},
};

use super::{
    accuracy::{self, BITS, Case},
    measured::{measure as measure_filters, request, sampled, text_of},
};

/// A kind of filters that is left out: its name, and whether filters are of it.
type LeftOut = (&'static str, fn(&[Part]) -> bool);

const LEFT_OUT: [LeftOut; 9] = [
    ("without_blocked_bloom", |parts| has(parts, &[Family::BlockedBloom])),
    ("without_prefix_bloom", |parts| has(parts, &[Family::Prefix])),
    ("without_surf", |parts| has(parts, &SURF)),
    ("without_grafite", |parts| has(parts, &[Family::Grafite])),
    ("without_proteus", |parts| has(parts, &[Family::Proteus])),
    ("without_1pbf", |parts| has(parts, &[Family::OnePrefixBloom])),
    ("without_2pbf", |parts| has(parts, &[Family::TwoPrefixBloom])),
    ("without_rosetta", |parts| has(parts, &[Family::Rosetta])),
    ("without_range_pairs", |parts| {
        parts.iter().filter(|part| part.spec.family().answers_ranges()).count() > 1
    }),
];

const SURF: [Family; 5] =
    [Family::Surf, Family::SurfBase, Family::SurfHash, Family::SurfReal, Family::SurfMixed];

fn has(parts: &[Part], families: &[Family]) -> bool {
    parts.iter().any(|part| families.contains(&part.spec.family()))
}

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let Case { input, sample, queries } = Case::of(point, point.text("keys")?, context)?;
    let prices = accuracy::prices(point)?;
    let ranked = rank(&input.set, &request(&sampled(&sample), prices, BITS, Effort::Background));
    let cost = |scored: &Scored| -> Result<f64, BenchError> {
        let measured = measure_filters(&input.set, &scored.parts, &sample, &queries)?;
        Ok(measured.cost_ns(&prices))
    };
    let Some(best) = ranked.first() else { return Err(BenchError::other("no filter fits")) };
    let best_ns = cost(best)?;
    let mut row = Row::new().with("chosen", text_of(&best.parts)).with("cost_ns", best_ns);
    for (name, is_left_out) in LEFT_OUT {
        let next = ranked.iter().find(|scored| !is_left_out(&scored.parts));
        let ratio = match next {
            Some(next) if next.parts == best.parts => 1.0,
            Some(next) => cost(next)? / best_ns,
            None => f64::INFINITY,
        };
        row = row.with(name, ratio);
    }
    Ok(row)
}
