//! The cursor of one end of a scan, which may touch several partitions.
//!
//! Partitions are disjoint and in key order, so a scan reads one after the other: it merges the memtables with the runs, or the sorted view,
//! of one partition at a time. A seek costs what it costs in a store of this partition alone, however many partitions there are, and a
//! partition that the scan does not reach is not read.
//!
//! The inputs of the current partition are kept until the scan leaves it. The memtables are searched again at each bound.

use std::{ops::Range, sync::Arc};

use super::{
    either::{either, forward_to_either},
    scan_cursor::ScanCursor,
    scan_source::ScanSource,
    seek_answers::Visible,
};
use crate::{error::Result, slice::Slice};

/// See the head of this file. The contract of [`crate::cursor`] applies to the visible entries of the scan's range.
#[expect(clippy::large_enum_variant, reason = "a scan has at most two; most touch one partition")]
pub(super) enum RangeCursor {
    /// The range is in one partition.
    One(ScanCursor),
    Several(Box<PartitionWalk>),
}

forward_to_either!(RangeCursor: One, Several);

impl RangeCursor {
    /// A cursor that is not valid. Nothing is read; in one partition, nothing but filters and views, once per scan.
    pub(super) fn new(source: &Arc<ScanSource>) -> Self {
        match source.several_partitions() {
            None => Self::One(ScanCursor::new(source)),
            Some(positions) => {
                source.select_nothing();
                Self::Several(Box::new(PartitionWalk::new(Arc::clone(source), positions)))
            }
        }
    }

    /// The inputs of the current partition, if the scan touches several.
    fn partition(&self) -> Option<&ScanSource> {
        match self {
            Self::One(_) => None,
            Self::Several(walk) => walk.current.as_ref().map(|current| &*current.source),
        }
    }

    /// The partition of the entry, if there are several, and the merge that made the last movement, if it was not a view.
    pub(super) fn sources(&self) -> (Option<&ScanSource>, Option<&Visible>) {
        (self.partition(), self.merge())
    }

    /// The current key, if there is one.
    pub(super) fn found(&self) -> Option<&[u8]> {
        self.is_valid().then(|| self.key())
    }

    /// Moves to the last entry of the range at or before `key`.
    pub(super) fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        either!(self, One | Several, cursor => cursor.seek_for_prev(key))
    }

    /// As [`ScanCursor::skip`], within the current partition.
    pub(super) fn skip(&mut self, count: u64) -> Result<u64> {
        either!(self, One | Several, cursor => cursor.skip(count))
    }

    /// The merge, if it made the last movement.
    #[inline]
    pub(super) fn merge(&self) -> Option<&Visible> {
        either!(self, One | Several, cursor => cursor.merge())
    }
}

/// The cursor of a scan of several partitions.
pub(super) struct PartitionWalk {
    scan: Arc<ScanSource>,
    /// The partitions that the range touches.
    positions: Range<usize>,
    current: Option<Current>,
}

/// A partition with its cursor.
struct Current {
    position: usize,
    source: Arc<ScanSource>,
    cursor: ScanCursor,
}

impl PartitionWalk {
    const fn new(scan: Arc<ScanSource>, positions: Range<usize>) -> Self {
        Self { scan, positions, current: None }
    }

    /// The cursor of a partition.
    fn enter(&mut self, position: usize) -> &mut ScanCursor {
        if self.current.as_ref().is_none_or(|current| current.position != position) {
            let source = Arc::new(ScanSource::of_partition(&self.scan, &self.positions, position));
            self.current = Some(Current { position, cursor: ScanCursor::new(&source), source });
        }
        &mut self.current.as_mut().expect("the partition was entered").cursor
    }

    /// The partition of a key, or the first or last one of the scan.
    fn position_of(&self, key: &[u8]) -> usize {
        let position = self.scan.read_state().version.partition_index(key);
        position.clamp(self.positions.start, self.positions.end - 1)
    }

    fn seek_first(&mut self) -> Result<()> {
        self.enter(self.positions.start).seek_first()?;
        self.leave_forward()
    }

    fn seek_last(&mut self) -> Result<()> {
        self.enter(self.positions.end - 1).seek_last()?;
        self.leave_backward()
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.enter(self.position_of(key)).seek(key)?;
        self.leave_forward()
    }

    fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.enter(self.position_of(key)).seek_for_prev(key)?;
        self.leave_backward()
    }

    fn skip(&mut self, count: u64) -> Result<u64> {
        self.current.as_mut().map_or(Ok(0), |current| current.cursor.skip(count))
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if let Some(current) = &mut self.current {
            current.cursor.next()?;
        }
        if self.is_valid() { Ok(()) } else { self.leave_forward() }
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if let Some(current) = &mut self.current {
            current.cursor.prev()?;
        }
        if self.is_valid() { Ok(()) } else { self.leave_backward() }
    }

    /// Moves to the first entry of the next partition that has one, if the current one has no more.
    fn leave_forward(&mut self) -> Result<()> {
        while let Some(position) = self.exhausted() {
            if position + 1 >= self.positions.end {
                break;
            }
            self.note_passed();
            self.enter(position + 1).seek_first()?;
        }
        Ok(())
    }

    /// As [`PartitionWalk::leave_forward`], backward.
    fn leave_backward(&mut self) -> Result<()> {
        while let Some(position) = self.exhausted() {
            if position <= self.positions.start {
                break;
            }
            self.note_passed();
            self.enter(position - 1).seek_last()?;
        }
        Ok(())
    }

    /// The current partition, if its cursor has no entry.
    fn exhausted(&self) -> Option<usize> {
        self.current.as_ref().filter(|current| !current.cursor.is_valid()).map(|current| current.position)
    }

    /// Records the deleted keys before the end of the partition.
    fn note_passed(&self) {
        if let Some(merge) = self.merge() {
            self.scan.note_step(merge);
        }
    }

    /// The cursor of the current partition, if it is at an entry.
    #[inline]
    fn entry(&self) -> Option<&ScanCursor> {
        self.current.as_ref().map(|current| &current.cursor).filter(|cursor| cursor.is_valid())
    }

    #[inline]
    fn is_valid(&self) -> bool {
        self.entry().is_some()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.entry().map_or(&[], |cursor| cursor.key())
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.entry().map_or(&[], |cursor| cursor.value())
    }

    fn value_slice(&self) -> Slice {
        self.entry().map_or_else(|| Slice::from(b"".as_slice()), |cursor| cursor.value_slice())
    }

    /// The merge, if it made the last movement.
    #[inline]
    fn merge(&self) -> Option<&Visible> {
        self.current.as_ref().and_then(|current| current.cursor.merge())
    }
}
