//! Ascending integers in about `2 + log2(universe / count)` bits each, with access by number and by value.
//!
//! ```text
//! low   the lowest `width` bits of each integer, packed
//! high  for each integer i: bit (integer >> width) + i is set; with directory, both kinds of bits selectable
//! marks where they are wanted: for the 0th, 64th, ... unset high bit its place behind the beginning of the block that the directory
//!       names for it (the 512-bit block with the last 2,048th unset bit), u16; 65,535 where that is too far
//! ```
//!
//! With marks, which take a quarter to a half of a bit an integer more, the place of an unset bit is one load and three words of
//! bits away, where the directory alone takes a guess, three loads and eight words.
//!
//! `width` is `floor(log2((last + 1) / count))`, at least 0: the encoding follows from count and last integer alone.

use crate::bits::low_mask;
use crate::kernel::Steps;
use crate::packed::{self, PackedInts};
use crate::rank::{self, RankBits, RankShape, Select};

/// Groups of equal high parts up to this are looked through one by one.
const LINEAR_GROUP: u64 = 8;
/// So many of them always.
const STEADY_GROUP: u64 = 4;

/// Unset high bits from one mark to the next.
const MARK_RATE: u64 = 64;
const MARK_BYTES: usize = 2;
/// In place of a mark that does not fit.
const NO_MARK: u16 = u16::MAX;

/// Low parts up to this are read four at a time.
const STEADY_WIDTH: u32 = 14;

/// Four lanes of so many bits (at least 1) at the low end of a word: a one in each, and all bits of each but the top one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lanes {
    ones: u64,
    below_tops: u64,
}

impl Lanes {
    const fn new(width: u32) -> Self {
        let pair = 1 | 1_u64 << width;
        let ones = pair | pair << (2 * width);
        Self { ones, below_tops: (ones << (width - 1)) - ones }
    }
}

/// Borrowed ascending integers.
#[derive(Debug, Clone, Copy)]
pub struct EliasFano<'a> {
    low: PackedInts<'a>,
    high: RankBits<'a>,
    width: u32,
    count: u64,
}

/// Where the parts of encoded integers lie. It follows from their number and the greatest of them alone, so that a reader that
/// asks often can compute it once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EliasFanoShape {
    width: u32,
    count: u64,
    low_length: usize,
    high: RankShape,
    /// Where low parts are read four at a time.
    lanes: Option<Lanes>,
    /// Where what leads to a marked bit begins.
    marks: Option<Marks>,
}

/// Where marks and the list of the directory's blocks for unset bits begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marks {
    marks: usize,
    blocks: usize,
}

impl EliasFanoShape {
    /// The shape of `count` integers, the greatest of them `last`; `None` beyond the address space.
    pub fn new(count: u64, last: u64) -> Option<Self> {
        let width = low_width(count, last);
        let low_length = usize::try_from(packed::encoded_bytes(width, count)?).ok()?;
        let bit_count = if count == 0 { 0 } else { high_bit_count(count, last)? };
        let high = RankShape::new(bit_count, count, Select::Both)?;
        let lanes = (1..=STEADY_WIDTH).contains(&width).then(|| Lanes::new(width));
        Some(Self { width, count, low_length, high, lanes, marks: None })
    }

    /// The same with marks behind it.
    pub fn with_marks(self) -> Self {
        let marks = self.low_length + self.high.length();
        let blocks = self.low_length + self.high.zeros_start();
        Self { marks: self.lanes.map(|_| Marks { marks, blocks }), ..self }
    }

    /// Whether a value is among the integers at the front of `bytes`, for a walk that is compiled for the processor; `true` where
    /// the bytes are too few. Looks at no integer but those that share its high part.
    #[inline(always)]
    pub fn contains_in<S: Steps>(&self, steps: S, bytes: &[u8], value: u64) -> bool {
        self.near_contains_in(steps, bytes, value).unwrap_or_else(|| self.far_contains(bytes, value))
    }

    #[inline(never)]
    fn far_contains(&self, bytes: &[u8], value: u64) -> bool {
        self.view(bytes)
            .is_none_or(|integers| integers.successor(value).is_some_and(|(_, found)| found == value))
    }

