//! Write batches and their encoding.
//!
//! `docs/format/wal.md` ("Batches") defines the bytes. A [`WriteBatch`] is built in its log encoding: the commit leader writes the
//! header into space reserved in front of the entries, appends the bytes to the log, and inserts the entries into the memtables
//! from the same bytes.
//!
//! 1. The entries of a batch have consecutive sequence numbers, in the order in which they were added. In a batch made by
//!    [`WriteBatch::retaining`] each entry has its own number, and the batch takes one new number for all of them: that of a batch
//!    without entries before it.
//! 2. A refused entry (for example with an empty key) leaves the batch unchanged.
//!
//! Cost: the first entry of a batch allocates once; decoding copies nothing.

use std::{
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    coding::{Decoder, put_bytes, put_varint, put_varint_at_end},
    error::{Error, Result},
    expiry::{self, TIME_MAX},
    frame::FRAME_PAYLOAD_MAX,
    key::{KEY_LENGTH_MAX, Kind, SEQUENCE_MAX, Sequence, VALUE_LENGTH_MAX, check_key, check_value},
    range_tombstone::is_below_upper,
};

/// Space reserved before the first entry. The header, whose count and sequence number are known last, is written to its end.
const HEADER_BYTES_MAX: usize = 1 + 8 + 5;
/// The maximum overhead of an entry: keyspace id and kind, own sequence number, two lengths.
const ENTRY_OVERHEAD_MAX: usize = 6 + 8 + 3 + 5;
/// Bits of the kind in the first number of an entry; the keyspace id is in the bits above.
const KIND_BITS: u32 = 4;
/// Flag in the lowest bit of the count: each entry has its own sequence number.
const FLAG_OWN_SEQUENCES: u64 = 1;

/// Writes to any keyspaces of a store that are applied atomically. If a key occurs several times, the last entry wins.
///
/// [`WriteBatch::clear`] keeps the memory for new entries.
#[derive(Debug, Clone, Default)]
pub struct WriteBatch {
    /// Empty, or space for the header, which [`WriteBatch::assign_sequences`] writes, and the entries.
    bytes: Vec<u8>,
    /// Where the header begins, once it is written.
    start: usize,
    count: u32,
    has_own_sequences: bool,
    /// Ids of the keyspaces of the entries, each once. Usually there is one, which needs no allocation.
    first_keyspace: Option<u32>,
    other_keyspaces: Vec<u32>,
    /// The id of the open store that the keyspaces belong to; 0 before the first entry.
    database: u64,
}

/// The end of a batch at some time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchMark {
    bytes: usize,
    count: u32,
    /// How many keyspaces it wrote to.
    keyspaces: usize,
}

