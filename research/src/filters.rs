//! Filters in memory: rates, sizes and times, for keys and queries of `inputs.rs`.

use std::sync::Arc;

use tamis_bench::{
    BenchError, Context, Point, Row,
    filter::{FilterInput, Ranges},
};

use crate::{forms, inputs::Keys, words};

/// The input with the parameters `set` and `keys`, `kind` and `queries`, and at most `samples` other queries of the kind.
pub(crate) fn input(point: &Point, context: &mut Context<'_>) -> Result<Arc<FilterInput>, BenchError> {
    let (set, kind) = (point.text("set")?, point.text("kind")?);
    let (key_count, query_count) = (point.integer("keys")? as usize, point.integer("queries")? as usize);
    let sample_count = (point.integer("samples")? as usize).min(query_count);
    let name = format!("filters {set} {key_count} {kind} {query_count} {sample_count}");
    context.input(&name, |context| {
        if set == "words" {
            return words::sampled_input(key_count, kind);
        }
        let keys = Keys::generate(set, key_count, context.seed())?;
        let ranges = |count: usize, seed: u64| -> Result<Ranges, BenchError> {
            let mut ranges = Ranges::default();
            let queries = keys.queries(kind, count, seed)?;
            queries.iter().for_each(|query| ranges.push(&query.lower, &query.upper));
            Ok(ranges)
        };
        let queries = ranges(query_count, context.seed() + 1)?;
        let samples = ranges(sample_count, context.seed() + 2)?;
        let keys = words::key_set(keys.encoded().iter().map(Vec::as_slice))?.into();
        Ok(FilterInput { keys, queries, samples, present: Ranges::default() })
    })
}

/// Measures a filter of a family with so many bits per key.
pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    if point.text("set")? == "words" && !words::are_installed() {
        return Ok(Row::new().with("refused", words::MISSING));
    }
    let input = input(point, context)?;
    forms::measure(point.text("family")?, Some(point.number("bits")?), &input, context)
}
