//! The plan of a compaction: its inputs, the place of its outputs, and the tables that it must respect. A plain value.

use std::{collections::BTreeSet, ops::Bound, sync::Arc};

use crate::{
    key::{Readers, Sequence},
    observe::steps::{self, Step},
    options::KeyspaceOptions,
    version::{
        edit::{Change, RunPlace, VersionEdit},
        handle::Table,
        key_bounds::{KeyBounds, KeySpan, overlap},
        level::LEVELED_RUN_AGE,
        partition::Partition,
    },
};

/// Input tables of one run.
#[derive(Debug, Clone)]
pub(crate) struct PlanInput {
    pub(crate) level: usize,
    pub(crate) run_age: u64,
    /// In key order.
    pub(crate) tables: Vec<Arc<Table>>,
}

/// How a plan is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The inputs are merged into new tables.
    Merge,
    /// The tables are moved to the output level without a rewrite (trivial move).
    Move,
    /// The tables are removed without being read: range tombstones of newer runs delete all of their entries.
    Drop,
    /// All runs of the partition are merged, and the outputs become new partitions.
    Split,
    /// The partition becomes several at the split keys. Only tables that a split key cuts through are rewritten, each alone.
    Divide,
    /// Adjacent partitions become one; all tables are moved.
    Unite,
}

/// Why a compaction is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// L0 has too many runs or bytes.
    Level0,
    /// A level exceeds its target.
    Size,
    /// Deleted and obsolete entries take much of the tables.
    Garbage,
    /// The program requested it.
    Range,
    /// Reads have lost as much time as the merge takes (`law.rs`).
    Reads,
    /// Runs that are newer than the oldest one take too much space.
    Space,
    /// The level has runs of another layout.
    Layout,
    /// Neighbouring tables of a run are small.
    SmallTables,
}

/// A range whose compaction the program or a scan requested.
#[derive(Debug, Clone)]
pub(crate) struct RangeRequest {
    pub(crate) lower: Bound<Vec<u8>>,
    pub(crate) upper: Bound<Vec<u8>>,
    /// Only tables with entries up to this sequence number are compacted: later writes do not extend the request.
    pub(crate) sequence_max: Sequence,
    /// Tables of the deepest level below this number are rewritten to drop their tombstones and obsolete entries.
    pub(crate) number_max: u64,
    /// The entries that they need stay.
    pub(crate) readers: Readers,
    pub(crate) reason: Reason,
}

impl RangeRequest {
    pub(super) fn bounds(&self) -> KeyBounds<'_> {
        (self.lower.as_ref().map(Vec::as_slice), self.upper.as_ref().map(Vec::as_slice))
    }
}

/// See the head of this file.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) keyspace: u64,
    /// The options for which it was picked: its result is discarded if the keyspace has others meanwhile.
    pub(crate) options: Arc<KeyspaceOptions>,
    pub(crate) partition: u64,
    /// The partitions that the job replaces by others. No other job works in them.
    pub(crate) replaced_partitions: Vec<u64>,
    pub(crate) action: Action,
    pub(crate) reason: Reason,
    /// Newest first, in the order of reads.
    pub(crate) inputs: Vec<PlanInput>,
    /// Of a merge: tables of the same runs that overlap nothing and are moved to the output level without a rewrite.
    pub(crate) trivial_moves: Vec<PlanInput>,
    /// Of a merge: the smallest keys, in order, of the tables that will be between its outputs in the same run. Of a division: the
    /// lower bounds of all new partitions but the first.
    pub(crate) split_keys: Vec<Vec<u8>>,
    pub(crate) output_level: usize,
    pub(crate) output_run_age: u64,
    /// Position of the output level in per-level options.
    pub(crate) depth: usize,
    /// The keys of the inputs: no other job may write to the output level between them.
    pub(crate) span: KeySpan,
    /// Tables of the level below the outputs that overlap them.
    pub(crate) grandparents: Vec<Arc<Table>>,
    /// Tables outside of the job that may hold older versions of its keys, run by run, each in key order. A tombstone for a key of
    /// such a table must be kept.
    pub(crate) older: Vec<Vec<Arc<Table>>>,
    /// Its urgency. Plans for garbage are due below 1.
    pub(crate) score: f64,
    /// The maximum bytes that it will read: tables that range tombstones cover completely are not read.
    pub(crate) bytes_read: u64,
    /// The approximate maximum of the bytes that it will write.
    pub(crate) bytes_written: u64,
}

