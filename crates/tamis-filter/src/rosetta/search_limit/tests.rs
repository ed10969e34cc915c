//! The steps of a design grow at most linearly with the keys, and a filter reports that the limit ended its search.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may panic")]

use super::{STEPS_MIN, STEPS_PER_KEY, SearchLimit};
use crate::prefix_counts::PrefixCounts;
use crate::rosetta::tests::{self, open};
use crate::rosetta::{Prices, RosettaBuilder, sample};
use crate::{Budget, Filter, FilterBuilder, KeyRange, Samples, mix64};

const KEY_BYTES: usize = 100;

/// Sorted keys of 100 bytes, in directories of very different sizes at many depths.
fn paths(count: u64) -> Vec<Vec<u8>> {
    let path = |number: u64| {
        let mut random = mix64(number, 1);
        let mut path = Vec::with_capacity(KEY_BYTES);
        while path.len() < KEY_BYTES - 16 {
            // Most parts of a path are one of a few names.
            let name = (random | 64).trailing_zeros();
            path.extend_from_slice(&b"alpha/beta/gamma/delta/epsilon/zeta/"[name as usize * 3..][..5]);
            random = mix64(random, 2);
        }
        path.extend_from_slice(format!("{random:016x}").as_bytes());
        path.truncate(KEY_BYTES);
        path
    };
    let mut paths: Vec<Vec<u8>> = (0..count).map(path).collect();
    paths.sort();
    paths
}

/// Prefixes that end anywhere in a key, with another byte there.
fn prefixes_next_to(keys: &[Vec<u8>], count: u64) -> Vec<Vec<u8>> {
    let prefix = |number: u64| {
        let mut prefix = keys[(mix64(number, 3) % keys.len() as u64) as usize].clone();
        let place = 8 + (mix64(number, 4) % (KEY_BYTES as u64 - 8)) as usize;
        prefix[place] ^= 1 << (mix64(number, 5) % 3);
        prefix.truncate(place + 1);
        prefix
    };
    (0..count).map(prefix).collect()
}

fn builder(keys: &[Vec<u8>]) -> RosettaBuilder {
    let mut builder = RosettaBuilder::new(Prices::default(), 1);
    keys.iter().for_each(|key| builder.add(key).unwrap());
    builder
}

/// The steps of a search, and whether the limit ended it.
fn search(keys: &[Vec<u8>]) -> (u64, bool) {
    let builder = builder(keys);
    let prefixes = prefixes_next_to(keys, 4000);
    let queries: Vec<KeyRange<'_>> = prefixes.iter().map(|prefix| KeyRange::prefix(prefix)).collect();
    let counts = PrefixCounts::of_keys(&builder.keys, u32::MAX);
    let cases = sample::sampled_cases(&builder.keys, &queries);
    let bits = 14.0 * keys.len() as f64;
    let limit = SearchLimit::for_keys(keys.len());
    let shares = builder.problem(&counts, &cases, bits, &limit).solve();
    assert!(!shares.is_empty());
    (limit.steps(), limit.is_cut())
}

#[test]
fn the_steps_of_a_search_grow_at_most_linearly_with_the_keys() {
    let sizes = if cfg!(miri) { vec![1000] } else { vec![10_000, 100_000, 1_000_000] };
    for count in sizes {
        let (steps, is_cut) = search(&paths(count));
        let limit = (count * STEPS_PER_KEY).max(STEPS_MIN);
        println!("{count} keys: {steps} steps, cut: {is_cut}");
        // The best design gets its layouts after the limit, too.
        assert!(steps <= limit * 3 / 2, "{count} keys: {steps} steps");
        assert!(
            is_cut || count > 100_000,
            "{count} keys: {steps} steps suffice for a search that should be too long for them"
        );
    }
}

fn design_of(builder: &RosettaBuilder, queries: &[KeyRange<'_>]) -> String {
    let budget = Budget::bits_per_key(14.0).unwrap();
    let mut design = String::new();
    open(builder.finish(budget, Samples { queries }).unwrap()).design(&mut design).unwrap();
    design
}

#[test]
fn a_design_reports_that_its_search_ended_at_the_limit() {
    let keys = paths(3000);
    let prefixes = prefixes_next_to(&keys, 1000);
    let queries: Vec<KeyRange<'_>> = prefixes.iter().map(|prefix| KeyRange::prefix(prefix)).collect();
    let cut = design_of(&builder(&keys), &queries);
    assert!(cut.ends_with("; search ended at its step limit"), "{cut}");
    let points: Vec<KeyRange<'_>> = prefixes.iter().map(|prefix| KeyRange::point(prefix)).collect();
    let complete = design_of(&builder(&keys), &points);
    assert!(!complete.contains("limit"), "{complete}");
}

#[test]
fn a_large_sample_is_thinned_in_proportion_to_the_keys() {
    let numbers: Vec<u64> = (0..4000_u64).map(|number| number << 32).collect();
    let builder = tests::builder(&numbers, Prices::default());
    let bounds: Vec<[u8; 8]> = (0..50_000_u64).map(|number| (number << 20 | 1).to_be_bytes()).collect();
    let queries: Vec<KeyRange<'_>> = bounds.iter().map(|key| KeyRange::point(key)).collect();
    let cases = sample::sampled_cases(&builder.keys, &queries).len();
    assert!((1000..=2048).contains(&cases), "{cases}");
    assert_eq!(sample::sampled_cases(&builder.keys, &queries[..2000]).len(), 2000);
}
