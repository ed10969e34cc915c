//! Advice on filters: builds the families that support the queries, measures them, and sorts them by expected cost.
//!
//! Every second query is in the sample for families that choose their design; the rates are measured with the other queries, so
//! that overfitting to the sample gives no advantage. Queries that contain a key are excluded from the rate.

use std::sync::Arc;

use tamis::{Clock, SystemClock};
use tamis_filter::{Family, KeySet};

use crate::{
    Failure,
    filter::{Builder, OpenFilter, key_range},
    scan::Selection,
};

/// Keys, queries and costs.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The keys of a table, sorted.
    pub keys: &'a Arc<KeySet>,
    /// Typical queries of the program.
    pub queries: &'a [Selection],
    /// Size budget of each filter.
    pub bits_per_key: f64,
    /// Cost of a false positive in nanoseconds: a block read and the seek in it.
    pub read_cost_ns: f64,
}

/// The result of one family.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The specification of this filter.
    pub filter: String,
    /// The measurements, or the reason why the filter cannot be built.
    pub outcome: Result<Measured, String>,
}

/// The measured properties of a filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Share of false positives among the queries without keys; 0 if there are none.
    pub fpr: f64,
    /// Bits of the filter per key.
    pub bits_per_key: f64,
    /// Mean time of a query.
    pub query_ns: f64,
    /// Time of the build.
    pub build_ms: f64,
    /// `query_ns + fpr * read_cost_ns`.
    pub cost_ns: f64,
    /// The design that the builder chose.
    pub design: String,
}

/// Returns the families for these queries, cheapest first; families that cannot be built are last, with the reason.
pub fn advise(question: &Question<'_>) -> Vec<Advice> {
    let has_ranges = question.queries.iter().any(|query| key_range(query).as_point().is_none());
    let families = Family::ALL.into_iter().filter(|family| !has_ranges || family.answers_ranges());
    let mut advice: Vec<Advice> = families
        .map(|family| {
            let filter = match family {
                Family::Prefix => format!(
                    "{}:bytes={}@{}",
                    family.name(),
                    prefix_bytes(question.keys),
                    question.bits_per_key
                ),
                family if fixes_its_size(family) => family.name().to_owned(),
                family => format!("{}@{}", family.name(), question.bits_per_key),
            };
            let outcome = measure(&filter, question).map_err(|failure| failure.message);
            Advice { filter, outcome }
        })
        .collect();
    let cost = |advice: &Advice| advice.outcome.as_ref().map_or(f64::INFINITY, |measured| measured.cost_ns);
    advice.sort_by(|left, right| cost(left).total_cmp(&cost(right)));
    advice
}

const fn fixes_its_size(family: Family) -> bool {
    matches!(family, Family::SurfBase)
}

/// Half of the mean key length: a guess for families that do not choose a prefix length.
fn prefix_bytes(keys: &KeySet) -> usize {
    let total: usize = keys.iter().map(<[u8]>::len).sum();
    (total / (2 * keys.len().max(1))).max(1)
}

fn measure(filter: &str, question: &Question<'_>) -> Result<Measured, Failure> {
    let clock = SystemClock::default();
    let mut builder = Builder::with_keys(filter, question.keys)?;
    let (shown, asked): (Vec<_>, Vec<_>) =
        question.queries.iter().enumerate().partition(|(index, _)| index % 2 == 0);
    for (_, query) in &shown {
        builder.add_sample(Selection::clone(query));
    }
    let asked = if asked.is_empty() { shown } else { asked };
    let start = clock.now();
    let bytes = builder.finish(None)?;
    let build_ms = (clock.now() - start).as_secs_f64() * 1e3;
    let open = OpenFilter::new(bytes)?;
    let ranges: Vec<_> = asked.iter().map(|(_, query)| key_range(query)).collect();
    let start = clock.now();
    let answers: Vec<bool> = ranges.iter().map(|range| open.may_contain_range(*range)).collect();
    let query_ns = (clock.now() - start).as_secs_f64() * 1e9 / ranges.len().max(1) as f64;
    let empty = ranges.iter().zip(answers).filter(|(range, _)| !question.keys.has_key_in(range));
    let (positives, empty_count) = empty
        .fold((0_u64, 0_u64), |(positives, count), (_, answer)| (positives + u64::from(answer), count + 1));
    let fpr = positives as f64 / empty_count.max(1) as f64;
    Ok(Measured {
        fpr,
        bits_per_key: open.encoded_bytes() as f64 * 8.0 / question.keys.len().max(1) as f64,
        query_ns,
        build_ms,
        cost_ns: query_ns + fpr * question.read_cost_ns,
        design: open.design(),
    })
}

#[cfg(test)]
mod tests;