    /// The same in a few steps; `None` where it takes more: wide or no low parts, many of one high part, and high parts that lie unevenly.
    #[inline(always)]
    fn near_contains_in<S: Steps>(&self, steps: S, bytes: &[u8], value: u64) -> Option<bool> {
        let lanes = self.lanes?;
        let high = value >> self.width;
        let zero = high.checked_sub(1)?;
        let words = Words::new(bytes)?;
        // The integers with this high part lie behind the zero before: as many as there are ones.
        let start = match &self.marks {
            Some(marks) => self.marked_zero_in(steps, &words, marks, zero)?,
            None => self.high.near_zero_in(steps, bytes.get(self.low_length..)?, zero)?,
        } + 1;
        let bits = words.at(self.low_length + (start / 8) as usize)? >> (start % 8);
        let group = bits.trailing_ones();
        if group > STEADY_GROUP as u32 {
            return None;
        }
        let place = start.wrapping_sub(high).wrapping_mul(u64::from(self.width));
        let lows = words.at((place / 8) as usize)? >> (place % 8);
        // In which of their lanes do the low parts differ? Which of them it is cannot be foreseen.
        let Lanes { ones, below_tops } = lanes;
        let low = value & !(u64::MAX << self.width);
        let lanes = lows ^ low.wrapping_mul(ones);
        let differs = ((lanes & below_tops) + below_tops) | lanes;
        let tops = (below_tops + ones) & !(u64::MAX << (group * self.width));
        Some(!differs & tops != 0)
    }

    /// Whether no integer at the front of `bytes` lies from one value to another, which is not smaller, for a walk that is compiled for
    /// the processor; `None` where it takes more than a few steps to know: without marks, with many integers of one high part, and where
    /// high parts lie unevenly.
    #[inline(always)]
    pub fn near_is_free_in<S: Steps>(&self, steps: S, bytes: &[u8], from: u64, to: u64) -> Option<bool> {
        let high = from >> self.width;
        let words = Words::new(bytes)?;
        let start = self.marked_zero_in(steps, &words, self.marks.as_ref()?, high.checked_sub(1)?)? + 1;
        let bits = words.at(self.low_length + (start / 8) as usize)? >> (start % 8);
        let group = u64::from(bits.trailing_ones());
        if group > STEADY_GROUP {
            return None;
        }
        let first = start.wrapping_sub(high);
        let place = first.wrapping_mul(u64::from(self.width));
        let lows = words.at((place / 8) as usize)? >> (place % 8);
        // How many of the group are smaller: without a jump that depends on it.
        let mask = low_mask(self.width);
        let mut smaller = 0;
        for number in 0..STEADY_GROUP {
            let low = lows >> (number as u32 * self.width) & mask;
            smaller += u64::from((low < from & mask) & (number < group));
        }
        let rest = bits >> smaller;
        let index = first.wrapping_add(smaller);
        if index >= self.count {
            return Some(true);
        }
        // The next integer, whose bit is the next one: each unset bit before it counts its high part on.
        let place = index.wrapping_mul(u64::from(self.width));
        let low = words.at((place / 8) as usize)? >> (place % 8) & mask;
        let next = (high + u64::from(rest.trailing_zeros())) << self.width | low;
        (rest != 0).then_some(next > to)
    }

    /// The place of an unset high bit from the mark before it on; `None` where that is further than three words.
    #[inline(always)]
    fn marked_zero_in<S: Steps>(&self, steps: S, words: &Words<'_>, marks: &Marks, zero: u64) -> Option<u64> {
        let mark = words.short(marks.marks + (zero / MARK_RATE) as usize * MARK_BYTES)?;
        let block = words.half(marks.blocks + (zero / rank::SAMPLE_RATE) as usize * 4)?;
        let place = u64::from(block) * rank::BLOCK_BITS + u64::from(mark);
        let [first, second, third] = words.three(self.low_length + (place / 8) as usize)?;
        let (first, second, third) = (!first & u64::MAX << (place % 8), !second, !third);
        // Which word it is cannot be foreseen: no jump depends on it.
        let rank = (zero % MARK_RATE) as u32;
        let (to_second, to_third) = (first.count_ones(), first.count_ones() + second.count_ones());
        let (mut word, mut before, mut shift) = (first, 0, 0);
        if rank >= to_second {
            (word, before, shift) = (second, to_second, 64);
        }
        if rank >= to_third {
            (word, before, shift) = (third, to_third, 128);
        }
        let found = steps.nth_one(word, rank - before);
        (found != 0 && mark != NO_MARK).then(|| (place & !7) + shift + u64::from(found.trailing_zeros()))
    }

