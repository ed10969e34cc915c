//! Small universes are answered without false negatives at block borders; rates meet the guarantee on every kind of query.

#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use std::collections::BTreeSet;
use std::ops::Bound;

use super::GrafiteBuilder;
use super::hash::{self, BlockHash};
use crate::{
    AnyFilter, Budget, BuildError, Digester, Filter, FilterBuilder, KeyRange, Probe, RangeProbe, Samples,
    Upper, mix64,
};

const SEED: u64 = 31;

fn build(keys: &[Vec<u8>], bits_per_key: f64, seed: u64) -> Result<AnyFilter<Vec<u8>>, BuildError> {
    let mut builder = GrafiteBuilder::new(seed);
    keys.iter().for_each(|key| builder.add(key).expect("sorted"));
    let bytes = builder.finish(Budget::bits_per_key(bits_per_key)?, Samples::NONE)?;
    Ok(AnyFilter::open(bytes).expect("whole"))
}

fn integers(numbers: impl IntoIterator<Item = u64>) -> Vec<Vec<u8>> {
    let sorted: BTreeSet<u64> = numbers.into_iter().collect();
    sorted.into_iter().map(|number| number.to_be_bytes().to_vec()).collect()
}

fn random(count: u64) -> Vec<Vec<u8>> {
    integers((0..count).map(|number| mix64(number, 7)))
}

fn has(filter: &AnyFilter<Vec<u8>>, lower: u64, upper: u64) -> bool {
    let (lower, upper) = (lower.to_be_bytes(), upper.to_be_bytes());
    filter.may_contain_range(&RangeProbe::new(KeyRange::closed(&lower, &upper), &Digester::new(SEED)))
}

#[test]
fn ranges_with_a_key_pass_at_all_block_borders() {
    // The universe of 300,000 numbers has dozens of blocks.
    for seed in 0..20 {
        let keys: BTreeSet<u64> = (0..40).map(|number| mix64(number, seed) % 300_000).collect();
        let filter = build(&integers(keys.iter().copied()), 6.0, SEED + seed).expect("fits");
        let mut text = String::new();
        filter.design(&mut text).expect("written");
        assert!(text.contains("hashed"), "{text}");
        for lower in (0..300_000).step_by(331) {
            for upper in (lower..300_000).step_by(457).take(40) {
                let is_there = keys.range(lower..=upper).next().is_some();
                assert!(has(&filter, lower, upper) || !is_there, "{seed}: {lower} to {upper} of {keys:?}");
            }
        }
    }
}

#[test]
fn far_apart_keys_pass_at_both_sides_of_each_block_border() {
    let keys = random(2_000);
    let filter = build(&keys, 10.0, SEED).expect("fits");
    let mut text = String::new();
    filter.design(&mut text).expect("written");
    let modulus: u64 = text.rsplit(' ').next().expect("a number").parse().expect("hashed modulo a number");
    // Ranges that begin or end at a border near each key, and ranges that cross it.
    for key in &keys {
        let key = u64::from_be_bytes(key.as_slice().try_into().expect("8 bytes"));
        let (start, end) =
            (key / modulus * modulus, (key / modulus).saturating_add(1).saturating_mul(modulus));
        for length in [0, 1, 7, modulus / 2, modulus - 1] {
            for (lower, upper) in [
                (key.saturating_sub(length), key),
                (key, key.saturating_add(length)),
                (start.saturating_sub(length), key),
                (key, end.saturating_add(length)),
                (key, end - 1),
                (start, key),
            ] {
                assert!(has(&filter, lower, upper), "{lower} to {upper}");
            }
        }
    }
}

/// The share of ranges without a key that pass.
fn measured(filter: &AnyFilter<Vec<u8>>, keys: &[Vec<u8>], ranges: impl Iterator<Item = (u64, u64)>) -> f64 {
    let keys: BTreeSet<u64> =
        keys.iter().map(|key| u64::from_be_bytes(key.as_slice().try_into().expect("8 bytes"))).collect();
    let (mut empty, mut passed) = (0_u32, 0_u32);
    for (lower, upper) in ranges {
        if upper < lower || keys.range(lower..=upper).next().is_some() {
            continue;
        }
        empty += 1;
        passed += u32::from(has(filter, lower, upper));
    }
    assert!(empty > 10_000, "{empty} empty ranges");
    f64::from(passed) / f64::from(empty)
}

