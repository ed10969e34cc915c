//! The kernels in plain Rust: their definition, and the fallback without vector instructions.

use super::{Step, place};
use crate::line::{self, LINE_BYTES};

/// Prefetch distance of lines, in digests.
const PREFETCH_DIGESTS: usize = 16;

pub(super) fn line_contains(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool {
    line::contains(line, pattern, probe_count)
}

pub(super) fn may_contain(lines: &[u8], line_count: u64, digest: u64, probe_count: u32) -> bool {
    line::line_at(lines, line_count, digest)
        .is_none_or(|line| line::contains(line, line::pattern(digest), probe_count))
}

pub(super) fn lines_contain(
    lines: &[u8],
    line_count: u64,
    digests: &[u64],
    probe_count: u32,
    answers: &mut [bool],
) {
    for digest in digests.iter().take(PREFETCH_DIGESTS) {
        line::prefetch_line(lines, line_count, *digest);
    }
    let ahead = digests.iter().skip(PREFETCH_DIGESTS).map(Some).chain(std::iter::repeat(None));
    for ((digest, answer), next) in digests.iter().zip(answers).zip(ahead) {
        if let Some(next) = next {
            line::prefetch_line(lines, line_count, *next);
        }
        *answer = match line::line_at(lines, line_count, *digest) {
            Some(line) => line::contains(line, line::pattern(*digest), probe_count),
            None => true,
        };
    }
}

pub(super) fn lines_insert(lines: &mut [u8], line_count: u64, digests: &[u64], probe_count: u32) {
    let patterns = digests.iter().map(|digest| line::pattern(*digest));
    insert_all(lines, line_count, digests, patterns, probe_count);
}

pub(super) fn lines_insert_values(
    lines: &mut [u8],
    line_count: u64,
    digests: &[u64],
    values: &[u64],
    probe_count: u32,
) {
    let patterns = values.iter().map(|value| line::pattern(*value));
    insert_all(lines, line_count, digests, patterns, probe_count);
}

fn insert_all(
    lines: &mut [u8],
    line_count: u64,
    digests: &[u64],
    patterns: impl Iterator<Item = u32>,
    probe_count: u32,
) {
    let ahead = digests.iter().skip(PREFETCH_DIGESTS).map(Some).chain(std::iter::repeat(None));
    for ((digest, pattern), next) in digests.iter().zip(patterns).zip(ahead) {
        if let Some(next) = next {
            line::prefetch_line(lines, line_count, *next);
        }
        if let Some(line) = line::line_at_mut(lines, line_count, *digest) {
            line::insert(line, pattern, probe_count);
        }
    }
}

/// Inlined into the other forms, which differ in the instructions only.
#[inline(always)]
pub(super) fn mix64_each(values: &mut [u64], numbers: &[u64]) {
    values.iter_mut().zip(numbers).for_each(|(value, number)| *value = crate::mix64(*value, *number));
}

/// Inlined into the form with BMI2, which differs in the instructions only.
#[inline(always)]
pub(super) fn places_insert(bits: &mut [u8], bit_count: u64, values: &[u64], probe_count: u32, step: Step) {
    for value in values {
        let step = step.of(*value);
        let mut number = *value;
        for _ in 0..probe_count {
            let place = place(number, bit_count);
            if let Some(byte) = bits.get_mut((place / 8) as usize) {
                *byte |= 1 << (place % 8);
            }
            number = number.wrapping_add(step);
        }
    }
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
    fn equal_words(self, line: &[u8; LINE_BYTES], word: u64, shift: u32) -> u32 {
        let words = line.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        (0..)
            .zip(words)
            .fold(0, |mask, (index, own)| mask | u32::from((own ^ word) >> (shift & 63) == 0) << index)
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
