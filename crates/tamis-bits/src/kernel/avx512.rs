//! The questions to lines, and the setting of bits all over a filter, with AVX-512. A line alone is asked in registers of 256 bits:
//! eight bits at once, as in `x86_64.rs`, but the sixteen words of a line are one table, which takes a third of the instructions
//! off. Of many digests two are asked in one register of 512 bits: their two lines are one table of 32 words. What bounds both is
//! the port that multiplies and shifts, so that two keys in one register take two thirds of the time.
//!
//! The functions are safe for callers that are compiled for the same features; `kernel.rs` calls them behind a run-time check.
//! The only unsafe operations inside are loads from and stores to arrays of known length.

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_loadu_si256, _mm256_mullo_epi32, _mm256_permutex2var_epi32, _mm256_rolv_epi32,
    _mm256_set1_epi32, _mm256_srli_epi32, _mm256_storeu_si256, _mm256_testc_si256, _mm512_add_epi64,
    _mm512_castsi256_si512, _mm512_cvtepi64_epi32, _mm512_inserti64x4, _mm512_loadu_si512, _mm512_mul_epu32,
    _mm512_mullo_epi32, _mm512_mullo_epi64, _mm512_or_si512, _mm512_permutex2var_epi32,
    _mm512_permutexvar_epi32, _mm512_rolv_epi32, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_srli_epi32,
    _mm512_srli_epi64, _mm512_storeu_si512, _mm512_testn_epi32_mask, _mm512_xor_si512,
};

use super::x86_64::{ALL_POWERS, POWERS, ROUND, ROUND_PROBES};
use crate::line::{self, LINE_BYTES};
use crate::remix::{FACTORS, NUMBER_FACTOR};

/// Lines in fewer bytes than this are not fetched ahead: more reads are on their way than a cache of a core lets wait.
const NEAR_BYTES: usize = 16 << 20;

/// Lines that are fetched ahead at once.
const PREFETCH_DIGESTS: usize = 64;

/// Digests that are loaded at once.
const GROUP: usize = 8;

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
    let count = digests.len().min(answers.len());
    let (Some(digests), Some(answers)) = (digests.get(..count), answers.get_mut(..count)) else { return };
    let is_near = lines.len() <= NEAR_BYTES;
    let (lines, _) = lines.as_chunks::<LINE_BYTES>();
    match lines.get(..line_count as usize) {
        // Where all lines are there, no digest needs to be asked whether its line is.
        Some(lines) if probe_count > 0 && !lines.is_empty() => match (is_near, probe_count <= ROUND_PROBES) {
            (true, true) => whole_lines_contain::<false>(lines, digests, probe_count, answers),
            (true, false) => whole_lines_contain::<true>(lines, digests, probe_count, answers),
            (false, _) => far_lines_contain(lines, digests, probe_count, answers),
        },
        _ => {
            for (digest, answer) in digests.iter().zip(answers) {
                let line = lines.get(line::line_index(*digest, line_count) as usize);
                *answer = line.is_none_or(|line| line_contains(line, line::pattern(*digest), probe_count));
            }
        }
    }
}

/// [`whole_lines_contain`] of lines that are fetched ahead.
#[target_feature(enable = "avx512vl")]
#[inline(never)]
fn far_lines_contain(lines: &[[u8; LINE_BYTES]], digests: &[u64], probe_count: u32, answers: &mut [bool]) {
    for (digests, answers) in digests.chunks(PREFETCH_DIGESTS).zip(answers.chunks_mut(PREFETCH_DIGESTS)) {
        digests.iter().for_each(|digest| crate::prefetch(line_inside(lines, *digest), 0));
        if probe_count <= ROUND_PROBES {
            whole_lines_contain::<false>(lines, digests, probe_count, answers);
        } else {
            whole_lines_contain::<true>(lines, digests, probe_count, answers);
        }
    }
}

/// Asks for digests, as many as answers, two at a time, eight in a step, and for those left over one by one. `lines` are all there
/// are of the filter, one at least. Of what passes the first round, few of the absent keys, later ones are asked alone.
#[target_feature(enable = "avx512vl")]
#[inline(never)]
fn whole_lines_contain<const HAS_LATER: bool>(
    lines: &[[u8; LINE_BYTES]],
    digests: &[u64],
    probe_count: u32,
    answers: &mut [bool],
) {
    let pair = Pair::new(probe_count);
    let [first, second, third, fourth] = pair.spread;
    let step = |group: &[u64; GROUP]| {
        let all = load_wide(group);
        let [a, b, c, d, e, f, g, h] = *group;
        let missing = [
            pair.missing(lines, a, b, _mm512_permutexvar_epi32(first, all)),
            pair.missing(lines, c, d, _mm512_permutexvar_epi32(second, all)),
            pair.missing(lines, e, f, _mm512_permutexvar_epi32(third, all)),
            pair.missing(lines, g, h, _mm512_permutexvar_epi32(fourth, all)),
        ];
        let missing = missing.iter().rev().fold(0, |all, missing| (all << 16) | u64::from(*missing));
        let held = zero_bytes(missing);
        if HAS_LATER && held != 0 { later_rounds_hold(lines, group, probe_count, held) } else { held }
    };
    let (groups, rest) = digests.as_chunks::<GROUP>();
    let (grouped, rest_answers) = answers.split_at_mut(groups.len() * GROUP);
    for (group, answers) in groups.iter().zip(grouped.as_chunks_mut::<GROUP>().0) {
        *answers = bools(step(group));
    }
    for (digest, answer) in rest.iter().zip(rest_answers) {
        *answer = line_contains(line_inside(lines, *digest), line::pattern(*digest), probe_count);
    }
}

