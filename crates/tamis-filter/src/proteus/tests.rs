//! Designs of all kinds against a sorted set: never a false negative, sets exact, and counts as brute force gives them.

#![expect(clippy::indexing_slicing, reason = "a test that indexes beyond its own lists fails as it should")]

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::counts::Counts;
use super::keys::Keys;
use super::sizes::set_size;
use super::{BloomLayout, Model, Prices, ProteusBuilder, Stage, WHOLE_KEYS};
use crate::{
    AnyFilter, Budget, Digester, Family, Filter, FilterBuilder, FilterSpec, KeyRange, KeySet, Probe,
    RangeProbe, Samples, Upper,
};

mod counting;
mod designs;
mod straight;
mod strings;
mod universe;

const SEED: u64 = 21;

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(1);
    crate::remix(*state, 99)
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

fn has_range(filter: &AnyFilter<Vec<u8>>, range: KeyRange<'_>) -> bool {
    filter.may_contain_range(&RangeProbe::new(range, &Digester::new(SEED)))
}

/// All kinds of bounds made of two keys.
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
        "{range:?} holds a key and is denied by {}",
        design_of(filter)
    );
}

fn design_of(filter: &AnyFilter<Vec<u8>>) -> String {
    let mut text = String::new();
    filter.design(&mut text).expect("strings take all");
    text
}
