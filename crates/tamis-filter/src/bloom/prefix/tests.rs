//! Absent prefixes are rejected, also ranges within few of them; digests are computed once.

use super::PrefixBuilder;
use crate::{
    AnyFilter, Budget, Digester, Filter, FilterBuilder, KeyRange, Probe, RangeProbe, Samples, Upper,
};

const SEED: u64 = 8;

fn open(bit_count: u32, keys: &[&[u8]]) -> AnyFilter<Vec<u8>> {
    let mut builder = PrefixBuilder::new(bit_count, SEED);
    keys.iter().for_each(|key| builder.add(key).expect("sorted"));
    let budget = Budget::bits_per_key(200.0).expect("possible");
    AnyFilter::open(builder.finish(budget, Samples::NONE).expect("fits")).expect("whole")
}

fn may_contain_range(filter: &AnyFilter<Vec<u8>>, range: KeyRange<'_>) -> bool {
    filter.may_contain_range(&RangeProbe::new(range, &Digester::new(SEED)))
}

#[test]
fn scans_of_absent_prefixes_are_rejected() {
    let filter = open(16, &[b"ab1", b"ab2", b"cd1"]);
    assert!(may_contain_range(&filter, KeyRange::prefix(b"ab")));
    assert!(!may_contain_range(&filter, KeyRange::prefix(b"ac")));
    assert!(!may_contain_range(&filter, KeyRange::prefix(b"abc")) || filter.predicted_fpr() < Some(1.0));
    // Up to sixteen adjacent prefixes are probed one by one.
    assert!(!may_contain_range(&filter, KeyRange::closed(b"ac", b"ap")));
    assert!(may_contain_range(&filter, KeyRange::closed(b"ac", b"bp")));
    let successor = KeyRange { lower: std::ops::Bound::Included(b"ac"), upper: Upper::Excluded(b"cd") };
    assert!(may_contain_range(&filter, successor), "too many prefixes to ask for");
}

#[test]
fn short_keys_are_continued_by_zeros_in_filters_and_queries() {
    let filter = open(16, &[b"a", b"b\0c"]);
    let digester = Digester::new(SEED);
    for key in [&b"a"[..], b"a\0", b"a\0x", b"b", b"b\0"] {
        assert!(filter.may_contain(&Probe::new(key, &digester)), "{key:?}");
    }
    assert!(!filter.may_contain(&Probe::new(b"aa", &digester)));
    assert!(
        may_contain_range(&filter, KeyRange::closed(b"", b"a"))
            && may_contain_range(&filter, KeyRange::point(b"a"))
    );
}

#[test]
fn long_prefixes_reject_ranges_within_one_prefix() {
    let filter = open(96, &[b"a long shared prefix", b"another long prefix"]);
    assert!(may_contain_range(&filter, KeyRange::closed(b"a long shared a", b"a long shared z")));
    assert!(!may_contain_range(&filter, KeyRange::closed(b"a long shirt a", b"a long shirt z")));
    assert!(may_contain_range(&filter, KeyRange::closed(b"a", b"b")));
}

#[test]
fn tables_share_the_digest_of_a_prefix() {
    for bit_count in [16, 96] {
        let filters = [open(bit_count, &[b"ab"]), open(bit_count, &[b"ac"])];
        let digester = Digester::new(SEED);
        let range = RangeProbe::new(KeyRange::prefix(b"zzzzzzzzzzzzz"), &digester);
        let point = Probe::new(b"zzzzzzzzzzzzz", &digester);
        for filter in &filters {
            filter.may_contain_range(&range);
            filter.may_contain(&point);
        }
        assert_eq!((range.digest_count(), range.probe_count()), (1, 2));
        assert_eq!((point.digest_count(), point.probe_count()), (1, 2));
    }
}

#[test]
fn few_prefixes_take_few_bits() {
    let mut builder = PrefixBuilder::new(8, SEED);
    for key in 0..10_000_u32 {
        builder.add(&key.to_be_bytes()).expect("sorted");
    }
    let bytes = builder.finish(Budget::bits_per_key(10.0).expect("possible"), Samples::NONE).expect("fits");
    assert_eq!(bytes.len(), 128, "one line for one prefix");
}
