//! A table of one depth, for prefixes that are close together as numbers: the difference to the first prefix is the index of
//! the entry. It replaces the stages.
//!
//! ```text
//! header   64 bytes: u8 depth | 3 zero bytes | u32 entries | u64 the first prefix | zeros
//! entries  u32: position of the node plus 1, 0 for none; padded with zeros to whole lines
//! ```

use tamis_bits::key_head;
use tamis_bits::line::LINE_BYTES;

use super::Line;

/// In place of the number of stages.
pub(super) const DIRECT: usize = 15;
/// The greatest depth: a prefix fits in a word.
pub(super) const DEPTH_MAX: usize = 8;
pub(super) const ENTRY_BYTES: usize = 4;

/// The contents of the header; no entries if there is no direct table.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DirectLayout {
    /// Start of the entries in the payload.
    start: usize,
    pub(super) count: usize,
    pub(super) depth: usize,
    first: u64,
    /// Shift that leaves the prefix of the first word of a key.
    shift: u8,
}

/// Lines of this number of entries.
const fn line_count(count: usize) -> usize {
    count.div_ceil(LINE_BYTES / ENTRY_BYTES)
}

/// Bytes of a table with this number of entries.
pub(super) const fn bytes(count: usize) -> u64 {
    (1 + line_count(count) as u64) * LINE_BYTES as u64
}

impl DirectLayout {
    /// Reads the header of the lines, which begin at `start` of a payload; `None` for bytes that no builder writes.
    pub(super) fn read(lines: &[Line], start: usize) -> Option<Self> {
        let (header, lines) = lines.split_first()?;
        let [words @ [depth, ..], first, ..] = header.as_chunks::<8>().0 else { return None };
        let (depth, first) = (usize::from(*depth), u64::from_le_bytes(*first));
        let count = u32::from_le_bytes(*words.last_chunk()?) as usize;
        let shift = DEPTH_MAX.checked_sub(depth).filter(|_| depth != 0)? as u8 * 8;
        let last = first.checked_add(count.checked_sub(1)? as u64)?;
        let is_possible = last <= u64::MAX >> shift && line_count(count) == lines.len();
        is_possible.then_some(Self { start: start + LINE_BYTES, count, depth, first, shift })
    }

    /// The position of the node that a key leads to, if the table has it.
    #[inline(always)]
    pub(super) fn find(&self, payload: &[u8], key: &[u8]) -> Option<u32> {
        let (entries, _) = payload.get(self.start..)?.as_chunks::<ENTRY_BYTES>();
        let number = (key_head(key) >> self.shift).wrapping_sub(self.first);
        let entry = entries.get(..self.count)?.get(usize::try_from(number).ok()?)?;
        u32::from_le_bytes(*entry).checked_sub(1).filter(|_| key.len() > self.depth)
    }
}

/// All lines of the table for the nodes of a depth, by their ascending prefixes and their positions.
pub(super) fn encode(depth: usize, prefixes: &[u64], places: &[u32]) -> Option<Vec<Line>> {
    let (first, last) = (*prefixes.first()?, *prefixes.last()?);
    let count = usize::try_from(last - first).ok()?.checked_add(1)?;
    let mut lines = vec![[0; LINE_BYTES]; 1 + line_count(count)];
    let (header, entries) = lines.split_first_mut()?;
    let words = [depth as u64 | (u32::try_from(count).ok()? as u64) << 32, first];
    for (target, word) in header.as_chunks_mut().0.iter_mut().zip(words) {
        *target = word.to_le_bytes();
    }
    let (entries, _) = entries.as_flattened_mut().as_chunks_mut::<ENTRY_BYTES>();
    for (prefix, place) in prefixes.iter().zip(places) {
        *entries.get_mut(usize::try_from(prefix - first).ok()?)? = (place + 1).to_le_bytes();
    }
    Some(lines)
}
