//! Sections, their directory and the footer: the common structure of tables and filter files (`docs/format/table.md`).
//!
//! A section is read and verified as a whole before it is used. It is then used in place: in the mapping, or in a buffer
//! that is aligned to cache lines ([`SectionBytes`]). Elastic filters, whose parts have their own checksums, can also be
//! read part by part (`elastic_units.rs`).

use std::{path::Path, sync::Arc};

use tamis_bits::{AlignedBytes, OwnedSlice};
use tamis_vfs::{Access, File};

use super::{
    direct_buffer::DirectBuffer,
    format::{
        DIRECTORY_RECORD_LENGTH, FILE_ALIGNMENT, FILTER_MAGIC, FILTER_VERSION, FOOTER_LENGTH,
        SECTION_ALIGNMENT, SECTION_HEADER_LENGTH, SECTION_PASSABLE, SectionKind, TABLE_MAGIC, VERSION,
        VERSION_OUTSIDE, VIEW_VERSION,
    },
    open_files::{CountedMapping, OpenFile},
};
use crate::{
    coding::{Decoder, StreamedChecksum, checksum, put_u32, put_u64},
    error::{Error, Result},
    key::Kind,
};

/// Verified bytes of a section's body, in the mapping or in memory. Their address is computed once, at the load: filters
/// and indexes use them several times in each read.
#[derive(Debug, Clone)]
pub(crate) struct SectionBytes {
    body: OwnedSlice,
    memory_bytes: u64,
}

impl AsRef<[u8]> for SectionBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.body.as_ref()
    }
}

impl SectionBytes {
    /// Bytes of memory that are allocated for it.
    pub(crate) const fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }
}

/// An open file with its path and access mode.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) file: Arc<dyn File>,
    pub(crate) path: Arc<Path>,
    pub(crate) access: Access,
    pub(crate) length: u64,
    #[expect(dead_code, reason = "counts the mapping until it is dropped")]
    mapping: Option<Arc<CountedMapping>>,
}

impl Source {
    pub(super) fn new(open: OpenFile, path: &Path, length: u64) -> Self {
        let OpenFile { file, access, mapping } = open;
        Self { file, path: path.into(), access, length, mapping }
    }

    /// Whether sections are used in the mapping.
    pub(super) fn uses_sections_in_place(&self) -> bool {
        self.file.mapping().is_some()
    }

    /// These bytes in the mapping; `None` without a mapping.
    pub(crate) fn mapped(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        self.file.mapping()?.get(start..start.checked_add(length)?)
    }

    /// Fills `target`; direct reads use an aligned buffer.
    pub(crate) fn read(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        if let Some(bytes) = self.mapped(offset, target.len()) {
            target.copy_from_slice(bytes);
            return Ok(());
        }
        if self.access != Access::Direct {
            return self.file.read_at(offset, target).map_err(|source| Error::io("read", &self.path, source));
        }
        let bytes = self.read_direct(offset, target.len())?;
        target.copy_from_slice(bytes.as_ref());
        Ok(())
    }

    /// These bytes in a new buffer that suits direct reads.
    pub(super) fn read_direct(&self, offset: u64, length: usize) -> Result<DirectBuffer> {
        let mut buffer = DirectBuffer::zeroed(length + 2 * FILE_ALIGNMENT);
        let (skipped, _) = self.read_aligned(offset, length, buffer.bytes_mut())?;
        buffer.start += skipped;
        buffer.length = length;
        Ok(buffer)
    }

    /// Reads bytes of an unmapped file into `target`, which begins at an aligned address and has room for two more pages,
    /// because direct reads read whole pages. Returns the position of the bytes in `target` and how many were read.
    pub(super) fn read_aligned(
        &self,
        offset: u64,
        length: usize,
        target: &mut [u8],
    ) -> Result<(usize, usize)> {
        let (skipped, whole) = if self.access == Access::Direct {
            let skipped = (offset % FILE_ALIGNMENT as u64) as usize;
            (skipped, (skipped + length).next_multiple_of(FILE_ALIGNMENT))
        } else {
            (0, length)
        };
        let target = target.get_mut(..whole).unwrap_or_default();
        let failed = |source| Error::io("read", &self.path, source);
        self.file.read_at(offset - skipped as u64, target).map_err(failed)?;
        Ok((skipped, whole))
    }

    pub(crate) fn damaged(
        &self,
        offset: u64,
        what: &'static str,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Error {
        Error::corruption(&self.path, offset, what, expected, got)
    }

