//! Selects the runs and tables that a scan reads.
//!
//! A filter can reject only absent keys, and a table's smallest and largest keys are known without it. So the filter of a table is
//! checked only if the whole range is strictly between these two keys; the table is then the only one of its run in the range.
//! All tables of a scan share one [`RangeProbe`], and both directions share one result. A rejected table's file is opened, but
//! none of its blocks is read. Filters hold the keys of tombstones too (see `table/filter_block.rs`), so a rejected table hides
//! nothing.

use std::{ops::Range, sync::Arc};

use tamis_filter::{RangeProbe, auto::QueryKind};

use super::scan_query::ScanQuery;
use crate::{
    cache::table::TableCache,
    cursor::bounded::KeyRange,
    table::{filter_set::FilterQuery, reader::TableReader},
    version::{handle::Table, key_bounds::KeyBounds, level::Run},
};

/// The tables of a run that a scan reads.
pub(crate) struct SelectedRun {
    pub(crate) run: Arc<Run>,
    /// Its position among all runs that the scan's range touches, the newest first.
    pub(crate) rank: usize,
    /// Their positions in the run.
    pub(crate) tables: Range<usize>,
    pub(crate) level: usize,
    /// A filter was checked: the scan counts whether its answer was a false positive.
    pub(crate) is_checked: bool,
    /// The answer counts for the rate of the table's filters, of which none is evicted: the scan adds whether it was a true positive.
    pub(crate) is_tallied: bool,
    /// No filter of the table can reject ranges. The scan counts for the table whether it has a key of the range, because range
    /// filters may be due.
    pub(crate) lacks_filter: bool,
}

/// See the head of this file.
pub(crate) struct RunSelector<'a, 'p> {
    pub(crate) tables: &'a TableCache,
    pub(crate) range: &'a KeyRange,
    pub(crate) probe: &'a RangeProbe<'p>,
    pub(super) query: &'a ScanQuery,
}

impl RunSelector<'_, '_> {
    /// The tables of a run within the range; `None` if none of them can contain a key of it.
    #[inline(always)]
    pub(crate) fn select(
        &self,
        rank: usize,
        level: usize,
        run: &Arc<Run>,
        bounds: KeyBounds<'_>,
    ) -> Option<SelectedRun> {
        let (mut is_checked, mut is_tallied, mut lacks_filter) = (false, false, false);
        let tables = run.range_within(bounds);
        match run.tables().get(tables.clone()).unwrap_or_default() {
            [] => return None,
            // A table that can't be opened reports its error when it is read.
            [table]
                if self.range.is_below(table.smallest_key()) && self.range.is_above(table.largest_key()) =>
            {
                let reader = self.tables.reader(table);
                if let Ok(reader) = &reader
                    && !self.has_usable_filter(reader)
                {
                    lacks_filter = self.tallied_kind().is_some();
                    is_tallied = true;
                    self.tally_admitted(table);
                } else if let Ok(reader) = reader {
                    let counters = self.tables.metrics().reads(self.query.place(level));
                    if !reader.may_contain_range(self.probe) {
                        counters.inspect(|reads| reads.rejected.add(1));
                        self.tally_rejected(table);
                        return None;
                    }
                    is_tallied = self.are_filters_asked(reader);
                    if is_tallied {
                        counters.inspect(|reads| reads.admitted.add(1));
                        self.tally_admitted(table);
                    }
                    is_checked = true;
                }
            }
            _ => {}
        }
        Some(SelectedRun { run: Arc::clone(run), rank, tables, level, is_checked, is_tallied, lacks_filter })
    }

    /// The kind of the query, and the weight with which tables count it; `None` if they do not.
    fn tallied_kind(&self) -> Option<(QueryKind, u32)> {
        let weight = self.query.tally_weight();
        self.query.kind().filter(|_| weight > 0).map(|kind| (kind, weight))
    }

    /// Whether the answer of these filters counts: none of them is evicted.
    fn are_filters_asked(&self, reader: &TableReader) -> bool {
        let query = if self.probe.point().is_some() { FilterQuery::OneKey } else { FilterQuery::Range };
        reader.are_filters_asked(query)
    }

    fn tally_rejected(&self, table: &Table) {
        self.query.add_rejected();
        if let Some((kind, weight)) = self.tallied_kind() {
            table.filter_tally().of(kind).add_rejected(weight);
        }
    }

    fn tally_admitted(&self, table: &Table) {
        if let Some((kind, weight)) = self.tallied_kind() {
            table.filter_tally().of(kind).add_admitted(weight);
        }
    }

    /// Whether a filter of the table can reject the range; a point filter can only if the range is one key.
    fn has_usable_filter(&self, reader: &TableReader) -> bool {
        reader.has_range_filter() || (reader.has_filter() && self.probe.point().is_some())
    }
}
