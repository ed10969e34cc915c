//! Which entries are garbage, and how many bytes a compaction reclaims; the same for all layouts.
//!
//! The bytes that a plan reclaims are estimated from the summaries of its tables:
//!
//! - a tombstone reclaims an average entry of the older tables of the plan, at most all of them;
//! - range tombstones reclaim the bytes that they cover of the older tables of the plan (`compaction/range_deletes.rs`);
//! - tombstones reclaim themselves if no older entry is below the outputs and the oldest read point sees them;
//! - obsolete entries reclaim themselves if no read point needs them;
//! - expired entries reclaim themselves if no older entry is below the outputs, otherwise their values.
//!
//! Versions that a read point may need are ignored: a released snapshot makes tables due, an open one never starts a job.
//! A plan is due if it reclaims at least a quarter of the bytes that it rewrites ([`DUE_SHARE`]).
//!
//! **Range tombstones.** A table whose entries are all deleted by the range tombstones of one newer table is dropped
//! ([`Action::Drop`]): one edit, without reads and writes. That removes nothing that a reader can see, at any time: older
//! entries of its keys are deleted by the same tombstones. Cost: one binary search for each pair of a table that has range tombstones and
//! an older table that overlaps it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::plan_parts::input_of;
use crate::{
    compaction::plan::{Action, InProgress, Plan, PlanSpec, Reason},
    key::{Readers, Sequence},
    range_tombstone::Fragments,
    table::properties::TableSummary,
    version::{
        handle::Table,
        level::{LEVELED_RUN_AGE, Run},
        partition::Partition,
        version::KeyspaceVersion,
    },
};

/// A plan is due if it reclaims this share of the bytes that it rewrites.
const DUE_SHARE: f64 = 0.25;

/// Bytes of an entry in addition to its key and value, approximately.
const ENTRY_OVERHEAD: f64 = 8.0;

/// Which entries are garbage, given the readers.
pub(super) struct Garbage<'a> {
    readers: &'a Readers,
}

impl<'a> Garbage<'a> {
    pub(super) const fn new(readers: &'a Readers) -> Self {
        Self { readers }
    }

    /// Whether a rewrite of the table alone may reclaim bytes.
    pub(super) fn is_in(&self, summary: &TableSummary) -> bool {
        summary.has_deletes()
            || self.has_obsolete(summary)
            || summary.expired_count(self.readers.expiry_time) > 0
    }

    /// The bytes of the expired entries of a run, or of their values.
    fn expired_bytes(&self, run: &[Arc<Table>], is_lowest: bool) -> f64 {
        let of_table = |summary: &TableSummary| {
            let each = if is_lowest {
                entry_bytes(summary)
            } else {
                summary.value_bytes as f64 / summary.entry_count.max(1) as f64
            };
            summary.expired_count(self.readers.expiry_time) as f64 * each
        };
        run.iter().map(|table| of_table(table.summary())).sum()
    }

    /// Whether an entry at or above `older` is invisible to all present and later readers if an entry up to `newer` deletes or
    /// replaces it.
    fn hides(&self, newer: Sequence, older: Sequence) -> bool {
        self.first_from(older).is_some_and(|point| newer <= point)
    }

    /// The first read point at or above a sequence number.
    fn first_from(&self, sequence: Sequence) -> Option<Sequence> {
        let points = &self.readers.read_points;
        points.get(points.partition_point(|&point| point < sequence)).copied()
    }

    /// Whether a rewrite of the table drops its obsolete entries, and it has some.
    pub(super) fn has_obsolete(&self, summary: &TableSummary) -> bool {
        summary.obsolete_count > 0 && self.hides(summary.obsolete_since, summary.smallest_sequence)
    }

