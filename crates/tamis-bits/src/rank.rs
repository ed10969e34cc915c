//! Rank and select over borrowed bits with a directory of 3.2 %.
//!
//! ```text
//! bits         ceil(bit_count / 8) bytes, padded with zero bytes to a multiple of 8
//! superblocks  per started 65,536 bits, and once more at the end: ones before it, u64
//! blocks       per started 512 bits: ones before it within its superblock, u16; padded with zeros to a multiple of 8
//! ones         for the 0th, 2,048th, ... set bit: number of its 512-bit block, u32
//! zeros        the same for unset bits
//! ```
//!
//! The lists of ones and zeros exist only if select needs them. All integers are little-endian. A damaged directory
//! gives wrong answers, but none beyond `bit_count`, no panic and no long loop.

use crate::bits::Bits;
use crate::kernel;

const SUPERBLOCK_BITS: u64 = 65_536;
pub(crate) const BLOCK_BITS: u64 = 512;
const BLOCKS_PER_SUPERBLOCK: u64 = SUPERBLOCK_BITS / BLOCK_BITS;
pub(crate) const SAMPLE_RATE: u64 = 2_048;

/// The bits that can be selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Select {
    /// None: rank only.
    None,
    /// Set bits.
    Ones,
    /// Set and unset bits.
    Both,
}

/// Bits with a directory.
#[derive(Debug, Clone, Copy)]
pub struct RankBits<'a> {
    bits: Bits<'a>,
    superblocks: &'a [u8],
    blocks: &'a [u8],
    ones: &'a [u8],
    zeros: &'a [u8],
    one_count: u64,
}

/// Splits parts off the front of bytes.
fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(front)
}

const fn sample_count(count: u64) -> u64 {
    count.div_ceil(SAMPLE_RATE)
}

/// The lengths of all parts except the samples.
fn fixed_lengths(bit_count: u64) -> [u64; 3] {
    [
        bit_count.div_ceil(64).saturating_mul(8),
        (bit_count.div_ceil(SUPERBLOCK_BITS) + 1) * 8,
        (bit_count.div_ceil(BLOCK_BITS) * 2).next_multiple_of(8),
    ]
}

/// The positions of the parts of bits with a directory. They depend on the counts only, so a reader can compute them
/// once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankShape {
    bit_count: u64,
    one_count: u64,
    ends: [usize; 5],
}

impl RankShape {
    /// The shape of a number of bits, `one_count` of them set; `None` beyond the address space.
    pub fn new(bit_count: u64, one_count: u64, select: Select) -> Option<Self> {
        let zero_count = bit_count.checked_sub(one_count)?;
        let [bits, superblocks, blocks] = fixed_lengths(bit_count);
        let ones = if select == Select::None { 0 } else { sample_count(one_count) * 4 };
        let zeros = if select == Select::Both { sample_count(zero_count) * 4 } else { 0 };
        let mut ends = [0; 5];
        let mut end = 0_usize;
        for (target, length) in ends.iter_mut().zip([bits, superblocks, blocks, ones, zeros]) {
            end = end.checked_add(usize::try_from(length).ok()?)?;
            *target = end;
        }
        Some(Self { bit_count, one_count, ends })
    }

    /// Bytes of all parts.
    pub const fn length(&self) -> usize {
        self.ends[4]
    }

    /// The structure at the front of `bytes`; `None` if the bytes are too few. The number of set bits is not checked:
    /// if it is wrong, answers are wrong, but never beyond the bits.
    #[inline(always)]
    pub fn view<'a>(&self, bytes: &'a [u8]) -> Option<RankBits<'a>> {
        let [bit_end, superblock_end, block_end, one_end, zero_end] = self.ends;
        Some(RankBits {
            bits: Bits::new(bytes.get(..bit_end)?, self.bit_count)?,
            superblocks: bytes.get(bit_end..superblock_end)?,
            blocks: bytes.get(superblock_end..block_end)?,
            ones: bytes.get(block_end..one_end)?,
            zeros: bytes.get(one_end..zero_end)?,
            one_count: self.one_count,
        })
    }

    /// Start of the list of the blocks of unset bits.
    pub(crate) const fn zeros_start(&self) -> usize {
        self.ends[3]
    }

    /// Number of unset bits.
    pub(crate) const fn zero_count(&self) -> u64 {
        self.bit_count - self.one_count
    }
}

