//! The tiered strategy: several runs in each level, the newest first.
//!
//! 1. A level with `runs_per_level` runs (L0: `level0_runs`) is merged, all of its runs, into one run of the next level. The next level
//!    is not rewritten: each entry is written once per level. The deepest possible level is merged in place.
//! 2. The age of an output is that of its newest input. A job takes all runs of its levels, and no other job takes any of them
//!    meanwhile, so a deeper level never gets newer entries than a level above, and ages keep the order within a level. Two jobs of
//!    different levels, and flushes, run concurrently.
//! 3. **Space.** When the runs below L0 that are newer than the oldest run have `space_amplification_percent` of its bytes, all runs
//!    below L0 are merged into the place of the oldest one. While that is due, only L0 is compacted, so that it can begin. So obsolete
//!    entries take at most this share, besides those of L0 and of running jobs.
//! 4. Trivial moves: runs that are disjoint are moved and become one run without a rewrite. Next to a merge, tables that overlap no other
//!    table of the job are moved.
//! 5. Garbage: a table is rewritten in place, or adjacent levels are merged, if that reclaims a quarter of the bytes
//!    (`strategy/garbage.rs`). Obsolete tombstones are dropped by every job where nothing older is below.
//! 6. A requested range is merged into the oldest run: the tables of all runs within the smallest span that cuts through no table.
//!    A scan requests at most the input of one job. The outputs have entries that are newer than others of newer runs, but not of
//!    their keys: below L0, summaries of tables do not show the order of runs.
//!
//! With T runs per level, n flushes of m bytes and no overwrites there are about log(n) / log(T) levels with at most T - 1 runs each, and
//! each entry is written once by its flush and once per level below.
//!
//! **Change of layout.** A run of the leveled layout is the oldest of its level: nothing has to be converted. It is merged when the
//! space rule or its level requires it.

use std::sync::Arc;

use super::{
    Due, RangePick, Strategy,
    garbage::{Garbage, due_share},
    plan_parts::{are_disjoint, bytes_of, input, input_of, span_of},
    small_tables::small_neighbours,
};
use crate::{
    compaction::{
        plan::{Action, InProgress, Plan, PlanInput, PlanSpec, RangeRequest, Reason},
        targets::PickerConfig,
    },
    version::{handle::Table, key_bounds::KeySpan, level::Run, partition::Partition},
};

/// See the head of this file.
pub(super) struct Tiered<'a> {
    pub(super) keyspace: u64,
    pub(super) partition: &'a Partition,
    pub(super) in_progress: &'a InProgress,
    pub(super) config: &'a PickerConfig,
    pub(super) runs_per_level: usize,
    pub(super) space_amplification_percent: u64,
}

/// Where a job puts its outputs, and why it runs.
#[derive(Clone, Copy)]
struct Target {
    level: usize,
    run_age: u64,
    reason: Reason,
    score: f64,
}

/// A run with its level.
type LeveledRun<'a> = (usize, &'a Arc<Run>);

