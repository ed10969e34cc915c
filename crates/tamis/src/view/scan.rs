//! The entries of a view that a reader at a snapshot sees: of each key the newest entry at or below it, without deleted keys. After an operand
//! [`ViewScan::next`] moves to the next older entry of its key.
//!
//! A snapshot at or above the sequence numbers of all runs needs no entry to know which ones are visible: the differences say which
//! entries are old versions, the kinds which keys are deleted. So old versions and tombstones are never read, and keys are counted
//! and skipped without reading any. An older snapshot reads the sequence numbers of the entries of a key.

use std::{ops::Bound, sync::Arc};

use tamis_filter::Direction;

use super::{cursor::ViewCursor, reader::View, run_set::RunSet, search::Place};
use crate::{
    cursor::Cursor,
    error::Result,
    key::{BoundKind, Kind, Sequence},
};

/// See the head of this file. As with cursors, `next`, `prev` and `skip_within` may be called only while it is valid.
pub(crate) struct ViewScan<S: RunSet> {
    cursor: ViewCursor<S>,
    snapshot: Sequence,
    shows_tombstones: bool,
    /// A step within a segment is decided by the segment's masks alone.
    has_short_steps: bool,
}

impl<S: RunSet> ViewScan<S> {
    /// A scan that is not valid.
    pub(crate) fn new(cursor: ViewCursor<S>, snapshot: Sequence) -> Self {
        let has_short_steps = cursor.view().shows_newest_at(snapshot) && !cursor.view().is_mixed();
        Self { cursor, snapshot, shows_tombstones: false, has_short_steps }
    }

    /// Shows the deleted keys, too, by their newest tombstones: for a merge with older sources.
    pub(crate) fn with_tombstones(mut self) -> Self {
        self.shows_tombstones = true;
        self.has_short_steps = false;
        self
    }

    fn view(&self) -> &Arc<View> {
        self.cursor.view()
    }

    /// Whether the snapshot sees the newest entry of each key.
    fn sees_newest(&self) -> bool {
        self.view().shows_newest_at(self.snapshot)
    }

    /// The visible entry; only while it is valid.
    #[inline]
    pub(crate) const fn entry(&self) -> &ViewCursor<S> {
        &self.cursor
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.cursor.is_valid()
    }

    /// See [`ViewCursor::entry_at`].
    pub(crate) fn entry_at(&mut self, position: (usize, u64)) -> Result<(Vec<u8>, Sequence, Kind)> {
        self.cursor.entry_at(position)
    }

    /// From the newest entry of a key on, moves to the first visible entry and reads it.
    fn settle_forward(&mut self) -> Result<()> {
        while self.cursor.is_at_entry() {
            if self.settle_key()? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Moves to the visible entry of the current key and reads it, or to the next key.
    fn settle_key(&mut self) -> Result<bool> {
        if self.sees_newest() {
            if self.shows_tombstones || self.cursor.stored_kind() != Kind::Tombstone {
                self.cursor.load()?;
                return Ok(true);
            }
        } else if !self.cursor.seek_version(self.snapshot)? {
            return Ok(false);
        } else if self.shows_tombstones || self.cursor.kind() != Kind::Tombstone {
            return Ok(true);
        }
        self.cursor.step_key()?;
        Ok(false)
    }

    /// From the last entry of a key on, moves back to the first visible entry and reads it.
    fn settle_backward(&mut self) -> Result<()> {
        loop {
            self.cursor.step_to_newest()?;
            let newest = *self.cursor.place();
            if self.settle_key()? {
                return Ok(());
            }
            self.cursor.move_to(newest);
            if !self.cursor.step_back()? {
                return Ok(());
            }
        }
    }

    pub(crate) fn seek_first(&mut self) -> Result<()> {
        self.cursor.move_to(self.view().start_of(0)?);
        self.settle_forward()
    }

    pub(crate) fn seek_last(&mut self) -> Result<()> {
        self.cursor.move_to(self.view().end());
        if self.cursor.step_back()? { self.settle_backward() } else { Ok(()) }
    }

    /// Moves to the first visible key at or after `key`. Fast near the last place.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.cursor.seek_place(key, Sequence::MAX)?;
        self.settle_forward()
    }

    /// Moves to the last visible key below `key`, or at `key` if it is included.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8], kind: BoundKind) -> Result<()> {
        if self.cursor.seek_place_for_prev(key, kind)? { self.settle_backward() } else { Ok(()) }
    }

