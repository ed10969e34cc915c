//! Decides which sorted view of a partition to build next. Pure.
//!
//! A view covers all runs that overlap another one. Runs that the view of the partition does not cover are added to it; a view whose runs
//! were replaced is discarded. With [`Views::On`] a view is due while there are such runs. With [`Views::Auto`] it is due once seeks have lost as
//! much time without it as its build takes (`law.rs`): runs that are replaced soon, or that are not scanned, get no view.

use std::sync::Arc;

use super::{law::JobTimes, plan::InProgress};
use crate::{
    options::Views,
    version::{level::Run, losses::DueLoss, partition::Partition},
    view::reader::View,
};

/// The least runs of an automatic view: a merge of two is as fast.
const AUTOMATIC_RUNS_MIN: usize = 3;
/// A view to build.
#[derive(Debug)]
pub(crate) struct ViewPlan {
    pub(crate) partition: u64,
    /// The view to which the runs are added.
    pub(crate) old: Option<OldView>,
    /// Newest first.
    pub(crate) runs: Vec<Arc<Run>>,
    /// The loss for which it is due; `None` if the options ask for it.
    pub(crate) loss: Option<DueLoss>,
}

/// An open view with its runs, in its order.
#[derive(Debug)]
pub(crate) struct OldView {
    pub(crate) view: Arc<View>,
    pub(crate) runs: Vec<Arc<Run>>,
}

impl OldView {
    fn of(partition: &Partition) -> Option<Self> {
        let named = partition.view.as_ref()?;
        let runs = named.runs().iter().map(|&id| partition.run_with_id(id).map(Arc::clone));
        Some(Self { view: Arc::clone(named.reader()?), runs: runs.collect::<Option<_>>()? })
    }
}

impl ViewPlan {
    /// The runs that the view will cover, in its order.
    pub(crate) fn all_runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.old.iter().flat_map(|old| &old.runs).chain(&self.runs)
    }

    /// The entries that the build writes, and those that it copies with their pages.
    pub(crate) fn entry_counts(&self) -> (u64, u64) {
        let new = self.runs.iter().map(|run| run.entry_count()).sum();
        (new, self.old.as_ref().map_or(0, |old| old.view.entry_count()))
    }
}

/// The view of a partition that is due.
pub(crate) fn pick(
    partition: &Partition,
    views: Views,
    in_progress: &InProgress,
    times: &JobTimes,
) -> Option<ViewPlan> {
    let plan = plan_of(partition, views, in_progress)?;
    if views == Views::On {
        return Some(plan);
    }
    let loss = partition.losses.view.due(times.of_view(plan.entry_counts()))?;
    Some(ViewPlan { loss: Some(loss), ..plan })
}

/// The view that a partition may get: all runs that overlap another one are added to the view that it has.
pub(crate) fn plan_of(partition: &Partition, views: Views, in_progress: &InProgress) -> Option<ViewPlan> {
    let old = OldView::of(partition);
    if views == Views::Off || partition.view.is_some() && old.is_none() {
        return None;
    }
    let is_known = |run: &Run| old.iter().flat_map(|old| &old.runs).any(|other| other.id() == run.id());
    let may_join = |run: &Run| {
        u32::try_from(run.entry_count()).is_ok_and(|count| count > 0) && !in_progress.holds_any(run.tables())
    };
    let runs: Vec<&Arc<Run>> =
        partition.runs().map(|(_, run)| run).filter(|run| is_known(run) || may_join(run)).collect();
    let overlaps_another = |run: &Run| runs.iter().any(|other| other.id() != run.id() && overlap(run, other));
    let new = runs.iter().filter(|run| !is_known(run) && overlaps_another(run)).map(|run| Arc::clone(run));
    let runs: Vec<_> = new.collect();
    let count_min = match views {
        _ if old.is_some() => 1,
        Views::Auto => AUTOMATIC_RUNS_MIN,
        Views::On | Views::Off => 2,
    };
    (runs.len() >= count_min).then(|| ViewPlan { partition: partition.id, old, runs, loss: None })
}

/// Whether the key ranges of two runs overlap. A run between the tables of another one counts, too.
fn overlap(left: &Run, right: &Run) -> bool {
    let is_before = |left: &Run, right: &Run| match (left.tables().last(), right.tables().first()) {
        (Some(last), Some(first)) => last.largest_key() < first.smallest_key(),
        _ => true,
    };
    !is_before(left, right) && !is_before(right, left)
}

#[cfg(test)]
mod tests;
