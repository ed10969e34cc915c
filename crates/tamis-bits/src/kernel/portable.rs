//! The kernels in plain Rust: their definition, and the fallback without vector instructions.

use crate::line::{self, LINE_BYTES};

pub(super) fn line_contains(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool {
    line::contains(line, pattern, probe_count)
}

pub(super) fn may_contain(lines: &[u8], line_count: u64, digest: u64, probe_count: u32) -> bool {
    line::line_at(lines, line_count, digest)
        .is_none_or(|line| line::contains(line, line::pattern(digest), probe_count))
}

pub(super) fn rank_in_line(line: &[u8; LINE_BYTES], bit_count: u32) -> u32 {
    let mut rank = 0;
    let mut rest = bit_count;
    for word in line.as_chunks::<8>().0 {
        let word = u64::from_le_bytes(*word);
        if rest < 64 {
            return rank + (word & ((1 << rest) - 1)).count_ones();
        }
        rank += word.count_ones();
        rest -= 64;
    }
    rank
}

pub(super) fn select_in_line(line: &[u8; LINE_BYTES], rank: u32, flip: u64) -> u32 {
    let mut rest = rank;
    for (index, word) in line.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*word) ^ flip;
        let ones = word.count_ones();
        if rest < ones {
            return index as u32 * 64 + select_in_word(word, rest);
        }
        rest -= ones;
    }
    512
}

/// Byte by byte, then bit by bit.
fn select_in_word(word: u64, rank: u32) -> u32 {
    let mut rest = rank;
    let mut position = 0;
    let mut bits = word;
    loop {
        let ones = (bits & 0xff).count_ones();
        if rest < ones {
            break;
        }
        rest -= ones;
        bits >>= 8;
        position += 8;
    }
    for _ in 0..rest {
        bits &= bits - 1;
    }
    position + bits.trailing_zeros()
}

/// The steps of searches in plain Rust.
#[derive(Debug, Clone, Copy)]
pub struct Portable;

impl super::Steps for Portable {
    #[inline(always)]
    fn equal_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64 {
        mask_of(bytes, |candidate| candidate == byte)
    }

    #[inline(always)]
    fn not_smaller_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64 {
        mask_of(bytes, |candidate| candidate >= byte)
    }

    #[inline(always)]
    fn nth_one(self, word: u64, rank: u32) -> u64 {
        if rank >= word.count_ones() { 0 } else { 1 << select_in_word(word, rank) }
    }
}

#[inline(always)]
fn mask_of(bytes: &[u8; LINE_BYTES], is_wanted: impl Fn(u8) -> bool) -> u64 {
    (0..).zip(bytes).fold(0, |mask, (index, byte)| mask | u64::from(is_wanted(*byte)) << index)
}
