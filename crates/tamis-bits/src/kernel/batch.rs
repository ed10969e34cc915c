//! Batches of digests in many lines with AVX-512: lookup and insertion.
//!
//! One register locates eight digests: the offsets of their lines, which are prefetched, and their patterns. They are
//! stored in memory, 64 digests ahead of their use: the scalar unit reads offsets from there, since a multiplication
//! per digest would take a port that vectors need. **Lookup**: two keys share a register of 512 bits, their two lines
//! are one table of 32 words, and each pair of lanes alternates: lanes 0 and 1 of four belong to the first key, 2 and
//! 3 to the second, so that a load distributes the patterns. **Insertion**: a register combines a key's bits from
//! lines with one bit each, and the line is read and written once: bits that are set one by one in memory wait for
//! each other if they are in the same word.
//!
//! The functions are safe for callers that are compiled for the same features. The only unsafe operations inside are
//! loads from and stores to arrays of known length, and references to lines with valid indexes.

#![expect(clippy::indexing_slicing, reason = "arrays of known length, indexes that are constant or cut")]

use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm512_add_epi64, _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_loadu_si512,
    _mm512_mul_epu32, _mm512_mullo_epi32, _mm512_or_si512, _mm512_permutex2var_epi32, _mm512_rolv_epi32,
    _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setr_epi32, _mm512_shuffle_epi32, _mm512_srli_epi32,
    _mm512_srli_epi64, _mm512_storeu_si512, _mm512_testn_epi32_mask,
};

use super::avx512_line::{line_contains, load_lanes as load, load_line, store_line};
use super::x86_64::{POWERS, ROUND_PROBES};
use crate::line::{self, LINE_BYTES};

type Line = [u8; LINE_BYTES];

/// Number of digests that are located and looked up at once.
const GROUP: usize = 8;

/// Number of groups whose lines are prefetched before the first of them is looked up.
const PREFETCH_GROUPS: usize = 8;

/// Lanes of a register.
const LANES: usize = 16;

/// Data of a group of digests before its lines are read.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Located {
    /// In the odd elements: the offset of the line of a digest.
    offsets: [u32; LANES],
    /// The pattern of each digest, twice.
    patterns: [u32; LANES],
}

impl Located {
    const NONE: Self = Self { offsets: [0; LANES], patterns: [0; LANES] };

    #[inline(always)]
    const fn offset(&self, number: usize) -> u32 {
        self.offsets[(2 * number + 1) % LANES]
    }
}

/// All lines of a filter: at least one, and few enough for 32-bit byte offsets.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    lines: &'a [Line],
    /// Bytes of the lines, in each lane.
    bytes: __m512i,
}

impl<'a> Lines<'a> {
    /// `None` if lines are missing, or if there are too many or none.
    #[target_feature(enable = "avx512vl")]
    #[inline]
    pub(super) fn new(bytes: &'a [u8], line_count: u64) -> Option<Self> {
        let (lines, _) = bytes.as_chunks::<LINE_BYTES>();
        let lines = lines.get(..usize::try_from(line_count).ok()?)?;
        let bytes = u32::try_from(lines.as_flattened().len()).ok().filter(|bytes| *bytes > 0)?;
        Some(Self { lines, bytes: _mm512_set1_epi64(i64::from(bytes)) })
    }

    /// The line at an offset that [`Lines::offsets`] returned.
    #[inline(always)]
    fn at(&self, offset: u32) -> &'a Line {
        debug_assert!((offset as usize) < self.lines.as_flattened().len() && offset.is_multiple_of(64));
        // SAFETY: `offsets` returns multiples of a line's size below the number of all bytes, which is not 0.
        unsafe { &*self.lines.as_ptr().cast::<u8>().add(offset as usize).cast::<Line>() }
    }

    /// The offset of a digest's line, in the upper half of each lane: the high half of the product of the digest and
    /// the number of bytes, rounded down to whole lines. That is the line of [`line::line_index`]: rounding the
    /// product down to a multiple of 64 equals the product with a 64th of the bytes.
    #[target_feature(enable = "avx512vl")]
    #[inline]
    fn offsets(&self, digests: __m512i) -> __m512i {
        let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(digests), self.bytes);
        let low = _mm512_srli_epi64::<32>(_mm512_mul_epu32(digests, self.bytes));
        let whole = _mm512_set1_epi32(-(LINE_BYTES as i32));
        _mm512_and_si512(_mm512_add_epi64(high, low), whole)
    }

    /// Locates a group and prefetches its lines.
    #[target_feature(enable = "avx512vl")]
    #[inline]
    fn locate(&self, digests: &[u64; GROUP]) -> Located {
        let mut located = Located::NONE;
        let digests = load_words(digests);
        store(&mut located.offsets, self.offsets(digests));
        store(&mut located.patterns, _mm512_shuffle_epi32::<0b1010_0000>(digests));
        located
    }

    #[inline(always)]
    fn fetch(&self, located: &Located) {
        for number in 0..GROUP {
            crate::prefetch(self.at(located.offset(number)), 0);
        }
    }
}