impl<'a> Tiered<'a> {
    fn runs_of(&self, level: usize) -> &'a [Arc<Run>] {
        self.partition.level(level).map_or(&[], |level| level.runs())
    }

    /// All runs of the levels from `level` on, newest first.
    fn runs_from(&self, level: usize) -> Vec<LeveledRun<'a>> {
        self.partition.runs().filter(|(other, _)| *other >= level).collect()
    }

    const fn deepest_level(&self) -> usize {
        self.config.level_count - 1
    }

    fn is_held(&self, run: &Run) -> bool {
        self.in_progress.holds_any(run.tables())
    }

    /// The number of runs of a level relative to the number at which it is merged; 0 while a job has some of them.
    fn score(&self, level: usize) -> f64 {
        let runs = self.runs_of(level);
        let trigger = if level == 0 { self.config.level0_runs } else { self.runs_per_level };
        if runs.iter().any(|run| self.is_held(run)) {
            return 0.0;
        }
        runs.len() as f64 / trigger as f64
    }

    /// The bytes below L0 that are newer than the oldest run, relative to the share of its bytes at which all runs are merged.
    fn space_score(&self) -> f64 {
        let runs = self.runs_from(1);
        let Some(((_, oldest), newer)) = runs.split_last() else { return 0.0 };
        let newer: u64 = newer.iter().map(|(_, run)| run.bytes()).sum();
        let limit = oldest.bytes() as f64 * self.space_amplification_percent as f64 / 100.0;
        newer as f64 / limit.max(1.0)
    }

    /// Merges or moves whole runs, which are given newest first.
    fn pick_runs(&self, runs: &[LeveledRun<'a>], target: Target) -> Option<Plan> {
        let taken: Vec<&Arc<Run>> = runs.iter().map(|(_, run)| *run).collect();
        // The output is newer than the other runs of its level. After a union of partitions these may have the age of a newer run.
        let is_other = |run: &&Arc<Run>| !taken.iter().any(|taken| Arc::ptr_eq(taken, run));
        let others = self.runs_of(target.level).iter().filter(is_other);
        let run_age = others.fold(target.run_age, |age, other| age.max(other.age().saturating_add(1)));
        let target = Target { run_age, ..target };
        if taken.is_empty() || taken.iter().any(|run| self.is_held(run)) {
            return None;
        }
        // Tables of both levels are written with the same options.
        let is_alike = |level: usize| self.config.has_same_options(level, target.level);
        if are_disjoint(&taken) && runs.iter().all(|(level, _)| is_alike(*level)) {
            let inputs = runs.iter().map(|(level, run)| input(*level, run.age(), run.tables())).collect();
            return self.plan(Action::Move, inputs, Vec::new(), target);
        }
        let is_trivial = |level: usize, run: &Arc<Run>, table: &Table| {
            let mut others = taken.iter().filter(|other| !Arc::ptr_eq(other, run));
            self.config.is_worth_moving(table)
                && others.all(|other| other.tables_within(table.bounds()).is_empty())
                && is_alike(level)
        };
        let (mut inputs, mut trivial_moves) = (Vec::new(), Vec::new());
        for (level, run) in runs {
            let (trivial, merged): (Vec<_>, Vec<_>) =
                run.tables().iter().cloned().partition(|table| is_trivial(*level, run, table));
            trivial_moves.extend(input_of(*level, run.age(), trivial));
            inputs.extend(input_of(*level, run.age(), merged));
        }
        self.plan(Action::Merge, inputs, trivial_moves, target)
    }

    fn plan(
        &self,
        action: Action,
        inputs: Vec<PlanInput>,
        trivial_moves: Vec<PlanInput>,
        target: Target,
    ) -> Option<Plan> {
        let Target { level, run_age, reason, score } = target;
        let spec = PlanSpec {
            action,
            reason,
            inputs,
            trivial_moves,
            output_level: level,
            output_run_age: run_age,
            depth: level,
            score,
        };
        Plan::new(self.keyspace, self.partition, spec)
    }

    /// Merges all runs of a level into one run of the next level.
    fn pick_level(&self, level: usize, reason: Reason, score: f64) -> Option<Plan> {
        let runs: Vec<LeveledRun<'a>> = self.runs_of(level).iter().map(|run| (level, run)).collect();
        let run_age = runs.first()?.1.age();
        self.pick_runs(&runs, Target { level: (level + 1).min(self.deepest_level()), run_age, reason, score })
    }

    /// Merges all runs from one level on into one run of the deepest of their levels.
    fn pick_all_from(&self, level: usize, reason: Reason, score: f64) -> Option<Plan> {
        let runs = self.runs_from(level);
        let (run_age, level) = (runs.first()?.1.age(), runs.last()?.0);
        self.pick_runs(&runs, Target { level, run_age, reason, score })
    }

    /// The table whose rewrite in place reclaims the greatest share.
    fn best_rewrite(&self, garbage: &Garbage<'_>) -> Option<(f64, LeveledRun<'a>, &'a Arc<Table>)> {
        let runs = self.runs_from(1);
        let mut best: Option<(f64, LeveledRun<'a>, &'a Arc<Table>)> = None;
        for (index, (level, run)) in runs.iter().enumerate() {
            let older = runs.get(index + 1..).unwrap_or_default();
            for table in
                run.tables().iter().filter(|table| has_garbage(table) && !self.in_progress.holds(table))
            {
                let is_lowest = older.iter().all(|(_, run)| run.tables_within(table.bounds()).is_empty());
                let reclaimed = garbage.reclaimed_bytes(&[std::slice::from_ref(table)], is_lowest);
                let share = due_share(reclaimed, table.file_bytes());
                if let Some(share) = share.filter(|share| best.is_none_or(|(other, ..)| *share > other)) {
                    best = Some((share, (*level, run), table));
                }
            }
        }
        best
    }

    /// The adjacent levels whose merge reclaims the greatest share: the share and the runs.
    fn best_merge(&self, garbage: &Garbage<'_>) -> Option<(f64, Vec<LeveledRun<'a>>)> {
        let runs = self.runs_from(0);
        let is_boundary = |index: &usize| {
            runs.get(*index).map(|run| run.0) != runs.get(index.wrapping_sub(1)).map(|run| run.0)
        };
        let boundaries: Vec<usize> = (0..=runs.len()).filter(is_boundary).collect();
        let mut best: Option<(f64, Vec<LeveledRun<'a>>)> = None;
        for (position, &from) in boundaries.iter().enumerate() {
            for &to in boundaries.iter().skip(position + 1) {
                let taken = runs.get(from..to).unwrap_or_default();
                let tables: Vec<&[Arc<Table>]> = taken.iter().map(|(_, run)| run.tables()).collect();
                if taken.len() < 2 || !tables.iter().any(|run| run.iter().any(|table| has_garbage(table))) {
                    continue;
                }
                let bytes = tables.iter().map(|run| bytes_of(run)).sum();
                let span = KeySpan::around(tables.iter().copied().flatten().map(|table| table.bounds()))?;
                let mut older = runs.iter().skip(to);
                let is_lowest = older.all(|(_, run)| run.tables_within(span.bounds()).is_empty());
                let share = due_share(garbage.reclaimed_bytes(&tables, is_lowest), bytes);
                let is_free = || taken.iter().all(|(_, run)| !self.is_held(run));
                let is_better = |share: &f64| best.as_ref().is_none_or(|(other, _)| share > other);
                if let Some(share) = share.filter(is_better).filter(|_| is_free()) {
                    best = Some((share, taken.to_vec()));
                }
            }
        }
        best
    }

    /// Rewrites a table in place.
    fn rewrite(
        &self,
        (level, run): LeveledRun<'a>,
        table: &Arc<Table>,
        reason: Reason,
        score: f64,
    ) -> Option<Plan> {
        let target = Target { level, run_age: run.age(), reason, score };
        self.plan(
            Action::Merge,
            vec![input(level, run.age(), std::slice::from_ref(table))],
            Vec::new(),
            target,
        )
    }

    /// Merges the tables of all runs below L0 within a span into the oldest run that has some. `None` if running jobs use them.
    fn pick_span(&self, span: KeySpan, reason: Reason) -> Option<Plan> {
        let runs = self.runs_from(1);
        let mut span = span;
        // Until no table is cut through.
        let inputs = loop {
            let within = |(level, run): &LeveledRun<'a>| {
                input_of(*level, run.age(), run.tables_within(span.bounds()).to_vec())
            };
            let inputs: Vec<PlanInput> = runs.iter().filter_map(within).collect();
            let tables = inputs.iter().flat_map(|input| &input.tables);
            let range = KeySpan::around(tables.map(|table| table.bounds()).chain([span.bounds()]))?;
            if range == span {
                break inputs;
            }
            span = range;
        };
        let oldest = inputs.last()?;
        if inputs.iter().any(|input| self.in_progress.holds_any(&input.tables)) {
            return None;
        }
        let target = Target { level: oldest.level, run_age: oldest.run_age, reason, score: 1.0 };
        self.plan(Action::Merge, inputs, Vec::new(), target)
    }

    /// Tables of the range in the only run that has some, rewritten in place for their garbage.
    fn pick_rewrite(&self, run: LeveledRun<'a>, request: &RangeRequest) -> RangePick {
        let garbage = Garbage::new(&request.readers);
        let mut is_blocked = false;
        for table in run.1.tables_within(request.bounds()) {
            let summary = table.summary();
            let is_due = garbage.is_in(summary);
            if !is_due || summary.number >= request.number_max {
                continue;
            }
            if self.in_progress.holds(table) {
                is_blocked = true;
            } else if let Some(plan) = self.rewrite(run, table, request.reason, 1.0) {
                return RangePick::Plan(Box::new(plan));
            }
        }
        if is_blocked { RangePick::Blocked } else { RangePick::Done }
    }
}

