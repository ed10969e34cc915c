//! The runs of a sorted view in a scan: tables are opened when a lane first reaches them.

use std::{ops::Range, sync::Arc};

use tamis_filter::Direction;

use super::{
    Cursor as _,
    run_tables::{ScanContext, cursor_of_scan},
};
use crate::{
    error::Result,
    table::cursor::{EntryPart, TableCursor},
    view::{run::entry_at, run_set::RunSet},
};

/// See the head of this file.
pub(crate) struct ViewRuns {
    scan: Arc<dyn ScanContext>,
    /// The number of the view's first run in the scan; the others follow.
    first_run: usize,
    run_count: usize,
}

impl ViewRuns {
    pub(crate) fn new(scan: Arc<dyn ScanContext>, first_run: usize, run_count: usize) -> Self {
        Self { scan, first_run, run_count }
    }

    /// Moves a lane to the table of an entry; `None` past the last one.
    fn enter_table<'l>(
        &self,
        run: usize,
        lane: &'l mut ViewLane,
        ordinal: u64,
    ) -> Result<Option<&'l mut TableCursor>> {
        let run_index = self.first_run + run;
        let run = self.scan.run(run_index);
        let before = run.entries_before();
        let (table_index, _) = entry_at(before, ordinal);
        let (Some(table), Some(&[start, end])) =
            (run.tables().get(table_index), before.get(table_index..).and_then(<[u64]>::first_chunk))
        else {
            return Ok(None);
        };
        let reader = self.scan.tables().reader(table)?;
        lane.ordinals = start..end;
        match &mut lane.cursor {
            Some(cursor) => cursor.change_table(reader),
            none => *none = Some(Box::new(cursor_of_scan(&self.scan, run_index, reader))),
        }
        Ok(lane.cursor.as_deref_mut())
    }

    #[inline(never)]
    fn move_to_other_table(&self, run: usize, lane: &mut ViewLane, ordinal: u64) -> Result<bool> {
        if self.enter_table(run, lane, ordinal)?.is_none() {
            return Ok(false);
        }
        lane.seek(ordinal)
    }
}

/// The place in a run.
#[derive(Default)]
pub(crate) struct ViewLane {
    /// Boxed: most scans use few lanes, and a list of large ones would not fit what allocators cache per thread.
    cursor: Option<Box<TableCursor>>,
    /// The ordinals of the entries of its table.
    ordinals: Range<u64>,
}

impl ViewLane {
    /// Moves to an entry of the open table.
    #[inline]
    fn seek(&mut self, ordinal: u64) -> Result<bool> {
        let Some(cursor) = &mut self.cursor else { return Ok(false) };
        cursor.seek_number(ordinal - self.ordinals.start)?;
        Ok(cursor.is_valid())
    }
}

impl RunSet for ViewRuns {
    type Lane = ViewLane;
    type Entry = TableCursor;

    fn run_count(&self) -> usize {
        self.run_count
    }

    #[inline]
    fn move_to(&self, run: usize, lane: &mut ViewLane, ordinal: u64) -> Result<bool> {
        if lane.ordinals.contains(&ordinal) {
            return lane.seek(ordinal);
        }
        self.move_to_other_table(run, lane, ordinal)
    }

    #[inline]
    fn entry(lane: &ViewLane) -> Option<&TableCursor> {
        lane.cursor.as_deref()
    }

    fn prefetch(&self, run: usize, lane: &mut ViewLane, ordinal: u64, part: EntryPart) {
        if !lane.ordinals.contains(&ordinal) && !matches!(self.enter_table(run, lane, ordinal), Ok(Some(_))) {
            return;
        }
        let number = ordinal - lane.ordinals.start;
        if let Some(cursor) = &mut lane.cursor {
            cursor.prefetch_number(number, part);
        }
    }

    #[inline]
    fn prefetch_step(_: &ViewLane, _: Direction) {
        // A move within a block has prefetched it.
    }
}
