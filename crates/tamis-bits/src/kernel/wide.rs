//! The operations of searches with AVX-512: a line is one register, and a comparison returns a mask.
//!
//! The functions are safe for callers that are compiled for the same features; `kernel.rs` calls them after a run-time
//! check.

use std::arch::x86_64::{
    _mm_cvtsi32_si128, _mm512_cmpeq_epi8_mask, _mm512_cmpeq_epi64_mask, _mm512_cmpge_epu8_mask,
    _mm512_set1_epi8, _mm512_set1_epi64, _mm512_srl_epi64, _pdep_u64,
};

use super::avx512_line::load_line;
use crate::line::LINE_BYTES;

#[target_feature(enable = "avx512vl,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<T: super::Task>(task: T) -> T::Output {
    task.run(Wide(()))
}

/// The operations of searches with a line in one register: one instruction compares all its bytes and returns a mask.
/// Only `run` creates it, so a value is proof of the processor's features.
#[derive(Debug, Clone, Copy)]
pub struct Wide(());

steps_form!(Wide);

#[target_feature(enable = "avx512bw")]
#[inline]
fn equal_mask(line: &[u8; LINE_BYTES], byte: u8) -> u64 {
    _mm512_cmpeq_epi8_mask(load_line(line), _mm512_set1_epi8(byte.cast_signed()))
}

#[target_feature(enable = "avx512bw")]
#[inline]
fn not_smaller_mask(line: &[u8; LINE_BYTES], byte: u8) -> u64 {
    _mm512_cmpge_epu8_mask(load_line(line), _mm512_set1_epi8(byte.cast_signed()))
}

#[target_feature(enable = "avx512bw")]
#[inline]
fn equal_words(line: &[u8; LINE_BYTES], word: u64, shift: u32) -> u32 {
    let shifted = |words| _mm512_srl_epi64(words, _mm_cvtsi32_si128(shift.cast_signed()));
    let wanted = _mm512_set1_epi64(word.cast_signed());
    u32::from(_mm512_cmpeq_epi64_mask(shifted(load_line(line)), shifted(wanted)))
}
