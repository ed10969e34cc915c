//! One key set serves every family: the filters equal those of the same keys added one by one, and memory stays within
//! the bound of `FilterBuilder::memory_bytes`.

use std::sync::Arc;

use tamis_filter::{Budget, Family, FilterBuilder, FilterSpec, KeySet, Samples};

use crate::sets::{SEED, key_sets, next, specs};

fn set_of(keys: &[Vec<u8>]) -> Arc<KeySet> {
    let mut set = KeySet::new();
    keys.iter().for_each(|key| set.push(key).unwrap());
    Arc::new(set)
}

fn builder_of(spec: &FilterSpec, keys: &[Vec<u8>]) -> Box<dyn FilterBuilder> {
    let mut builder = spec.builder(SEED).unwrap();
    keys.iter().for_each(|key| builder.add(key).unwrap());
    builder
}

fn finish(builder: &dyn FilterBuilder) -> Result<Vec<u8>, String> {
    let budget = Budget::bits_per_key(30.0).unwrap();
    builder.finish(budget, Samples::NONE).map_err(|error| error.to_string())
}

#[test]
fn a_key_set_builds_the_same_filters_as_its_keys() {
    for (name, keys) in key_sets() {
        for spec in specs() {
            let one_by_one = builder_of(&spec, &keys);
            let expected = finish(&*one_by_one);
            for before in [0, keys.len().min(1), keys.len() / 2] {
                let (first, rest) = keys.split_at(before);
                let mut together = builder_of(&spec, first);
                together.add_all(&set_of(rest)).unwrap();
                assert_eq!(together.key_count(), one_by_one.key_count(), "{spec} {name}");
                assert!(finish(&*together) == expected, "{spec} {name}, {before} keys before");
                let Some(last) = keys.last().filter(|last| !last.is_empty()) else { continue };
                together.add(last).unwrap();
                assert_eq!(together.key_count(), one_by_one.key_count(), "{spec} {name}: the last key again");
                assert!(together.add(b"").is_err(), "{spec} {name}: the empty key after others");
            }
        }
    }
}

/// Integers; strings of 5 to 60 bytes; pairs with 500 common bytes.
fn large_sets() -> [Vec<Vec<u8>>; 3] {
    let mut state = 9;
    let mut integers: Vec<Vec<u8>> = (0..50_000).map(|_| next(&mut state).to_be_bytes().to_vec()).collect();
    let mut strings: Vec<Vec<u8>> = (0..20_000)
        .map(|_| (0..5 + next(&mut state) % 56).map(|_| next(&mut state) as u8 % 26 + b'a').collect())
        .collect();
    let mut pairs: Vec<Vec<u8>> = (0..2000_u64)
        .map(|number| {
            let mut key = tamis_filter::mix64(number / 2, 0).to_be_bytes().to_vec();
            key.resize(508, b'-');
            key.push(number as u8);
            key
        })
        .collect();
    for keys in [&mut integers, &mut strings, &mut pairs] {
        keys.sort();
    }
    [integers, strings, pairs]
}

/// The bounds of `FilterBuilder::memory_bytes`.
fn bytes_max(spec: &FilterSpec, keys: &[Vec<u8>]) -> usize {
    let (count, bytes) = (keys.len(), keys.iter().map(Vec::len).sum::<usize>());
    let keeps_digests = 8 * count + (66 << 10);
    let keeps_keys = 2 * (bytes + 8 * count) + (4 << 10);
    match spec.family() {
        Family::Prefix if spec.to_string().contains(['+', 's']) => 8 * 20 * count + (66 << 10),
        Family::BlockedBloom | Family::Elastic | Family::Prefix => keeps_digests,
        family if family.name().starts_with("surf") => {
            let labels = (bytes + count).min(16 * count + (1 << 20));
            36 * labels + 256 * (1 + keys.iter().map(Vec::len).max().unwrap_or(0))
        }
        _ => keeps_keys,
    }
}

#[test]
fn builders_hold_no_more_than_documented() {
    for keys in large_sets() {
        for spec in specs() {
            let held = builder_of(&spec, &keys).memory_bytes();
            assert!(held <= bytes_max(&spec, &keys), "{spec}: {held} of {}", bytes_max(&spec, &keys));
        }
    }
}

#[test]
fn families_that_store_keys_share_them() {
    let [_, strings, _] = large_sets();
    let set = set_of(&strings);
    let shared = [
        FilterSpec::new(Family::Rosetta),
        FilterSpec::new(Family::Proteus),
        FilterSpec::new(Family::OnePrefixBloom),
        FilterSpec::new(Family::TwoPrefixBloom),
        FilterSpec::new(Family::Grafite),
    ];
    for spec in shared {
        let mut builder = spec.builder(SEED).unwrap();
        builder.add_all(&set).unwrap();
        assert_eq!(builder.memory_bytes(), 0, "{spec}");
    }
}
