//! Binary files of 64-bit values: a count and as many values, all little-endian; and files of text.
//!
//! ```text
//! offset 0   u64 count
//! offset 8   u64 value 0
//! offset 16  u64 value 1 ...
//! ```
//!
//! Key files (`.keys`) contain distinct values ascending; query files (`.q`, `.s`) contain `left, right` pairs.
//! Readers refuse truncated files, bytes after the last value, and values out of order, and name the offset. No
//! allocation depends on an unchecked count.

use std::{
    fmt,
    io::{self, BufReader, BufWriter, Read, Write},
};

use crate::{
    operations::{KeyForm, Operation, OperationKind, Workload, hex_digits},
    queries::Range,
    text_queries::TextRange,
};

#[cfg(test)]
mod tests;

/// Bytes of a value and of the count.
const VALUE_BYTES: u64 = 8;
/// Maximum number of values to reserve memory for before they are read.
const RESERVED_COUNT_MAX: u64 = 1 << 20;

/// A file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// An error of the operating system.
    #[error("at offset {offset}: {source}")]
    Io {
        /// Offset in bytes of the value.
        offset: u64,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file ends before its count says.
    #[error("cut at offset {length}: the count at offset 0 requires {count} values ({} bytes); check that the file is complete and of this kind", required_bytes(*.count))]
    Cut {
        /// Length of the file.
        length: u64,
        /// The count at its head.
        count: u64,
    },
    /// The file is too short for a count.
    #[error(
        "cut at offset {length}: a file of 64-bit values begins with its count in 8 bytes; check the file"
    )]
    NoCount {
        /// Length of the file.
        length: u64,
    },
    /// The file continues after its last value.
    #[error(
        "more bytes at offset {offset}, after the {count} values that the count at offset 0 specifies; is this a file of 64-bit values?"
    )]
    TooLong {
        /// Offset of the first extra byte.
        offset: u64,
        /// The count at its head.
        count: u64,
    },
    /// Keys must be ascending.
    #[error(
        "at offset {offset}: key {value} is not greater than the previous key ({before}): sort the keys and remove duplicates"
    )]
    NotAscending {
        /// Offset in bytes of the value.
        offset: u64,
        /// The value.
        value: u64,
        /// The value before it.
        before: u64,
    },
    /// A range must not be reversed.
    #[error("at offset {offset}: the range [{left}, {right}] is reversed")]
    Reversed {
        /// Offset in bytes of the left end.
        offset: u64,
        /// Left end.
        left: u64,
        /// Right end.
        right: u64,
    },
    /// Ranges are pairs.
    #[error("at offset 0: the count {count} is odd; ranges are pairs of values")]
    OddCount {
        /// The count.
        count: u64,
    },
}

/// Length in bytes that a count requires; more than any file for an impossible count.
fn required_bytes(count: u64) -> u64 {
    count.saturating_add(1).saturating_mul(VALUE_BYTES)
}

/// Reads a file value by value.
#[derive(Debug)]
pub struct ValueReader<R> {
    source: BufReader<R>,
    count: u64,
    index: u64,
    is_failed: bool,
}

impl<R: Read> ValueReader<R> {
    /// Reads the count.
    ///
    /// # Errors
    /// [`FileError::NoCount`] and [`FileError::Io`].
    pub fn new(source: R) -> Result<Self, FileError> {
        let mut source = BufReader::with_capacity(1 << 16, source);
        let mut bytes = [0; 8];
        let length = fill(&mut source, &mut bytes, 0)?;
        if length < VALUE_BYTES {
            return Err(FileError::NoCount { length });
        }
        Ok(Self { source, count: u64::from_le_bytes(bytes), index: 0, is_failed: false })
    }

    /// The number of values according to the head of the file. Unreliable before all were read.
    pub fn value_count(&self) -> u64 {
        self.count
    }

    /// Offset in bytes of the next value.
    pub fn offset(&self) -> u64 {
        required_bytes(self.index)
    }

    /// Refuses a file whose length does not match its count, before any value is read.
    ///
    /// # Errors
    /// [`FileError::Cut`] and [`FileError::TooLong`].
    pub fn check_length(&self, length: u64) -> Result<(), FileError> {
        match length.cmp(&required_bytes(self.count)) {
            std::cmp::Ordering::Less => Err(FileError::Cut { length, count: self.count }),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => {
                Err(FileError::TooLong { offset: required_bytes(self.count), count: self.count })
            }
        }
    }

    fn read(&mut self) -> Result<Option<u64>, FileError> {
        let offset = self.offset();
        let mut bytes = [0; 8];
        let length = fill(&mut self.source, &mut bytes, offset)?;
        if self.index == self.count {
            return if length == 0 {
                Ok(None)
            } else {
                Err(FileError::TooLong { offset, count: self.count })
            };
        }
        if length < VALUE_BYTES {
            return Err(FileError::Cut { length: offset + length, count: self.count });
        }
        self.index += 1;
        Ok(Some(u64::from_le_bytes(bytes)))
    }
}

impl<R: Read> Iterator for ValueReader<R> {
    type Item = Result<u64, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_failed {
            return None;
        }
        let value = self.read().transpose();
        self.is_failed = !matches!(value, Some(Ok(_)));
        value
    }
}

