//! Siblings and keys that are probed together get the same answers as one by one.

#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::{BitLayout, FULL_DEPTH, Level};
use crate::mix64;

fn level(depth: u32, layout: BitLayout, probe_count: u32) -> Level {
    Level { depth, layout, probe_count, offset: 0, byte_count: 1024, prefix_count: 300 }
}

#[test]
fn probing_siblings_together_equals_probing_one_by_one() {
    for probe_count in 1..=12 {
        for layout in [BitLayout::Blocked, BitLayout::Standard] {
            let level = level(40, layout, probe_count);
            let mut bits = vec![0; 1024];
            let digests: Vec<u64> = (0..300).map(|number| mix64(number / 3, 1)).collect();
            let siblings: Vec<u64> = (0..300).map(|number| number % 3 * 2).collect();
            level.insert_all(&mut bits, &digests, &siblings);
            for (digest, sibling) in digests.iter().zip(&siblings) {
                assert!(level.held_siblings(&bits, *digest, 1 << sibling) != 0, "{layout:?} {probe_count}");
            }
            for (digest, wanted) in (0..150).map(|number| mix64(number, 1)).zip((0..=255).cycle()) {
                let expected = (0..8)
                    .filter(|sibling| wanted >> sibling & 1 == 1)
                    .filter(|sibling| level.held_siblings(&bits, digest, 1 << sibling) != 0)
                    .fold(0, |held, sibling| held | 1 << sibling);
                assert_eq!(level.held_siblings(&bits, digest, wanted), expected);
            }
        }
    }
}

#[test]
fn eight_siblings_share_one_line() {
    for probe_count in [1, 2, 6] {
        let level = level(40, BitLayout::Blocked, probe_count);
        for group in 0..50 {
            let mut bits = vec![0; 1024];
            let digests = [mix64(group, 1); 8];
            level.insert_all(&mut bits, &digests, &[0, 1, 2, 3, 4, 5, 6, 7]);
            let lines = bits.chunks(64).filter(|line| line.iter().any(|byte| *byte != 0)).count();
            assert_eq!(lines, 1);
        }
    }
}

#[test]
fn probing_keys_together_equals_probing_one_by_one() {
    for (layout, probe_count) in [(BitLayout::Blocked, 6), (BitLayout::Standard, 1), (BitLayout::Standard, 7)]
    {
        let level = level(FULL_DEPTH, layout, probe_count);
        let mut bits = vec![0; 1024];
        let keys: Vec<u64> = (0..300).map(|number| mix64(number, 1)).collect();
        level.insert_all(&mut bits, &keys, &[0; 300]);
        for first in 0..100 {
            let asked: [u64; 8] = std::array::from_fn(|number| mix64(290 + first + number as u64, 1));
            let wanted = first as u8 | 0x0f;
            let expected = (0..8)
                .filter(|number| wanted >> number & 1 == 1)
                .filter(|number| level.may_hold_key(&bits, asked[*number]))
                .fold(0, |held, number| held | 1 << number);
            assert_eq!(level.held_keys(&bits, &asked, wanted), expected);
        }
    }
}
