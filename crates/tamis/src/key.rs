//! The parts of an entry (user key, sequence number, kind) and the order of entries.
//!
//! Entries are ordered by user key (bytewise, ascending), then by sequence number (descending: newest first). No two
//! entries of a keyspace have the same key and sequence number. The kind has no influence on the order.

use std::cmp::Ordering;

use crate::error::{Error, Result};

/// The order of writes: 1 is the first write of a database, 0 means "older than all".
pub(crate) type Sequence = u64;

/// Greater than all sequence numbers: reads the newest version.
pub(crate) const SEQUENCE_MAX: Sequence = (1 << 56) - 1;

/// Sequence numbers begin at 1: a seek to a key with this one passes all entries of the key.
pub(crate) const AFTER_ALL: Sequence = 0;

/// The point in time of a reader: all entries up to a sequence number, and the first writes of the transaction that reads. These are in a separate
/// memtable ([`crate::transaction`]), with numbers above [`SEQUENCE_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadPoint {
    pub(crate) sequence: Sequence,
    /// The number of the last own write that it sees; 0: it sees none.
    pub(crate) own: Sequence,
}

impl ReadPoint {
    /// A reader outside of transactions.
    #[cfg(test)]
    pub(crate) const fn at(sequence: Sequence) -> Self {
        Self { sequence, own: 0 }
    }

    /// The number for seeks to the newest visible version of a key: not [`AFTER_ALL`], behind which own writes would be left out.
    pub(crate) const fn seek_sequence(self) -> Sequence {
        if self.sequence == AFTER_ALL { AFTER_ALL + 1 } else { self.sequence }
    }

    /// Whether the reader sees an entry with this number.
    #[inline]
    pub(crate) const fn sees(self, sequence: Sequence) -> bool {
        sequence <= self.sequence || (sequence > SEQUENCE_MAX && sequence <= self.own)
    }
}

/// The readers that exist, and those of later times.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readers {
    /// Their sequence numbers, ascending; the last one is the visible one, which later readers are at or above.
    pub(crate) read_points: Vec<Sequence>,
    /// Entries that expire until then are expired for all of them ([`crate::expiry`]).
    pub(crate) expiry_time: u64,
}

#[cfg(test)]
impl Readers {
    /// Readers at these sequence numbers, for which nothing is expired.
    pub(crate) fn at(read_points: impl Into<Vec<Sequence>>) -> Self {
        Self { read_points: read_points.into(), expiry_time: 0 }
    }
}

/// The longest name of a keyspace and of a merge operator in bytes.
pub(crate) const NAME_LENGTH_MAX: usize = 255;

/// The longest key in bytes.
pub const KEY_LENGTH_MAX: usize = 65_535;

/// The longest value in bytes (256 MiB).
pub const VALUE_LENGTH_MAX: usize = 1 << 28;

/// The kind of an entry. Its byte is part of the formats; 5 is reserved and refused by this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The key has this value.
    Put = 1,
    /// The key is deleted.
    Tombstone = 2,
    /// An operand of the keyspace's merge operator ([`crate::merge_operator`]).
    Operand = 3,
    /// All keys from this one up to another are deleted. In batches and logs only: tables have a section for them.
    RangeTombstone = 4,
    /// The key has this value until a time ([`crate::expiry`]).
    ExpiringPut = 6,
    // 5 blob reference: reserved.
}

impl Kind {
    /// The kind of a byte from disk; `None` for a kind that this version does not know.
    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Put),
            2 => Some(Self::Tombstone),
            3 => Some(Self::Operand),
            4 => Some(Self::RangeTombstone),
            6 => Some(Self::ExpiringPut),
            _ => None,
        }
    }

    /// Whether the key may have a value by an entry of this kind.
    #[inline]
    pub(crate) const fn sets_value(self) -> bool {
        matches!(self, Self::Put | Self::Operand | Self::ExpiringPut)
    }

    /// The kind of a byte in a data block.
    pub(crate) const fn from_block_byte(byte: u8) -> Option<Self> {
        match Self::from_byte(byte) {
            Some(Self::RangeTombstone) | None => None,
            kind => kind,
        }
    }
}

/// Whether the key of a bound belongs to the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BoundKind {
    Included,
    Excluded,
}

impl BoundKind {
    #[cfg(test)]
    pub(crate) const BOTH: [Self; 2] = [Self::Included, Self::Excluded];

    /// The kind with a number.
    #[cfg(test)]
    pub(crate) const fn drawn(number: usize) -> Self {
        if number == 0 { Self::Included } else { Self::Excluded }
    }

    /// Whether a key is within an upper bound of this kind.
    #[inline]
    pub(crate) fn is_within(self, key: &[u8], upper: &[u8]) -> bool {
        match self {
            Self::Included => key <= upper,
            Self::Excluded => key < upper,
        }
    }
}

/// Compares two entries, see the head of this file.
pub(crate) fn compare_entries(left: (&[u8], Sequence), right: (&[u8], Sequence)) -> Ordering {
    left.0.cmp(right.0).then(right.1.cmp(&left.1))
}

/// Refuses empty keys and keys of more than [`KEY_LENGTH_MAX`] bytes.
pub(crate) fn check_key(key: &[u8]) -> Result<()> {
    match key.len() {
        0 => Err(Error::KeyEmpty),
        length if length > KEY_LENGTH_MAX => Err(Error::KeyTooLong { length }),
        _ => Ok(()),
    }
}

/// Refuses values of more than [`VALUE_LENGTH_MAX`] bytes.
pub(crate) fn check_value(value: &[u8]) -> Result<()> {
    match value.len() {
        length if length > VALUE_LENGTH_MAX => Err(Error::ValueTooLong { length }),
        _ => Ok(()),
    }
}

/// The least key that is greater than every key with this prefix; `None` if there is none (all bytes 0xFF).
pub(crate) fn prefix_successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|&byte| byte != 0xFF)?;
    let mut successor = prefix.get(..=kept)?.to_vec();
    if let Some(last) = successor.last_mut() {
        *last += 1;
    }
    Some(successor)
}
