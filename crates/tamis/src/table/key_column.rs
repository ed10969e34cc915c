//! The key column: all keys of a table with their kinds, without values (`docs/format/table.md`, "Key column").
//!
//! Filters and views can be rebuilt from it without reading data blocks. A key shares a prefix with the key before it,
//! except at restarts, so that a reader can begin at every 16th entry.

use std::borrow::Borrow;

use super::{
    format::{KEY_COLUMN_HEADER_LENGTH, KEY_COLUMN_RESTART},
    section::SectionBytes,
};
use crate::{
    coding::{Decoder, length_u32, put_u32, put_varint},
    key::KEY_LENGTH_MAX,
};

/// Collects the key of each entry, in order.
#[derive(Debug, Default)]
pub(super) struct KeyColumnBuilder {
    entries: Vec<u8>,
    restarts: Vec<u32>,
    last: Vec<u8>,
    count: usize,
}

impl KeyColumnBuilder {
    pub(super) fn add(&mut self, key: &[u8], kind: u8) {
        let shared = if self.count.is_multiple_of(KEY_COLUMN_RESTART) {
            // If the offset is truncated here, `finish` returns `None`.
            self.restarts.push(length_u32(self.entries.len()));
            0
        } else {
            tamis_bits::common_prefix_length(&self.last, key)
        };
        let rest = key.get(shared..).unwrap_or_default();
        put_varint(&mut self.entries, shared as u64);
        put_varint(&mut self.entries, rest.len() as u64);
        self.entries.push(kind);
        self.entries.extend_from_slice(rest);
        self.last.truncate(shared);
        self.last.extend_from_slice(rest);
        self.count += 1;
    }

    pub(super) fn estimated_bytes(&self) -> usize {
        KEY_COLUMN_HEADER_LENGTH + 4 * self.restarts.len() + self.entries.len()
    }

    /// The section's body; `None` if its offsets do not fit 32 bits.
    pub(super) fn finish(&self) -> Option<Vec<u8>> {
        u32::try_from(self.entries.len()).ok()?;
        let mut body = Vec::with_capacity(self.estimated_bytes());
        put_u32(&mut body, u32::try_from(self.count).ok()?);
        put_u32(&mut body, KEY_COLUMN_RESTART as u32);
        put_u32(&mut body, length_u32(self.restarts.len()));
        put_u32(&mut body, 0);
        self.restarts.iter().for_each(|&offset| put_u32(&mut body, offset));
        body.extend_from_slice(&self.entries);
        Some(body)
    }
}

/// A key column over verified bytes.
#[derive(Debug)]
pub(crate) struct KeyColumn {
    bytes: SectionBytes,
    count: usize,
    interval: usize,
    entries_start: usize,
}

impl KeyColumn {
    pub(super) fn open(bytes: SectionBytes) -> Option<Self> {
        let mut source = Decoder::new(bytes.as_ref());
        let (count, interval) = (source.take_u32()? as usize, source.take_u32()? as usize);
        let (restart_count, zero) = (source.take_u32()? as usize, source.take_u32()?);
        if interval == 0 || restart_count != count.div_ceil(interval) || zero != 0 {
            return None;
        }
        source.take(restart_count.checked_mul(4)?)?;
        let entries_start = bytes.as_ref().len() - source.rest().len();
        Some(Self { count, interval, entries_start, bytes })
    }

    /// Number of entries, that of the table.
    pub(crate) const fn entry_count(&self) -> usize {
        self.count
    }

    /// Reads keys from entry `number` on; skips at most 15 keys before it.
    pub(crate) fn keys_from(&self, number: usize) -> KeyColumnKeys<&Self> {
        KeyColumnKeys::of(self, number)
    }

    /// As [`KeyColumn::keys_from`], for a reader that keeps the column.
    pub(crate) fn into_keys(self) -> KeyColumnKeys<Self> {
        KeyColumnKeys::of(self, 0)
    }

    /// Number and offset of the last restart that is not behind entry `number`.
    fn restart(&self, number: usize) -> (usize, usize) {
        let restart = number / self.interval;
        let offset =
            self.bytes.as_ref().get(KEY_COLUMN_HEADER_LENGTH + 4 * restart..).and_then(<[u8]>::first_chunk);
        let start = offset.map_or(usize::MAX, |offset| u32::from_le_bytes(*offset) as usize);
        (restart * self.interval, start.saturating_add(self.entries_start))
    }
}

/// Keys of a column in order. Not an iterator: each key is borrowed until the next call.
#[derive(Debug)]
pub(crate) struct KeyColumnKeys<C> {
    column: C,
    /// Where the next entry begins in the column.
    offset: usize,
    key: Vec<u8>,
    /// The number of the next entry.
    next: usize,
}

impl<C: Borrow<KeyColumn>> KeyColumnKeys<C> {
    fn of(column: C, number: usize) -> Self {
        let mut keys = Self { column, offset: 0, key: Vec::new(), next: 0 };
        keys.seek(number);
        keys
    }

    /// Moves before entry `number`, so that [`KeyColumnKeys::advance`] returns it.
    pub(crate) fn seek(&mut self, number: usize) {
        let column = self.column.borrow();
        if number >= column.count {
            self.next = column.count;
            return;
        }
        let (restart, offset) = column.restart(number);
        if !(restart..=number).contains(&self.next) || self.offset == 0 {
            (self.next, self.offset) = (restart, offset);
        }
        while self.next < number {
            self.advance();
        }
    }

    /// The next key and its kind's byte; `None` at the end, and `Some(None)` for bytes that no writer can have written.
    pub(crate) fn advance(&mut self) -> Option<Option<(&[u8], u8)>> {
        if self.next >= self.column.borrow().count {
            return None;
        }
        self.next += 1;
        Some(self.decode())
    }

    /// The key that was returned last.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    fn decode(&mut self) -> Option<(&[u8], u8)> {
        let bytes = self.column.borrow().bytes.as_ref();
        let mut source = Decoder::new(bytes.get(self.offset..)?);
        let shared = usize::try_from(source.take_varint()?).ok()?;
        let rest_length = usize::try_from(source.take_varint()?).ok()?;
        let kind = source.take_u8()?;
        let rest = source.take(rest_length)?;
        if shared > self.key.len() || shared + rest_length > KEY_LENGTH_MAX {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(rest);
        self.offset = bytes.len() - source.rest().len();
        Some((&self.key, kind))
    }
}
