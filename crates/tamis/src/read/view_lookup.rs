//! Decides when a point read searches the sorted view of a partition, and which runs it then skips.
//!
//! A filter costs less than a search in a view, and with filters in all tables a present key costs one block. So the view is searched only
//! before a read that it may save:
//!
//! 1. Of a covered run whose table has no filter.
//! 2. After two runs were read that do not have the key. After one, the filters of the other runs reject most absent keys, and cost less.
//! 3. If the last reads were consecutive false positives ([`NamedView::expects_absent`]): then most keys that filters admit are absent.
//!
//! The answer holds for all covered runs: at most the run with the newest version is read, and none if the view knows that the key is
//! absent. A snapshot that is older than the runs may need an older version: it uses the second answer only. If the first rule applied
//! to the last read, the next one searches the view first and skips the other runs.
//!
//! A key that the view may have is searched for in the known gaps of the view (`table/gap_cache.rs`), which ranges record, while points
//! recently found gaps there or were false positives of the view.
//!
//! Views have no range tombstones: those of covered runs are checked as without a view. A view that is damaged is reported and not
//! used; then all runs are searched.

use tamis_filter::Probe;

use super::ReadPath;
use crate::{
    key::Sequence,
    version::{level::Run, named_view::NamedView, partition::Partition},
    view::lookup::KeyRuns,
};

/// Which runs a point read skips.
pub(super) trait RunChoice {
    /// Whether a run may have a visible version of the key.
    fn admits(&self, run: &Run) -> bool;
    /// Called before a run is read. `has_filter`: the filters of its table are probed first.
    fn before_read(&mut self, run: &Run, has_filter: bool);
    /// Called once the filters of a run have admitted the key: whether it is read. `false` is certain: the run does not have the key. If
    /// another covered run has its newest version, that run is older, or its filters have rejected the key.
    fn confirms(&mut self, run: &Run) -> bool;
    /// Called after a run was read that does not have the key.
    fn after_miss(&mut self);
    /// Called after a run was read that has the key.
    fn after_found(&self);
}

/// Of a partition without a view.
impl RunChoice for () {
    #[inline]
    fn admits(&self, _: &Run) -> bool {
        true
    }

    #[inline]
    fn before_read(&mut self, _: &Run, _: bool) {}

    #[inline]
    fn confirms(&mut self, _: &Run) -> bool {
        true
    }

    #[inline]
    fn after_miss(&mut self) {}

    #[inline]
    fn after_found(&self) {}
}

/// The answer of a view.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// It is not known which runs have the key.
    Unknown,
    /// No covered run has the key.
    Absent,
    /// No other covered run is needed than the one with this id.
    In(u64),
}

/// See the head of this file.
pub(super) struct ViewLookup<'a> {
    named: &'a NamedView,
    partition: &'a Partition,
    read_path: &'a ReadPath,
    keyspace_id: u64,
    probe: &'a Probe<'a>,
    sequence: Sequence,
    /// See [`NamedView::is_searched_first`].
    is_searched_first: bool,
    /// `None`: the view was not searched yet.
    answer: Option<Answer>,
    /// A run was read that does not have the key.
    has_missed: bool,
}

impl<'a> ViewLookup<'a> {
    pub(super) fn new(
        named: &'a NamedView,
        partition: &'a Partition,
        read_path: &'a ReadPath,
        keyspace_id: u64,
        (probe, sequence): (&'a Probe<'a>, Sequence),
    ) -> Self {
        let mut lookup = Self {
            named,
            partition,
            read_path,
            keyspace_id,
            probe,
            sequence,
            is_searched_first: named.is_searched_first(),
            answer: None,
            has_missed: false,
        };
        if lookup.is_searched_first {
            lookup.ask();
        }
        lookup
    }

    #[inline(never)]
    fn ask(&mut self) {
        self.answer = Some(self.find().unwrap_or(Answer::Unknown));
    }

    /// Whether the key is in a known gap, so that no covered run has a version of it.
    fn is_in_gap(&self) -> bool {
        let gaps = self.named.gaps();
        let is_in_gap = gaps.may_reject_points() && gaps.rejects_point(self.probe.key());
        if is_in_gap {
            self.read_path.metrics.gap_hits.add(1);
        }
        is_in_gap
    }

    fn find(&self) -> Option<Answer> {
        let named = self.named;
        let environment = self.read_path.tools.tables.environment();
        let view = self.read_path.tools.views.reader(named, self.partition, environment, self.keyspace_id)?;
        match view.runs_of(self.probe) {
            Ok(KeyRuns::None) => Some(Answer::Absent),
            Ok(KeyRuns::NewestIn(_)) if self.is_in_gap() => Some(Answer::Absent),
            Ok(KeyRuns::NewestIn(_)) if !view.shows_newest_at(self.sequence) => None,
            Ok(KeyRuns::NewestIn(number)) => named.runs().get(number).map(|&run| Answer::In(run)),
            Err(error) => {
                named.fail(environment, &error);
                None
            }
        }
    }
}

impl RunChoice for ViewLookup<'_> {
    #[inline(always)]
    fn admits(&self, run: &Run) -> bool {
        match self.answer {
            None | Some(Answer::Unknown) => true,
            Some(Answer::Absent) => !self.named.runs().contains(&run.id()),
            Some(Answer::In(found)) => found == run.id() || !self.named.runs().contains(&run.id()),
        }
    }

    #[inline(always)]
    fn before_read(&mut self, run: &Run, has_filter: bool) {
        // As expected: a table with a filter, or the view was searched first.
        if has_filter != self.is_searched_first || !self.named.runs().contains(&run.id()) {
            return;
        }
        self.is_searched_first = !has_filter;
        self.named.set_searched_first(!has_filter);
        if !has_filter && self.answer.is_none() {
            self.ask();
        }
    }

    #[inline]
    fn confirms(&mut self, run: &Run) -> bool {
        if self.answer.is_none() && self.named.expects_absent() && self.named.runs().contains(&run.id()) {
            self.ask();
        }
        self.admits(run)
    }

    #[inline]
    fn after_found(&self) {
        self.named.note_found();
    }

    #[inline]
    fn after_miss(&mut self) {
        self.named.add_false_positive();
        if let Some(Answer::In(_)) = self.answer {
            // A false positive of the view: the next points may be in a gap that ranges have recorded.
            self.named.gaps().expect_points();
        }
        if self.has_missed && self.answer.is_none() {
            self.ask();
        }
        self.has_missed = true;
    }
}