    /// The error for a block whose entries no writer can have written.
    pub(super) fn malformed(&self, offset: u64) -> Error {
        self.damaged(offset, "block", "valid entries", "invalid ones with a correct checksum")
    }

    /// The kind of an entry of the block at `offset`.
    pub(super) fn kind(&self, byte: u8, offset: u64) -> Result<Kind> {
        let file = || self.path.to_path_buf();
        Kind::from_block_byte(byte).ok_or_else(|| Error::UnknownEntryKind {
            file: file(),
            offset,
            kind: byte,
        })
    }

    /// The first bytes of a section, header included, not verified. Empty for a mapped section, where a separate read saves
    /// nothing.
    pub(super) fn front(&self, record: &SectionRecord, length_max: usize) -> Result<Vec<u8>> {
        if self.file.mapping().is_some() {
            return Ok(Vec::new());
        }
        let mut front = vec![0; record.length.min(length_max as u64) as usize];
        self.read(record.offset, &mut front)?;
        Ok(front)
    }

    /// Reads and verifies a section.
    pub(crate) fn section(&self, record: &SectionRecord) -> Result<SectionBytes> {
        self.section_with_front(record, &[])
    }

    /// As [`Source::section`], if [`Source::front`] was read before.
    pub(super) fn section_with_front(&self, record: &SectionRecord, front: &[u8]) -> Result<SectionBytes> {
        let length = usize::try_from(record.length).map_err(|_| {
            self.damaged(record.offset, "section", "a length that fits memory", record.length.to_string())
        })?;
        let whole = self.load(record.offset, length, front)?;
        self.check_section(record, whole.as_ref())?;
        let SectionBytes { body, memory_bytes } = whole;
        Ok(SectionBytes { body: body.skip(SECTION_HEADER_LENGTH), memory_bytes })
    }

    /// Any bytes of the file, not verified: in the mapping, or read into memory.
    pub(crate) fn bytes(&self, offset: u64, length: u64) -> Result<SectionBytes> {
        let length = usize::try_from(length)
            .map_err(|_| self.damaged(offset, "file", "a length that fits memory", length.to_string()))?;
        self.load(offset, length, &[])
    }

    /// As [`Source::bytes`]; the first bytes were read before.
    fn load(&self, offset: u64, length: usize, front: &[u8]) -> Result<SectionBytes> {
        if self.mapped(offset, length).is_some() {
            let body = OwnedSlice::new(Arc::new(self.clone()), |source| {
                source.mapped(offset, length).unwrap_or_default()
            });
            return Ok(SectionBytes { body, memory_bytes: 0 });
        }
        let mut buffer = AlignedBytes::zeroed(length);
        let (target, rest) = buffer.as_mut_slice().split_at_mut(front.len().min(length));
        target.iter_mut().zip(front).for_each(|(target, source)| *target = *source);
        if !rest.is_empty() {
            self.read(offset + front.len() as u64, rest)?;
        }
        let body = OwnedSlice::new(Arc::new(buffer), AlignedBytes::as_ref);
        Ok(SectionBytes { body, memory_bytes: length as u64 })
    }

    fn check_section(&self, record: &SectionRecord, whole: &[u8]) -> Result<()> {
        let mut source = Decoder::new(whole);
        let (Some(stored), covered) = (source.take_u64(), source.rest()) else {
            return Err(self.damaged(record.offset, "section", "a header", "the end of the file"));
        };
        let computed = checksum(record.offset, source.rest());
        if computed != stored {
            let (expected, got) = (format!("checksum {stored:#018x}"), format!("{computed:#018x}"));
            return Err(self.damaged(record.offset, "section", expected, got));
        }
        let mut fields = Decoder::new(covered);
        let body_length = (whole.len() as u64).checked_sub(SECTION_HEADER_LENGTH as u64);
        if fields.take_u64() != body_length || fields.take_u32() != Some(record.kind as u32) {
            let expected =
                format!("{} bytes of kind {}", body_length.unwrap_or_default(), record.kind as u32);
            return Err(self.damaged(record.offset, "section header", expected, "another length or kind"));
        }
        Ok(())
    }
}

/// The place of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SectionRecord {
    pub(crate) kind: SectionKind,
    pub(crate) flags: u32,
    pub(crate) offset: u64,
    /// Length of header and body.
    pub(crate) length: u64,
}

impl SectionRecord {
    /// Offset of the body in the file.
    pub(super) const fn body_offset(&self) -> u64 {
        self.offset + SECTION_HEADER_LENGTH as u64
    }