/// The decisions of the picker; the rest of a plan follows from the partition.
#[derive(Debug)]
pub(super) struct PlanSpec {
    pub(super) action: Action,
    pub(super) reason: Reason,
    pub(super) inputs: Vec<PlanInput>,
    pub(super) trivial_moves: Vec<PlanInput>,
    pub(super) output_level: usize,
    pub(super) output_run_age: u64,
    pub(super) depth: usize,
    pub(super) score: f64,
}

impl Plan {
    /// `None` for a spec without tables.
    pub(super) fn new(keyspace: u64, partition: &Partition, spec: PlanSpec) -> Option<Self> {
        let PlanSpec { action, reason, inputs, trivial_moves, output_level, output_run_age, depth, score } =
            spec;
        let all = inputs.iter().chain(&trivial_moves).flat_map(|input| &input.tables);
        let span = KeySpan::around(all.clone().map(|table| table.bounds()))?;
        let bounds = span.bounds();
        let numbers: BTreeSet<u64> = all.map(|table| table.number()).collect();
        // Only merges into the one run of a level take parts of the level above: their size depends on the overlap.
        let below = (output_run_age == LEVELED_RUN_AGE).then(|| partition.level(output_level + 1)).flatten();
        let below = below.and_then(|level| level.run(LEVELED_RUN_AGE));
        let grandparents = below.map(|run| run.tables_within(bounds).to_vec()).unwrap_or_default();
        let older = older_tables(partition, &inputs, &numbers, bounds);
        let mut split_keys = Vec::new();
        if action == Action::Merge {
            let level = partition.level(output_level);
            let others = level.and_then(|level| level.run(output_run_age)).into_iter();
            let others = others.flat_map(|run| run.tables_within(bounds));
            let others = others.filter(|table| !numbers.contains(&table.number()));
            let moved = trivial_moves.iter().flat_map(|input| &input.tables);
            split_keys.extend(others.chain(moved).map(|table| table.smallest_key().to_vec()));
            split_keys.sort_unstable();
        }
        let bytes_read = match action {
            Action::Merge | Action::Split => {
                inputs.iter().flat_map(|input| &input.tables).map(|table| table.file_bytes()).sum()
            }
            Action::Move | Action::Drop | Action::Divide | Action::Unite => 0,
        };
        let replaced_partitions = match action {
            Action::Split | Action::Divide => vec![partition.id],
            _ => Vec::new(),
        };
        Some(Self {
            keyspace,
            options: Arc::default(),
            partition: partition.id,
            replaced_partitions,
            action,
            reason,
            inputs,
            trivial_moves,
            split_keys,
            output_level,
            output_run_age,
            depth,
            span,
            grandparents,
            older,
            score,
            bytes_read,
            bytes_written: bytes_read,
        })
    }

    /// A plan that unites adjacent partitions, of which there are at least two.
    pub(super) fn unite(
        keyspace: u64,
        partitions: &[Arc<Partition>],
        reason: Reason,
        score: f64,
    ) -> Option<Self> {
        let first = partitions.first().filter(|_| partitions.len() > 1)?;
        Some(Self {
            keyspace,
            options: Arc::default(),
            partition: first.id,
            replaced_partitions: partitions.iter().map(|partition| partition.id).collect(),
            action: Action::Unite,
            reason,
            inputs: Vec::new(),
            trivial_moves: Vec::new(),
            split_keys: Vec::new(),
            output_level: 0,
            output_run_age: LEVELED_RUN_AGE,
            depth: 0,
            span: KeySpan { lower: first.lower.clone(), end: Bound::Unbounded },
            grandparents: Vec::new(),
            older: Vec::new(),
            score,
            bytes_read: 0,
            bytes_written: 0,
        })
    }

