//! The questions to lines with AVX-512: a line is one register, and up to sixteen bits are asked for at once.
//!
//! The functions are safe for callers that are compiled for the same features; `kernel.rs` calls them behind a run-time check.
//! The only unsafe operation inside is a load from a slice whose length was checked.

use std::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_mullo_epi32, _mm512_permutexvar_epi32, _mm512_rolv_epi32,
    _mm512_set1_epi32, _mm512_srli_epi32, _mm512_testn_epi32_mask,
};

use super::x86_64::ALL_POWERS;
use crate::line::{self, LINE_BYTES, LINE_PROBE_MAX};

/// Lines in fewer bytes than this lie in a core's own cache, and so near that fetching them ahead costs more than it saves.
const NEAR_BYTES: usize = 2 << 20;

/// Lines that are fetched ahead at once.
const PREFETCH_DIGESTS: usize = 64;

#[target_feature(enable = "avx512f")]
#[inline]
fn load(words: &[u8; LINE_BYTES]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes that are read; the load needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn power_lanes() -> __m512i {
    // SAFETY: the array has the 64 bytes that are read; the load needs no alignment.
    unsafe { _mm512_loadu_si512(ALL_POWERS.as_ptr().cast()) }
}

/// A bit for each lane that is asked.
fn used_lanes(probe_count: u32) -> u16 {
    ((1_u32 << probe_count.min(LINE_PROBE_MAX)) - 1) as u16
}

/// Lane by lane: the word that the top four bits of the pattern name, and in it the bit that the next five name. A rotation
/// looks at these five only.
#[target_feature(enable = "avx512f")]
#[inline]
fn contains(line: &[u8; LINE_BYTES], pattern: u32, powers: __m512i, used: u16) -> bool {
    let patterns = _mm512_mullo_epi32(_mm512_set1_epi32(pattern.cast_signed()), powers);
    let held = _mm512_permutexvar_epi32(_mm512_srli_epi32::<28>(patterns), load(line));
    let wanted = _mm512_rolv_epi32(_mm512_set1_epi32(1), _mm512_srli_epi32::<23>(patterns));
    _mm512_testn_epi32_mask(held, wanted) & used == 0
}

#[target_feature(enable = "avx512f")]
pub(super) fn line_contains(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool {
    contains(line, pattern, power_lanes(), used_lanes(probe_count))
}

#[target_feature(enable = "avx512f")]
pub(super) fn may_contain(lines: &[u8], line_count: u64, digest: u64, probe_count: u32) -> bool {
    match line::line_at(lines, line_count, digest) {
        Some(line) => contains(line, line::pattern(digest), power_lanes(), used_lanes(probe_count)),
        None => true,
    }
}

#[target_feature(enable = "avx512f")]
pub(super) fn lines_contain(
    lines: &[u8],
    line_count: u64,
    digests: &[u64],
    probe_count: u32,
    answers: &mut [bool],
) {
    let (powers, used) = (power_lanes(), used_lanes(probe_count));
    for (digests, answers) in digests.chunks(PREFETCH_DIGESTS).zip(answers.chunks_mut(PREFETCH_DIGESTS)) {
        if lines.len() > NEAR_BYTES {
            digests.iter().for_each(|digest| line::prefetch_line(lines, line_count, *digest));
        }
        let (whole, _) = lines.as_chunks::<LINE_BYTES>();
        for (digest, answer) in digests.iter().zip(answers) {
            let line = whole.get(line::line_index(*digest, line_count) as usize);
            *answer = line.is_none_or(|line| contains(line, line::pattern(*digest), powers, used));
        }
    }
}
