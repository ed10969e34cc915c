//! Ranks and positions compared with counting, and damaged directories.
#![expect(clippy::indexing_slicing, reason = "tests may panic")]

use super::{RankBits, Select, encode, encoded_bytes};
use crate::bits::BitBuilder;

fn encode_bits(bits: &[bool], select: Select) -> Vec<u8> {
    let mut builder = BitBuilder::new();
    bits.iter().for_each(|bit| builder.push(*bit));
    let mut target = Vec::new();
    encode(&mut target, &builder.finish(), bits.len() as u64, select);
    target
}

/// Random bits of which one in `sparseness` is set, in runs.
fn random_bits(seed: u64, length: usize, sparseness: u64) -> Vec<bool> {
    let mut state = seed;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33).is_multiple_of(sparseness)
        })
        .collect()
}

fn check(bits: &[bool]) {
    for select in [Select::None, Select::Ones, Select::Both] {
        let bytes = encode_bits(bits, select);
        let (ranked, length) = RankBits::open(&bytes, bits.len() as u64, select).expect("whole");
        assert_eq!(length, bytes.len());
        assert_eq!(bytes.len() as u64, encoded_bytes(bits.len() as u64, ranked.one_count(), select));
        let (mut ones, mut zeros) = (0, 0);
        for (index, bit) in bits.iter().enumerate() {
            let index = index as u64;
            assert_eq!(ranked.rank(index), ones, "{index}");
            assert_eq!(ranked.bits().get(index), *bit);
            if *bit {
                assert_eq!(ranked.select(ones), Some(index));
                ones += 1;
            } else {
                assert_eq!(ranked.select_zero(zeros), Some(index));
                zeros += 1;
            }
        }
        for beyond in [bits.len() as u64, u64::MAX] {
            assert_eq!(ranked.rank(beyond), ones);
            assert_eq!((ranked.select(beyond), ranked.select_zero(beyond)), (None, None));
        }
        assert_eq!((ranked.select(ones), ranked.select_zero(zeros)), (None, None));
    }
}

#[test]
fn ranks_and_positions_equal_those_of_counting() {
    for length in [0, 1, 63, 64, 65, 511, 512, 513, 5000] {
        check(&vec![true; length]);
        check(&vec![false; length]);
        check(&random_bits(1, length, 2));
        check(&random_bits(2, length, 70));
    }
    for sparseness in [2, 30, 9000] {
        check(&random_bits(3, 150_000, sparseness));
    }
    let mut stretches = vec![false; 70_000];
    stretches.extend(vec![true; 70_000]);
    check(&stretches);
}

#[test]
fn the_directory_is_small() {
    let bit_count = 10_000_000_u64;
    let share = |select| encoded_bytes(bit_count, bit_count / 2, select) as f64 * 8.0 / bit_count as f64;
    assert!(share(Select::None) < 1.0325, "{}", share(Select::None));
    assert!(share(Select::Ones) < 1.0405, "{}", share(Select::Ones));
}

#[test]
fn damaged_directories_cause_no_panic() {
    let bits = random_bits(4, 70_000, 3);
    let bytes = encode_bits(&bits, Select::Both);
    let bit_bytes = 8752;
    for cut in [0, 7, 8000, bit_bytes, bytes.len() - 1] {
        assert!(RankBits::open(&bytes[..cut], bits.len() as u64, Select::Both).is_none());
    }
    assert!(RankBits::open(&bytes, u64::MAX, Select::Both).is_none());
    for offset in (bit_bytes..bytes.len()).step_by(3) {
        for change in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[offset] ^= change;
            let Some((ranked, _)) = RankBits::open(&damaged, bits.len() as u64, Select::Both) else {
                continue;
            };
            for index in (0..bits.len() as u64).step_by(2777) {
                let _ = ranked.rank(index);
                assert!(ranked.select(index).is_none_or(|position| position < bits.len() as u64));
                assert!(ranked.select_zero(index).is_none_or(|position| position < bits.len() as u64));
            }
        }
    }
}

/// Sums in a directory once overflowed 64 bits.
#[test]
fn ranks_of_a_damaged_directory_are_at_most_all_set_bits() {
    let bits = random_bits(5, 70_000, 3);
    let bytes = encode_bits(&bits, Select::Both);
    let bit_bytes = 8752;
    // Superblocks and the first blocks, except for the last superblock: the number of all set bits.
    for start in bit_bytes..bit_bytes + 40 {
        for (length, with) in [(8, 0xff), (9, 0xff), (16, 0xff), (8, 0x7f), (5, 0xfe), (2, 0x80)] {
            let mut damaged = bytes.clone();
            damaged[start..start + length].fill(with);
            damaged[bit_bytes + 16..bit_bytes + 24].copy_from_slice(&bytes[bit_bytes + 16..bit_bytes + 24]);
            let (ranked, _) = RankBits::open(&damaged, 70_000, Select::Both).expect("whole");
            for index in (0..70_000).step_by(997) {
                assert!(ranked.rank(index) <= ranked.one_count(), "{start} {length} {index}");
                assert!(ranked.select(index).is_none_or(|position| position < 70_000));
                assert!(ranked.select_zero(index).is_none_or(|position| position < 70_000));
            }
        }
    }
}