#[test]
fn rates_meet_the_guarantee_on_all_queries() {
    let scattered = random(40_000);
    let dense = integers((0..40_000).map(|number| (1 << 40) + number * 3 + mix64(number, 3) % 2));
    let clustered = integers((0..40_000).map(|number| (mix64(number / 20, 5) >> 8) + number % 20 * 1_000));
    for (name, keys) in [("scattered", &scattered), ("dense", &dense), ("clustered", &clustered)] {
        for bits_per_key in [8.0, 10.0, 12.5, 16.0] {
            let filter = build(keys, bits_per_key, SEED).expect("fits");
            for length in [1_u64, 8, 64] {
                let bound = length as f64 / f64::exp2(bits_per_key - 2.0);
                if bound > 0.3 {
                    continue;
                }
                let key = |query: u64| {
                    let index = mix64(query, 9) % keys.len() as u64;
                    u64::from_be_bytes(keys[index as usize].as_slice().try_into().expect("8 bytes"))
                };
                let uniform =
                    (0..30_000).map(|query| mix64(query, 1)).map(|lower| (lower, lower + length - 1));
                let right = (0..30_000).map(|query| key(query) + 1).map(|lower| (lower, lower + length - 1));
                let left =
                    (0..30_000).map(|query| key(query) - length).map(|lower| (lower, lower + length - 1));
                // The same positions in other blocks, as someone who knows the keys would choose them.
                let hostile = (0..30_000)
                    .map(|query| key(query).wrapping_add((1 + query % 5) << 33))
                    .map(|lower| (lower, lower.saturating_add(length - 1)));
                let check = |kind: &str, rate: f64| {
                    let deviation = 4.0 * (bound / 10_000.0).sqrt();
                    assert!(
                        rate <= 1.1 * bound + deviation,
                        "{name} {kind}, {bits_per_key} bits, length {length}: {rate} above {bound}"
                    );
                };
                check("uniform", measured(&filter, keys, uniform));
                check("hostile", measured(&filter, keys, hostile));
                if name != "dense" || length == 1 {
                    check("after keys", measured(&filter, keys, right));
                    check("before keys", measured(&filter, keys, left));
                }
            }
        }
    }
}

#[test]
fn predicted_rates_of_points_are_measured() {
    for bits_per_key in [6.0, 10.0, 12.5] {
        let keys = random(50_000);
        let filter = build(&keys, bits_per_key, SEED).expect("fits");
        let predicted = filter.predicted_fpr().expect("predicted");
        assert!(predicted <= 1.1 * f64::exp2(2.0 - bits_per_key), "{bits_per_key} bits: {predicted}");
        let rate = measured(&filter, &keys, (0..400_000).map(|query| (mix64(query, 2), mix64(query, 2))));
        assert!((rate / predicted - 1.0).abs() < 0.1, "{bits_per_key} bits: {rate}, {predicted} predicted");
    }
}

#[test]
fn dense_keys_are_stored_exactly() {
    let keys = integers((0..10_000).map(|number| (7 << 40) + number * 5));
    let filter = build(&keys, 8.0, SEED).expect("fits");
    assert_eq!(filter.predicted_fpr(), Some(0.0));
    assert!(filter.encoded_bytes() < 10_000 * 6 / 8);
    let has_after = |start: u64, end: u64| has(&filter, (7 << 40) + start, (7 << 40) + end);
    for place in 0..50_000 {
        assert_eq!(has_after(place, place), place % 5 == 0, "{place}");
        assert_eq!(has_after(place, place + 2), (place + 2) % 5 < 3 && place < 49_996, "{place}");
    }
    assert!(!has(&filter, 0, (7 << 40) - 1) && !has(&filter, 8 << 40, u64::MAX));
}

