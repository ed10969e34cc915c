//! Constants of tables and filter files; `docs/format/table.md` says what they mean.

use crate::key::{KEY_LENGTH_MAX, VALUE_LENGTH_MAX};

/// Of tables of a store, and of filter files.
pub(super) const VERSION: u32 = 1;
/// Of tables built outside of a store.
pub(super) const VERSION_OUTSIDE: u32 = 2;
pub(super) const TABLE_MAGIC: [u8; 8] = *b"TamisTbl";
pub(super) const FILTER_MAGIC: [u8; 8] = *b"TamisFil";

/// Files end at a multiple of this, so that direct I/O reads their last bytes too.
pub(super) const FILE_ALIGNMENT: usize = 4096;
pub(super) const FOOTER_LENGTH: usize = 64;

pub(super) const SECTION_ALIGNMENT: usize = 64;
pub(super) const SECTION_HEADER_LENGTH: usize = 64;
pub(super) const SECTION_PASSABLE: u32 = 1;
pub(super) const DIRECTORY_RECORD_LENGTH: usize = 24;

pub(super) const KIND_INDEX: u32 = 1;
pub(super) const KIND_KEY_COLUMN: u32 = 2;
pub(super) const KIND_FILTER: u32 = 3;
pub(super) const KIND_PROPERTIES: u32 = 4;
pub(super) const KIND_DIRECTORY: u32 = 5;
pub(super) const KIND_OWNER: u32 = 6;

pub(super) const BLOCK_HEADER_LENGTH: usize = 16;
pub(super) const BLOCK_KIND_ENTRIES: u8 = 1;
pub(super) const COMPRESSION_NONE: u8 = 0;
pub(super) const COMPRESSION_LZ4: u8 = 1;
pub(super) const COMPRESSION_ZSTD: u8 = 2;

pub(super) const CONTENT_HEADER_LENGTH: usize = 16;
/// Content that one entry of the greatest key and value can need, rounded up.
pub(super) const CONTENT_LENGTH_MAX: usize = VALUE_LENGTH_MAX + 2 * (KEY_LENGTH_MAX + 1);
pub(super) const CONTENT_WIDE_OFFSETS: u8 = 1;
pub(super) const HEAD_LENGTH: usize = 4;

pub(super) const INDEX_HEADER_LENGTH: usize = 32;
pub(super) const INDEX_PACKED: u32 = 1;
pub(super) const INDEX_HEAD_LENGTH: usize = 8;
pub(super) const INDEX_CONTINUED_LENGTH: usize = 12;

/// Every how many keys the key column begins anew.
pub(super) const KEY_COLUMN_RESTART: usize = 16;
pub(super) const KEY_COLUMN_HEADER_LENGTH: usize = 16;
