//! Bits in bytes: bit `i` is bit `i % 8` of byte `i / 8`, which is also bit `i % 64` of the little-endian word `i / 64`.

use crate::line::LINE_BYTES;
use crate::prefetch;

/// A borrowed bit vector. Bits beyond the bytes read as zero.
#[derive(Debug, Clone, Copy)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    bit_count: u64,
}

impl<'a> Bits<'a> {
    /// The first `bit_count` bits of `bytes`; `None` if there are fewer.
    #[inline(always)]
    pub fn new(bytes: &'a [u8], bit_count: u64) -> Option<Self> {
        let byte_count = usize::try_from(bit_count.div_ceil(8)).ok()?;
        Some(Self { bytes: bytes.get(..byte_count)?, bit_count })
    }

    /// Number of bits.
    #[inline]
    pub const fn len(&self) -> u64 {
        self.bit_count
    }

    /// Whether there are no bits.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.bit_count == 0
    }

    /// Whether a bit is set; `false` beyond the end.
    #[inline]
    pub fn get(&self, index: u64) -> bool {
        let byte = self.bytes.get((index / 8) as usize).copied().unwrap_or(0);
        index < self.bit_count && byte >> (index % 8) & 1 == 1
    }

    /// `width` bits (at most 64) from `index` on, least significant first; zeros beyond the bytes.
    #[inline(always)]
    pub fn get_bits(&self, index: u64, width: u32) -> u64 {
        get_bits(self.bytes, index, width)
    }

    /// Prefetches a bit.
    #[inline]
    pub(crate) fn prefetch(&self, index: u64) {
        prefetch(self.bytes, (index / 8) as usize);
    }

    /// The 512 bits from `line_index * 512` on; zeros beyond the bytes.
    #[inline]
    pub fn line(&self, line_index: u64) -> [u8; LINE_BYTES] {
        let start = (line_index as usize).saturating_mul(LINE_BYTES);
        let rest = self.bytes.get(start..).unwrap_or_default();
        rest.first_chunk().copied().unwrap_or_else(|| {
            let mut line = [0; LINE_BYTES];
            for (target, source) in line.iter_mut().zip(rest) {
                *target = *source;
            }
            line
        })
    }
}

/// `width` bits (at most 64) of bytes from bit `index` on, least significant first; zeros beyond the bytes.
#[inline(always)]
pub(crate) fn get_bits(bytes: &[u8], index: u64, width: u32) -> u64 {
    let shift = (index % 8) as u32;
    let rest = bytes.get((index / 8) as usize..).unwrap_or_default();
    let mut bits = word_of(rest) >> shift;
    if shift + width > 64 {
        bits |= u64::from(rest.get(8).copied().unwrap_or(0)) << (64 - shift);
    }
    bits & low_mask(width)
}

/// A mask of the lowest `width` bits; of all bits from 64 on.
#[inline(always)]
pub(crate) fn low_mask(width: u32) -> u64 {
    u64::MAX.checked_shr(64_u32.saturating_sub(width)).unwrap_or(0)
}

#[inline(always)]
fn word_of(bytes: &[u8]) -> u64 {
    if let Some(word) = bytes.first_chunk::<8>() {
        return u64::from_le_bytes(*word);
    }
    let mut word = [0; 8];
    for (target, source) in word.iter_mut().zip(bytes) {
        *target = *source;
    }
    u64::from_le_bytes(word)
}

/// Appends bits.
#[derive(Debug, Clone, Default)]
pub struct BitBuilder {
    bytes: Vec<u8>,
    pending: u64,
    pending_count: u32,
}

impl BitBuilder {
    /// No bits.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), pending: 0, pending_count: 0 }
    }

    /// Number of appended bits.
    pub const fn len(&self) -> u64 {
        self.bytes.len() as u64 * 8 + self.pending_count as u64
    }

    /// Whether there are no bits.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends one bit.
    #[inline]
    pub fn push(&mut self, bit: bool) {
        self.push_bits(u64::from(bit), 1);
    }

    /// Appends the lowest `width` bits (at most 64) of a word, least significant first.
    pub fn push_bits(&mut self, word: u64, width: u32) {
        let word = word & low_mask(width);
        self.pending |= word << self.pending_count;
        if self.pending_count + width < 64 {
            self.pending_count += width;
            return;
        }
        self.bytes.extend_from_slice(&self.pending.to_le_bytes());
        let taken = 64 - self.pending_count;
        self.pending = word.checked_shr(taken).unwrap_or(0);
        self.pending_count = self.pending_count + width - 64;
    }

    /// Appends all bits of another builder.
    pub fn append(&mut self, other: Self) {
        for word in other.bytes.as_chunks::<8>().0 {
            self.push_bits(u64::from_le_bytes(*word), 64);
        }
        self.push_bits(other.pending, other.pending_count);
    }

    /// The bits in whole bytes, the rest of the last one zero.
    pub fn finish(mut self) -> Vec<u8> {
        let rest = self.pending.to_le_bytes();
        self.bytes.extend(rest.iter().take(self.pending_count.div_ceil(8) as usize));
        self.bytes
    }
}

#[cfg(test)]
mod tests;
