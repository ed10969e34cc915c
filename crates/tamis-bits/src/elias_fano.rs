//! Elias-Fano encoding: ascending integers in about `2 + log2(universe / count)` bits each, with access by index and
//! by value.
//!
//! ```text
//! low   the lowest `width` bits of each integer, packed
//! high  for each integer i: bit (integer >> width) + i is set; with a directory that selects set and unset bits
//! marks optional: for the 0th, 64th, ... unset high bit its position after the start of the block that the directory
//!       names for it (the 512-bit block with the last 2,048th unset bit), u16; 65,535 if that is too far
//! ```
//!
//! With marks, which take a quarter to a half of a bit more per integer, an unset bit is found by one load and three
//! words of bits; the directory alone needs a guess, three loads and eight words.
//!
//! `width` is `floor(log2((last + 1) / count))`, at least 0: count and last integer determine the encoding.

use crate::ascending::Ascending;
use crate::bits::low_mask;
use crate::packed::{self, PackedInts};
use crate::rank::{self, RankBits, RankShape, Select};

mod marked;

pub use marked::MarkedEliasFano;

/// Groups of equal high parts up to this size are searched linearly.
const LINEAR_GROUP: u64 = 8;
/// This many of them are always compared.
const ALWAYS_COMPARED: u64 = 4;

/// Unset high bits from one mark to the next.
const MARK_RATE: u64 = 64;
const MARK_BYTES: usize = 2;
/// Replaces a mark that does not fit.
const NO_MARK: u16 = u16::MAX;

/// Width of low parts above which only two are compared at a time.
const MARKED_WIDTH_MAX: u32 = 28;

/// Borrowed ascending integers.
#[derive(Debug, Clone, Copy)]
pub struct EliasFano<'a> {
    low: PackedInts<'a>,
    high: RankBits<'a>,
    width: u32,
    count: u64,
}

/// The positions of the parts of encoded integers. They depend on the number of integers and the greatest of them
/// only, so a reader can compute them once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EliasFanoShape {
    width: u32,
    count: u64,
    low_length: usize,
    high: RankShape,
}

impl EliasFanoShape {
    /// The shape of `count` integers, the greatest of them `last`; `None` beyond the address space.
    pub fn new(count: u64, last: u64) -> Option<Self> {
        let width = low_width(count, last);
        let low_length = usize::try_from(packed::encoded_bytes(width, count)?).ok()?;
        let bit_count = if count == 0 { 0 } else { high_bit_count(count, last)? };
        let high = RankShape::new(bit_count, count, Select::Both)?;
        Some(Self { width, count, low_length, high })
    }

    /// The data for queries to such integers with marks, if their first byte is at `start`; `None` where marks save
    /// nothing.
    pub fn marked_at(&self, start: usize) -> Option<MarkedEliasFano> {
        MarkedEliasFano::new(self, start)
    }

    /// The integers at the front of `bytes`; `None` if the bytes are too few. [`RankShape::view`] documents what is
    /// not checked.
    #[inline(always)]
    pub fn view<'a>(&self, bytes: &'a [u8]) -> Option<EliasFano<'a>> {
        let low = PackedInts::with_bytes(bytes.get(..self.low_length)?, self.width, self.count);
        let high = self.high.view(bytes.get(self.low_length..)?)?;
        Some(EliasFano { low, high, width: self.width, count: self.count })
    }
}

const fn low_width(count: u64, last: u64) -> u32 {
    match (last / if count == 0 { 1 } else { count }).checked_ilog2() {
        Some(width) => width,
        None => 0,
    }
}

/// Bits of the high part; `None` beyond 64 bits.
const fn high_bit_count(count: u64, last: u64) -> Option<u64> {
    (last >> low_width(count, last)).checked_add(count)
}

impl<'a> EliasFano<'a> {
    /// The `count` integers, the greatest of them `last`, at the front of `bytes`, and their length in bytes; `None`
    /// if the bytes are too few.
    pub fn open(bytes: &'a [u8], count: u64, last: u64) -> Option<(Self, usize)> {
        let width = low_width(count, last);
        let (low, low_length) = PackedInts::open(bytes, width, count)?;
        let bit_count = if count == 0 { 0 } else { high_bit_count(count, last)? };
        let (high, high_length) = RankBits::open(bytes.get(low_length..)?, bit_count, Select::Both)?;
        (high.one_count() == count).then_some((Self { low, high, width, count }, low_length + high_length))
    }