/// [`super::lines_contain`] for `probe_count` above 0.
#[target_feature(enable = "avx512vl")]
#[inline]
pub(super) fn lines_contain(lines: Lines<'_>, digests: &[u64], probe_count: u32, answers: &mut [bool]) {
    let count = digests.len().min(answers.len());
    let (digests, answers) = (&digests[..count], &mut answers[..count]);
    if probe_count <= ROUND_PROBES {
        contain::<false>(lines, digests, probe_count, answers);
    } else {
        contain::<true>(lines, digests, probe_count, answers);
    }
}

/// Looks up a group while the lines of later ones are being fetched. Digests that pass the first round, few of the
/// absent keys, are tested one by one for all their bits.
#[target_feature(enable = "avx512vl")]
#[inline(never)]
fn contain<const HAS_MORE: bool>(lines: Lines<'_>, digests: &[u64], probe_count: u32, answers: &mut [bool]) {
    let pairs = Pairs::new(probe_count);
    let (groups, rest) = digests.as_chunks::<GROUP>();
    let (group_answers, rest_answers) = answers.as_chunks_mut::<GROUP>();
    let mut ring = [Located::NONE; PREFETCH_GROUPS];
    for (slot, group) in ring.iter_mut().zip(groups) {
        *slot = lines.locate(group);
        lines.fetch(slot);
    }
    let test = |located: &Located, group: &[u64; GROUP]| {
        let passed = pairs.passed(lines, located);
        if HAS_MORE && passed != 0 {
            test_all_bits(lines, group, located, probe_count, passed)
        } else {
            passed
        }
    };
    for (number, (group, answers)) in groups.iter().zip(group_answers).enumerate() {
        let slot = &mut ring[number % PREFETCH_GROUPS];
        *answers = bools(test(slot, group));
        if let Some(next) = groups.get(number + PREFETCH_GROUPS) {
            *slot = lines.locate(next);
            lines.fetch(slot);
        }
    }
    if !rest.is_empty() {
        let mut group = [0; GROUP];
        group.iter_mut().zip(rest).for_each(|(target, digest)| *target = *digest);
        let passed = bools(test(&lines.locate(&group), &group));
        rest_answers.iter_mut().zip(passed).for_each(|(answer, passed)| *answer = passed);
    }
}

/// Of the digests of a group whose bytes in `passed` are 1, those whose lines have all their bits set.
#[target_feature(enable = "avx512vl")]
#[inline(never)]
fn test_all_bits(
    lines: Lines<'_>,
    group: &[u64; GROUP],
    located: &Located,
    probe_count: u32,
    passed: u64,
) -> u64 {
    let mut bytes = passed.to_le_bytes();
    for (number, (byte, digest)) in bytes.iter_mut().zip(group).enumerate() {
        if *byte == 1 {
            let line = lines.at(located.offset(number));
            *byte = u8::from(line_contains(line, line::pattern(*digest), probe_count));
        }
    }
    u64::from_le_bytes(bytes)
}

/// The bytes of a word, each 0 or 1, as answers. Comparing them one by one would cost as much as the lines.
#[inline(always)]
fn bools(word: u64) -> [bool; GROUP] {
    let bytes = (word & ONES).to_le_bytes();
    // SAFETY: a `bool` has the size and alignment of a byte, and each byte is 0 or 1: all its other bits were just cleared.
    unsafe { std::mem::transmute::<[u8; GROUP], [bool; GROUP]>(bytes) }
}