    /// The integers at the front of `bytes`; `None` where the bytes are too few. See [`RankShape::view`] for what is not checked.
    #[inline(always)]
    pub fn view<'a>(&self, bytes: &'a [u8]) -> Option<EliasFano<'a>> {
        let low = PackedInts::with_bytes(bytes.get(..self.low_length)?, self.width, self.count);
        let high = self.high.view(bytes.get(self.low_length..)?)?;
        Some(EliasFano { low, high, width: self.width, count: self.count })
    }
}

/// Bytes of which words are read at any place.
#[derive(Debug, Clone, Copy)]
struct Words<'a> {
    bytes: &'a [u8],
    /// Places from which a word can be read.
    places: usize,
}

impl<'a> Words<'a> {
    #[inline(always)]
    fn new(bytes: &'a [u8]) -> Option<Self> {
        Some(Self { bytes, places: bytes.len().checked_sub(7)? })
    }

    /// `N` bytes, at most eight, from a place on; `None` where they are not all there. One comparison, where slices take three.
    #[inline(always)]
    fn bytes<const N: usize>(&self, place: usize) -> Option<[u8; N]> {
        const { assert!(N <= 8, "no more than a word") };
        if place >= self.places + (8 - N) {
            return None;
        }
        // SAFETY: `place` is below `len - 7 + 8 - N`, so that the `N` bytes from it on lie in the slice.
        Some(unsafe { self.bytes.as_ptr().add(place).cast::<[u8; N]>().read() })
    }

    #[inline(always)]
    fn at(&self, place: usize) -> Option<u64> {
        self.bytes(place).map(u64::from_le_bytes)
    }

    #[inline(always)]
    fn half(&self, place: usize) -> Option<u32> {
        self.bytes(place).map(u32::from_le_bytes)
    }

    #[inline(always)]
    fn short(&self, place: usize) -> Option<u16> {
        self.bytes(place).map(u16::from_le_bytes)
    }

