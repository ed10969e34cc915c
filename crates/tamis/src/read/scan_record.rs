//! Records scans: their seeks as queries of the sample, the answers of filters in the counters of tables, and the time that they lose because they
//! search several runs ([`crate::version::losses`]).

use std::ops::Bound;

use tamis_filter::auto::QueryKind;

use super::{
    scan_source::{ScanSource, Visible},
    seek_answers::{count_seek, outcome_of_seek},
    select_views::Selection,
};
use crate::{
    cursor::{bounded::as_slice, source::Source},
    observe::query_sample::Positive,
};

impl ScanSource {
    /// Records the end of the scan.
    #[inline]
    pub(super) fn record_end(&self) {
        self.metrics().scans_ended.add(1);
        self.query().record(&self.read_state().query_sample, &self.touched.filter_range());
    }

    /// Counts the runs and views that a range with two bounds searched, here or in one partition.
    #[inline]
    pub(super) fn record_searched(&self) {
        let weight = self.query().tally_weight();
        if weight > 0 && self.query().kind().is_some() {
            let Selection { runs, view } = self.selection();
            self.add_searched(weight, (runs.len(), usize::from(view.is_some())));
        }
    }

    /// Adds so many reads to the losses of the partition, which each searched so many runs and views.
    #[cold]
    fn add_searched(&self, weight: u32, searched: (usize, usize)) {
        if let Some(partition) = self.partition() {
            partition.losses.add_searched(weight.into(), searched, self.read_ns());
        }
    }

    /// Records whether a run has a key of the range, which its filter admitted.
    #[inline]
    pub(super) fn record_outcome(&self, run_index: usize, positive: Positive) {
        let Some(run) = self.selection().runs.get(run_index) else { return };
        let Some(table) = run.run.tables().get(run.tables.start) else { return };
        if run.is_checked && run.is_tallied {
            let counters = self.metrics().reads(self.query().place(run.level));
            counters.inspect(|reads| match positive {
                Positive::True => reads.true_positives.add(1),
                Positive::False => reads.false_positives.add(1),
            });
            self.query().add_positive(positive);
        }
        let weight = self.query().tally_weight();
        if let Some(kind) = self.query().kind()
            && weight > 0
            && run.is_tallied
        {
            table.filter_tally().of(kind).add_positive(positive, weight);
        }
    }

    /// Counts a seek to `sought`, or to an end of the range, that found this key of the range, in this partition.
    #[inline]
    pub(super) fn record_seek(
        &self,
        kind: QueryKind,
        (sought, found): (Option<&[u8]>, Option<&[u8]>),
        partition: Option<(&Self, &Visible)>,
    ) {
        let merge = partition.map(|(_, merge)| merge);
        let (metrics, sample) = (self.metrics(), &self.read_state().query_sample);
        let sampling = self.query().record_seek(kind, metrics, sample, || {
            let answered = self.start_of_seek(kind, sought).zip(merge);
            let outcome = answered.map(|(start, merge)| outcome_of_seek(start, merge.source()));
            (self.range_of_seek(kind, sought, found), outcome.unwrap_or_default())
        });
        if let Some((partition, merge)) = partition
            && sampling.weight > 0
        {
            partition.add_searched(sampling.weight, searched(merge));
        }
        if sampling.tally_weight > 0
            && let Some(merge) = merge
            && let Some(start) = self.start_of_seek(kind, sought)
        {
            count_seek(kind, start, merge.source(), sampling.tally_weight);
        }
    }

    /// The keys of the range from the sought one to the one that was found, or to its end.
    fn range_of_seek<'a>(
        &'a self,
        kind: QueryKind,
        sought: Option<&'a [u8]>,
        found: Option<&'a [u8]>,
    ) -> tamis_filter::KeyRange<'a> {
        let sought =
            sought.filter(|key| !self.touched.range.is_below(key) && !self.touched.range.is_above(key));
        let (lower, upper) = match kind {
            QueryKind::SeekForward => (sought, found),
            _ => (found, sought),
        };
        let lower = lower.map_or(as_slice(&self.touched.range.lower), Bound::Included);
        tamis_filter::KeyRange::new(lower, upper.map_or(as_slice(&self.touched.range.upper), Bound::Included))
    }

    /// The key from which a seek to `sought`, or to an end of the range, searches; `None` for an end without a bound, and for a seek that
    /// finds nothing because all keys of the range are behind it.
    fn start_of_seek<'a>(&'a self, kind: QueryKind, sought: Option<&'a [u8]>) -> Option<&'a [u8]> {
        match sought {
            Some(key) if self.touched.range.is_below(key) => {
                self.end_of(kind).filter(|_| kind == QueryKind::SeekForward)
            }
            Some(key) if self.touched.range.is_above(key) => {
                self.end_of(kind).filter(|_| kind != QueryKind::SeekForward)
            }
            Some(key) => Some(key),
            None => self.end_of(kind),
        }
    }

    /// The bound of the range at which a seek from its end begins.
    fn end_of(&self, kind: QueryKind) -> Option<&[u8]> {
        let bound = if kind == QueryKind::SeekForward {
            &self.touched.range.lower
        } else {
            &self.touched.range.upper
        };
        match bound {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        }
    }

    /// Counts the first step of a cursor from an end of the range, which is an open seek unless the range has two bounds.
    #[inline]
    pub(super) fn record_first_step(
        &self,
        kind: QueryKind,
        found: Option<&[u8]>,
        partition: Option<(&Self, &Visible)>,
    ) {
        if self.query().kind().is_none() {
            self.record_seek(kind, (None, found), partition);
        }
    }
}

/// The runs and views that a seek has searched: it has read them, or their filters.
fn searched(merge: &Visible) -> (usize, usize) {
    merge.source().sought().fold((0, 0), |(runs, views), lane| match lane.cursor {
        Source::View(_) => (runs, views + 1),
        source => (runs + usize::from(source.open_table().is_some()), views),
    })
}
