//! Finds the blocks and sections of a table by their own headers, without an index or directory.
//!
//! From the first byte on: bytes that begin with the header of a block or section and have a correct checksum are a part, and
//! the next part begins at their end. A block's header has the length of its content. The end of compressed content follows
//! from its bytes, and all possible paddings of blocks are tried. After damaged bytes, the next position is searched at which
//! a part with a correct checksum begins. Headers in between that are still readable show how many parts are damaged.
//!
//! Cost: every byte is read once. Bytes of failed checksums and decompressions are counted, and the search ends at
//! [`EFFORT`] times the length, so that bytes that look like headers everywhere can't make it long.

use super::{
    format::{
        BLOCK_HEADER_LENGTH, BLOCK_KIND_ENTRIES, CONTENT_LENGTH_MAX, SECTION_ALIGNMENT,
        SECTION_HEADER_LENGTH, SECTION_PASSABLE, SectionKind, StoredAs,
    },
    section::SectionRecord,
    zstandard,
};
use crate::coding::{Decoder, checksum};

/// Limit of the bytes in failed tries, in multiples of the length.
const EFFORT: u64 = 64;
/// Possible alignments of block lengths: 1 in a packed table, else the block size.
const PADDINGS: [usize; 6] = [1, 4096, 8192, 16_384, 32_768, 65_536];

/// A part of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Start and end of a block with a correct checksum.
    Block(usize, usize),
    /// A section with a correct checksum.
    Section(SectionRecord),
    /// Start and end of bytes that are neither.
    Damaged(usize, usize),
    /// The position at which the search ended.
    Unsearched(usize),
}

/// The header of a possible part.
#[derive(Debug, Clone, Copy)]
enum Header {
    Block { compression: StoredAs, length: usize },
    Section(SectionRecord),
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct BlockScavenger<'a> {
    bytes: &'a [u8],
    position: usize,
    /// End of the damaged bytes.
    damaged_end: usize,
    /// The padding of the previous block.
    padding: usize,
    effort_left: u64,
    is_spent: bool,
}