    /// Three words.
    #[inline(always)]
    fn three(&self, place: usize) -> Option<[u64; 3]> {
        if place >= self.places.saturating_sub(16) {
            return None;
        }
        // SAFETY: `place` is below `len - 7 - 16`, so that the 24 bytes from it on lie in the slice.
        let words: [[u8; 8]; 3] = unsafe { self.bytes.as_ptr().add(place).cast::<[[u8; 8]; 3]>().read() };
        Some(words.map(u64::from_le_bytes))
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
    /// The `count` integers, the greatest of them `last`, at the front of `bytes`, and their length in bytes; `None` where the
    /// bytes are too few.
    pub fn open(bytes: &'a [u8], count: u64, last: u64) -> Option<(Self, usize)> {
        let width = low_width(count, last);
        let (low, low_length) = PackedInts::open(bytes, width, count)?;
        let bit_count = if count == 0 { 0 } else { high_bit_count(count, last)? };
        let (high, high_length) = RankBits::open(bytes.get(low_length..)?, bit_count, Select::Both)?;
        (high.one_count() == count).then_some((Self { low, high, width, count }, low_length + high_length))
    }

    /// How many integers there are.
    #[inline]
    pub const fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// An integer by its number.
    #[inline]
    pub fn get(&self, index: u64) -> Option<u64> {
        let position = self.high.select(index)?;
        Some(self.join(position.saturating_sub(index), index))
    }

    /// Number and value of the least integer that is at least `value`.
    #[inline(always)]
    pub fn successor(&self, value: u64) -> Option<(u64, u64)> {
        let high = value >> self.width;
        // The integers with this high part lie behind its zero: `high` zeros come before them.
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
        // How many of them are smaller: few, and looked at without a jump that depends on it.
        let low = value & low_mask(self.width);
        let mut smaller = 0;
        for number in 0..STEADY_GROUP {
            let is_smaller = self.low.get(first + number) < low;
            smaller += u64::from(is_smaller & (number < group));
        }
        while smaller >= STEADY_GROUP && smaller < group && self.low.get(first + smaller) < low {
            smaller += 1;
        }
        // Behind the last of them the next bit is that of an integer with a greater high part.
        self.next_from(start + smaller, word >> smaller, first + smaller)
    }

    /// The integer of a number, whose bit is the first from a place on; the next bits are those, or zeros where it lies further on.
    #[inline(always)]
    fn next_from(&self, place: u64, bits: u64, index: u64) -> Option<(u64, u64)> {
        let position = match bits {
            0 => self.high.select(index)?,
            _ => place + u64::from(bits.trailing_zeros()),
        };
        (index < self.count).then(|| (index, self.join(position.saturating_sub(index), index)))
    }

    /// Where many integers share their high part: by halves.
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

    /// How many integers are smaller than `value`.
    pub fn rank(&self, value: u64) -> u64 {
        self.successor(value).map_or(self.count, |(index, _)| index)
    }

    #[inline(always)]
    fn join(&self, high: u64, index: u64) -> u64 {
        high.checked_shl(self.width).unwrap_or(0) | self.low.get(index)
    }
}

/// Appends ascending integers (repeats allowed). They are read twice.
pub fn encode(target: &mut Vec<u8>, integers: impl Iterator<Item = u64> + Clone) {
    encode_with(target, integers, |_, _| {});
}

/// The same with marks behind it.
pub fn encode_marked(target: &mut Vec<u8>, integers: impl Iterator<Item = u64> + Clone) {
    let mut marks: Vec<u8> = Vec::new();
    let mut block_start = 0;
    let mut zero = 0;
    encode_with(target, integers, |high, index| {
        // The unset bits before this integer's have the integers before it before them.
        while zero < high {
            let place = zero + index;
            if zero.is_multiple_of(rank::SAMPLE_RATE) {
                block_start = place / rank::BLOCK_BITS * rank::BLOCK_BITS;
            }
            let mark = u16::try_from(place - block_start).unwrap_or(NO_MARK);
            marks.extend_from_slice(&mark.to_le_bytes());
            zero += MARK_RATE;
        }
    });
    target.extend_from_slice(&marks);
}

/// `see` is called with high part and number of each integer.
fn encode_with(
    target: &mut Vec<u8>,
    integers: impl Iterator<Item = u64> + Clone,
    mut see: impl FnMut(u64, u64),
) {
    let (mut count, mut last) = (0_u64, 0);
    for integer in integers.clone() {
        debug_assert!(integer >= last, "integers ascend");
        (count, last) = (count + 1, integer);
    }
    let width = low_width(count, last);
    packed::encode(target, width, integers.clone());
    let bit_count = if count == 0 { 0 } else { (last >> width) + count };
    let mut high = vec![0_u8; bit_count.div_ceil(8) as usize];
    for (index, integer) in (0..).zip(integers) {
        see(integer >> width, index);
        let position = (integer >> width) + index;
        if let Some(byte) = high.get_mut((position / 8) as usize) {
            *byte |= 1 << (position % 8);
        }
    }
    rank::encode(target, &high, bit_count, Select::Both);
}

/// Bytes that [`encode_marked`] appends; `None` beyond 64 bits.
pub fn encoded_marked_bytes(count: u64, last: u64) -> Option<u64> {
    let zeros = if count == 0 { 0 } else { last >> low_width(count, last) };
    encoded_bytes(count, last)?.checked_add(zeros.div_ceil(MARK_RATE) * MARK_BYTES as u64)
}

/// Whether marks make questions to so many integers faster: not where low parts are none or wide.
pub fn has_use_for_marks(count: u64, last: u64) -> bool {
    (1..=STEADY_WIDTH).contains(&low_width(count, last))
}

/// Bytes that [`encode`] appends for so many integers, the greatest of them `last`; `None` beyond 64 bits.
pub fn encoded_bytes(count: u64, last: u64) -> Option<u64> {
    let bit_count = if count == 0 { 0 } else { high_bit_count(count, last)? };
    let low = packed::encoded_bytes(low_width(count, last), count)?;
    low.checked_add(rank::encoded_bytes(bit_count, count, Select::Both))
}

#[cfg(test)]
mod tests;
