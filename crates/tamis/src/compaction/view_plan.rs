//! Decides which sorted view of a partition to build next, and records what it is expected to cost. Pure.
//!
//! With [`Views::Auto`] a view is built once the seeks that merged its runs have cost as much as building it would. So the cost of views is
//! never much more than the time that they could have saved: runs that are replaced soon, or that are not scanned, get no view. A merge of
//! few runs is faster than a view. Runs count their seeks from the time when their tables changed last, or a view with them was built.
//!
//! Runs that no view covers are added to an existing view. If they are large next to it, a view of all runs is built from scratch instead,
//! which takes less than half of the time. A view whose runs were replaced is discarded. The time that a run costs a seek is the measured
//! time of a read of its level.
//!
//! A view has tags if some of its runs have no filters by the options of the keyspace: point reads then search the view. It gets filters by
//! the same rule as the view itself: once the closed ranges that it could not reject have cost as much as building it again with filters.
//! Filters that it has are chosen again if they have three times the expected false positives of 1,000 answers, by the same rules as those of
//! tables ([`super::filter_check`]).

use std::sync::Arc;

use super::{
    filter_check::{EmptyAnswers, is_view_due},
    plan::InProgress,
};
use crate::{
    metrics::{FilterAnswers, LEVEL_COUNT_MAX},
    options::{FilterBudget, Filters, KeyspaceOptions, Policy, Views},
    version::{level::Run, named_view::FilterChecks, partition::Partition},
    view::{
        reader::View,
        size::{ViewCounts, ViewEstimate},
        writer::ViewOptions,
    },
};

/// The time that a seek saves for each run that it does not merge: a search in the run's index and filter, a block, and comparisons. Of a
/// run whose reads were not measured ([`crate::read_times`]), and the least of any run: its blocks are in the processor's caches.
pub(crate) const SEEK_NANOSECONDS: f64 = 200.0;
/// The most: where reads wait for a device, building waits for it, too.
pub(crate) const SEEK_NANOSECONDS_MAX: f64 = 2_000.0;
/// A seek in a view costs as much as a seek that merges this many runs. Measured with `remix-figure-11`: it has 0.64 times the speed of a
/// merge of two runs, 2.1 times that of four, and 3.8 times that of eight.
const RUNS_OF_A_VIEW: f64 = 2.5;
/// The least runs of a view that saves time.
const AUTOMATIC_RUNS_MIN: usize = RUNS_OF_A_VIEW as usize + 1;
/// Every view: a file, its sync and that of the manifest.
const FILE_NANOSECONDS: f64 = 10_000_000.0;
/// Building from scratch: an entry of a run is read, merged and encoded.
const BUILD_NANOSECONDS: f64 = 150.0;
/// Adding to a view: the key of a new entry is searched there, and a page written again.
const ADD_NANOSECONDS: f64 = 500.0;
/// Adding to a view: an old entry is mostly copied with its page.
const COPY_NANOSECONDS: f64 = 5.0;
/// The time that a filter saves for a closed range that the view does not reject: two blocks are searched.
const RANGE_NANOSECONDS: f64 = 2_000.0;
/// The budget of the filters of a view, if the options have no budget for chosen filters.
const FILTER_BUDGET: FilterBudget = FilterBudget::BitsPerKey(10.0);
/// The bits per key of the filter that a rebuild adds for the keys of the new runs.
const ADDED_FILTER_BITS_PER_KEY: f64 = 20.0;
/// The number of closed ranges from which a filter can be chosen at all.
const RANGE_COUNT_MIN: u64 = 64;

/// A view to build.
#[derive(Debug)]
pub(crate) struct ViewPlan {
    pub(crate) partition: u64,
    /// The view to which the runs are added.
    pub(crate) old: Option<OldView>,
    /// Newest first.
    pub(crate) runs: Vec<Arc<Run>>,
    /// Bytes of the tag of each entry.
    pub(crate) tag_bytes: u8,
    /// The view that is built again, only to get other filters.
    pub(crate) refiltered: Option<Refiltered>,
    /// The expected time of building it.
    pub(crate) nanoseconds: f64,
    /// The expected size without filters.
    counts: ViewCounts,
    /// The expected bits of filters for each key of the new runs.
    filter_bits_per_key: f64,
}

/// A view whose filters no longer suit the queries, or that has none.
#[derive(Debug)]
pub(crate) struct Refiltered {
    pub(crate) view: Arc<View>,
    /// Those before, with the rate at this one.
    pub(crate) checks: FilterChecks,
    /// Closed ranges that were admitted.
    pub(crate) admitted_count: u64,
}

