//! What is left of the keys of an index behind their leaves, in one of three forms.
//!
//! - `tails/grouped.rs`: lengths are stored, for 32 leaves together.
//! - `tails/coded.rs`: many keys have their tails in common: a byte tells which of the frequent ones.
//! - `tails/leveled.rs`: all keys have one length, and what of it is left follows from the depth of the leaf.

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
/// The same: tails are coded.
const DICTIONARY: u8 = 9;

/// The tails of an encoded index.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeySuffixes<'a> {
    bytes: &'a [u8],
    layout: &'a SuffixLayout,
}

/// Where the parts lie.
#[derive(Debug, Clone, Copy)]
pub(super) enum SuffixLayout {
    Grouped(GroupedLayout),
    FixedLength(FixedLengthLayout),
    Dictionary(DictionaryLayout),
}

/// One of the forms.
pub(super) trait SuffixEncoding {
    /// Whether about the number of a leaf tells about where its tail lies.
    const IS_IN_LEAF_ORDER: bool;

    /// Where the tail of a leaf lies that so many bytes lead to. The bytes are those of the tails and 16 more at least.
    fn slot<'a>(&self, bytes: &'a [u8], leaf: u64, depth: usize) -> Option<StoredSuffix<'a>>;

    /// Brings into the cache what tells where the tail of a leaf lies, where there is such a thing.
    fn prefetch(&self, bytes: &[u8], leaf: u64);

    /// Brings the tails about a leaf into the cache, where they lie in order.
    fn prefetch_near(&self, bytes: &[u8], leaf: u64, depth: usize);
}

/// Brings two lines into the cache, which mostly have the tail of a leaf that is some numbers away from the one whose tail begins here.
#[inline(always)]
fn prefetch_both_sides(bytes: &[u8], start: usize) {
    prefetch(bytes, start.wrapping_sub(LINE_BYTES / 2));
    prefetch(bytes, start.wrapping_add(LINE_BYTES / 2));
}

/// What tails leave to be known of them by others.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SuffixCounts {
    pub(super) short_bytes: u32,
    /// The length of all keys where they have one; how many tails are none of the frequent ones, where they are coded.
    pub(super) long_bytes: u64,
    pub(super) length_bits: u8,
}

/// Where a tail lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredSuffix<'a> {
    /// The bytes from where it begins on.
    suffix: &'a [u8],
    /// How many of them belong to it; all of a long one.
    length: Option<usize>,
}

impl SuffixLayout {
    /// `None` for what no builder writes, and beyond the address space.
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

    /// Bytes of all parts, filled up to a multiple of 8.
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
    /// The tails of a payload, behind which there are 16 bytes more at least; none where the bytes are too few.
    #[inline(always)]
    pub(super) fn new(payload: &'a [u8], start: usize, layout: &'a SuffixLayout) -> Self {
        Self { bytes: payload.get(start..).unwrap_or_default(), layout }
    }

    /// Their bytes and all that follow.
    #[inline(always)]
    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Brings into the cache what tells where the tail of a leaf lies, where there is such a thing.
    #[inline(always)]
    pub(super) fn prefetch(&self, leaf: u64) {
        match self.layout {
            SuffixLayout::Grouped(layout) => layout.prefetch(self.bytes, leaf),
            SuffixLayout::FixedLength(layout) => layout.prefetch(self.bytes, leaf),
            SuffixLayout::Dictionary(layout) => layout.prefetch(self.bytes, leaf),
        }
    }

    /// Where the tail of a leaf lies that so many bytes lead to.
    #[inline(always)]
    pub(super) fn slot(&self, leaf: u64, depth: usize) -> Option<StoredSuffix<'a>> {
        match self.layout {
            SuffixLayout::Grouped(layout) => layout.slot(self.bytes, leaf, depth),
            SuffixLayout::FixedLength(layout) => layout.slot(self.bytes, leaf, depth),
            SuffixLayout::Dictionary(layout) => layout.slot(self.bytes, leaf, depth),
        }
    }

    /// The suffix of a leaf that so many bytes lead to; empty where there is none.
    #[inline(always)]
    pub(super) fn get(&self, leaf: u64, depth: usize) -> &'a [u8] {
        self.slot(leaf, depth).map_or(&[], |slot| slot.bytes())
    }
}

impl<'a> StoredSuffix<'a> {
    /// Brings the tail into the cache.
    #[inline(always)]
    pub(super) fn prefetch(&self) {
        prefetch(self.suffix, 0);
    }

    /// All bytes of the suffix.
    #[inline(always)]
    fn bytes(&self) -> &'a [u8] {
        self.length.map_or(self.suffix, |length| self.suffix.get(..length).unwrap_or_default())
    }

    /// Whether the tail is what a key has from the leaf's `depth` on.
    #[inline(always)]
    pub(super) fn equals_rest_of(&self, key: &[u8], depth: usize) -> bool {
        let Some(length) = self.length else { return key.get(depth..) == Some(self.suffix) };
        if key.len() != depth + length {
            return false;
        }
        // Mostly the tail is a word with what follows it, and the last bytes of the key are one.
        if length <= 8
            && let Some(word) = self.suffix.first_chunk()
            && let Some(end) = last_word(key)
        {
            let differs = u64::from_be_bytes(*word) ^ end << (8 * (8 - length) as u32 % 64);
            // Of no bytes, too, without a jump.
            let bits = 4 * length as u32;
            return differs & !(u64::MAX >> bits >> bits) == 0;
        }
        key.get(depth..) == self.suffix.get(..length)
    }
}

/// The last 8 bytes of a key at the lower end of a word, of shorter ones all; `None` of fewer than 4. No jump asks which it is: nobody can
/// foresee it.
#[inline(always)]
fn last_word(key: &[u8]) -> Option<u64> {
    let count = key.len().min(8);
    let first = u32::from_be_bytes(*key.get(key.len() - count..)?.first_chunk()?);
    let last = u32::from_be_bytes(*key.last_chunk()?);
    Some((u64::from(first) >> (8 * (8 - count))) << 32 | u64::from(last))
}

/// Tails in the order of keys.
#[derive(Debug)]
pub(super) struct SuffixBuilder {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The length of the keys, while all have one.
    key_bytes: Option<usize>,
    /// The greatest depth of a leaf.
    height: usize,
}

impl SuffixBuilder {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), key_bytes: None, height: 0 }
    }

    /// The tail of the next key, whose leaf has this depth; a greater one than the key has bytes where the key ends at a node.
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

    /// Bytes of all tails together.
    pub(super) const fn byte_count(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The tail of the key of a number.
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

    /// Appends the tails of the keys of some numbers, in the order of their leaves, in the smaller form. `None` beyond 4 GiB.
    pub(super) fn encode(
        &self,
        target: &mut Vec<u8>,
        leaves: impl Iterator<Item = u64> + Clone,
    ) -> Option<SuffixCounts> {
        // Not as many as keys: those that end at a node have no leaf.
        let leaf_count = leaves.clone().count();
        let suffixes = leaves.map(|ordinal| self.get(ordinal));
        // Beside the tails themselves, and what leads to long ones.
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

    /// The longest tail. That of a key without a leaf has no bytes.
    fn length_max(&self) -> usize {
        let starts = [0].iter().chain(&self.ends);
        self.ends.iter().zip(starts).map(|(end, start)| end - start).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
