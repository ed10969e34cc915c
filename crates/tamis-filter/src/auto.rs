//! Chooses the filters of a table from its keys and a sample of the queries.
//!
//! A pure function of its arguments: equal keys, sample, prices and seed give equal filters. It builds no filter; it
//! predicts what each possible filter would cost.
//!
//! ```text
//! cost = mean over the queries of (time of the probes + P(positive) * price of a read) + price of a bit * bits per key
//! ```
//!
//! - `P(positive)` is 1 for a query that holds a key, and its read is not charged: no filter can save it. For an empty
//!   query each family has a formula over the neighbouring keys (`cases.rs`).
//! - An open seek is answered by the first key behind its bound. A filter saves the read of a table only if it names a
//!   candidate ([`crate::Family::names_candidates`]); all other families pay for the read.
//! - Queries outside of the range from the least to the greatest key never ask the filters, and are ignored.
//!
//! Points and ranges are served together: the candidates are no filter, one filter, and pairs of a filter for points and
//! one for ranges, at several budgets up to the maximum. Points are put to the filter for points alone, if there is one: present
//! keys would pay for the others. All range filters of a table are asked, so their rates multiply.

mod candidates;
mod cases;
mod key_counts;
mod parts;
mod probe_times;
mod work;

use std::sync::Arc;

use crate::{Family, FilterSpec, KeyRange, KeySet};

use candidates::Problem;
use cases::{Cases, Invented};
pub use probe_times::{ProbeTime, ProbeTimes};

/// With fewer empty queries in the reach of the keys than this, a sample is ignored.
pub const SAMPLE_MIN: usize = 100;

/// A new choice replaces the current one if it costs at most this share of it.
const HYSTERESIS: f64 = 0.9;

/// Number of [`Choice::runners_up`].
const RUNNERS_UP: usize = 2;

/// The kind of a query, as the store executes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryKind {
    /// A lookup of one key.
    Point,
    /// A range with two bounds.
    Range,
    /// All keys that begin with the same bytes.
    Prefix,
    /// The first key at or after a bound. Its range reaches up to the key that the scan returned, if that is known.
    SeekForward,
    /// The last key at or before a bound.
    SeekBackward,
}

impl QueryKind {
    /// Whether it is one of the two seeks.
    pub const fn is_seek(self) -> bool {
        matches!(self, Self::SeekForward | Self::SeekBackward)
    }
}

/// A sampled query.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The kind.
    pub kind: QueryKind,
    /// The keys that it asks for; it may hold some.
    pub range: KeyRange<'a>,
    /// The number of executed queries that it represents; above 0.
    pub weight: f32,
}

/// A sample of the queries of a store.
#[derive(Debug, Clone, Copy, Default)]
pub struct Workload<'a> {
    /// Empty: no sample.
    pub queries: &'a [Query<'a>],
}

/// Prices in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// The read that a false positive causes at the level of the table.
    pub read_ns: f64,
    /// A bit per key, per query.
    pub bit_ns: f64,
    /// The probes of each family.
    pub probe: ProbeTimes,
}

impl Default for Prices {
    /// A read of 20 microseconds; a bit per key is worth one nanosecond per query.
    fn default() -> Self {
        Self { read_ns: 20_000.0, bit_ns: 1.0, probe: ProbeTimes::default() }
    }
}

/// One filter of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Family and parameters.
    pub spec: FilterSpec,
    /// The budget; `None` if the parameters determine the size.
    pub bits_per_key: Option<f64>,
}

/// The input of [`choose`], besides the keys.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The sample.
    pub workload: Workload<'a>,
    /// The prices.
    pub prices: Prices,
    /// The maximum of all filters of the table together.
    pub bits_per_key_max: f64,
    /// The filters of the tables that this one replaces. They are kept unless others are at least 10 % cheaper.
    pub current: Option<&'a [Part]>,
    /// Whether the table is in the deepest level, where static filters pay.
    pub is_deepest: bool,
    /// The seed of the invented queries.
    pub seed: u64,
}

/// Predicted rates of false positives, by kind of query; `None` for a kind that the sample does not have.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FalsePositiveRates {
    /// Of points.
    pub point: Option<f64>,
    /// Of ranges and prefixes.
    pub range: Option<f64>,
    /// Of seeks: reads that a candidate would have saved.
    pub seek: Option<f64>,
}

/// Filters and their predicted cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Scored {
    /// The filters; none if no filter is worth its memory.
    pub parts: Vec<Part>,
    /// The expected cost of a query, the price of memory included.
    pub cost_ns: f64,
    /// The size of all parts together.
    pub bits_per_key: f64,
    /// The predicted rates.
    pub false_positive_rates: FalsePositiveRates,
}

