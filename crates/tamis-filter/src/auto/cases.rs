//! The sampled queries that reach a table, and their position among its keys.

use super::{QueryKind, Workload};
use crate::{KeyRange, KeySet};

/// Number of queries of a sample that are used.
const QUERIES_MAX: usize = 4000;

/// A query in the reach of the keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) kind: QueryKind,
    pub(super) range: KeyRange<'a>,
    pub(super) weight: f64,
    pub(super) is_hit: bool,
}

impl Case<'_> {
    /// Whether it can be asked as a point.
    pub(super) fn is_point(&self) -> bool {
        !self.kind.is_seek() && self.range.as_point().is_some()
    }
}

/// The usable queries of a sample.
#[derive(Debug)]
pub(super) struct Cases<'a> {
    pub(super) cases: Vec<Case<'a>>,
    pub(super) empty_count: usize,
    pub(super) was_cut: bool,
}

impl<'a> Cases<'a> {
    /// Costs a binary search per query.
    pub(super) fn new(keys: &KeySet, workload: Workload<'a>) -> Self {
        let step = workload.queries.len().div_ceil(QUERIES_MAX).max(1);
        let case = |query: &super::Query<'a>| {
            let weight = f64::from(query.weight);
            if query.range.is_empty() || !(weight.is_finite() && weight > 0.0) {
                return None;
            }
            let index = keys.lower_index(&query.range);
            let next = keys.get(index);
            let is_open_seek = match query.kind {
                QueryKind::SeekForward => query.range.upper_bytes().is_none(),
                QueryKind::SeekBackward => query.range.lower_bytes().is_empty(),
                _ => false,
            };
            let is_hit = !is_open_seek && next.is_some_and(|next| query.range.contains(next));
            // An empty query before the least key or after the greatest one does not reach the filters.
            let is_in_reach = is_hit || is_open_seek || (index > 0 && next.is_some());
            is_in_reach.then_some(Case { kind: query.kind, range: query.range, weight, is_hit })
        };
        let cases: Vec<Case<'a>> = workload.queries.iter().step_by(step).filter_map(case).collect();
        let empty_count = cases.iter().filter(|case| !case.is_hit).count();
        Self { cases, empty_count, was_cut: step > 1 }
    }
}