    pub(super) const fn body_length(&self) -> u64 {
        self.length.saturating_sub(SECTION_HEADER_LENGTH as u64)
    }
}

/// The fields of a footer.
struct Footer {
    version: u32,
    directory: SectionRecord,
    content: u64,
    checksum: u64,
}

/// The version of a file and the records of its sections.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) version: u32,
    pub(crate) records: Vec<SectionRecord>,
    /// The offsets of all sections in file order, also of unknown ones, and of the directory.
    pub(crate) offsets: Vec<u64>,
    /// [`ContentSum`] of the file as its footer has it.
    pub(crate) content: u64,
    /// The checksum of the footer.
    pub(crate) footer_checksum: u64,
}

/// The checksum of the checksums of all blocks and sections of a table, in file order. It is in the footer: two tables with the same
/// footer have the same content.
#[derive(Debug)]
pub(crate) struct ContentSum(StreamedChecksum);

impl Default for ContentSum {
    fn default() -> Self {
        Self(StreamedChecksum::new(0))
    }
}

impl ContentSum {
    /// Adds the next block or section, whose first eight bytes are its checksum.
    pub(crate) fn add(&mut self, part: &[u8]) {
        self.0.update(part.first_chunk::<8>().map_or(part, |sum| sum));
    }

    pub(crate) fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// Receives the bytes of a file, part by part.
pub(crate) type Sink<'a> = dyn FnMut(&[u8]) -> Result<()> + 'a;

/// Appends the header of a section, whose checksum is still 0.
fn put_header(target: &mut Vec<u8>, kind: SectionKind, flags: u32, body_length: u64) {
    let start = target.len();
    put_u64(target, 0);
    put_u64(target, body_length);
    put_u32(target, kind as u32);
    put_u32(target, flags);
    target.resize(start + SECTION_HEADER_LENGTH, 0);
}

/// Appends a section at `offset` of the file (a multiple of 64) to `target`.
pub(crate) fn put_section(
    target: &mut Vec<u8>,
    offset: u64,
    kind: SectionKind,
    flags: u32,
    body: &[u8],
) -> SectionRecord {
    let start = target.len();
    put_header(target, kind, flags, body.len() as u64);
    target.extend_from_slice(body);
    if let Some((stored, covered)) =
        target.get_mut(start..).and_then(|section| section.split_first_chunk_mut::<8>())
    {
        *stored = checksum(offset, covered).to_le_bytes();
    }
    SectionRecord { kind, flags, offset, length: (SECTION_HEADER_LENGTH + body.len()) as u64 }
}

/// Appends directory, padding and footer to `target`, whose first byte is at `offset` (a multiple of 64) of the file. `content` has all
/// blocks and sections of a table, and is `None` for other files.
pub(crate) fn put_directory_and_footer(
    target: &mut Vec<u8>,
    offset: u64,
    magic: [u8; 8],
    version: u32,
    records: &[SectionRecord],
    content: Option<ContentSum>,
) {
    let start = target.len();
    let mut body = Vec::with_capacity(records.len() * DIRECTORY_RECORD_LENGTH);
    for record in records {
        put_u32(&mut body, record.kind as u32);
        put_u32(&mut body, record.flags);
        put_u64(&mut body, record.offset);
        put_u64(&mut body, record.length);
    }
    let directory = put_section(target, offset, SectionKind::Directory, 0, &body);
    let content = content.map_or(0, |mut content| {
        content.add(target.get(start..).unwrap_or_default());
        content.finish()
    });
    let written = offset as usize + (target.len() - start) + FOOTER_LENGTH;
    let file_length = written.next_multiple_of(FILE_ALIGNMENT);
    target.resize(target.len() + file_length - written, 0);
    let footer_offset = (file_length - FOOTER_LENGTH) as u64;
    let footer_start = target.len();
    target.extend_from_slice(&magic);
    put_u32(target, version);
    put_u32(target, 0);
    put_u64(target, directory.offset);
    put_u64(target, directory.length);
    put_u64(target, file_length as u64);
    put_u64(target, content);
    put_u64(target, 0);
    let sum = checksum(footer_offset, target.get(footer_start..).unwrap_or_default());
    put_u64(target, sum);
}

impl Source {
    /// Reads footer and directory: the records of all sections, each within the file, in file order. Fails for an unknown
    /// section that must not be ignored.
    pub(crate) fn directory(&self, magic: [u8; 8]) -> Result<Directory> {
        let Footer { version, directory: footer, content, checksum } = self.footer(magic)?;
        let body = self.section(&footer)?;
        let bytes = body.as_ref();
        if bytes.len() % DIRECTORY_RECORD_LENGTH != 0 {
            return Err(self.damaged(
                footer.offset,
                "section directory",
                "records of 24 bytes",
                bytes.len().to_string(),
            ));
        }
        let mut source = Decoder::new(bytes);
        let (mut records, mut offsets) = (Vec::new(), Vec::new());
        let mut end_of_previous = 0;
        while let (Some(kind), Some(flags), Some(offset), Some(length)) =
            (source.take_u32(), source.take_u32(), source.take_u64(), source.take_u64())
        {
            let end = offset.checked_add(length).filter(|&end| {
                offset >= end_of_previous
                    && end <= footer.offset
                    && length >= SECTION_HEADER_LENGTH as u64
                    && offset.is_multiple_of(SECTION_ALIGNMENT as u64)
            });
            let Some(end) = end else {
                let got = format!("{length} bytes at {offset}");
                return Err(self.damaged(footer.offset, "section directory", "sections in order", got));
            };
            end_of_previous = end;
            offsets.push(offset);
            let Some(kind) = SectionKind::from_number(kind) else {
                if flags & SECTION_PASSABLE == 0 {
                    return Err(Error::UnknownFormat {
                        file: self.path.to_path_buf(),
                        found: kind,
                        known: SectionKind::LAST,
                    });
                }
                continue;
            };
            records.push(SectionRecord { kind, flags, offset, length });
        }
        offsets.push(footer.offset);
        Ok(Directory { version, records, offsets, content, footer_checksum: checksum })
    }

