//! Selects the sorted view that a scan reads instead of runs.
//!
//! A view replaces all runs that it covers, if the scan would merge at least two of them. No filter can reject an open range, so an open
//! scan does not select the covered runs at all. The filters are probed for a closed range first, as without a view.
//!
//! Runs that the view does not cover are merged with it, at the candidates of their filters, in open scans, too. A view that is not open,
//! or damaged, or whose runs are not all in the version, is ignored.

use std::sync::Arc;

use super::select_runs::SelectedRun;
use crate::version::{bound_view::BoundView, level::Run};

/// The sources of a scan of one partition besides the memtables.
#[derive(Default)]
pub(crate) struct Selection {
    /// The newest first.
    pub(super) runs: Vec<SelectedRun>,
    /// Read instead of the runs that it covers.
    pub(super) view: Option<Arc<BoundView>>,
}

impl Selection {
    /// Decides for a closed range, whose runs were selected by their filters.
    pub(super) fn of_closed(mut runs: Vec<SelectedRun>, view: Option<Arc<BoundView>>) -> Self {
        let covered_count = |view: &Arc<BoundView>| runs.iter().filter(|run| view.covers(run.rank)).count();
        let view = view.filter(|view| covered_count(view) > 1);
        if let Some(view) = &view {
            runs.retain(|run| !view.covers(run.rank));
        }
        Self { runs, view }
    }

    /// Whether no table is read.
    pub(super) const fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.view.is_none()
    }

    /// The run of the view with this number, and its level.
    fn view_run(&self, run_index: usize) -> Option<&(usize, Arc<Run>)> {
        self.view.as_ref()?.runs.get(run_index.checked_sub(self.runs.len())?)
    }

    /// A selected run; after them come the runs of the view.
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
