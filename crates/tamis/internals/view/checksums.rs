//! Corrects the checksums of changed views, so that tests and fuzz targets reach the checks behind them.

use crate::{
    coding::{Decoder, checksum},
    table::{
        format::{FOOTER_LENGTH, SECTION_HEADER_LENGTH, SectionKind},
        section::SectionRecord,
    },
};

fn u64_at(bytes: &[u8], offset: usize) -> usize {
    let number = bytes.get(offset..).and_then(|bytes| Decoder::new(bytes).take_u64());
    number.map_or(usize::MAX, |number| number as usize)
}

fn put_u64_at(bytes: &mut [u8], offset: usize, value: u64) {
    if let Some(target) = bytes.get_mut(offset..offset + 8) {
        target.copy_from_slice(&value.to_le_bytes());
    }
}

/// Offset and length of the directory.
pub(crate) fn directory_of(bytes: &[u8]) -> (usize, usize) {
    let footer = bytes.len() - FOOTER_LENGTH;
    (u64_at(bytes, footer + 16), u64_at(bytes, footer + 24))
}

/// The records of the directory.
pub(crate) fn records_of(bytes: &[u8]) -> Vec<SectionRecord> {
    let (offset, length) = directory_of(bytes);
    let body = bytes.get(offset + SECTION_HEADER_LENGTH..offset + length).unwrap_or_default();
    let mut source = Decoder::new(body);
    let mut records = Vec::new();
    while let (Some(kind), Some(flags), Some(offset), Some(length)) =
        (source.take_u32(), source.take_u32(), source.take_u64(), source.take_u64())
    {
        let kind = SectionKind::from_number(kind);
        records.extend(kind.map(|kind| SectionRecord { kind, flags, offset, length }));
    }
    records
}

/// Offset and length of the first section of a kind.
pub(crate) fn section_of(bytes: &[u8], kind: SectionKind) -> Option<(usize, usize)> {
    let found = records_of(bytes).into_iter().find(|record| record.kind == kind)?;
    Some((found.offset as usize, found.length as usize))
}

/// Offset and length of the sections for header and page index.
pub(crate) fn sections(bytes: &[u8]) -> [(usize, usize); 2] {
    [SectionKind::View, SectionKind::PageIndex]
        .map(|kind| section_of(bytes, kind).unwrap_or((bytes.len(), 0)))
}

/// Pages of an intact view.
pub(crate) fn page_count_of(bytes: &[u8]) -> usize {
    let [header, _] = sections(bytes);
    let count =
        bytes.get(header.0 + SECTION_HEADER_LENGTH + 52..).and_then(|bytes| Decoder::new(bytes).take_u32());
    count.unwrap_or_default() as usize
}

/// Corrects the checksums of pages and sections; the page index and the directory are as they were written.
pub(crate) fn correct_checksums(bytes: &mut [u8], page_count: usize) {
    let [_, index] = sections(bytes);
    let body = index.0 + SECTION_HEADER_LENGTH;
    for page in 0..page_count {
        let (start, end) = (u64_at(bytes, body + 8 + 8 * page), u64_at(bytes, body + 16 + 8 * page));
        let sum = checksum(0, bytes.get(start..end).unwrap_or_default());
        put_u64_at(bytes, body + 8 + 8 * (page_count + 1 + page), sum);
    }
    correct_section_checksums(bytes);
}

/// Corrects the checksums of sections; the directory is as it was written.
pub(crate) fn correct_section_checksums(bytes: &mut [u8]) {
    for SectionRecord { offset, length, .. } in records_of(bytes) {
        let (start, end) = (offset as usize, (offset + length) as usize);
        let sum = checksum(offset, bytes.get(start + 8..end).unwrap_or_default());
        put_u64_at(bytes, start, sum);
    }
}
