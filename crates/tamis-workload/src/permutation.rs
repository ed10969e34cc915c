//! The numbers below a bound in random order, without memory for them.

#[cfg(test)]
mod tests;

/// Odd factors: a multiplication modulo a power of two maps one to one.
const FACTORS: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93, 0xA076_1D64_78BD_642F];

/// A one-to-one map of `0..count` to itself that looks random: the order in which dense keys are loaded "at random". Cost: a few
/// multiplications per number, on average at most twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permutation {
    count: u64,
    seed: u64,
    mask: u64,
    shift: u32,
}

impl Permutation {
    /// The map of `0..count` (0 counts as 1) for a seed.
    pub fn new(count: u64, seed: u64) -> Self {
        let count = count.max(1);
        let bits = (u64::BITS - (count - 1).leading_zeros()).max(1);
        Self { count, seed, mask: u64::MAX >> (u64::BITS - bits), shift: bits.div_ceil(2) }
    }

    /// The number at a place, both below the bound. Places beyond it count modulo the bound.
    pub fn at(&self, place: u64) -> u64 {
        let mut number = place % self.count;
        loop {
            for factor in FACTORS {
                number = (number ^ self.seed) & self.mask;
                number = number.wrapping_mul(factor) & self.mask;
                number ^= number >> self.shift;
            }
            // The map of all numbers with these bits, followed until it returns into the bound, is one to one, too.
            if number < self.count {
                return number;
            }
        }
    }
}
