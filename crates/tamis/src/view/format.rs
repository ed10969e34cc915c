//! Constants of sorted views; `docs/format/view.md` defines them.

use crate::key::Kind;

pub(crate) const VIEW_MAGIC: [u8; 8] = *b"TamisViw";

pub(super) const RUN_COUNT_MAX: usize = 65_535;
pub(super) const SEGMENT_SIZES: [usize; 3] = [16, 32, 64];
/// Segments of a page.
pub(super) const SEGMENT_COUNT_MAX: usize = 64;

pub(super) const HEADER_LENGTH: usize = 64;
pub(super) const HEADER_RUN_LENGTH: usize = 24;

pub(super) const PAGE_HEADER_LENGTH: usize = 16;
pub(super) const PAGE_WIDE: u8 = 1;
pub(super) const SEGMENT_CONTINUED: u8 = 0x80;
pub(super) const ESCAPE_LENGTH: usize = 6;

/// The difference of an entry whose key equals that of the previous entry.
pub(super) const SAME_KEY: u32 = u32::MAX;
pub(super) const DIFFERENCE_ESCAPED: u8 = 254;
pub(super) const DIFFERENCE_SAME: u8 = 255;

pub(super) const INDEX_HEADER_LENGTH: usize = 8;

pub(super) const KIND_BITS_MAX: u8 = 2;
pub(super) const SELECTOR_BITS_MAX: u8 = 16;

/// The number of a kind in a view; range tombstones are never entries of a run.
pub(super) const fn kind_number(kind: Kind) -> u8 {
    match kind {
        Kind::Put => 0,
        Kind::Tombstone | Kind::RangeTombstone => 1,
        Kind::Operand => 2,
        Kind::ExpiringPut => 3,
    }
}

/// The kind of a number of two bits.
pub(super) const fn kind_of(number: u8) -> Kind {
    match number {
        0 => Kind::Put,
        1 => Kind::Tombstone,
        2 => Kind::Operand,
        _ => Kind::ExpiringPut,
    }
}

/// Flag of views with operands or expiring puts.
pub(super) const VIEW_MIXED: u8 = 1;

/// Whether a view may have an entry of this kind without [`VIEW_MIXED`].
pub(super) const fn is_plain(kind: Kind) -> bool {
    matches!(kind, Kind::Put | Kind::Tombstone | Kind::RangeTombstone)
}

/// Bits of the selectors of this many runs.
pub(super) const fn selector_bits(run_count: usize) -> u8 {
    (usize::BITS - run_count.saturating_sub(1).leading_zeros()) as u8
}

/// Segments of a full page: more for many runs, because the page index has a position for each run and page.
pub(super) fn segments_per_page(run_count: usize) -> usize {
    run_count.next_power_of_two().clamp(16, SEGMENT_COUNT_MAX)
}
