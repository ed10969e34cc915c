//! A scan as a query: how it is sampled, and how the filters answered.
//!
//! A range with two bounds and a prefix are one query each, recorded when the scan ends. In a scan without a bound, each first
//! step from an end is an open seek; in every scan, each seek to a key is one. A seek is recorded at once, with the key that it
//! found and its own outcome ([`super::seek_answers`]).

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering},
};

use tamis_filter::{KeyRange, auto::QueryKind};

use super::touched_range::TouchedRange;
use crate::observe::{
    metrics::{Metrics, ReadKind, ReadPlace},
    query_sample::{Positive, QueryOutcome, QuerySample, Sampling},
};

/// See the head of this file.
#[derive(Debug)]
pub(super) struct ScanQuery {
    /// The kind of a scan with two bounds; `None` for an open one.
    kind: Option<QueryKind>,
    sampling: Sampling,
    rejected: AtomicU16,
    there: AtomicU16,
    nothing_there: AtomicU16,
}

impl ScanQuery {
    /// Counts a scan.
    pub(super) fn new(touched: &TouchedRange, metrics: &Metrics, sample: &QuerySample) -> Self {
        use std::ops::Bound::Unbounded;
        let (kind, counter) = match (&touched.range.lower, &touched.range.upper) {
            _ if touched.is_prefix => (Some(QueryKind::Prefix), &metrics.prefix_scans),
            (Unbounded, _) | (_, Unbounded) => (None, &metrics.open_range_scans),
            _ => (Some(QueryKind::Range), &metrics.range_scans),
        };
        let sampling = sample.sampling(kind.unwrap_or(QueryKind::SeekForward), counter.number());
        let (rejected, there, nothing_there) = Default::default();
        Self { kind, sampling, rejected, there, nothing_there }
    }

    /// The kind of a scan with two bounds; `None` for an open one.
    pub(super) const fn kind(&self) -> Option<QueryKind> {
        self.kind
    }

    /// The place of reads in a level.
    pub(super) const fn place(&self, level: usize) -> ReadPlace {
        let kind = match self.kind {
            Some(QueryKind::Prefix) => ReadKind::Prefix,
            Some(_) => ReadKind::Range,
            None => ReadKind::Seek,
        };
        ReadPlace::new(level, kind).timed(self.sampling.weight > 0)
    }

    /// The number of scans that this one represents in the counters of tables; 0: it is not counted.
    pub(super) const fn tally_weight(&self) -> u32 {
        self.sampling.tally_weight
    }

    /// The filters of a table rejected the query.
    pub(super) fn add_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// The filters of a table admitted the query, which had a key there or not.
    pub(super) fn add_positive(&self, positive: Positive) {
        let counter = match positive {
            Positive::True => &self.there,
            Positive::False => &self.nothing_there,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn outcome(&self) -> QueryOutcome {
        QueryOutcome {
            rejected: self.rejected.load(Ordering::Relaxed),
            there: self.there.load(Ordering::Relaxed),
            nothing_there: self.nothing_there.load(Ordering::Relaxed),
        }
    }

    /// Records a scan with two bounds that has ended.
    #[inline]
    pub(super) fn record(&self, sample: &Arc<QuerySample>, range: &KeyRange<'_>) {
        if let Some(kind) = self.kind
            && self.sampling.weight > 0
        {
            sample.record(kind, range, self.sampling.weight, self.outcome());
        }
    }

    /// Counts an open seek, and records it; `sampled` returns the keys from the sought one to the one that was found, and how the filters
    /// answered. Returns how it is sampled.
    #[inline]
    pub(super) fn record_seek<'a>(
        &self,
        kind: QueryKind,
        metrics: &Metrics,
        sample: &Arc<QuerySample>,
        sampled: impl FnOnce() -> (KeyRange<'a>, QueryOutcome),
    ) -> Sampling {
        let counter = match kind {
            QueryKind::SeekForward => &metrics.forward_seeks,
            _ => &metrics.backward_seeks,
        };
        let sampling = sample.sampling(kind, counter.number());
        if sampling.weight > 0 {
            let (range, outcome) = sampled();
            sample.record(kind, &range, sampling.weight, outcome);
        }
        sampling
    }
}
