//! Key suffixes: the bytes of the keys of an index below their leaves.
//!
//! ```text
//! ends    Elias-Fano integers: for each leaf, in order, the end of its suffix
//! bytes   the suffixes
//! ```

use tamis_bits::elias_fano::{self, EliasFanoShape};

/// The positions of the parts, counted from the start of the ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct SuffixLayout {
    ends: EliasFanoShape,
    start: usize,
    end: usize,
}

impl SuffixLayout {
    /// `None` beyond the address space.
    pub(super) fn new(leaf_count: u64, byte_count: u64) -> Option<Self> {
        let ends = EliasFanoShape::new(leaf_count, byte_count)?;
        let start = usize::try_from(elias_fano::encoded_bytes(leaf_count, byte_count)?).ok()?;
        let end = start.checked_add(usize::try_from(byte_count).ok()?)?;
        Some(Self { ends, start, end })
    }

    /// Bytes of all parts, padded to a multiple of 8; `None` beyond the address space.
    pub(super) const fn bytes(&self) -> Option<usize> {
        self.end.checked_next_multiple_of(8)
    }

    /// The suffix of a leaf. `bytes` begins with the ends. Empty for damaged ends.
    #[inline]
    pub(super) fn get<'a>(&self, bytes: &'a [u8], leaf: u64) -> &'a [u8] {
        let place = || {
            let ends = self.ends.view(bytes)?;
            let start = match leaf.checked_sub(1) {
                Some(before) => ends.get(before)?,
                None => 0,
            };
            Some(usize::try_from(start).ok()?..usize::try_from(ends.get(leaf)?).ok()?)
        };
        place().and_then(|place| bytes.get(self.start..self.end)?.get(place)).unwrap_or_default()
    }
}

/// Collects suffixes in the order of keys.
#[derive(Debug)]
pub(super) struct SuffixBuilder {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl SuffixBuilder {
    pub(super) const fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new() }
    }

    /// Adds the suffix of the next key, whose leaf has this depth. The depth exceeds the key's length if the key ends
    /// at a node.
    #[inline(always)]
    pub(super) fn push(&mut self, key: &[u8], depth: usize) {
        self.bytes.extend_from_slice(key.get(depth..).unwrap_or_default());
        self.ends.push(self.bytes.len());
    }

    /// Bytes of all suffixes. Keys that end at a node have an empty one.
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

    /// Appends the suffixes of the keys in the order of their leaves.
    pub(super) fn encode(&self, target: &mut Vec<u8>, leaves: impl Iterator<Item = u64> + Clone) {
        let suffixes = leaves.map(|ordinal| self.get(ordinal));
        let ends = suffixes.clone().scan(0, |end, suffix| {
            *end += suffix.len() as u64;
            Some(*end)
        });
        elias_fano::encode(target, suffixes.clone().count() as u64, self.byte_count(), ends);
        suffixes.for_each(|suffix| target.extend_from_slice(suffix));
        target.resize(target.len().next_multiple_of(8), 0);
    }
}

#[cfg(test)]
mod tests;