impl Refiltered {
    /// The state of the checks of the view that replaces this one. If it has filters of the same families, they are as good as filters can be
    /// for these queries, or the prediction is wrong: the next check needs twice as many answers.
    pub(crate) fn checks_of(&self, view: &View) -> FilterChecks {
        let is_same = view.filter_families() == self.view.filter_families();
        FilterChecks {
            kept_count: if is_same { self.checks.kept_count + 1 } else { 0 },
            seen_rate: if is_same { self.checks.seen_rate } else { 0.0 },
            before: FilterAnswers::default(),
            due_at: 2 * self.admitted_count,
        }
    }
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

    fn new_entry_count(&self) -> u64 {
        self.runs.iter().map(|run| run.entry_count()).sum()
    }

    /// The expected size of the file. `filter_bits_per_key`: of the filters of the new runs, once these are known.
    pub(crate) fn bytes(&self, filter_bits_per_key: Option<f64>) -> u64 {
        let bits_per_key = filter_bits_per_key.unwrap_or(self.filter_bits_per_key);
        let has_filters = bits_per_key > 0.0;
        let with_filter = |counts: ViewCounts| counts.with_filter(self.new_entry_count(), bits_per_key);
        (if has_filters { with_filter(self.counts) } else { self.counts }).file_bytes()
    }

    /// The expected size without filters, with the counts of some pages of a view that is unlike the old one.
    fn expected_counts(&self, sample: Option<ViewCounts>) -> ViewCounts {
        let old = self.old.as_ref().map(|old| old.view.counts());
        let options = self.old.as_ref().map_or_else(ViewOptions::default, |old| *old.view.options());
        let summaries = || self.runs.iter().flat_map(|run| run.tables()).map(|table| table.summary());
        let new_count = self.new_entry_count();
        ViewCounts::expected(&ViewEstimate {
            run_count: self.all_runs().count() as u64,
            entry_count: self.all_runs().map(|run| run.entry_count()).sum(),
            tombstone_count: summaries().map(|summary| summary.tombstone_count).sum(),
            mean_key_bytes: summaries().map(|summary| summary.key_bytes).sum::<u64>() / new_count.max(1),
            segment_size: options.segment_size,
            tag_bytes: self.tag_bytes,
            sample,
            old,
        })
    }
}

/// The limit of the sizes of views, and the sample pages from which they are estimated.
#[derive(Clone, Copy)]
pub(crate) struct ViewSizes<'a> {
    /// The largest view that may be built.
    pub(crate) bytes_max: u64,
    /// Returns the counts of some pages of a view.
    pub(crate) sample: &'a dyn Fn(&ViewPlan) -> Option<ViewCounts>,
}

impl ViewSizes<'_> {
    /// The plan with its expected size, unless that is too large.
    fn fit(self, plan: ViewPlan) -> Option<ViewPlan> {
        let new_count = plan.new_entry_count();
        let is_like_old = plan.old.as_ref().is_some_and(|old| old.view.counts().is_like(new_count));
        let sample = if is_like_old { None } else { (self.sample)(&plan) };
        let plan = ViewPlan { counts: plan.expected_counts(sample), ..plan };
        (plan.bytes(None) <= self.bytes_max).then_some(plan)
    }
}

/// The view of a partition that is due.
pub(crate) fn pick(
    partition: &Partition,
    options: &KeyspaceOptions,
    in_progress: &InProgress,
    sizes: ViewSizes<'_>,
    seek_nanoseconds: &dyn Fn(usize) -> f64,
) -> Option<ViewPlan> {
    let views = options.views;
    if views == Views::Auto && partition.runs().all(|(_, run)| run.merged_seeks() == 0) {
        return None;
    }
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
    let count_min = match views {
        _ if old.is_some() => 1,
        Views::On => 2,
        _ => AUTOMATIC_RUNS_MIN,
    };
    let counts = match views {
        Views::On => new.len().max(count_min)..=new.len(),
        _ => count_min..=new.len(),
    };
    let levels = partition.runs().filter(|(_, run)| new.iter().any(|other| other.id() == run.id()));
    let times: Vec<f64> = levels.map(|(level, _)| seek_nanoseconds(level)).collect();
    let run_nanoseconds = times.iter().sum::<f64>() / times.len().max(1) as f64;
    let candidate = |count: usize| {
        let plan = plan_of(partition, old.clone(), new.get(..count)?, &options.filters)?;
        // The first view costs as much as some of its runs; each further run is saved as a whole.
        let saved_runs = count as f64 - if old.is_some() { 0.0 } else { RUNS_OF_A_VIEW };
        let seeks = new.get(count - 1).map_or(0, |run| run.merged_seeks());
        let saved = seeks as f64 * saved_runs * run_nanoseconds;
        let is_due = views == Views::On || saved >= plan.nanoseconds;
        is_due.then_some((saved - plan.nanoseconds, plan))
    };
    let mut due: Vec<_> = counts.filter_map(candidate).collect();
    due.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    due.into_iter().find_map(|(_, plan)| sizes.fit(plan))
}

