//! One line in one AVX-512 register: reading and writing it, and testing all bits of a key at once.
//!
//! The sixteen words of the line are one table, and a key sets at most sixteen bits. The functions are safe for
//! callers that are compiled for the same features; `kernel.rs` calls them after a run-time check. The only unsafe
//! operations inside are loads from and stores to arrays of known length.

use std::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_mask_testn_epi32_mask, _mm512_mullo_epi32, _mm512_permutexvar_epi32,
    _mm512_rolv_epi32, _mm512_set1_epi32, _mm512_srli_epi32, _mm512_storeu_si512,
};

use super::x86_64::ALL_POWERS;
use crate::line::{LINE_BYTES, LINE_PROBE_MAX};

/// Lane by lane: the word selected by the top four bits of a pattern, and in it the bit selected by the next five; a
/// rotation uses only these five. Lanes beyond the number of bits are masked out.
#[target_feature(enable = "avx512vl")]
#[inline]
pub(super) fn line_contains(line: &[u8; LINE_BYTES], pattern: u32, probe_count: u32) -> bool {
    let patterns = _mm512_mullo_epi32(_mm512_set1_epi32(pattern.cast_signed()), load_lanes(&ALL_POWERS));
    let selected = _mm512_permutexvar_epi32(_mm512_srli_epi32::<28>(patterns), load_line(line));
    let wanted = _mm512_rolv_epi32(_mm512_set1_epi32(1), _mm512_srli_epi32::<23>(patterns));
    let tested = ((1_u32 << (probe_count & 31)) - 1) as u16;
    _mm512_mask_testn_epi32_mask(tested, selected, wanted) == 0
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
pub(super) fn load_lanes(words: &[u32; LINE_PROBE_MAX as usize]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes that are read; the load needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}
