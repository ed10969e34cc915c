//! The kernels with AVX2, POPCNT and BMI instructions.
//!
//! The functions are safe for callers that are compiled for the same features; `kernel.rs` calls them after a run-time
//! check. The only unsafe operations inside are loads from slices whose length was checked.

#![expect(clippy::indexing_slicing, reason = "arrays of known length, indexes that are masked or constant")]

use std::arch::x86_64::{
    __m256i, _mm256_blendv_ps, _mm256_castps_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi8,
    _mm256_cmpgt_epi32, _mm256_loadu_si256, _mm256_max_epu8, _mm256_movemask_epi8, _mm256_mullo_epi32,
    _mm256_permutevar8x32_epi32, _mm256_set1_epi8, _mm256_set1_epi32, _mm256_setr_epi32, _mm256_slli_epi32,
    _mm256_sllv_epi32, _mm256_srli_epi32, _mm256_testc_si256, _pdep_u64,
};

use crate::line::{self, LINE_BYTES};

/// Number of bits that are tested at once.
const ROUND_PROBES: u32 = 8;

/// The step of [`crate::line`] to the powers 0 to 7.
const POWERS: [u32; ROUND_PROBES as usize] = super::powers();
/// The step to the power 8: from one round of eight bits to the next.
const ROUND: u32 = POWERS[7].wrapping_mul(line::STEP);

#[target_feature(enable = "avx2")]
#[inline]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference covers the 32 bytes that are read; the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn halves(line: &[u8; LINE_BYTES]) -> (__m256i, __m256i) {
    let (halves, _) = line.as_chunks::<32>();
    (load(&halves[0]), load(&halves[1]))
}

#[target_feature(enable = "avx2")]
fn power_lanes() -> __m256i {
    let [a, b, c, d, e, f, g, h] = POWERS.map(u32::cast_signed);
    _mm256_setr_epi32(a, b, c, d, e, f, g, h)
}

/// Ones in the lanes of the first `count` bits of a round, zeros in the others.
#[target_feature(enable = "avx2")]
fn lane_ones(count: u32) -> __m256i {
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let used = _mm256_cmpgt_epi32(_mm256_set1_epi32(count.cast_signed()), lanes);
    _mm256_srli_epi32::<31>(used)
}

/// Whether the bits of one round are set: lane by lane, the word selected by the top four bits of the pattern, and in
/// it the bit selected by the next five.
#[target_feature(enable = "avx2")]
fn round_contains(low: __m256i, high: __m256i, patterns: __m256i, ones: __m256i) -> bool {
    let words = _mm256_srli_epi32::<28>(patterns);
    let low_words = _mm256_permutevar8x32_epi32(low, words);
    let high_words = _mm256_permutevar8x32_epi32(high, words);
    // The top bit of the pattern selects the half; the blend uses the top bit of each lane.
    let selected = _mm256_castps_si256(_mm256_blendv_ps(
        _mm256_castsi256_ps(low_words),
        _mm256_castsi256_ps(high_words),
        _mm256_castsi256_ps(patterns),
    ));
    let bits = _mm256_srli_epi32::<27>(_mm256_slli_epi32::<4>(patterns));
    let wanted = _mm256_sllv_epi32(ones, bits);
    _mm256_testc_si256(selected, wanted) != 0
}

/// The patterns of the bits of one round.
#[target_feature(enable = "avx2")]
fn round_patterns(pattern: u32) -> __m256i {
    _mm256_mullo_epi32(_mm256_set1_epi32(pattern.cast_signed()), power_lanes())
}

#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn line_contains(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool {
    let (low, high) = halves(line);
    // A `false` ends the lookup: with a second use of the result, the compiler would extract it from the register.
    if !round_contains(low, high, round_patterns(pattern), lane_ones(probe_count)) {
        return false;
    }
    probe_count <= ROUND_PROBES || later_rounds_contain(low, high, pattern, probe_count)
}

#[target_feature(enable = "avx2")]
pub(super) fn may_contain(lines: &[u8], line_count: u64, digest: u64, probe_count: u32) -> bool {
    match line::line_at(lines, line_count, digest) {
        Some(line) => line_contains(line, line::pattern(digest), probe_count),
        None => true,
    }
}

