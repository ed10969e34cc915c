//! Spans contain every key of the range at every depth; spans of short integers contain nothing else.

#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use std::ops::Bound;

use super::{Bounds, node_of_key};
use crate::{KeyRange, Upper};

/// All strings of up to four of some bytes.
fn strings() -> Vec<Vec<u8>> {
    let mut strings = vec![vec![]];
    let mut start = 0;
    for _ in 0..3 {
        let end = strings.len();
        for index in start..end {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut next = strings[index].clone();
                next.push(byte);
                strings.push(next);
            }
        }
        start = end;
    }
    strings
}

fn ranges(strings: &[Vec<u8>]) -> Vec<KeyRange<'_>> {
    let mut ranges = vec![KeyRange::ALL];
    for lower in strings.iter().step_by(3) {
        for upper in strings.iter().step_by(2) {
            for lower in [Bound::Included(lower.as_slice()), Bound::Excluded(lower)] {
                for upper in [Upper::Included(upper.as_slice()), Upper::Excluded(upper), Upper::Prefix(upper)]
                {
                    ranges.push(KeyRange { lower, upper });
                }
            }
        }
    }
    ranges
}

#[test]
fn every_key_of_a_range_is_in_its_span_at_every_depth() {
    let strings = strings();
    for range in ranges(&strings) {
        let bounds = Bounds::new(&range, 0);
        for key in strings.iter().filter(|key| range.contains(key)) {
            let bounds = bounds.expect("a range with a key");
            for depth in [1, 7, 8, 9, 16, 20, 24, 64, 72, 80] {
                let Some((first, last)) = bounds.span(depth) else { continue };
                let node = node_of_key(key, depth);
                assert!((first..=last).contains(&node), "{range:?} {key:?} {depth}: {first} {last} {node}");
            }
        }
    }
}

/// Keys longer than the window, which differ only in the last few bytes.
#[test]
fn deep_spans_contain_every_key_with_the_bytes_before_their_window() {
    let (short, front) = (strings(), [0xff; 7]);
    for front_length in [0, 1, 7] {
        let long: Vec<Vec<u8>> = short.iter().map(|end| [&front[..front_length], end].concat()).collect();
        for range in ranges(&long) {
            let bounds = Bounds::new(&range, 0);
            for (key, depth) in long.iter().flat_map(|key| [72, 80, 88, 120, 160].map(|depth| (key, depth))) {
                let Some((first, last)) = bounds.and_then(|bounds| bounds.span(depth)) else { continue };
                let mut before = Vec::new();
                bounds.iter().for_each(|bounds| bounds.copy_front(depth as usize / 8 - 8, &mut before));
                let is_in_node =
                    key.iter().chain([0; 32].iter()).zip(&before).all(|(left, right)| left == right);
                let is_inside = is_in_node && (first..=last).contains(&node_of_key(key, depth));
                assert!(is_inside || !range.contains(key), "{range:?} {key:?} {depth}: {first} {last}");
            }
        }
    }
}

#[test]
fn an_excluded_bound_excludes_its_node() {
    let range = KeyRange { lower: Bound::Included(b"ab"), upper: Upper::Excluded(b"ac") };
    let bounds = Bounds::new(&range, 0).expect("a range with strings");
    assert_eq!(bounds.span(16), Some((0x6162, 0x6162)));
    assert_eq!(
        bounds.span(72),
        Some((
            u64::from_be_bytes(*b"b\0\0\0\0\0\0\0"),
            u64::from_be_bytes(*b"b\xff\xff\xff\xff\xff\xff\xff")
        ))
    );
}

#[test]
fn keys_of_one_length_are_exact_at_both_ends() {
    let strings = strings();
    for length in [1_usize, 2] {
        let keys: Vec<Vec<u8>> = (0..1_u32 << (8 * length))
            .step_by(if length == 1 { 1 } else { 13 })
            .chain([0x00ff, 0x0100, 0xff00, 0xffff].into_iter().filter(|_| length == 2))
            .map(|number| number.to_be_bytes()[4 - length..].to_vec())
            .collect();
        for range in ranges(&strings) {
            let inside = || keys.iter().filter(|key| range.contains(key));
            let bounds = Bounds::new(&range, length as u32);
            let Some(Bounds::Words { lower, upper, .. }) = bounds else {
                assert_eq!(inside().count(), 0, "{range:?}");
                continue;
            };
            let number = |key: &Vec<u8>| {
                key.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)) << (64 - 8 * length)
            };
            assert!(inside().all(|key| (lower..=upper).contains(&number(key))), "{range:?}");
            let taken = keys.iter().filter(|key| (lower..=upper).contains(&number(key)));
            assert_eq!(taken.count(), inside().count(), "{range:?} {lower} {upper}");
        }
    }
}

#[test]
fn bounds_count_the_bits_shared_with_keys() {
    let key = |number: u64| number.to_be_bytes();
    let range = (key(0x1000), key(0x1003));
    let bounds = Bounds::new(&KeyRange::closed(&range.0, &range.1), 8).expect("a range with keys");
    assert_eq!(bounds.shared_bits(Some(&key(0x0fff)), Some(&key(0x1004))), (51, 61));
    let bounds = Bounds::new(&KeyRange::closed(b"abc", b"abd"), 0).expect("a range with strings");
    assert_eq!(bounds.shared_bits(Some(b"abb"), Some(b"abda")), (23, 25));
}
