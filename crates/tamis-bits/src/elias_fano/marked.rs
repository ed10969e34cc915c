//! Fast path for queries to marked integers.
//!
//! 1. A mark and a block determine the position from which three words of high bits are read.
//! 2. These contain the unset bit before the integers of one high part. The set bits after it give their number, and
//!    its position the index of the first.
//! 3. Their low parts, at most four, are compared at once, or in pairs if they are wide.
//!
//! Each step reads memory at a position that the step before computed. Queries that need other steps return `None`: the least high
//! part, values beyond the greatest integer, more than four integers of one high part, and unevenly distributed high
//! parts. Damaged or missing bytes also return `None`, or a wrong answer.
//!
//! A query prefetches the low parts at the position that its mark estimates, and so waits for both only once.
//!
//! All lengths were checked when the set was opened ([`MarkedEliasFano`], invariants). A query checks what bytes and
//! value determine: the high part, the position in a mark, and the index of an integer.

use super::{EliasFanoShape, MARK_BYTES, MARK_RATE, NO_MARK, is_width_for_marks};
use crate::bits::low_mask;
use crate::kernel::Steps;
use crate::{prefetch, rank};

/// Maximum number of integers of one high part that are compared, and how many at once: all, or two if their low parts
/// are wider than this.
const GROUP_MAX: u32 = 4;
const FOUR_LANES_WIDTH: u32 = 14;
/// Bytes from the first of three words of high bits to the end of the word after the bit that is found in them.
const REACH_BYTES: usize = 32;

/// The positions of marked integers among other bytes: all data of their queries.
///
/// Invariants, with `low <= high <= blocks, marks <= end`:
///
/// 1. The eight bytes from the first bit of the low part of any of the `count` integers on are before `end`.
/// 2. So are `REACH_BYTES` from any of the first `high_places` bytes of the high bits on.
/// 3. So are the block and the mark of any of `zero_count` unset bits.
#[derive(Debug, Clone, Copy)]
pub struct MarkedEliasFano {
    width: u32,
    count: u64,
    zero_count: u64,
    /// Number of low parts that are compared at once.
    lane_count: u32,
    /// Bits of a low part, and masks of lanes of that width: a one in each, the top bit of each, and all other bits.
    mask: u64,
    ones: u64,
    tops: u64,
    below_tops: u64,
    low: usize,
    high: usize,
    high_places: u64,
    blocks: usize,
    marks: usize,
    end: usize,
}

/// Integers of one high part.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// High bits from the first of them on.
    bits: u64,
    /// The index of the first.
    first: u64,
}

impl MarkedEliasFano {
    /// Integers whose bytes begin at `start`; `None` where marks save nothing.
    pub(super) fn new(shape: &EliasFanoShape, start: usize) -> Option<Self> {
        let EliasFanoShape { width, count, low_length, high: bits } = *shape;
        if !is_width_for_marks(width) {
            return None;
        }
        let high = start.checked_add(low_length)?;
        let blocks = high.checked_add(bits.zeros_start())?;
        let marks = high.checked_add(bits.length())?;
        let zero_count = bits.zero_count();
        let mark_count = usize::try_from(zero_count.div_ceil(MARK_RATE)).ok()?;
        let end = marks.checked_add(mark_count.checked_mul(MARK_BYTES)?)?;
        // The first and the second invariant; the third follows from the lengths of the lists.
        let high_places = end.checked_sub(high.checked_add(REACH_BYTES - 1)?)? as u64;
        let pair = 1 | 1_u64 << width;
        let lane_count = if width <= FOUR_LANES_WIDTH { 4 } else { 2 };
        let ones = if lane_count == 4 { pair | pair << (2 * width) } else { pair };
        let tops = ones << (width - 1);
        Some(Self {
            width,
            count,
            zero_count,
            lane_count,
            mask: low_mask(width),
            ones,
            tops,
            below_tops: tops - ones,
            low: start,
            high,
            high_places,
            blocks,
            marks,
            end,
        })
    }

    /// Whether the set contains a value, for use in a task that is compiled for the processor.
    #[inline(always)]
    pub fn contains_in<S: Steps>(&self, steps: S, bytes: &[u8], value: u64) -> Option<bool> {
        let view = View::new(self, bytes)?;
        let place = view.place(value)?;
        view.prefetch_lows(value, place);
        view.group_contains(view.group(steps, value, place)?, value)
    }

