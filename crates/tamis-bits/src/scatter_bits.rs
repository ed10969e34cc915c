//! Bits scattered over a filter, addressed by numbers.
//!
//! The bit of a number among `n` is the high half of their product ([`kernel::place`]), which is below `n`: so reads
//! need no bounds check.

use crate::kernel;

/// Whether the bit of a number is set; `true` without bytes.
#[inline(always)]
pub fn is_set(bytes: &[u8], number: u64) -> bool {
    are_set(bytes, [number])
}

/// Whether the bits of all numbers are set; `true` without bytes. Reads all of them, without a branch between them.
#[inline(always)]
pub fn are_set<const N: usize>(bytes: &[u8], numbers: [u64; N]) -> bool {
    if bytes.is_empty() {
        return true;
    }
    let bit_count = bytes.len() as u64 * 8;
    let mut all = 1;
    for number in numbers {
        let bit = kernel::place(number, bit_count);
        // SAFETY: the high half of a product is below either factor, so `bit` is below eight times the length.
        let byte = unsafe { *bytes.get_unchecked((bit / 8) as usize) };
        all &= byte >> (bit % 8);
    }
    all & 1 == 1
}

#[cfg(test)]
mod tests;
