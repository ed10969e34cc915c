//! Parts of plans that the strategies share.

use std::sync::Arc;

use crate::{
    compaction::plan::PlanInput,
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

/// Whether no two tables of the runs have keys in common.
pub(super) fn are_disjoint(runs: &[&Arc<Run>]) -> bool {
    let mut tables: Vec<&Arc<Table>> = runs.iter().flat_map(|run| run.tables()).collect();
    tables.sort_unstable_by(|left, right| left.smallest_key().cmp(right.smallest_key()));
    tables.is_sorted_by(|left, right| left.ends_before(right.smallest_key()))
}
