//! The one digest of all families: rapidhash v3, 64 bits, its secrets derived from the database's seed.
//!
//! Function and derivation are part of the filter format (`docs/format/filter.md`): a change needs a new digest
//! number. The seed is random per database, so that no one can prepare keys that are false positives in every filter.
//!
//! Rejected: XXH3. Of the maintained functions with stable output for short and long keys, rapidhash is the fastest at
//! nearly all lengths from 8 bytes to 1 KiB: on an AMD Zen 5, 1.4 and 1.9 ns at 8 bytes, 8.2 and 20.8 ns at 256; on an
//! Intel Xeon, XXH3 is 0.3 to 0.5 ns faster at 32 and 128 bytes only (`research run bloom-digests`).

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline};
pub use tamis_bits::mix64;
use tamis_bits::{key_head, long_key_head};

use crate::bit_string::BitString;

/// Name of the digest function in the format.
pub const DIGEST_NAME: &str = "rapidhash-v3-seeded";

/// The digest function with one seed. Created once per database, shared by all its filters and queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digester {
    seed: u64,
    secrets: RapidSecrets,
}

impl Digester {
    /// The function for a seed; costs about ten digests of short keys.
    pub const fn new(seed: u64) -> Self {
        Self { seed, secrets: RapidSecrets::seed(seed) }
    }

    /// The seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The digest of a whole key.
    #[inline]
    pub fn digest(&self, key: &[u8]) -> u64 {
        rapidhash_v3_inline::<true, false, false>(key, &self.secrets)
    }

    /// The digest of the first `bit_count` bits of a key, counted from its first bit. A shorter key is continued by
    /// zero bits. Defined as the digest of those bits in whole bytes, the rest of the last byte zero, exclusive-or
    /// `bit_count` times an odd constant, so that lengths with equal bytes differ.
    #[inline]
    pub fn prefix_digest(&self, key: &[u8], bit_count: u32) -> u64 {
        if bit_count <= 64 {
            return self.word_prefix_digest(key_head(key), bit_count);
        }
        if bit_count <= 128 {
            return self.long_word_prefix_digest(long_key_head(key), bit_count);
        }
        let byte_count = bit_count.div_ceil(8) as usize;
        let spare_bits = bit_count % 8;
        let digest = match key.get(..byte_count) {
            Some(prefix) if spare_bits == 0 => self.digest(prefix),
            _ => self.digest_of_copy(key, bit_count),
        };
        digest ^ length_mark(bit_count)
    }

    /// [`Digester::prefix_digest`] of a prefix of at most 64 bits that is given as the top bits of a word; ignores the
    /// bits of the word below the prefix.
    #[inline]
    pub fn word_prefix_digest(&self, word: u64, bit_count: u32) -> u64 {
        let masked = if bit_count == 0 { 0 } else { word & (u64::MAX << (64 - bit_count.min(64))) };
        self.short_digest(masked, bit_count.div_ceil(8)) ^ length_mark(bit_count)
    }

    /// [`Digester::prefix_digest`] of a prefix of at most 128 bits that is given as the top bits of a word; ignores
    /// the bits of the word below the prefix.
    #[inline]
    pub(crate) fn long_word_prefix_digest(&self, word: u128, bit_count: u32) -> u64 {
        if bit_count <= 64 {
            return self.word_prefix_digest((word >> 64) as u64, bit_count);
        }
        let masked = word & (u128::MAX << (128 - bit_count.min(128)));
        let digest = match bit_count.div_ceil(8) {
            9 => self.long_head_digest::<9>(masked),
            10 => self.long_head_digest::<10>(masked),
            11 => self.long_head_digest::<11>(masked),
            12 => self.long_head_digest::<12>(masked),
            13 => self.long_head_digest::<13>(masked),
            14 => self.long_head_digest::<14>(masked),
            15 => self.long_head_digest::<15>(masked),
            _ => self.long_head_digest::<16>(masked),
        };
        digest ^ length_mark(bit_count)
    }

    /// The digest of the first `BYTES` bytes (9 to 16) of a word of 128 bits.
    #[inline(always)]
    pub(crate) fn long_head_digest<const BYTES: usize>(&self, word: u128) -> u64 {
        word.to_be_bytes().first_chunk::<BYTES>().map_or(0, |head| self.digest(head))
    }

    /// The digest of the first bytes of a word, at most eight: one jump to the code for that length.
    #[inline(always)]
    pub(crate) fn short_digest(&self, word: u64, byte_count: u32) -> u64 {
        match byte_count {
            0 => self.digest(&[]),
            1 => self.head_digest::<1>(word),
            2 => self.head_digest::<2>(word),
            3 => self.head_digest::<3>(word),
            4 => self.head_digest::<4>(word),
            5 => self.head_digest::<5>(word),
            6 => self.head_digest::<6>(word),
            7 => self.head_digest::<7>(word),
            _ => self.head_digest::<8>(word),
        }
    }

    /// The digest of the first `BYTES` bytes (1 to 8) of a word: few instructions, since the length is a constant.
    #[inline(always)]
    pub(crate) fn head_digest<const BYTES: usize>(&self, word: u64) -> u64 {
        word.to_be_bytes().first_chunk::<BYTES>().map_or(0, |head| self.digest(head))
    }

    /// [`Digester::prefix_digest`] of a prefix that is given in whole bytes, the rest of the last one zero.
    #[inline]
    pub fn whole_byte_prefix_digest(&self, prefix: &[u8], bit_count: u32) -> u64 {
        self.digest(prefix) ^ length_mark(bit_count)
    }

    fn digest_of_copy(&self, key: &[u8], bit_count: u32) -> u64 {
        let mut prefix = vec![0; bit_count.div_ceil(8) as usize];
        BitString::key(key).write_prefix(bit_count, &mut prefix);
        self.digest(&prefix)
    }
}

/// The mark of the digest of a prefix, by its length.
pub(crate) const fn length_mark(bit_count: u32) -> u64 {
    (bit_count as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests;
