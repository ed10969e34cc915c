#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use std::ops::Bound;

use super::*;

fn keys() -> Arc<KeySet> {
    let mut keys = KeySet::new();
    for number in 0..5_000_u64 {
        keys.push(&(number * 1_000_003).to_be_bytes()).unwrap();
    }
    Arc::new(keys)
}

fn question<'a>(keys: &'a Arc<KeySet>, queries: &'a [Selection]) -> Question<'a> {
    Question { keys, queries, bits_per_key: 16.0, read_cost_ns: 10_000.0 }
}

#[test]
fn only_range_families_are_advised_for_ranges() {
    let keys = keys();
    let queries: Vec<_> = (0..400_u64)
        .map(|number| {
            let lower = number * 1_000_003 + 17;
            let own = |number: u64| Bound::Included(number.to_be_bytes().to_vec());
            Selection::Range(own(lower), own(lower + 63))
        })
        .collect();
    let advice = advise(&question(&keys, &queries));
    assert!(advice.iter().all(|advice| !advice.filter.starts_with("elastic")));
    let best = advice.first().unwrap();
    let measured = best.outcome.as_ref().unwrap();
    assert!(measured.fpr < 0.1, "{best:?}");
    let mut builder = Builder::with_keys(&best.filter, &keys).unwrap();
    builder.add_sample(queries[0].clone());
    builder.finish(None).unwrap();
}

#[test]
fn every_family_is_advised_for_points() {
    let keys = keys();
    let own = |number: u64| number.to_be_bytes().to_vec();
    let queries: Vec<_> = (0..200_u64)
        .map(|number| Selection::Range(Bound::Included(own(number + 5)), Bound::Included(own(number + 5))))
        .collect();
    let advice = advise(&question(&keys, &queries));
    assert_eq!(advice.len(), Family::ALL.len());
    let cost = |advice: &Advice| advice.outcome.as_ref().map_or(f64::INFINITY, |measured| measured.cost_ns);
    assert!(advice.is_sorted_by_key(cost));
}

#[test]
fn empty_queries_and_keys_are_accepted() {
    assert!(!advise(&question(&keys(), &[])).is_empty());
    assert!(!advise(&question(&Arc::default(), &[])).is_empty());
}
