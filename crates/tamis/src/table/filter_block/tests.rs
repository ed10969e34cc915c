//! Filters that the store chose and that can't be built.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use super::*;
use crate::table::filter_choice::ExpectedCost;

fn parsed(filters: &[&str]) -> Vec<TableFilter> {
    filters.iter().map(|filter| filter.parse().unwrap()).collect()
}

fn built(filters: &[&str]) -> BuiltFilters {
    let mut keys = KeySet::new();
    (0..2_000_u64).for_each(|number| keys.push(&(number << 40).to_be_bytes()).unwrap());
    let choice = FilterChoice {
        chosen: ExpectedCost { filters: parsed(filters), nanoseconds: 100.0, rates: [0.01; 3] },
        runners_up: Vec::new(),
        empty_query_count: 1_000,
        was_cut: false,
        is_for_targets: false,
        overlapping_tables: 1,
    };
    build_choice(&Arc::new(keys), 7, &[], choice)
}

#[test]
fn the_stored_choice_has_the_filters_that_could_be_built() {
    let stored = |built: &BuiltFilters| built.choice.as_ref().unwrap().chosen.filters.clone();
    let all = built(&["blocked-bloom@10", "grafite@12"]);
    assert_eq!(stored(&all), parsed(&["blocked-bloom@10", "grafite@12"]));
    // A SuRF filter needs more bits.
    let without_second = built(&["blocked-bloom@10", "surf@1"]);
    assert_eq!((without_second.filters.len(), without_second.refusals.len()), (1, 1));
    assert_eq!(stored(&without_second), parsed(&["blocked-bloom@10"]));
    let without_any = built(&["surf@1"]);
    assert!(without_any.filters.is_empty() && stored(&without_any).is_empty());
}
