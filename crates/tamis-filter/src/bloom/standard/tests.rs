//! The three schemes reach the rate of the formula; two of them share the query's digest.

use super::{Scheme, StandardBuilder};
use crate::{AnyFilter, Budget, Digester, Filter, FilterBuilder, Probe, Samples};

fn open(scheme: Scheme, key_count: u64, bits_per_key: f64) -> AnyFilter<Vec<u8>> {
    let mut builder = StandardBuilder::new(scheme, 5);
    for key in 0..key_count {
        builder.add(&(key * 3).to_be_bytes()).expect("sorted");
    }
    let budget = Budget::bits_per_key(bits_per_key).expect("possible");
    AnyFilter::open(builder.finish(budget, Samples::NONE).expect("fits")).expect("whole")
}

#[test]
fn the_rate_is_that_of_the_formula() {
    let digester = Digester::new(5);
    for scheme in [Scheme::Independent, Scheme::Rotated, Scheme::Double] {
        for bits_per_key in [6.0, 10.0] {
            let filter = open(scheme, 20_000, bits_per_key);
            let predicted = filter.predicted_fpr().expect("a Bloom filter knows its rate");
            let query_count = (10_000.0 / predicted) as u64;
            let positives = (0..query_count)
                .filter(|query| filter.may_contain(&Probe::new(&(query * 3 + 1).to_be_bytes(), &digester)))
                .count();
            let measured = positives as f64 / query_count as f64;
            assert!(
                (measured / predicted - 1.0).abs() < 0.04,
                "{scheme:?} {bits_per_key}: {measured} {predicted}"
            );
        }
    }
}

#[test]
fn one_digest_schemes_share_it_and_independent_digests_count() {
    let digester = Digester::new(5);
    for (scheme, digest_count) in [(Scheme::Independent, 7), (Scheme::Rotated, 1), (Scheme::Double, 1)] {
        let filter = open(scheme, 100, 10.0);
        let probe = Probe::new(&[0; 8], &digester);
        assert!(filter.may_contain(&probe));
        assert_eq!(probe.digest_count(), digest_count, "{scheme:?}");
    }
}
