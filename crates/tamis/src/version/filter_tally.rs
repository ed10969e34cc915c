//! How the filters of one table answered, by kind of query.
//!
//! An atomic update for every table that a read probes would cost as much as its filters. So only some reads are counted, at
//! most one of eight, and each with the number of reads that it represents ([`crate::observe::query_sample::Sampling`]). The counts
//! belong to the table's handle: they survive its reader, and begin at zero when the filters are replaced. Queries that an evicted filter
//! admitted are not counted: their rate is none of the filters.

use std::sync::atomic::{AtomicU64, Ordering};

use tamis_filter::auto::QueryKind;

use crate::observe::{metrics::FilterAnswers, query_sample::Positive};

/// The counts of one kind of query.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    checked: AtomicU64,
    rejected: AtomicU64,
    true_positives: AtomicU64,
    false_positives: AtomicU64,
}

impl Answers {
    /// Counts a query that the filters rejected.
    #[inline]
    pub(crate) fn add_rejected(&self, weight: u32) {
        self.checked.fetch_add(u64::from(weight), Ordering::Relaxed);
        self.rejected.fetch_add(u64::from(weight), Ordering::Relaxed);
    }

    /// Counts a query that the filters admitted; whether it is a true positive is counted when it is known.
    #[inline]
    pub(crate) fn add_admitted(&self, weight: u32) {
        self.checked.fetch_add(u64::from(weight), Ordering::Relaxed);
    }

    /// Counts whether an admitted query had a key in the table.
    #[inline]
    pub(crate) fn add_positive(&self, positive: Positive, weight: u32) {
        let counter = match positive {
            Positive::True => &self.true_positives,
            Positive::False => &self.false_positives,
        };
        counter.fetch_add(u64::from(weight), Ordering::Relaxed);
    }

    /// A copy.
    pub(crate) fn get(&self) -> FilterAnswers {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FilterAnswers {
            checked: get(&self.checked),
            rejected: get(&self.rejected),
            true_positives: get(&self.true_positives),
            false_positives: get(&self.false_positives),
        }
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct FilterTally {
    pub(crate) points: Answers,
    /// Closed ranges and prefixes.
    pub(crate) ranges: Answers,
    pub(crate) seeks: Answers,
}

impl FilterTally {
    /// The counts of a kind of query.
    #[inline]
    pub(crate) const fn of(&self, kind: QueryKind) -> &Answers {
        match kind {
            QueryKind::Point => &self.points,
            QueryKind::Range | QueryKind::Prefix => &self.ranges,
            QueryKind::SeekForward | QueryKind::SeekBackward => &self.seeks,
        }
    }
}
