//! Reads the content of a data block in place (`docs/format/table.md`, "Content of a data block").
//!
//! A reader keeps the [`Layout`] of a block; [`Layout::over`] applies it to the content. A search first compares the
//! contiguous key heads (a branch-free count that the compiler vectorises) and compares whole keys only if heads are equal:
//! header, heads and offsets are in the block's first cache lines, the entry is in another one.
//!
//! Every access is checked: `None` means that no writer can have written these bytes although their checksum is correct.
//! Callers return a [`crate::Corruption`] then.

use std::{cmp::Ordering, ops::Range};

use super::{
    format::{CONTENT_HEADER_LENGTH, CONTENT_PLAIN, CONTENT_WIDE_OFFSETS, HEAD_LENGTH},
    key_buffer::KeyBuffer,
};
use crate::{coding::Decoder, key::Sequence};

/// Positions of the parts of a content. Small and copied; valid for the content from which it was parsed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Layout {
    entry_count: u32,
    prefix_length: u32,
    sequence_width: u8,
    is_wide: bool,
    is_plain: bool,
    sequence_base: Sequence,
}

impl Layout {
    /// Parses and checks the header, and that heads, offsets and prefix are within the content.
    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let header: &[u8; CONTENT_HEADER_LENGTH] = content.first_chunk()?;
        let [count0, count1, prefix0, prefix1, sequence_width, flags, zero0, zero1, base @ ..] = *header;
        let layout = Self {
            entry_count: u16::from_le_bytes([count0, count1]).into(),
            prefix_length: u16::from_le_bytes([prefix0, prefix1]).into(),
            sequence_width,
            is_wide: flags & CONTENT_WIDE_OFFSETS != 0,
            is_plain: flags & CONTENT_PLAIN != 0,
            sequence_base: u64::from_le_bytes(base),
        };
        let is_known = flags <= CONTENT_WIDE_OFFSETS | CONTENT_PLAIN && [zero0, zero1] == [0, 0];
        let is_possible = layout.entry_count > 0 && sequence_width <= 8 && is_known;
        let fits = layout.entries_start() <= content.len();
        (is_possible && fits).then_some(layout)
    }

    pub(super) const fn entry_count(&self) -> usize {
        self.entry_count as usize
    }

    /// Whether all entries are puts, each the only version of its key in the table.
    pub(super) const fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// A number that no sequence number of the block exceeds.
    pub(super) fn sequence_bound(&self) -> Sequence {
        let delta = u64::MAX.checked_shr(64 - 8 * u32::from(self.sequence_width)).unwrap_or_default();
        self.sequence_base.saturating_add(delta)
    }

    pub(super) const fn prefix_length(&self) -> usize {
        self.prefix_length as usize
    }

    const fn offset_width(&self) -> usize {
        if self.is_wide { 4 } else { 2 }
    }

    const fn offsets_start(&self) -> usize {
        CONTENT_HEADER_LENGTH + HEAD_LENGTH * self.entry_count()
    }

    const fn prefix_start(&self) -> usize {
        self.offsets_start() + self.offset_width() * (self.entry_count() + 1)
    }

    const fn entries_start(&self) -> usize {
        self.prefix_start() + self.prefix_length()
    }

    /// The reader of `content`, from which this layout was parsed.
    pub(super) const fn over<'a>(&self, content: &'a [u8]) -> Block<'a> {
        Block { layout: *self, content }
    }
}

/// One entry as stored in the block: the key is prefix + head + rest.
#[derive(Debug, Clone, Copy)]
pub(super) struct RawEntry<'a> {
    pub(super) kind: u8,
    pub(super) sequence: Sequence,
    pub(super) suffix_length: usize,
    pub(super) rest: &'a [u8],
    /// The rest and all bytes behind it.
    tail: &'a [u8],
    /// Start and end of the value in the content.
    pub(super) value: (usize, usize),
}

/// The result of a search for a version of a key.
pub(super) enum Lookup<'a> {
    Found(RawEntry<'a>),
    /// The first entry that is not before the version has another key.
    Absent,
    /// All entries are before the version.
    Behind,
}

/// The position of a key relative to the prefix of a block.
enum Place<'k> {
    BelowAll,
    AboveAll,
    Within(&'k [u8]),
}

/// A block's content with its layout.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block<'a> {
    layout: Layout,
    content: &'a [u8],
}

