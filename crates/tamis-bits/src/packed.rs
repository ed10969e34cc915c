//! Packed integers of equal width.

use crate::bits::{get_bits, low_mask};
use crate::prefetch;

/// Borrowed integers of `width` bits each (0 to 64).
#[derive(Debug, Clone, Copy)]
pub struct PackedInts<'a> {
    bytes: &'a [u8],
    width: u32,
    count: u64,
}

impl<'a> PackedInts<'a> {
    /// The `count` integers at the front of `bytes`, and their length in bytes (a multiple of 8); `None` if the bytes
    /// are too few or the width is above 64.
    pub fn open(bytes: &'a [u8], width: u32, count: u64) -> Option<(Self, usize)> {
        if width > 64 {
            return None;
        }
        let length = usize::try_from(encoded_bytes(width, count)?).ok()?;
        Some((Self { bytes: bytes.get(..length)?, width, count }, length))
    }

    /// Bytes of a length that is known to be right, and a width of at most 64.
    #[inline(always)]
    pub(crate) const fn with_bytes(bytes: &'a [u8], width: u32, count: u64) -> Self {
        Self { bytes, width, count }
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

    /// The integer with an index; 0 beyond the end.
    #[inline]
    pub fn get(&self, index: u64) -> u64 {
        if index >= self.count {
            return 0;
        }
        get_bits(self.bytes, index * u64::from(self.width), self.width)
    }

    /// Prefetches an integer.
    #[inline]
    pub(crate) fn prefetch(&self, index: u64) {
        prefetch(self.bytes, (index.wrapping_mul(u64::from(self.width)) / 8) as usize);
    }
}

/// Bytes of `count` integers; `None` beyond 64 bits.
pub fn encoded_bytes(width: u32, count: u64) -> Option<u64> {
    Some(count.checked_mul(u64::from(width))?.div_ceil(64) * 8)
}

/// A growing vector of integers of equal width, readable at any time.
#[derive(Debug, Clone, Default)]
pub struct PackedVec {
    words: Vec<u64>,
    width: u32,
    /// Used bits of the last word; 0 if all are.
    filled: u32,
    count: u64,
}

impl PackedVec {
    /// An empty vector with a number of bits per integer (0 to 64; greater values count as 64).
    ///
    /// ```
    /// let mut fields = tamis_bits::packed::PackedVec::new(5);
    /// (0..20).for_each(|field| fields.push(field));
    /// assert_eq!((fields.len(), fields.get(17)), (20, 17));
    /// ```
    pub const fn new(width: u32) -> Self {
        Self { words: Vec::new(), width: if width < 64 { width } else { 64 }, filled: 0, count: 0 }
    }

    /// Number of integers.
    pub const fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are no integers.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends the lowest bits of an integer.
    #[inline(always)]
    pub fn push(&mut self, integer: u64) {
        self.count += 1;
        self.push_bits(integer & low_mask(self.width), self.width);
    }

    /// Appends bits; all other bits must be zero.
    #[inline(always)]
    fn push_bits(&mut self, bits: u64, width: u32) {
        let end = self.filled + width;
        match self.words.last_mut() {
            Some(last) if self.filled > 0 => {
                *last |= bits << self.filled;
                if end > 64 {
                    self.words.push(bits >> (64 - self.filled));
                }
            }
            _ if width > 0 => self.words.push(bits),
            _ => {}
        }
        self.filled = end % 64;
    }

    /// The integer with an index; 0 beyond the end.
    #[inline]
    pub fn get(&self, index: u64) -> u64 {
        if index >= self.count {
            return 0;
        }
        let bit = index * u64::from(self.width);
        let (word, shift) = ((bit / 64) as usize, (bit % 64) as u32);
        let at = |word: usize| self.words.get(word).copied().unwrap_or(0);
        let mut bits = at(word) >> shift;
        if shift + self.width > 64 {
            bits |= at(word + 1) << (64 - shift);
        }
        bits & low_mask(self.width)
    }

    /// All integers in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + Clone {
        (0..self.count).map(|index| self.get(index))
    }

    /// Appends integers of the same width.
    pub fn append(&mut self, others: &Self) {
        debug_assert_eq!(self.width, others.width, "integers of one width");
        let Some((last, whole)) = others.words.split_last() else {
            self.count += others.count;
            return;
        };
        whole.iter().for_each(|word| self.push_bits(*word, 64));
        self.push_bits(*last, if others.filled == 0 { 64 } else { others.filled });
        self.count += others.count;
    }

    /// Appends the integers as [`encode`] does.
    pub fn encode(&self, target: &mut Vec<u8>) {
        target.extend(self.words.iter().flat_map(|word| word.to_le_bytes()));
    }

    /// Bytes held.
    pub const fn memory_bytes(&self) -> usize {
        self.words.capacity() * 8
    }
}

/// Appends the lowest bits of integers one after the other.
#[derive(Debug)]
pub(crate) struct Packer<'t> {
    target: &'t mut Vec<u8>,
    width: u32,
    mask: u64,
    pending: u64,
    filled: u32,
}

impl<'t> Packer<'t> {
    /// A packer with a number of bits per integer (0 to 64).
    pub(crate) fn new(target: &'t mut Vec<u8>, width: u32) -> Self {
        Self { target, width, mask: low_mask(width), pending: 0, filled: 0 }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, integer: u64) {
        let word = integer & self.mask;
        self.pending |= word << self.filled;
        self.filled += self.width;
        if self.filled >= 64 {
            self.target.extend_from_slice(&self.pending.to_le_bytes());
            self.filled -= 64;
            self.pending = word.checked_shr(self.width - self.filled).unwrap_or(0);
        }
    }

    /// [`Packer::push`] for many: pending bits stay in registers.
    #[inline(always)]
    pub(crate) fn push_all(&mut self, integers: &[u64]) {
        let Self { width, mask, pending, filled, .. } = *self;
        let mut near = Packer { target: self.target, width, mask, pending, filled };
        integers.iter().for_each(|integer| near.push(*integer));
        (self.pending, self.filled) = (near.pending, near.filled);
    }

    /// Pads to a multiple of 8 bytes.
    pub(crate) fn finish(self) {
        if self.filled > 0 {
            self.target.extend_from_slice(&self.pending.to_le_bytes());
        }
    }
}

/// Appends the lowest `width` bits of each integer, padded to a multiple of 8 bytes.
#[inline]
pub fn encode(target: &mut Vec<u8>, width: u32, integers: impl Iterator<Item = u64>) {
    let mut packer = Packer::new(target, width);
    integers.for_each(|integer| packer.push(integer));
    packer.finish();
}

#[cfg(test)]
mod tests;
