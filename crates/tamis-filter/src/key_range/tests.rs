//! All bounds over a small universe, compared with brute force.

use std::ops::Bound;

use tamis_bits::key_head;

use super::{KeyRange, Upper};

/// All strings up to three bytes over 0, 1, 255.
fn universe() -> Vec<Vec<u8>> {
    let mut strings = vec![vec![]];
    let mut index = 0;
    while let Some(string) = strings.get(index).cloned() {
        if string.len() < 3 {
            for byte in [0, 1, 255] {
                strings.push([string.as_slice(), &[byte]].concat());
            }
        }
        index += 1;
    }
    strings.sort();
    strings
}

#[test]
fn emptiness_and_points_agree_with_the_keys_inside() {
    let universe = universe();
    let short: Vec<&Vec<u8>> = universe.iter().filter(|key| key.len() < 3).collect();
    let lowers = short
        .iter()
        .flat_map(|key| [Bound::Included(key.as_slice()), Bound::Excluded(key.as_slice())])
        .chain([Bound::Unbounded]);
    for lower in lowers {
        let uppers = short
            .iter()
            .flat_map(|key| [Upper::Included(key.as_slice()), Upper::Excluded(key), Upper::Prefix(key)])
            .chain([Upper::Open]);
        for upper in uppers {
            let range = KeyRange { lower, upper };
            let inside: Vec<&Vec<u8>> = universe.iter().filter(|key| range.contains(key)).collect();
            // With bounds of at most two bytes, three bytes suffice to find a string in every range that has one.
            assert_eq!(range.is_empty(), inside.is_empty(), "{range:?}");
            check_words(&range, &inside);
            if let Some(point) = range.as_point() {
                assert_eq!(inside, [point], "{range:?}");
            } else {
                assert_ne!(inside.len(), 1, "{range:?}");
            }
        }
    }
}

/// Words bound the keys.
fn check_words(range: &KeyRange<'_>, inside: &[&Vec<u8>]) {
    let heads: Vec<u64> = inside.iter().map(|key| key_head(key)).collect();
    match range.word_bounds() {
        None => assert!(inside.is_empty(), "{range:?}"),
        Some((lower, upper)) => assert!(heads.iter().all(|head| (lower..=upper).contains(head)), "{range:?}"),
    }
}

#[test]
fn a_prefix_scan_with_an_excluded_successor_stays_within_its_prefix() {
    let range = KeyRange { lower: Bound::Included(b"ab"), upper: Upper::Excluded(b"ac") };
    assert_eq!(range.word_bounds(), Some((0x6162_0000_0000_0000, 0x6162_ffff_ffff_ffff)));
    assert_eq!(KeyRange::prefix(b"ab").word_bounds(), range.word_bounds());
}