    /// Whether no integer is between two values, both included.
    #[inline(always)]
    pub fn is_free_in<S: Steps>(&self, steps: S, bytes: &[u8], from: u64, to: u64) -> Option<bool> {
        let view = View::new(self, bytes)?;
        let place = view.place(from)?;
        view.prefetch_lows(from, place);
        view.is_free_from(view.group(steps, from, place)?, from, to)
    }
}

/// The integers and their bytes: those before `set.end` exist.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    set: &'a MarkedEliasFano,
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    #[inline(always)]
    fn new(set: &'a MarkedEliasFano, bytes: &'a [u8]) -> Option<Self> {
        (bytes.len() >= set.end).then_some(Self { set, bytes })
    }

    /// `N` bytes.
    ///
    /// # Safety
    ///
    /// The bytes must be before `set.end`.
    #[inline(always)]
    unsafe fn read<const N: usize>(&self, place: usize) -> [u8; N] {
        debug_assert!(place + N <= self.bytes.len());
        // SAFETY: the caller guarantees that these bytes are before `set.end`, and `new` checked that all bytes up to
        // there exist.
        unsafe { self.bytes.as_ptr().add(place).cast::<[u8; N]>().read() }
    }

    /// The position in the high bits from which on to search the unset bit before a value's high part.
    #[inline(always)]
    fn place(&self, value: u64) -> Option<u64> {
        let set = self.set;
        let zero = (value >> set.width).wrapping_sub(1);
        if zero >= set.zero_count {
            return None;
        }
        let mark = set.marks + (zero / MARK_RATE) as usize * MARK_BYTES;
        let block = set.blocks + (zero / rank::SAMPLE_RATE) as usize * 4;
        // SAFETY: the third invariant; `zero` is below `zero_count`.
        let (mark, block) = unsafe { (self.read(mark), self.read(block)) };
        let (mark, block) = (u16::from_le_bytes(mark), u32::from_le_bytes(block));
        (mark != NO_MARK).then_some(u64::from(block) * rank::BLOCK_BITS + u64::from(mark))
    }

    /// Prefetches the low parts of the integers with a value's high part at the position that the mark suggests:
    /// before the mark's unset bit, the number of integers is its position minus the number of unset bits before it;
    /// after it, an estimate of three integers per four unset bits.
    #[inline(always)]
    fn prefetch_lows(&self, value: u64, place: u64) {
        let zero = (value >> self.set.width).wrapping_sub(1);
        let rank = zero % MARK_RATE;
        let index = place.wrapping_sub(zero).wrapping_add(rank + rank * 3 / 4);
        prefetch(self.bytes, self.set.low.wrapping_add((self.low_place(index) / 8) as usize));
    }

    /// The integers with a value's high part.
    #[inline(always)]
    fn group<S: Steps>(&self, steps: S, value: u64, place: u64) -> Option<Group> {
        let set = self.set;
        if place / 8 >= set.high_places {
            return None;
        }
        let byte = set.high + (place / 8) as usize;
        // SAFETY: the second invariant.
        let words = unsafe { [self.read(byte), self.read(byte + 8)] };
        let [first, second] = words.map(|word| !u64::from_le_bytes(word));
        let first = first & u64::MAX << (place % 8);
        // A branch on which of the two it is would be mispredicted.
        let high = value >> set.width;
        let rank = (high.wrapping_sub(1) % MARK_RATE) as u32;
        let to_second = first.count_ones();
        let (mut word, mut before, mut start) = (first, 0, place / 8);
        if rank >= to_second {
            (word, before, start) = (second, to_second, place / 8 + 8);
        }
        let mut found = steps.nth_one(word, rank - before);
        // If integers are even, there are 64 unset bits and as many set ones between two marks.
        if found == 0 {
            found = self.nth_of_third(steps, byte, rank - to_second - second.count_ones());
            start = place / 8 + 16;
        }
        let start = start * 8 + u64::from(found.trailing_zeros()) + 1;
        // SAFETY: the second invariant; there are at most 193 bits from the first word on to `start`, so its word ends
        // within reach.
        let bits = unsafe { self.read(set.high + (start / 8) as usize) };
        let bits = u64::from_le_bytes(bits) >> (start % 8);
        (found != 0).then_some(Group { bits, first: start.wrapping_sub(high) })
    }

    /// An unset bit of the third word from a byte on, by its rank there; none if there are fewer.
    #[inline(always)]
    fn nth_of_third<S: Steps>(&self, steps: S, byte: usize, rank: u32) -> u64 {
        // SAFETY: the second invariant, which the caller checked for this byte.
        let third = unsafe { self.read(byte + 16) };
        steps.nth_one(!u64::from_le_bytes(third), rank)
    }

    /// The first bit of the low part of an integer.
    #[inline(always)]
    fn low_place(&self, index: u64) -> u64 {
        index.wrapping_mul(u64::from(self.set.width))
    }

    /// Low parts from that of an integer on; `None` if there are no more.
    #[inline(always)]
    fn lows(&self, index: u64) -> Option<u64> {
        if index >= self.set.count {
            return None;
        }
        let place = self.low_place(index);
        // SAFETY: the first invariant.
        let word = unsafe { self.read(self.set.low + (place / 8) as usize) };
        Some(u64::from_le_bytes(word) >> (place % 8))
    }

    /// The top bits of the first lanes.
    #[inline(always)]
    fn tops(&self, count: u32) -> u64 {
        self.set.tops & ((1 << (count * self.set.width)) - 1)
    }

    #[inline(always)]
    fn group_contains(&self, group: Group, value: u64) -> Option<bool> {
        let count = group.bits.trailing_ones();
        let lane_count = self.set.lane_count;
        if count > GROUP_MAX {
            return None;
        }
        if count <= lane_count {
            return Some(self.lanes_contain(self.lows(group.first)?, value, count));
        }
        let behind = self.lows(group.first.wrapping_add(u64::from(lane_count)))?;
        Some(
            self.lanes_contain(self.lows(group.first)?, value, lane_count)
                || self.lanes_contain(behind, value, count - lane_count),
        )
    }

    /// Whether one of the first lanes is the low part of a value. Has no branch on the lane,
    /// which would be mispredicted.
    #[inline(always)]
    fn lanes_contain(&self, lows: u64, value: u64, count: u32) -> bool {
        let MarkedEliasFano { mask, ones, below_tops, .. } = *self.set;
        // Lanes in which the low parts differ.
        let lanes = lows ^ (value & mask).wrapping_mul(ones);
        let differs = ((lanes & below_tops) + below_tops) | lanes;
        !differs & self.tops(count) != 0
    }

    #[inline(always)]
    fn is_free_from(&self, group: Group, from: u64, to: u64) -> Option<bool> {
        let MarkedEliasFano { width, mask, lane_count, .. } = *self.set;
        let count = group.bits.trailing_ones();
        if count > GROUP_MAX {
            return None;
        }
        let mut smaller = self.smaller_lanes(self.lows(group.first)?, from, count.min(lane_count));
        if count > lane_count && smaller == lane_count {
            let behind = self.lows(group.first + u64::from(lane_count))?;
            smaller += self.smaller_lanes(behind, from, count - lane_count);
        }
        let index = group.first + u64::from(smaller);
        // The next integer has the next set bit: each unset bit before it increments its high part.
        let Some(low) = self.lows(index) else { return Some(true) };
        let bits = group.bits >> smaller;
        let high = (from >> width) + u64::from(bits.trailing_zeros());
        let next = high << width | (low & mask);
        (bits != 0).then_some(next > to)
    }

    /// How many of the first lanes, which ascend, are smaller than the low part of a value. The top bits decide; if
    /// they are equal, the borrow of the subtraction of all other bits does.
    #[inline(always)]
    fn smaller_lanes(&self, lanes: u64, value: u64, count: u32) -> u32 {
        let MarkedEliasFano { mask, ones, tops, below_tops, .. } = *self.set;
        let other = (value & mask).wrapping_mul(ones);
        let rest = (lanes | tops).wrapping_sub(other & below_tops);
        let smaller = (!lanes & other) | (!(lanes ^ other) & !rest);
        (smaller & self.tops(count)).count_ones()
    }
}

#[cfg(test)]
mod tests;
