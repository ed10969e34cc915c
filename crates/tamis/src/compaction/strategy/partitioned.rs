//! The partitioned strategy (RemixDB): many partitions, each with few tables, in runs of which the newer ones have newer entries.
//!
//! 1. A flush adds a run to L0 of each partition that it touches, and rewrites nothing ("minor compaction").
//! 2. A partition with more than `tables_per_partition` tables is compacted. If few bytes have to be rewritten for it, it is divided
//!    (`partitioned/cuts.rs`): tables move to new partitions. Else its newest runs are merged, or it is split, as
//!    `partitioned/decision.rs` decides.
//! 3. Merged runs are in L1, with the age of their newest input. If older runs stay in L0, the output stays there, too. So a merge takes
//!    further runs until all of its entries are newer than those of the runs that stay in L0: the union of partitions makes one run of
//!    tables with different sequence numbers, and of two such runs each may have newer entries than the other.
//! 4. One job at a time works in a partition, and jobs of different partitions run concurrently.
//! 5. Adjacent partitions that together have at most one table's bytes are united ([`super::unite`]).
//! 6. Garbage: all runs of a partition are merged if that reclaims a quarter of its bytes. A requested range is merged into one run
//!    per partition.
//! 7. A flush leaves entries in memory for which it would write too much (`partitioned/abort.rs`).
//!
//! **Change of layout.** All runs of a partition count, at any level. A store of another layout is one large partition, which is
//! divided where its large runs have gaps between tables, and split when it is small enough.
//!
//! Cost: with T tables per partition, an entry is written by its flush, by one or two merges with other small runs, and by one split each
//! time the partition has grown by at most T / M.

mod abort;
mod cuts;
mod decision;

use std::sync::Arc;

pub(crate) use self::{abort::AbortPlan, decision::TABLE_BYTES_FIXED};
use self::{
    abort::Load,
    cuts::{Division, divide},
    decision::{Decision, Limits, RunSize, decide},
};
use super::{
    Due, RangePick, Strategy,
    garbage::{Garbage, due_share},
    plan_parts::{apart_at_level0, input},
};
use crate::{
    compaction::{
        plan::{Action, InProgress, Plan, PlanSpec, RangeRequest, Reason},
        targets::PickerConfig,
    },
    key::Readers,
    options::Layout,
    version::{handle::Table, level::Run, partition::Partition, version::KeyspaceVersion},
};

/// See the head of this file.
pub(super) struct Partitioned<'a> {
    keyspace: u64,
    partition: &'a Partition,
    limits: Limits,
    /// The least bytes of a partition that a division creates.
    division_bytes_min: u64,
    is_busy: bool,
}

/// The partitions whose new entries a flush leaves in memory; none in other layouts. `new_bytes` are the new bytes of each partition, 0 for
/// one that must be flushed, and `memtable_bytes` those of all. `readers` are those of a job that begins now.
pub(crate) fn pick_aborted(
    version: &KeyspaceVersion,
    (new_bytes, memtable_bytes): (&[u64], u64),
    readers: &Readers,
) -> AbortPlan {
    let Layout::Partitioned { tables_per_partition } = version.options.layout else {
        return AbortPlan::default();
    };
    let limits = Limits::new(tables_per_partition, version.options.table_bytes);
    let garbage = Garbage::new(readers);
    let touched = version.partitions.iter().zip(new_bytes).enumerate().filter(|(_, (_, bytes))| **bytes > 0);
    let load = |(index, (partition, bytes)): (usize, (&Arc<Partition>, &u64))| Load {
        partition: index,
        new_bytes: *bytes,
        runs: partition.runs().map(|(_, run)| size_of(run, &garbage)).collect(),
    };
    abort::choose(&touched.map(load).collect::<Vec<_>>(), memtable_bytes, limits)
}

fn size_of(run: &Run, garbage: &Garbage<'_>) -> RunSize {
    let obsolete = garbage.obsolete_bytes(run.tables()) as u64;
    RunSize { table_count: run.tables().len(), bytes: run.bytes().saturating_sub(obsolete) }
}

/// The next job of a partition that has too many tables.
enum Job {
    Divide(Division),
    /// Merge this many of the newest runs.
    Merge(usize),
    Split,
}

/// A run with its level.
type LeveledRun<'a> = (usize, &'a Arc<Run>);

impl<'a> Partitioned<'a> {
    pub(super) fn new(
        keyspace: u64,
        partition: &'a Partition,
        (in_progress, config): (&InProgress, &PickerConfig),
        tables_per_partition: u32,
    ) -> Self {
        let limits = Limits::new(tables_per_partition, config.table_bytes);
        Self {
            keyspace,
            partition,
            limits,
            // Tables are rarely full: three quarters of the bytes of a split.
            division_bytes_min: limits.table_bytes.saturating_mul(limits.tables_after_split as u64 * 3) / 4,
            is_busy: in_progress.is_busy(partition.id),
        }
    }

