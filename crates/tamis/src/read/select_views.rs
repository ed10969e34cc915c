//! Selects the sorted views that a scan reads instead of runs.
//!
//! A view replaces all runs that it covers, if the scan would merge at least two of them. No filter can reject an open range, so an open
//! scan does not select the covered runs at all. The filters are probed for a closed range first, as without a view.
//!
//! Runs that the view does not cover are merged with it, at the candidates of their filters, in open scans, too. A view that is not open,
//! or damaged, or whose runs are not all in the version, is ignored.

use std::{ops::Range, sync::Arc};

use super::{select_runs::SelectedRun, view_opener::ViewOpener};
use crate::{
    error::Error,
    keyspace_state::ReadState,
    table::environment::TableEnvironment,
    version::{bound_view::BoundView, level::Run},
};

/// A view that a scan reads.
pub(crate) struct SelectedView {
    pub(super) bound: Arc<BoundView>,
    /// The position of its partition's newest run among all runs that the scan's range touches.
    first_rank: usize,
    /// The number of its first run in [`Selection::run`].
    pub(super) first_run: usize,
}

impl SelectedView {
    /// No read uses the view from now on; the background removes it.
    pub(super) fn report_damage(&self, environment: &TableEnvironment, error: &Error) {
        self.bound.named.fail(environment, error);
    }

    fn covers(&self, rank: usize) -> bool {
        rank.checked_sub(self.first_rank).is_some_and(|rank| self.bound.ranks.contains(&rank))
    }

    /// The rank of its partition's newest run among all runs that the scan's range touches.
    pub(super) const fn first_rank(&self) -> usize {
        self.first_rank
    }

    /// The rank of its newest run: that of the view in a merge.
    pub(super) fn rank(&self) -> usize {
        self.first_rank + self.bound.ranks.iter().min().copied().unwrap_or_default()
    }
}

/// The store and the keyspace of views.
pub(super) struct ViewContext<'a> {
    pub(super) views: ViewOpener,
    pub(super) environment: &'a TableEnvironment,
    pub(super) keyspace_id: u64,
}

/// The views of the partitions at these positions.
pub(super) fn open_views(
    read_state: &ReadState,
    positions: Range<usize>,
    context: &ViewContext<'_>,
) -> Vec<SelectedView> {
    let mut views = Vec::new();
    let partitions = read_state.version.partitions.get(positions.clone()).unwrap_or_default();
    // Most partitions have none.
    if partitions.iter().all(|partition| partition.view.is_none()) {
        return views;
    }
    let mut first_rank = 0;
    for (index, partition) in positions.zip(partitions) {
        let view = partition.view.as_ref().and_then(|named| {
            context.views.reader(named, partition, context.environment, context.keyspace_id)
        });
        let bound = view.and_then(|view| read_state.views.get(&read_state.version, index, view));
        if let Some(bound) = bound {
            views.push(SelectedView { bound: Arc::clone(bound), first_rank, first_run: 0 });
        }
        if partitions.len() > 1 {
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
}

impl Selection {
    /// Decides for an open range, whose covered runs were not selected.
    pub(super) fn of_open(runs: Vec<SelectedRun>, mut views: Vec<SelectedView>) -> Self {
        let mut first_run = runs.len();
        for view in &mut views {
            view.first_run = first_run;
            first_run += view.bound.runs.len();
        }
        Self { runs, views }
    }

    /// Whether no table is read.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.views.is_empty()
    }

    /// The run of a view with this number, and its level.
    fn view_run(&self, run_index: usize) -> Option<&(usize, Arc<Run>)> {
        let run_of = |view: &'_ SelectedView| {
            run_index.checked_sub(view.first_run).filter(|&number| number < view.bound.runs.len())
        };
        self.views.iter().find_map(|view| view.bound.runs.get(run_of(view)?))
    }

    /// Decides for a closed range, whose runs were selected by their filters.
    pub(super) fn of_closed(mut runs: Vec<SelectedRun>, mut views: Vec<SelectedView>) -> Self {
        views.retain(|view| {
            let is_used = runs.iter().filter(|run| view.covers(run.rank)).count() > 1;
            runs.retain(|run| !is_used || !view.covers(run.rank));
            is_used
        });
        Self::of_open(runs, views)
    }

    /// A selected run; after them come the runs of the views.
    pub(super) fn run(&self, run_index: usize) -> Option<&Run> {
        match self.runs.get(run_index) {
            Some(selected) => Some(&selected.run),
            None => self.view_run(run_index).map(|(_, run)| &**run),
        }
    }

    /// The level of such a run.
    pub(super) fn level_of(&self, run_index: usize) -> Option<usize> {
        match self.runs.get(run_index) {
            Some(selected) => Some(selected.level),
            None => self.view_run(run_index).map(|(level, _)| *level),
        }
    }
}

/// Whether some view covers the run at this rank.
pub(super) fn is_covered(views: &[SelectedView], rank: usize) -> bool {
    views.iter().any(|view| view.covers(rank))
}
