//! The hash of Grafite: rotates each block of consecutive numbers, without a division.

use super::MODULUS_MAX;
use crate::mix64;

/// The Mersenne prime of the hash of block numbers.
const PRIME: u64 = (1 << 61) - 1;

/// The hash of one filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockHash {
    /// Numbers of a block, and of different hashes.
    modulus: u64,
    /// `2^64 / modulus`, rounded down.
    reciprocal: u64,
    factor: u64,
    summand: u64,
}

impl BlockHash {
    /// The hash with a modulus of 2 to [`MODULUS_MAX`].
    pub(super) fn new(seed: u64, modulus: u64) -> Self {
        debug_assert!((2..=MODULUS_MAX).contains(&modulus));
        Self {
            modulus,
            reciprocal: u64::MAX / modulus,
            factor: 1 + mix64(seed, 0) % (PRIME - 1),
            summand: mix64(seed, 1) % PRIME,
        }
    }

    /// The block of a number and its position there.
    #[inline(always)]
    pub(super) fn block(&self, number: u64) -> (u64, u64) {
        // The product with the rounded reciprocal is at most one too small.
        let block = ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u64;
        let place = number - block * self.modulus;
        if place >= self.modulus { (block + 1, place - self.modulus) } else { (block, place) }
    }

    /// The hash of a position in a block.
    #[inline(always)]
    pub(super) fn rotate(&self, block: u64, place: u64) -> u64 {
        let hash = self.rotation(block) + place;
        if hash >= self.modulus { hash - self.modulus } else { hash }
    }

    /// The hash of a number.
    #[inline(always)]
    pub(super) fn hash(&self, number: u64) -> u64 {
        let (block, place) = self.block(number);
        self.rotate(block, place)
    }

    /// `((factor * block + summand) mod PRIME) * modulus / 2^61`: pairwise independent and below the modulus.
    #[inline(always)]
    fn rotation(&self, block: u64) -> u64 {
        let product = u128::from(self.factor) * u128::from((block & PRIME) + (block >> 61));
        let sum = (product as u64 & PRIME) + (product >> 61) as u64 + self.summand;
        let folded = (sum & PRIME) + (sum >> 61);
        let reduced = if folded >= PRIME { folded - PRIME } else { folded };
        ((u128::from(reduced) * u128::from(self.modulus)) >> 61) as u64
    }
}

/// Sorts hashes of at most `last`: distributes them over buckets of about 64 in one pass, then sorts these.
pub(super) fn sort(mut hashes: Vec<u64>, last: u64) -> Vec<u64> {
    const BUCKET_HASHES: usize = 64;
    const BUCKET_BITS_MAX: u32 = 16;
    let bits = (hashes.len() / BUCKET_HASHES).checked_ilog2().unwrap_or(0).min(BUCKET_BITS_MAX);
    if bits < 4 {
        hashes.sort_unstable();
        return hashes;
    }
    let shift = (u64::BITS - last.leading_zeros()).saturating_sub(bits);
    let bucket = |hash: u64| (hash >> shift) as usize;
    let mut ends = vec![0; 1 << bits];
    for hash in &hashes {
        if let Some(count) = ends.get_mut(bucket(*hash)) {
            *count += 1;
        }
    }
    let mut sum = 0;
    for end in &mut ends {
        sum += std::mem::replace(end, sum);
    }
    let mut sorted = vec![0; hashes.len()];
    for hash in &hashes {
        if let Some(place) = ends.get_mut(bucket(*hash)) {
            if let Some(target) = sorted.get_mut(*place) {
                *target = *hash;
            }
            *place += 1;
        }
    }
    let mut start = 0;
    for end in ends {
        sorted.get_mut(start..end).unwrap_or_default().sort_unstable();
        start = end;
    }
    sorted
}
