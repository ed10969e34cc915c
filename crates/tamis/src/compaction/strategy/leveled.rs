//! The leveled strategy: many runs in L0, one run in each deeper level.
//!
//! 1. Each level has a score: L0 by runs and bytes, a deeper level by its bytes relative to its target (`targets.rs`).
//! 2. The oldest runs of L0 are compacted, oldest first and completely, so that a newer version never gets below an older one. One
//!    job per partition takes from L0 at a time.
//!    While these runs are small, compared to the tables of the base level that they overlap, they are merged into one run of L0 instead:
//!    each merge with the base level writes at most about `size_ratio` bytes for each of L0, however small the runs are.
//! 3. From a deeper level the table that overlaps the fewest bytes of the next level is taken, tables with many tombstones before
//!    others, and with it all neighbours that add no bytes of the next level.
//! 4. Trivial moves: tables that overlap nothing in the output level are moved without a rewrite, if both levels use the same options
//!    and the table would not overlap too much of the level below. Next to a merge of L0, tables that overlap none of the
//!    merged ones are moved; only the others add tables of the base level to the merge.
//! 5. Garbage: `leveled/garbage.rs`.
//! 6. Change of layout: a deeper level that still has runs of the tiered layout is *foreign*. All of its runs become one, from the
//!    shallowest level on; they are merged, or moved if they are disjoint. Until then nothing is compacted into or out of the level, and
//!    neither garbage nor a requested range is compacted in its partition.

mod garbage;

use std::sync::Arc;

use super::{
    Due, RangePick, Strategy,
    garbage::Garbage,
    plan_parts::{apart_at_level0, are_disjoint, bytes_of, input, input_of, span_of},
    small_tables::small_neighbours,
};
use crate::{
    compaction::{
        plan::{Action, InProgress, Plan, PlanSpec, RangeRequest, Reason},
        targets::{LevelTargets, PickerConfig, leveled_pending_bytes},
    },
    version::{
        handle::Table,
        key_bounds::{KeyBounds, KeySpan},
        level::{LEVELED_RUN_AGE, Run},
        partition::Partition,
    },
};

/// See the head of this file.
pub(super) struct Leveled<'a> {
    keyspace: u64,
    partition: &'a Partition,
    in_progress: &'a InProgress,
    config: &'a PickerConfig,
    targets: LevelTargets,
}

impl<'a> Leveled<'a> {
    pub(super) fn new(
        keyspace: u64,
        partition: &'a Partition,
        in_progress: &'a InProgress,
        config: &'a PickerConfig,
    ) -> Self {
        Self { keyspace, partition, in_progress, config, targets: LevelTargets::new(partition, config) }
    }

    /// The score of a level: 1 and above is due. Tables of running jobs do not count.
    fn score(&self, level: usize) -> f64 {
        let Some(content) = self.partition.level(level) else {
            return 0.0;
        };
        let is_free = |table: &&Arc<Table>| !self.in_progress.holds(table);
        let bytes: u64 = content.tables().filter(is_free).map(|table| table.file_bytes()).sum();
        if level == 0 {
            let runs = content.runs().iter().filter(|run| !self.in_progress.holds_any(run.tables())).count();
            let by_runs = runs as f64 / self.config.level0_runs as f64;
            return by_runs.max(bytes as f64 / self.config.level0_bytes as f64);
        }
        // Levels above the base level should be empty.
        bytes as f64 / self.targets.of(level).max(1) as f64
    }

    /// Whether a level below L0 has runs of another layout.
    fn is_foreign(&self, level: usize) -> bool {
        let runs = self.partition.level(level).map_or(&[][..], |level| level.runs());
        level > 0 && runs.iter().any(|run| run.age() != LEVELED_RUN_AGE)
    }

    /// The first level that has runs of another layout.
    fn first_foreign(&self) -> Option<usize> {
        (1..self.partition.levels().len()).find(|&level| self.is_foreign(level))
    }

    /// Makes one run of all runs of a foreign level.
    fn pick_conversion(&self, level: usize, reason: Reason, score: f64) -> Option<Plan> {
        let runs: Vec<_> = self.partition.level(level)?.runs().iter().collect();
        if runs.iter().any(|run| self.in_progress.holds_any(run.tables())) {
            return None;
        }
        let action = if are_disjoint(&runs) { Action::Move } else { Action::Merge };
        let mut spec = self.spec(action, reason, score, level);
        spec.inputs = runs.iter().map(|run| input(level, run.age(), run.tables())).collect();
        self.plan(spec)
    }

