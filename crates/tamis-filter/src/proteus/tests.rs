//! Filters of all designs, compared with a sorted set: no false negatives, exact sets, and counts equal to those of brute force.

#![expect(clippy::indexing_slicing, reason = "a test that indexes beyond its own lists fails as it should")]

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::sizes::set_size;
use super::{BloomLayout, Design, Model, Prices, ProteusBuilder, Stage, WHOLE_KEYS};
use crate::empty_query::EmptyQuery;
use crate::prefix_counts::PrefixCounts;
use crate::{
    AnyFilter, Budget, Digester, Family, Filter, FilterBuilder, FilterSpec, KeyRange, KeySet, Probe,
    RangeProbe, Samples, Upper,
};

mod caps;
mod counting;
mod designs;
mod every_bound;
mod fast_path_equivalence;
mod hostile;
mod neighbours;
mod samples;
mod string_models;
mod strings;
mod universe;

const SEED: u64 = 21;
const FAMILIES: [Family; 3] = [Family::Proteus, Family::OnePrefixBloom, Family::TwoPrefixBloom];

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(1);
    crate::mix64(*state, 99)
}

fn key_set<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> KeySet {
    let mut sorted: Vec<Vec<u8>> = keys.into_iter().map(|key| key.as_ref().to_vec()).collect();
    sorted.sort();
    let mut set = KeySet::new();
    sorted.iter().for_each(|key| set.push(key).expect("sorted"));
    set
}

fn integers(values: impl IntoIterator<Item = u64>) -> KeySet {
    key_set(values.into_iter().map(u64::to_be_bytes))
}

fn bits_per_key(bits: f64) -> Budget {
    Budget::bits_per_key(bits).expect("possible")
}

fn build(spec: &str, keys: &KeySet, bits: f64, samples: &[KeyRange<'_>]) -> AnyFilter<Vec<u8>> {
    let mut builder = spec.parse::<FilterSpec>().expect("known").builder(SEED).expect("possible");
    builder.add_all(&Arc::new(keys.clone())).expect("sorted");
    let bytes = builder.finish(bits_per_key(bits), Samples { queries: samples }).expect("fits");
    assert!(bytes.len() as f64 <= keys.len() as f64 * bits / 8.0 + 128.0, "{spec}: {} bytes", bytes.len());
    AnyFilter::open(bytes).expect("whole")
}

/// The filter that a builder makes of keys.
fn built_by(
    builder: ProteusBuilder,
    keys: &KeySet,
    bits: f64,
    samples: &[KeyRange<'_>],
) -> AnyFilter<Vec<u8>> {
    AnyFilter::open(encoded_by(builder, keys, bits, samples)).expect("whole")
}

fn encoded_by(mut builder: ProteusBuilder, keys: &KeySet, bits: f64, samples: &[KeyRange<'_>]) -> Vec<u8> {
    builder.add_all(&Arc::new(keys.clone())).expect("sorted");
    builder.finish(bits_per_key(bits), Samples { queries: samples }).expect("fits")
}

/// The design of the filter.
fn parts_of(filter: &AnyFilter<Vec<u8>>) -> Design {
    let AnyFilter::Proteus(proteus) = filter else { panic!("of this module") };
    proteus.parts_design().expect("has keys")
}

/// Checks that no key is rejected: as a point, as a range of one key, and as the end of a short range.
fn check_keys(filter: &AnyFilter<Vec<u8>>, keys: &KeySet) {
    let digester = Digester::new(SEED);
    for key in keys.iter() {
        let longer = [key, &[1]].concat();
        let ranges = [KeyRange::point(key), KeyRange::closed(key, &longer), KeyRange::prefix(key)];
        let answer = filter.may_contain(&Probe::new(key, &digester));
        assert!(answer, "{key:?} is rejected by {}", design_of(filter));
        ranges.into_iter().for_each(|range| check_range(filter, keys, range));
    }
}

fn has_range(filter: &AnyFilter<Vec<u8>>, range: KeyRange<'_>) -> bool {
    filter.may_contain_range(&RangeProbe::new(range, &Digester::new(SEED)))
}

/// Ranges with inclusive bounds.
fn closed<B: AsRef<[u8]>>(bounds: &[(B, B)]) -> Vec<KeyRange<'_>> {
    bounds.iter().map(|(lower, upper)| KeyRange::closed(lower.as_ref(), upper.as_ref())).collect()
}

/// Ranges with all kinds of bounds from two keys.
fn ranges<'a>(lower: &'a [u8], upper: &'a [u8]) -> Vec<KeyRange<'a>> {
    let mut ranges = Vec::new();
    for low in [Bound::Unbounded, Bound::Included(lower), Bound::Excluded(lower)] {
        for high in [Upper::Open, Upper::Included(upper), Upper::Excluded(upper), Upper::Prefix(upper)] {
            ranges.push(KeyRange { lower: low, upper: high });
        }
    }
    ranges
}

fn check_range(filter: &AnyFilter<Vec<u8>>, keys: &KeySet, range: KeyRange<'_>) {
    assert!(
        has_range(filter, range) || !keys.has_key_in(&range),
        "{range:?} contains a key and is rejected by {}",
        design_of(filter)
    );
}

/// Bits of a string continued by zeros, as a list.
fn bit_list(key: &[u8], bits: usize) -> Vec<bool> {
    (0..bits).map(|bit| key.get(bit / 8).is_some_and(|byte| byte >> (7 - bit % 8) & 1 == 1)).collect()
}

fn design_of(filter: &AnyFilter<Vec<u8>>) -> String {
    let mut text = String::new();
    filter.design(&mut text).expect("strings take all");
    text
}
