//! Compactions by garbage: picks tables for their deleted and obsolete entries although no level is due by its size.
//!
//! The bytes that a plan reclaims are estimated from the summaries of its tables:
//!
//! - a tombstone reclaims an average entry of the older tables of the plan, at most all of them;
//! - tombstones reclaim themselves if no older entry is below the outputs and the oldest read point sees them;
//! - obsolete entries reclaim themselves if no read point needs them.
//!
//! Versions that a read point may need are ignored: a released snapshot makes tables due, an open one never starts a job.
//! There are three plans: a merge of L0 or of a table and its neighbours into the first deeper level that overlaps them, and the
//! rewrite of a table in place. A plan is due if it reclaims at least a quarter of the bytes that it rewrites
//! ([`DUE_SHARE`]); the plan with the greatest share is taken.
//!
//! **Extra writes.** At most three bytes are written for each byte that is reclaimed. Where keys that do not exist are deleted, a
//! tombstone causes the rewrite of at most four average entries per level. A random fill with up to 10 % deletes causes at most 10 %
//! extra writes (`tests/it/garbage.rs` measures it): tables with so few tombstones reclaim less than a quarter.
//!
//! **Termination.** A merge moves its newest entries to a deeper level. A rewrite leaves none of the entries for which it was due.
//!
//! **Range tombstones.** A table whose entries are all deleted by the range tombstones of one newer table is dropped
//! ([`Action::Drop`]): one edit, without reads and writes. That removes nothing that a reader can see, at any time: older
//! entries of its keys are deleted by the same tombstones. Tables that are covered in part wait for other reasons.
//!
//! Cost: O(tables x log tables), and for range tombstones one binary search for each pair of a table that has some and an older table
//! that overlaps it.

use std::sync::Arc;

use super::{Leveled, bytes_of, input, input_of, span_of};
use crate::{
    compaction::plan::{Action, Plan, Reason},
    key::Sequence,
    range_tombstone::Fragments,
    table::properties::TableSummary,
    version::{
        handle::Table,
        key_bounds::{KeyBounds, KeySpan},
        level::LEVELED_RUN_AGE,
    },
};

/// A plan is due if it reclaims this share of the bytes that it rewrites.
const DUE_SHARE: f64 = 0.25;

/// Bytes of an entry in addition to its key and value, approximately.
const ENTRY_OVERHEAD: f64 = 8.0;

/// Which entries are garbage, given the read points.
pub(in super::super) struct Garbage<'a> {
    /// Ascending; the last one is the visible sequence number.
    read_points: &'a [Sequence],
}

impl<'a> Garbage<'a> {
    pub(in super::super) const fn new(read_points: &'a [Sequence]) -> Self {
        Self { read_points }
    }

    /// Whether an entry at or above `older` is invisible to all present and later readers if an entry up to `newer` deletes or
    /// replaces it.
    fn hides(&self, newer: Sequence, older: Sequence) -> bool {
        self.first_from(older).is_some_and(|point| newer <= point)
    }

    /// The first read point at or above a sequence number.
    fn first_from(&self, sequence: Sequence) -> Option<Sequence> {
        self.read_points.get(self.read_points.partition_point(|&point| point < sequence)).copied()
    }

    /// Whether a rewrite of the table drops its obsolete entries, and it has some.
    pub(super) fn has_obsolete(&self, summary: &TableSummary) -> bool {
        summary.obsolete_count > 0 && self.hides(summary.obsolete_since, summary.smallest_sequence)
    }

    /// Whether a job that has all older versions drops the tombstones of the table, and it has some.
    fn has_tombstones(&self, summary: &TableSummary) -> bool {
        let is_seen = self.read_points.first().is_some_and(|&oldest| summary.largest_sequence <= oldest);
        summary.has_deletes() && is_seen
    }

    /// Whether range tombstones hide all entries of a table.
    fn is_deleted(&self, table: &Table, fragments: &Fragments) -> bool {
        let summary = table.summary();
        let Some(point) = self.first_from(summary.smallest_sequence) else { return false };
        let newest = summary.largest_sequence;
        fragments.sequence_at(table.smallest_key(), point) > newest
            && fragments.cover_all(table.smallest_key(), &table.upper(), newest, point)
    }

    /// The bytes that a merge of these runs (newest first) reclaims. `is_lowest`: no older entries are below its outputs.
    fn reclaimed_bytes(&self, runs: &[&[Arc<Table>]], is_lowest: bool) -> f64 {
        let mut reclaimed = 0.0;
        for (index, run) in runs.iter().enumerate() {
            for summary in run.iter().map(|table| table.summary()) {
                if self.has_obsolete(summary) {
                    reclaimed += summary.obsolete_count as f64 * entry_bytes(summary);
                }
                if is_lowest && self.has_tombstones(summary) {
                    reclaimed += tombstone_bytes(summary);
                }
            }
            let older = runs.get(index + 1..).unwrap_or_default();
            reclaimed += self.deleted_bytes(run, older);
        }
        reclaimed
    }