impl<'a> Block<'a> {
    #[inline]
    fn heads(&self) -> &'a [[u8; HEAD_LENGTH]] {
        let bytes = self.content.get(CONTENT_HEADER_LENGTH..self.layout.offsets_start());
        bytes.unwrap_or_default().as_chunks().0
    }

    pub(super) fn prefix(&self) -> &'a [u8] {
        self.content.get(self.layout.prefix_start()..self.layout.entries_start()).unwrap_or_default()
    }

    /// The head of an entry as a number whose big-endian bytes are those of the key.
    #[inline]
    pub(super) fn head(&self, entry_index: usize) -> Option<u32> {
        self.heads().get(entry_index).map(|bytes| u32::from_le_bytes(*bytes))
    }

    #[inline]
    fn offset(&self, entry_index: usize) -> Option<usize> {
        let width = self.layout.offset_width();
        let bytes = self.content.get(self.layout.offsets_start() + width * entry_index..)?;
        Some(if self.layout.is_wide {
            u32::from_le_bytes(*bytes.first_chunk()?) as usize
        } else {
            u16::from_le_bytes(*bytes.first_chunk()?).into()
        })
    }

    /// Prefetches the first bytes of an entry.
    #[inline]
    pub(super) fn prefetch(&self, entry_index: usize) {
        if let Some(start) = self.offset(entry_index) {
            tamis_bits::prefetch(self.content, start);
            tamis_bits::prefetch(self.content, start + tamis_bits::CACHE_LINE);
        }
    }

    /// The entry with this number; `None` also past the last one.
    #[inline(always)]
    pub(super) fn entry(&self, entry_index: usize) -> Option<RawEntry<'a>> {
        self.decode::<true>(entry_index)
    }

    /// As [`Block::entry`], without its sequence number, which is 0.
    #[inline(always)]
    pub(super) fn key_and_value(&self, entry_index: usize) -> Option<RawEntry<'a>> {
        self.decode::<false>(entry_index)
    }

    /// The sequence number whose delta the bytes begin with.
    #[inline(always)]
    fn sequence(&self, bytes: &[u8]) -> Option<Sequence> {
        let width = usize::from(self.layout.sequence_width);
        let delta = match bytes.first_chunk() {
            // Mostly eight bytes follow, of which the shifts keep those of the delta.
            Some(word) if width > 0 => {
                let shift = 64 - 8 * width;
                (u64::from_le_bytes(*word) << shift) >> shift
            }
            _ => {
                let mut word = [0; 8];
                word.get_mut(..width)?.copy_from_slice(bytes.get(..width)?);
                u64::from_le_bytes(word)
            }
        };
        self.layout.sequence_base.checked_add(delta)
    }

    #[inline(always)]
    fn decode<const READS_SEQUENCE: bool>(&self, entry_index: usize) -> Option<RawEntry<'a>> {
        if entry_index >= self.layout.entry_count() {
            return None;
        }
        let (start, end) = (self.offset(entry_index)?, self.offset(entry_index + 1)?);
        let bytes = self.content.get(start..end)?;
        let (&kind, bytes) = bytes.split_first()?;
        let sequence = if READS_SEQUENCE { self.sequence(bytes)? } else { 0 };
        let bytes = bytes.get(self.layout.sequence_width.into()..)?;
        let (suffix_length, bytes) = match bytes.split_first()? {
            (&short, rest) if short < 0x80 => (usize::from(short), rest),
            _ => {
                let mut source = Decoder::new(bytes);
                (usize::try_from(source.take_varint()?).ok()?, source.rest())
            }
        };
        let (rest, value) = bytes.split_at_checked(suffix_length.saturating_sub(HEAD_LENGTH))?;
        let tail = self.content.get(end - bytes.len()..)?;
        Some(RawEntry { kind, sequence, suffix_length, rest, tail, value: (end - value.len(), end) })
    }

    fn place<'k>(&self, key: &'k [u8]) -> Place<'k> {
        let prefix = self.prefix();
        match key.strip_prefix(prefix) {
            Some(suffix) => Place::Within(suffix),
            None if key < prefix => Place::BelowAll,
            None => Place::AboveAll,
        }
    }

    /// The number of entries before (`key`, `sequence`); without a sequence, the number of entries before or at `key`.
    pub(super) fn rank(&self, key: &[u8], sequence: Option<Sequence>) -> Option<usize> {
        let suffix = match self.place(key) {
            Place::BelowAll => return Some(0),
            Place::AboveAll => return Some(self.layout.entry_count()),
            Place::Within(suffix) => suffix,
        };
        let Range { start: mut low, end: mut high } = self.with_head(head_of(suffix));
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = self.entry(middle)?;
            let order = compare_suffixes(&entry, suffix).then_with(|| match sequence {
                Some(sequence) => sequence.cmp(&entry.sequence),
                None => Ordering::Less,
            });
            if order == Ordering::Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// The newest version of `key` at or below `sequence`.
    pub(super) fn find(&self, key: &[u8], sequence: Sequence) -> Option<Lookup<'a>> {
        let suffix = match self.place(key) {
            Place::BelowAll => return Some(Lookup::Absent),
            Place::AboveAll => return Some(Lookup::Behind),
            Place::Within(suffix) => suffix,
        };
        let Range { start: mut low, end: mut high } = self.with_head(head_of(suffix));
        let mut found = None;
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = self.entry(middle)?;
            match compare_suffixes(&entry, suffix) {
                Ordering::Equal if entry.sequence <= sequence => (high, found) = (middle, Some(entry)),
                Ordering::Less | Ordering::Equal => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Some(match found {
            Some(entry) => Lookup::Found(entry),
            None if low < self.layout.entry_count() => Lookup::Absent,
            None => Lookup::Behind,
        })
    }

    /// The entries with this head; an empty range where they would be.
    #[inline]
    fn with_head(&self, head: u32) -> Range<usize> {
        let heads = self.heads();
        let low = count_below(heads, head);
        let is_equal = |bytes: &[u8; HEAD_LENGTH]| u32::from_le_bytes(*bytes) == head;
        // Most heads are different.
        let equal = match heads.get(low..) {
            Some([first, second, ..]) if is_equal(first) && !is_equal(second) => 1,
            Some(rest) => rest.partition_point(is_equal),
            None => 0,
        };
        low..low + equal
    }

    /// As [`Block::assemble_key`], for the key of a cursor in this block.
    #[inline(always)]
    pub(super) fn set_key(
        &self,
        entry_index: usize,
        entry: &RawEntry<'_>,
        target: &mut KeyBuffer,
    ) -> Option<()> {
        let head = self.head(entry_index)?.to_be_bytes();
        match head.get(..entry.suffix_length) {
            Some(short) if entry.suffix_length < HEAD_LENGTH => target.set_long(short, &[]),
            _ => target.set_suffix(head, entry.tail, entry.rest.len()),
        }
        Some(())
    }

    /// Replaces the bytes after the prefix in `target`, which begins with this block's prefix, by the rest of the entry's
    /// key.
    #[inline]
    pub(super) fn assemble_key(
        &self,
        entry_index: usize,
        entry: &RawEntry<'_>,
        target: &mut Vec<u8>,
    ) -> Option<()> {
        let head = self.head(entry_index)?.to_be_bytes();
        target.truncate(self.layout.prefix_length());
        if entry.suffix_length >= HEAD_LENGTH {
            target.extend_from_slice(&head);
            target.extend_from_slice(entry.rest);
        } else {
            target.extend_from_slice(head.get(..entry.suffix_length)?);
        }
        Some(())
    }
}

/// The first 4 bytes as a number, padded with zeros.
pub(super) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk() {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => {
            suffix.iter().fold(0, |head, &byte| head << 8 | u32::from(byte))
                << (8 * (HEAD_LENGTH - suffix.len()).min(3))
        }
    }
}

/// The number of heads below `head`.
fn count_below(heads: &[[u8; HEAD_LENGTH]], head: u32) -> usize {
    // For few heads, counting is faster than a binary search.
    if heads.len() > 64 {
        return heads.partition_point(|bytes| u32::from_le_bytes(*bytes) < head);
    }
    heads.iter().map(|bytes| u32::from(u32::from_le_bytes(*bytes) < head)).sum::<u32>() as usize
}

/// The order of an entry's suffix and another one with an equal head.
fn compare_suffixes(entry: &RawEntry<'_>, suffix: &[u8]) -> Ordering {
    match suffix.get(HEAD_LENGTH..) {
        Some(rest) if entry.suffix_length >= HEAD_LENGTH => entry.rest.cmp(rest),
        _ => entry.suffix_length.cmp(&suffix.len()),
    }
}