impl<'a> BlockScavenger<'a> {
    /// For the bytes of a table up to its first section, or up to its footer.
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        let effort_left = (bytes.len() as u64).saturating_mul(EFFORT);
        Self { bytes, position: 0, damaged_end: 0, padding: 1, effort_left, is_spent: false }
    }

    fn header(&self, start: usize) -> Option<Header> {
        let mut fields = Decoder::new(self.bytes.get(start..)?.get(8..)?);
        let (length, kind, compression, zero) =
            (fields.take_u32()?, fields.take_u8()?, fields.take_u8()?, fields.take_u16()?);
        let length = length as usize;
        if kind == BLOCK_KIND_ENTRIES {
            let compression = StoredAs::from_number(compression)?;
            let is_possible = zero == 0 && length <= CONTENT_LENGTH_MAX;
            return (is_possible && length > 0).then_some(Header::Block { compression, length });
        }
        if !start.is_multiple_of(SECTION_ALIGNMENT) {
            return None;
        }
        let mut fields = Decoder::new(self.bytes.get(start..)?.get(8..SECTION_HEADER_LENGTH)?);
        let (length, kind, flags) = (fields.take_u64()?, fields.take_u32()?, fields.take_u32()?);
        let length = length.checked_add(SECTION_HEADER_LENGTH as u64)?;
        let kind = SectionKind::from_number(kind)?;
        let is_possible = flags <= SECTION_PASSABLE
            && fields.rest().iter().all(|&byte| byte == 0)
            && length <= (self.bytes.len() - start) as u64;
        let record = SectionRecord { kind, flags, offset: start as u64, length };
        is_possible.then_some(Header::Section(record))
    }

    /// The end of a block, without its padding.
    fn stored_end(&mut self, start: usize, compression: StoredAs, length: usize) -> Option<usize> {
        let content = start + BLOCK_HEADER_LENGTH;
        let rest = self.bytes.get(content..)?;
        if compression == StoredAs::Plain {
            return (length <= rest.len()).then_some(content + length);
        }
        // Compressed content is shorter than the content.
        let rest = rest.get(..length).unwrap_or(rest);
        self.take_effort(rest.len())?;
        let stored = match compression {
            StoredAs::Lz4 => lz4_length(rest, length)?,
            _ => zstandard::frame_length(rest)?,
        };
        Some(content + stored)
    }

    fn take_effort(&mut self, length: usize) -> Option<()> {
        let left = self.effort_left.checked_sub(length as u64);
        self.is_spent |= left.is_none();
        self.effort_left = left?;
        Some(())
    }

    fn has_right_checksum(&mut self, start: usize, end: usize) -> Option<()> {
        let (stored, covered) = self.bytes.get(start..end)?.split_first_chunk::<8>()?;
        self.take_effort(covered.len())?;
        (checksum(start as u64, covered) == u64::from_le_bytes(*stored)).then_some(())
    }

    /// The part with a correct checksum that begins here.
    fn valid_part(&mut self, start: usize) -> Option<Part> {
        match self.header(start)? {
            Header::Section(record) => {
                self.has_right_checksum(start, start + record.length as usize)?;
                Some(Part::Section(record))
            }
            Header::Block { compression, length } => {
                let stored = self.stored_end(start, compression, length)? - start;
                let known = self.padding;
                let others = PADDINGS.into_iter().filter(|padding| *padding != known);
                let mut last = 0;
                for padding in [known].into_iter().chain(others) {
                    let end = start + stored.next_multiple_of(padding);
                    if end != last && self.has_right_checksum(start, end).is_some() {
                        self.padding = padding;
                        return Some(Part::Block(start, end));
                    }
                    if compression != StoredAs::Plain && padding == 1 {
                        break;
                    }
                    last = end;
                }
                None
            }
        }
    }

    /// Skips zero bytes up to the next possible start of a section, or to the end.
    fn skip_padding(&mut self) {
        let next = self.position.next_multiple_of(SECTION_ALIGNMENT).min(self.bytes.len());
        let are_zero = |bytes: Option<&[u8]>| bytes.is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0));
        if matches!(self.header(self.position), Some(Header::Block { .. }))
            || !are_zero(self.bytes.get(self.position..next))
        {
            return;
        }
        self.position = if are_zero(self.bytes.get(next..)) { self.bytes.len() } else { next };
    }

    /// One damaged part, or several that can't be separated.
    fn damaged_part(&mut self) -> Part {
        let start = self.position;
        let claimed = match self.header(start) {
            Some(Header::Section(record)) => Some(start + record.length as usize),
            Some(Header::Block { compression, length }) => {
                let padding = if compression == StoredAs::Plain { self.padding } else { 1 };
                let end = self.stored_end(start, compression, length);
                end.map(|end| start + (end - start).next_multiple_of(padding))
            }
            None => None,
        };
        let leads_on = |end: usize| {
            let aligned = end.next_multiple_of(SECTION_ALIGNMENT);
            end < self.damaged_end && [end, aligned].into_iter().any(|start| self.header(start).is_some())
        };
        let end = claimed.filter(|end| leads_on(*end)).unwrap_or(self.damaged_end);
        self.position = end;
        Part::Damaged(start, end)
    }
}

impl Iterator for BlockScavenger<'_> {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        self.skip_padding();
        let start = self.position;
        if start >= self.bytes.len() {
            return None;
        }
        if start < self.damaged_end {
            return Some(self.damaged_part());
        }
        if let Some(part) = self.valid_part(start) {
            self.position = match part {
                Part::Section(record) => start + record.length as usize,
                Part::Block(_, end) | Part::Damaged(_, end) | Part::Unsearched(end) => end,
            };
            return Some(part);
        }
        let next =
            (start + 1..self.bytes.len()).find(|&next| self.is_spent || self.valid_part(next).is_some());
        if self.is_spent {
            self.position = self.bytes.len();
            return Some(Part::Unsearched(start));
        }
        self.damaged_end = next.unwrap_or(self.bytes.len());
        Some(self.damaged_part())
    }
}

/// Length of the LZ4 block at the beginning of `bytes` that decompresses to `length` bytes.
fn lz4_length(bytes: &[u8], length: usize) -> Option<usize> {
    let mut source = Decoder::new(bytes);
    let mut made = 0_usize;
    loop {
        let token = source.take_u8()?;
        let literal_count = lz4_count(&mut source, token >> 4)?;
        source.take(literal_count)?;
        made = made.checked_add(literal_count)?;
        // The last sequence has only literals.
        if made >= length {
            return (made == length).then(|| bytes.len() - source.rest().len());
        }
        source.take_u16()?;
        // The shortest match of LZ4; encoded lengths are added to it.
        made = made.checked_add(lz4_count(&mut source, token & 15)?)?.checked_add(4)?;
    }
}

/// A count of four bits, which continues in more bytes if all bits are set.
fn lz4_count(source: &mut Decoder<'_>, bits: u8) -> Option<usize> {
    let mut count = usize::from(bits);
    let mut continues = bits == 15;
    while continues {
        let byte = source.take_u8()?;
        count = count.checked_add(usize::from(byte))?;
        continues = byte == u8::MAX;
    }
    Some(count)
}