impl WriteBatch {
    /// An empty batch.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            count: 0,
            has_own_sequences: false,
            first_keyspace: None,
            other_keyspaces: Vec::new(),
            database: 0,
        }
    }

    /// Refuses keyspaces of more than one store; `database` is [`crate::store::engine::Engine::id`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub(crate) fn claim(&mut self, database: u64) -> Result<()> {
        if self.is_empty() {
            self.database = database;
        }
        self.check_database(database)
    }

    /// Refuses a store that is not the one of the keyspaces.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub(crate) fn check_database(&self, database: u64) -> Result<()> {
        if self.database == database || self.is_empty() { Ok(()) } else { Err(foreign_keyspace()) }
    }

    /// Number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The maximum size of the batch in the log in bytes (at most 4,294,967,295).
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The end of the batch, for [`WriteBatch::truncate`].
    pub(crate) const fn mark(&self) -> BatchMark {
        BatchMark {
            bytes: self.bytes.len(),
            count: self.count,
            keyspaces: self.first_keyspace.is_some() as usize + self.other_keyspaces.len(),
        }
    }

    /// Removes the entries that were added since a mark of this batch.
    pub(crate) fn truncate(&mut self, mark: BatchMark) {
        self.bytes.truncate(mark.bytes);
        self.count = mark.count;
        self.other_keyspaces.truncate(mark.keyspaces.saturating_sub(1));
        if mark.keyspaces == 0 {
            self.first_keyspace = None;
        }
    }

    /// The entry that was added since a mark, if it is one.
    pub(crate) fn last_unnumbered(&self, mark: BatchMark) -> Option<BatchEntry<'_>> {
        let written = self.bytes.get(mark.bytes.max(HEADER_BYTES_MAX)..).unwrap_or_default();
        let left = self.count - mark.count;
        Entries { left, next_sequence: Some(1), ..entries(written) }.map_while(std::result::Result::ok).last()
    }

    /// Removes all entries; the memory is kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.first_keyspace = None;
        self.other_keyspaces.clear();
    }

    /// A batch whose entries have their own sequence numbers: it retains entries in a newer segment.
    pub(crate) fn retaining() -> Self {
        Self { has_own_sequences: true, ..Self::new() }
    }

    /// Sets `key` to `value` in a keyspace.
    ///
    /// # Errors
    /// [`Error::KeyEmpty`], [`Error::KeyTooLong`], [`Error::ValueTooLong`], [`Error::BatchTooLarge`].
    pub(crate) fn put_in(&mut self, keyspace: u32, key: &[u8], value: &[u8]) -> Result<()> {
        self.add(keyspace, Kind::Put, None, key, value)
    }

    /// Sets `key` to `value` in a keyspace until a time in milliseconds since 1970.
    ///
    /// # Errors
    /// As [`WriteBatch::put_in`].
    pub(crate) fn put_until_in(&mut self, keyspace: u32, key: &[u8], value: &[u8], time: u64) -> Result<()> {
        self.add(keyspace, Kind::ExpiringPut, None, key, &expiry::stored(time, value))
    }

    /// Adds an operand to the value of `key` in a keyspace.
    ///
    /// # Errors
    /// As [`WriteBatch::put_in`].
    pub(crate) fn merge_in(&mut self, keyspace: u32, key: &[u8], operand: &[u8]) -> Result<()> {
        self.add(keyspace, Kind::Operand, None, key, operand)
    }

    /// Deletes `key` from a keyspace.
    ///
    /// # Errors
    /// As [`WriteBatch::put_in`].
    pub(crate) fn delete_in(&mut self, keyspace: u32, key: &[u8]) -> Result<()> {
        self.add(keyspace, Kind::Tombstone, None, key, &[])
    }

    /// Deletes all keys of a keyspace from `lower` (included) up to `upper` (excluded); an empty bound is no bound.
    ///
    /// # Errors
    /// As [`WriteBatch::put_in`].
    pub(crate) fn delete_range_in(&mut self, keyspace: u32, lower: &[u8], upper: &[u8]) -> Result<()> {
        debug_assert!(is_below_upper(lower, upper), "an empty range needs no tombstone");
        self.add(keyspace, Kind::RangeTombstone, None, lower, upper)
    }

    /// Adds an entry with its own sequence number to a batch made by [`WriteBatch::retaining`].
    ///
    /// # Errors
    /// As [`WriteBatch::put_in`].
    pub(crate) fn retain(&mut self, entry: BatchEntry<'_>) -> Result<()> {
        self.add(entry.keyspace, entry.kind, Some(entry.sequence), entry.key, entry.value)
    }

    fn add(
        &mut self,
        keyspace: u32,
        kind: Kind,
        sequence: Option<Sequence>,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        assert_eq!(sequence.is_some(), self.has_own_sequences, "a batch numbers all its entries or none");
        match kind {
            Kind::RangeTombstone if value.is_empty() => check_key(key)?,
            Kind::RangeTombstone => [key, value].into_iter().try_for_each(check_key)?,
            Kind::Put | Kind::Tombstone | Kind::Operand | Kind::ExpiringPut => {
                check_key(key)?;
                check_value(value)?;
            }
        }
        let header = if self.bytes.is_empty() { HEADER_BYTES_MAX } else { 0 };
        let added = header + ENTRY_OVERHEAD_MAX + key.len() + value.len();
        check_size(self.bytes.len(), added)?;
        self.bytes.reserve(added);
        self.bytes.resize(self.bytes.len() + header, 0);
        put_varint(&mut self.bytes, u64::from(keyspace) << KIND_BITS | kind as u64);
        if let Some(sequence) = sequence {
            put_varint(&mut self.bytes, sequence);
        }
        put_bytes(&mut self.bytes, key);
        if kind != Kind::Tombstone {
            put_bytes(&mut self.bytes, value);
        }
        self.count += 1;
        if *self.first_keyspace.get_or_insert(keyspace) != keyspace
            && !self.other_keyspaces.contains(&keyspace)
        {
            self.other_keyspaces.push(keyspace);
        }
        Ok(())
    }

    /// Adds the writes of another batch of the same store, in their order. The other batch keeps them.
    ///
    /// # Errors
    /// [`Error::BatchTooLarge`]; [`Error::InvalidArgument`] for a batch of another store. The batch stays as it was.
    pub fn append(&mut self, other: &Self) -> Result<()> {
        if other.is_empty() {
            return Ok(());
        }
        self.claim(other.database)?;
        check_size(self.bytes.len(), HEADER_BYTES_MAX + ENTRY_OVERHEAD_MAX + other.bytes.len())?;
        other
            .unnumbered()
            .try_for_each(|entry| self.add(entry.keyspace, entry.kind, None, entry.key, entry.value))
    }

    /// The entries of a batch that a program builds, before sequence numbers are assigned.
    pub(crate) fn unnumbered(&self) -> impl Iterator<Item = BatchEntry<'_>> {
        let written = self.bytes.get(HEADER_BYTES_MAX..).unwrap_or_default();
        let entries = Entries { left: self.count, next_sequence: Some(1), ..entries(written) };
        // These bytes were written by `add` and never left memory: they decode.
        entries.map_while(std::result::Result::ok)
    }

    /// Ids of the keyspaces that the batch writes to, each once.
    pub(crate) fn keyspaces(&self) -> impl Iterator<Item = u32> {
        self.first_keyspace.into_iter().chain(self.other_keyspaces.iter().copied())
    }

    /// The keyspace that the batch writes to, if it is only one.
    pub(crate) fn only_keyspace(&self) -> Option<u32> {
        if self.other_keyspaces.is_empty() { self.first_keyspace } else { None }
    }

    /// Assigns sequence numbers from `first` on and returns the bytes for the log. If the entries have their own, `first` is the number
    /// of the batch; 0: it has none.
    pub(crate) fn assign_sequences(&mut self, first: Sequence) -> &[u8] {
        let Some(room) = self.bytes.get_mut(..HEADER_BYTES_MAX) else { return &[] };
        let count = u64::from(self.count) << 1;
        self.start = if self.has_own_sequences {
            let start = put_varint_at_end(room, count | FLAG_OWN_SEQUENCES);
            match first {
                0 => start,
                _ => {
                    let start = put_varint_at_end(room.get_mut(..start).unwrap_or_default(), first);
                    put_varint_at_end(room.get_mut(..start).unwrap_or_default(), 0)
                }
            }
        } else {
            let start = put_varint_at_end(room, first);
            put_varint_at_end(room.get_mut(..start).unwrap_or_default(), count)
        };
        self.bytes()
    }

    /// The bytes that [`WriteBatch::assign_sequences`] returned.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// How many new sequence numbers the batch takes.
    pub(crate) const fn sequence_count(&self) -> u64 {
        if self.has_own_sequences { 1 } else { self.count as u64 }
    }

    /// The entries; their sequence numbers are assigned.
    pub(crate) fn entries(&self) -> impl Iterator<Item = BatchEntry<'_>> {
        // These bytes were written by `add` and never left memory: they decode.
        entries(self.bytes()).map_while(std::result::Result::ok)
    }
}

