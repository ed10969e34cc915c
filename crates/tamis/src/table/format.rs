//! Constants of tables and filter files; `docs/format/table.md` defines them.

use crate::{
    coding::numbered,
    key::{KEY_LENGTH_MAX, VALUE_LENGTH_MAX},
};

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

numbered! {
    /// The kinds of sections of all files.
    pub(crate) enum SectionKind: u32 {
        Index = 1,
        Filter = 3,
        Properties = 4,
        Directory = 5,
        Owner = 6,
        RangeTombstones = 7,
        /// Of views (`docs/format/view.md`), as the next one.
        View = 8,
        PageIndex = 9,
        FilterChoice = 10,
    }
}

impl SectionKind {
    /// The greatest kind that this version knows.
    pub(crate) const LAST: u32 = Self::FilterChoice as u32;
}

pub(super) const BLOCK_HEADER_LENGTH: usize = 16;
pub(super) const BLOCK_KIND_ENTRIES: u8 = 1;
numbered! {
    /// How the content of a block is stored.
    pub(super) enum StoredAs: u8 {
        Plain = 0,
        Lz4 = 1,
        Zstandard = 2,
    }
}

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