/// The result of [`choose`].
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The filters to build, with the same sample.
    pub chosen: Scored,
    /// The next best ones of other families, at most two.
    pub runners_up: Vec<Scored>,
    /// The current filters of the request (none: no filters), with what they would cost: by it a store decides whether to rebuild the
    /// filters of a table.
    pub current: Scored,
    /// Number of empty queries of the sample in the reach of the keys.
    pub empty_queries: usize,
    /// Whether the limit on the work left out queries or designs.
    pub was_cut: bool,
}

/// Chooses the filters of a table.
pub fn choose(keys: &Arc<KeySet>, request: &Request<'_>) -> Choice {
    if request.workload.queries.len() < SAMPLE_MIN {
        return choose_without_sample(keys, request, 0);
    }
    let invented = Invented::new(keys, request.workload, request.seed);
    let cases = Cases::new(keys, request.workload, &invented);
    let empty_queries = cases.sampled;
    if empty_queries < SAMPLE_MIN {
        return choose_without_sample(keys, request, empty_queries);
    }
    let problem = Problem::new(keys, &cases, request);
    let mut ranked = problem.ranked();
    let current = problem.score(request.current.unwrap_or_default());
    if request.current.is_some() {
        let fits = current.bits_per_key <= request.bits_per_key_max;
        let is_kept = ranked.first().is_none_or(|best| best.cost_ns > current.cost_ns * HYSTERESIS);
        if is_kept && fits {
            ranked.retain(|scored| scored.parts != current.parts);
            ranked.insert(0, current.clone());
        }
    }
    let mut ranked = ranked.into_iter();
    let chosen = ranked.next().unwrap_or_else(|| problem.score(&[]));
    let was_cut = cases.was_cut || problem.work.was_cut();
    Choice { chosen, runners_up: ranked.take(RUNNERS_UP).collect(), current, empty_queries, was_cut }
}

/// All combinations of families that [`choose`] would consider, each at its best sizes, the cheapest first.
pub fn rank(keys: &Arc<KeySet>, request: &Request<'_>) -> Vec<Scored> {
    with_problem(keys, request, |problem| problem.ranked())
}

/// The expected cost of each of several filters, or groups of filters. Filters of a family without a formula (Rosetta) count as
/// passing everything.
pub fn score(keys: &Arc<KeySet>, request: &Request<'_>, filters: &[Vec<Part>]) -> Vec<Scored> {
    with_problem(keys, request, |problem| filters.iter().map(|parts| problem.score(parts)).collect())
}

/// With the sample if it has enough queries without a key, or else with the assumed workload.
fn with_problem<R>(keys: &Arc<KeySet>, request: &Request<'_>, work: impl FnOnce(&Problem<'_>) -> R) -> R {
    let none = Workload::default();
    let invented = Invented::new(keys, request.workload, request.seed);
    let cases = Cases::new(keys, request.workload, &invented);
    if cases.sampled >= SAMPLE_MIN {
        return work(&Problem::new(keys, &cases, request));
    }
    let invented = Invented::new(keys, none, request.seed);
    work(&Problem::new(keys, &Cases::new(keys, none, &invented), request))
}

/// Keeps the current filters; without any, chooses those that are best for the assumed workload.
fn choose_without_sample(keys: &Arc<KeySet>, request: &Request<'_>, empty_queries: usize) -> Choice {
    let none = Workload::default();
    let invented = Invented::new(keys, none, request.seed);
    let cases = Cases::new(keys, none, &invented);
    let problem = Problem::new(keys, &cases, request);
    let current = problem.score(request.current.unwrap_or_default());
    let (chosen, runners_up) = match request.current {
        Some(_) => (current.clone(), Vec::new()),
        None => {
            let mut ranked = problem.ranked();
            // Most reads are lookups of keys, and a Bloom filter is the fastest to reject absent ones.
            let begins_with_bloom = |scored: &Scored| {
                scored.parts.first().is_some_and(|part| part.spec.family() == Family::BlockedBloom)
            };
            if let Some(index) = ranked.iter().position(begins_with_bloom) {
                let chosen = ranked.remove(index);
                ranked.insert(0, chosen);
            }
            let mut ranked = ranked.into_iter();
            let chosen = ranked.next().unwrap_or_else(|| problem.score(&[]));
            (chosen, ranked.take(RUNNERS_UP).collect())
        }
    };
    Choice { chosen, runners_up, current, empty_queries, was_cut: problem.work.was_cut() }
}

#[cfg(test)]
mod tests;