/// The error of calls with a keyspace of another store.
pub(crate) fn foreign_keyspace() -> Error {
    Error::InvalidArgument {
        what: "keyspace",
        got: "it belongs to another store".to_owned(),
        expected: "use a keyspace of the store that is called".to_owned(),
    }
}

/// Refuses an entry with which the batch would not fit into a log record.
fn check_size(current: usize, added: usize) -> Result<()> {
    let length = current as u64 + added as u64;
    if length > FRAME_PAYLOAD_MAX {
        return Err(Error::BatchTooLarge { length, limit: FRAME_PAYLOAD_MAX });
    }
    Ok(())
}

/// A write of a batch, as [`WriteBatch::writes`] returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchWrite<'a> {
    /// A put.
    Put {
        /// Its key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// A put with a time of expiry.
    PutUntil {
        /// Its key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
        /// When it expires.
        time: SystemTime,
    },
    /// An operand of the keyspace's merge operator.
    Merge {
        /// Its key.
        key: &'a [u8],
        /// The operand.
        operand: &'a [u8],
    },
    /// A delete of a key.
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// A delete of all keys of a range.
    DeleteRange {
        /// The lower bound, included.
        lower: &'a [u8],
        /// The upper bound, excluded; `None`: all keys from `lower` on.
        upper: Option<&'a [u8]>,
    },
}

