//! Collects the entries of one data block and encodes them (`docs/format/table.md`).
//!
//! The block's prefix, sequence base and sequence width are known only when the block is full. So entries are stored
//! unencoded and encoded by [`BlockBuilder::finish`]. `BlockBuilder::add` computes the exact size with one more entry in
//! constant time; only if the prefix gets shorter it reads all lengths again.

use super::format::{CONTENT_HEADER_LENGTH, CONTENT_PLAIN, CONTENT_WIDE_OFFSETS, HEAD_LENGTH};
use crate::{
    coding::{length_u16, put_u16, put_u32, put_u64, put_varint},
    key::{Kind, Sequence},
};

#[derive(Debug, Clone, Copy)]
struct Pending {
    key_length: usize,
    value_length: usize,
    sequence: Sequence,
    kind: Kind,
}

/// The inputs of the encoded size.
#[derive(Debug, Clone, Copy, Default)]
struct Shape {
    prefix_length: usize,
    sequence_smallest: Sequence,
    sequence_largest: Sequence,
    /// Bytes of suffix lengths and rests of all entries with this prefix.
    suffix_bytes: usize,
    value_bytes: usize,
}

impl Shape {
    const fn sequence_width(&self) -> usize {
        (64 - (self.sequence_largest - self.sequence_smallest).leading_zeros()).div_ceil(8) as usize
    }

    fn content_length(&self, entry_count: usize) -> usize {
        let per_entry = HEAD_LENGTH + 1 + self.sequence_width();
        let narrow = CONTENT_HEADER_LENGTH
            + entry_count * per_entry
            + 2 * (entry_count + 1)
            + self.prefix_length
            + self.suffix_bytes
            + self.value_bytes;
        if narrow <= usize::from(u16::MAX) { narrow } else { narrow + 2 * (entry_count + 1) }
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(super) struct BlockBuilder {
    pending: Vec<Pending>,
    /// Keys and values of the pending entries, concatenated.
    bytes: Vec<u8>,
    first_key: Vec<u8>,
    shape: Shape,
    /// An entry is no put, or has the key of its neighbor.
    is_mixed: bool,
}

impl BlockBuilder {
    pub(super) fn entry_count(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn content_length(&self) -> usize {
        self.shape.content_length(self.pending.len())
    }

    /// Records that a key has versions in this block, or in this one and its neighbor.
    pub(super) const fn repeat_key(&mut self) {
        self.is_mixed = true;
    }

    fn shape_with(&self, key: &[u8], sequence: Sequence, value_length: usize) -> Shape {
        if self.pending.is_empty() {
            return Shape {
                prefix_length: key.len(),
                sequence_smallest: sequence,
                sequence_largest: sequence,
                suffix_bytes: suffix_bytes(0),
                value_bytes: value_length,
            };
        }
        let mut shape = self.shape;
        let limit = shape.prefix_length;
        let shared =
            self.first_key.iter().zip(key).take(limit).take_while(|(left, right)| left == right).count();
        if shared < limit {
            shape.prefix_length = shared;
            shape.suffix_bytes =
                self.pending.iter().map(|entry| suffix_bytes(entry.key_length - shared)).sum();
        }
        shape.suffix_bytes += suffix_bytes(key.len() - shared);
        shape.sequence_smallest = shape.sequence_smallest.min(sequence);
        shape.sequence_largest = shape.sequence_largest.max(sequence);
        shape.value_bytes += value_length;
        shape
    }

    /// Adds the entry if the content stays within `limit` bytes. An empty builder accepts any entry.
    pub(super) fn add(
        &mut self,
        key: &[u8],
        sequence: Sequence,
        kind: Kind,
        value: &[u8],
        limit: usize,
    ) -> bool {
        let shape = self.shape_with(key, sequence, value.len());
        let count = self.pending.len() + 1;
        if count > 1 && (count > usize::from(u16::MAX) || shape.content_length(count) > limit) {
            return false;
        }
        if self.pending.is_empty() {
            self.first_key.clear();
            self.first_key.extend_from_slice(key);
        }
        self.shape = shape;
        self.is_mixed |= kind != Kind::Put;
        self.pending.push(Pending { key_length: key.len(), value_length: value.len(), sequence, kind });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        true
    }

    /// Appends the content to `target` and empties the builder.
    pub(super) fn finish(&mut self, target: &mut Vec<u8>) {
        let start = target.len();
        let length = self.content_length();
        let (width, prefix_length) = (self.shape.sequence_width(), self.shape.prefix_length);
        let is_wide = length > usize::from(u16::MAX);
        target.reserve(length);
        put_u16(target, length_u16(self.pending.len()));
        put_u16(target, prefix_length as u16);
        target.push(width as u8);
        let plain = if std::mem::take(&mut self.is_mixed) { 0 } else { CONTENT_PLAIN };
        target.push(plain | if is_wide { CONTENT_WIDE_OFFSETS } else { 0 });
        put_u16(target, 0);
        put_u64(target, self.shape.sequence_smallest);
        let put_offset = |target: &mut Vec<u8>, offset: usize| {
            if is_wide { put_u32(target, offset as u32) } else { put_u16(target, offset as u16) }
        };
        for (_, key, _) in entries(&self.pending, &self.bytes) {
            put_u32(target, super::block::head_of(key.get(prefix_length..).unwrap_or_default()));
        }
        let offset_width = if is_wide { 4 } else { 2 };
        let mut offset = CONTENT_HEADER_LENGTH
            + HEAD_LENGTH * self.pending.len()
            + offset_width * (self.pending.len() + 1)
            + prefix_length;
        for entry in &self.pending {
            put_offset(target, offset);
            offset += 1 + width + suffix_bytes(entry.key_length - prefix_length) + entry.value_length;
        }
        put_offset(target, offset);
        target.extend_from_slice(self.first_key.get(..prefix_length).unwrap_or_default());
        for (entry, key, value) in entries(&self.pending, &self.bytes) {
            let delta = (entry.sequence - self.shape.sequence_smallest).to_le_bytes();
            target.push(entry.kind as u8);
            target.extend_from_slice(delta.get(..width).unwrap_or_default());
            put_varint(target, (key.len() - prefix_length) as u64);
            target.extend_from_slice(key.get(prefix_length + HEAD_LENGTH..).unwrap_or_default());
            target.extend_from_slice(value);
        }
        debug_assert_eq!(target.len() - start, length, "the computed size equals the written size");
        self.pending.clear();
        self.bytes.clear();
    }
}

/// Each pending entry with its key and value.
fn entries<'a>(
    pending: &'a [Pending],
    bytes: &'a [u8],
) -> impl Iterator<Item = (&'a Pending, &'a [u8], &'a [u8])> {
    let mut rest = bytes;
    pending.iter().map_while(move |entry| {
        let (key, others) = rest.split_at_checked(entry.key_length)?;
        let (value, others) = others.split_at_checked(entry.value_length)?;
        rest = others;
        Some((entry, key, value))
    })
}

/// Bytes of a suffix in its entry: its length as a varint, and the bytes that are not in the head.
const fn suffix_bytes(suffix_length: usize) -> usize {
    let varint = if suffix_length < 1 << 7 {
        1
    } else if suffix_length < 1 << 14 {
        2
    } else {
        3
    };
    varint + suffix_length.saturating_sub(HEAD_LENGTH)
}