    /// The bytes of the older runs that the tombstones of a run reclaim.
    fn deleted_bytes(&self, run: &[Arc<Table>], older: &[&[Arc<Table>]]) -> f64 {
        let deleting = run.iter().map(|table| table.summary()).filter(|summary| summary.tombstone_count > 0);
        let (mut tombstones, mut newest) = (0, 0);
        for summary in deleting {
            tombstones += summary.tombstone_count;
            newest = newest.max(summary.largest_sequence);
        }
        if tombstones == 0 {
            return 0.0;
        }
        let (mut entries, mut bytes) = (0, 0);
        for summary in older.iter().flat_map(|run| run.iter()).map(|table| table.summary()) {
            if self.hides(newest, summary.smallest_sequence) {
                entries += summary.entry_count;
                bytes += summary.file_bytes;
            }
        }
        tombstones.min(entries) as f64 * (bytes as f64 / entries.max(1) as f64)
    }
}

/// Average bytes of an entry.
fn entry_bytes(summary: &TableSummary) -> f64 {
    summary.file_bytes as f64 / summary.entry_count.max(1) as f64
}

/// Bytes of the tombstones of a table: their share of keys and values. Range tombstones count like others.
fn tombstone_bytes(summary: &TableSummary) -> f64 {
    let tombstones =
        (summary.tombstone_count + summary.range_tombstone_count).min(summary.entry_count) as f64;
    let entries = summary.entry_count.max(1) as f64;
    let all = (summary.key_bytes + summary.value_bytes) as f64 + ENTRY_OVERHEAD * entries;
    let each = summary.key_bytes as f64 / entries + ENTRY_OVERHEAD;
    summary.file_bytes as f64 * (tombstones * each / all).min(1.0)
}

/// The part of `bytes` that is reclaimed, if it is due.
fn due_share(reclaimed: f64, bytes: u64) -> Option<f64> {
    let share = (reclaimed / bytes.max(1) as f64).min(1.0);
    (share >= DUE_SHARE).then_some(share)
}

impl<'a> Leveled<'a> {
    /// Drops the tables whose entries are all deleted by range tombstones.
    pub(super) fn deleted_tables(&self, garbage: &Garbage<'_>) -> Option<Plan> {
        if !self.partition.has_range_tombstones() {
            return None;
        }
        let runs: Vec<_> = self.partition.runs().collect();
        let mut deleted: Vec<Vec<Arc<Table>>> = vec![Vec::new(); runs.len()];
        for (index, (_, run)) in runs.iter().enumerate().filter(|(_, (_, run))| run.has_range_tombstones()) {
            for deleting in run.tables() {
                let Some(fragments) = deleting.range_tombstones() else { continue };
                for ((_, older), deleted) in runs.iter().zip(&mut deleted).skip(index + 1) {
                    let covered = older.tables_within(deleting.bounds()).iter();
                    let covered = covered.filter(|table| !self.in_progress.holds(table));
                    deleted.extend(covered.filter(|table| garbage.is_deleted(table, fragments)).cloned());
                }
            }
        }
        let inputs = runs.iter().zip(deleted).filter_map(|((level, run), mut tables)| {
            tables.sort_unstable_by(|left, right| left.smallest_key().cmp(right.smallest_key()));
            tables.dedup_by_key(|table| table.number());
            input_of(*level, run.age(), tables)
        });
        let inputs: Vec<_> = inputs.collect();
        let mut spec = self.spec(Action::Drop, Reason::Garbage, f64::INFINITY, inputs.first()?.level);
        spec.inputs = inputs;
        self.plan(spec)
    }

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
        let is_candidate =
            |table: &Arc<Table>| table.summary().has_deletes() || table.summary().obsolete_count > 0;
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
        let output_level = (base_level..self.partition.levels.len()).find(overlaps).unwrap_or(base_level);
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
        let levels = 1..self.partition.levels.len();
        let tables = levels.flat_map(|level| {
            let tables = self.run_of(level).map_or(&[][..], |run| run.tables()).iter().enumerate();
            tables.map(move |(position, table)| (level, position, table))
        });
        let due = tables.filter_map(|(level, position, table)| {
            let summary = table.summary();
            let is_candidate = summary.has_deletes() || summary.obsolete_count > 0;
            if !is_candidate || self.in_progress.holds(table) {
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
        if table.summary().tombstone_count == 0 {
            return None;
        }
        let overlaps = |below: &usize| !self.within(*below, table.bounds()).is_empty();
        let output_level = (level + 1..self.partition.levels.len()).find(overlaps)?;
        if !self.is_free_between(level, output_level, table.bounds()) {
            return None;
        }
        let overlap = self.free_overlap(output_level, table.bounds())?;
        let upper = self.extended(run, position, (level, output_level), overlap);
        Some(TableMerge { output_level, upper, overlap })
    }

    /// Whether no table is below a level within the bounds.
    fn is_lowest(&self, level: usize, bounds: KeyBounds<'_>) -> bool {
        (level + 1..self.partition.levels.len()).all(|below| self.within(below, bounds).is_empty())
    }
}

/// Tables of a level and those of a deeper level that they overlap.
struct TableMerge<'a> {
    output_level: usize,
    upper: &'a [Arc<Table>],
    overlap: &'a [Arc<Table>],
}