    /// Moves to the next visible key in a direction.
    #[inline(always)]
    pub(crate) fn step(&mut self, direction: Direction) -> Result<()> {
        match direction {
            Direction::Forward => self.next(),
            Direction::Backward => self.prev(),
        }
    }

    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<()> {
        if !(self.has_short_steps && self.cursor.step_live_key(Direction::Forward)?) {
            self.next_segment()?;
        }
        self.cursor.prefetch_after_step(Direction::Forward);
        Ok(())
    }

    fn next_segment(&mut self) -> Result<()> {
        if self.cursor.is_valid() && self.cursor.kind() == Kind::Operand {
            self.cursor.step()?;
            let has_older = self.cursor.is_at_entry() && self.cursor.is_old_version();
            return if has_older { self.cursor.load() } else { self.settle_forward() };
        }
        self.cursor.step_key()?;
        self.settle_forward()
    }

    #[inline(always)]
    pub(crate) fn prev(&mut self) -> Result<()> {
        if !(self.has_short_steps && self.cursor.step_live_key(Direction::Backward)?) {
            self.previous_segment()?;
        }
        self.cursor.prefetch_after_step(Direction::Backward);
        Ok(())
    }

    fn previous_segment(&mut self) -> Result<()> {
        self.cursor.step_to_newest()?;
        if self.cursor.step_back()? { self.settle_backward() } else { Ok(()) }
    }

    /// Moves past keys whose entries are all in other runs than `runs` and before `end`, which is a key that is excluded forward and
    /// included backward; without it, to the next entry of `runs`. Only entries near the result are read.
    pub(crate) fn skip_older(
        &mut self,
        runs: &[usize],
        end: Option<&[u8]>,
        direction: Direction,
    ) -> Result<()> {
        match direction {
            Direction::Forward => {
                self.cursor.skip_older(runs, end)?;
                self.settle_forward()
            }
            Direction::Backward if self.cursor.skip_older_backward(runs, end)? => self.settle_backward(),
            Direction::Backward => Ok(()),
        }
    }

    /// Moves forward by up to `count` keys, at most to the last one within an upper bound; returns by how many. Of the keys between, none
    /// is read. By none for a snapshot that does not see the newest entries, with tombstones, or in a mixed view: keys are counted by their newest puts.
    pub(crate) fn skip_within(&mut self, count: u64, upper: Bound<&[u8]>) -> Result<u64> {
        if !self.has_short_steps {
            return Ok(0);
        }
        let view = Arc::clone(self.view());
        let here = view.live_before(self.cursor.place());
        let last = view.live_count().saturating_sub(1);
        let target = here.saturating_add(count).min(last);
        self.move_to_live(target)?;
        let is_within = match upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => self.cursor.key() <= upper,
            Bound::Excluded(upper) => self.cursor.key() < upper,
        };
        if is_within {
            return Ok(target - here);
        }
        let end = self.place_behind(upper)?;
        let target = view.live_before(&end).saturating_sub(1).max(here);
        self.move_to_live(target)?;
        Ok(target - here)
    }

    /// Moves to the n-th key whose newest entry is a put, and reads this entry.
    fn move_to_live(&mut self, number: u64) -> Result<()> {
        self.cursor.move_to(self.view().live_place(number)?);
        self.cursor.load()
    }

    /// The place of the first key behind an upper bound.
    fn place_behind(&mut self, upper: Bound<&[u8]>) -> Result<Place> {
        let (key, skips_equal) = match upper {
            Bound::Unbounded => return Ok(self.view().end()),
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
        };
        let (place, is_equal) = self.cursor.find(key)?;
        self.cursor.move_to(place);
        if is_equal && skips_equal {
            self.cursor.step_key()?;
        }
        Ok(*self.cursor.place())
    }
}
