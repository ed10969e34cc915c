//! Records whether a filter that admitted a range was right: a true positive or a false positive.
//!
//! The first seek of the scan shows it. If the cursor is at a key of the range, the filter was right. If a seek from an end
//! of the range leaves it, there is no such key. A seek to a key within the range that finds nothing decides nothing, unless the key is
//! the candidate with which the filter replaced that end. A table that the scan does not reach stays undecided: its filter cost no read.

use std::{fmt, ops::Bound, sync::Arc};

use tamis_filter::Direction;

use super::{SeekHint, run_tables::ScanContext};
use crate::observe::query_sample::Positive;

/// See the head of this file.
pub(crate) struct FilterOutcome {
    scan: Arc<dyn ScanContext>,
    /// The run whose filters admitted the range.
    run_index: usize,
    /// No key of the range is before this place in the direction.
    candidate: Option<(Direction, Vec<u8>)>,
}

impl fmt::Debug for FilterOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FilterOutcome({}, {:?})", self.run_index, self.scan.range())
    }
}

impl FilterOutcome {
    pub(crate) const fn new(scan: Arc<dyn ScanContext>, run_index: usize) -> Self {
        Self { scan, run_index, candidate: None }
    }

    /// Takes the hint for a seek from one end of `needed`.
    pub(super) fn note_hint(
        &mut self,
        needed: &tamis_filter::KeyRange<'_>,
        direction: Direction,
        (hint, bound): (SeekHint, &[u8]),
    ) {
        let is_whole = match direction {
            Direction::Forward => self.is_at_or_before_lower(needed.lower_bytes()),
            Direction::Backward => {
                needed.upper_bytes().is_some_and(|upper| self.is_at_or_behind_upper(upper))
            }
        };
        let is_candidate = is_whole && matches!(hint, SeekHint::Bound | SeekHint::Below);
        self.candidate = is_candidate.then(|| (direction, bound.to_vec()));
    }

    fn is_at_or_before_lower(&self, sought: &[u8]) -> bool {
        match &self.scan.range().lower {
            Bound::Unbounded => false,
            Bound::Included(lower) | Bound::Excluded(lower) => sought <= lower.as_slice(),
        }
    }

    fn is_at_or_behind_upper(&self, sought: &[u8]) -> bool {
        match &self.scan.range().upper {
            Bound::Unbounded => false,
            Bound::Included(upper) | Bound::Excluded(upper) => sought >= upper.as_slice(),
        }
    }

    /// Records a forward seek to `sought` that found `found`; returns whether the outcome is decided.
    pub(super) fn record_seek(&self, sought: &[u8], found: Option<&[u8]>) -> bool {
        let is_whole = match &self.candidate {
            Some((Direction::Forward, candidate)) => sought <= candidate.as_slice(),
            _ => self.is_at_or_before_lower(sought),
        };
        self.record(is_whole, found)
    }

    /// Records a backward seek to `sought` that found `found`; returns whether the outcome is decided.
    pub(super) fn record_seek_for_prev(&self, sought: &[u8], found: Option<&[u8]>) -> bool {
        let is_whole = match &self.candidate {
            Some((Direction::Backward, candidate)) => sought >= candidate.as_slice(),
            _ => self.is_at_or_behind_upper(sought),
        };
        self.record(is_whole, found)
    }

    /// Records a seek that would have found any key of the range.
    pub(super) fn record_seek_to_end(&self, found: Option<&[u8]>) -> bool {
        self.record(true, found)
    }

    /// `is_whole`: the seek would have found any key of the range.
    fn record(&self, is_whole: bool, found: Option<&[u8]>) -> bool {
        let range = self.scan.range();
        let found = found.filter(|key| !range.is_below(key) && !range.is_above(key));
        let is_decided = is_whole || found.is_some();
        if is_decided {
            self.scan.record_filter_outcome(self.run_index, Positive::of(found.as_ref()));
        }
        is_decided
    }
}
