//! Parts of plans that the strategies share.

use std::{ops::Range, sync::Arc};

use crate::{
    compaction::plan::PlanInput,
    key::Sequence,
    version::{handle::Table, key_bounds::KeySpan, level::Run},
};

/// The keys of runs; `None` for none.
pub(super) fn span_of(runs: &[&Arc<Run>]) -> Option<KeySpan> {
    KeySpan::around(runs.iter().flat_map(|run| run.tables()).map(|table| table.bounds()))
}

/// `None` for no tables.
pub(super) fn input_of(level: usize, run_age: u64, tables: Vec<Arc<Table>>) -> Option<PlanInput> {
    (!tables.is_empty()).then_some(PlanInput { level, run_age, tables })
}

pub(super) fn input(level: usize, run_age: u64, tables: &[Arc<Table>]) -> PlanInput {
    PlanInput { level, run_age, tables: tables.to_vec() }
}

pub(super) fn bytes_of(tables: &[Arc<Table>]) -> u64 {
    tables.iter().map(|table| table.file_bytes()).sum()
}

/// The runs of L0 that become one run of L0 if these do: all other runs, which are given newest first, have only newer or only older entries.
/// The output has the keys between those of its inputs, too, and tables of other runs there must keep the order of entries.
pub(super) fn apart_at_level0(level0: &[Arc<Run>], taken: Range<usize>) -> Range<usize> {
    let mut taken = taken;
    loop {
        let runs = level0.get(taken.clone()).unwrap_or_default();
        let ranges = runs.iter().map(|run| run.sequence_range());
        let (oldest, newest) =
            ranges.fold((Sequence::MAX, 0), |all, (oldest, newest)| (all.0.min(oldest), all.1.max(newest)));
        let is_mixed = |(index, run): (usize, &Arc<Run>)| match run.sequence_range() {
            (other_oldest, _) if index < taken.start => other_oldest <= newest,
            (_, other_newest) => index >= taken.end && other_newest >= oldest,
        };
        let mixed = || level0.iter().enumerate().filter(|run| is_mixed(*run)).map(|(index, _)| index);
        let (Some(first), Some(last)) = (mixed().next(), mixed().next_back()) else { return taken };
        taken = taken.start.min(first)..taken.end.max(last + 1);
    }
}

/// Whether no two tables of the runs have keys in common.
pub(super) fn are_disjoint(runs: &[&Arc<Run>]) -> bool {
    let mut tables: Vec<&Arc<Table>> = runs.iter().flat_map(|run| run.tables()).collect();
    tables.sort_unstable_by(|left, right| left.smallest_key().cmp(right.smallest_key()));
    tables.is_sorted_by(|left, right| left.ends_before(right.smallest_key()))
}
