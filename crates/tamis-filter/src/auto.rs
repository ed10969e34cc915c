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
//! - Queries outside of the range from the least to the greatest key never probe the filters, and are ignored.
//!
//! Points and ranges are served together: the candidates are no filter, one filter, and pairs of a filter for points and
//! one for ranges, at several budgets up to the maximum. Points probe only the point filter, if there is one: present
//! keys would pay for the others. All range filters of a table are probed, so their rates multiply.
//!
//! A block in memory costs little, so filters with many false positives may be the cheapest. But a read shall touch only the data that it
//! returns, also if it asks many tables: filters that keep the targets ([`meets_targets`]) are chosen, if there are such within the maximum
//! that cost little more.

mod candidates;
mod cases;
mod key_counts;
mod parts;
mod pause;
mod probe_times;
mod work;

use std::sync::Arc;

use crate::{FilterSpec, KeyRange, KeySet};

use candidates::Problem;
use cases::Cases;
pub use pause::Pause;
pub use probe_times::ProbeTime;

/// A sample with fewer empty queries in the reach of the keys is weighed against the assumed workload.
pub const SAMPLE_MIN: usize = 100;

/// A new choice replaces the current one if it costs at most this share of it.
const HYSTERESIS: f64 = 0.9;

/// The expected false positives of an empty closed range, in all tables that it asks together.
const RANGES_TARGET: f64 = 0.02;
/// Those of an open seek: blocks that it reads besides the one that it returns.
const SEEKS_TARGET: f64 = 0.1;
/// New filters shall have this share of the targets: predictions differ from what queries will see.
const TARGET_SHARE: f64 = 0.75;
/// Filters that meet the targets may cost so much more than the cheapest ones, for each table that a query asks.
const TARGET_COST_SHARE: f64 = 0.1;

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
    /// The queried range; it may contain keys.
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

/// Prices in nanoseconds. The times of probes are constants ([`ProbeTime`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prices {
    /// The read that a false positive causes at the level of the table.
    pub read_ns: f64,
    /// A bit per key, per query.
    pub bit_ns: f64,
}

impl Default for Prices {
    /// A read of 20 microseconds; a bit per key is worth one nanosecond per query.
    fn default() -> Self {
        Self { read_ns: 20_000.0, bit_ns: 1.0 }
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

/// The time that a choice may take: designs beyond it are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// About 0.1 microseconds per key, at least 6 milliseconds: a tenth of the time in which a table is written.
    #[default]
    Write,
    /// About 1 microsecond per key, at least 60 milliseconds: for filters of an existing table, next to other work.
    Background,
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
    /// The tables with overlapping keys that a query asks, this one included; at least 1. Their false positives add up.
    pub overlapping_tables: u32,
    /// The filters of the tables that this one replaces. They are kept unless others are at least 10 % cheaper.
    pub current: Option<&'a [Part]>,
    /// The time that the choice may take.
    pub effort: Effort,
    /// The seed of the synthetic queries.
    pub seed: u64,
    /// Called between the designs.
    pub pause: Pause<'a>,
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

/// Whether filters with these rates keep a read from touching data that it does not return: at most 0.02 false positives of an empty closed
/// range, and 0.1 of an open seek, in all of so many tables that it asks. A rate that is not known is no obstacle, nor are points: their rates
/// follow from the prices alone.
pub fn meets_targets(rates: &FalsePositiveRates, overlapping_tables: u32) -> bool {
    target_use(rates, overlapping_tables) <= 1.0
}

/// The false positives of a query as a share of the target.
fn target_use(rates: &FalsePositiveRates, overlapping_tables: u32) -> f64 {
    let shares = [rates.range.map(|rate| rate / RANGES_TARGET), rates.seek.map(|rate| rate / SEEKS_TARGET)];
    f64::from(overlapping_tables.max(1)) * shares.into_iter().flatten().fold(0.0, f64::max)
}

/// The cost up to which filters that meet the targets replace cheaper ones, as a multiple of the least cost.
fn target_cost_max(overlapping_tables: u32) -> f64 {
    TARGET_COST_SHARE.mul_add(f64::from(overlapping_tables.max(1)), 1.0)
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
    /// The next best ones of other families, at most two. The first one costs less if the chosen ones are chosen for the targets.
    pub runners_up: Vec<Scored>,
    /// The current filters of the request (none: no filters), with what they would cost: by it a store decides whether to rebuild the
    /// filters of a table.
    pub current: Scored,
    /// Number of empty queries of the sample in the reach of the keys.
    pub empty_queries: usize,
    /// Whether the limit on the work left out designs.
    pub was_cut: bool,
    /// Whether cheaper filters have too many false positives ([`meets_targets`]).
    pub is_for_targets: bool,
}

/// Chooses the filters of a table. With fewer than [`SAMPLE_MIN`] empty queries in the sample, these are weighed against an assumed
/// workload; without any, the current filters are kept.
pub fn choose(keys: &Arc<KeySet>, request: &Request<'_>) -> Choice {
    with_problem(keys, request, |problem| {
        let current = problem.score(request.current.unwrap_or_default());
        let empty_queries = problem.cases.sampled;
        let is_kept = request.current.is_some() && empty_queries == 0;
        let (mut ranked, is_cheapest_second) = if is_kept { Default::default() } else { problem.ranked() };
        let cheapest_ns = ranked.get(usize::from(is_cheapest_second)).map(|cheapest| cheapest.cost_ns);
        if request.current.is_some() {
            let fits = current.bits_per_key <= request.bits_per_key_max;
            let is_good = ranked.first().is_none_or(|best| {
                best.cost_ns > current.cost_ns * HYSTERESIS
                    && (!problem.meets_targets(best, 1.0) || problem.meets_targets(&current, 1.0))
            });
            if is_kept || (is_good && fits) {
                ranked.retain(|scored| scored.parts != current.parts);
                ranked.insert(0, current.clone());
            }
        }
        let mut ranked = ranked.into_iter();
        let chosen = ranked.next().unwrap_or_else(|| problem.score(&[]));
        let was_cut = problem.work.was_cut();
        // The current filters may be chosen for the targets, too.
        let is_for_targets = is_cheapest_second
            && problem.meets_targets(&chosen, 1.0)
            && cheapest_ns.is_some_and(|cheapest_ns| chosen.cost_ns > cheapest_ns);
        let runners_up = ranked.take(RUNNERS_UP).collect();
        Choice { chosen, runners_up, current, empty_queries, was_cut, is_for_targets }
    })
}

/// All combinations of families that [`choose`] would consider, each at its best sizes, the cheapest first.
pub fn rank(keys: &Arc<KeySet>, request: &Request<'_>) -> Vec<Scored> {
    with_problem(keys, request, |problem| problem.ranked().0)
}

/// The expected cost of each of several filters, or groups of filters, however long that takes.
pub fn score(keys: &Arc<KeySet>, request: &Request<'_>, filters: &[Vec<Part>]) -> Vec<Scored> {
    Cases::of_sample(keys, request, |cases| {
        let problem = Problem::unlimited(keys, cases, request);
        filters.iter().map(|parts| problem.score(parts)).collect()
    })
}

fn with_problem<R>(keys: &Arc<KeySet>, request: &Request<'_>, work: impl FnOnce(&Problem<'_>) -> R) -> R {
    Cases::of_sample(keys, request, |cases| work(&Problem::new(keys, cases, request)))
}

#[cfg(test)]
mod tests;
