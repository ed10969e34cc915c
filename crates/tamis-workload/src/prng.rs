//! SplitMix64: the one source of pseudo-random numbers of all workloads.
//!
//! Its state is a counter, so it never repeats a value within 2^64 calls. Cost: about a nanosecond per call.

#[cfg(test)]
mod tests;

const INCREMENT: u64 = 0x9E37_79B9_7F4A_7C15;

/// 2^-53: the distance of the drawn doubles in `[0, 1)`.
const UNIT_STEP: f64 = 1.0 / (1_u64 << 53) as f64;

/// The SplitMix64 generator.
///
/// ```
/// let mut random = tamis_workload::SplitMix64::new(42);
/// assert_eq!(random.next_u64(), 13_679_457_532_755_275_413);
/// ```
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(INCREMENT);
        mix64(self.state)
    }

    /// A number below `bound`: the plain remainder, whose tiny bias is part of the specification. A `bound` of 0
    /// counts as 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        let next = self.next_u64();
        next.checked_rem(bound).unwrap_or(next)
    }

    /// An index below `count`, as [`SplitMix64::below`].
    pub fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    /// A double in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * UNIT_STEP
    }

    /// A double in `(0, 1]`, whose logarithm is finite.
    pub fn unit_above_zero(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 * UNIT_STEP
    }
}

/// The finaliser of each step of [`SplitMix64`]: a bijection that scatters neighbours.
pub fn mix64(number: u64) -> u64 {
    let z = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Iterator for SplitMix64 {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        Some(self.next_u64())
    }
}