    /// The plan of a keyspace with these options.
    pub(super) fn with_options(self, options: &Arc<KeyspaceOptions>) -> Self {
        Self { options: Arc::clone(options), ..self }
    }

    /// The partitions in which the job works.
    pub(super) fn partitions(&self) -> BTreeSet<u64> {
        self.replaced_partitions.iter().copied().chain([self.partition]).collect()
    }

    /// All tables that are removed from their places.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.inputs().flat_map(|input| &input.tables)
    }

    /// Keeps no table any more.
    pub(super) fn release_tables(&mut self) {
        self.inputs.clear();
        self.trivial_moves.clear();
        self.grandparents.clear();
        self.older.clear();
    }

    fn inputs(&self) -> impl Iterator<Item = &PlanInput> {
        self.inputs.iter().chain(&self.trivial_moves)
    }

    /// The tables that are moved to the output level without a rewrite.
    pub(crate) fn moved_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        let inputs = match self.action {
            Action::Merge => self.trivial_moves.as_slice(),
            Action::Move => self.inputs.as_slice(),
            Action::Drop | Action::Split | Action::Divide | Action::Unite => &[],
        };
        inputs.iter().flat_map(|input| &input.tables)
    }

    /// The tables that are merged.
    pub(crate) fn merged_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        let inputs = match self.action {
            Action::Merge | Action::Split => self.inputs.as_slice(),
            Action::Move | Action::Drop | Action::Divide | Action::Unite => &[],
        };
        inputs.iter().flat_map(|input| &input.tables)
    }

    /// Level of the newest input.
    pub(crate) fn level(&self) -> usize {
        self.inputs.first().map_or(0, |input| input.level)
    }

    /// Bytes of the inputs of a level.
    pub(crate) fn bytes_of(&self, level: usize) -> u64 {
        let inputs = self.inputs().filter(|input| input.level == level);
        inputs.flat_map(|input| &input.tables).map(|table| table.file_bytes()).sum()
    }

    fn place(&self, level: usize, run_age: u64) -> RunPlace {
        RunPlace { keyspace: self.keyspace, partition: self.partition, level: level as u8, run_age }
    }

    /// The place of the outputs.
    pub(crate) fn output_place(&self) -> RunPlace {
        self.place(self.output_level, self.output_run_age)
    }

    /// The edit that removes all tables from their places and adds the moved ones to the output level.
    pub(crate) fn move_edit(&self) -> VersionEdit {
        let removals = self.inputs().flat_map(|input| {
            let place = self.place(input.level, input.run_age);
            input.tables.iter().map(move |table| Change::RemoveTable { place, number: table.number() })
        });
        let additions = self.moved_tables().map(|table| Change::AddTable {
            place: self.output_place(),
            summary: table.summary().clone(),
            filter_file: table.filter_file(),
            is_ingested: table.is_ingested(),
        });
        VersionEdit { changes: removals.chain(additions).collect() }
    }
}

/// Tables within the bounds that reads search after the newest input and that are not in the job (`numbers`).
fn older_tables(
    partition: &Partition,
    inputs: &[PlanInput],
    numbers: &BTreeSet<u64>,
    bounds: KeyBounds<'_>,
) -> Vec<Vec<Arc<Table>>> {
    let Some(newest) = inputs.first() else {
        return Vec::new();
    };
    let is_older =
        |level: usize, age: u64| level > newest.level || level == newest.level && age < newest.run_age;
    let runs = partition.runs().filter(|(level, run)| is_older(*level, run.age()));
    let tables = runs.map(|(_, run)| {
        let within = run.tables_within(bounds).iter();
        within.filter(|table| !numbers.contains(&table.number())).map(Arc::clone).collect::<Vec<_>>()
    });
    tables.filter(|tables| !tables.is_empty()).collect()
}

/// The input tables of running jobs and the key ranges that they write to, and the keys of entries that memtables retain.
#[derive(Debug, Clone, Default)]
pub(crate) struct InProgress {
    tables: BTreeSet<u64>,
    outputs: Vec<Output>,
    /// Partitions that running jobs replace.
    replaced_partitions: BTreeSet<u64>,
    retained: RetainedKeys,
}

