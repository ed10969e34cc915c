//! Which tables take part in a scan.
//!
//! A filter can deny only what is not there, and a table's least and greatest keys are known without it. So a table is
//! asked only where the whole range lies strictly between them; then it is the only table of its run in the range. All
//! tables of a scan share one [`RangeProbe`], both directions share one answer, and a denied table's file is opened but none
//! of its blocks is read. Tombstones are keys like all others (see `table/filter_block.rs`): what is denied hides nothing.

use std::{ops::Range, sync::Arc};

use tamis_filter::RangeProbe;

use crate::{
    cache::table::TableCache,
    cursor::bounded::KeyRange,
    table::reader::TableReader,
    version::{handle::Table, key_bounds::KeyBounds, level::Run},
};

/// The tables of a run that take part.
pub(crate) struct SelectedRun {
    pub(crate) run: Arc<Run>,
    /// Its position among all runs that the scan's range touches, the newest first.
    pub(crate) rank: usize,
    /// Their positions in the run.
    pub(crate) tables: Range<usize>,
    /// The level, where a filter was asked and whether it was right is to be found out.
    pub(crate) checked_level: Option<usize>,
}

/// What is asked, for one scan.
pub(crate) struct RunSelector<'a> {
    pub(crate) tables: &'a TableCache,
    pub(crate) range: &'a KeyRange,
    pub(crate) probe: &'a RangeProbe<'a>,
}

impl RunSelector<'_> {
    /// The tables of a run within the range; `None` where none of them can hold a key of it.
    pub(crate) fn select(
        &self,
        rank: usize,
        level: usize,
        run: &Arc<Run>,
        bounds: KeyBounds<'_>,
    ) -> Option<SelectedRun> {
        let mut checked_level = None;
        let tables = run.range_within(bounds);
        match run.tables().get(tables.clone()).unwrap_or_default() {
            [] => return None,
            // A table that can't be opened says so when it is read.
            [table] if self.is_inside(table) => {
                if let Ok(reader) = self.tables.reader(table)
                    && self.is_answerable(&reader)
                {
                    let counters = self.tables.metrics().filters.get(level);
                    counters.inspect(|level| level.range_checked.add(1));
                    if !reader.may_contain_range(self.probe) {
                        counters.inspect(|level| level.range_negative.add(1));
                        return None;
                    }
                    checked_level = Some(level);
                }
            }
            _ => {}
        }
        Some(SelectedRun { run: Arc::clone(run), rank, tables, checked_level })
    }

    /// Whether the range lies between the ends of a table without touching them.
    fn is_inside(&self, table: &Table) -> bool {
        self.range.is_below(table.smallest_key()) && self.range.is_above(table.largest_key())
    }

    /// Whether a filter of the table can say anything: point filters only of a range of one key.
    fn is_answerable(&self, reader: &TableReader) -> bool {
        reader.has_range_filter() || (reader.has_filter() && self.probe.point().is_some())
    }
}