/// The view of a partition, to be built again with other filters, if that is due: once its false positives of ranges have cost as much, and
/// for filters that it has if they are due for a check like those of tables.
pub(crate) fn pick_with_filters(
    partition: &Partition,
    options: &KeyspaceOptions,
    sizes: ViewSizes<'_>,
) -> Option<ViewPlan> {
    let named = partition.view.as_ref()?;
    let (mut checks, admitted_count) = (named.filter_checks(), named.admitted_ranges());
    let old = OldView::of(partition)?;
    let lost_count = if old.view.has_filter() {
        let (answers, before) = (named.filter_answers().get(), checks.before);
        let since = EmptyAnswers {
            denied: answers.denied.saturating_sub(before.denied),
            admitted: answers.wrong.saturating_sub(before.wrong),
        };
        if !is_view_due(old.view.expected_range_rate(), since, &checks) {
            return None;
        }
        checks.seen_rate = checks.seen_rate.max(since.rate());
        since.admitted
    } else {
        (admitted_count >= RANGE_COUNT_MIN.max(checks.due_at)).then_some(admitted_count)?
    };
    let runs: Vec<&Arc<Run>> = old.runs.iter().collect();
    let plan = plan_of(partition, None, &runs, &options.filters)?;
    let saved = lost_count as f64 * RANGE_NANOSECONDS;
    let is_due = options.views == Views::On || saved >= plan.nanoseconds;
    let key_count = runs.iter().map(|run| run.entry_count()).sum();
    let filter_bits_per_key = filter_budget_of(&options.filters).bits_per_key(key_count).into();
    let refiltered = Some(Refiltered { view: Arc::clone(&old.view), checks, admitted_count });
    is_due.then_some(ViewPlan { refiltered, filter_bits_per_key, ..plan }).and_then(|plan| sizes.fit(plan))
}

/// The budget of the filters of a view.
pub(super) fn filter_budget_of(filters: &Filters) -> FilterBudget {
    match filters.policy() {
        Some(Policy::Automatic(budget)) => budget,
        _ => FILTER_BUDGET,
    }
}

/// Bytes of the tags of a view with these runs: if their tables have no filters, tags reject absent keys.
fn tag_bytes_of(partition: &Partition, chosen: &[&Arc<Run>], filters: &Filters) -> u8 {
    let has_none = |level| filters.of_level(level, level + 1 == LEVEL_COUNT_MAX).is_empty();
    let is_chosen = |run: &Run| chosen.iter().any(|other| other.id() == run.id());
    let lacks =
        filters.policy().is_none() && partition.runs().any(|(level, run)| is_chosen(run) && has_none(level));
    u8::from(lacks)
}

fn plan_of(
    partition: &Partition,
    old: Option<OldView>,
    chosen: &[&Arc<Run>],
    filters: &Filters,
) -> Option<ViewPlan> {
    let new_count: u64 = chosen.iter().map(|run| run.entry_count()).sum();
    if let Some(old) = &old
        && !old.view.has_filter()
        && is_cheaper_from_scratch(old.view.entry_count(), new_count)
    {
        let all: Vec<&Arc<Run>> = old.runs.iter().chain(chosen.iter().copied()).collect();
        return plan_of(partition, None, &all, filters);
    }
    let in_order = partition.runs().map(|(_, run)| run);
    let runs: Vec<_> =
        in_order.filter(|run| chosen.iter().any(|other| other.id() == run.id())).map(Arc::clone).collect();
    let old_view = old.as_ref().map(|old| &old.view);
    let old_count = old_view.map_or(0, |view| view.entry_count());
    let tag_bytes =
        old_view.map_or_else(|| tag_bytes_of(partition, chosen, filters), |view| view.options().tag_bytes);
    let has_filters = old_view.is_some_and(|view| view.has_filter());
    let entries_nanoseconds = match &old {
        Some(_) => adding_nanoseconds(old_count, new_count),
        None => building_nanoseconds(new_count),
    };
    (!runs.is_empty()).then(|| ViewPlan {
        partition: partition.id,
        old,
        nanoseconds: FILE_NANOSECONDS + entries_nanoseconds,
        counts: ViewCounts::default(),
        tag_bytes,
        filter_bits_per_key: if has_filters { ADDED_FILTER_BITS_PER_KEY } else { 0.0 },
        refiltered: None,
        runs,
    })
}

fn building_nanoseconds(entry_count: u64) -> f64 {
    entry_count as f64 * BUILD_NANOSECONDS
}

fn adding_nanoseconds(old_count: u64, new_count: u64) -> f64 {
    new_count as f64 * ADD_NANOSECONDS + old_count as f64 * COPY_NANOSECONDS
}

/// Whether a view of all entries takes at most half of the time of adding the new ones; less is within the error of the estimates.
fn is_cheaper_from_scratch(old_count: u64, new_count: u64) -> bool {
    2.0 * building_nanoseconds(old_count + new_count) < adding_nanoseconds(old_count, new_count)
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
