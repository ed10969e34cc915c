//! The entries of several runs in view order, with the run of each: the input of a view.
//!
//! Unlike [`crate::cursor::merge`], which hides where an entry is from, and which is above views. Cost: log2 of the run
//! count comparisons for each entry.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BinaryHeap, binary_heap::PeekMut},
};

use crate::{cursor::Cursor, error::Result, key::compare_entries};

/// A run's cursor, which is valid. Ordered by its entry, then by run.
struct Lane<C> {
    run: usize,
    cursor: C,
}

impl<C: Cursor> Ord for Lane<C> {
    fn cmp(&self, other: &Self) -> Ordering {
        let (left, right) = (&self.cursor, &other.cursor);
        let order = compare_entries((left.key(), left.sequence()), (right.key(), right.sequence()));
        order.then(self.run.cmp(&other.run))
    }
}

impl<C: Cursor> PartialOrd for Lane<C> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<C: Cursor> PartialEq for Lane<C> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<C: Cursor> Eq for Lane<C> {}

/// See the head of this file.
pub(super) struct EntryHeap<C: Cursor> {
    lanes: BinaryHeap<Reverse<Lane<C>>>,
}

impl<C: Cursor> EntryHeap<C> {
    /// Moves all cursors to their first entries.
    pub(super) fn new(cursors: impl Iterator<Item = (usize, C)>) -> Result<Self> {
        let mut lanes = BinaryHeap::new();
        for (run, mut cursor) in cursors {
            cursor.seek_first()?;
            if cursor.is_valid() {
                lanes.push(Reverse(Lane { run, cursor }));
            }
        }
        Ok(Self { lanes })
    }

    /// The run of the next entry, and its cursor.
    pub(super) fn peek(&self) -> Option<(usize, &C)> {
        self.lanes.peek().map(|Reverse(lane)| (lane.run, &lane.cursor))
    }

    /// Moves to the entry after the next one.
    pub(super) fn advance(&mut self) -> Result<()> {
        let Some(mut top) = self.lanes.peek_mut() else { return Ok(()) };
        top.0.cursor.next()?;
        if !top.0.cursor.is_valid() {
            PeekMut::pop(top);
        }
        Ok(())
    }
}