impl<'a> RankBits<'a> {
    /// The structure at the front of `bytes`, and its length in bytes; `None` if the bytes are too few.
    pub fn open(bytes: &'a [u8], bit_count: u64, select: Select) -> Option<(Self, usize)> {
        let mut rest = bytes;
        let [bit_bytes, superblock_bytes, block_bytes] = fixed_lengths(bit_count);
        let bits = Bits::new(take(&mut rest, bit_bytes)?, bit_count)?;
        let superblocks = take(&mut rest, superblock_bytes)?;
        let blocks = take(&mut rest, block_bytes)?;
        let one_count = u64::from_le_bytes(*superblocks.last_chunk()?);
        let zero_count = bit_count.checked_sub(one_count)?;
        let ones = take(&mut rest, if select == Select::None { 0 } else { sample_count(one_count) * 4 })?;
        let zeros = take(&mut rest, if select == Select::Both { sample_count(zero_count) * 4 } else { 0 })?;
        Some((Self { bits, superblocks, blocks, ones, zeros, one_count }, bytes.len() - rest.len()))
    }

    /// The bits themselves.
    #[inline]
    pub const fn bits(&self) -> Bits<'a> {
        self.bits
    }

    /// Number of set bits.
    #[inline]
    pub const fn one_count(&self) -> u64 {
        self.one_count
    }

    /// Number of set bits before `index`, never more than all of them; all of them from the end on.
    #[inline]
    pub fn rank(&self, index: u64) -> u64 {
        if index >= self.bits.len() {
            return self.one_count;
        }
        let block = index / BLOCK_BITS;
        let line = self.bits.line(block);
        let before = self.block_rank(block);
        let inside = u64::from(kernel::rank_in_line(&line, (index % BLOCK_BITS) as u32));
        before.wrapping_add(inside).min(self.one_count)
    }

    /// Position of the set bit with `rank` set bits before it. Needs [`Select::Ones`] to be fast.
    pub fn select(&self, rank: u64) -> Option<u64> {
        if rank >= self.one_count {
            return None;
        }
        let block = self.find_block(self.ones, rank, |block| self.block_rank(block));
        let inside = rank.checked_sub(self.block_rank(block))?;
        self.position(block, kernel::select_in_line(&self.bits.line(block), u32::try_from(inside).ok()?))
    }

    /// Position of the unset bit with `rank` unset bits before it. Needs [`Select::Both`] to be fast.
    #[inline(always)]
    pub fn select_zero(&self, rank: u64) -> Option<u64> {
        if rank >= self.bits.len() - self.one_count {
            return None;
        }
        let zeros_before = |block: u64| (block * BLOCK_BITS).saturating_sub(self.block_rank(block));
        let block = self.find_block(self.zeros, rank, zeros_before);
        let inside = rank.checked_sub(zeros_before(block))?;
        self.position(block, kernel::select_zero_in_line(&self.bits.line(block), u32::try_from(inside).ok()?))
    }

    #[inline(always)]
    fn position(&self, block: u64, inside: u32) -> Option<u64> {
        let position = block * BLOCK_BITS + u64::from(inside);
        (u64::from(inside) < BLOCK_BITS && position < self.bits.len()).then_some(position)
    }

    /// Set bits before a block; arbitrary if the directory is damaged.
    #[inline(always)]
    fn block_rank(&self, block: u64) -> u64 {
        let superblock = (block / BLOCKS_PER_SUPERBLOCK) as usize * 8;
        let before = self.superblocks.get(superblock..).and_then(|rest| rest.first_chunk());
        let inside = self.blocks.get(block as usize * 2..).and_then(|rest| rest.first_chunk());
        let inside = inside.map_or(0, |inside| u16::from_le_bytes(*inside));
        before.map_or(0, |before| u64::from_le_bytes(*before)).wrapping_add(u64::from(inside))
    }

    /// The last block with at most `rank` bits before it: interpolation between two samples, or else binary search.
    #[inline(always)]
    fn find_block(&self, samples: &[u8], rank: u64, bits_before: impl Fn(u64) -> u64) -> u64 {
        let block_count = self.bits.len().div_ceil(BLOCK_BITS);
        let sample = |index: u64| {
            let block = samples.get(index as usize * 4..).and_then(|rest| rest.first_chunk());
            block.map(|block| u64::from(u32::from_le_bytes(*block)))
        };
        let mut low = sample(rank / SAMPLE_RATE).unwrap_or(0).min(block_count);
        let mut high =
            sample(rank / SAMPLE_RATE + 1).map_or(block_count, |block| (block + 1).min(block_count));
        if low + 1 >= high {
            return low;
        }
        // If bits are evenly distributed, interpolation between the samples gives the block, or its neighbour. Which
        // of the three is right is unpredictable, so there is no branch on it.
        let guess = (low + rank % SAMPLE_RATE * (high - low) / SAMPLE_RATE).min(high - 1);
        let is_before = u64::from(bits_before(guess) > rank);
        let is_behind = u64::from(guess + 1 < high && bits_before(guess + 1) <= rank);
        let block = (guess + is_behind).saturating_sub(is_before).max(low);
        if bits_before(block) <= rank && (block + 1 >= high || bits_before(block + 1) > rank) {
            return block;
        }
        while low + 1 < high {
            let middle = u64::midpoint(low, high);
            if bits_before(middle) <= rank { low = middle } else { high = middle }
        }
        low
    }
}