/// 1 in each byte.
const ONES: u64 = u64::from_le_bytes([1; GROUP]);

/// Constants for looking up two keys in one register.
struct Pairs {
    powers: __m512i,
    /// Added to the word indexes of the second key's lanes, to select its line.
    second_line: __m512i,
}

impl Pairs {
    #[target_feature(enable = "avx512vl")]
    #[inline]
    fn new(probe_count: u32) -> Self {
        let row = probe_count.clamp(1, ROUND_PROBES) as usize - 1;
        let words = (LINE_BYTES / 4) as i32;
        Self {
            powers: load(&PAIR_POWERS[row]),
            second_line: _mm512_setr_epi32(
                0, 0, words, words, 0, 0, words, words, 0, 0, words, words, 0, 0, words, words,
            ),
        }
    }

    /// A byte per key of a group: 1 if its line has the bits of the first round set.
    #[target_feature(enable = "avx512vl")]
    #[inline]
    fn passed(&self, lines: Lines<'_>, located: &Located) -> u64 {
        let missing = u64::from(self.missing(lines, located, 0))
            | u64::from(self.missing(lines, located, 1)) << 16
            | u64::from(self.missing(lines, located, 2)) << 32
            | u64::from(self.missing(lines, located, 3)) << 48;
        // Of each sixteen bits, 0, 1, 4, 5 and so on belong to the first key, the others to the second.
        let missing = missing | (missing >> 8);
        let missing = missing | (missing >> 4);
        let missing = missing | (missing >> 1);
        let first = missing & FIRST_OF_PAIRS;
        let second = (missing >> 2) & FIRST_OF_PAIRS;
        !(first | (second << 8)) & ONES
    }

    /// The lanes whose bit is not set, of the first round of a pair of keys.
    #[target_feature(enable = "avx512vl")]
    #[inline]
    fn missing(&self, lines: Lines<'_>, located: &Located, pair: usize) -> u16 {
        let (first, second) = (lines.at(located.offset(2 * pair)), lines.at(located.offset(2 * pair + 1)));
        let (quads, _) = located.patterns.as_chunks::<4>();
        let patterns = _mm512_mullo_epi32(repeat_quad(&quads[pair]), self.powers);
        let words = _mm512_or_si512(_mm512_srli_epi32::<28>(patterns), self.second_line);
        let selected = _mm512_permutex2var_epi32(load_line(first), words, load_line(second));
        // A rotation uses only five bits of its count.
        let wanted = _mm512_rolv_epi32(_mm512_set1_epi32(1), _mm512_srli_epi32::<23>(patterns));
        _mm512_testn_epi32_mask(selected, wanted)
    }
}

/// The lowest of each sixteen bits.
const FIRST_OF_PAIRS: u64 = 0x0001_0001_0001_0001;

/// For 1 to 8 bits of a round: the powers of the step in the lanes of a pair, with the first one repeated if there are
/// fewer bits. Testing a bit twice changes no answer, and costs less than masking it out.
static PAIR_POWERS: [[u32; LANES]; ROUND_PROBES as usize] = pair_powers();

const fn pair_powers() -> [[u32; LANES]; ROUND_PROBES as usize] {
    let mut all = [[1; LANES]; ROUND_PROBES as usize];
    let mut row = 0;
    while row < all.len() {
        let mut lane = 0;
        while lane < LANES {
            let power = lane / 4 * 2 + lane % 2;
            if power <= row {
                all[row][lane] = POWERS[power];
            }
            lane += 1;
        }
        row += 1;
    }
    all
}

/// Lines in fewer bytes than this are not prefetched before their bits are set: the prefetches would exceed the
/// outstanding misses of the L2 cache.
const PREFETCH_BYTES_MIN: usize = 2 << 20;

/// Number of keys whose bits are set together.
const INSERT_GROUP: usize = 16;

