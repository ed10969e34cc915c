//! A stretch: entries of one source that a scan returns one after another, without asking the merge.
//!
//! Between two entries of a stretch nothing can come, and all of them are visible: no other source has an entry before its end, the
//! range and the keys that no range tombstone covers reach at least to its end, and the source is one of these:
//!
//! - A run, within a plain block of which the snapshot sees all (`docs/format/table.md`). How many entries are before the end is
//!   computed once.
//! - A sorted view, which knows the visible entries. Each step compares the key with the end.
//!
//! The merge lends the cursor of its least lane to the scan ([`super::merge`]), and gets it back when the stretch ends, when the scan
//! changes its direction, or when it seeks.
//!
//! ```text
//! block of the least lane   [ c  e | f  h  k  m | p  s ]      current entry e, range ..p
//! next key of the others                          n           stretch: f h k m
//! ```

use std::ops::Bound;

use tamis_filter::Direction;

use crate::{
    cursor::{Cursor as _, bounded::is_before, view_source::ViewSource},
    error::Result,
    key::Kind,
    slice::Slice,
    table::cursor::TableCursor,
};

/// A step of a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// At the next entry.
    Moved,
    /// The stretch has ended; the cursor has not moved.
    Ended,
    /// The stretch has ended; its cursor has moved behind its end.
    Left,
}

/// A cursor that its lane lends.
pub(super) enum Lent {
    /// The open table of a run, with its position there.
    Table(usize, Box<TableCursor>),
    View(Box<ViewSource>),
}

/// See the head of this file.
pub(crate) struct Stretch {
    direction: Direction,
    entries: Entries,
}

enum Entries {
    Block {
        table_index: usize,
        cursor: Box<TableCursor>,
        /// The entries after the current one.
        left: usize,
    },
    View {
        source: Box<ViewSource>,
        end: Bound<Vec<u8>>,
    },
}

impl Stretch {
    /// The entries that follow the current one of a cursor before an end; the cursor, if it is known that there are none.
    pub(super) fn new(lent: Lent, direction: Direction, end: Bound<&[u8]>) -> Result<Self, Lent> {
        let entries = match lent {
            Lent::View(source) => Entries::View { source, end: end.map(<[u8]>::to_vec) },
            Lent::Table(table_index, mut cursor) => match cursor.entries_before(end, direction) {
                // A malformed block is reported by the step that reaches it.
                Ok(0) | Err(_) => return Err(Lent::Table(table_index, cursor)),
                Ok(left) => {
                    cursor.prefetch_behind(direction);
                    Entries::Block { table_index, cursor, left }
                }
            },
        };
        Ok(Self { direction, entries })
    }

    /// Moves to the next entry in a direction.
    ///
    /// # Errors
    /// Those of the cursor.
    #[inline]
    pub(crate) fn step(&mut self, direction: Direction) -> Result<Step> {
        if direction != self.direction {
            return Ok(Step::Ended);
        }
        match &mut self.entries {
            Entries::Block { left: 0, .. } => Ok(Step::Ended),
            Entries::Block { cursor, left, .. } => {
                *left -= 1;
                cursor.step_within(direction)?;
                Ok(Step::Moved)
            }
            Entries::View { source, end } => {
                source.step(direction)?;
                let end = end.as_ref().map(Vec::as_slice);
                // A damaged view is replaced by all versions of its runs.
                let is_within = source.is_valid()
                    && source.shows_visible()
                    && source.kind() == Kind::Put
                    && (end == Bound::Unbounded || is_before(source.key(), end, direction));
                Ok(if is_within { Step::Moved } else { Step::Left })
            }
        }
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match &self.entries {
            Entries::Block { cursor, .. } => cursor.key(),
            Entries::View { source, .. } => source.key(),
        }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        match &self.entries {
            Entries::Block { cursor, .. } => cursor.value(),
            Entries::View { source, .. } => source.value(),
        }
    }

    pub(crate) fn value_slice(&self) -> Slice {
        match &self.entries {
            Entries::Block { cursor, .. } => cursor.value_slice(),
            Entries::View { source, .. } => source.value_slice(),
        }
    }

    /// The cursor, for its lane, and the error of a malformed block; then it is not valid.
    pub(super) fn end(self) -> (Lent, Result<()>) {
        match self.entries {
            Entries::Block { table_index, mut cursor, .. } => {
                let result = cursor.end_stretch();
                (Lent::Table(table_index, cursor), result)
            }
            Entries::View { source, .. } => (Lent::View(source), Ok(())),
        }
    }
}
