//! The bits of a leaf: digest bits above real bits.
//!
//! Real bits are the key's first bits after its stored prefix, continued by zeros. Let `s` be those of a stored key and
//! `q` those of another string with the same stored prefix. At the first bit in which they differ, the 1 is a real bit
//! of its owner. The 0 is either real, and the order of bytes decides, or it continues a string that has ended, which
//! is a prefix of the other and so smaller. Hence `s < q` means that the stored key is smaller, `s > q` that it is
//! greater; equal bits leave the order open. A prefix as upper bound is continued by ones: it includes all strings that
//! begin with it.

use tamis_bits::key_head;

/// The number of bits of each kind in a leaf; at most 64 together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SuffixBits {
    /// Bits of the digest.
    pub hash: u32,
    /// Bits of the key.
    pub real: u32,
}

impl SuffixBits {
    /// Maximal number of bits of a leaf.
    pub const MAX: u32 = 64;

    /// Bits of a leaf.
    #[inline(always)]
    pub const fn width(self) -> u32 {
        self.hash + self.real
    }

    /// The stored bits of a leaf, from a digest and a word from [`word_after`].
    #[inline(always)]
    pub(super) fn field(self, digest: u64, real: u64) -> u64 {
        top_bits(digest, self.hash).checked_shl(self.real).unwrap_or(0) | top_bits(real, self.real)
    }
}

/// The first bits of a word.
#[inline(always)]
pub(super) fn top_bits(word: u64, count: u32) -> u64 {
    word.checked_shr(64 - count).unwrap_or(0)
}

/// The first 64 bits of a key after its stored prefix, continued by zeros.
#[inline(always)]
pub(super) fn word_after(key: &[u8], depth: usize) -> u64 {
    let rest = key.get(depth..).unwrap_or_default();
    match (rest.first_chunk::<8>(), key.last_chunk::<8>()) {
        // The key's last eight bytes, without those of the prefix.
        (None, Some(end)) => u64::from_be_bytes(*end).checked_shl(64 - 8 * rest.len() as u32).unwrap_or(0),
        _ => key_head(rest),
    }
}

/// [`word_after`], continued by ones.
#[inline(always)]
pub(super) fn prefix_word_after(prefix: &[u8], depth: usize) -> u64 {
    let rest = prefix.get(depth..).unwrap_or_default();
    key_head(rest) | u64::MAX.checked_shr(rest.len().min(8) as u32 * 8).unwrap_or(0)
}
