//! The 512-bit line of a blocked Bloom filter: all bits of a key are in one cache line.
//!
//! A 32-bit pattern determines the bit addresses one after the other: the top nine bits of the pattern are an address,
//! then the pattern is multiplied by an odd constant (2^32 divided by the golden ratio). Bit `a` is bit `a % 8` of
//! byte `a / 8`. This is part of the filter format.

#![expect(clippy::indexing_slicing, reason = "nine bits address 512 bits, six of them 64 bytes")]

use crate::prefetch;

/// Bytes of a line.
pub const LINE_BYTES: usize = 64;

/// Maximum number of bits that a key sets in its line.
pub const LINE_PROBE_MAX: u32 = 16;

/// Factor from one bit's pattern to the next.
pub(crate) const STEP: u32 = 0x9e37_79b9;

/// Whether all bits of a pattern are set.
#[inline]
pub fn contains(line: &[u8; LINE_BYTES], mut pattern: u32, probe_count: u32) -> bool {
    for _ in 0..probe_count {
        let address = pattern >> 23;
        if line[(address >> 3) as usize] & (1 << (address & 7)) == 0 {
            return false;
        }
        pattern = pattern.wrapping_mul(STEP);
    }
    true
}

/// [`contains`] without a branch on the bits, for few unpredictable bits.
#[inline(always)]
pub fn holds<const PROBES: usize>(line: &[u8; LINE_BYTES], mut pattern: u32) -> bool {
    let mut held = 1;
    for _ in 0..PROBES {
        let address = pattern >> 23;
        held &= line[(address >> 3) as usize] >> (address & 7);
        pattern = pattern.wrapping_mul(STEP);
    }
    held & 1 == 1
}

/// Sets all bits of a pattern.
#[inline]
pub fn insert(line: &mut [u8; LINE_BYTES], mut pattern: u32, probe_count: u32) {
    for _ in 0..probe_count {
        let address = pattern >> 23;
        line[(address >> 3) as usize] |= 1 << (address & 7);
        pattern = pattern.wrapping_mul(STEP);
    }
}

/// The line of a digest among `line_count`: its high half decides, without a division.
#[inline]
pub fn line_index(digest: u64, line_count: u64) -> u64 {
    ((u128::from(digest) * u128::from(line_count)) >> 64) as u64
}

/// The pattern of a digest: its low half, which hardly influences the line.
#[inline]
pub fn pattern(digest: u64) -> u32 {
    digest as u32
}

/// The line of a digest; `None` if it is outside the bytes.
#[inline]
pub fn line_at(lines: &[u8], line_count: u64, digest: u64) -> Option<&[u8; LINE_BYTES]> {
    lines.get(line_offset(digest, line_count)..)?.first_chunk()
}

/// [`line_at`], mutable.
#[inline]
pub fn line_at_mut(lines: &mut [u8], line_count: u64, digest: u64) -> Option<&mut [u8; LINE_BYTES]> {
    lines.get_mut(line_offset(digest, line_count)..)?.first_chunk_mut()
}

/// Prefetches the line of a digest.
#[inline]
pub fn prefetch_line(lines: &[u8], line_count: u64, digest: u64) {
    prefetch(lines, line_offset(digest, line_count));
}

/// [`prefetch_line`] for a line that may span two cache lines, as in a filter under construction.
#[inline]
pub(crate) fn prefetch_whole_line(lines: &[u8], line_count: u64, digest: u64) {
    let offset = line_offset(digest, line_count);
    prefetch(lines, offset);
    prefetch(lines, offset.wrapping_add(LINE_BYTES - 1));
}

#[inline]
fn line_offset(digest: u64, line_count: u64) -> usize {
    (line_index(digest, line_count) as usize).wrapping_mul(LINE_BYTES)
}

#[cfg(test)]
mod tests;
