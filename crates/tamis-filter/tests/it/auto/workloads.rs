//! Keys and queries without a result.

use std::sync::Arc;

use tamis_filter::{
    KeyRange, KeySet,
    auto::{Query, QueryKind},
};
use tamis_workload::{KeySet as Numbers, QuerySet, RangeMax};

/// A closed range of numbers.
pub(crate) struct OwnedQuery {
    lower: [u8; 8],
    upper: [u8; 8],
}

impl OwnedQuery {
    pub(crate) fn query(&self) -> Query<'_> {
        let kind = if self.lower == self.upper { QueryKind::Point } else { QueryKind::Range };
        Query { kind, range: KeyRange::closed(&self.lower, &self.upper), weight: 1.0 }
    }
}

/// Uniform numbers, and one kind of queries.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) keys: Arc<KeySet>,
    numbers: Vec<u64>,
    set: QuerySet,
}

impl Workload {
    pub(crate) fn queries(&self, count: usize, seed: u64) -> Vec<OwnedQuery> {
        let ranges = self.set.generate(Numbers::Uniform, &self.numbers, count, 100 + seed).unwrap();
        let query = |(lower, upper): (u64, u64)| OwnedQuery {
            lower: lower.to_be_bytes(),
            upper: upper.to_be_bytes(),
        };
        ranges.into_iter().map(query).collect()
    }
}

/// One workload for each kind of queries.
pub(crate) fn all(key_count: usize) -> Vec<Workload> {
    let numbers = Numbers::Uniform.generate(key_count, 42);
    let mut keys = KeySet::new();
    numbers.iter().for_each(|number| keys.push(&number.to_be_bytes()).unwrap());
    let keys = Arc::new(keys);
    let sets = [
        ("correlated, points", QuerySet::Correlated(RangeMax::Point)),
        ("uniform, ranges of 32", QuerySet::Uniform(RangeMax::R32)),
        ("uniform, ranges of 2^20", QuerySet::Uniform(RangeMax::R1m)),
        ("correlated, ranges of 32", QuerySet::Correlated(RangeMax::R32)),
    ];
    let workload = |(name, set)| Workload { name, keys: Arc::clone(&keys), numbers: numbers.clone(), set };
    sets.into_iter().map(workload).collect()
}
