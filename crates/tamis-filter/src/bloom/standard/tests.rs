//! The rate matches the formula, filters share the digest of a query, other schemes are refused.

use super::StandardBuilder;
use crate::envelope::{Envelope, PARAMETER_BYTES};
use crate::{AnyFilter, Budget, DecodeError, Digester, Family, Filter, FilterBuilder, Probe, Samples};

fn build(key_count: u64, bits_per_key: f64) -> Vec<u8> {
    let mut builder = StandardBuilder::new(5);
    for key in 0..key_count {
        builder.add(&(key * 3).to_be_bytes()).expect("sorted");
    }
    let budget = Budget::bits_per_key(bits_per_key).expect("possible");
    builder.finish(budget, Samples::NONE).expect("fits")
}

#[test]
fn the_rate_matches_the_formula() {
    let digester = Digester::new(5);
    for bits_per_key in [6.0, 10.0] {
        let filter = AnyFilter::open(build(20_000, bits_per_key)).expect("whole");
        let predicted = filter.predicted_fpr().expect("a Bloom filter knows its rate");
        let query_count = (10_000.0 / predicted) as u64;
        let positives = (0..query_count)
            .filter(|query| filter.may_contain(&Probe::new(&(query * 3 + 1).to_be_bytes(), &digester)))
            .count();
        let measured = positives as f64 / query_count as f64;
        assert!((measured / predicted - 1.0).abs() < 0.04, "{bits_per_key}: {measured} {predicted}");
    }
}

#[test]
fn a_query_computes_one_digest() {
    let digester = Digester::new(5);
    let filter = AnyFilter::open(build(100, 10.0)).expect("whole");
    let probe = Probe::new(&[0; 8], &digester);
    assert!(filter.may_contain(&probe));
    assert_eq!(probe.digest_count(), 1);
}

#[test]
fn other_schemes_are_refused() {
    for scheme in [0, 1, 3] {
        let mut bytes = build(100, 10.0);
        let mut parameters = [0; PARAMETER_BYTES];
        parameters[..2].copy_from_slice(&[7, scheme]);
        Envelope::new(Family::Standard, 5, 100, parameters).seal(&mut bytes);
        let refused = AnyFilter::open(bytes).expect_err("an unknown scheme");
        assert!(
            matches!(refused, DecodeError::Field { field: "scheme", got } if got == u64::from(scheme)),
            "{refused:?}"
        );
    }
}