/// Reads up to 8 bytes; fewer only at the end of the file. Returns how many.
fn fill(source: &mut impl Read, bytes: &mut [u8; 8], offset: u64) -> Result<u64, FileError> {
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match source.read(rest) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(FileError::Io { offset: offset + length as u64, source }),
        }
    }
    Ok(length as u64)
}

/// Reads a key file: distinct values, ascending.
///
/// # Errors
/// [`FileError`] for any defect of the file, with its offset.
pub fn read_keys(source: impl Read) -> Result<Vec<u64>, FileError> {
    let mut reader = ValueReader::new(source)?;
    let mut keys = Vec::with_capacity(reader.value_count().min(RESERVED_COUNT_MAX) as usize);
    loop {
        let offset = reader.offset();
        let Some(value) = reader.read()? else { return Ok(keys) };
        if let Some(&before) = keys.last().filter(|&&before| before >= value) {
            return Err(FileError::NotAscending { offset, value, before });
        }
        keys.push(value);
    }
}

/// Reads a query file: pairs of inclusive bounds.
///
/// # Errors
/// [`FileError`] for any defect of the file, with its offset.
pub fn read_ranges(source: impl Read) -> Result<Vec<Range>, FileError> {
    let mut reader = ValueReader::new(source)?;
    let count = reader.value_count();
    if count % 2 != 0 {
        return Err(FileError::OddCount { count });
    }
    let mut ranges = Vec::with_capacity((count / 2).min(RESERVED_COUNT_MAX) as usize);
    loop {
        let offset = reader.offset();
        let Some(left) = reader.read()? else { return Ok(ranges) };
        let Some(right) = reader.read()? else { return Err(FileError::OddCount { count }) };
        if left > right {
            return Err(FileError::Reversed { offset, left, right });
        }
        ranges.push((left, right));
    }
}

/// Writes a key file.
///
/// # Errors
/// The operating system's.
pub fn write_keys(target: impl Write, keys: &[u64]) -> io::Result<()> {
    write_values(target, keys.len() as u64, keys.iter().copied())
}

/// Writes a query file.
///
/// # Errors
/// The operating system's.
pub fn write_ranges(target: impl Write, ranges: &[Range]) -> io::Result<()> {
    write_values(target, ranges.len() as u64 * 2, ranges.iter().flat_map(|&(left, right)| [left, right]))
}

fn write_values(target: impl Write, count: u64, values: impl Iterator<Item = u64>) -> io::Result<()> {
    let mut target = BufWriter::with_capacity(1 << 16, target);
    target.write_all(&count.to_le_bytes())?;
    for value in values {
        target.write_all(&value.to_le_bytes())?;
    }
    target.flush()
}

/// `uniform_n1m_s42`: the stem of all file names of a key set. Counts that are not whole millions are written in full.
pub fn key_set_name(set: impl fmt::Display, count: u64, seed: u64) -> String {
    format!("{set}_n{}_s{seed}", short(count))
}

/// `ycsb-a_n1m_o2m_s42`: the stem of a file of operations on a store of `record_count` items.
pub fn operations_name(workload: &Workload, record_count: u64, count: u64, seed: u64) -> String {
    format!("{workload}_n{}_o{}_s{seed}", short(record_count), short(count))
}

/// Whole millions with an `m`.
fn short(count: u64) -> String {
    if count > 0 && count.is_multiple_of(1_000_000) {
        format!("{}m", count / 1_000_000)
    } else {
        count.to_string()
    }
}

/// Writes text keys, one per line.
///
/// # Errors
/// The operating system's.
pub fn write_lines<K: AsRef<[u8]>>(target: impl Write, keys: impl IntoIterator<Item = K>) -> io::Result<()> {
    let mut target = BufWriter::with_capacity(1 << 16, target);
    for key in keys {
        target.write_all(key.as_ref())?;
        target.write_all(b"\n")?;
    }
    target.flush()
}

/// Writes ranges of text, `lower<TAB>upper` per line, both included.
///
/// # Errors
/// The operating system's.
pub fn write_line_ranges(target: impl Write, ranges: &[TextRange]) -> io::Result<()> {
    write_lines(target, ranges.iter().map(|(lower, upper)| [lower.as_slice(), upper].join(&b'\t')))
}

/// Writes operations, one per line, separated by tabs: kind, key, and for scans the number of entries, for ranges the
/// upper bound. Keys have the form [`KeyForm::Hex`].
///
/// # Errors
/// The operating system's.
pub fn write_operations(
    target: impl Write,
    operations: impl IntoIterator<Item = Operation>,
) -> io::Result<()> {
    let mut target = BufWriter::with_capacity(1 << 16, target);
    for operation in operations {
        let (lower, upper) = KeyForm::Hex.bounds(&operation);
        target.write_all(operation.kind.name().as_bytes())?;
        target.write_all(b"\t")?;
        target.write_all(&hex_digits(lower))?;
        match operation.kind {
            OperationKind::Scan | OperationKind::ScanBack => write!(target, "\t{}", operation.limit)?,
            OperationKind::Range => {
                target.write_all(b"\t")?;
                target.write_all(&hex_digits(upper))?;
            }
            _ => {}
        }
        target.write_all(b"\n")?;
    }
    target.flush()
}
