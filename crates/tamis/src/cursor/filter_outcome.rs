//! Records whether a filter that admitted a range was right: a true positive or a false positive.
//!
//! The first seek of the scan shows it. If the cursor is at a key of the range, the filter was right. If a seek from an end
//! of the range leaves it, there is no such key. A seek to a key within the range that finds nothing decides nothing.

use std::{fmt, ops::Bound, sync::Arc};

use super::{bounded::KeyRange, run_tables::ScanContext};

/// See the head of this file.
pub(crate) struct FilterOutcome {
    pub(crate) scan: Arc<dyn ScanContext>,
    /// The run of the table whose filter was checked.
    pub(crate) run_index: usize,
    pub(crate) range: Arc<KeyRange>,
}

impl fmt::Debug for FilterOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "FilterOutcome({}, {:?})", self.run_index, self.range)
    }
}

impl FilterOutcome {
    /// Records a forward seek to `sought` that found `found`; returns whether the outcome is decided.
    pub(super) fn record_seek(&self, sought: &[u8], found: Option<&[u8]>) -> bool {
        let is_whole = match &self.range.lower {
            Bound::Unbounded => false,
            Bound::Included(lower) | Bound::Excluded(lower) => sought <= lower.as_slice(),
        };
        self.record(is_whole, found)
    }

    /// Records a backward seek to `sought` that found `found`; returns whether the outcome is decided.
    pub(super) fn record_seek_for_prev(&self, sought: &[u8], found: Option<&[u8]>) -> bool {
        let is_whole = match &self.range.upper {
            Bound::Unbounded => false,
            Bound::Included(upper) | Bound::Excluded(upper) => sought >= upper.as_slice(),
        };
        self.record(is_whole, found)
    }

    /// `is_whole`: the seek would have found any key of the range.
    pub(super) fn record(&self, is_whole: bool, found: Option<&[u8]>) -> bool {
        let is_true_positive =
            found.is_some_and(|key| !self.range.is_below(key) && !self.range.is_above(key));
        if is_true_positive || is_whole {
            self.scan.record_filter_outcome(self.run_index, is_true_positive);
        }
        is_true_positive || is_whole
    }
}