#[test]
fn strings_are_rejected_by_shared_prefix_window_and_length() {
    let keys: Vec<Vec<u8>> =
        ["user:100", "user:200", "user:201", "user:999"].iter().map(|key| key.as_bytes().to_vec()).collect();
    let filter = build(&keys, 64.0, SEED).expect("fits");
    let digester = Digester::new(SEED);
    for absent in ["user", "user:", "user:1", "user:1000", "user:199", "usex:100", "a", "z"] {
        assert!(!filter.may_contain(&Probe::new(absent.as_bytes(), &digester)), "{absent}");
    }
    let has = |lower: Bound<&[u8]>, upper: Upper<'_>| {
        filter.may_contain_range(&RangeProbe::new(KeyRange { lower, upper }, &digester))
    };
    assert!(!has(Bound::Excluded(b"user:100"), Upper::Excluded(b"user:200")));
    assert!(!has(Bound::Included(b"user:100\0"), Upper::Included(b"user:2")));
    assert!(has(Bound::Included(b"user:100\0"), Upper::Prefix(b"user:2")));
    assert!(!has(Bound::Unbounded, Upper::Included(b"user:")) && has(Bound::Unbounded, Upper::Prefix(b"us")));
    assert!(
        !has(Bound::Excluded(b"user:999"), Upper::Open) && has(Bound::Included(b"user:999"), Upper::Open)
    );
    assert!(!has(Bound::Included(b"user:3"), Upper::Prefix(b"user:3")));
}

#[test]
fn keys_that_windows_do_not_distinguish_are_predicted() {
    let path = |number: u64| format!("/data/users/documents-{:03}/file", number).into_bytes();
    let mut keys: Vec<Vec<u8>> = (0..900).flat_map(|number| [b"/a/b".to_vec(), path(number)]).collect();
    keys.sort();
    keys.dedup();
    let filter = build(&keys, 20.0, SEED).expect("fits");
    assert!(filter.predicted_fpr().is_some_and(|rate| rate > 0.99), "all paths share their first bytes");
    assert!(filter.may_contain(&Probe::new(&path(1_000), &Digester::new(SEED))));
}

fn design(filter: &AnyFilter<Vec<u8>>) -> String {
    let mut text = String::new();
    filter.design(&mut text).expect("written");
    text
}

fn texts(numbers: &[u64], form: impl Fn(u64) -> String) -> Vec<Vec<u8>> {
    let sorted: BTreeSet<Vec<u8>> = numbers.iter().map(|number| form(*number).into_bytes()).collect();
    sorted.into_iter().collect()
}

#[test]
fn ranges_next_to_texts_of_integers_meet_the_guarantee() {
    type Form = fn(u64) -> String;
    let forms: [(&str, u32, Form); 3] = [
        ("16 bytes of 16 values after 0 shared bytes", 0, |number| format!("{number:016x}")),
        ("17 bytes of 16 values after 5 shared bytes", 0, |number| {
            format!("user:{:08X}-{:08X}", number >> 32, number as u32)
        }),
        ("17 bytes of 10 values after 5 shared bytes", 8, |number| format!("id/{number:019}")),
    ];
    for (expected, shift, form) in forms {
        let numbers: BTreeSet<u64> = (0..20_000).map(|number| mix64(number, 7) >> shift).collect();
        let list: Vec<u64> = numbers.iter().copied().collect();
        let filter = build(&texts(&list, form), 16.0, SEED).expect("fits");
        assert!(design(&filter).contains(&format!(" windows of {expected}, hashed")), "{}", design(&filter));
        let digester = Digester::new(SEED);
        let (mut empty, mut passed) = (0, 0);
        for number in &list {
            let is_found = filter.may_contain(&Probe::new(form(*number).as_bytes(), &digester));
            assert!(is_found, "{number}");
            for (lower, upper) in
                [(number + 1, number + 32), (number.saturating_sub(32), number.saturating_sub(1))]
            {
                let (lower_text, upper_text) = (form(lower), form(upper));
                if lower_text > upper_text {
                    continue;
                }
                let range = KeyRange::closed(lower_text.as_bytes(), upper_text.as_bytes());
                let passes = filter.may_contain_range(&RangeProbe::new(range, &digester));
                if numbers.range(lower..=upper).next().is_some() {
                    assert!(passes, "{range:?}");
                } else {
                    empty += 1;
                    passed += u32::from(passes);
                }
            }
        }
        assert!(empty > 10_000, "{empty} empty ranges");
        let (rate, bound) = (f64::from(passed) / f64::from(empty), 32.0 / f64::exp2(14.0));
        assert!(rate <= 1.6 * bound, "{expected}: {rate} above {bound}");
    }
}

