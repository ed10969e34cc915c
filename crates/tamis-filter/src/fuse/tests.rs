//! Keys are found, the rate is that of the width, budgets choose the width.

use super::FuseBuilder;
use crate::{AnyFilter, Budget, BuildError, Digester, Filter, FilterBuilder, FilterSpec, Probe, Samples};

fn builder(key_count: u64) -> FuseBuilder {
    let mut builder = FuseBuilder::new(6);
    for key in 0..key_count {
        builder.add(&(key * 3).to_be_bytes()).expect("sorted");
    }
    builder
}

fn finish(builder: &FuseBuilder, bits_per_key: f64) -> Result<AnyFilter<Vec<u8>>, BuildError> {
    let bytes = builder.finish(Budget::bits_per_key(bits_per_key)?, Samples::NONE)?;
    Ok(AnyFilter::open(bytes).expect("whole"))
}

#[test]
fn keys_are_found_at_every_size() {
    let digester = Digester::new(6);
    for key_count in (1..40).chain([100, 1000, 5000]) {
        for bits_per_key in [1000.0, 40.0, 20.0] {
            let Ok(filter) = finish(&builder(key_count), bits_per_key) else { continue };
            for key in 0..key_count {
                assert!(
                    filter.may_contain(&Probe::new(&(key * 3).to_be_bytes(), &digester)),
                    "{key_count} {key}"
                );
            }
        }
    }
}

#[test]
fn the_rate_matches_the_width() {
    let digester = Digester::new(6);
    let filter = finish(&builder(100_000), 10.0).expect("fits");
    assert_eq!(filter.predicted_fpr(), Some(1.0 / 256.0));
    let query_count = 2_600_000_u64;
    let positives = (0..query_count)
        .filter(|query| filter.may_contain(&Probe::new(&(query * 3 + 1).to_be_bytes(), &digester)));
    let measured = positives.count() as f64 / query_count as f64;
    assert!((measured * 256.0 - 1.0).abs() < 0.03, "{measured}");
}

#[test]
fn the_budget_chooses_the_width_and_refusals_name_the_minimum() {
    let builder = builder(100_000);
    for (bits_per_key, fpr_bits) in [(10.0, 8), (20.0, 16), (40.0, 32)] {
        let filter = finish(&builder, bits_per_key).expect("fits");
        assert_eq!(filter.predicted_fpr(), Some((-f64::from(fpr_bits)).exp2()));
        assert!(filter.encoded_bytes() as f64 <= bits_per_key * 100_000.0 / 8.0 + 128.0);
    }
    match finish(&builder, 8.0) {
        Err(BuildError::BudgetTooSmall { least_bits_per_key, .. }) => {
            assert!((9.0..10.0).contains(&least_bits_per_key), "{least_bits_per_key}");
            finish(&builder, least_bits_per_key + 0.001).expect("the named size suffices");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_width_makes_the_budget_optional() {
    let spec = |text: &str| text.parse::<FilterSpec>().and_then(|spec| spec.builder(6));
    let mut builder = spec("binary-fuse:bits=16").expect("possible");
    builder.add(b"a").expect("sorted");
    let filter =
        AnyFilter::open(builder.finish(Budget::BY_PARAMETERS, Samples::NONE).expect("fits")).expect("whole");
    assert_eq!(filter.predicted_fpr(), Some(1.0 / 65_536.0));
    assert!(spec("binary-fuse:bits=9").is_err());
}