    /// Number of integers.
    #[inline]
    pub const fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are no integers.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The integer with an index.
    #[inline]
    pub fn get(&self, index: u64) -> Option<u64> {
        let position = self.high.select(index)?;
        Some(self.join(position.saturating_sub(index), index))
    }

    /// Index and value of the least integer that is at least `value`.
    #[inline(always)]
    pub fn successor(&self, value: u64) -> Option<(u64, u64)> {
        let high = value >> self.width;
        // The integers with this high part come after its zero, which has `high` zeros before it.
        let start = match high.checked_sub(1) {
            None => 0,
            Some(rank) => self.high.select_zero(rank)? + 1,
        };
        let first = start - high.min(start);
        let word = self.high.bits().get_bits(start, 64);
        let group = u64::from(word.trailing_ones());
        if group > LINEAR_GROUP {
            return self.successor_in_large_group(value, start, first);
        }
        // Counts those that are smaller: few, and without a data-dependent branch.
        let low = value & low_mask(self.width);
        let mut smaller = 0;
        for number in 0..ALWAYS_COMPARED {
            let is_smaller = self.low.get(first + number) < low;
            smaller += u64::from(is_smaller & (number < group));
        }
        while smaller >= ALWAYS_COMPARED && smaller < group && self.low.get(first + smaller) < low {
            smaller += 1;
        }
        // After the last of them, the next set bit is that of an integer with a greater high part.
        self.next_from(start + smaller, word >> smaller, first + smaller)
    }

    /// The integer with an index, whose bit is the first set one from a position on; `bits` are the next bits, or
    /// zeros if it is further away.
    #[inline(always)]
    fn next_from(&self, place: u64, bits: u64, index: u64) -> Option<(u64, u64)> {
        let position = match bits {
            0 => self.high.select(index)?,
            _ => place + u64::from(bits.trailing_zeros()),
        };
        (index < self.count).then(|| (index, self.join(position.saturating_sub(index), index)))
    }

    /// Binary search if many integers share their high part.
    #[cold]
    fn successor_in_large_group(&self, value: u64, start: u64, first: u64) -> Option<(u64, u64)> {
        let high = value >> self.width;
        let limit = self.high.select_zero(high).unwrap_or(self.high.bits().len());
        let end = limit.saturating_sub(high).max(first).min(self.count);
        let (mut low, mut fails) = (first, end);
        while low < fails {
            let middle = u64::midpoint(low, fails);
            if self.join(high, middle) < value { low = middle + 1 } else { fails = middle }
        }
        if low < end {
            return Some((low, self.join(high, low)));
        }
        self.next_from(limit.max(start), 0, end)
    }

    /// Prefetches the bytes that [`EliasFano::successor`] reads if the integers are evenly distributed.
    #[inline]
    pub fn prefetch(&self, value: u64) {
        let high = value >> self.width;
        let zero_count = self.high.bits().len().saturating_sub(self.count).max(1);
        let index = (high as f64 * (self.count as f64 / zero_count as f64)) as u64;
        self.high.bits().prefetch(high.saturating_add(index));
        self.low.prefetch(index);
    }

    #[inline(always)]
    fn join(&self, high: u64, index: u64) -> u64 {
        high.checked_shl(self.width).unwrap_or(0) | self.low.get(index)
    }
}

/// Appends a number of ascending integers (repeats allowed), the greatest of them `last`.
pub fn encode(target: &mut Vec<u8>, count: u64, last: u64, integers: impl Ascending) {
    encode_with(target, (count, last), integers, |_, _| {});
}

