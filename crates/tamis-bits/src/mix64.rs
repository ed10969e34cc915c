//! A mixer of 64-bit integers: every bit of the result depends on every bit of the input.

/// Multiplier of the number of a structure.
const NUMBER_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The factors of the finaliser.
const FACTORS: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// Derives a second digest from a digest, for a structure that must be independent of another one with the same keys:
/// the finaliser of SplitMix64 over the digest and a number of the structure. Part of the filter format.
#[inline(always)]
pub const fn mix64(digest: u64, number: u64) -> u64 {
    let mut mixed = digest ^ number.wrapping_add(1).wrapping_mul(NUMBER_FACTOR);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(FACTORS[0]);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(FACTORS[1]);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