impl Strategy for Tiered<'_> {
    fn due(&self) -> Vec<Due> {
        let space = self.space_score();
        let is_space_due = space >= 1.0;
        let levels = if is_space_due { 1 } else { self.partition.levels().len() };
        let scores = (0..levels).map(|level| (self.score(level), level));
        let due = scores.filter(|(score, _)| *score >= 1.0).map(|(score, level)| {
            let reason = if level == 0 { Reason::Level0 } else { Reason::Size };
            Due { score, level, reason }
        });
        due.chain(is_space_due.then_some(Due { score: space, level: 1, reason: Reason::Space })).collect()
    }

    fn pick_due(&self, due: &Due, _: &Garbage<'_>) -> Option<Plan> {
        match due.reason {
            Reason::Space => self.pick_all_from(due.level, due.reason, due.score),
            _ => self.pick_level(due.level, due.reason, due.score),
        }
    }

    fn pick_garbage(&self, garbage: &Garbage<'_>) -> Option<Plan> {
        let rewrite = self.best_rewrite(garbage);
        let merge = self.best_merge(garbage);
        match (rewrite, merge) {
            (Some((share, run, table)), merge) if merge.as_ref().is_none_or(|(other, _)| share >= *other) => {
                self.rewrite(run, table, Reason::Garbage, share)
            }
            (_, Some((score, runs))) => {
                let (run_age, level) = (runs.first()?.1.age(), runs.last()?.0.max(1));
                self.pick_runs(&runs, Target { level, run_age, reason: Reason::Garbage, score })
            }
            _ => None,
        }
    }

    fn pick_range(&self, request: &RangeRequest) -> RangePick {
        let bounds = request.bounds();
        let is_meant = |table: &Arc<Table>| table.summary().smallest_sequence <= request.sequence_max;
        let has_meant = |run: &Run| run.tables_within(bounds).iter().any(is_meant);
        let level0 = self.runs_of(0);
        if let Some(newest) = level0.iter().position(|run| has_meant(run)) {
            let runs = level0.iter().skip(newest).map(|run| (0, run)).collect::<Vec<_>>();
            let run_age = runs.first().map_or(0, |(_, run)| run.age());
            let target = Target { level: 1, run_age, reason: request.reason, score: 1.0 };
            // One job takes from L0 at a time.
            let is_free = level0.iter().all(|run| !self.is_held(run));
            let plan = is_free.then(|| self.pick_runs(&runs, target)).flatten();
            return plan.map_or(RangePick::Blocked, |plan| RangePick::Plan(Box::new(plan)));
        }
        let mut runs = self.runs_from(1);
        runs.retain(|(_, run)| has_meant(run));
        let runs_of: Vec<&Arc<Run>> = runs.iter().map(|(_, run)| *run).collect();
        match (runs.as_slice(), span_of(&runs_of)) {
            ([], _) | (_, None) => RangePick::Done,
            ([run], _) => self.pick_rewrite(*run, request),
            (runs, Some(_)) => {
                let tables = runs.iter().flat_map(|(_, run)| run.tables_within(bounds));
                let Some(span) = KeySpan::around(tables.map(|table| table.bounds())) else {
                    return RangePick::Done;
                };
                match self.pick_span(span, request.reason) {
                    Some(plan) => RangePick::Plan(Box::new(plan)),
                    None => RangePick::Blocked,
                }
            }
        }
    }

    fn pick_small_tables(&self) -> Option<Plan> {
        self.runs_from(1).into_iter().find_map(|(level, run)| {
            // Jobs take whole runs.
            let is_allowed = |_: &[Arc<Table>]| !self.is_held(run);
            let tables = small_neighbours(run, self.in_progress, self.config, is_allowed)?;
            let target = Target { level, run_age: run.age(), reason: Reason::SmallTables, score: 0.0 };
            self.plan(Action::Merge, vec![input(level, run.age(), tables)], Vec::new(), target)
        })
    }

    fn pending_bytes(&self) -> u64 {
        let level_bytes = |level: usize| self.partition.level(level).map_or(0, |level| level.bytes());
        let is_due = |level: &usize| self.score(*level) >= 1.0;
        let deeper: u64 = if self.space_score() >= 1.0 {
            (1..self.partition.levels().len()).map(level_bytes).sum()
        } else {
            (1..self.partition.levels().len()).filter(is_due).map(level_bytes).sum()
        };
        deeper + Some(0).filter(is_due).map_or(0, level_bytes)
    }
}

/// Whether a table may have deleted, obsolete or expired entries.
fn has_garbage(table: &Table) -> bool {
    table.summary().may_have_garbage()
}
