//! Chunks of entries of a scan in four vectors: bytes and ends of keys, bytes and ends of values. There is no allocation per
//! entry.

use tamis::Result;

use crate::scan::{Direction, Steps, step};

/// A column of concatenated byte strings.
#[derive(Debug, Clone, Default)]
pub struct Column {
    /// The concatenated byte strings.
    pub bytes: Vec<u8>,
    /// The end of each byte string in `bytes`.
    pub ends: Vec<usize>,
}

impl Column {
    /// Allocates for some byte strings of `length` bytes, and at most `bytes_max` bytes.
    fn reserve(&mut self, count: usize, length: usize, bytes_max: usize) {
        self.ends.reserve(count);
        self.bytes.reserve(length.saturating_mul(count).min(bytes_max));
    }

    /// Appends a byte string.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    /// Number of byte strings.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the column is empty.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the byte string at an index; empty if the index is too large.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = match index.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or(0),
            None => 0,
        };
        let end = self.ends.get(index).copied().unwrap_or(start);
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// Iterates over the byte strings.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Removes all byte strings; keeps the allocated memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The length of the byte strings, if it is the same for all.
    pub fn uniform_length(&self) -> Option<usize> {
        let first = *self.ends.first()?;
        let expected = self.ends.iter().enumerate().all(|(index, end)| *end == first * (index + 1));
        expected.then_some(first)
    }
}

/// The parts of entries to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// Keys and values.
    Both,
    /// Keys only.
    Keys,
    /// Values only.
    Values,
}

/// Entries for which a chunk allocates at once.
const RESERVED_ENTRIES: usize = 64;

/// A chunk of entries. The column of a part that is not read stays empty.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    /// The keys.
    pub keys: Column,
    /// The values.
    pub values: Column,
}

/// Limits of a chunk. A chunk has at least one entry, even if that is longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLimit {
    /// Maximum number of entries.
    pub entry_count: usize,
    /// Bytes of keys and values after which the chunk ends.
    pub bytes: usize,
}

impl Columns {
    /// Appends the next entries of a scan; returns their number and whether the scan is finished.
    ///
    /// # Errors
    /// As [`tamis::Scan::move_next`]; the entries before the error are appended.
    pub fn fill(
        &mut self,
        scan: &mut impl Steps,
        direction: Direction,
        parts: Parts,
        limit: ChunkLimit,
    ) -> Result<Filled> {
        let mut filled = Filled { entry_count: 0, is_finished: false };
        let mut bytes = 0;
        while filled.entry_count < limit.entry_count && bytes < limit.bytes {
            if !step(scan, direction)? {
                filled.is_finished = true;
                break;
            }
            if filled.entry_count == 0 {
                // Most chunks have entries of one length: they need one allocation.
                let count = limit.entry_count.min(RESERVED_ENTRIES);
                if parts != Parts::Values {
                    self.keys.reserve(count, scan.key().len(), limit.bytes);
                }
                if parts != Parts::Keys {
                    self.values.reserve(count, scan.value().len(), limit.bytes);
                }
            }
            if parts != Parts::Values {
                bytes += scan.key().len();
                self.keys.push(scan.key());
            }
            if parts != Parts::Keys {
                bytes += scan.value().len();
                self.values.push(scan.value());
            }
            filled.entry_count += 1;
        }
        Ok(filled)
    }

    /// Removes all entries; keeps the allocated memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
    }
}

/// The result of [`Columns::fill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// Number of appended entries.
    pub entry_count: usize,
    /// Whether the scan has no more entries in this direction.
    pub is_finished: bool,
}

#[cfg(test)]
mod tests;
