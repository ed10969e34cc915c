//! The keys of a part of a view's filters, in order: those that its runs have in its span. Cost: reads their blocks once.

use std::sync::Arc;

use tamis_filter::KeySet;

use super::{cursor::ViewCursor, filters::AskedPart, reader::View, run::OrdinalRun};
use crate::{cursor::Cursor, error::Result, key::SEQUENCE_MAX};

/// Entries between two calls of the check.
const CHECKED_ENTRIES: usize = 4_096;

/// See the head of this file. `runs`: all of the view, in its order. `check` is called every few thousand entries, and its error ends the
/// reading.
pub(crate) fn keys_of<R: OrdinalRun>(
    view: &Arc<View>,
    runs: &Arc<[R]>,
    part: &AskedPart,
    check: &dyn Fn() -> Result<()>,
) -> Result<KeySet> {
    let mut keys = KeySet::new();
    let mut cursor = ViewCursor::new(view, runs)?;
    cursor.seek(&part.first_key, SEQUENCE_MAX)?;
    let mut entry_count = 0_usize;
    while cursor.is_valid() && part.end.as_deref().is_none_or(|end| cursor.key() < end) {
        if entry_count.is_multiple_of(CHECKED_ENTRIES) {
            check()?;
        }
        entry_count += 1;
        let (run, _) = cursor.position();
        if u32::try_from(run).is_ok_and(|run| part.runs.contains(&run)) {
            // Other versions of a key are equal, and skipped. A view has its keys in order.
            let _ = keys.push(cursor.key());
        }
        cursor.next()?;
    }
    Ok(keys)
}
