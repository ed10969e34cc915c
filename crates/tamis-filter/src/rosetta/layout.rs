//! The levels of a filter and their positions: the directory at the end of the payload.

use tamis_bits::line::{LINE_BYTES, LINE_PROBE_MAX};

use super::LEVELS_MAX;
use crate::DecodeError;

/// Depth of the full level in the directory.
pub(super) const FULL_DEPTH: u32 = u32::MAX;

/// The deepest level of prefixes: keys of 65,535 bytes.
pub(super) const DEPTH_MAX: u32 = 65_535 * 8;

/// Maximum number of bits that a node sets in a standard level.
pub(super) const PROBES_MAX: u32 = 64;

/// Bytes of a level in the directory.
pub(super) const ENTRY_BYTES: usize = 24;

/// Where a level stores the bits of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BitLayout {
    /// Anywhere in the level, as in a standard Bloom filter.
    Standard = 0,
    /// In one block of 512 bits, shared by eight siblings.
    Blocked = 1,
}

/// A level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    /// Bits of the prefixes, or [`FULL_DEPTH`].
    pub(super) depth: u32,
    pub(super) layout: BitLayout,
    /// Bits that a node sets.
    pub(super) probe_count: u32,
    /// Offset of the level in the payload.
    pub(super) offset: usize,
    pub(super) byte_count: u64,
    /// Distinct prefixes in it.
    pub(super) prefix_count: u64,
}

impl Level {
    /// The level's part of the payload.
    #[inline]
    pub(super) fn bits<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        let end = self.offset.saturating_add(self.byte_count as usize);
        payload.get(self.offset..end).unwrap_or_default()
    }

    pub(super) fn encode(&self) -> [u8; ENTRY_BYTES] {
        let front =
            self.depth.to_le_bytes().into_iter().chain([self.layout as u8, self.probe_count as u8, 0, 0]);
        let numbers = [self.byte_count.to_le_bytes(), self.prefix_count.to_le_bytes()];
        let mut entry = [0; ENTRY_BYTES];
        for (target, source) in entry.iter_mut().zip(front.chain(numbers.into_iter().flatten())) {
            *target = source;
        }
        entry
    }

    fn decode(entry: &[u8; ENTRY_BYTES], offset: usize) -> Result<Self, DecodeError> {
        let [a, b, c, d, layout, probes, reserved @ ..] = *entry;
        let refuse = |field, got| Err(DecodeError::Field { field, got });
        let number = |from: usize| {
            let bytes = reserved.get(from..).and_then(|rest| rest.first_chunk::<8>());
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let [zero, other, ..] = reserved;
        let (byte_count, prefix_count) = (number(2), number(10));
        let depth = u32::from_le_bytes([a, b, c, d]);
        let (layout, unit, probes_max) = match layout {
            0 => (BitLayout::Standard, 8, PROBES_MAX),
            1 => (BitLayout::Blocked, LINE_BYTES as u64, LINE_PROBE_MAX),
            other => return refuse("layout", u64::from(other)),
        };
        let is_depth = depth == FULL_DEPTH
            || (1..=DEPTH_MAX).contains(&depth) && (depth <= 64 || depth.is_multiple_of(8));
        if !is_depth {
            return refuse("depth", u64::from(depth));
        }
        let probe_count = u32::from(probes);
        if !(1..=probes_max).contains(&probe_count) {
            return refuse("probe_count", u64::from(probe_count));
        }
        if zero != 0 || other != 0 {
            return refuse("reserved", 1);
        }
        if byte_count == 0 || !byte_count.is_multiple_of(unit) || !(offset as u64).is_multiple_of(unit) {
            return refuse("byte_count", byte_count);
        }
        if prefix_count == 0 {
            return refuse("prefix_count", 0);
        }
        Ok(Self { depth, layout, probe_count, offset, byte_count, prefix_count })
    }
}

/// Reads the directory: the levels in stored order, then sorted by depth.
pub(super) fn parse_directory(payload: &[u8], level_count: usize) -> Result<Vec<Level>, DecodeError> {
    let length = payload.len() as u64;
    let refuse = |field, got| Err(DecodeError::Field { field, got });
    if level_count > LEVELS_MAX {
        return refuse("level_count", level_count as u64);
    }
    let Some(body_bytes) = payload.len().checked_sub(level_count * ENTRY_BYTES) else {
        return refuse("payload_bytes", length);
    };
    let mut levels = Vec::with_capacity(level_count);
    let mut offset = 0_usize;
    let (entries, _) = payload.get(body_bytes..).unwrap_or_default().as_chunks::<ENTRY_BYTES>();
    for entry in entries {
        let level = Level::decode(entry, offset)?;
        let end = (offset as u64).checked_add(level.byte_count).filter(|end| *end <= body_bytes as u64);
        let Some(end) = end else { return refuse("byte_count", level.byte_count) };
        offset = end as usize;
        levels.push(level);
    }
    if offset != body_bytes {
        return refuse("payload_bytes", length);
    }
    levels.sort_by_key(|level| level.depth);
    let repeated = levels.iter().zip(levels.iter().skip(1)).find(|(left, right)| left.depth == right.depth);
    if let Some((level, _)) = repeated {
        return refuse("depth", u64::from(level.depth));
    }
    Ok(levels)
}
