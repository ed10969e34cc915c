//! Decides which sorted view of a partition to build next, and records what it is expected to cost. Pure.
//!
//! With [`Views::Auto`] a view is built once the seeks that merged its runs have cost as much as building it would. So the cost of views is
//! never much more than the time that they could have saved, whatever happens later: runs that are replaced soon, or that are not
//! scanned, get no view. Runs count their seeks from the time when their tables changed last, or a view with them was built.
//!
//! Runs that no view covers are added to an existing view, which costs less than a new one. A view whose runs were replaced is gone.

use std::sync::Arc;

use super::plan::InProgress;
use crate::{
    options::Views,
    version::{level::Run, version::Partition},
    view::{
        reader::View,
        size::{ViewCounts, ViewEstimate},
        writer::ViewOptions,
    },
};

/// The time that a seek saves for each run that it does not merge: a search in the run's index and filter, a block, and comparisons.
const SEEK_NANOSECONDS: f64 = 200.0;
/// Every view: a file, its sync and that of the manifest.
const FILE_NANOSECONDS: f64 = 10_000_000.0;
/// Building from scratch: an entry of a run is read, merged and encoded.
const BUILD_NANOSECONDS: f64 = 150.0;
/// Adding to a view: the key of a new entry is searched there, and a page written again.
const ADD_NANOSECONDS: f64 = 500.0;
/// Adding to a view: an old entry is mostly copied with its page.
const COPY_NANOSECONDS: f64 = 5.0;

/// A view to build.
#[derive(Debug)]
pub(crate) struct ViewPlan {
    pub(crate) partition: u64,
    /// The view to which the runs are added.
    pub(crate) old: Option<OldView>,
    /// Newest first.
    pub(crate) runs: Vec<Arc<Run>>,
    /// The expected time of building it.
    pub(crate) nanoseconds: f64,
    /// The expected size of the file.
    pub(crate) bytes: u64,
}

/// An open view with its runs, in its order.
#[derive(Debug, Clone)]
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
}

/// The view of a partition that is due. `bytes_max` bounds its size.
pub(crate) fn pick(
    partition: &Partition,
    views: Views,
    in_progress: &InProgress,
    bytes_max: u64,
) -> Option<ViewPlan> {
    let old = OldView::of(partition);
    if views == Views::Off || partition.view.is_some() && old.is_none() {
        return None;
    }
    let is_known = |run: &Run| old.iter().flat_map(|old| &old.runs).any(|other| other.id() == run.id());
    let may_join = |run: &Run| {
        u32::try_from(run.entry_count()).is_ok_and(|count| count > 0) && !in_progress.holds_any(run.tables())
    };
    let is_certain = |run: &Run| is_known(run) || may_join(run);
    let runs: Vec<&Arc<Run>> = partition.runs().map(|(_, run)| run).filter(|run| is_certain(run)).collect();
    let overlaps_another = |run: &Run| runs.iter().any(|other| other.id() != run.id() && overlap(run, other));
    let mut new: Vec<&Arc<Run>> =
        runs.iter().copied().filter(|run| !is_known(run) && overlaps_another(run)).collect();
    // A stable sort: of runs with equal counts, the newest is first.
    new.sort_by_key(|run| std::cmp::Reverse(run.merged_seeks()));
    let count_min = if old.is_some() { 1 } else { 2 };
    let counts = match views {
        Views::On => new.len().max(count_min)..=new.len(),
        _ => count_min..=new.len(),
    };
    let candidate = |count: usize| {
        let chosen = new.get(..count)?;
        let plan = plan_of(partition, old.clone(), chosen)?;
        // Without an old view one cursor replaces `count`; with one, it replaces `count` more.
        let saved_runs = count + 1 - count_min;
        let seeks = chosen.last().map_or(0, |run| run.merged_seeks());
        let saved = seeks as f64 * saved_runs as f64 * SEEK_NANOSECONDS;
        let is_due = views == Views::On || saved >= plan.nanoseconds;
        (is_due && plan.bytes <= bytes_max).then_some((saved - plan.nanoseconds, plan))
    };
    let best = counts.filter_map(candidate).max_by(|(left, _), (right, _)| left.total_cmp(right));
    best.map(|(_, plan)| plan)
}

fn plan_of(partition: &Partition, old: Option<OldView>, chosen: &[&Arc<Run>]) -> Option<ViewPlan> {
    let in_order = partition.runs().map(|(_, run)| run);
    let runs: Vec<_> =
        in_order.filter(|run| chosen.iter().any(|other| other.id() == run.id())).map(Arc::clone).collect();
    let old_view = old.as_ref().map(|old| &old.view);
    let old_count = old_view.map_or(0, |view| view.entry_count());
    let new_count: u64 = runs.iter().map(|run| run.entry_count()).sum();
    let summaries = || runs.iter().flat_map(|run| run.tables()).map(|table| table.summary());
    let options = old_view.map_or_else(ViewOptions::default, |view| *view.options());
    let estimate = ViewEstimate {
        run_count: (runs.len() + old.as_ref().map_or(0, |old| old.runs.len())) as u64,
        entry_count: old_count + new_count,
        has_tombstones: summaries().any(|summary| summary.tombstone_count > 0),
        mean_key_bytes: summaries().map(|summary| summary.key_bytes).sum::<u64>() / new_count.max(1),
        segment_size: options.segment_size,
        tag_bytes: options.tag_bytes,
    };
    let per_entry = if old.is_some() { ADD_NANOSECONDS } else { BUILD_NANOSECONDS };
    (!runs.is_empty()).then(|| ViewPlan {
        partition: partition.id,
        old,
        nanoseconds: FILE_NANOSECONDS + new_count as f64 * per_entry + old_count as f64 * COPY_NANOSECONDS,
        bytes: ViewCounts::expected(&estimate).file_bytes(),
        runs,
    })
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
