//! The questions to a line, and the setting of bits all over a filter, with AVX-512. A line alone is asked in registers of 256 bits:
//! eight bits at once, as in `x86_64.rs`, but the sixteen words of a line are one table, which takes a third of the instructions
//! off. Many lines at once: `batch.rs`.
//!
//! The functions are safe for callers that are compiled for the same features; `kernel.rs` calls them behind a run-time check.
//! The only unsafe operations inside are loads from and stores to arrays of known length.

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_loadu_si256, _mm256_mullo_epi32, _mm256_permutex2var_epi32, _mm256_rolv_epi32,
    _mm256_set1_epi32, _mm256_srli_epi32, _mm256_storeu_si256, _mm256_testc_si256, _mm512_add_epi64,
    _mm512_cvtepi64_epi32, _mm512_loadu_si512, _mm512_mul_epu32, _mm512_mullo_epi64, _mm512_or_si512,
    _mm512_set1_epi64, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_xor_si512,
};

use super::batch;
use super::x86_64::{POWERS, ROUND, ROUND_PROBES};
use crate::line::{self, LINE_BYTES};
use crate::remix::{FACTORS, NUMBER_FACTOR};

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
pub(super) fn rounds_contain(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool {
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

#[inline(always)]
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
    match batch::Lines::new(lines, line_count) {
        // Where all lines are there, no digest needs to be asked whether its line is.
        Some(lines) if probe_count > 0 => batch::lines_contain(lines, digests, probe_count, answers),
        _ => super::x86_64::lines_contain(lines, line_count, digests, probe_count, answers),
    }
}

insert_forms!("avx512vl", 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);

/// Few lines at hand, or more than a filter has.
#[target_feature(enable = "avx512vl")]
fn lines_insert_each<const PROBES: usize>(
    lines: &mut [u8],
    line_count: u64,
    digests: &[u64],
    values: &[u64],
) {
    if !batch::lines_insert::<PROBES>(lines, line_count, digests, values) {
        super::portable::lines_insert_values(lines, line_count, digests, values, PROBES as u32);
    }
}

/// Values whose places are computed at once.
const LANES: usize = 8;

/// Bits of a value whose places are kept before they are set.
const PLACES_MAX: usize = 16;

/// The portable loop, of which the compiler makes vectors.
#[target_feature(enable = "avx512dq,avx512vl")]
pub(super) fn remix_each(values: &mut [u64], numbers: &[u64]) {
    super::portable::remix_each(values, numbers);
}

/// Eight values at a time: their places are computed in vectors, so that the loop that sets the bits is short and many of its reads
/// are on their way at once. Fewer than eight are set one by one.
#[target_feature(enable = "avx512dq,avx512vl,bmi2")]
pub(super) fn places_insert(bits: &mut [u8], bit_count: u64, values: &[u64], probe_count: u32) {
    let (groups, rest) = values.as_chunks::<LANES>();
    let factor = _mm512_set1_epi64(bit_count.cast_signed());
    let mut places = [[0; LANES]; PLACES_MAX];
    for values in groups {
        let (mut numbers, steps) = (load_wide(values), steps_of(load_wide(values)));
        let mut left = probe_count as usize;
        while left > 0 {
            let round = places.len().min(left);
            let places = places.get_mut(..round).unwrap_or_default();
            for places in places.iter_mut() {
                store(places, _mm512_cvtepi64_epi32(high_halves(numbers, factor)));
                numbers = _mm512_add_epi64(numbers, steps);
            }
            for place in places.as_flattened() {
                if let Some(byte) = bits.get_mut((place / 8) as usize) {
                    *byte |= (1_u32 << (place % 8)) as u8;
                }
            }
            left -= round;
        }
    }
    super::portable::places_insert(bits, bit_count, rest, probe_count);
}

/// [`step_of`](super::step_of) of eight values.
#[target_feature(enable = "avx512dq")]
#[inline]
fn steps_of(values: __m512i) -> __m512i {
    let [first, second] = FACTORS.map(|factor| _mm512_set1_epi64(factor.cast_signed()));
    let mut mixed = _mm512_xor_si512(values, _mm512_set1_epi64(NUMBER_FACTOR.cast_signed()));
    mixed = _mm512_mullo_epi64(_mm512_xor_si512(mixed, _mm512_srli_epi64::<30>(mixed)), first);
    mixed = _mm512_mullo_epi64(_mm512_xor_si512(mixed, _mm512_srli_epi64::<27>(mixed)), second);
    mixed = _mm512_xor_si512(mixed, _mm512_srli_epi64::<31>(mixed));
    _mm512_or_si512(mixed, _mm512_set1_epi64(1))
}

/// The high halves of the products of numbers of 64 bits and a factor of at most 32: the halves of a number times the factor,
/// added with what the lower product carries.
#[target_feature(enable = "avx512f")]
#[inline]
fn high_halves(numbers: __m512i, factor: __m512i) -> __m512i {
    let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(numbers), factor);
    let low = _mm512_mul_epu32(numbers, factor);
    _mm512_srli_epi64::<32>(_mm512_add_epi64(high, _mm512_srli_epi64::<32>(low)))
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn load_line(line: &[u8; LINE_BYTES]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes that are read; the load needs no alignment.
    unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn store_line(line: &mut [u8; LINE_BYTES], value: __m512i) {
    // SAFETY: the reference covers the 64 bytes that are written; the store needs no alignment.
    unsafe { _mm512_storeu_si512(line.as_mut_ptr().cast(), value) };
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load_wide(words: &[u64; LANES]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes that are read; the load needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx512vl")]
#[inline]
fn store(words: &mut [u32; LANES], value: __m256i) {
    // SAFETY: the reference covers the 32 bytes that are written; the store needs no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), value) };
}