impl<'a> BatchWrite<'a> {
    pub(crate) fn of(entry: BatchEntry<'a>) -> Self {
        let BatchEntry { kind, key, value, .. } = entry;
        match kind {
            Kind::Put => Self::Put { key, value },
            Kind::Operand => Self::Merge { key, operand: value },
            Kind::ExpiringPut => {
                let (time, value) = expiry::split(value).unwrap_or_default();
                Self::PutUntil { key, value, time: UNIX_EPOCH + Duration::from_millis(time.min(TIME_MAX)) }
            }
            Kind::Tombstone => Self::Delete { key },
            Kind::RangeTombstone => {
                Self::DeleteRange { lower: key, upper: (!value.is_empty()).then_some(value) }
            }
        }
    }
}

/// One write of a batch. A tombstone's value is empty; of a range tombstone key and value are the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchEntry<'a> {
    pub(crate) keyspace: u32,
    pub(crate) sequence: Sequence,
    /// The number at which it was logged: its own, or that of the batch that has retained it.
    pub(crate) logged_at: Sequence,
    pub(crate) kind: Kind,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// A reason why the bytes of a batch are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchDamage {
    /// An entry of an unknown kind.
    UnknownKind(u8),
    /// Other bytes were expected at this position of the payload.
    Malformed { position: usize, expected: &'static str },
}

impl BatchDamage {
    /// The error for a batch in the record at `offset` of `file`.
    pub(crate) fn at(self, file: &Path, offset: u64) -> Error {
        match self {
            Self::UnknownKind(kind) => Error::UnknownEntryKind { file: file.to_path_buf(), offset, kind },
            Self::Malformed { position, expected } => Error::corruption(
                file,
                offset,
                "batch",
                expected,
                format!("other bytes at {position} of the record"),
            ),
        }
    }
}

/// The entries of all batches in a record's payload, one batch after the other.
pub(crate) fn entries(payload: &[u8]) -> Entries<'_> {
    Entries {
        payload_bytes: payload.len(),
        decoder: Decoder::new(payload),
        left: 0,
        next_sequence: None,
        empty_batch: None,
        retained_at: None,
    }
}

/// The batches in a record's payload: the first sequence number, `None` if the entries have their own; the number of entries; the bytes of the batch.
pub(crate) fn batches(
    payload: &[u8],
) -> impl Iterator<Item = Result<(Option<Sequence>, u32, &[u8]), BatchDamage>> {
    let mut decoder = entries(payload);
    std::iter::from_fn(move || {
        let bytes = decoder.decoder.rest();
        if bytes.is_empty() {
            return None;
        }
        Some((|| {
            decoder.take_header()?;
            let (first, count) = (decoder.next_sequence, decoder.left);
            for _ in 0..count {
                decoder.take_entry()?;
            }
            let taken = bytes.len() - decoder.decoder.rest().len();
            Ok((first, count, bytes.get(..taken).unwrap_or_default()))
        })())
    })
}

