//! Line queries and scattered bits with AVX-512. A single line is tested for all bits of a key at once: its sixteen
//! words are one table, and a key has at most as many bits. Batches of lines: `batch.rs`.
//!
//! The functions are safe for callers that are compiled for the same features; `kernel.rs` calls them after a run-time
//! check. The only unsafe operations inside are loads from and stores to arrays of known length.

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_storeu_si256, _mm512_add_epi64, _mm512_cvtepi64_epi32, _mm512_loadu_si512,
    _mm512_mul_epu32, _mm512_mullo_epi64, _mm512_or_si512, _mm512_rol_epi64, _mm512_set1_epi64,
    _mm512_srli_epi64, _mm512_xor_si512,
};

pub(super) use super::avx512_line::line_contains;
use super::{Step, batch};
use crate::line;
use crate::mix64::{FACTORS, NUMBER_FACTOR};

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
        // If all lines exist, no digest needs a bounds check.
        Some(lines) if probe_count > 0 => batch::lines_contain(lines, digests, probe_count, answers),
        _ => super::x86_64::lines_contain(lines, line_count, digests, probe_count, answers),
    }
}

insert_forms!("avx512vl", 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);

/// Too few lines in memory, or more than a filter has.
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

/// Number of values whose positions are computed at once.
const LANES: usize = 8;

/// Number of positions per value that are buffered before the bits are set.
const PLACES_MAX: usize = 16;

/// The portable loop, which the compiler vectorises.
#[target_feature(enable = "avx512dq,avx512vl")]
pub(super) fn mix64_each(values: &mut [u64], numbers: &[u64]) {
    super::portable::mix64_each(values, numbers);
}

/// Eight values at a time: vectors compute their positions, so that the loop that sets the bits is short and many of
/// its reads overlap. Fewer than eight are processed one by one.
#[target_feature(enable = "avx512dq,avx512vl,bmi2")]
pub(super) fn places_insert(bits: &mut [u8], bit_count: u64, values: &[u64], probe_count: u32, step: Step) {
    let (groups, rest) = values.as_chunks::<LANES>();
    let factor = _mm512_set1_epi64(bit_count.cast_signed());
    let mut places = [[0; LANES]; PLACES_MAX];
    for values in groups {
        let mut numbers = load_wide(values);
        let steps = match step {
            Step::Mixed => mixed(numbers),
            Step::Halves => _mm512_rol_epi64::<32>(numbers),
        };
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
    super::portable::places_insert(bits, bit_count, rest, probe_count, step);
}

/// [`Step::Mixed`] of eight values.
#[target_feature(enable = "avx512dq")]
#[inline]
fn mixed(values: __m512i) -> __m512i {
    let [first, second] = FACTORS.map(|factor| _mm512_set1_epi64(factor.cast_signed()));
    let mut mixed = _mm512_xor_si512(values, _mm512_set1_epi64(NUMBER_FACTOR.cast_signed()));
    mixed = _mm512_mullo_epi64(_mm512_xor_si512(mixed, _mm512_srli_epi64::<30>(mixed)), first);
    mixed = _mm512_mullo_epi64(_mm512_xor_si512(mixed, _mm512_srli_epi64::<27>(mixed)), second);
    mixed = _mm512_xor_si512(mixed, _mm512_srli_epi64::<31>(mixed));
    _mm512_or_si512(mixed, _mm512_set1_epi64(1))
}

/// The high halves of the products of 64-bit numbers and a factor of at most 32 bits: the halves of a number times the
/// factor, added with the carry of the lower product.
#[target_feature(enable = "avx512f")]
#[inline]
fn high_halves(numbers: __m512i, factor: __m512i) -> __m512i {
    let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(numbers), factor);
    let low = _mm512_mul_epu32(numbers, factor);
    _mm512_srli_epi64::<32>(_mm512_add_epi64(high, _mm512_srli_epi64::<32>(low)))
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
