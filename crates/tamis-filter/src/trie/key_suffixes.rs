//! Key suffixes: the bytes of the keys of an index below their leaves, in one of three encodings.
//!
//! - `key_suffixes/grouped.rs`: any lengths, which are stored for 32 leaves together.
//! - `key_suffixes/dictionary.rs`: many keys share their suffixes: one byte selects a frequent suffix.
//! - `key_suffixes/fixed_length.rs`: all keys have one length; the length of a suffix follows from the depth of its leaf.

mod dictionary;
mod fixed_length;
mod grouped;

use tamis_bits::line::LINE_BYTES;
use tamis_bits::prefetch;

use dictionary::DictionaryLayout;
use fixed_length::FixedLengthLayout;
use grouped::GroupedLayout;

/// In place of the bits of lengths: all keys have one length.
const FIXED_LENGTH: u8 = 8;
/// In place of the bits of lengths: suffixes are in a dictionary.
const DICTIONARY: u8 = 9;

/// The suffixes of an encoded index.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeySuffixes<'a> {
    bytes: &'a [u8],
    layout: &'a SuffixLayout,
}

/// Offsets of the parts.
#[derive(Debug, Clone, Copy)]
pub(super) enum SuffixLayout {
    Grouped(GroupedLayout),
    FixedLength(FixedLengthLayout),
    Dictionary(DictionaryLayout),
}

/// An encoding of suffixes.
pub(super) trait SuffixEncoding {
    /// Whether an approximate leaf number gives the approximate position of its suffix.
    const IS_IN_LEAF_ORDER: bool;

    /// The suffix of a leaf at a depth. `bytes` has those of the suffixes and at least 16 more.
    fn slot<'a>(&self, bytes: &'a [u8], leaf: u64, depth: usize) -> Option<StoredSuffix<'a>>;

    /// Prefetches the directory entry of a leaf, if there is one.
    fn prefetch(&self, bytes: &[u8], leaf: u64);

    /// Prefetches the suffixes near a leaf, if they are in leaf order.
    fn prefetch_near(&self, bytes: &[u8], leaf: u64, depth: usize);
}

/// Prefetches two cache lines, which usually have the suffixes of the leaves near the one whose suffix begins at
/// `start`.
#[inline(always)]
fn prefetch_both_sides(bytes: &[u8], start: usize) {
    prefetch(bytes, start.wrapping_sub(LINE_BYTES / 2));
    prefetch(bytes, start.wrapping_add(LINE_BYTES / 2));
}

/// The counts of the suffixes in the parameters of the index.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SuffixCounts {
    pub(super) short_bytes: u32,
    /// For fixed lengths the length of all keys; for a dictionary the number of suffixes that are not frequent.
    pub(super) long_bytes: u64,
    pub(super) length_bits: u8,
}

/// A stored suffix.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredSuffix<'a> {
    /// The bytes from its start on.
    suffix: &'a [u8],
    /// The number of its bytes; `None` for all of them (a long suffix).
    length: Option<usize>,
}

impl SuffixLayout {
    /// `None` for counts that no builder writes, and beyond the address space.
    pub(super) fn new(leaf_count: u64, height: u32, counts: SuffixCounts) -> Option<Self> {
        if counts.length_bits == FIXED_LENGTH {
            let key_bytes = usize::try_from(counts.long_bytes).ok()?;
            return FixedLengthLayout::new(height, key_bytes, counts.short_bytes).map(Self::FixedLength);
        }
        if counts.length_bits == DICTIONARY {
            return DictionaryLayout::new(leaf_count, counts).map(Self::Dictionary);
        }
        GroupedLayout::new(leaf_count, counts).map(Self::Grouped)
    }

    /// Bytes of all parts, padded to a multiple of 8.
    pub(super) fn bytes(&self) -> Option<usize> {
        let parts = match self {
            Self::Grouped(layout) => layout.bytes(),
            Self::FixedLength(layout) => layout.bytes(),
            Self::Dictionary(layout) => layout.bytes(),
        };
        parts.checked_next_multiple_of(8)
    }
}

impl<'a> KeySuffixes<'a> {
    /// The suffixes of a payload, after which there are at least 16 bytes more; empty if the payload is too short.
    #[inline(always)]
    pub(super) fn new(payload: &'a [u8], start: usize, layout: &'a SuffixLayout) -> Self {
        Self { bytes: payload.get(start..).unwrap_or_default(), layout }
    }

    /// Their bytes and all that follow.
    #[inline(always)]
    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Prefetches the directory entry of a leaf, if there is one.
    #[inline(always)]
    pub(super) fn prefetch(&self, leaf: u64) {
        match self.layout {
            SuffixLayout::Grouped(layout) => layout.prefetch(self.bytes, leaf),
            SuffixLayout::FixedLength(layout) => layout.prefetch(self.bytes, leaf),
            SuffixLayout::Dictionary(layout) => layout.prefetch(self.bytes, leaf),
        }
    }