    /// Whether a job that has all older versions drops the tombstones of the table, and it has some.
    fn has_tombstones(&self, summary: &TableSummary) -> bool {
        let is_seen =
            self.readers.read_points.first().is_some_and(|&oldest| summary.largest_sequence <= oldest);
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
    pub(super) fn reclaimed_bytes(&self, runs: &[&[Arc<Table>]], is_lowest: bool) -> f64 {
        let mut reclaimed = 0.0;
        for (index, run) in runs.iter().enumerate() {
            reclaimed += self.obsolete_bytes(run) + self.expired_bytes(run, is_lowest);
            for summary in run.iter().map(|table| table.summary()) {
                if is_lowest && self.has_tombstones(summary) {
                    reclaimed += tombstone_bytes(summary);
                }
            }
            let older = runs.get(index + 1..).unwrap_or_default();
            reclaimed += self.deleted_bytes(run, older);
        }
        reclaimed + self.covered_bytes(runs)
    }

    /// The bytes of the runs that range tombstones of newer ones reclaim.
    fn covered_bytes(&self, runs: &[&[Arc<Table>]]) -> f64 {
        let deleting = |table: &&Arc<Table>| table.has_range_tombstones();
        if !runs.iter().any(|run| run.iter().any(|table| deleting(&table))) {
            return 0.0;
        }
        let all =
            runs.iter().enumerate().flat_map(|(index, run)| run.iter().map(move |table| (index, table)));
        let by_number: BTreeMap<u64, (usize, &Arc<Table>)> =
            all.map(|(index, table)| (table.number(), (index, table))).collect();
        // Tombstones of several tables may cover the same bytes.
        let mut covered: BTreeMap<u64, u64> = BTreeMap::new();
        for &(index, table) in by_number.values().filter(|(_, table)| deleting(table)) {
            for (number, bytes) in table.covered_bytes() {
                let older = by_number.get(&number).filter(|(other, _)| *other > index);
                if let Some((_, older)) = older
                    && self.hides(table.summary().largest_sequence, older.summary().smallest_sequence)
                {
                    let sum = covered.entry(number).or_default();
                    *sum = (*sum + bytes).min(older.file_bytes());
                }
            }
        }
        covered.values().sum::<u64>() as f64
    }

    /// The bytes of the obsolete entries of a run, which each rewrite of it reclaims.
    pub(super) fn obsolete_bytes(&self, run: &[Arc<Table>]) -> f64 {
        let summaries = run.iter().map(|table| table.summary()).filter(|summary| self.has_obsolete(summary));
        summaries.map(|summary| summary.obsolete_count as f64 * entry_bytes(summary)).sum()
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

/// The time until expired entries may make more plans due: until a further quarter of those of a table is expired.
pub(crate) fn next_expiry(version: &KeyspaceVersion, expiry_time: u64) -> Option<Duration> {
    let partitions = version.partitions.iter().filter(|partition| partition.totals().expires);
    let times =
        partitions.flat_map(|partition| partition.tables()).flat_map(|table| table.summary().expires_at);
    let next = times.filter(|&time| time > expiry_time).min()?;
    // Expired entries are looked for once a second at most.
    Some(Duration::from_millis(next - expiry_time).max(Duration::from_secs(1)))
}

/// Drops the tables whose entries are all expired, unless a table that stays has older entries of their keys.
pub(super) fn pick_expired_tables(
    keyspace: u64,
    partition: &Partition,
    in_progress: &InProgress,
    garbage: &Garbage<'_>,
) -> Option<Plan> {
    if !partition.totals().expires {
        return None;
    }
    let is_expired = |table: &&Arc<Table>| {
        table.summary().is_expired(garbage.readers.expiry_time) && !in_progress.holds(table)
    };
    let runs: Vec<_> = partition.runs().collect();
    let mut dropped: Vec<Vec<Arc<Table>>> = vec![Vec::new(); runs.len()];
    for (index, (_, run)) in runs.iter().enumerate().rev() {
        let older = runs.get(index + 1..).unwrap_or_default();
        let stays = |table: &Arc<Table>, (older, dropped): (&(usize, &Arc<Run>), &Vec<Arc<Table>>)| {
            let mut overlapping = older.1.tables_within(table.bounds()).iter();
            overlapping.any(|older| !dropped.iter().any(|dropped| dropped.number() == older.number()))
        };
        let (_, dropped_before) = dropped.split_at(index + 1);
        let is_dropped = |table: &&Arc<Table>| {
            is_expired(table) && !older.iter().zip(dropped_before).any(|older| stays(table, older))
        };
        let found = run.tables().iter().filter(is_dropped).cloned().collect();
        if let Some(slot) = dropped.get_mut(index) {
            *slot = found;
        }
    }
    drop_plan(keyspace, partition, &runs, dropped)
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
pub(super) fn due_share(reclaimed: f64, bytes: u64) -> Option<f64> {
    let share = (reclaimed / bytes.max(1) as f64).min(1.0);
    (share >= DUE_SHARE).then_some(share)
}

/// Drops the tables whose entries are all deleted by range tombstones.
pub(super) fn pick_deleted_tables(
    keyspace: u64,
    partition: &Partition,
    in_progress: &InProgress,
    garbage: &Garbage<'_>,
) -> Option<Plan> {
    if !partition.has_range_tombstones() {
        return None;
    }
    let runs: Vec<_> = partition.runs().collect();
    let mut deleted: Vec<Vec<Arc<Table>>> = vec![Vec::new(); runs.len()];
    for (index, (_, run)) in runs.iter().enumerate().filter(|(_, (_, run))| run.has_range_tombstones()) {
        for deleting in run.tables() {
            let Some(fragments) = deleting.range_tombstones() else { continue };
            for ((_, older), deleted) in runs.iter().zip(&mut deleted).skip(index + 1) {
                let covered = older.tables_within(deleting.bounds()).iter();
                let covered = covered.filter(|table| !in_progress.holds(table));
                deleted.extend(covered.filter(|table| garbage.is_deleted(table, fragments)).cloned());
            }
        }
    }
    drop_plan(keyspace, partition, &runs, deleted)
}

/// The plan that drops these tables of each run without reading them.
fn drop_plan(
    keyspace: u64,
    partition: &Partition,
    runs: &[(usize, &Arc<Run>)],
    dropped: Vec<Vec<Arc<Table>>>,
) -> Option<Plan> {
    let inputs = runs.iter().zip(dropped).filter_map(|((level, run), mut tables)| {
        tables.sort_unstable_by(|left, right| left.smallest_key().cmp(right.smallest_key()));
        tables.dedup_by_key(|table| table.number());
        input_of(*level, run.age(), tables)
    });
    let inputs: Vec<_> = inputs.collect();
    let output_level = inputs.first()?.level;
    Plan::new(
        keyspace,
        partition,
        PlanSpec {
            action: Action::Drop,
            reason: Reason::Garbage,
            inputs,
            trivial_moves: Vec::new(),
            output_level,
            output_run_age: LEVELED_RUN_AGE,
            depth: 0,
            score: f64::INFINITY,
        },
    )
}
