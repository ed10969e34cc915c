//! Predicted sizes of tries are the sizes of the filters that are built.

use std::sync::Arc;

use super::KeyCounts;
use crate::{Budget, FilterSpec, KeySet, Samples};

fn set(mut keys: Vec<Vec<u8>>) -> Arc<KeySet> {
    keys.sort();
    let mut set = KeySet::new();
    keys.iter().for_each(|key| set.push(key).expect("sorted"));
    Arc::new(set)
}

fn sets() -> [Arc<KeySet>; 3] {
    let random = |number: u64| crate::mix64(number, 3);
    let words = (1..5000_u64).map(|number| random(number).to_be_bytes().to_vec()).collect();
    let paths = (1..5000_u64).map(|number| {
        let number = random(number);
        format!("/srv/{}/{}/{:x}", number % 7, number % 101, number % 100_003).into_bytes()
    });
    // Keys that are prefixes of others.
    let nested = (1..3000_u64).map(|number| format!("{}", number * number).into_bytes());
    [set(words), set(paths.collect()), set(nested.collect())]
}

fn encoded_bytes(keys: &Arc<KeySet>, spec: &str, bits: Option<f64>) -> u64 {
    let mut builder = spec.parse::<FilterSpec>().expect("known").builder(1).expect("valid");
    builder.add_all(keys).expect("sorted");
    let budget = bits.map_or(Budget::BY_PARAMETERS, |bits| Budget::bits_per_key(bits).expect("valid"));
    builder.finish(budget, Samples::NONE).expect("fits").len() as u64
}

#[test]
fn the_predicted_size_of_a_trie_is_that_of_the_filter() {
    for keys in sets() {
        let counts = KeyCounts::new(&keys);
        for (width, spec) in [(0, "surf-base"), (7, "surf-real:bits=7"), (12, "surf-mixed:hash=6,real=6")] {
            let trie = counts.whole_trie(width > 0).expect("fits");
            assert_eq!(trie.filter_bytes(width), encoded_bytes(&keys, spec, None), "{spec}");
        }
    }
}

#[test]
fn a_truncated_trie_has_the_predicted_size() {
    for keys in sets() {
        let counts = KeyCounts::new(&keys);
        for bits in [6.0, 9.0, 14.0] {
            let allowed = counts.surf_bytes(bits);
            let Some(trie) = counts.truncated_trie(allowed) else { continue };
            let width = trie.widest_suffix(allowed).expect("fits");
            if trie.height < counts.whole_trie(true).expect("fits").height {
                let built = encoded_bytes(&keys, "surf:truncate=yes", Some(bits));
                let apart = built.abs_diff(trie.filter_bytes(width));
                assert!(apart <= built / 50, "{built} bytes, {} predicted", trie.filter_bytes(width));
            }
        }
    }
}

#[test]
fn prefixes_are_counted() {
    let keys = set(["aa", "ab", "b", "bcd"].map(|key| key.as_bytes().to_vec()).to_vec());
    let counts = KeyCounts::new(&keys);
    assert_eq!([0, 1, 2, 3].map(|bytes| counts.prefix_count(bytes)), [1, 2, 4, 4]);
}
