//! Constants of tables and filter files; `docs/format/table.md` defines them.

use crate::key::{KEY_LENGTH_MAX, VALUE_LENGTH_MAX};

/// Tables of a store.
pub(super) const VERSION: u32 = 7;
/// Tables built outside of a store.
pub(super) const VERSION_OUTSIDE: u32 = 8;
/// Filter files.
pub(super) const FILTER_VERSION: u32 = 2;
/// Sorted views.
pub(crate) const VIEW_VERSION: u32 = 2;
pub(crate) const TABLE_MAGIC: [u8; 8] = *b"TamisTbl";
pub(crate) const FILTER_MAGIC: [u8; 8] = *b"TamisFil";

/// Files end at a multiple of this, so that direct I/O can read their last bytes.
pub(crate) const FILE_ALIGNMENT: usize = 4096;
pub(crate) const FOOTER_LENGTH: usize = 64;

pub(crate) const SECTION_ALIGNMENT: usize = 64;
pub(crate) const SECTION_HEADER_LENGTH: usize = 64;
pub(crate) const SECTION_PASSABLE: u32 = 1;
pub(crate) const DIRECTORY_RECORD_LENGTH: usize = 24;

pub(super) const KIND_INDEX: u32 = 1;
pub(crate) const KIND_FILTER: u32 = 3;
pub(super) const KIND_PROPERTIES: u32 = 4;
pub(super) const KIND_DIRECTORY: u32 = 5;
pub(super) const KIND_OWNER: u32 = 6;
pub(super) const KIND_RANGE_TOMBSTONES: u32 = 7;
/// Of views (`docs/format/view.md`).
pub(crate) const KIND_VIEW: u32 = 8;
pub(crate) const KIND_PAGE_INDEX: u32 = 9;
/// Of tables and filter files again.
pub(super) const KIND_FILTER_CHOICE: u32 = 10;
/// The greatest kind that this version knows in tables and filter files.
pub(super) const KIND_LAST: u32 = KIND_FILTER_CHOICE;

pub(super) const BLOCK_HEADER_LENGTH: usize = 16;
pub(super) const BLOCK_KIND_ENTRIES: u8 = 1;
pub(super) const COMPRESSION_NONE: u8 = 0;
pub(super) const COMPRESSION_LZ4: u8 = 1;
pub(super) const COMPRESSION_ZSTD: u8 = 2;

pub(super) const CONTENT_HEADER_LENGTH: usize = 16;
/// The largest content of one entry with the longest key and value, rounded up.
pub(super) const CONTENT_LENGTH_MAX: usize = VALUE_LENGTH_MAX + 2 * (KEY_LENGTH_MAX + 1);
pub(super) const CONTENT_WIDE_OFFSETS: u8 = 1;
/// All entries are puts, and each has another key than its neighbors, also those in the neighboring blocks.
pub(super) const CONTENT_PLAIN: u8 = 2;
pub(super) const HEAD_LENGTH: usize = 4;

pub(super) const INDEX_HEADER_LENGTH: usize = 32;
pub(super) const INDEX_PACKED: u32 = 1;
pub(super) const INDEX_HEAD_LENGTH: usize = 8;
pub(super) const INDEX_CONTINUED_LENGTH: usize = 12;
