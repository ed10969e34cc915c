//! Absent prefixes are rejected, also ranges within few of them; digests are computed once.

#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use std::ops::Bound;

use super::prefix_set::common_prefix;
use crate::{
    AnyFilter, Budget, BuildError, Digester, Filter, FilterSpec, KeyRange, Probe, RangeProbe, Samples, Upper,
    mix64,
};

const SEED: u64 = 8;

fn open(byte_count: u32, keys: &[&[u8]]) -> AnyFilter<Vec<u8>> {
    open_set(&format!("prefix-bloom:bytes={byte_count}"), keys, 200.0)
}

fn may_contain_range(filter: &AnyFilter<Vec<u8>>, range: KeyRange<'_>) -> bool {
    filter.may_contain_range(&RangeProbe::new(range, &Digester::new(SEED)))
}

#[test]
fn scans_of_absent_prefixes_are_rejected() {
    let filter = open(2, &[b"ab1", b"ab2", b"cd1"]);
    assert!(may_contain_range(&filter, KeyRange::prefix(b"ab")));
    assert!(!may_contain_range(&filter, KeyRange::prefix(b"ac")));
    assert!(!may_contain_range(&filter, KeyRange::prefix(b"abc")) || filter.predicted_fpr() < Some(1.0));
    // Up to sixteen adjacent prefixes are probed one by one.
    assert!(!may_contain_range(&filter, KeyRange::closed(b"ac", b"ap")));
    assert!(may_contain_range(&filter, KeyRange::closed(b"ac", b"bp")));
    let successor = KeyRange { lower: Bound::Included(b"ac"), upper: Upper::Excluded(b"cd") };
    assert!(may_contain_range(&filter, successor), "too many prefixes to probe");
}

#[test]
fn short_keys_are_continued_by_zeros_in_filters_and_queries() {
    let filter = open(2, &[b"a", b"b\0c"]);
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
    let filter = open(12, &[b"a long shared prefix", b"another long prefix"]);
    assert!(may_contain_range(&filter, KeyRange::closed(b"a long shared a", b"a long shared z")));
    assert!(!may_contain_range(&filter, KeyRange::closed(b"a long shirt a", b"a long shirt z")));
    assert!(may_contain_range(&filter, KeyRange::closed(b"a", b"b")));
}