/// The rounds after the first, which most absent keys do not pass.
#[target_feature(enable = "avx2")]
fn later_rounds_contain(low: __m256i, high: __m256i, pattern: u32, probe_count: u32) -> bool {
    let mut pattern = pattern;
    let mut rest = probe_count;
    while rest > ROUND_PROBES {
        rest -= ROUND_PROBES;
        pattern = pattern.wrapping_mul(ROUND);
        if !round_contains(low, high, round_patterns(pattern), lane_ones(rest)) {
            return false;
        }
    }
    true
}

#[target_feature(enable = "popcnt")]
pub(super) fn rank_in_line(line: &[u8; LINE_BYTES], bit_count: u32) -> u32 {
    let mut rank = 0;
    // Without a branch on the position: each word is masked to the bits that count.
    for (index, word) in line.as_chunks::<8>().0.iter().enumerate() {
        let bits = bit_count.saturating_sub(index as u32 * 64).min(64);
        let mask = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
        rank += (u64::from_le_bytes(*word) & mask).count_ones();
    }
    rank
}

/// A branch on the word would be mispredicted: counts all eight words without one.
#[target_feature(enable = "popcnt,bmi1,bmi2")]
#[inline]
pub(super) fn select_in_line(line: &[u8; LINE_BYTES], rank: u32, flip: u64) -> u32 {
    let (words, _) = line.as_chunks::<8>();
    let (mut index, mut before, mut sum) = (0, 0, 0);
    for word in words {
        sum += (u64::from_le_bytes(*word) ^ flip).count_ones();
        let is_passed = sum <= rank;
        index += u32::from(is_passed);
        before = if is_passed { sum } else { before };
    }
    let Some(word) = words.get(index as usize) else { return 512 };
    let word = u64::from_le_bytes(*word) ^ flip;
    index * 64 + _pdep_u64(1 << ((rank - before) & 63), word).trailing_zeros()
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<T: super::Task>(task: T) -> T::Output {
    task.run(Vector(()))
}

/// The operations of searches with AVX2 and BMI2. Only `run` creates it, so a value is proof of the processor's features.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vector(());

impl super::Steps for Vector {
    #[inline(always)]
    fn equal_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64 {
        // SAFETY: a value of this type exists only if the processor has the features that `run` is compiled for.
        unsafe { equal_mask(bytes, byte) }
    }

    #[inline(always)]
    fn not_smaller_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64 {
        // SAFETY: as above.
        unsafe { not_smaller_mask(bytes, byte) }
    }

    #[inline(always)]
    fn nth_one(self, word: u64, rank: u32) -> u64 {
        // SAFETY: as above.
        unsafe { _pdep_u64(1 << (rank & 63), word) }
    }

    #[inline(always)]
    fn nth_run(self, word: u64, rank: u32) -> u64 {
        // SAFETY: as above.
        let ends = unsafe { _pdep_u64(3 << (rank & 63), word) };
        (ends & ends.wrapping_sub(1)).wrapping_sub(ends & ends.wrapping_neg())
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn equal_mask(bytes: &[u8; LINE_BYTES], byte: u8) -> u64 {
    let (low, high) = halves(bytes);
    let wanted = _mm256_set1_epi8(byte.cast_signed());
    join(_mm256_cmpeq_epi8(low, wanted), _mm256_cmpeq_epi8(high, wanted))
}

/// A byte is at least `byte` if the maximum of both equals it.
#[target_feature(enable = "avx2")]
#[inline]
fn not_smaller_mask(bytes: &[u8; LINE_BYTES], byte: u8) -> u64 {
    let (low, high) = halves(bytes);
    let bound = _mm256_set1_epi8(byte.cast_signed());
    join(
        _mm256_cmpeq_epi8(_mm256_max_epu8(low, bound), low),
        _mm256_cmpeq_epi8(_mm256_max_epu8(high, bound), high),
    )
}

/// The top bits of the bytes of two halves.
#[target_feature(enable = "avx2")]
#[inline]
fn join(low: __m256i, high: __m256i) -> u64 {
    let low = _mm256_movemask_epi8(low).cast_unsigned();
    let high = _mm256_movemask_epi8(high).cast_unsigned();
    u64::from(high) << 32 | u64::from(low)
}