    /// All runs, newest first.
    fn runs(&self) -> Vec<LeveledRun<'a>> {
        self.partition.runs().collect()
    }

    fn table_count(&self) -> usize {
        self.partition.totals().table_count
    }

    fn is_too_large(&self) -> bool {
        self.table_count() > self.limits.tables_max
    }

    fn score(&self) -> f64 {
        self.table_count() as f64 / self.limits.tables_max as f64
    }

    /// The next job for these runs, which are all, if the partition has too many tables. Running jobs are not considered.
    fn next_job(&self, runs: &[LeveledRun<'_>], garbage: &Garbage<'_>) -> Option<Job> {
        if !self.is_too_large() {
            return None;
        }
        let division = divide(self.partition.tables(), self.division_bytes_min);
        if !division.keys.is_empty() {
            return Some(Job::Divide(division));
        }
        let sizes: Vec<RunSize> = runs.iter().map(|(_, run)| size_of(run, garbage)).collect();
        match decide(&sizes, self.limits) {
            Decision::Keep => None,
            Decision::Major { run_count } => Some(Job::Merge(self.mergeable_count(run_count))),
            Decision::Split => Some(Job::Split),
        }
    }

    /// The plan of the next job.
    fn pick(&self, reason: Reason, score: f64, garbage: &Garbage<'_>) -> Option<Plan> {
        let runs = self.runs();
        match self.next_job(&runs, garbage)? {
            Job::Divide(Division { keys, cut_bytes }) => {
                let plan = self.plan(&runs, Action::Divide, (reason, score), garbage)?;
                Some(Plan { split_keys: keys, bytes_read: cut_bytes, bytes_written: cut_bytes, ..plan })
            }
            Job::Merge(run_count) => {
                let newest = runs.get(..run_count).unwrap_or_default();
                self.plan(newest, Action::Merge, (reason, score), garbage)
            }
            Job::Split => self.plan(&runs, Action::Split, (reason, score), garbage),
        }
    }

    /// A plan for the newest runs.
    fn plan(
        &self,
        runs: &[LeveledRun<'a>],
        action: Action,
        (reason, score): (Reason, f64),
        garbage: &Garbage<'_>,
    ) -> Option<Plan> {
        let (newest, oldest) = (runs.first()?, runs.last()?);
        let next = self.partition.runs().nth(runs.len());
        let output_level = if next.is_some_and(|(level, _)| level == 0) { 0 } else { oldest.0.max(1) };
        let spec = PlanSpec {
            action,
            reason,
            inputs: runs.iter().map(|(level, run)| input(*level, run.age(), run.tables())).collect(),
            trivial_moves: Vec::new(),
            output_level,
            output_run_age: newest.1.age(),
            depth: output_level.min(1),
            score,
        };
        let bytes_written = runs.iter().map(|(_, run)| size_of(run, garbage).bytes).sum();
        Some(Plan { bytes_written, ..Plan::new(self.keyspace, self.partition, spec)? })
    }

    /// At least `run_count` of the newest runs, so that the runs of L0 that stay have only older entries than these.
    fn mergeable_count(&self, run_count: usize) -> usize {
        let level0 = self.partition.level(0).map_or(&[][..], |level| level.runs());
        if run_count >= level0.len() { run_count } else { apart_at_level0(level0, 0..run_count).end }
    }

    fn merge_all(&self, reason: Reason, score: f64, garbage: &Garbage<'_>) -> Option<Plan> {
        self.plan(&self.runs(), Action::Merge, (reason, score), garbage)
    }
}

impl Strategy for Partitioned<'_> {
    fn due(&self) -> Vec<Due> {
        let is_due = !self.is_busy && self.is_too_large();
        is_due.then(|| Due { score: self.score(), level: 0, reason: Reason::Size }).into_iter().collect()
    }

    fn pick_due(&self, due: &Due, garbage: &Garbage<'_>) -> Option<Plan> {
        self.pick(due.reason, due.score, garbage)
    }

    fn pick_garbage(&self, garbage: &Garbage<'_>) -> Option<Plan> {
        if self.is_busy || !self.partition.totals().has_garbage {
            return None;
        }
        let runs: Vec<&[Arc<Table>]> = self.partition.runs().map(|(_, run)| run.tables()).collect();
        let score = due_share(garbage.reclaimed_bytes(&runs, true), self.partition.totals().bytes)?;
        self.merge_all(Reason::Garbage, score, garbage)
    }

    fn pick_range(&self, request: &RangeRequest) -> RangePick {
        let garbage = Garbage::new(&request.readers);
        let is_meant = |table: &Arc<Table>| table.summary().smallest_sequence <= request.sequence_max;
        let has_garbage = |table: &Arc<Table>| {
            let summary = table.summary();
            let is_due = garbage.is_in(summary);
            is_due && summary.number < request.number_max
        };
        let within = |(_, run): (usize, &'_ Arc<Run>)| run.tables_within(request.bounds()).to_vec();
        let mut runs: Vec<Vec<Arc<Table>>> = self.partition.runs().map(within).collect();
        runs.retain(|tables| tables.iter().any(is_meant));
        let is_done = match runs.as_slice() {
            [] => true,
            [tables] => !tables.iter().any(has_garbage),
            _ => false,
        };
        if is_done {
            return RangePick::Done;
        }
        if self.is_busy {
            return RangePick::Blocked;
        }
        // A large partition is divided or split first.
        let plan = self
            .pick(request.reason, 1.0, &garbage)
            .or_else(|| self.merge_all(request.reason, 1.0, &garbage));
        match plan {
            Some(plan) => RangePick::Plan(Box::new(plan)),
            None => RangePick::Done,
        }
    }

    /// No job of this layout moves tables of a partition without a merge.
    fn pick_small_tables(&self) -> Option<Plan> {
        None
    }

    /// Of the next job only. A division that cuts no table reads and writes nothing.
    fn pending_bytes(&self) -> u64 {
        if !self.is_too_large() {
            return 0;
        }
        let runs = self.runs();
        let bytes = |runs: &[LeveledRun<'_>]| runs.iter().map(|(_, run)| run.bytes()).sum();
        // Without read points no entry counts as obsolete.
        match self.next_job(&runs, &Garbage::new(&Readers::default())) {
            None => 0,
            Some(Job::Divide(division)) => division.cut_bytes,
            Some(Job::Merge(run_count)) => bytes(runs.get(..run_count).unwrap_or_default()),
            Some(Job::Split) => bytes(&runs),
        }
    }
}
