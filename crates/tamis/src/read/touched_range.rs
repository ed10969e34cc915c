//! The keys that a scan returns, and the partitions that have them.

use std::ops::{Bound, Range};

use crate::{
    cursor::bounded::{KeyRange, ScanRange, as_slice, prefix_bounds},
    store::keyspace_state::ReadState,
};

/// See the head of this file.
pub(super) struct TouchedRange {
    pub(super) range: KeyRange,
    /// The range is a prefix: the prefix is its lower bound.
    pub(super) is_prefix: bool,
    /// The positions of the partitions that the range touches.
    pub(super) positions: Range<usize>,
}

impl TouchedRange {
    #[inline]
    pub(super) fn new(keys: ScanRange, read_state: &ReadState) -> Self {
        let ((lower, upper), is_prefix) = match keys {
            ScanRange::Bounds(bounds) => (bounds, false),
            ScanRange::Prefix(prefix) => (prefix_bounds(&prefix), true),
        };
        let positions = read_state.version.positions_within((as_slice(&lower), as_slice(&upper)));
        Self { range: KeyRange { lower, upper }, is_prefix, positions }
    }

    /// The range as filters take it.
    #[inline]
    pub(super) fn filter_range(&self) -> tamis_filter::KeyRange<'_> {
        match as_slice(&self.range.lower) {
            Bound::Included(prefix) if self.is_prefix => tamis_filter::KeyRange::prefix(prefix),
            lower => tamis_filter::KeyRange::new(lower, as_slice(&self.range.upper)),
        }
    }
}
