//! The blocked filter: keys are found, and absent keys pass at the predicted rate.

use std::sync::Arc;

use super::BlockedBloomBuilder;
use crate::{AnyFilter, Budget, BuildError, Digester, Filter, FilterBuilder, KeySet, Probe, Samples};

fn build(key_count: u64, bits_per_key: f64) -> Vec<u8> {
    let mut builder = BlockedBloomBuilder::new(11);
    for key in 0..key_count {
        builder.add(&(key * 3).to_be_bytes()).expect("sorted");
    }
    assert_eq!(builder.key_count(), key_count);
    builder.finish(Budget::bits_per_key(bits_per_key).expect("possible"), Samples::NONE).expect("fits")
}

#[test]
fn the_rate_matches_the_formula() {
    let digester = Digester::new(11);
    for bits_per_key in [6.0, 10.0, 14.0] {
        let filter = AnyFilter::open(build(20_000, bits_per_key)).expect("whole");
        let predicted = filter.predicted_fpr().expect("a Bloom filter knows its rate");
        // Enough queries for about 10,000 false positives: one standard deviation is a hundredth.
        let query_count = (10_000.0 / predicted) as u64;
        let positives = (0..query_count)
            .filter(|query| filter.may_contain(&Probe::new(&(query * 3 + 1).to_be_bytes(), &digester)))
            .count();
        let measured = positives as f64 / query_count as f64;
        assert!(
            (measured / predicted - 1.0).abs() < 0.05,
            "{bits_per_key}: {measured} instead of {predicted}"
        );
    }
}

#[test]
fn encoding_is_deterministic_and_within_the_budget() {
    for key_count in [0, 1, 51, 52, 1000] {
        for bits_per_key in [0.1, 1.0, 9.7, 20.0] {
            let bytes = build(key_count, bits_per_key);
            assert_eq!(bytes, build(key_count, bits_per_key));
            assert!(bytes.len() as f64 <= key_count as f64 * bits_per_key / 8.0 + 128.0);
        }
    }
}

/// Integers, and strings of two lengths that average to eight bytes; more than one part of digests.
fn sets() -> [Vec<Vec<u8>>; 3] {
    let words = (0..20_000_u64).map(|key| (key * 7).to_be_bytes().to_vec()).collect();
    let mixed =
        (0..20_000_u64).map(|key| format!("{key:07}{}", if key % 2 == 0 { "" } else { "aa" }).into_bytes());
    [words, mixed.collect(), vec![b"one".to_vec()]]
}

#[test]
fn a_key_set_builds_the_same_filter_as_its_keys() {
    let budget = Budget::bits_per_key(10.0).expect("possible");
    for keys in sets() {
        // The first keys come before the set; the last of them is also its first one.
        for before in [0, 1, 3] {
            let before = before.min(keys.len());
            let mut one_by_one = BlockedBloomBuilder::new(5);
            keys.iter().for_each(|key| one_by_one.add(key).expect("sorted"));
            let mut set = KeySet::new();
            keys.iter().skip(usize::saturating_sub(before, 1)).for_each(|key| set.push(key).expect("sorted"));
            let set = Arc::new(set);
            let mut together = BlockedBloomBuilder::new(5);
            keys.iter().take(before).for_each(|key| together.add(key).expect("sorted"));
            together.add_all(&Arc::default()).expect("nothing");
            together.add_all(&set).expect("sorted");
            assert_eq!(together.key_count(), keys.len() as u64);
            assert_eq!(
                together.finish(budget, Samples::NONE).expect("fits"),
                one_by_one.finish(budget, Samples::NONE).expect("fits")
            );
            let last = keys.last().expect("some");
            let unsorted = together.add(last.get(..2).expect("longer keys"));
            assert!(matches!(unsorted, Err(BuildError::Unsorted { .. })), "{unsorted:?}");
            together.add(last).expect("a repeated key");
            assert_eq!(together.key_count(), keys.len() as u64);
            let unsorted = together.add_all(&set);
            assert!(keys.len() == 1 || matches!(unsorted, Err(BuildError::Unsorted { .. })), "{unsorted:?}");
        }
    }
}
