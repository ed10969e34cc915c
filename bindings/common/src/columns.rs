//! Many entries of a scan in four vectors: bytes and ends of keys, bytes and ends of values.
//!
//! Bindings take entries in such chunks, without an allocation for each entry and, in Python, without the global interpreter lock.

use tamis::{Result, Scan};

use crate::scan::{Direction, step};

/// One column: byte strings behind each other, and where each of them ends.
#[derive(Debug, Clone, Default)]
pub struct Column {
    /// All byte strings.
    pub bytes: Vec<u8>,
    /// Where each of them ends in `bytes`.
    pub ends: Vec<usize>,
}

impl Column {
    /// Appends a byte string.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    /// How many byte strings there are.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The byte string of a number; empty where there is none.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = match index.checked_sub(1) {
            Some(before) => self.ends.get(before).copied().unwrap_or(0),
            None => 0,
        };
        let end = self.ends.get(index).copied().unwrap_or(start);
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// All byte strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Takes all byte strings out; the memory is kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The length of all byte strings, where they have the same.
    pub fn uniform_length(&self) -> Option<usize> {
        let first = *self.ends.first()?;
        let expected = self.ends.iter().enumerate().all(|(index, end)| *end == first * (index + 1));
        expected.then_some(first)
    }
}

/// Which parts of the entries are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// Keys and values.
    Both,
    /// Keys only.
    Keys,
    /// Values only.
    Values,
}

/// A chunk of entries. The column of a part that is not taken stays empty.
#[derive(Debug, Clone, Default)]
pub struct Columns {
    /// The keys.
    pub keys: Column,
    /// The values.
    pub values: Column,
}

/// How many entries and bytes a chunk may have. At least one entry is taken, however long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLimit {
    /// Most entries.
    pub entry_count: usize,
    /// Bytes of keys and values at which the chunk ends.
    pub bytes: usize,
}

impl Columns {
    /// Appends the next entries of a scan; returns how many. Fewer than `limit.entry_count` with less than `limit.bytes`: the scan
    /// is finished.
    ///
    /// # Errors
    /// As [`Scan::move_next`]; the entries before the failed step were appended.
    pub fn fill(
        &mut self,
        scan: &mut Scan,
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

    /// Takes all entries out; the memory is kept.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
    }
}

/// What [`Columns::fill`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// Entries appended.
    pub entry_count: usize,
    /// The scan has no more entries in this direction.
    pub is_finished: bool,
}

#[cfg(test)]
mod tests;
