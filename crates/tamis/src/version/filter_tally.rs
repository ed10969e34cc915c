//! How the filters of one table answered, by kind of query, and the time that reads have lost by them.
//!
//! An atomic update for every table that a read probes would cost as much as its filters. So only some reads are counted, at
//! most one of eight, and each with the number of reads that it represents ([`crate::observe::query_sample::Sampling`]). The counts
//! belong to the table's handle: they survive its reader, and begin at zero when the filters are replaced. Queries that an evicted filter
//! admitted are not counted: their rate is none of the filters.
//!
//! The loss is derived from the counts when the background reads them ([`FilterTally::measure`]): the time of the false positives beyond those that
//! were expected when the filters were chosen or checked. No filters would have saved the others.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tamis_filter::auto::QueryKind;

use super::losses::Loss;
use crate::{
    observe::{metrics::FilterAnswers, query_sample::Positive},
    sync::Mutex,
};

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

    /// Queries without a key in the table.
    fn empty(&self) -> EmptyQueries {
        let FilterAnswers { rejected, false_positives, .. } = self.get();
        EmptyQueries { count: rejected + false_positives, false_positives }
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

/// Queries that no key of the table answers.
#[derive(Debug, Clone, Copy, Default)]
struct EmptyQueries {
    count: u64,
    false_positives: u64,
}

impl EmptyQueries {
    const fn since(self, before: Self) -> Self {
        Self {
            count: self.count.saturating_sub(before.count),
            false_positives: self.false_positives.saturating_sub(before.false_positives),
        }
    }

    /// False positives beyond those of a rate.
    fn excess(self, rate: f64) -> f64 {
        (self.false_positives as f64 - rate * self.count as f64).max(0.0)
    }
}

/// The kinds of queries whose answers are counted separately.
const KINDS: [QueryKind; 3] = [QueryKind::Point, QueryKind::Range, QueryKind::SeekForward];

/// Rates of false positives of points, closed ranges and open seeks; NaN: not known.
pub(crate) type Rates = [f64; 3];

/// The state of the filters when they were last checked.
#[derive(Debug, Default)]
struct LastCheck {
    counts: [EmptyQueries; 3],
    /// The rates that it expects, once it has kept the filters.
    kept: Option<Rates>,
    /// It has tried to replace a damaged filter.
    was_repair: bool,
    /// The next one waits until the sample has begun again so often.
    awaited_restarts: Option<u64>,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct FilterTally {
    pub(crate) points: Answers,
    /// Closed ranges and prefixes.
    pub(crate) ranges: Answers,
    pub(crate) seeks: Answers,
    loss: Arc<Loss>,
    last_check: Mutex<LastCheck>,
}

impl FilterTally {
    /// That of other filters of the table.
    pub(super) fn of_other_filters(&self) -> Self {
        Self { loss: Arc::clone(&self.loss), ..Self::default() }
    }

    /// The counts of a kind of query.
    #[inline]
    pub(crate) const fn of(&self, kind: QueryKind) -> &Answers {
        match kind {
            QueryKind::Point => &self.points,
            QueryKind::Range | QueryKind::Prefix => &self.ranges,
            QueryKind::SeekForward | QueryKind::SeekBackward => &self.seeks,
        }
    }

    /// The time that false positives have cost, as last measured.
    pub(crate) fn loss(&self) -> &Loss {
        &self.loss
    }

    /// Queries without a key that were counted.
    pub(crate) fn empty_query_count(&self) -> u64 {
        KINDS.iter().map(|&kind| self.of(kind).empty().count).sum()
    }

    /// Measures the loss since the last check, or since these filters were chosen with the rates `chosen`, if a false positive takes so many
    /// nanoseconds. Returns the kind of queries that lost most, if one did.
    pub(crate) fn measure(&self, chosen: Rates, read_ns: f64) -> Option<QueryKind> {
        let last = self.last_check.lock();
        let expected = last.kept.unwrap_or(chosen);
        let since =
            KINDS.iter().zip(&last.counts).map(|(&kind, &before)| self.of(kind).empty().since(before));
        let (mut count, mut excess, mut most) = (0, 0.0, (0.0, None));
        for ((since, rate), kind) in since.zip(expected).zip(KINDS) {
            // Without such queries nothing was expected.
            let lost = since.excess(if rate.is_nan() { 0.0 } else { rate });
            (count, excess) = (count + since.count, excess + lost);
            if lost > most.0 {
                most = (lost, Some(kind));
            }
        }
        self.loss.set(count, (excess * read_ns) as u64);
        most.1
    }

    /// Whether no check has tried to replace a damaged filter.
    pub(crate) fn awaits_repair(&self) -> bool {
        !self.last_check.lock().was_repair
    }

    /// The beginning of the sample for which the due check waits, if it does.
    pub(crate) fn awaited_restarts(&self) -> Option<u64> {
        self.last_check.lock().awaited_restarts
    }

    /// The due check waits until the sample has begun again so often.
    pub(crate) fn await_restarts(&self, restarts: u64) {
        self.last_check.lock().awaited_restarts = Some(restarts);
    }

    /// A check begins: the loss is counted from now on.
    pub(crate) fn begin_check(&self, is_repair: bool) {
        let mut last = self.last_check.lock();
        last.counts = KINDS.map(|kind| self.of(kind).empty());
        last.was_repair |= is_repair;
        last.awaited_restarts = None;
        self.loss.begin_job();
    }

    /// A check kept the filters, and expects these rates.
    pub(crate) fn keep(&self, rates: Rates) {
        self.last_check.lock().kept = Some(rates);
    }
}

#[cfg(test)]
mod tests;