/// Sets the bits of many keys: `digests` determine the lines, the low halves of `values` the bits. Returns `false` and
/// does nothing if lines are missing, or if there are too many or none.
#[target_feature(enable = "avx512vl")]
#[inline]
pub(super) fn lines_insert<const PROBES: usize>(
    bytes: &mut [u8],
    line_count: u64,
    digests: &[u64],
    values: &[u64],
) -> bool {
    let (lines, _) = bytes.as_chunks_mut::<LINE_BYTES>();
    let count = u32::try_from(line_count).ok().filter(|count| *count > 0);
    let Some(lines) = count.and_then(|count| lines.get_mut(..count as usize)) else { return false };
    let key_count = digests.len().min(values.len());
    let (digests, values) = (&digests[..key_count], &values[..key_count]);
    let (groups, rest) = digests.as_chunks::<INSERT_GROUP>();
    let (value_groups, rest_values) = values.as_chunks::<INSERT_GROUP>();
    let is_prefetched = lines.as_flattened().len() > PREFETCH_BYTES_MIN;
    let mut places = Places([[0; INSERT_GROUP]; PROBES]);
    for (number, (group, values)) in groups.iter().zip(value_groups).enumerate() {
        if is_prefetched && let Some(next) = groups.get(number + 1) {
            next.iter()
                .for_each(|digest| line::prefetch_whole_line(lines.as_flattened(), line_count, *digest));
        }
        places.fill(values);
        for (key, digest) in group.iter().enumerate() {
            let index = line::line_index(*digest, line_count) as usize;
            // SAFETY: the high half of the product of a 64-bit number and the number of lines is below the latter.
            let line = unsafe { lines.get_unchecked_mut(index) };
            store_line(line, places.add_to(load_line(line), key));
        }
    }
    for (digest, value) in rest.iter().zip(rest_values) {
        let index = line::line_index(*digest, line_count) as usize;
        line::insert(&mut lines[index], line::pattern(*value), PROBES as u32);
    }
    true
}

/// For each bit of each key of a group: the offset in [`BIT_LINES`] of the line with only this bit.
#[repr(C, align(64))]
struct Places<const PROBES: usize>([[u32; INSERT_GROUP]; PROBES]);

impl<const PROBES: usize> Places<PROBES> {
    #[target_feature(enable = "avx512vl")]
    #[inline]
    fn fill(&mut self, values: &[u64; INSERT_GROUP]) {
        let (halves, _) = values.as_chunks::<GROUP>();
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let mut patterns = _mm512_permutex2var_epi32(load_words(&halves[0]), even, load_words(&halves[1]));
        for places in &mut self.0 {
            // The top nine bits, times the size of a line.
            let place = _mm512_and_si512(_mm512_srli_epi32::<17>(patterns), _mm512_set1_epi32(511 << 6));
            store(places, place);
            patterns = _mm512_mullo_epi32(patterns, _mm512_set1_epi32(line::STEP.cast_signed()));
        }
    }

    /// A line and the bits of a key.
    #[target_feature(enable = "avx512vl")]
    #[inline]
    fn add_to(&self, line: __m512i, key: usize) -> __m512i {
        let mut bits = line;
        for places in &self.0 {
            let place = places[key % INSERT_GROUP] as usize;
            debug_assert!(place / LINE_BYTES < BIT_LINES.0.len());
            // SAFETY: `fill` masked the index to one of the 512 lines of the table.
            let single = unsafe { &*BIT_LINES.0.as_ptr().cast::<u8>().add(place).cast::<Line>() };
            bits = _mm512_or_si512(bits, load_line(single));
        }
        bits
    }
}

/// For each bit of a line, the line with only this bit.
#[repr(C, align(64))]
struct BitLines([Line; LINE_BYTES * 8]);

static BIT_LINES: BitLines = BitLines(bit_lines());

const fn bit_lines() -> [Line; LINE_BYTES * 8] {
    let mut lines = [[0; LINE_BYTES]; LINE_BYTES * 8];
    let mut bit = 0;
    while bit < lines.len() {
        lines[bit][bit / 8] = 1 << (bit % 8);
        bit += 1;
    }
    lines
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load_words(words: &[u64; GROUP]) -> __m512i {
    // SAFETY: the reference covers the 64 bytes that are read; the load needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Four lanes, repeated four times.
#[target_feature(enable = "avx512f")]
#[inline]
fn repeat_quad(quad: &[u32; 4]) -> __m512i {
    // SAFETY: the reference covers the 16 bytes that are read; the load needs no alignment.
    _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(quad.as_ptr().cast()) })
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store(words: &mut [u32; LANES], value: __m512i) {
    // SAFETY: the reference covers the 64 bytes that are written; the store needs no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), value) };
}
