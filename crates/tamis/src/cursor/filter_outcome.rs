//! Whether a filter was right that admitted a range: known when the table was sought for it.
//!
//! The first seek tells: a cursor that stands at a key of the range shows that there is one; a seek from an end of the
//! range that leads out of it shows that there is none. Seeks to places within the range that find nothing leave the
//! question open.

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
    /// Judges a seek forward to `sought` that led to `found`; whether the question is settled.
    pub(super) fn is_settled_forward(&self, sought: &[u8], found: Option<&[u8]>) -> bool {
        let is_whole = match &self.range.lower {
            Bound::Unbounded => false,
            Bound::Included(lower) | Bound::Excluded(lower) => sought <= lower.as_slice(),
        };
        self.is_settled(is_whole, found)
    }

    /// Judges a seek backward to `sought` that led to `found`; whether the question is settled.
    pub(super) fn is_settled_backward(&self, sought: &[u8], found: Option<&[u8]>) -> bool {
        let is_whole = match &self.range.upper {
            Bound::Unbounded => false,
            Bound::Included(upper) | Bound::Excluded(upper) => sought >= upper.as_slice(),
        };
        self.is_settled(is_whole, found)
    }

    /// `is_whole`: the seek would have found any key of the range.
    pub(super) fn is_settled(&self, is_whole: bool, found: Option<&[u8]>) -> bool {
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