/// Appends bits (as [`crate::BitBuilder::finish`] returns them) and their directory. At most 2^41 bits can be
/// selected.
pub fn encode(target: &mut Vec<u8>, bytes: &[u8], bit_count: u64, select: Select) {
    let bits = Bits::new(bytes, bit_count).expect("the caller counts the bits it gives");
    let start = target.len();
    target.extend_from_slice(bytes.get(..bit_count.div_ceil(8) as usize).unwrap_or_default());
    target.resize(start + fixed_lengths(bit_count)[0] as usize, 0);

    let mut superblocks = Vec::new();
    let mut blocks = Vec::new();
    let mut samples = [Vec::new(), Vec::new()];
    let mut ranks = [0_u64; 2];
    let mut superblock_rank = 0;
    for block in 0..bit_count.div_ceil(BLOCK_BITS) {
        if block % BLOCKS_PER_SUPERBLOCK == 0 {
            superblock_rank = ranks[0];
            superblocks.extend_from_slice(&superblock_rank.to_le_bytes());
        }
        blocks.extend_from_slice(&((ranks[0] - superblock_rank) as u16).to_le_bytes());
        let ones = u64::from(kernel::rank_in_line(&bits.line(block), 512));
        let zeros = (bit_count - block * BLOCK_BITS).min(BLOCK_BITS) - ones;
        for ((rank, samples), inside) in ranks.iter_mut().zip(&mut samples).zip([ones, zeros]) {
            let end = *rank + inside;
            while samples.len() as u64 / 4 * SAMPLE_RATE < end {
                samples.extend_from_slice(&(block as u32).to_le_bytes());
            }
            *rank = end;
        }
    }
    superblocks.extend_from_slice(&ranks[0].to_le_bytes());
    blocks.resize(blocks.len().next_multiple_of(8), 0);
    target.extend_from_slice(&superblocks);
    target.extend_from_slice(&blocks);
    if select != Select::None {
        target.extend_from_slice(&samples[0]);
    }
    if select == Select::Both {
        target.extend_from_slice(&samples[1]);
    }
}

/// Bytes that [`encode`] appends.
pub fn encoded_bytes(bit_count: u64, one_count: u64, select: Select) -> u64 {
    let fixed: u64 = fixed_lengths(bit_count).iter().sum();
    let ones = if select == Select::None { 0 } else { sample_count(one_count) };
    let zeros = if select == Select::Both { sample_count(bit_count - one_count) } else { 0 };
    fixed + (ones + zeros) * 4
}

#[cfg(test)]
mod tests;