    fn run_of(&self, level: usize) -> Option<&'a Run> {
        self.partition.level(level)?.run(LEVELED_RUN_AGE).map(Arc::as_ref)
    }

    fn within(&self, level: usize, bounds: KeyBounds<'_>) -> &'a [Arc<Table>] {
        self.run_of(level).map_or(&[], |run| run.tables_within(bounds))
    }

    /// The overlapping tables of the output level; `None` if running jobs use them or write to their range.
    fn free_overlap(&self, output_level: usize, bounds: KeyBounds<'_>) -> Option<&'a [Arc<Table>]> {
        if self.is_foreign(output_level) {
            return None;
        }
        let overlap = self.within(output_level, bounds);
        // The range of the outputs is that of all inputs.
        let all = overlap.iter().map(|table| table.bounds()).chain([bounds]);
        let span = KeySpan::around(all)?;
        let is_blocked = self.in_progress.holds_any(overlap)
            || self.in_progress.writes_within(self.partition.id, output_level, span.bounds());
        (!is_blocked).then_some(overlap)
    }

    /// Whether no table is within the bounds between two levels, and no job writes there.
    fn is_free_between(&self, level: usize, output_level: usize, bounds: KeyBounds<'_>) -> bool {
        (level + 1..output_level).all(|between| {
            self.within(between, bounds).is_empty()
                && !self.is_foreign(between)
                && !self.in_progress.writes_within(self.partition.id, between, bounds)
        })
    }

    fn plan(&self, spec: PlanSpec) -> Option<Plan> {
        Plan::new(self.keyspace, self.partition, spec)
    }

    fn spec(&self, action: Action, reason: Reason, score: f64, output_level: usize) -> PlanSpec {
        let depth = self.targets.depth(output_level);
        PlanSpec {
            action,
            reason,
            inputs: Vec::new(),
            trivial_moves: Vec::new(),
            output_level,
            output_run_age: LEVELED_RUN_AGE,
            depth,
            score,
        }
    }

    /// Whether a table that overlaps nothing in the output level can be moved there without a rewrite.
    fn may_move(&self, table: &Table, level: usize, output_level: usize) -> bool {
        let below = self.within(output_level + 1, table.bounds());
        self.config.has_same_options(self.targets.depth(level), self.targets.depth(output_level))
            && bytes_of(below) <= self.config.grandparent_bytes_max
    }

    /// Compacts the oldest runs of L0 into the base level; up to the run of age `age_max`, if given.
    fn pick_level0(&self, reason: Reason, score: f64, age_max: Option<u64>) -> Option<Plan> {
        let level0 = self.partition.level(0)?;
        if self.in_progress.holds_any(level0.tables()) {
            return None;
        }
        let oldest_first = level0.runs().iter().rev();
        let runs: Vec<&Arc<Run>> =
            oldest_first.take_while(|run| age_max.is_none_or(|age| run.age() <= age)).collect();
        let moved = self.movable_runs(&runs);
        if moved.is_empty() {
            let taken = self.runs_of_a_job(&runs);
            let within =
                if reason == Reason::Level0 { self.merge_within_level0(&taken, score) } else { None };
            return within.or_else(|| self.merge_level0(taken, self.targets.base_level, reason, score));
        }
        let output_level = self.targets.base_level;
        self.free_overlap(output_level, span_of(&moved)?.bounds())?;
        let mut spec = self.spec(Action::Move, reason, score, output_level);
        spec.inputs = moved.iter().rev().map(|run| input(0, run.age(), run.tables())).collect();
        self.plan(spec)
    }

    /// Merges runs of L0 into one run of L0, if the base level has much more bytes between their keys.
    fn merge_within_level0(&self, oldest_first: &[&Arc<Run>], score: f64) -> Option<Plan> {
        let is_overlapping = |table: &&Arc<Table>| {
            let bounds = table.bounds();
            oldest_first.iter().any(|run| !run.tables_within(bounds).is_empty())
        };
        let base = self.within(self.targets.base_level, span_of(oldest_first)?.bounds()).iter();
        let base_bytes: u64 = base.filter(is_overlapping).map(|table| table.file_bytes()).sum();
        let sizes: Vec<u64> = oldest_first.iter().map(|run| run.bytes()).collect();
        if base_bytes <= sizes.iter().sum::<u64>().saturating_mul(self.config.size_ratio) {
            return None;
        }
        let level0 = self.partition.level(0)?.runs();
        let newest = level0.len().checked_sub(oldest_first.len())?;
        let similar = newest..level0.len().checked_sub(first_similar(&sizes))?;
        let runs = level0.get(apart_at_level0(level0, similar)).filter(|runs| runs.len() > 1)?;
        let mut spec = self.spec(Action::Merge, Reason::Level0, score, 0);
        spec.output_run_age = runs.first()?.age();
        spec.inputs = runs.iter().map(|run| input(0, run.age(), run.tables())).collect();
        self.plan(spec)
    }

    /// Merges the oldest runs of L0 into a level; no table of the levels between overlaps them.
    fn merge_level0(
        &self,
        oldest_first: Vec<&'a Arc<Run>>,
        output_level: usize,
        reason: Reason,
        score: f64,
    ) -> Option<Plan> {
        let mut taken = oldest_first;
        let span = span_of(&taken)?;
        let overlap = self.free_overlap(output_level, span.bounds())?;
        let mut spec = self.spec(Action::Merge, reason, score, output_level);
        taken.reverse();
        let is_trivial = |run: &Run, table: &Table| self.may_move_trivially(run, table, &taken, output_level);
        for run in &taken {
            let (trivial, merged): (Vec<_>, Vec<_>) =
                run.tables().iter().cloned().partition(|table| is_trivial(run, table));
            spec.trivial_moves.extend(input_of(0, run.age(), trivial));
            spec.inputs.extend(input_of(0, run.age(), merged));
        }
        // No moved table overlaps any of them.
        let is_overlapping = |table: &&Arc<Table>| {
            let bounds = table.bounds();
            taken.iter().any(|run| !run.tables_within(bounds).is_empty())
        };
        let overlapping = overlap.iter().filter(is_overlapping).cloned().collect();
        spec.inputs.extend(input_of(output_level, LEVELED_RUN_AGE, overlapping));
        self.plan(spec)
    }

    /// Whether a table of a run can be moved while the other tables of the runs are merged. Small tables are merged.
    fn may_move_trivially(&self, run: &Run, table: &Table, runs: &[&Arc<Run>], output_level: usize) -> bool {
        let bounds = table.bounds();
        let others = runs.iter().filter(|other| other.age() != run.age());
        self.config.is_worth_moving(table)
            && self.may_move(table, 0, output_level)
            && self.within(output_level, bounds).is_empty()
            && others.map(|other| other.tables_within(bounds)).all(<[_]>::is_empty)
    }

    /// The oldest runs, up to the maximum input of a job; at least one.
    fn runs_of_a_job<'r>(&self, oldest_first: &[&'r Arc<Run>]) -> Vec<&'r Arc<Run>> {
        let mut bytes = 0;
        let mut taken = Vec::new();
        for &run in oldest_first {
            bytes += run.bytes();
            if !taken.is_empty() && bytes > self.config.input_bytes_max {
                break;
            }
            taken.push(run);
        }
        taken
    }

    /// The oldest runs that can be moved to the base level: they overlap neither it nor each other.
    fn movable_runs<'r>(&self, oldest_first: &[&'r Arc<Run>]) -> Vec<&'r Arc<Run>> {
        let output_level = self.targets.base_level;
        let mut together = Run::new(LEVELED_RUN_AGE);
        let mut taken = Vec::new();
        for &run in oldest_first {
            let is_movable = run.tables().iter().all(|table| {
                let is_apart = together.tables_within(table.bounds()).is_empty()
                    && self.free_overlap(output_level, table.bounds()).is_some_and(<[_]>::is_empty);
                is_apart && self.may_move(table, 0, output_level)
            });
            if !is_movable {
                break;
            }
            for table in run.tables() {
                together.insert(Arc::clone(table));
            }
            taken.push(run);
        }
        // The whole range that they write to must be free too.
        while let Some(span) = span_of(&taken) {
            if !self.in_progress.writes_within(self.partition.id, output_level, span.bounds()) {
                break;
            }
            taken.pop();
        }
        taken
    }

    /// Compacts one table of a level below L0, and the tables that it overlaps, into the next level.
    fn pick_deeper_level(&self, level: usize, score: f64) -> Option<Plan> {
        let run = self.run_of(level)?;
        let candidates = run.tables().iter().enumerate().filter(|(_, table)| !self.in_progress.holds(table));
        let free = candidates.filter_map(|(position, table)| {
            let overlap = self.free_overlap(level + 1, table.bounds())?;
            Some((bytes_of(overlap) as f64 / weight(table), position))
        });
        let (_, position) = free.min_by(|left, right| left.0.total_cmp(&right.0))?;
        self.plan_from(level, position, score, Reason::Size)
    }

    /// The plan for the table at `position` of a level.
    fn plan_from(&self, level: usize, position: usize, score: f64, reason: Reason) -> Option<Plan> {
        let run = self.run_of(level)?;
        let table = run.tables().get(position)?;
        let output_level = level + 1;
        let overlap = self.free_overlap(output_level, table.bounds())?;
        if overlap.is_empty() && self.may_move(table, level, output_level) {
            let mut spec = self.spec(Action::Move, reason, score, output_level);
            spec.inputs.push(input(level, LEVELED_RUN_AGE, std::slice::from_ref(table)));
            return self.plan(spec);
        }
        let mut spec = self.spec(Action::Merge, reason, score, output_level);
        let upper = self.extended(run, position, (level, output_level), overlap);
        spec.inputs.push(input(level, LEVELED_RUN_AGE, upper));
        if !overlap.is_empty() {
            spec.inputs.push(input(output_level, LEVELED_RUN_AGE, overlap));
        }
        self.plan(spec)
    }

    /// The table at `position` with the neighbours that overlap no further tables down to the output level.
    fn extended(
        &self,
        run: &'a Run,
        position: usize,
        (level, output_level): (usize, usize),
        overlap: &'a [Arc<Table>],
    ) -> &'a [Arc<Table>] {
        let alone = run.tables().get(position..=position).unwrap_or_default();
        let Some(span) = KeySpan::around(alone.iter().chain(overlap).map(|table| table.bounds())) else {
            return alone;
        };
        let neighbours = run.tables_within(span.bounds());
        let Some(span) = KeySpan::around(neighbours.iter().map(|table| table.bounds())) else {
            return alone;
        };
        let more = self.free_overlap(output_level, span.bounds());
        let is_worth_it = more.is_some_and(|more| more.len() == overlap.len())
            && self.is_free_between(level, output_level, span.bounds())
            && !self.in_progress.holds_any(neighbours)
            && bytes_of(neighbours) + bytes_of(overlap) <= self.config.input_bytes_max;
        if is_worth_it { neighbours } else { alone }
    }

    fn position_of(&self, level: usize, table: &Table) -> Option<usize> {
        self.run_of(level)?.tables().iter().position(|other| other.number() == table.number())
    }

    /// Tables of the deepest level that hold tombstones, or obsolete entries that no read point needs, rewritten in place.
    fn pick_rewrite(&self, deepest: usize, request: &RangeRequest) -> RangePick {
        if deepest == 0 {
            return RangePick::Done;
        }
        let garbage = Garbage::new(&request.readers);
        let mut is_blocked = false;
        for table in self.within(deepest, request.bounds()) {
            let summary = table.summary();
            let is_due = garbage.is_in(summary);
            if !is_due || summary.number >= request.number_max {
                continue;
            }
            if self.in_progress.holds(table)
                || self.in_progress.writes_within(self.partition.id, deepest, table.bounds())
            {
                is_blocked = true;
                continue;
            }
            if let Some(plan) = self.rewrite(deepest, table, request.reason, 1.0) {
                return RangePick::Plan(Box::new(plan));
            }
        }
        if is_blocked { RangePick::Blocked } else { RangePick::Done }
    }

    /// Rewrites a table in place.
    fn rewrite(&self, level: usize, table: &Arc<Table>, reason: Reason, score: f64) -> Option<Plan> {
        let mut spec = self.spec(Action::Merge, reason, score, level);
        spec.inputs.push(input(level, LEVELED_RUN_AGE, std::slice::from_ref(table)));
        self.plan(spec)
    }
}