/// See [`entries`]. An error ends the iteration.
#[derive(Debug, Clone)]
pub(crate) struct Entries<'a> {
    payload_bytes: usize,
    decoder: Decoder<'a>,
    /// Entries left in the batch.
    left: u32,
    /// The next entry's sequence number; `None` if the entries have their own.
    next_sequence: Option<Sequence>,
    /// The number of the batch, if it has no entries: for the next one.
    empty_batch: Option<Sequence>,
    /// The number of a batch whose entries have their own sequence numbers.
    retained_at: Option<Sequence>,
}

impl<'a> Entries<'a> {
    const fn malformed(&self, expected: &'static str) -> BatchDamage {
        BatchDamage::Malformed { position: self.payload_bytes - self.decoder.rest().len(), expected }
    }

    fn take_header(&mut self) -> Result<(), BatchDamage> {
        let fields =
            self.decoder.take_varint().map(|head| (u32::try_from(head >> 1), head & FLAG_OWN_SEQUENCES));
        let Some((Ok(count), own)) = fields else { return Err(self.malformed("a batch header")) };
        self.next_sequence = match own {
            FLAG_OWN_SEQUENCES => None,
            _ => {
                let first = self.decoder.take_varint();
                let is_numbered =
                    |first: &u64| *first >= 1 && first.saturating_add(u64::from(count)) <= SEQUENCE_MAX + 1;
                let first = first.filter(is_numbered);
                Some(first.ok_or_else(|| self.malformed("sequence numbers from 1 to 2^56 - 1"))?)
            }
        };
        let number_before = self.empty_batch.take();
        self.retained_at = if own == FLAG_OWN_SEQUENCES { number_before } else { None };
        self.empty_batch = self.next_sequence.filter(|_| count == 0);
        self.left = count;
        Ok(())
    }

    fn take_entry(&mut self) -> Result<BatchEntry<'a>, BatchDamage> {
        let head = self.decoder.take_varint().and_then(|head| {
            let kind = (head & ((1 << KIND_BITS) - 1)) as u8;
            Some((u32::try_from(head >> KIND_BITS).ok()?, kind))
        });
        let (keyspace, kind) = head.ok_or_else(|| self.malformed("a keyspace id and an entry kind"))?;
        let kind = Kind::from_byte(kind).ok_or(BatchDamage::UnknownKind(kind))?;
        let sequence = match self.next_sequence {
            Some(next) => {
                self.next_sequence = Some(next + 1);
                Some(next)
            }
            None => self.decoder.take_varint().filter(|own| (1..=SEQUENCE_MAX).contains(own)),
        };
        let sequence = sequence.ok_or_else(|| self.malformed("a sequence number"))?;
        let key = self.decoder.take_bytes().filter(|key| (1..=KEY_LENGTH_MAX).contains(&key.len()));
        let key = key.ok_or_else(|| self.malformed("a key of 1 to 65,535 bytes"))?;
        let value = match kind {
            Kind::Put | Kind::Operand => {
                self.decoder.take_bytes().filter(|value| value.len() <= VALUE_LENGTH_MAX)
            }
            Kind::ExpiringPut => self
                .decoder
                .take_bytes()
                .filter(|value| value.len() <= VALUE_LENGTH_MAX && expiry::split(value).is_some()),
            Kind::Tombstone => Some(&[][..]),
            Kind::RangeTombstone => self
                .decoder
                .take_bytes()
                .filter(|upper| upper.len() <= KEY_LENGTH_MAX && is_below_upper(key, upper)),
        };
        let value =
            value.ok_or_else(|| self.malformed("a value of at most 268,435,456 bytes, or an upper bound"))?;
        let logged_at = self.retained_at.unwrap_or(sequence);
        Ok(BatchEntry { keyspace, sequence, logged_at, kind, key, value })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<BatchEntry<'a>, BatchDamage>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut header = Ok(());
        while self.left == 0 && header.is_ok() {
            if self.decoder.is_empty() {
                return None;
            }
            header = self.take_header();
        }
        let entry = header.and_then(|()| self.take_entry());
        if entry.is_ok() {
            self.left -= 1;
        } else {
            self.left = 0;
            self.decoder = Decoder::new(&[]);
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests;
