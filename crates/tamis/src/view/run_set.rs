//! All runs of a view as its cursor reads them: one lane per run, which is moved to entries by their ordinals.
//!
//! Contract: a lane is where it was moved last. A move reads the block of the entry unless the lane is in it. After an error a lane is at
//! no entry, until the next move.

use std::sync::Arc;

use tamis_filter::Direction;

use super::run::{OrdinalCursor, OrdinalRun};
use crate::{cursor::Cursor, error::Result, table::cursor::EntryPart};

/// See the head of this file.
pub(crate) trait RunSet: Send {
    /// The position in a run. A new one is at no entry and has read nothing.
    type Lane: Default + Send;
    /// The entry of a lane: only `key`, `sequence`, `kind` and the values are used.
    type Entry: Cursor;

    fn run_count(&self) -> usize;
    /// Moves the lane of a run to an entry; `false` if the run has fewer entries.
    fn move_to(&self, run: usize, lane: &mut Self::Lane, ordinal: u64) -> Result<bool>;
    /// The entry of a lane; `None` before the first move.
    fn entry(lane: &Self::Lane) -> Option<&Self::Entry>;
    /// Prefetches what a move to this entry will read, unless the lane is near. It may open the table, but reads no block, and counts as no
    /// read.
    fn prefetch(&self, run: usize, lane: &mut Self::Lane, ordinal: u64, part: EntryPart);
    /// Prefetches the entry next to that of the lane.
    fn prefetch_step(lane: &Self::Lane, direction: Direction);
}

/// A lane with any cursor.
pub(crate) struct CursorLane<C> {
    cursor: Option<C>,
    /// The ordinal at which the cursor is.
    ordinal: Option<u64>,
}

impl<C> Default for CursorLane<C> {
    fn default() -> Self {
        Self { cursor: None, ordinal: None }
    }
}

impl<R: OrdinalRun> RunSet for Arc<[R]> {
    type Lane = CursorLane<R::Cursor>;
    type Entry = R::Cursor;

    fn run_count(&self) -> usize {
        self.len()
    }

    fn move_to(&self, run: usize, lane: &mut Self::Lane, ordinal: u64) -> Result<bool> {
        let Some(source) = self.get(run) else { return Ok(false) };
        let cursor = lane.cursor.get_or_insert_with(|| source.cursor());
        match lane.ordinal.take() {
            Some(at) if at == ordinal => {}
            Some(at) if at + 1 == ordinal => cursor.next()?,
            Some(at) if at == ordinal + 1 => cursor.prev()?,
            _ => cursor.seek_ordinal(ordinal)?,
        }
        lane.ordinal = cursor.is_valid().then_some(ordinal);
        Ok(cursor.is_valid())
    }

    fn entry(lane: &Self::Lane) -> Option<&R::Cursor> {
        lane.cursor.as_ref()
    }

    fn prefetch(&self, run: usize, lane: &mut Self::Lane, ordinal: u64, part: EntryPart) {
        if let Some(source) = self.get(run)
            && lane.ordinal.is_none_or(|at| at.abs_diff(ordinal) > 1)
        {
            lane.cursor.get_or_insert_with(|| source.cursor()).prefetch_ordinal(ordinal, part);
        }
    }

    fn prefetch_step(lane: &Self::Lane, direction: Direction) {
        if let Some(cursor) = &lane.cursor {
            cursor.prefetch_step(direction);
        }
    }
}
