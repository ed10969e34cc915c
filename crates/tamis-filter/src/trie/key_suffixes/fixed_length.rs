//! Suffixes of keys that all have one length. Leaves of one depth are consecutive, and their suffixes have one length: the
//! position of a suffix follows from the entry of its level.
//!
//! ```text
//! levels   u64 per depth from 1 to the height: start of the suffix of leaf 0 if all leaves had this depth, modulo 2^64
//! suffixes without anything between them
//! ```

use super::{FIXED_LENGTH, StoredSuffix, SuffixCounts, SuffixEncoding};

/// Bytes of the entry of a level.
const LEVEL_BYTES: usize = 8;

/// The lengths of the parts and of a key.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct FixedLengthLayout {
    table_bytes: usize,
    bytes: usize,
    key_bytes: usize,
}

/// Bytes of the entries of all levels.
pub(super) const fn table_bytes(height: usize) -> usize {
    height * LEVEL_BYTES
}

impl FixedLengthLayout {
    pub(super) fn new(height: u32, key_bytes: usize, short_bytes: u32) -> Option<Self> {
        let table_bytes = (height as usize).checked_mul(LEVEL_BYTES)?;
        let bytes = table_bytes.checked_add(short_bytes as usize)?;
        (height as usize <= key_bytes).then_some(Self { table_bytes, bytes, key_bytes })
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Start and length of the suffix of a leaf at a depth.
    #[inline(always)]
    fn place(&self, bytes: &[u8], leaf: u64, depth: usize) -> Option<(usize, usize)> {
        let length = self.key_bytes.checked_sub(depth)?;
        let (levels, _) = bytes.get(..self.table_bytes)?.as_chunks::<LEVEL_BYTES>();
        let origin = u64::from_le_bytes(*levels.get(depth.wrapping_sub(1))?);
        let start = origin.wrapping_add(leaf.wrapping_mul(length as u64));
        Some((usize::try_from(start).ok()?.checked_add(self.table_bytes)?, length))
    }
}

impl SuffixEncoding for FixedLengthLayout {
    const IS_IN_LEAF_ORDER: bool = true;

    #[inline(always)]
    fn slot<'a>(&self, bytes: &'a [u8], leaf: u64, depth: usize) -> Option<StoredSuffix<'a>> {
        let (start, length) = self.place(bytes, leaf, depth)?;
        Some(StoredSuffix { suffix: bytes.get(..self.bytes)?.get(start..)?, length: Some(length) })
    }

    #[inline(always)]
    fn prefetch(&self, _: &[u8], _: u64) {}

    #[inline(always)]
    fn prefetch_near(&self, bytes: &[u8], leaf: u64, depth: usize) {
        if let Some((start, _)) = self.place(bytes, leaf, depth) {
            super::prefetch_both_sides(bytes, start);
        }
    }
}

/// Appends suffixes in the order of their leaves, which is the order of their depths.
pub(super) fn encode<'t>(
    target: &mut Vec<u8>,
    suffixes: impl Iterator<Item = &'t [u8]>,
    key_bytes: usize,
    height: usize,
) -> Option<SuffixCounts> {
    let table = target.len();
    target.resize(table + table_bytes(height), 0);
    let start = target.len();
    let mut length_before = None;
    for (leaf, suffix) in (0_u64..).zip(suffixes) {
        if length_before != Some(suffix.len()) {
            length_before = Some(suffix.len());
            let origin = ((target.len() - start) as u64).wrapping_sub(leaf.wrapping_mul(suffix.len() as u64));
            let level = key_bytes.checked_sub(suffix.len() + 1)?;
            let (levels, _) = target.get_mut(table..start)?.as_chunks_mut::<LEVEL_BYTES>();
            *levels.get_mut(level)? = origin.to_le_bytes();
        }
        target.extend_from_slice(suffix);
    }
    Some(SuffixCounts {
        short_bytes: u32::try_from(target.len() - start).ok()?,
        long_bytes: key_bytes as u64,
        length_bits: FIXED_LENGTH,
    })
}
