//! The steps of walks with AVX-512: a line is one register, and the answer of its comparison is a mask.
//!
//! The functions are safe for callers that are compiled for the same features; `kernel.rs` calls them behind a run-time check.
//! The only unsafe operation inside is a load from an array.

use std::arch::x86_64::{
    __m512i, _mm512_cmpeq_epi8_mask, _mm512_cmpge_epu8_mask, _mm512_loadu_si512, _mm512_set1_epi8, _pdep_u64,
};

use crate::line::LINE_BYTES;

#[target_feature(enable = "avx512vl,avx512bw,avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<T: super::Task>(task: T) -> T::Output {
    task.run(Wide(()))
}

/// The steps of walks with a line in one register: an instruction compares all its bytes, and its answer is a mask. Made by
/// `run` alone, so that the processor has what they need where there is a value.
#[derive(Debug, Clone, Copy)]
pub struct Wide(());

impl super::Steps for Wide {
    #[inline(always)]
    fn equal_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64 {
        // SAFETY: the processor has AVX-512BW, or there were no value of this type.
        unsafe { equal_mask(bytes, byte) }
    }

    #[inline(always)]
    fn not_smaller_mask(self, bytes: &[u8; LINE_BYTES], byte: u8) -> u64 {
        // SAFETY: the processor has AVX-512BW, or there were no value of this type.
        unsafe { not_smaller_mask(bytes, byte) }
    }

    #[inline(always)]
    fn nth_one(self, word: u64, rank: u32) -> u64 {
        // SAFETY: the processor has BMI2, or there were no value of this type.
        unsafe { _pdep_u64(1 << (rank & 63), word) }
    }
}

#[target_feature(enable = "avx512bw")]
#[inline]
fn load_line(line: &[u8; LINE_BYTES]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes that are read; the load needs no alignment.
    unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
}

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
