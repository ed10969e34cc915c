//! Selects the sorted views that a scan reads instead of runs.
//!
//! A view replaces all runs that it covers, if the scan would merge at least two of them. An open scan checks no filter, so it does not
//! select the covered runs at all. The filters of a closed range are asked first, as without a view; if they leave covered runs, the
//! view itself may deny the range, without a read.
//!
//! Runs that the view does not cover are merged with it. A view that is not open, or damaged, or whose runs are not all in the version, is
//! ignored.

use std::{ops::Bound, sync::Arc};

use super::select_runs::SelectedRun;
use crate::{
    cursor::bounded::KeyRange,
    error::{Error, Result},
    key::Sequence,
    version::{level::Run, named_view::NamedView, version::Partition},
    view::reader::View,
};

/// A view that a scan reads.
pub(crate) struct SelectedView {
    pub(super) named: Arc<NamedView>,
    pub(super) view: Arc<View>,
    /// The positions of its runs among all runs that the scan's range touches, ascending.
    ranks: Vec<usize>,
    /// In the order of the view, until [`Selection`] takes them.
    runs: Vec<Arc<Run>>,
    /// The number of its first run in [`Selection::run`].
    pub(super) first_run: usize,
    /// No run of the partition is older than the covered ones, so that nothing is below their tombstones.
    pub(super) hides_tombstones: bool,
}

impl SelectedView {
    /// The view of a partition whose newest run has this rank.
    fn of(partition: &Partition, first_rank: usize) -> Option<Self> {
        let named = partition.view.as_ref()?;
        let view = named.reader()?;
        let ids = named.runs();
        let mut runs = vec![None; ids.len()];
        let mut ranks = Vec::with_capacity(ids.len());
        let mut end = first_rank;
        for (_, run) in partition.runs() {
            let position = ids.iter().position(|&id| id == run.id());
            if let Some(slot) = position.and_then(|position| runs.get_mut(position)) {
                *slot = Some(Arc::clone(run));
                ranks.push(end);
            }
            end += 1;
        }
        let runs: Option<Vec<_>> = runs.into_iter().collect();
        let hides_tombstones = ranks.first().is_some_and(|first| first + ranks.len() == end);
        Some(Self {
            named: Arc::clone(named),
            view: Arc::clone(view),
            ranks,
            runs: runs?,
            first_run: 0,
            hides_tombstones,
        })
    }

    fn covers(&self, rank: usize) -> bool {
        self.ranks.contains(&rank)
    }

    /// The rank of its newest run: that of the view in a merge.
    pub(super) fn rank(&self) -> usize {
        self.ranks.first().copied().unwrap_or_default()
    }

    /// Whether it is certain that no covered run has a visible key in a closed range.
    fn denies(&self, range: &KeyRange, snapshot: Sequence) -> Result<bool> {
        let (
            Bound::Included(lower) | Bound::Excluded(lower),
            Bound::Included(upper) | Bound::Excluded(upper),
        ) = (&range.lower, &range.upper)
        else {
            return Ok(false);
        };
        let is_live = self.hides_tombstones && snapshot >= self.view.largest_sequence();
        self.view.denies_range(lower, upper, is_live)
    }
}

/// The views of the partitions, which are in key order.
pub(super) fn open_views(partitions: &[Arc<Partition>]) -> Vec<SelectedView> {
    let mut views = Vec::new();
    let mut first_rank = 0;
    // Most partitions have none.
    if partitions.iter().any(|partition| partition.view.is_some()) {
        for partition in partitions {
            views.extend(SelectedView::of(partition, first_rank));
            first_rank += partition.runs().count();
        }
    }
    views
}

/// The sources of a scan besides its memtables.
#[derive(Default)]
pub(crate) struct Selection {
    pub(super) runs: Vec<SelectedRun>,
    pub(super) views: Vec<SelectedView>,
    /// The runs of all views.
    view_runs: Vec<Arc<Run>>,
}

impl Selection {
    /// Decides for an open range, whose covered runs were not selected.
    pub(super) fn of_open(runs: Vec<SelectedRun>, mut views: Vec<SelectedView>) -> Self {
        let mut view_runs = Vec::new();
        for view in &mut views {
            view.first_run = runs.len() + view_runs.len();
            view_runs.append(&mut view.runs);
        }
        Self { runs, views, view_runs }
    }

    /// Decides for a closed range, whose runs were selected by their filters. `report` is called for a damaged view.
    pub(super) fn of_closed(
        mut runs: Vec<SelectedRun>,
        mut views: Vec<SelectedView>,
        range: &KeyRange,
        snapshot: Sequence,
        report: impl Fn(&SelectedView, &Error),
    ) -> Self {
        views.retain(|view| {
            let count = runs.iter().filter(|run| view.covers(run.rank)).count();
            let denies = if count == 0 { Ok(false) } else { view.denies(range, snapshot) };
            let Ok(is_denied) = denies.inspect_err(|error| report(view, error)) else { return false };
            let is_used = count > 1 && !is_denied;
            if is_used || is_denied {
                runs.retain(|run| !view.covers(run.rank));
            }
            is_used
        });
        Self::of_open(runs, views)
    }

    /// A selected run; after them come the runs of the views.
    pub(super) fn run(&self, run_index: usize) -> Option<&Run> {
        match run_index.checked_sub(self.runs.len()) {
            None => self.runs.get(run_index).map(|run| &*run.run),
            Some(index) => self.view_runs.get(index).map(Arc::as_ref),
        }
    }

    /// The runs that the scan reads only because no view covers them, near `key` if there is one.
    pub(super) fn merged_runs(&self, key: Option<&[u8]>) -> impl Iterator<Item = &Arc<Run>> {
        let runs = self.runs.iter().map(|selected| &selected.run);
        runs.filter(move |run| {
            let (first, last) = (run.tables().first(), run.tables().last());
            key.zip(first.zip(last))
                .is_none_or(|(key, (first, last))| first.smallest_key() <= key && key <= last.largest_key())
        })
    }
}

/// Whether some view covers the run at this rank.
pub(super) fn is_covered(views: &[SelectedView], rank: usize) -> bool {
    views.iter().any(|view| view.covers(rank))
}
