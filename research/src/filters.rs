//! Filters in memory: rates, sizes and times, for keys and queries of `inputs.rs`.

use std::sync::Arc;

use tamis_bench::{
    BenchError, Context, Point, Row,
    filter::{Figures, FilterInput, Outcome, Plan, Ranges},
};
use tamis_filter::{Budget, FilterSpec};
use tamis_workload::non_empty_ranges;

use crate::{forms, inputs::Keys, words};

/// The input with the parameters `set` and `keys`, `kind` and `queries`, and at most `samples` other queries of the kind. The filter
/// must reject no range with an integer key.
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
        let present = match &keys {
            Keys::Integers { keys, .. } => non_empty_ranges(keys, query_count / 10, context.seed() + 3),
            _ => Vec::new(),
        };
        let keys = words::key_set(keys.encoded().iter().map(Vec::as_slice))?.into();
        Ok(FilterInput { keys, queries, samples, present: Ranges::from_integers(&present) })
    })
}

/// Measures a filter of a family with so many bits per key; with 0 its parameters determine the size. Times are compared with searches in
/// `unit_keys` integers, by default as many as there are keys.
pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    if point.text("set")? == "words" && !words::are_installed() {
        return Ok(Row::new().with("refused", words::MISSING));
    }
    let input = input(point, context)?;
    let bits = Some(point.number("bits")?).filter(|bits| *bits > 0.0);
    let unit_keys = point.integer("unit_keys").ok();
    forms::measure((point.text("family")?, bits), &input, unit_keys, context)
}

/// Bits per key of the filters whose probes are timed.
const PROBED_BITS: f64 = 16.0;
/// Integers of a range that one prefix answers mostly, and of one that needs several.
const SHORT: u64 = 16;
const LONG: u64 = 1 << 22;

/// The constants of [`tamis_filter::auto::ProbeTime`]: times of filters of a million keys.
pub(crate) fn measure_probes(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let spec: FilterSpec = point.text("filter")?.parse()?;
    let budget = if spec.family().name().starts_with("surf") {
        Budget::BY_PARAMETERS
    } else {
        Budget::bits_per_key(PROBED_BITS)?
    };
    let figures = |count: u64, context: &mut Context<'_>| -> Result<Box<Figures>, BenchError> {
        let point = point.clone().with("kind", format!("exact_{count}"));
        let input = input(&point, context)?;
        let plan = Plan { spec: &spec, seed: context.seed(), budget, input: &input };
        match plan.measure(context.clock())? {
            Outcome::Figures(figures) => Ok(figures),
            Outcome::Refused(reason) => Err(BenchError::other(reason)),
        }
    };
    let row = Row::new().with("point_ns", figures(1, context)?.query.ns);
    if !spec.family().answers_ranges() {
        return Ok(row);
    }
    let short = figures(SHORT, context)?;
    let long = figures(LONG, context)?;
    let steps = (long.probes_per_query() - short.probes_per_query()).max(1.0);
    Ok(row.with("range_ns", short.query.ns).with("further_ns", (long.query.ns - short.query.ns) / steps))
}