#[test]
fn dense_decimal_keys_are_stored_exactly() {
    let numbers: Vec<u64> = (0..10_000).map(|number| number * 3).collect();
    let form = |number: u64| format!("invoice {number:07}.pdf");
    let filter = build(&texts(&numbers, form), 6.0, SEED).expect("fits");
    assert_eq!(filter.predicted_fpr(), Some(0.0));
    assert!(
        design(&filter).contains("exact windows of 9 bytes of 10 values after 10 shared"),
        "{}",
        design(&filter)
    );
    let digester = Digester::new(SEED);
    for place in 0..30_000 {
        let text = form(place);
        assert_eq!(filter.may_contain(&Probe::new(text.as_bytes(), &digester)), place % 3 == 0, "{text}");
        let range = KeyRange {
            lower: Bound::Excluded(text.as_bytes()),
            upper: Upper::Prefix(&text.as_bytes()[..text.len() - 4]),
        };
        assert!(!filter.may_contain_range(&RangeProbe::new(range, &digester)), "{text}");
    }
}

#[test]
fn shorter_windows_answer_prefixes_of_their_length() {
    let numbers: Vec<u64> = (0..5_000).map(|number| mix64(number, 7)).collect();
    let keys = texts(&numbers, |number| format!("{number:016x}-name"));
    for (window, expected) in
        [("8", "8 bytes of 16 values"), ("5", "5 bytes of 16 values"), ("64", "21 bytes of")]
    {
        let spec = crate::FilterSpec::new(crate::Family::Grafite).with("window", window);
        let mut builder = spec.builder(SEED).expect("possible");
        keys.iter().for_each(|key| builder.add(key).expect("sorted"));
        let bytes =
            builder.finish(Budget::bits_per_key(14.0).expect("positive"), Samples::NONE).expect("fits");
        let filter = AnyFilter::open(bytes).expect("whole");
        assert!(design(&filter).contains(expected), "{}", design(&filter));
        let digester = Digester::new(SEED);
        let passes =
            |prefix: &[u8]| filter.may_contain_range(&RangeProbe::new(KeyRange::prefix(prefix), &digester));
        assert!(keys.iter().all(|key| passes(&key[..8]) && passes(&key[..3]) && passes(key)));
        let prefixes = (0..5_000).map(|number| format!("{:08x}", mix64(number, 8) as u32));
        let passed = prefixes.filter(|prefix| passes(prefix.as_bytes())).count();
        assert_eq!(passed < 50, window != "64", "window of {window}: {passed} prefixes pass");
    }
    for window in ["0", "65", "all"] {
        assert!(crate::FilterSpec::new(crate::Family::Grafite).with("window", window).builder(SEED).is_err());
    }
}

#[test]
fn small_tables_have_windows_of_bytes() {
    let numbers: Vec<u64> = (0..4_000).map(|number| mix64(number, 7)).collect();
    for (count, is_symbols) in [(200, false), (4_000, true)] {
        let keys = texts(&numbers[..count], |number| format!("{number:016x}"));
        let filter = build(&keys, 10.0, SEED).expect("fits");
        assert_eq!(design(&filter).contains("bytes of 16 values"), is_symbols, "{}", design(&filter));
    }
}

#[test]
fn too_small_budgets_name_the_least_one() {
    let keys = random(1_000);
    let Err(BuildError::BudgetTooSmall { least_bits_per_key, .. }) = build(&keys, 2.0, SEED) else {
        panic!("built with two bits per key")
    };
    assert!((2.5..3.5).contains(&least_bits_per_key), "{least_bits_per_key}");
    build(&keys, least_bits_per_key * 1.000_001, SEED).expect("the named budget suffices");
}

#[test]
fn block_arithmetic_equals_division() {
    for modulus in [2, 3, 10, 1_000_003, (1 << 56) - 1, 1 << 56] {
        let hash = BlockHash::new(SEED, modulus);
        for number in
            (0..1_000).map(|number| mix64(number, modulus)).chain([0, modulus - 1, modulus, u64::MAX])
        {
            assert_eq!(hash.block(number), (number / modulus, number % modulus));
            assert!(hash.hash(number) < modulus);
        }
    }
}

#[test]
fn hashes_are_sorted_in_buckets() {
    for count in [0, 1, 100, 5_000, 70_000] {
        for last in [1, 1_000, u64::MAX] {
            let hashes: Vec<u64> = (0..count)
                .map(|number| if last == u64::MAX { mix64(number, 1) } else { mix64(number, 1) % (last + 1) })
                .collect();
            let mut expected = hashes.clone();
            expected.sort_unstable();
            assert_eq!(hash::sort(hashes, last), expected);
        }
    }
}