#[test]
fn tables_share_the_digest_of_a_prefix() {
    for byte_count in [2, 12] {
        let filters = [open(byte_count, &[b"ab"]), open(byte_count, &[b"ac"])];
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
    let keys: Vec<[u8; 4]> = (0..10_000_u32).map(u32::to_be_bytes).collect();
    let filter = open_set("prefix-bloom:bytes=1", &keys, 10.0);
    // The last two bytes are the length.
    assert_eq!(filter.encoded_bytes(), 64 + 64 + 2, "one line for one prefix");
}

fn open_set(spec: &str, keys: &[impl AsRef<[u8]>], bits_per_key: f64) -> AnyFilter<Vec<u8>> {
    let mut builder = spec.parse::<FilterSpec>().and_then(|spec| spec.builder(SEED)).expect("possible");
    keys.iter().for_each(|key| builder.add(key.as_ref()).expect("sorted"));
    let budget = Budget::bits_per_key(bits_per_key).expect("possible");
    AnyFilter::open(builder.finish(budget, Samples::NONE).expect("fits")).expect("whole")
}

#[test]
fn scans_of_absent_directories_are_rejected_with_all_kinds_of_bounds() {
    let keys = [&b"a/b/c"[..], b"a/b/d/e", b"a/c", b"x"];
    let filter = open_set("prefix-bloom:separator=/", &keys, 400.0);
    for (directory, next, is_there) in [
        (&b"a/b/"[..], &b"a/b0"[..], true),
        (b"a/b/d/", b"a/b/d0", true),
        (b"a/d/", b"a/d0", false),
        (b"b/", b"b0", false),
    ] {
        let ranges = [
            KeyRange::prefix(directory),
            KeyRange::new(Bound::Included(directory), Bound::Excluded(next)),
            KeyRange::new(Bound::Excluded(directory), Bound::Excluded(next)),
            KeyRange { lower: Bound::Excluded(directory), upper: Upper::Prefix(directory) },
        ];
        for range in ranges {
            assert_eq!(may_contain_range(&filter, range), is_there, "{range:?}");
        }
    }
    // Ranges that are in no directory pass, and a directory rejects all ranges inside.
    assert!(may_contain_range(&filter, KeyRange::closed(b"m", b"n")));
    assert!(may_contain_range(&filter, KeyRange::prefix(b"a/d")), "in the directory a/");
    assert!(!may_contain_range(&filter, KeyRange::closed(b"a/d/1", b"a/d/5")));
    let digester = Digester::new(SEED);
    assert!(!filter.may_contain(&Probe::new(b"a/d/file", &digester)));
    assert!(filter.may_contain(&Probe::new(b"a/unknown", &digester)), "only directories are stored");
    let filter = open_set("prefix-bloom:separator=/,points=yes", &keys, 400.0);
    assert!(!filter.may_contain(&Probe::new(b"a/unknown", &digester)));
    assert!(!may_contain_range(&filter, KeyRange::point(b"a/unknown")));
    assert!(may_contain_range(&filter, KeyRange::point(b"a/b/c")));
}

#[test]
fn composite_keys_are_rejected_by_the_longest_length_that_contains_the_range() {
    let keys: Vec<[u8; 12]> = (0..1_000_u64)
        .map(|number| {
            let mut key = [0; 12];
            key[..4].copy_from_slice(&(number as u32 / 100).to_be_bytes());
            key[4..].copy_from_slice(&(number * 10).to_be_bytes());
            key
        })
        .collect();
    let filter = open_set("prefix-bloom:bytes=4+8+12", &keys, 60.0);
    let tenant = |tenant: u32| tenant.to_be_bytes();
    assert!(may_contain_range(&filter, KeyRange::prefix(&tenant(3))));
    assert!(!may_contain_range(&filter, KeyRange::prefix(&tenant(30))));
    assert!(
        !may_contain_range(&filter, KeyRange::prefix(b"\0\0\0\x03\0\0\0\x09")),
        "another day of a tenant"
    );
    let digester = Digester::new(SEED);
    assert!(filter.may_contain(&Probe::new(&keys[77], &digester)));
    let absent = [&keys[77][..11], &[1]].concat();
    assert!(!filter.may_contain(&Probe::new(&absent, &digester)));
}

#[test]
fn the_common_prefix_of_a_range_is_the_longest_one() {
    let range = |lower, upper| KeyRange { lower, upper };
    let cases = [
        (range(Bound::Included(b"ab"), Upper::Prefix(b"ab")), &b"ab"[..]),
        (range(Bound::Included(b"abc"), Upper::Prefix(b"ab")), b"ab"),
        (range(Bound::Included(b"ab"), Upper::Excluded(b"ac")), b"ab"),
        (range(Bound::Excluded(b"a\xff\xff1"), Upper::Excluded(b"b")), b"a\xff\xff"),
        (range(Bound::Included(b"ab"), Upper::Included(b"ac")), b"a"),
        (range(Bound::Included(b"ab"), Upper::Excluded(b"ac1")), b"a"),
        (range(Bound::Unbounded, Upper::Prefix(b"ab")), b""),
        (range(Bound::Included(b"ab"), Upper::Open), b""),
    ];
    for (range, expected) in cases {
        assert_eq!(common_prefix(&range), expected, "{range:?}");
    }
}

/// Paths of a tree of skewed directories.
fn paths(count: u64, seed: u64) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = (0..count)
        .map(|number| {
            let random = |part: u64| mix64(number * 8 + part, seed);
            let depth = 2 + random(0) % 4;
            let mut path = b"/data".to_vec();
            for level in 0..depth {
                // The square prefers few names of all.
                let name = (random(1 + level) % 40 * (random(1 + level) >> 32) % 40) + level * 100;
                path.extend_from_slice(format!("/d{name:03}").as_bytes());
            }
            path.extend_from_slice(format!("/file-{:06}.txt", random(6) % 1_000_000).as_bytes());
            path
        })
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

#[test]
fn absent_directories_of_paths_are_rejected_at_fourteen_bits_per_key() {
    let keys = paths(30_000, 1);
    for spec in ["prefix-bloom:separator=/", "prefix-bloom:separator=/,bytes=5+10+15"] {
        let filter = open_set(spec, &keys, 14.0);
        assert!(filter.encoded_bytes() as f64 <= 14.0 * keys.len() as f64 / 8.0 + 128.0);
        let (mut absent, mut passed) = (0, 0);
        for path in paths(60_000, 2) {
            let end = path.iter().rposition(|byte| *byte == b'/').expect("a directory") + 1;
            let directory = &path[..end];
            let first = keys.partition_point(|key| key.as_slice() < directory);
            let is_there = keys.get(first).is_some_and(|key| key.starts_with(directory));
            let passes = may_contain_range(&filter, KeyRange::prefix(directory));
            assert!(passes || !is_there);
            absent += u32::from(!is_there);
            passed += u32::from(passes && !is_there);
        }
        let rate = f64::from(passed) / f64::from(absent);
        assert!(absent > 2_000, "{absent}");
        assert!(rate <= 0.05, "{spec}: {rate}");
        let predicted = filter.predicted_fpr().expect("predicted");
        assert!((rate - predicted).abs() < 0.2 * predicted + 0.005, "{spec}: {rate}, {predicted} predicted");
    }
}

#[test]
fn keys_of_separators_only_store_a_bounded_number_of_prefixes() {
    let keys: Vec<Vec<u8>> = (0..200).map(|length| vec![b'/'; length]).collect();
    let filter = open_set("prefix-bloom:separator=/", &keys, 10.0);
    let mut text = String::new();
    filter.design(&mut text).expect("written");
    assert!(text.starts_with("16 prefixes of up to 0x2f"), "{text}");
    let digester = Digester::new(SEED);
    assert!(keys.iter().all(|key| filter.may_contain(&Probe::new(key, &digester))));
    assert!(!may_contain_range(&filter, KeyRange::prefix(b"//a/")));
}

#[test]
fn impossible_sets_are_refused() {
    for spec in [
        "prefix-bloom:bytes=0",
        "prefix-bloom:bytes=4+",
        "prefix-bloom:bytes=70000",
        "prefix-bloom:bytes=1+2+3+4+5+6+7+8+9",
        "prefix-bloom:separator=",
        "prefix-bloom:separator=ab",
        "prefix-bloom:separator=0x100",
        "prefix-bloom:separator=a+b+c+d+e",
        "prefix-bloom:points=maybe",
    ] {
        let built = spec.parse::<FilterSpec>().and_then(|spec| spec.builder(SEED));
        assert!(matches!(built, Err(BuildError::Parameter { .. })), "{spec}");
    }
}
