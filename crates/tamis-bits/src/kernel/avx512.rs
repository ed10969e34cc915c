//! The questions to lines with AVX-512 in registers of 256 bits: eight bits are asked for at once, as in `x86_64.rs`, but the sixteen words of a line
//! are one table, which takes a third of the instructions off. Registers of 512 bits, with all bits of a key in one, took as many
//! cycles (within 10 %, in alternating rounds).
//!
//! The functions are safe for callers that are compiled for the same features; `kernel.rs` calls them behind a run-time check.
//! The only unsafe operation inside is a load from a slice whose length was checked.

use std::arch::x86_64::{
    __m256i, _mm256_loadu_si256, _mm256_mullo_epi32, _mm256_permutex2var_epi32, _mm256_rolv_epi32,
    _mm256_set1_epi32, _mm256_srli_epi32, _mm256_testc_si256,
};

use super::x86_64::{POWERS, ROUND, ROUND_PROBES};
use crate::line::{self, LINE_BYTES};

/// Lines in fewer bytes than this lie in a core's own cache, and so near that fetching them ahead costs more than it saves.
const NEAR_BYTES: usize = 2 << 20;

/// Lines that are fetched ahead at once.
const PREFETCH_DIGESTS: usize = 64;

/// For 1 to 8 bits of a round: the powers of the step, the first one again where there are fewer bits. A bit that is asked for
/// twice changes no answer, and costs less than leaving it out.
const POWERS_OF_COUNTS: [[u32; ROUND_PROBES as usize]; ROUND_PROBES as usize] = powers_of_counts();

#[expect(clippy::indexing_slicing, reason = "constant evaluation, indexes below the lengths")]
const fn powers_of_counts() -> [[u32; ROUND_PROBES as usize]; ROUND_PROBES as usize] {
    let mut all = [[1; ROUND_PROBES as usize]; ROUND_PROBES as usize];
    let mut row = 0;
    while row < all.len() {
        let mut lane = 0;
        while lane <= row {
            all[row][lane] = POWERS[lane];
            lane += 1;
        }
        row += 1;
    }
    all
}

#[target_feature(enable = "avx512vl")]
#[inline]
fn load(words: &[u8; 32]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes that are read; the load needs no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// The powers of a round of 1 to 8 bits; those of 8 for greater counts.
#[target_feature(enable = "avx512vl")]
#[inline]
fn powers(probe_count: u32) -> __m256i {
    let row = probe_count.wrapping_sub(1).min(ROUND_PROBES - 1) as usize;
    let [.., all] = &POWERS_OF_COUNTS;
    let powers = POWERS_OF_COUNTS.get(row).unwrap_or(all);
    // SAFETY: the array has the 32 bytes that are read; the load needs no alignment.
    unsafe { _mm256_loadu_si256(powers.as_ptr().cast()) }
}

/// Lane by lane: the word that the top four bits of the pattern name, and in it the bit that the next five name. A rotation
/// looks at these five only.
#[target_feature(enable = "avx512vl")]
#[inline]
fn round_contains(line: &[u8; LINE_BYTES], pattern: u32, powers: __m256i) -> bool {
    let ([low, high], []) = line.as_chunks::<32>() else { return true };
    let patterns = _mm256_mullo_epi32(_mm256_set1_epi32(pattern.cast_signed()), powers);
    let held = _mm256_permutex2var_epi32(load(low), _mm256_srli_epi32::<28>(patterns), load(high));
    let wanted = _mm256_rolv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<23>(patterns));
    _mm256_testc_si256(held, wanted) != 0
}

/// Any number of bits, round by round. Apart from the case of one round: an answer that is used for two things is taken apart
/// by the compiler.
#[target_feature(enable = "avx512vl")]
#[inline]
fn rounds_contain(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool {
    let (mut pattern, mut rest) = (pattern, probe_count);
    while rest > 0 {
        if !round_contains(line, pattern, powers(rest)) {
            return false;
        }
        rest = rest.saturating_sub(ROUND_PROBES);
        pattern = pattern.wrapping_mul(ROUND);
    }
    true
}

fn is_one_round(probe_count: u32) -> bool {
    (1..=ROUND_PROBES).contains(&probe_count)
}

#[target_feature(enable = "avx512vl")]
#[inline]
pub(super) fn line_contains(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool {
    if is_one_round(probe_count) {
        return round_contains(line, pattern, powers(probe_count));
    }
    rounds_contain(line, pattern, probe_count)
}

#[target_feature(enable = "avx512vl")]
pub(super) fn may_contain(lines: &[u8], line_count: u64, digest: u64, probe_count: u32) -> bool {
    match line::line_at(lines, line_count, digest) {
        Some(line) => line_contains(line, line::pattern(digest), probe_count),
        None => true,
    }
}

#[target_feature(enable = "avx512vl")]
pub(super) fn lines_contain(
    lines: &[u8],
    line_count: u64,
    digests: &[u64],
    probe_count: u32,
    answers: &mut [bool],
) {
    let powers = powers(probe_count);
    let is_far = lines.len() > NEAR_BYTES;
    let (lines, _) = lines.as_chunks::<LINE_BYTES>();
    let line_of = |digest: u64| lines.get(line::line_index(digest, line_count) as usize);
    for (digests, answers) in digests.chunks(PREFETCH_DIGESTS).zip(answers.chunks_mut(PREFETCH_DIGESTS)) {
        if is_far {
            let far = digests.iter().filter_map(|digest| line_of(*digest));
            far.for_each(|line| crate::prefetch(line, 0));
        }
        let asked = digests.iter().zip(answers);
        // Apart: without a branch for each digest where one round is enough.
        if is_one_round(probe_count) {
            for (digest, answer) in asked {
                let line = line_of(*digest);
                *answer = line.is_none_or(|line| round_contains(line, line::pattern(*digest), powers));
            }
        } else {
            for (digest, answer) in asked {
                let line = line_of(*digest);
                *answer = line.is_none_or(|line| rounds_contain(line, line::pattern(*digest), probe_count));
            }
        }
    }
}
