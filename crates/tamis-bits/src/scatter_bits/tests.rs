//! Compared with a plain implementation.

use super::{are_set, is_set};

#[test]
fn bits_equal_those_of_the_plain_implementation() {
    let bytes: Vec<u8> = (0..=255_u8).map(|byte| byte.wrapping_mul(37)).collect();
    for length in [1, 2, 7, 8, 100, 256] {
        let bytes = bytes.get(..length).unwrap_or_default();
        let plain = |number: u64| {
            let bit = ((u128::from(number) * (length as u128 * 8)) >> 64) as usize;
            bytes.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
        };
        for step in 0..2000_u64 {
            let number = step.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let others = [number, !number, u64::MAX, number.rotate_left(20)];
            assert_eq!(is_set(bytes, number), plain(number));
            assert_eq!(are_set(bytes, others), others.iter().all(|number| plain(*number)));
        }
    }
    assert!(is_set(&[], 7) && are_set(&[], [0, u64::MAX]));
}
