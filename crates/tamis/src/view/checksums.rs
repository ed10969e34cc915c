//! Corrects the checksums of changed views, so that tests and fuzz targets reach the checks behind them.

use crate::{
    coding::{Decoder, checksum},
    table::format::{FOOTER_LENGTH, SECTION_HEADER_LENGTH},
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

/// Offset and length of the sections for header and page index, from the directory.
pub(crate) fn sections(bytes: &[u8]) -> [(usize, usize); 2] {
    let directory = u64_at(bytes, bytes.len() - FOOTER_LENGTH + 16) + SECTION_HEADER_LENGTH;
    [0, 1].map(|number| {
        let record = directory + 24 * number;
        (u64_at(bytes, record + 8), u64_at(bytes, record + 16))
    })
}

/// Corrects the checksums of pages, header and page index. Those of pages are corrected only if the page index is as it was
/// written.
pub(crate) fn correct_checksums(bytes: &mut [u8], page_count: usize, is_index_intact: bool) {
    let [header, index] = sections(bytes);
    let body = index.0 + SECTION_HEADER_LENGTH;
    for page in (0..page_count).filter(|_| is_index_intact) {
        let (start, end) = (u64_at(bytes, body + 8 + 8 * page), u64_at(bytes, body + 16 + 8 * page));
        let sum = checksum(0, bytes.get(start..end).unwrap_or_default());
        put_u64_at(bytes, body + 8 + 8 * (page_count + 1 + page), sum);
    }
    for (offset, length) in [header, index] {
        let sum = checksum(offset as u64, bytes.get(offset + 8..offset + length).unwrap_or_default());
        put_u64_at(bytes, offset, sum);
    }
}
