//! Small tables of a job share a choice as long as it suits them.

use super::*;
use crate::table::filter_choice::ExpectedCost;

fn choice(empty_query_count: u64, overlapping_tables: u32) -> FilterChoice {
    FilterChoice {
        chosen: ExpectedCost::default(),
        runners_up: Vec::new(),
        empty_query_count,
        was_cut: false,
        is_for_targets: false,
        overlapping_tables,
    }
}

#[test]
fn a_choice_serves_small_tables_up_to_a_number_of_keys() {
    let shared = SharedChoice::default();
    assert_eq!(shared.take(1_000, 1), None);
    shared.put(1_000, &choice(500, 2));
    let served = (0..1_000).take_while(|_| shared.take(1_000, 2).is_some()).count();
    assert_eq!(served, KEYS_MAX / 1_000 - 1);
    shared.put(1_000, &choice(500, 2));
    assert!(shared.take(1_000, 3).is_none(), "more false positives add up");
    assert!(shared.take(SMALL_KEYS, 1).is_none() && shared.take(1_000, 1).is_some());
}

#[test]
fn a_choice_for_the_assumed_workload_does_not_replace_one_for_sampled_queries() {
    let shared = SharedChoice::default();
    shared.put(1_000, &choice(3, 1));
    assert_eq!(shared.take(1_000, 1), Some(choice(3, 1)));
    shared.put(1_000, &choice(500, 1));
    shared.put(1_000, &choice(3, 1));
    assert_eq!(shared.take(1_000, 1), Some(choice(500, 1)));
    shared.put(SMALL_KEYS, &choice(900, 1));
    assert_eq!(shared.take(1_000, 1), Some(choice(500, 1)), "a large table shares no choice");
}
