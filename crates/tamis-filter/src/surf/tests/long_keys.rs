//! Keys of 65,535 bytes and more: with many other keys, and as prefixes of each other.

use super::{bounds, builder, check_everything, next, open, sorted};
use crate::surf::SuffixBits;
use crate::trie::Layout;
use crate::{Budget, Filter, FilterBuilder, Samples, envelope};

/// Lengths on both sides of 16 bits.
const LENGTHS: [usize; 6] = [65_534, 65_535, 65_536, 65_537, 70_000, 131_073];
const SUFFIXES: [SuffixBits; 3] =
    [SuffixBits { hash: 0, real: 0 }, SuffixBits { hash: 7, real: 0 }, SuffixBits { hash: 3, real: 17 }];

fn others(count: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut state = 3;
    (0..count).map(move |_| next(&mut state).to_be_bytes().to_vec())
}

/// Whether the height is capped.
fn check(keys: &[Vec<u8>], suffix: SuffixBits) -> bool {
    let bytes = builder(keys, suffix).finish(Budget::BY_PARAMETERS, Samples::NONE).unwrap();
    assert!(bytes.len() <= keys.len() * 8 + 256, "{} bytes", bytes.len());
    let counts = Layout::read(envelope::payload(&bytes), suffix.width() > 0).unwrap().counts;
    let filter = open(bytes);
    // The long keys, strings similar to them, and strings similar to some of the others.
    let mut state = 5;
    let long: Vec<Vec<u8>> = keys.iter().filter(|key| key.len() > 60_000).cloned().collect();
    assert_eq!(long.len(), LENGTHS.len());
    let mut strings = bounds(&long, 6, &mut state);
    strings.extend(bounds(keys, 2, &mut state));
    check_everything(&filter, keys, &strings);
    assert_eq!(filter.key_count(), keys.len() as u64);
    counts.capped_leaf_count != 0
}

/// Their first bytes distinguish them.
#[test]
fn long_keys_among_many_others_are_not_capped() {
    let long = |(number, length)| [vec![b'a' + number as u8, b'-'], vec![7; length - 2]].concat();
    let keys = LENGTHS.into_iter().enumerate().map(long);
    let keys = sorted(keys.chain(others(3000)).collect());
    for suffix in SUFFIXES {
        assert!(!check(&keys, suffix), "nothing to cut");
    }
}

/// Their paths are as long as the keys: there is room for them if many other keys need less.
#[test]
fn long_keys_that_are_prefixes_of_each_other_have_no_false_negatives() {
    for (other_count, is_cut) in [(40_000, false), (300, true)] {
        let keys = LENGTHS.into_iter().map(|length| vec![b'p'; length]);
        let keys = sorted(keys.chain(others(other_count)).chain([vec![b'p'], vec![b'p'; 300]]).collect());
        assert_eq!(check(&keys, SUFFIXES[other_count as usize % 3]), is_cut);
    }
}
