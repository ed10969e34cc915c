//! Prefix counts compared with sets of prefixes.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;

use super::PrefixCounts;
use crate::KeySet;

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
        let mut keys = KeySet::new();
        set.iter().for_each(|key| keys.push(key).unwrap());
        let counts = PrefixCounts::of_keys(&keys, u32::MAX);
        for bit_count in 0..400 {
            let brute: BTreeSet<Vec<u8>> = set.iter().map(|key| prefix(key, bit_count)).collect();
            assert_eq!(counts.at(bit_count as u32), brute.len() as u64, "{bit_count} {:?}", set.first());
        }
    }
}