    /// The suffix of a leaf at a depth.
    #[inline(always)]
    pub(super) fn slot(&self, leaf: u64, depth: usize) -> Option<StoredSuffix<'a>> {
        match self.layout {
            SuffixLayout::Grouped(layout) => layout.slot(self.bytes, leaf, depth),
            SuffixLayout::FixedLength(layout) => layout.slot(self.bytes, leaf, depth),
            SuffixLayout::Dictionary(layout) => layout.slot(self.bytes, leaf, depth),
        }
    }

    /// The bytes of the suffix of a leaf at a depth; empty if there is none.
    #[inline(always)]
    pub(super) fn get(&self, leaf: u64, depth: usize) -> &'a [u8] {
        self.slot(leaf, depth).map_or(&[], |slot| slot.bytes())
    }
}

impl<'a> StoredSuffix<'a> {
    /// Prefetches the suffix.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        prefetch(self.suffix, 0);
    }

    /// All bytes of the suffix.
    #[inline(always)]
    fn bytes(&self) -> &'a [u8] {
        self.length.map_or(self.suffix, |length| self.suffix.get(..length).unwrap_or_default())
    }

    /// Whether the suffix equals the bytes of a key after `depth`.
    #[inline(always)]
    pub(super) fn equals_rest_of(&self, key: &[u8], depth: usize) -> bool {
        let Some(length) = self.length else { return key.get(depth..) == Some(self.suffix) };
        if key.len() != depth + length {
            return false;
        }
        // Common case: the suffix fits in a word, and so do the last bytes of the key.
        if length <= 8
            && let Some(word) = self.suffix.first_chunk()
            && let Some(end) = last_word(key)
        {
            let differs = u64::from_be_bytes(*word) ^ end << (8 * (8 - length) as u32 % 64);
            // Two shifts instead of a branch for length 0.
            let bits = 4 * length as u32;
            return differs & !(u64::MAX >> bits >> bits) == 0;
        }
        key.get(depth..) == self.suffix.get(..length)
    }
}

/// The last 8 bytes of a key (all bytes of a shorter one) at the lower end of a word; `None` of fewer than 4. No branch
/// on the length, which would be mispredicted.
#[inline(always)]
fn last_word(key: &[u8]) -> Option<u64> {
    let count = key.len().min(8);
    let first = u32::from_be_bytes(*key.get(key.len() - count..)?.first_chunk()?);
    let last = u32::from_be_bytes(*key.last_chunk()?);
    Some((u64::from(first) >> (8 * (8 - count))) << 32 | u64::from(last))
}

/// Collects suffixes in the order of keys.
#[derive(Debug)]
pub(super) struct SuffixBuilder {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The length of the keys, as long as all have the same.
    key_bytes: Option<usize>,
    /// The greatest depth of a leaf.
    height: usize,
}

impl SuffixBuilder {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), key_bytes: None, height: 0 }
    }

    /// Adds the suffix of the next key, whose leaf has this depth. The depth exceeds the key's length if the key ends
    /// at a node.
    #[inline(always)]
    pub(super) fn push(&mut self, key: &[u8], depth: usize) {
        if self.ends.is_empty() {
            self.key_bytes = Some(key.len());
        }
        if self.key_bytes != Some(key.len()) {
            self.key_bytes = None;
        }
        self.height = self.height.max(depth);
        let suffix = key.get(depth..).unwrap_or_default();
        self.bytes.extend_from_slice(suffix);
        self.ends.push(self.bytes.len());
    }

    /// Bytes of all suffixes.
    pub(super) const fn byte_count(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The suffix of the key with a number.
    fn get(&self, ordinal: u64) -> &[u8] {
        let ordinal = ordinal as usize;
        let start = ordinal.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(ordinal).copied().unwrap_or(start);
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// Bytes held.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    /// Appends the suffixes of the keys in the order of their leaves, in the smallest encoding. `None` beyond 4 GiB.
    pub(super) fn encode(
        &self,
        target: &mut Vec<u8>,
        leaves: impl Iterator<Item = u64> + Clone,
    ) -> Option<SuffixCounts> {
        // Fewer than keys: keys that end at a node have no leaf.
        let leaf_count = leaves.clone().count();
        let suffixes = leaves.map(|ordinal| self.get(ordinal));
        // Without the suffixes themselves and the references to long ones.
        let group_bytes = grouped::directory_bytes(leaf_count, self.length_max());
        let counts = match self.key_bytes {
            Some(key_bytes) if fixed_length::table_bytes(self.height) <= group_bytes => {
                fixed_length::encode(target, suffixes, key_bytes, self.height)
            }
            _ => {
                let bytes_max = group_bytes + self.bytes.len();
                let dictionary = dictionary::encode(target, suffixes.clone(), leaf_count, bytes_max);
                dictionary.or_else(|| grouped::encode(target, suffixes, self.length_max()))
            }
        };
        target.resize(target.len().next_multiple_of(8), 0);
        counts
    }

    /// Length of the longest suffix. Keys without a leaf have an empty one.
    fn length_max(&self) -> usize {
        let starts = [0].iter().chain(&self.ends);
        self.ends.iter().zip(starts).map(|(end, start)| end - start).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
