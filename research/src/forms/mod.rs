//! Filters that only the papers compare: Bloom filters over one array with several ways to derive the bits of a key, and binary fuse
//! filters (the store has blocked Bloom filters for points); and the measurement of these and of the families of the store.

mod bloom;
mod fuse;
#[cfg(test)]
mod tests;

use std::hint::black_box;

use tamis_bench::{
    BenchError, Context, Row,
    filter::{Calibration, FilterInput, Plan, answers, median_of_passes},
};
use tamis_filter::{Budget, Digester, Filter, KeySet, Probe};

use bloom::Bloom;
pub(crate) use bloom::Scheme;
use fuse::Fuse;

/// The research form with this name, over the keys; `None` if the name is that of a family of the store.
fn build(
    name: &str,
    bits_per_key: f64,
    keys: &KeySet,
    seed: u64,
) -> Result<Option<Box<dyn Filter>>, BenchError> {
    if let Some(scheme) = Scheme::from_name(name) {
        return Ok(Some(Box::new(Bloom::build(scheme, bits_per_key, keys, seed))));
    }
    if name == Fuse::NAME {
        return Ok(Some(Box::new(Fuse::build(keys, seed)?)));
    }
    Ok(None)
}

/// Measures a filter with at most so many bits per key; without a budget its parameters determine the size. Times are compared with
/// searches in `unit_keys` integers, by default as many as there are keys.
pub(crate) fn measure(
    (family, bits_per_key): (&str, Option<f64>),
    input: &FilterInput,
    unit_keys: Option<u64>,
    context: &Context<'_>,
) -> Result<Row, BenchError> {
    if let Some(filter) = build(family, bits_per_key.unwrap_or_default(), &input.keys, context.seed())? {
        return measure_form(family, &*filter, input, context);
    }
    let spec = family.parse()?;
    let budget = bits_per_key.map_or(Ok(Budget::BY_PARAMETERS), Budget::bits_per_key)?;
    let plan = Plan { spec: &spec, seed: context.seed(), budget, input };
    let calibration = Calibration::new(unit_keys.map_or(input.keys.len(), |count| count as usize));
    plan.measure_with(context.clock(), &calibration)?.into_row()
}

/// Rate and query time of a research form, as columns of the rows of other filters. Queries are points.
fn measure_form(
    name: &str,
    filter: &dyn Filter,
    input: &FilterInput,
    context: &Context<'_>,
) -> Result<Row, BenchError> {
    let digester = Digester::new(context.seed());
    if !input.keys.iter().all(|key| filter.may_contain(&Probe::new(key, &digester))) {
        return Err(BenchError::Other(format!("{name} rejected a stored key")));
    }
    let answers = answers(filter, &digester, &input.keys, &input.queries);
    let query_ns = median_of_passes(context.clock(), input.queries.len(), || {
        let keys = input.queries.iter().map(|(key, _)| key);
        black_box(keys.filter(|key| filter.may_contain(&Probe::new(key, &digester))).count());
    });
    let row = Row::new()
        .with("fpr", answers.fpr())
        .with("predicted_fpr", filter.predicted_fpr())
        .with("bits_per_key", filter.encoded_bytes() as f64 * 8.0 / (input.keys.len() as f64).max(1.0))
        .with("queries", answers.query_count)
        .with("false_positives", answers.false_positives)
        .with("query_ns", query_ns);
    Ok(row.with_digest(answers.digest))
}
