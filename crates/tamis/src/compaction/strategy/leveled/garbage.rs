//! Compactions by garbage: picks tables for their deleted and obsolete entries although no level is due by its size.
//!
//! There are three plans: a merge of L0 or of a table and its neighbours into the first deeper level that overlaps them, and the
//! rewrite of a table in place. The due plan ([`due_share`]) that reclaims the greatest share of the bytes that it rewrites is taken.
//!
//! **Not reclaimed.** A version whose replacement is in a shallower level is not known to be obsolete: tables do not record which keys
//! they share. It is dropped when the levels meet by size. There are at most as many such versions as entries in the shallower
//! levels: those of L0 below its limits, and about a ninth of the deepest level with the default ratio.
//!
//! **Extra writes.** At most three bytes are written for each byte that is reclaimed. Where keys that do not exist are deleted, a
//! tombstone causes the rewrite of at most four average entries per level. A random fill with up to 10 % deletes causes at most 10 %
//! extra writes (`tests/it/garbage.rs` measures it): tables with so few tombstones reclaim less than a quarter.
//!
//! **Termination.** A merge moves its newest entries to a deeper level. A rewrite leaves none of the entries for which it was due.
//!
//! Cost: O(tables x log tables).

use std::sync::Arc;

use super::Leveled;
use crate::{
    compaction::{
        plan::{Action, Plan, Reason},
        strategy::{
            garbage::{Garbage, due_share},
            plan_parts::{bytes_of, input, span_of},
        },
    },
    version::{
        handle::Table,
        key_bounds::{KeyBounds, KeySpan},
        level::LEVELED_RUN_AGE,
    },
};

impl<'a> Leveled<'a> {
    /// The due plan that reclaims the greatest share of the bytes that it rewrites.
    pub(super) fn best_garbage(&self, garbage: &Garbage<'_>) -> Option<Plan> {
        let best = self.best_table(garbage);
        let level0 = self.pick_level0_garbage(garbage);
        match (best, level0) {
            (Some((share, ..)), Some(plan)) if plan.score >= share => Some(plan),
            (Some((share, level, position)), _) => self.plan_table(garbage, level, position, share),
            (None, plan) => plan,
        }
    }

    /// Merges the oldest runs of L0 into the first level that overlaps them.
    fn pick_level0_garbage(&self, garbage: &Garbage<'_>) -> Option<Plan> {
        let level0 = self.partition.level(0)?;
        let is_candidate = |table: &Arc<Table>| table.summary().may_have_garbage();
        if !level0.tables().any(is_candidate) || self.in_progress.holds_any(level0.tables()) {
            return None;
        }
        let oldest_first: Vec<_> = level0.runs().iter().rev().collect();
        let taken = self.runs_of_a_job(&oldest_first);
        let base_level = self.targets.base_level;
        let overlaps = |level: &usize| {
            let mut tables = taken.iter().flat_map(|run| run.tables());
            tables.any(|table| !self.within(*level, table.bounds()).is_empty())
        };
        let output_level = (base_level..self.partition.levels().len()).find(overlaps).unwrap_or(base_level);
        let span = span_of(&taken)?;
        let is_written = |level| self.in_progress.writes_within(self.partition.id, level, span.bounds());
        if (base_level..output_level).any(is_written) {
            return None;
        }
        let mut plan = self.merge_level0(taken, output_level, Reason::Garbage, 0.0)?;
        let runs: Vec<&[Arc<Table>]> = plan.inputs.iter().map(|input| input.tables.as_slice()).collect();
        let bytes = runs.iter().map(|run| bytes_of(run)).sum();
        plan.score = due_share(garbage.reclaimed_bytes(&runs, plan.older.is_empty()), bytes)?;
        Some(plan)
    }

    /// The table below L0 with the greatest share: the share, its level and its position.
    fn best_table(&self, garbage: &Garbage<'_>) -> Option<(f64, usize, usize)> {
        let levels = 1..self.partition.levels().len();
        let tables = levels.flat_map(|level| {
            let tables = self.run_of(level).map_or(&[][..], |run| run.tables()).iter().enumerate();
            tables.map(move |(position, table)| (level, position, table))
        });
        let due = tables.filter_map(|(level, position, table)| {
            if !table.summary().may_have_garbage() || self.in_progress.holds(table) {
                return None;
            }
            let rewrite = self.rewrite_share(garbage, level, table);
            let merge =
                self.upper_and_overlap(level, position).and_then(|job| self.merge_share(garbage, &job));
            let share = [rewrite, merge].into_iter().flatten().max_by(f64::total_cmp)?;
            Some((share, level, position))
        });
        due.max_by(|left, right| left.0.total_cmp(&right.0))
    }

    /// The plan of [`Leveled::best_table`].
    fn plan_table(&self, garbage: &Garbage<'_>, level: usize, position: usize, share: f64) -> Option<Plan> {
        let table = self.run_of(level)?.tables().get(position)?;
        if self.rewrite_share(garbage, level, table) == Some(share) {
            return self.rewrite(level, table, Reason::Garbage, share);
        }
        let job = self.upper_and_overlap(level, position)?;
        let mut spec = self.spec(Action::Merge, Reason::Garbage, share, job.output_level);
        spec.inputs.push(input(level, LEVELED_RUN_AGE, job.upper));
        spec.inputs.push(input(job.output_level, LEVELED_RUN_AGE, job.overlap));
        self.plan(spec)
    }

    fn rewrite_share(&self, garbage: &Garbage<'_>, level: usize, table: &Arc<Table>) -> Option<f64> {
        if self.in_progress.writes_within(self.partition.id, level, table.bounds()) {
            return None;
        }
        let is_lowest = self.is_lowest(level, table.bounds());
        let reclaimed = garbage.reclaimed_bytes(&[std::slice::from_ref(table)], is_lowest);
        due_share(reclaimed, table.file_bytes())
    }

    fn merge_share(&self, garbage: &Garbage<'_>, job: &TableMerge<'_>) -> Option<f64> {
        let span = KeySpan::around(job.upper.iter().chain(job.overlap).map(|table| table.bounds()))?;
        let is_lowest = self.is_lowest(job.output_level, span.bounds());
        let bytes = bytes_of(job.upper) + bytes_of(job.overlap);
        due_share(garbage.reclaimed_bytes(&[job.upper, job.overlap], is_lowest), bytes)
    }

    /// The merge of a table and its neighbours into the first deeper level that overlaps it.
    fn upper_and_overlap(&self, level: usize, position: usize) -> Option<TableMerge<'a>> {
        let run = self.run_of(level)?;
        let table = run.tables().get(position)?;
        if !table.summary().has_deletes() {
            return None;
        }
        let overlaps = |below: &usize| !self.within(*below, table.bounds()).is_empty();
        let output_level = (level + 1..self.partition.levels().len()).find(overlaps)?;
        if !self.is_free_between(level, output_level, table.bounds()) {
            return None;
        }
        let overlap = self.free_overlap(output_level, table.bounds())?;
        let upper = self.extended(run, position, (level, output_level), overlap);
        Some(TableMerge { output_level, upper, overlap })
    }

    /// Whether no table is below a level within the bounds.
    fn is_lowest(&self, level: usize, bounds: KeyBounds<'_>) -> bool {
        (level + 1..self.partition.levels().len()).all(|below| self.within(below, bounds).is_empty())
    }
}

/// Tables of a level and those of a deeper level that they overlap.
struct TableMerge<'a> {
    output_level: usize,
    upper: &'a [Arc<Table>],
    overlap: &'a [Arc<Table>],
}
