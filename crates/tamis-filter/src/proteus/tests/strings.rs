//! Strings of bits: their heads agree with their bytes.

use std::ops::Bound;

use super::{random, ranges};
use crate::bit_string::BitString;
use crate::{KeyRange, Upper};

/// A byte of the least string of a range and of the greatest, from the bounds.
fn bytes(range: &KeyRange<'_>, index: usize) -> (u8, u8) {
    let lower = range.lower_bytes().get(index).copied().unwrap_or(0);
    let above = |bytes: &[u8]| bytes.get(index).copied().unwrap_or(0xff);
    let upper = match range.upper {
        Upper::Open => 0xff,
        Upper::Prefix(prefix) => above(prefix),
        Upper::Included(upper) => upper.get(index).copied().unwrap_or(0),
        Upper::Excluded(upper) => match upper.split_last() {
            Some((last, _)) if *last != 0 && index + 1 == upper.len() => last - 1,
            Some((last, _)) if *last != 0 => above(upper),
            _ => upper.get(index).copied().unwrap_or(0),
        },
    };
    (lower, upper)
}

fn check(range: &KeyRange<'_>) {
    let ends = [BitString::lower(range, 0), BitString::upper(range)];
    let whole: Vec<(u8, u8)> = (0..48).map(|index| bytes(range, index)).collect();
    let whole =
        [whole.iter().map(|pair| pair.0).collect::<Vec<_>>(), whole.iter().map(|pair| pair.1).collect()];
    let bit = |bytes: &[u8], index: u32| bytes[index as usize / 8] >> (7 - index % 8) & 1;
    for (string, bytes) in ends.iter().zip(&whole) {
        assert_eq!(string.head().to_be_bytes(), bytes[..16], "{range:?}");
        for (index, byte) in bytes.iter().enumerate() {
            assert_eq!(string.byte(index), *byte, "byte {index} of {range:?}");
        }
        for from in 0..256 {
            let word = (from..from + 64).fold(0_u64, |word, index| word << 1 | u64::from(bit(bytes, index)));
            assert_eq!(string.word(from), word, "from bit {from} of {range:?}");
            assert_eq!(string.bits(from, 13), word >> 51, "from bit {from} of {range:?}");
        }
    }
    let [lower, upper] = &whole;
    let shared = (0..300).find(|index| bit(lower, *index) != bit(upper, *index)).unwrap_or(300);
    for max in [0, 1, 64, 127, 128, 129, 300] {
        assert_eq!(ends[0].shared_bits(&ends[1], max), shared.min(max), "{range:?}");
    }
}

#[test]
fn the_heads_of_bounds_of_all_kinds_and_lengths_agree_with_their_bytes() {
    let mut state = 3;
    for length in 0..=34 {
        let mut lower: Vec<u8> = (0..length).map(|_| random(&mut state) as u8).collect();
        for part in 0..=length {
            let mut upper = lower.clone();
            upper.truncate(part);
            upper.extend((part..length).map(|_| random(&mut state) as u8));
            for last in [0, 1, 0xff] {
                upper.iter_mut().next_back().into_iter().for_each(|byte| *byte = last);
                ranges(&lower, &upper).iter().for_each(check);
            }
            lower.iter_mut().next_back().into_iter().for_each(|byte| *byte = 0);
            ranges(&upper, &lower).iter().for_each(check);
        }
    }
}

#[test]
fn the_least_string_of_keys_of_one_length_is_the_least_key_that_may_be_in_the_range() {
    let mut state = 4;
    for length in [9_usize, 15, 16, 17, 30] {
        for zeros in [0, 1, 3] {
            for ones in [0, 1, 2, 8] {
                let mut bound: Vec<u8> = (0..length).map(|_| random(&mut state) as u8 & 0x7f).collect();
                bound[length - ones..].fill(0xff);
                bound.extend(vec![0; zeros]);
                let mut next = bound[..length].to_vec();
                next[length - ones..].fill(0);
                next[length - ones - 1] += 1;
                let next = BitString::key(&next);
                for (lower, is_above) in
                    [(Bound::Excluded(&bound[..]), true), (Bound::Included(&bound), zeros > 0)]
                {
                    let least = BitString::lower(&KeyRange { lower, upper: Upper::Open }, length);
                    let expected = if is_above { next } else { BitString::key(&bound) };
                    assert_eq!(least.head(), expected.head(), "{length} {zeros} {ones}");
                    assert_eq!(least.shared_bits(&expected, 400), 400, "{length} {zeros} {ones}");
                    assert!(!least.is_above(&expected) && !expected.is_above(&least));
                    assert_eq!(least.is_above(&BitString::key(&bound)), is_above, "{length} {zeros} {ones}");
                }
            }
        }
    }
}

#[test]
fn a_key_at_any_position_of_a_run_of_prefixes_is_found() {
    let mut state = 8;
    for bits in [40_u32, 64, 65, 76, 127, 128, 129, 140, 2100] {
        let filled = bits.div_ceil(8) as usize;
        let mut keys: Vec<Vec<u8>> = (0..40).map(|_| vec![0x80; filled + 3]).collect();
        for key in &mut keys {
            key.iter_mut().for_each(|byte| *byte = random(&mut state) as u8);
            key[filled - 3] |= 0x40;
        }
        let set = super::key_set(&keys);
        let filter = super::build(&format!("1pbf:prefix={bits}"), &set, 20.0, &[]);
        for key in &keys {
            for place in (0..70).chain([500]) {
                let (start, step) = (filled - 3, place << ((8 - bits % 8) % 8));
                let end = u32::from_be_bytes([0, key[start], key[start + 1], key[start + 2]]);
                let mut lower = key[..filled].to_vec();
                lower[start..].copy_from_slice(&(end - step).to_be_bytes()[1..]);
                super::check_range(&filter, &set, KeyRange::closed(&lower, key));
            }
        }
    }
}