/// The same, followed by marks.
pub fn encode_marked(target: &mut Vec<u8>, count: u64, last: u64, integers: impl Ascending) {
    let mut marks: Vec<u8> = Vec::new();
    let mut block_start = 0;
    let mut next_zero = 0;
    encode_with(target, (count, last), integers, |high_parts, first| {
        let mut zero = next_zero;
        for (high, index) in high_parts.iter().zip(first..) {
            // Before the unset bits of this integer are the bits of all integers before it.
            while zero < *high {
                let place = zero + index;
                if zero.is_multiple_of(rank::SAMPLE_RATE) {
                    block_start = place / rank::BLOCK_BITS * rank::BLOCK_BITS;
                }
                let mark = u16::try_from(place - block_start).unwrap_or(NO_MARK);
                marks.extend_from_slice(&mark.to_le_bytes());
                zero += MARK_RATE;
            }
        }
        next_zero = zero;
    });
    target.extend_from_slice(&marks);
}

/// Integers that are encoded together, step by step, so that each step has all registers.
const ENCODE_BATCH: usize = 256;

/// Calls `see` with batches of high parts and the index of the first of each.
fn encode_with(
    target: &mut Vec<u8>,
    (count, last): (u64, u64),
    mut integers: impl Ascending,
    mut see: impl FnMut(&[u64], u64),
) {
    let width = low_width(count, last);
    let bit_count = if count == 0 { 0 } else { (last >> width) + count };
    let mut high = vec![0_u8; bit_count.div_ceil(64) as usize * 8];
    target.reserve(encoded_marked_bytes(count, last).map_or(0, |bytes| bytes as usize));
    let mut low = packed::Packer::new(target, width);
    let mut writer = HighWriter { words: high.as_chunks_mut().0, word: 0, bits: 0, index: 0 };
    let mut batch = [0; ENCODE_BATCH];
    loop {
        let filled = integers.fill(&mut batch);
        if filled == 0 {
            break;
        }
        let batch = batch.get_mut(..filled).unwrap_or_default();
        debug_assert!(
            batch.is_sorted() && batch.last().is_none_or(|end| *end <= last),
            "ascending to the last"
        );
        low.push_all(batch);
        batch.iter_mut().for_each(|integer| *integer >>= width);
        see(batch, writer.index);
        writer.push_all(batch);
    }
    debug_assert!(writer.index == count, "as many as was said");
    writer.flush();
    low.finish();
    high.truncate(bit_count.div_ceil(8) as usize);
    rank::encode(target, &high, bit_count, Select::Both);
}

/// Sets the bit of each high part in ascending order: writes a word when it is complete.
struct HighWriter<'a> {
    words: &'a mut [[u8; 8]],
    word: u64,
    bits: u64,
    /// Number of integers so far.
    index: u64,
}

impl HighWriter<'_> {
    #[inline(always)]
    fn push_all(&mut self, high_parts: &[u64]) {
        let (mut word, mut bits, mut index) = (self.word, self.bits, self.index);
        for high in high_parts {
            let position = high + index;
            if position / 64 != word {
                (self.word, self.bits) = (word, bits);
                self.flush();
                (word, bits) = (position / 64, 0);
            }
            bits |= 1 << (position % 64);
            index += 1;
        }
        (self.word, self.bits, self.index) = (word, bits, index);
    }

    #[inline(always)]
    fn flush(&mut self) {
        if let Some(target) = self.words.get_mut(self.word as usize) {
            *target = self.bits.to_le_bytes();
        }
    }
}

/// Bytes that [`encode_marked`] appends; `None` beyond 64 bits.
pub fn encoded_marked_bytes(count: u64, last: u64) -> Option<u64> {
    let zeros = if count == 0 { 0 } else { last >> low_width(count, last) };
    encoded_bytes(count, last)?.checked_add(zeros.div_ceil(MARK_RATE) * MARK_BYTES as u64)
}

/// Whether marks make queries faster: not for low parts of no bits or of many.
pub fn has_use_for_marks(count: u64, last: u64) -> bool {
    is_width_for_marks(low_width(count, last))
}

fn is_width_for_marks(width: u32) -> bool {
    (1..=MARKED_WIDTH_MAX).contains(&width)
}

/// Bytes that [`encode`] appends for a number of integers, the greatest of them `last`; `None` beyond 64 bits.
pub fn encoded_bytes(count: u64, last: u64) -> Option<u64> {
    let bit_count = if count == 0 { 0 } else { high_bit_count(count, last)? };
    let low = packed::encoded_bytes(low_width(count, last), count)?;
    low.checked_add(rank::encoded_bytes(bit_count, count, Select::Both))
}

#[cfg(test)]
mod tests;
