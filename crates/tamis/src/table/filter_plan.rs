//! The filters of a new table: given, or chosen from its keys and the sampled queries.

use std::sync::Arc;

use tamis_filter::{
    KeySet,
    auto::{self, Choice, Effort, Part, Pause, Prices, Query, Request, Scored, Workload},
};

use super::{
    filter_choice::{ExpectedCost, FilterChoice},
    properties::TableSummary,
    shared_choice::SharedChoice,
};
use crate::{
    observe::query_sample::{SampledQuery, SharedQueries},
    options::TableFilter,
};

/// See the head of this file.
#[derive(Debug, Clone)]
pub(crate) enum FilterPlan {
    Given(GivenFilters),
    Chosen(Box<ChoiceInput>),
}

/// Given filters, and the queries for those of them that design themselves.
#[derive(Debug, Clone, Default)]
pub(crate) struct GivenFilters {
    pub(crate) filters: Vec<TableFilter>,
    pub(crate) queries: SharedQueries,
}

impl FilterPlan {
    /// Filters without a sample.
    pub(crate) fn given(filters: Vec<TableFilter>) -> Self {
        Self::Given(GivenFilters { filters, queries: SharedQueries::default() })
    }
}

/// The keys of a run, from its first to its last table.
#[derive(Debug, Clone)]
pub(crate) struct KeySpan {
    first: Arc<TableSummary>,
    last: Arc<TableSummary>,
}

impl KeySpan {
    pub(crate) const fn new(first: Arc<TableSummary>, last: Arc<TableSummary>) -> Self {
        Self { first, last }
    }

    /// Whether the keys from `first` to `last` overlap those of the run.
    pub(crate) fn overlaps(&self, (first, last): (&[u8], &[u8])) -> bool {
        self.first.smallest_key.as_slice() <= last && first <= self.last.largest_key.as_slice()
    }
}

/// The input of a choice, without the keys.
#[derive(Debug, Clone)]
pub(crate) struct ChoiceInput {
    /// Maximum bits per key of all filters of the table.
    pub(crate) bits_per_key: f32,
    /// How long the choice may take.
    pub(crate) effort: Effort,
    pub(crate) prices: Prices,
    pub(crate) queries: SharedQueries,
    /// The filters that the table has, or that its predecessors had.
    pub(crate) current: Option<Vec<TableFilter>>,
    /// The keys of the other runs that a query may ask, too.
    pub(crate) other_runs: Arc<[KeySpan]>,
    pub(crate) seed: u64,
    /// The choice that the small tables of the job share.
    pub(crate) shared: Arc<SharedChoice>,
}

/// The filters for a table.
pub(super) struct Chosen {
    pub(super) choice: FilterChoice,
    pub(super) current: ExpectedCost,
}

impl ChoiceInput {
    /// The filters of least expected cost for these keys and the queries that reach them, and the expected cost of the current
    /// filters. Costs no I/O; time is bounded by the number of keys. After a break of `pause` the result is of no use.
    pub(super) fn choose(&self, keys: &Arc<KeySet>, queries: &[Query<'_>], pause: Pause<'_>) -> Chosen {
        let current = self.current.as_ref().map(|filters| parts_of(filters));
        let span =
            (keys.get(0).unwrap_or_default(), keys.get(keys.len().saturating_sub(1)).unwrap_or_default());
        let overlapping_tables = self.overlapping_tables(span);
        let request = Request {
            workload: Workload { queries },
            prices: self.prices,
            bits_per_key_max: f64::from(self.bits_per_key),
            overlapping_tables,
            current: current.as_deref(),
            effort: self.effort,
            seed: self.seed,
            pause,
        };
        let choice = auto::choose(keys, &request);
        Chosen { current: cost_of(&choice.current), choice: choice_of(&choice, overlapping_tables) }
    }

    /// As the input, for keys that have these filters of so many bytes: other filters may take the same memory, also if the budget is less
    /// by now.
    pub(crate) fn replacing(
        self,
        current: Option<Vec<TableFilter>>,
        (filter_bytes, key_count): (u64, u64),
    ) -> Self {
        let current_bits = (filter_bytes * 8) as f32 / key_count.max(1) as f32;
        Self { current, bits_per_key: self.bits_per_key.max(current_bits), ..self }
    }

    /// The tables that a query in a table with these keys asks, this one included.
    pub(super) fn overlapping_tables(&self, span: (&[u8], &[u8])) -> u32 {
        1 + self.other_runs.iter().filter(|run| run.overlaps(span)).count() as u32
    }
}

/// The queries that reach the keys from `first` to `last`.
pub(super) fn queries_within<'a>(
    queries: &'a SharedQueries,
    (first, last): (&[u8], &[u8]),
) -> Vec<Query<'a>> {
    queries.iter().filter(|query| query.reaches(first, last)).map(SampledQuery::as_query).collect()
}

fn parts_of(filters: &[TableFilter]) -> Vec<Part> {
    let part = |filter: &TableFilter| Part {
        spec: filter.spec().clone(),
        bits_per_key: filter.bits_per_key().map(f64::from),
    };
    filters.iter().map(part).collect()
}

fn choice_of(choice: &Choice, overlapping_tables: u32) -> FilterChoice {
    FilterChoice {
        chosen: cost_of(&choice.chosen),
        runners_up: choice.runners_up.iter().map(cost_of).collect(),
        empty_query_count: choice.empty_queries as u64,
        was_cut: choice.was_cut,
        is_for_targets: choice.is_for_targets,
        overlapping_tables,
    }
}

fn cost_of(scored: &Scored) -> ExpectedCost {
    let rates = scored.false_positive_rates;
    let filter = |part: &Part| TableFilter::new(part.spec.clone(), part.bits_per_key.map(|bits| bits as f32));
    ExpectedCost {
        filters: scored.parts.iter().map(filter).collect(),
        nanoseconds: scored.cost_ns,
        rates: [rates.point, rates.range, rates.seek].map(|rate| rate.unwrap_or(f64::NAN)),
    }
}
