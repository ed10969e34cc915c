//! The key column: all keys of a table with their kinds, without values (`docs/format/table.md`, "Key column").
//!
//! Filters and views can be rebuilt from it without reading data blocks. A key shares a prefix with the key before it,
//! except at restarts, so that a reader can begin at every 16th entry.

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
            self.last.iter().zip(key).take_while(|(left, right)| left == right).count()
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
    pub(crate) fn keys_from(&self, number: usize) -> KeyColumnKeys<'_> {
        let restart = number / self.interval;
        let offset =
            self.bytes.as_ref().get(KEY_COLUMN_HEADER_LENGTH + 4 * restart..).and_then(<[u8]>::first_chunk);
        let start = offset.map_or(usize::MAX, |offset| u32::from_le_bytes(*offset) as usize);
        let rest = self.bytes.as_ref().get(self.entries_start..).and_then(|entries| entries.get(start..));
        let at = (restart * self.interval).min(self.count);
        let is_within = number < self.count;
        let mut keys = KeyColumnKeys {
            rest: if is_within { rest.unwrap_or_default() } else { &[] },
            key: Vec::new(),
            left: if is_within { self.count - at } else { 0 },
        };
        for _ in at..number.min(self.count) {
            keys.advance();
        }
        keys
    }
}

/// Keys of a column in order. Not an iterator: each key is borrowed until the next call.
#[derive(Debug)]
pub(crate) struct KeyColumnKeys<'a> {
    rest: &'a [u8],
    key: Vec<u8>,
    left: usize,
}

impl KeyColumnKeys<'_> {
    /// The next key and its kind's byte; `None` at the end, and `Some(None)` for bytes that no writer can have written.
    pub(crate) fn advance(&mut self) -> Option<Option<(&[u8], u8)>> {
        self.left = self.left.checked_sub(1)?;
        Some(self.decode())
    }

    fn decode(&mut self) -> Option<(&[u8], u8)> {
        let mut source = Decoder::new(self.rest);
        let shared = usize::try_from(source.take_varint()?).ok()?;
        let rest_length = usize::try_from(source.take_varint()?).ok()?;
        let kind = source.take_u8()?;
        let rest = source.take(rest_length)?;
        if shared > self.key.len() || shared + rest_length > KEY_LENGTH_MAX {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(rest);
        self.rest = source.rest();
        Some((&self.key, kind))
    }
}