impl Strategy for Leveled<'_> {
    fn due(&self) -> Vec<Due> {
        let scores = (0..self.config.level_count - 1).map(|level| (self.score(level), level));
        let scores = scores.filter(|(score, level)| *score >= 1.0 && !self.is_foreign(*level));
        let reason = |level| if level == 0 { Reason::Level0 } else { Reason::Size };
        let due = scores.map(|(score, level)| Due { score, level, reason: reason(level) });
        // L0 may have to wait for it.
        let conversion = self.first_foreign().map(|level| Due {
            score: self.score(0).max(1.0),
            level,
            reason: Reason::Layout,
        });
        due.chain(conversion).collect()
    }

    fn pick_due(&self, due: &Due, _: &Garbage<'_>) -> Option<Plan> {
        match due.reason {
            Reason::Level0 => self.pick_level0(Reason::Level0, due.score, None),
            Reason::Layout => self.pick_conversion(due.level, Reason::Layout, due.score),
            _ => self.pick_deeper_level(due.level, due.score),
        }
    }

    fn pick_garbage(&self, garbage: &Garbage<'_>) -> Option<Plan> {
        if self.first_foreign().is_some() { None } else { self.best_garbage(garbage) }
    }

    fn pick_small_tables(&self) -> Option<Plan> {
        if self.first_foreign().is_some() {
            return None;
        }
        (1..self.partition.levels().len()).find_map(|level| {
            let is_allowed = |tables: &[Arc<Table>]| {
                let span = KeySpan::around(tables.iter().map(|table| table.bounds()));
                // Else the output would be split again.
                span.is_some_and(|span| {
                    bytes_of(self.within(level + 1, span.bounds())) <= self.config.grandparent_bytes_max
                        && !self.in_progress.writes_within(self.partition.id, level, span.bounds())
                })
            };
            let run = self.run_of(level)?;
            let tables = small_neighbours(run, self.in_progress, self.config, is_allowed)?;
            let mut spec = self.spec(Action::Merge, Reason::SmallTables, 0.0, level);
            spec.inputs.push(input(level, LEVELED_RUN_AGE, tables));
            self.plan(spec)
        })
    }

    fn pending_bytes(&self) -> u64 {
        let foreign = (1..self.partition.levels().len()).filter(|&level| self.is_foreign(level));
        let foreign = foreign.filter_map(|level| self.partition.level(level)).map(|level| level.bytes());
        leveled_pending_bytes(self.partition, self.config) + foreign.sum::<u64>()
    }

    fn pick_range(&self, request: &RangeRequest) -> RangePick {
        if let Some(level) = self.first_foreign() {
            let plan = self.pick_conversion(level, request.reason, 1.0);
            return plan.map_or(RangePick::Blocked, |plan| RangePick::Plan(Box::new(plan)));
        }
        let bounds = request.bounds();
        let is_meant = |table: &Table| table.summary().smallest_sequence <= request.sequence_max;
        let newest = self.partition.level(0).and_then(|level0| {
            let mut runs = level0.runs().iter();
            runs.find(|run| run.tables_within(bounds).iter().any(|table| is_meant(table)))
        });
        if let Some(newest) = newest {
            let plan = self.pick_level0(request.reason, 1.0, Some(newest.age()));
            return plan.map_or(RangePick::Blocked, |plan| RangePick::Plan(Box::new(plan)));
        }
        let deepest = self.partition.levels().len().saturating_sub(1);
        let mut is_blocked = false;
        for level in 1..deepest {
            for table in self.within(level, bounds).iter().filter(|table| is_meant(table)) {
                let plan = (!self.in_progress.holds(table)).then(|| self.position_of(level, table)).flatten();
                match plan.and_then(|position| self.plan_from(level, position, 1.0, request.reason)) {
                    Some(plan) => return RangePick::Plan(Box::new(plan)),
                    None => is_blocked = true,
                }
            }
        }
        if is_blocked { RangePick::Blocked } else { self.pick_rewrite(deepest, request) }
    }
}

/// The position after the last size that exceeds the sum of all sizes after it, so that a large run is not rewritten for a few bytes; at most
/// that of the last but one.
fn first_similar(sizes: &[u64]) -> usize {
    let (mut first, mut newer) = (0, 0);
    for (index, &size) in sizes.iter().enumerate().rev() {
        if size > newer && index + 1 < sizes.len() {
            first = index + 1;
            break;
        }
        newer += size;
    }
    first.min(sizes.len().saturating_sub(2))
}

/// The weight of a table: its bytes, up to three times as many if it holds only tombstones, because the deleted entries are dropped
/// with them.
fn weight(table: &Table) -> f64 {
    let summary = table.summary();
    let share = summary.tombstone_count as f64 / summary.entry_count.max(1) as f64;
    (summary.file_bytes.max(1)) as f64 * (1.0 + 2.0 * share)
}
