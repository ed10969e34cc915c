//! Prefix counts compared with sets of prefixes; keys as integers and as strings.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;

use super::{Keys, PrefixCounts};
use crate::KeyRange;

/// The first bits of a key, continued by zeros.
fn prefix(key: &[u8], bit_count: usize) -> Vec<u8> {
    let mut prefix: Vec<u8> =
        key.iter().copied().chain(std::iter::repeat(0)).take(bit_count.div_ceil(8)).collect();
    if let Some(last) = prefix.last_mut().filter(|_| !bit_count.is_multiple_of(8)) {
        *last &= 0xff << (8 - bit_count % 8);
    }
    prefix
}

fn sets() -> Vec<Vec<Vec<u8>>> {
    let mut sets = vec![
        vec![],
        vec![vec![]],
        vec![vec![], vec![0], vec![0, 0], vec![0, 1], vec![1]],
        (0..40).map(|length| vec![0xff; length]).collect(),
        (0..40).map(|length| vec![0; length]).collect(),
        (0..300_u64).map(|number| (number * number * 77).to_be_bytes().to_vec()).collect(),
        (0..300_u64).map(|number| (number * 3).to_be_bytes()[5..].to_vec()).collect(),
        (0..300_u64).map(|number| format!("a long common part {number:04}").into_bytes()).collect(),
    ];
    sets.iter_mut().for_each(|set| set.sort());
    sets
}

#[test]
fn distinct_prefixes_are_counted() {
    for set in sets() {
        let mut keys = Keys::new();
        set.iter().for_each(|key| keys.push(key).unwrap());
        let counts = PrefixCounts::new(&keys);
        assert_eq!(counts.keys(), set.len() as u64);
        for bit_count in 0..400 {
            let brute: BTreeSet<Vec<u8>> = set.iter().map(|key| prefix(key, bit_count)).collect();
            assert_eq!(counts.at(bit_count as u32), brute.len() as u64, "{bit_count} {:?}", set.first());
        }
    }
}

#[test]
fn the_common_length_of_keys_is_known() {
    let length = |set: &[&[u8]]| {
        let mut keys = Keys::new();
        set.iter().for_each(|key| keys.push(key).unwrap());
        keys.key_bytes()
    };
    assert_eq!(length(&[&[1; 8], &[2; 8]]), 8);
    assert_eq!(length(&[&[1; 8], &[2; 9]]), 0);
    assert_eq!(length(&[&[1; 3], &[2; 3]]), 3);
    assert_eq!(length(&[&[1; 3], &[2; 8]]), 0);
    assert_eq!(length(&[&[1; 8], &[2; 3], &[3; 3]]), 0);
}

#[test]
fn a_key_in_a_range_is_found_and_unsorted_keys_are_refused() {
    let mut keys = Keys::new();
    for key in [10_u64, 20, 20, 30] {
        keys.push(&key.to_be_bytes()).unwrap();
    }
    assert_eq!(keys.len(), 3);
    assert!(keys.push(&5_u64.to_be_bytes()).is_err());
    assert!(keys.push(b"\0").is_err());
    let find =
        |lower: u64, upper: u64| keys.find(&KeyRange::closed(&lower.to_be_bytes(), &upper.to_be_bytes()));
    assert_eq!(find(11, 20), (1, true));
    assert_eq!(find(11, 19), (1, false));
    assert_eq!(find(31, 90), (3, false));
}
