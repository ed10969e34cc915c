//! Integers of equal width, bit after bit.

use crate::bits::{get_bits, low_mask};

/// Borrowed integers of `width` bits each (0 to 64).
#[derive(Debug, Clone, Copy)]
pub struct PackedInts<'a> {
    bytes: &'a [u8],
    width: u32,
    count: u64,
}

impl<'a> PackedInts<'a> {
    /// The `count` integers at the front of `bytes`, and their length in bytes (a multiple of 8); `None` where the bytes are
    /// too few or the width is above 64.
    pub fn open(bytes: &'a [u8], width: u32, count: u64) -> Option<(Self, usize)> {
        if width > 64 {
            return None;
        }
        let length = usize::try_from(encoded_bytes(width, count)?).ok()?;
        Some((Self { bytes: bytes.get(..length)?, width, count }, length))
    }

    /// Bytes of which the length is known to be right, and a width of at most 64.
    #[inline(always)]
    pub(crate) const fn with_bytes(bytes: &'a [u8], width: u32, count: u64) -> Self {
        Self { bytes, width, count }
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

    /// An integer; 0 beyond the end.
    #[inline]
    pub fn get(&self, index: u64) -> u64 {
        if index >= self.count {
            return 0;
        }
        get_bits(self.bytes, index * u64::from(self.width), self.width)
    }
}

/// Bytes of `count` integers; `None` beyond 64 bits.
pub fn encoded_bytes(width: u32, count: u64) -> Option<u64> {
    Some(count.checked_mul(u64::from(width))?.div_ceil(64) * 8)
}

/// Appends the lowest bits of integers, one after the other.
#[derive(Debug)]
pub(crate) struct Packer<'t> {
    target: &'t mut Vec<u8>,
    width: u32,
    mask: u64,
    pending: u64,
    filled: u32,
}

impl<'t> Packer<'t> {
    /// A packer of so many bits each (0 to 64).
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

    /// [`Packer::push`] of many: what is pending stays in registers.
    #[inline(always)]
    pub(crate) fn push_all(&mut self, integers: &[u64]) {
        let Self { width, mask, pending, filled, .. } = *self;
        let mut near = Packer { target: self.target, width, mask, pending, filled };
        integers.iter().for_each(|integer| near.push(*integer));
        (self.pending, self.filled) = (near.pending, near.filled);
    }

    /// Fills up to a multiple of 8 bytes.
    pub(crate) fn finish(self) {
        if self.filled > 0 {
            self.target.extend_from_slice(&self.pending.to_le_bytes());
        }
    }
}

/// Appends the lowest `width` bits of each integer, filled up to a multiple of 8 bytes.
#[inline]
pub fn encode(target: &mut Vec<u8>, width: u32, integers: impl Iterator<Item = u64>) {
    let mut packer = Packer::new(target, width);
    integers.for_each(|integer| packer.push(integer));
    packer.finish();
}

#[cfg(test)]
mod tests;
