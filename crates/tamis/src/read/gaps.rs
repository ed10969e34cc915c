//! Records the gap of a table in which a false positive of its filters was found ([`crate::table::gap_cache`]).

use std::{ops::Bound, sync::Arc};

use crate::{
    cache::table::TableCache, cursor::Cursor, error::Result, table::reader::TableReader,
    version::handle::Table,
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
