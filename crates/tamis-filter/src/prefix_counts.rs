//! The number of distinct prefixes of each length of sorted keys, which are continued by zeros.
//!
//! Two adjacent keys with a common prefix of `c` bits have one prefix of each length up to `c` and two of each longer one. So the number of
//! distinct prefixes of `n` bits is one more than the number of adjacent pairs with a common prefix of fewer than `n` bits.

use crate::bit_string::BitString;
use crate::trie::shared_bytes;
use crate::{KeySet, steps};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct PrefixCounts {
    /// By length in bits; longer prefixes have the last count.
    counts: Vec<u64>,
    keys: u64,
}

impl PrefixCounts {
    /// Scans the keys; prefixes of more than `bit_count` bits are not distinguished.
    pub(crate) fn of_keys(keys: &KeySet, bit_count: u32) -> Self {
        let mut shared = SharedBits::default();
        let pairs = keys.iter().zip(keys.iter().skip(1));
        let bits = pairs.map(|(before, key)| shared_key_bits(before, key, bit_count));
        bits.filter(|bits| *bits < bit_count).for_each(|bits| shared.add(bits));
        Self::of_pairs(&shared, bit_count, keys.len())
    }

    /// From the common bits of adjacent keys.
    pub(crate) fn of_pairs(shared: &SharedBits, bit_count: u32, key_count: usize) -> Self {
        let mut sum = u64::from(key_count > 0);
        let mut counts = vec![sum];
        for pairs in shared.0.iter().take(bit_count as usize) {
            sum += pairs;
            counts.push(sum);
        }
        Self { counts, keys: key_count as u64 }
    }

    /// Distinct prefixes of a length.
    pub(crate) fn at(&self, bit_count: u32) -> u64 {
        self.counts.get(bit_count as usize).or(self.counts.last()).copied().unwrap_or(0)
    }

    /// Distinct keys.
    pub(crate) const fn keys(&self) -> u64 {
        self.keys
    }

    /// The length from which on the number of prefixes does not grow.
    pub(crate) fn depth_max(&self) -> u32 {
        self.counts.len() as u32 - 1
    }

    /// The lengths at which the number of prefixes grows, in order.
    pub(crate) fn growing_lengths(&self) -> impl Iterator<Item = u32> {
        steps::count(self.counts.len());
        let counts = self.counts.iter().zip(self.counts.iter().skip(1));
        (1..).zip(counts).filter(|(_, (before, count))| before < count).map(|(length, _)| length)
    }
}

/// Pairs of adjacent keys by the number of their common bits.
#[derive(Debug, Default)]
pub(crate) struct SharedBits(Vec<u64>);

impl SharedBits {
    #[inline]
    pub(crate) fn add(&mut self, bits: u32) {
        let index = bits as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        if let Some(count) = self.0.get_mut(index) {
            *count += 1;
        }
    }

    /// Scales the numbers of a sample of the pairs to all.
    pub(crate) fn scale_to(&mut self, pair_count: usize) {
        let factor = pair_count as f64 / (self.0.iter().sum::<u64>() as f64).max(1.0);
        self.0.iter_mut().for_each(|count| *count = (*count as f64 * factor).round() as u64);
    }
}

/// Common bits of two keys, each continued by zeros; at most `bit_count`.
#[inline]
pub(crate) fn shared_key_bits(before: &[u8], key: &[u8], bit_count: u32) -> u32 {
    let bytes = shared_bytes(before, key);
    if let (Some(one), Some(other)) = (before.get(bytes), key.get(bytes)) {
        let bits = (bytes as u64 * 8).min(u64::from(bit_count)) as u32 + (one ^ other).leading_zeros();
        return bits.min(bit_count);
    }
    BitString::key(before).common_bits(&BitString::key(key)).min(bit_count)
}

#[cfg(test)]
mod tests;
