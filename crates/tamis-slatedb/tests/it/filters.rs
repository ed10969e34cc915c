//! The policy alone, without a database: no filter of any family rejects an entry of its table.

use std::ops::Bound;
use std::sync::Arc;

use proptest::prelude::*;
use slatedb::bytes::Bytes;
use slatedb::{Filter, FilterPolicy, FilterQuery, RowEntry, ValueDeletable};
use tamis_slatedb::TamisPolicy;
use tamis_workload::mix64;

use crate::support::{KeyBounds, designs, hostile_key, hostile_range, policy};

/// An entry of a kind that depends on its number.
fn entry(key: &[u8], number: u64) -> RowEntry {
    let value = Bytes::from_static(b"value");
    let value = match number % 3 {
        0 => ValueDeletable::Value(value),
        1 => ValueDeletable::Merge(value),
        _ => ValueDeletable::Tombstone,
    };
    let versioned = |key, value, seq| RowEntry { key, value, seq, create_ts: None, expire_ts: None };
    versioned(Bytes::copy_from_slice(key), value, number)
}

/// The filter of a table of these keys (ascending), each with two versions, as it is read from the store.
pub(crate) fn built_and_read(policy: &TamisPolicy, keys: &[Vec<u8>]) -> (Arc<dyn Filter>, Vec<u8>) {
    let mut builder = policy.builder();
    for (number, key) in (0..).zip(keys) {
        builder.add_entry(&entry(key, number + 1000));
        builder.add_entry(&entry(key, number));
    }
    let filter = builder.build();
    let mut bytes = Vec::new();
    filter.encode(&mut bytes);
    assert_eq!(bytes.len(), filter.size());
    (policy.decode(&bytes), bytes)
}

pub(crate) fn may_have_key(filter: &dyn Filter, key: &[u8]) -> bool {
    filter.might_match(&FilterQuery::point(Bytes::copy_from_slice(key)))
}

fn check(design: &str, keys: &[Vec<u8>], ranges: &[KeyBounds]) {
    let (read, _) = built_and_read(&policy(design), keys);
    let clamped = read.clamp_allocated_size();
    for filter in [&read, &clamped] {
        for key in keys {
            assert!(may_have_key(filter.as_ref(), key), "{design}: {key:?}");
            for length in 0..=key.len() {
                let prefix = Bytes::copy_from_slice(key.get(..length).unwrap_or_default());
                assert!(
                    filter.might_match(&FilterQuery::prefix(prefix)),
                    "{design}: {length} bytes of {key:?}"
                );
            }
        }
        for range in ranges {
            let (lower, upper) = range.clone();
            let query = FilterQuery::range(lower.map(Bytes::from), upper.map(Bytes::from));
            let has_key = keys.iter().any(|key| std::ops::RangeBounds::contains(range, key));
            assert!(filter.might_match(&query) || !has_key, "{design}: {range:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_family_rejects_an_entry_of_its_table(
        keys in prop::collection::btree_set(hostile_key(), 1..80),
        ranges in prop::collection::vec(hostile_range(), 40),
    ) {
        let keys: Vec<Vec<u8>> = keys.into_iter().collect();
        for design in designs() {
            check(&design, &keys, &ranges);
        }
    }
}

#[test]
fn every_range_family_skips_tables_without_keys_in_a_range() {
    let keys: Vec<Vec<u8>> = (0..5_000_u64).map(|number| (number << 20).to_be_bytes().to_vec()).collect();
    let point_families = ["blocked-bloom@16", "elastic@16"];
    for design in designs() {
        let policy = policy(&design);
        let (filter, _) = built_and_read(&policy, &keys);
        let absent = (0..1_000_u64).filter(|number| {
            let lower = (number << 20) + 70_000;
            let bound = |key: u64| Bound::Included(Bytes::copy_from_slice(&key.to_be_bytes()));
            !filter.might_match(&FilterQuery::range(bound(lower), bound(lower + 100)))
        });
        let rejected = absent.count();
        // A prefix filter of two bytes holds the prefix of every such range, one of separators rejects none of them alone.
        let is_for_points = point_families.contains(&design.as_str()) || design == "prefix-bloom:bytes=2@14";
        assert_eq!(policy.supports_range_queries(), !point_families.contains(&design.as_str()), "{design}");
        assert!(is_for_points || rejected > 800, "{design} rejects {rejected} of 1,000 empty ranges");
    }
}

#[test]
fn the_filters_of_a_table_fit_its_keys_and_the_sample() {
    let policy = policy("auto@16");
    let keys: Vec<Vec<u8>> = (0..20_000_u64).map(|number| (number << 20).to_be_bytes().to_vec()).collect();
    let (filter, _) = built_and_read(&policy, &keys);
    // Ranges of up to 2^18 integers directly after a key: only a filter that knows the queries rejects them.
    let rejected = |filter: &dyn Filter| {
        let ranges = (0..2_000_u64).map(|number| {
            let lower = ((number * 7) << 20) + 1;
            let bound = |key: u64| Bound::Included(Bytes::copy_from_slice(&key.to_be_bytes()));
            FilterQuery::range(bound(lower), bound(lower + 1_000))
        });
        ranges.filter(|query| !filter.might_match(query)).count()
    };
    rejected(filter.as_ref());
    assert_eq!(policy.sample().len(), 2_000, "filters record the queries that reach them");
    let (designed, _) = built_and_read(&policy, &keys);
    let count = rejected(designed.as_ref());
    assert!(count > 1_900, "the filter of the sample rejects {count} of 2,000 empty ranges");
}

#[test]
fn filters_are_searched_again_only_for_other_queries() {
    let policy = policy("auto@16");
    let mut keys: Vec<Vec<u8>> = (0..20_000_u64).map(|number| mix64(number).to_be_bytes().to_vec()).collect();
    keys.sort();
    let searches = || policy.counters().values().searches;
    let (filter, _) = built_and_read(&policy, &keys);
    for _ in 0..5 {
        built_and_read(&policy, &keys);
    }
    assert_eq!(searches(), 1, "equal keys");
    for number in 0..2_000_u64 {
        may_have_key(filter.as_ref(), &mix64(number + 1_000_000).to_be_bytes());
    }
    for _ in 0..5 {
        built_and_read(&policy, &keys);
    }
    assert_eq!(searches(), 2, "the sample has new queries");
}

#[test]
fn a_table_is_read_if_its_filter_cannot_be_built() {
    // A SuRF trie of these keys needs more than one bit per key.
    let policy = policy("surf@1");
    let keys: Vec<Vec<u8>> = (0..5_000_u64).map(|number| (number * 977).to_be_bytes().to_vec()).collect();
    let (filter, bytes) = built_and_read(&policy, &keys);
    assert!(may_have_key(filter.as_ref(), b"anything"));
    assert_eq!(bytes.len(), 2);
    let values = policy.counters().values();
    assert_eq!((values.built, values.build_failures, values.damaged), (1, 1, 0), "{values}");
}

#[test]
fn entries_out_of_order_give_no_filter() {
    let policy = policy("blocked-bloom@10");
    let mut builder = policy.builder();
    builder.add_entry(&entry(b"b", 1));
    builder.add_entry(&entry(b"a", 2));
    let filter = builder.build();
    assert!(may_have_key(filter.as_ref(), b"a") && may_have_key(filter.as_ref(), b"z"));
    assert_eq!(policy.counters().values().build_failures, 1);
}
