//! The cursor of one end of a scan: the partitions that its range touches, one after the other.
//!
//! Partitions are disjoint and in key order, so a scan merges the memtables with the runs and the sorted view of one partition at a
//! time. A seek costs what it costs in a store of this partition alone, however many partitions there are, and a partition that the scan does
//! not reach is not read.
//!
//! The inputs of the current partition are kept until the scan leaves it. The memtables are searched again at each bound.

use std::{ops::Range, sync::Arc};

use tamis_filter::Direction;

use super::scan_source::{ScanSource, Visible};
use crate::{cursor::stretch::Stretch, error::Result, key::BoundKind, slice::Slice};

/// See the head of this file. The contract of [`crate::cursor`] applies to the visible entries of the scan's range.
pub(super) struct RangeCursor {
    scan: Arc<ScanSource>,
    /// The partitions that the range touches.
    positions: Range<usize>,
    current: Option<Current>,
}

/// A partition with its cursor.
struct Current {
    position: usize,
    source: Arc<ScanSource>,
    cursor: Visible,
}

impl RangeCursor {
    /// A cursor that is not valid. Nothing is read.
    pub(super) fn new(scan: &Arc<ScanSource>) -> Self {
        Self { scan: Arc::clone(scan), positions: scan.partitions(), current: None }
    }

    /// The cursor of a partition. Of a new one nothing is read but filters and views.
    fn enter(&mut self, position: usize) -> &mut Visible {
        if self.current.as_ref().is_none_or(|current| current.position != position) {
            let source = ScanSource::of_partition(&self.scan, position);
            self.current = Some(Current { position, cursor: source.merged_cursor(), source });
        }
        &mut self.current.as_mut().expect("the partition was entered").cursor
    }

    /// The partition of a key, or the first or last one of the scan.
    fn position_of(&self, key: &[u8]) -> usize {
        if self.positions.len() == 1 {
            return self.positions.start;
        }
        let position = self.scan.read_state().version.partition_index(key);
        position.clamp(self.positions.start, self.positions.end - 1)
    }

    /// Moves to the first entry of the range.
    pub(super) fn seek_first(&mut self) -> Result<()> {
        self.enter(self.positions.start).seek_first()?;
        self.leave_forward()
    }

    /// Moves to the last entry of the range.
    pub(super) fn seek_last(&mut self) -> Result<()> {
        self.enter(self.positions.end - 1).seek_last()?;
        self.leave_backward()
    }

    /// Moves to the first entry of the range at or after `key`.
    pub(super) fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.enter(self.position_of(key)).seek(key)?;
        self.leave_forward()
    }

    /// Moves to the last entry of the range at or before `key`.
    pub(super) fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.enter(self.position_of(key)).seek_for_prev(key, BoundKind::Included)?;
        self.leave_backward()
    }

    /// As [`Visible::skip`], within the current partition.
    pub(super) fn skip(&mut self, count: u64) -> Result<u64> {
        self.current.as_mut().map_or(Ok(0), |current| current.cursor.skip(count))
    }

    #[inline]
    pub(super) fn next(&mut self) -> Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        current.cursor.next()?;
        if current.cursor.is_valid() { Ok(()) } else { self.leave_forward() }
    }

    #[inline]
    pub(super) fn prev(&mut self) -> Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        current.cursor.prev()?;
        if current.cursor.is_valid() { Ok(()) } else { self.leave_backward() }
    }

    /// As [`Visible::lend`].
    pub(super) fn lend(&mut self, direction: Direction) -> Option<Stretch> {
        self.current.as_mut()?.cursor.lend(direction)
    }

    /// As [`Visible::give_back`].
    pub(super) fn give_back(&mut self, stretch: Stretch) -> Result<()> {
        self.current.as_mut().map_or(Ok(()), |current| current.cursor.give_back(stretch))
    }

    /// As [`Visible::leave`], to the next entry of the range.
    pub(super) fn leave(&mut self, stretch: Stretch, direction: Direction) -> Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        current.cursor.leave(stretch)?;
        match direction {
            Direction::Forward => self.leave_forward(),
            Direction::Backward => self.leave_backward(),
        }
    }

    /// Moves to the first entry of the next partition that has one, if the current one has no more.
    fn leave_forward(&mut self) -> Result<()> {
        while let Some(position) = self.exhausted() {
            if position + 1 >= self.positions.end {
                break;
            }
            self.note_step();
            self.enter(position + 1).seek_first()?;
        }
        Ok(())
    }

    /// As [`RangeCursor::leave_forward`], backward.
    fn leave_backward(&mut self) -> Result<()> {
        while let Some(position) = self.exhausted() {
            if position <= self.positions.start {
                break;
            }
            self.note_step();
            self.enter(position - 1).seek_last()?;
        }
        Ok(())
    }

    /// The current partition, if its cursor has no entry.
    fn exhausted(&self) -> Option<usize> {
        self.current.as_ref().filter(|current| !current.cursor.is_valid()).map(|current| current.position)
    }

    /// Lets the scan record the deleted keys that the last movement has passed.
    #[inline]
    pub(super) fn note_step(&self) {
        if let Some(current) = &self.current {
            self.scan.note_step(&current.cursor);
        }
    }

    /// The inputs and the cursor of the current partition.
    pub(super) fn partition(&self) -> Option<(&ScanSource, &Visible)> {
        self.current.as_ref().map(|current| (&*current.source, &current.cursor))
    }

    /// The current key, if there is one.
    pub(super) fn found(&self) -> Option<&[u8]> {
        self.is_valid().then(|| self.key())
    }

    #[inline]
    pub(super) fn is_valid(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.cursor.is_valid())
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |current| current.cursor.key())
    }

    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |current| current.cursor.value())
    }

    /// The value as an owned slice.
    pub(super) fn value_slice(&self) -> Slice {
        self.current
            .as_ref()
            .map_or_else(|| Slice::from(b"".as_slice()), |current| current.cursor.value_slice())
    }
}
