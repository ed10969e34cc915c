//! Counts for each table how its filters answered an open seek.
//!
//! A seek needs the table that has the key that it returns. The filters of another table answer rightly if they let the seek do without
//! a read of it: they deny any key from the sought one on, or name a candidate that the merge does not reach. A table that was read and
//! has another key next is a false positive; so a table whose filters name no candidates has one in each seek that returns the key of
//! another table.
//!
//! A seek backward also steps past the entry that it returns, to know that the key has no older version. Tables that this step reads count
//! as read.
//!
//! Tables that begin after the sought key (backward: end before it) are not counted: their smallest keys are known without a filter.

use tamis_filter::auto::QueryKind;

use crate::cursor::{merge::MergeCursor, source::Source, visible::VisibleCursor};

/// The visible entries of a scan that merges its sources.
pub(super) type Visible = VisibleCursor<MergeCursor<Source>>;

/// Counts a seek to `sought`, which a merge has just executed, for `weight` seeks.
pub(super) fn count_seek(kind: QueryKind, sought: &[u8], merge: &Visible, weight: u32) {
    for lane in merge.source().sought() {
        let Some(table) = lane.cursor.open_table() else { continue };
        if sought < table.smallest_key() || table.largest_key() < sought {
            continue;
        }
        let answers = table.filter_tally().of(kind);
        if lane.is_read {
            answers.add_admitted(weight);
            answers.add_outcome(lane.was_found, weight);
        } else {
            answers.add_denied(weight);
        }
    }
}
