//! A sample of future queries reduces the false positives of similar queries, at the same size.

use super::{SEED, closed, near_keys, next, open, positives, sorted};
use crate::surf::{SuffixBits, SurfBuilder};
use crate::{Budget, Family, Filter, FilterBuilder, Samples};

const QUERY_COUNT: usize = 4000;

#[test]
fn a_sample_reduces_false_positives_of_similar_queries() {
    let mut state = 13;
    let keys = sorted((0..3000).map(|_| next(&mut state).to_be_bytes().to_vec()).collect());
    let mut builder = SurfBuilder::new(Family::Surf, None, SEED);
    keys.iter().for_each(|key| builder.add(key).unwrap());
    for is_point in [false, true] {
        let [sample, others] = [1, 2].map(|seed| near_keys(&keys, is_point, QUERY_COUNT, seed * 1_000_003));
        let (sample, others) = (closed(&sample), closed(&others));
        for bits_per_key in [16.0, 18.0, 20.0] {
            let budget = Budget::bits_per_key(bits_per_key).unwrap();
            let filter = |samples| open(builder.finish(budget, samples).unwrap());
            let with = filter(Samples { queries: &sample });
            let without = filter(Samples::NONE);
            assert_eq!(with.encoded_bytes(), without.encoded_bytes(), "the same bytes");
            let SuffixBits { hash, real } = with.widths;
            let (fewer, more) = (positives(&with, &others), positives(&without, &others));
            assert!(
                fewer * 3 < more * 2,
                "{fewer} of {more} at {bits_per_key} bits a key, points {is_point}: {hash} digest and {real} key bits"
            );
        }
    }
}
