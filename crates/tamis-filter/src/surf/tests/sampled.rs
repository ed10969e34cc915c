//! A sample of the queries to come makes for fewer false positives among others of their kind, in the same bytes.

use super::{SEED, next, open, sorted};
use crate::surf::{SuffixBits, SurfBuilder, SurfFilter};
use crate::{Budget, Digester, Family, Filter, FilterBuilder, KeyRange, RangeProbe, Samples};

const QUERY_COUNT: usize = 4000;

/// Queries near keys that hold none: ranges of a thousand values, or points.
fn queries(keys: &[u64], is_point: bool, seed: u64) -> Vec<[[u8; 8]; 2]> {
    let mut state = seed;
    let mut queries = Vec::new();
    while queries.len() < QUERY_COUNT {
        let key = keys[next(&mut state) as usize % keys.len()];
        let lower = key.saturating_add(1 + next(&mut state) % (1 << 44));
        let upper = lower.saturating_add(if is_point { 0 } else { 1000 });
        let place = keys.partition_point(|key| *key < lower);
        if keys.get(place).is_none_or(|key| *key > upper) {
            queries.push([lower, upper].map(u64::to_be_bytes));
        }
    }
    queries
}

fn positives(filter: &SurfFilter<Vec<u8>>, queries: &[KeyRange<'_>]) -> usize {
    let digester = Digester::new(SEED);
    queries.iter().filter(|range| filter.may_contain_range(&RangeProbe::new(**range, &digester))).count()
}

#[test]
fn a_sample_makes_for_fewer_false_positives_among_other_queries() {
    let mut state = 13;
    let keys = sorted((0..3000).map(|_| next(&mut state).to_be_bytes().to_vec()).collect());
    let mut builder = SurfBuilder::new(Family::Surf, None, SEED);
    keys.iter().for_each(|key| builder.add(key).unwrap());
    let integers: Vec<u64> =
        keys.iter().map(|key| u64::from_be_bytes(key.as_slice().try_into().unwrap())).collect();
    for is_point in [false, true] {
        let [sample, others] = [1, 2].map(|seed| queries(&integers, is_point, seed * 1_000_003));
        let sample: Vec<KeyRange<'_>> =
            sample.iter().map(|[lower, upper]| KeyRange::closed(lower, upper)).collect();
        let others: Vec<KeyRange<'_>> =
            others.iter().map(|[lower, upper]| KeyRange::closed(lower, upper)).collect();
        for bits_per_key in [16.0, 18.0, 20.0] {
            let budget = Budget::bits_per_key(bits_per_key).unwrap();
            let filter = |samples| open(builder.finish(budget, samples).unwrap());
            let with = filter(Samples { queries: &sample });
            let without = filter(Samples::NONE);
            assert_eq!(with.encoded_bytes(), without.encoded_bytes(), "the same bytes");
            let SuffixBits { hash, real } = with.suffix_bits();
            let (fewer, more) = (positives(&with, &others), positives(&without, &others));
            assert!(
                fewer * 3 < more * 2,
                "{fewer} of {more} at {bits_per_key} bits a key, points {is_point}: {hash} digest and {real} key bits"
            );
        }
    }
}