    /// Reads and checks the footer.
    fn footer(&self, magic: [u8; 8]) -> Result<Footer> {
        let Some(offset) = self.length.checked_sub(FOOTER_LENGTH as u64) else {
            return Err(self.damaged(0, "file", "at least 64 bytes", self.length.to_string()));
        };
        if !self.length.is_multiple_of(FILE_ALIGNMENT as u64) {
            return Err(self.damaged(offset, "file length", "a multiple of 4,096", self.length.to_string()));
        }
        let mut bytes = [0; FOOTER_LENGTH];
        self.read(offset, &mut bytes)?;
        self.parse_footer(magic, offset, &bytes)
    }

    fn parse_footer(&self, magic: [u8; 8], offset: u64, bytes: &[u8; FOOTER_LENGTH]) -> Result<Footer> {
        let (covered, stored) = bytes.split_at(FOOTER_LENGTH - 8);
        let mut source = Decoder::new(covered);
        let found = source.take(8).unwrap_or_default();
        if found != magic {
            let (expected, got) = (magic.escape_ascii().to_string(), found.escape_ascii().to_string());
            return Err(self.damaged(offset, "footer magic", expected, got));
        }
        let stored = Decoder::new(stored).take_u64().unwrap_or_default();
        let computed = checksum(offset, covered);
        if stored != computed {
            let (expected, got) = (format!("checksum {stored:#018x}"), format!("{computed:#018x}"));
            return Err(self.damaged(offset, "footer", expected, got));
        }
        let version = source.take_u32().unwrap_or_default();
        let known: &[u32] = match magic {
            TABLE_MAGIC => &[VERSION, VERSION_OUTSIDE],
            FILTER_MAGIC => &[FILTER_VERSION],
            _ => &[VIEW_VERSION],
        };
        if !known.contains(&version) {
            let known = known.last().copied().unwrap_or_default();
            return Err(Error::UnknownFormat { file: self.path.to_path_buf(), found: version, known });
        }
        source.take_u32();
        let (Some(directory_offset), Some(length), Some(file_length)) =
            (source.take_u64(), source.take_u64(), source.take_u64())
        else {
            return Err(self.damaged(offset, "footer", "64 bytes", "less"));
        };
        let content = source.take_u64().unwrap_or_default();
        let fits = directory_offset.checked_add(length).is_some_and(|end| end <= offset);
        if file_length != self.length || !fits || length < SECTION_HEADER_LENGTH as u64 {
            let got = format!("{} bytes, directory of {length} at {directory_offset}", self.length);
            return Err(self.damaged(offset, "file length", format!("{file_length} bytes"), got));
        }
        let directory =
            SectionRecord { kind: SectionKind::Directory, flags: 0, offset: directory_offset, length };
        Ok(Footer { version, directory, content, checksum: stored })
    }
}
