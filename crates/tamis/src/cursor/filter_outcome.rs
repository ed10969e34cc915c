//! Records whether a filter that admitted a range was right: a true positive or a false positive.
//!
//! The first seek of the scan shows it. If the cursor is at a key of the range, the filter was right. If a seek from an end
//! of the range leaves it, there is no such key. A seek to a key within the range that finds nothing decides nothing.

use std::{ops::Bound, sync::Arc};

use super::bounded::KeyRange;
use crate::metrics::Metrics;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct FilterOutcome {
    pub(crate) metrics: Arc<Metrics>,
    /// The table's level.
    pub(crate) level: usize,
    pub(crate) range: Arc<KeyRange>,
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
        if let Some(counters) = self.metrics.filters.get(self.level)
            && (is_true_positive || is_whole)
        {
            if is_true_positive {
                counters.range_true_positive.add(1)
            } else {
                counters.range_false_positive.add(1)
            }
        }
        is_true_positive || is_whole
    }
}
