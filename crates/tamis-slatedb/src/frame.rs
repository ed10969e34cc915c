//! The bytes of a table's filters in SlateDB: a version, then length and bytes of each filter.
//!
//! ```text
//! version: u8 = 1 | number of filters: u8, 0 to 8 | for each: length: u32, little-endian | filter
//! ```
//!
//! The filters are those of `docs/format/filter.md`, with their own checksums. SlateDB adds a checksum for the block.

use std::sync::Arc;

use slatedb::bytes::BufMut;
use tamis_filter::AlignedBytes;

use crate::design::PARTS_MAX;

/// Part of the name of the policy: another version has another name.
pub(crate) const VERSION: u8 = 1;

/// Bytes of a filter, shared by the copies of it that caches make.
#[derive(Debug, Clone)]
pub(crate) struct SharedBytes(Arc<AlignedBytes>);

impl AsRef<[u8]> for SharedBytes {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl From<&[u8]> for SharedBytes {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::new(bytes.into()))
    }
}

/// Writes the frame of filters; their number and lengths were checked when they were built.
pub(crate) fn encode<'a>(filters: impl ExactSizeIterator<Item = &'a [u8]>, target: &mut dyn BufMut) {
    target.put_u8(VERSION);
    target.put_u8(u8::try_from(filters.len()).expect("a design has at most 8 filters"));
    for filter in filters {
        target.put_u32_le(
            u32::try_from(filter.len()).expect("filters above 4 GiB are dropped when they are built"),
        );
        target.put_slice(filter);
    }
}

/// Bytes of the frame without the filters.
pub(crate) const fn overhead_bytes(filter_count: usize) -> usize {
    2 + 4 * filter_count
}

/// The filters of a frame; `None` if its structure is damaged.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let ([version, count], mut rest) = bytes.split_first_chunk()?;
    if *version != VERSION || usize::from(*count) > PARTS_MAX {
        return None;
    }
    let mut filters = Vec::with_capacity(usize::from(*count));
    for _ in 0..*count {
        let (length, after) = rest.split_first_chunk()?;
        let (filter, after) = after.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        filters.push(filter);
        rest = after;
    }
    rest.is_empty().then_some(filters)
}
