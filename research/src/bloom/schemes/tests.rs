//! No scheme has false negatives, and all have the rate of the formula.

use tamis_filter::KeySet;

use super::*;

#[test]
fn schemes_have_no_false_negatives_and_the_rate_of_the_formula() {
    let mut keys = KeySet::new();
    (0..20_000_u64).for_each(|key| keys.push(&(key * 3).to_be_bytes()).expect("sorted"));
    for scheme in Scheme::ALL {
        assert_eq!(Scheme::from_name(scheme.name()), Some(scheme));
        let filter = SchemeFilter::build(scheme, &keys, 5);
        assert!(keys.iter().all(|key| filter.may_contain(key)), "{scheme:?}");
        let query_count = 1_000_000_u64;
        let is_positive = |query: &u64| filter.may_contain(&(query * 3 + 1).to_be_bytes());
        let measured = (0..query_count).filter(is_positive).count() as f64 / query_count as f64;
        let predicted = standard_fpr(BITS_PER_KEY, PROBE_COUNT);
        assert!((measured / predicted - 1.0).abs() < 0.06, "{scheme:?}: {measured} {predicted}");
    }
}
