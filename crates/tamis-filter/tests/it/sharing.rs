//! One digest per query for any number of filters.

use tamis_filter::{AnyFilter, Budget, Digester, Family, Filter, FilterSpec, Probe, Samples};

#[test]
fn a_lookup_in_many_filters_computes_one_digest_and_gets_the_same_answers() {
    let digester = Digester::new(4);
    // All families that hash whole keys share the digest.
    let families = [Family::BlockedBloom, Family::Elastic];
    let filters: Vec<AnyFilter<Vec<u8>>> = (0..10u64)
        .zip(families.into_iter().cycle())
        .map(|(table, family)| {
            let mut builder = FilterSpec::new(family).builder(4).unwrap();
            for key in 0..100 * (table + 1) {
                builder.add(&(key * 10 + table).to_be_bytes()).unwrap();
            }
            let bytes = builder.finish(Budget::bits_per_key(14.0).unwrap(), Samples::NONE).unwrap();
            AnyFilter::open(bytes).unwrap()
        })
        .collect();
    for key in 0..2000u64 {
        let key = key.to_be_bytes();
        let shared = Probe::new(&key, &digester);
        for filter in &filters {
            let own = Probe::new(&key, &digester);
            assert_eq!(filter.may_contain(&shared), filter.may_contain(&own));
            assert_eq!(own.digest_count(), 1);
        }
        assert_eq!(shared.digest_count(), 1);
        assert!(shared.probe_count() >= 10);
    }
}
