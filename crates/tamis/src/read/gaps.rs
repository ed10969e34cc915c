//! Records the gap of a table, or of a sorted view, in which a false positive of its filters was found ([`crate::table::gap_cache`]).

use std::{ops::Bound, sync::Arc};

use crate::{
    cache::table::TableCache,
    cursor::{
        Cursor, bounded,
        run_tables::ScanContext,
        view_runs::{ViewLane, ViewRuns},
    },
    error::Result,
    table::reader::TableReader,
    version::{bound_view::BoundView, handle::Table},
    view::cursor::ViewCursor,
};

/// Records the gap that begins before `lower`, or at it if it is excluded, after a query from there on that found nothing. Of a
/// point only a gap within one block is recorded: the point read has read no other block.
///
/// An error is ignored: the gap is only not known then.
#[cold]
pub(super) fn record_gap(table: &Table, tables: &TableCache, lower: Bound<&[u8]>, is_point: bool) {
    let budget = tables.gap_budget();
    if table.gaps().should_record(budget)
        && let Ok(reader) = tables.reader(table)
        && let Ok(Some((predecessor, successor))) = gap_at(reader, lower, is_point)
    {
        table.gaps().record(budget, &predecessor, &successor);
        if is_point {
            table.gaps().expect_points();
        }
    }
}

/// Records the gap of a view that begins before the lower bound of a range, or at it if it is excluded, after the view showed no key of the
/// range. Returns whether the view has one nevertheless: a deleted key, or one that is newer than the snapshot. That is looked up also if
/// the gap is not recorded, if it `is_counted`. `scan`: with the number of the view's first run.
///
/// An error is ignored: the gap is only not known then.
#[cold]
pub(super) fn record_gap_of_view(
    bound: &BoundView,
    (scan, first_run): (Arc<dyn ScanContext>, usize),
    range: &bounded::KeyRange,
    is_counted: bool,
) -> bool {
    let (budget, gaps) = (Arc::clone(scan.tables().gap_budget()), bound.named.gaps());
    let is_recorded = gaps.should_record(&budget);
    if !is_recorded && !is_counted {
        return false;
    }
    let runs = ViewRuns::new(scan, first_run, bound.view.runs().len());
    let mut cursor = ViewCursor::over_named(&bound.view, runs);
    let neighbours = neighbours(&mut cursor, range);
    cursor.lanes_mut().for_each(ViewLane::discard_hits);
    let Ok((predecessor, successor)) = neighbours else { return false };
    if successor.as_ref().is_some_and(|key| !range.is_above(key)) {
        return true;
    }
    if is_recorded && let Some((predecessor, successor)) = predecessor.zip(successor) {
        gaps.record(&budget, &predecessor, &successor);
    }
    false
}

/// The last key before a range, and the first one in or after it.
type Neighbours = (Option<Vec<u8>>, Option<Vec<u8>>);

fn neighbours(cursor: &mut impl Cursor, range: &bounded::KeyRange) -> Result<Neighbours> {
    match &range.lower {
        Bound::Unbounded => return Ok((None, None)),
        Bound::Included(lower) => cursor.seek_for_prev(lower, false)?,
        Bound::Excluded(lower) => cursor.seek_for_prev(lower, true)?,
    }
    let predecessor = cursor.is_valid().then(|| cursor.key().to_vec());
    if cursor.is_valid() {
        cursor.next()?
    } else {
        cursor.seek_first()?
    }
    Ok((predecessor, cursor.is_valid().then(|| cursor.key().to_vec())))
}

/// The keys of the entries before and after a bound, of any version; `None` if one of them does not exist, or is the bound.
fn gap_at(
    reader: &Arc<TableReader>,
    lower: Bound<&[u8]>,
    is_within_block: bool,
) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let (key, is_excluded) = match lower {
        Bound::Unbounded => return Ok(None),
        Bound::Included(key) => (key, false),
        Bound::Excluded(key) => (key, true),
    };
    let mut cursor = reader.cursor();
    cursor.seek_for_prev(key, is_excluded)?;
    cursor.discard_hits();
    if !cursor.is_valid() || (is_within_block && !cursor.has_next_in_block()) {
        return Ok(None);
    }
    let predecessor = cursor.key().to_vec();
    cursor.next()?;
    cursor.discard_hits();
    let is_gap = cursor.is_valid() && (is_excluded || cursor.key() != key);
    Ok(is_gap.then(|| (predecessor, cursor.key().to_vec())))
}
