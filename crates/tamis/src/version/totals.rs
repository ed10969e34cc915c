//! Sums over the tables of a partition, so that a search for due compactions need not read every table of the store.

use super::level::Level;
use crate::key::Sequence;

/// See the head of this file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) table_count: usize,
    pub(crate) entry_count: u64,
    /// Of the table files.
    pub(crate) bytes: u64,
    /// Of the newest entry.
    pub(crate) largest_sequence: Sequence,
    /// Whether some table has tombstones, range tombstones, obsolete versions or entries that expire.
    pub(crate) has_garbage: bool,
    /// Whether some table has entries that expire.
    pub(crate) expires: bool,
}

impl Totals {
    pub(super) fn of(levels: &[Level]) -> Self {
        let mut totals = Self::default();
        for table in levels.iter().flat_map(Level::tables) {
            let summary = table.summary();
            totals.table_count += 1;
            totals.entry_count += summary.entry_count;
            totals.bytes += table.file_bytes();
            totals.largest_sequence = totals.largest_sequence.max(summary.largest_sequence);
            totals.has_garbage |= summary.may_have_garbage();
            totals.expires |= summary.expiring_count > 0;
        }
        totals
    }
}
