//! A set of integers as bits: one memory access tests an integer, two counts test a long run.
//!
//! ```text
//! bits    one bit per integer from 0 to the last; padded with zero bytes to a multiple of 8
//! counts  per started 16,384 bits, and once more at the end: number of integers before it, u64
//! ```
//!
//! The counts take 0.4 %. Wrong counts give wrong answers, but no panic and no long loop.

use crate::ascending::Ascending;
use crate::bits::{Bits, low_mask};

const BLOCK_BITS: u64 = 16_384;
const BLOCK_BYTES: usize = BLOCK_BITS as usize / 8;
const COUNT_BYTES: usize = 8;
/// Number of integers per batch.
const BATCH: usize = 256;

/// Lengths of bits and counts for integers up to the last one.
const fn lengths(last: u64) -> (u64, u64) {
    ((last / 64 + 1) * 8, (last / BLOCK_BITS + 2) * COUNT_BYTES as u64)
}

/// Bytes of a set of integers up to the last one.
pub const fn encoded_bytes(last: u64) -> u64 {
    let (bits, counts) = lengths(last);
    bits + counts
}

/// Appends a set of integers, none of which is larger than the last one.
pub fn encode(target: &mut Vec<u8>, last: u64, mut integers: impl Ascending) {
    let mut bits = vec![0_u8; lengths(last).0 as usize];
    let mut batch = [0; BATCH];
    loop {
        let filled = integers.fill(&mut batch);
        for integer in batch.iter().take(filled) {
            if let Some(byte) = bits.get_mut((integer / 8) as usize) {
                *byte |= 1 << (integer % 8);
            }
        }
        if filled == 0 {
            break;
        }
    }
    target.extend_from_slice(&bits);
    let mut count = 0_u64;
    target.extend_from_slice(&count.to_le_bytes());
    for block in bits.chunks(BLOCK_BYTES) {
        count += block.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
        target.extend_from_slice(&count.to_le_bytes());
    }
}

/// The positions of the parts. They depend on the last integer only, so a reader can compute them once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitmapShape {
    last: u64,
    bit_bytes: usize,
    length: usize,
}

impl BitmapShape {
    /// The shape of a set of integers up to the last one; `None` beyond the address space.
    pub fn new(last: u64) -> Option<Self> {
        let (bits, counts) = lengths(last);
        let (bit_bytes, count_bytes) = (usize::try_from(bits).ok()?, usize::try_from(counts).ok()?);
        Some(Self { last, bit_bytes, length: bit_bytes.checked_add(count_bytes)? })
    }

    /// Bytes of all parts.
    pub const fn length(&self) -> usize {
        self.length
    }

    /// The set at the front of `bytes`; `None` if the bytes are too few.
    #[inline(always)]
    pub fn view<'a>(&self, bytes: &'a [u8]) -> Option<Bitmap<'a>> {
        let (bits, counts) = bytes.get(..self.length)?.split_at_checked(self.bit_bytes)?;
        Some(Bitmap { bits: Bits::new(bits, self.last + 1)?, counts })
    }
}

/// A borrowed set of integers.
#[derive(Debug, Clone, Copy)]
pub struct Bitmap<'a> {
    bits: Bits<'a>,
    counts: &'a [u8],
}

impl Bitmap<'_> {
    /// Whether the set contains an integer.
    #[inline(always)]
    pub fn contains(&self, integer: u64) -> bool {
        self.bits.get(integer)
    }

    /// Whether the set contains any integer of a run. Reads at most 4 KiB, and one word for a short run.
    #[inline(always)]
    pub fn has_between(&self, first: u64, last: u64) -> bool {
        let last = last.min(self.bits.len() - 1);
        let Some(steps) = last.checked_sub(first) else { return false };
        if steps < 64 {
            return self.bits.get_bits(first, steps as u32 + 1) != 0;
        }
        self.has_in_run(first, last + 1)
    }

    #[inline(never)]
    fn has_in_run(&self, first: u64, end: u64) -> bool {
        let (from, to) = (first.div_ceil(BLOCK_BITS), end / BLOCK_BITS);
        if from >= to {
            return self.has_set(first, end);
        }
        self.count(from) != self.count(to)
            || self.has_set(first, from * BLOCK_BITS)
            || self.has_set(to * BLOCK_BITS, end)
    }

    /// Number of integers before a block.
    fn count(&self, block: u64) -> u64 {
        let entry = self.counts.get(block as usize * COUNT_BYTES..).unwrap_or_default();
        entry.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Whether a bit is set, word by word.
    fn has_set(&self, first: u64, end: u64) -> bool {
        let word = |place: u64| self.bits.get_bits(place, 64) & low_mask((end - place).min(64) as u32);
        (first..end).step_by(64).any(|place| word(place) != 0)
    }
}

#[cfg(test)]
mod tests;