/// The keys between which memtables retain entries.
#[derive(Debug, Clone, Default)]
struct RetainedKeys {
    /// In ascending order.
    firsts: Vec<Vec<u8>>,
    /// For each first key, the greatest last key of the spans up to it.
    greatest_lasts: Vec<Vec<u8>>,
}

impl RetainedKeys {
    fn new(mut spans: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        spans.sort_unstable();
        let mut keys = Self::default();
        for (first, last) in spans {
            let greatest = keys.greatest_lasts.last().filter(|greatest| **greatest > last).cloned();
            keys.greatest_lasts.push(greatest.unwrap_or(last));
            keys.firsts.push(first);
        }
        keys
    }

    /// Whether a span has keys within these bounds (included, excluded). Cost: O(log n) comparisons.
    fn overlap(&self, lower: &[u8], upper: Option<&[u8]>) -> bool {
        let is_below = |first: &Vec<u8>| {
            steps::count(Step::ComparedRetained, 1);
            upper.is_none_or(|upper| first.as_slice() < upper)
        };
        let count = self.firsts.partition_point(is_below);
        let last = count.checked_sub(1).and_then(|index| self.greatest_lasts.get(index));
        last.is_some_and(|last| last.as_slice() >= lower)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Output {
    partition: u64,
    level: usize,
    span: KeySpan,
}

impl Output {
    fn of(plan: &Plan) -> Self {
        Self { partition: plan.partition, level: plan.output_level, span: plan.span.clone() }
    }
}

impl InProgress {
    /// Claims the tables and the range of a plan.
    pub(crate) fn begin(&mut self, plan: &Plan) {
        self.tables.extend(plan.tables().map(|table| table.number()));
        self.outputs.push(Output::of(plan));
        self.replaced_partitions.extend(&plan.replaced_partitions);
    }

    /// Releases a plan, after its edit was installed or has failed.
    pub(crate) fn end(&mut self, plan: &Plan) {
        for table in plan.tables() {
            self.tables.remove(&table.number());
        }
        let output = Output::of(plan);
        if let Some(position) = self.outputs.iter().position(|other| *other == output) {
            self.outputs.swap_remove(position);
        }
        for partition in &plan.replaced_partitions {
            self.replaced_partitions.remove(partition);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    pub(crate) fn holds(&self, table: &Table) -> bool {
        self.tables.contains(&table.number())
    }

    pub(super) fn holds_any<'a>(&self, tables: impl IntoIterator<Item = &'a Arc<Table>>) -> bool {
        tables.into_iter().any(|table| self.holds(table))
    }

    /// Whether a job replaces the partition: no other job may begin in it.
    pub(super) fn replaces(&self, partition: u64) -> bool {
        self.replaced_partitions.contains(&partition)
    }

    /// The same jobs, while memtables retain entries between these keys.
    pub(crate) fn with_retained(&self, retained: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        Self { retained: RetainedKeys::new(retained), ..self.clone() }
    }

    /// The same jobs, as if one replaced these partitions: no other job may begin in them.
    pub(super) fn excluding(&self, partitions: &[u64]) -> Self {
        let mut excluding = self.clone();
        excluding.replaced_partitions.extend(partitions);
        excluding
    }

    /// Whether memtables retain entries of a partition with these bounds (included, excluded).
    pub(super) fn has_retained(&self, lower: &[u8], upper: Option<&[u8]>) -> bool {
        self.retained.overlap(lower, upper)
    }

    /// Whether a job works in the partition.
    pub(super) fn is_busy(&self, partition: u64) -> bool {
        self.replaces(partition) || self.outputs.iter().any(|output| output.partition == partition)
    }

    /// Whether a job writes to this level between these keys.
    pub(super) fn writes_within(&self, partition: u64, level: usize, bounds: KeyBounds<'_>) -> bool {
        self.outputs.iter().any(|output| {
            output.partition == partition && output.level == level && overlap(output.span.bounds(), bounds)
        })
    }
}

#[cfg(test)]
mod tests;