/// Of the digests of a group whose bytes in `held` are 1 those that pass the later rounds, too.
#[target_feature(enable = "avx512vl")]
#[inline(never)]
fn later_rounds_hold(lines: &[[u8; LINE_BYTES]], group: &[u64; GROUP], probe_count: u32, held: u64) -> u64 {
    let mut bytes = held.to_le_bytes();
    for (byte, digest) in bytes.iter_mut().zip(group) {
        let pattern = line::pattern(*digest).wrapping_mul(ROUND);
        *byte &= u8::from(
            *byte == 1 && rounds_contain(line_inside(lines, *digest), pattern, probe_count - ROUND_PROBES),
        );
    }
    u64::from_le_bytes(bytes)
}

/// The bytes of a word, each 0 or 1, as answers. Compared one by one they would cost as much as the lines.
#[inline(always)]
fn bools(word: u64) -> [bool; GROUP] {
    let bytes = (word & ONES).to_le_bytes();
    // SAFETY: a `bool` has the size and alignment of a byte, and each byte is 0 or 1: all its other bits were just cleared.
    unsafe { std::mem::transmute::<[u8; GROUP], [bool; GROUP]>(bytes) }
}

/// 1 in each byte.
const ONES: u64 = u64::from_le_bytes([1; GROUP]);

/// 1 for each byte of a word that is zero, and 0 for the others.
#[inline(always)]
const fn zero_bytes(word: u64) -> u64 {
    let low = u64::from_le_bytes([0x7f; GROUP]);
    (!(((word & low) + low) | word) >> 7) & ONES
}

/// The line of a digest among all lines of a filter, of which there is one at least.
#[inline(always)]
fn line_inside(lines: &[[u8; LINE_BYTES]], digest: u64) -> &[u8; LINE_BYTES] {
    debug_assert!(!lines.is_empty());
    let index = line::line_index(digest, lines.len() as u64) as usize;
    // SAFETY: the index is the high half of the product of a number below 2^64 and the number of lines, thus below the latter
    // where it is not zero; `lines_contain`, from where all calls come, asks for that.
    unsafe { lines.get_unchecked(index) }
}

/// What two lines are asked with in one register: the lower eight lanes belong to the first of them, the upper ones to the second.
struct Pair {
    powers: __m512i,
    /// What makes the number of a word one of the second line, in the upper lanes.
    second_line: __m512i,
    /// For each pair of a group: where the low halves of its digests stand among those of the group, lane by lane.
    spread: [__m512i; GROUP / 2],
}

impl Pair {
    #[target_feature(enable = "avx512vl")]
    #[inline]
    fn new(probe_count: u32) -> Self {
        let words_of_line = (LINE_BYTES / 4) as i32;
        let halves = |low: i32, high: i32| {
            let low = _mm512_set1_epi32(low);
            _mm512_inserti64x4::<1>(low, _mm256_set1_epi32(high))
        };
        let powers = powers(probe_count);
        Self {
            powers: _mm512_inserti64x4::<1>(_mm512_castsi256_si512(powers), powers),
            second_line: halves(0, words_of_line),
            spread: [halves(0, 2), halves(4, 6), halves(8, 10), halves(12, 14)],
        }
    }

    /// The lanes whose bit is not set, of the first round of two digests whose patterns fill the halves of a register.
    #[target_feature(enable = "avx512vl")]
    #[inline]
    fn missing(&self, lines: &[[u8; LINE_BYTES]], first: u64, second: u64, patterns: __m512i) -> u16 {
        let (first, second) = (line_inside(lines, first), line_inside(lines, second));
        let patterns = _mm512_mullo_epi32(patterns, self.powers);
        let words = _mm512_or_si512(_mm512_srli_epi32::<28>(patterns), self.second_line);
        let held = _mm512_permutex2var_epi32(load_line(first), words, load_line(second));
        let wanted = _mm512_rolv_epi32(_mm512_set1_epi32(1), _mm512_srli_epi32::<23>(patterns));
        _mm512_testn_epi32_mask(held, wanted)
    }
}

insert_forms!("avx512vl,bmi2", 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);

/// A key's bits are put together in a register from lines that hold one bit each, and the line is read and written once: bits set
/// one by one in memory wait for each other where they lie in the same word.
#[target_feature(enable = "avx512vl,bmi2")]
#[inline]
fn digest_insert<const PROBES: usize>(lines: &mut [u8], line_count: u64, digest: u64, pattern: u32) {
    let Some(line) = line::line_at_mut(lines, line_count, digest) else { return };
    let mut bits = load_line(line);
    for power in ALL_POWERS.iter().take(PROBES) {
        let address = pattern.wrapping_mul(*power) >> 23;
        if let Some(line) = BIT_LINES.0.get(address as usize) {
            bits = _mm512_or_si512(bits, load_line(line));
        }
    }
    store_line(line, bits);
}

/// For each bit of a line the line that holds this bit alone.
#[repr(C, align(64))]
struct BitLines([[u8; LINE_BYTES]; LINE_BYTES * 8]);

static BIT_LINES: BitLines = BitLines(bit_lines());

#[expect(clippy::indexing_slicing, reason = "constant evaluation, indexes below the lengths")]
const fn bit_lines() -> [[u8; LINE_BYTES]; LINE_BYTES * 8] {
    let mut lines = [[0; LINE_BYTES]; LINE_BYTES * 8];
    let mut bit = 0;
    while bit < lines.len() {
        lines[bit][bit / 8] = 1 << (bit % 8);
        bit += 1;
    }
    lines
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
fn store_line(line: &mut [u8; LINE_BYTES], value: __m512i) {
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
