//! Replaces partitions by others: splits, divisions and unions ([`super::plan::Action`]).
//!
//! 1. A split merges all runs of the partition, and every few of the output tables become a partition. The bounds of the other two are
//!    in the plan.
//! 2. Tables of the old partitions that a new bound cuts through are rewritten, each alone and in its run.
//! 3. Flushes of the keyspace are paused: they write by partition. Tables that were flushed since the job began are cut in the same way. If
//!    these are many bytes, flushes continue meanwhile, and are paused again afterwards.
//! 4. One edit removes the old partitions and adds the new ones, with moved, rewritten and merged tables. Readers have either all old
//!    partitions or all new ones.
//!
//! No other job works in the old partitions meanwhile (`InProgress::replaces`). A failure at any point leaves the store as it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::{Arc, atomic::Ordering},
};

use super::{
    drop_rules::DropRules,
    job_context::{JobContext, with_job_context},
    merge::{merge_inputs, range_tombstones_of},
    plan::{Action, InProgress, Plan},
    table_sink::{SplitPoint, TableSink, Written},
};
use crate::{
    cursor::{Cursor, run::RunCursor, run_tables::RunTables},
    error::{Error, Result},
    file_name::FileName,
    key::{SEQUENCE_MAX, Sequence},
    options::{Layout, tables_after_split},
    store::{keyspace_state::KeyspaceState, parts::StoreParts},
    table::properties::TableSummary,
    version::{
        edit::{Change, RunPlace, VersionEdit},
        handle::Table,
        partition::Partition,
        version::KeyspaceVersion,
    },
};

/// No flush of the keyspace runs while it exists.
pub(crate) struct FlushPause<'a>(&'a KeyspaceState);

impl<'a> FlushPause<'a> {
    /// `None` if a flush is running.
    pub(crate) fn begin(keyspace: &'a KeyspaceState) -> Option<Self> {
        // Not `then_some`: dropping a pause ends it.
        keyspace.flush_slot.try_take_for_pause().then(|| Self(keyspace))
    }
}

impl Drop for FlushPause<'_> {
    fn drop(&mut self) {
        self.0.flush_slot.give_back();
    }
}

/// The tables of the new partitions.
#[derive(Default)]
struct NewTables {
    /// Lower bounds of the new partitions, in order.
    bounds: Vec<Vec<u8>>,
    /// Numbers of the tables that were merged.
    merged: BTreeSet<u64>,
    /// The outputs of the merge, and their run.
    outputs: Vec<TableSummary>,
    /// The parts of tables that were cut, by the number of the table.
    parts: BTreeMap<u64, Vec<TableSummary>>,
    bytes_read: u64,
}

impl NewTables {
    /// The position of the new partition of a key.
    fn position_of(&self, key: &[u8]) -> usize {
        self.bounds.partition_point(|bound| bound.as_slice() <= key).saturating_sub(1)
    }

    /// Whether a bound cuts through the table.
    fn cuts(&self, table: &Table) -> bool {
        let next = self.bounds.partition_point(|bound| bound.as_slice() <= table.smallest_key());
        self.bounds.get(next).is_some_and(|bound| !table.ends_before(bound))
    }

    /// The tables of the old partitions that are still to be cut, with their places.
    fn uncut<'a>(
        &self,
        version: &'a KeyspaceVersion,
        plan: &'a Plan,
    ) -> impl Iterator<Item = (RunPlace, &'a Arc<Table>)> {
        let runs = partitions_of(version, plan).flat_map(move |(_, partition)| {
            partition.runs().map(move |(level, run)| (place_of(version, partition, (level, run.age())), run))
        });
        let tables = runs.flat_map(|(place, run)| run.tables().iter().map(move |table| (place, table)));
        tables.filter(|(_, table)| {
            let number = table.number();
            !self.merged.contains(&number) && !self.parts.contains_key(&number) && self.cuts(table)
        })
    }

    fn written(&self) -> impl Iterator<Item = &TableSummary> {
        self.outputs.iter().chain(self.parts.values().flatten())
    }

    fn files(&self) -> Vec<FileName> {
        self.written().map(|summary| FileName::Table(summary.number)).collect()
    }
}

/// The result of a job.
#[derive(Debug)]
pub(super) struct Repartitioned {
    pub(super) partition_count: usize,
    pub(super) bytes_read: u64,
    pub(super) written: Written,
}

impl StoreParts {
    /// Runs a plan that replaces partitions, and installs the result; `between_tables` is called before each output table. `None`: the
    /// partitions can't be replaced any more.
    ///
    /// # Errors
    /// Those of the file system and of damaged inputs: the partitions stay as they were, and the plan can be tried again.
    pub(super) fn repartition(
        &self,
        keyspace: &KeyspaceState,
        plan: &Plan,
        between_tables: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<Option<Repartitioned>> {
        let mut tables = NewTables::default();
        let result = self.write_and_install(keyspace, plan, between_tables, &mut tables);
        if !matches!(result, Ok(true)) {
            self.installer.discard(&tables.files());
        }
        match result {
            Ok(true) => {}
            // No failure of the job.
            Ok(false) | Err(Error::KeyspaceDropped) => return Ok(None),
            Err(error) => return Err(error),
        }
        let mut written = Written::default();
        tables.written().for_each(|summary| written.add(summary));
        let NewTables { bounds, bytes_read, .. } = tables;
        Ok(Some(Repartitioned { partition_count: bounds.len(), bytes_read, written }))
    }

    /// `false`: a flush has retained entries of partitions that were to be united, or the keyspace has other options than the plan.
    fn write_and_install(
        &self,
        keyspace: &KeyspaceState,
        plan: &Plan,
        between_tables: &dyn Fn() -> ControlFlow<()>,
        tables: &mut NewTables,
    ) -> Result<bool> {
        self.with_version(keyspace, between_tables, |context| self.write_outputs(context, plan, tables))?;
        let _pause = self.cut_and_pause(keyspace, plan, between_tables, tables)?;
        let version = Arc::clone(&keyspace.read_state.load().version);
        let retained = InProgress::default().with_retained(keyspace.retained());
        let has_retained = |(index, partition): (usize, &Arc<Partition>)| {
            retained.has_retained(&partition.lower, version.upper_of(index))
        };
        if plan.action == Action::Unite && partitions_of(&version, plan).any(has_retained) {
            return Ok(false);
        }
        let edit = edit_of(&version, plan, tables, &|| self.installer.versions.new_partition_id());
        self.install_compaction(keyspace, plan, edit, &[])
    }

    /// Steps 2 and 3: returns when flushes are paused and no table is left to cut.
    fn cut_and_pause<'k>(
        &self,
        keyspace: &'k KeyspaceState,
        plan: &Plan,
        between_tables: &dyn Fn() -> ControlFlow<()>,
        tables: &mut NewTables,
    ) -> Result<FlushPause<'k>> {
        // Flushes are paused while tables of at most these bytes are cut.
        let bytes_max = keyspace.options().memtable_bytes / 8;
        let mut pass_count = 0;
        loop {
            self.with_version(keyspace, between_tables, |context| self.cut_tables(context, plan, tables))?;
            pass_count += 1;
            let pause = self.pause_flushes(keyspace)?;
            let version = Arc::clone(&keyspace.read_state.load().version);
            let uncut_bytes: u64 = tables.uncut(&version, plan).map(|(_, table)| table.file_bytes()).sum();
            // More than two passes without a pause are needed only if tables are ingested meanwhile.
            if uncut_bytes <= bytes_max || pass_count == 4 {
                // Flushes wait, so nothing else is done between these tables.
                let nothing = || ControlFlow::Continue(());
                self.with_version(keyspace, &nothing, |context| self.cut_tables(context, plan, tables))?;
                return Ok(pause);
            }
            drop(pause);
            self.scheduler.wake();
        }
    }

    /// Works with the context of a job that begins now, on the current version.
    fn with_version(
        &self,
        keyspace: &KeyspaceState,
        between_tables: &dyn Fn() -> ControlFlow<()>,
        work: impl FnOnce(&JobContext<'_>) -> Result<()>,
    ) -> Result<()> {
        let version = Arc::clone(&keyspace.read_state.load().version);
        with_job_context(self, &version, |context| work(&JobContext { between_tables, ..context.clone() }))
    }

    /// Waits until no flush of the keyspace runs. New ones do not begin meanwhile.
    ///
    /// # Errors
    /// [`Error::Closed`] if the store is closing.
    pub(super) fn pause_flushes<'k>(&self, keyspace: &'k KeyspaceState) -> Result<FlushPause<'k>> {
        let scheduler = &self.scheduler;
        let _request = keyspace.flush_slot.request_pause();
        loop {
            if let Some(pause) = FlushPause::begin(keyspace) {
                return Ok(pause);
            }
            if scheduler.is_stopping().load(Ordering::Relaxed) {
                return Err(Error::Closed);
            }
            scheduler.wait_a_moment(&*self.context.runtime.clock);
        }
    }

    /// Step 1.
    fn write_outputs(&self, context: &JobContext<'_>, plan: &Plan, tables: &mut NewTables) -> Result<()> {
        let first = partitions_of(context.version, plan).next();
        tables.bounds.push(first.map_or_else(Vec::new, |(_, partition)| partition.lower.clone()));
        if plan.action != Action::Split {
            tables.bounds.extend(plan.split_keys.iter().cloned());
            return Ok(());
        }
        let merged = merge_inputs(context, &self.tables, plan)?;
        tables.merged = plan.tables().map(|table| table.number()).collect();
        tables.bytes_read = merged.bytes_read;
        let per_partition = match context.version.options.layout {
            Layout::Partitioned { tables_per_partition } => tables_after_split(tables_per_partition),
            _ => 1,
        };
        let later = merged.summaries.iter().step_by(per_partition).skip(1);
        tables.bounds.extend(later.map(|summary| summary.smallest_key.clone()));
        tables.outputs = merged.summaries;
        Ok(())
    }

    /// Cuts the tables of a version that were not cut before.
    fn cut_tables(&self, context: &JobContext<'_>, plan: &Plan, tables: &mut NewTables) -> Result<()> {
        let uncut: Vec<_> = tables.uncut(context.version, plan).collect();
        for &(place, table) in &uncut {
            let parts = self.cut(context, (place, table), &tables.bounds)?;
            tables.bytes_read += table.file_bytes();
            tables.parts.insert(table.number(), parts);
        }
        if uncut.is_empty() { Ok(()) } else { context.sync_folder() }
    }

    /// Rewrites a table in parts, none of which crosses a bound.
    fn cut(
        &self,
        context: &JobContext<'_>,
        (place, table): (RunPlace, &Arc<Table>),
        bounds: &[Vec<u8>],
    ) -> Result<Vec<TableSummary>> {
        let origin = context.origin(place.partition, place, vec![table.number()]);
        let one = std::slice::from_ref(table);
        let rules = DropRules::new(
            context.readers.read_points.clone(),
            range_tombstones_of(one.iter(), &self.tables)?,
        );
        // Runs below may have older entries anywhere: all range tombstones and tombstones stay.
        let whole_span = |lower: &[u8], upper: &[u8]| Some((lower.to_vec(), upper.to_vec()));
        let kept = rules.kept_range_tombstones(whole_span, SEQUENCE_MAX);
        let size = (usize::from(place.level).min(1), table.summary().entry_count);
        let mut cursor = RunCursor::new(RunTables::read_once(one, &self.tables));
        cursor.seek_first()?;
        let mut sink = TableSink::new(context, &origin, size, &[], rules);
        sink.take_range_tombstones(kept);
        let is_within = |bound: &&Vec<u8>| bound.as_slice() > table.smallest_key();
        let points = bounds.iter().filter(is_within);
        sink.split_at(points.map(|key| SplitPoint { key: key.clone(), is_direct: context.is_direct }));
        sink.consume(&mut cursor, None, &|_| false)?;
        sink.finish_without_folder_sync()
    }
}

/// The partitions of a plan that the version has, with their positions.
fn partitions_of<'a>(
    version: &'a KeyspaceVersion,
    plan: &'a Plan,
) -> impl Iterator<Item = (usize, &'a Arc<Partition>)> {
    let ids: BTreeSet<u64> = plan.replaced_partitions.iter().copied().collect();
    version.partitions.iter().enumerate().filter(move |(_, partition)| ids.contains(&partition.id))
}

fn place_of(version: &KeyspaceVersion, partition: &Partition, (level, run_age): (usize, u64)) -> RunPlace {
    RunPlace { keyspace: version.id, partition: partition.id, level: level as u8, run_age }
}

/// Step 4.
fn edit_of(
    version: &KeyspaceVersion,
    plan: &Plan,
    tables: &NewTables,
    new_partition_id: &dyn Fn() -> u64,
) -> VersionEdit {
    let (mut removals, mut additions) = (Vec::new(), Vec::new());
    let ids: Vec<u64> = tables.bounds.iter().map(|_| new_partition_id()).collect();
    let mut add = |(level, run_age): (u8, u64), summary: &TableSummary, (filter_file, is_ingested)| {
        let partition = ids.get(tables.position_of(&summary.smallest_key)).copied().unwrap_or_default();
        let place = RunPlace { keyspace: version.id, partition, level, run_age };
        additions.push(Change::AddTable { place, summary: summary.clone(), filter_file, is_ingested });
    };
    let output = plan.output_place();
    tables.outputs.iter().for_each(|summary| add((output.level, output.run_age), summary, (None, false)));
    // All entries of the keyspace that were logged up to the greatest of these numbers are in tables, or in the log under a greater number:
    // memtables are flushed as a whole.
    let mut flushed_sequence: Sequence = 0;
    for (_, partition) in partitions_of(version, plan) {
        flushed_sequence = flushed_sequence.max(partition.flushed_sequence);
        for (level, run) in partition.runs() {
            let place = place_of(version, partition, (level, run.age()));
            for table in run.tables() {
                let number = table.number();
                removals.push(Change::RemoveTable { place, number });
                if tables.merged.contains(&number) {
                    continue;
                }
                let place = (place.level, place.run_age);
                match tables.parts.get(&number) {
                    Some(parts) => parts.iter().for_each(|part| add(place, part, (None, false))),
                    None => add(place, table.summary(), (table.filter_file(), table.is_ingested())),
                }
            }
        }
        removals.push(Change::RemovePartition { keyspace: version.id, partition: partition.id });
    }
    let partitions = ids.iter().zip(&tables.bounds).map(|(&partition, lower)| Change::AddPartition {
        keyspace: version.id,
        partition,
        lower: lower.clone(),
        flushed_sequence,
    });
    VersionEdit { changes: removals.into_iter().chain(partitions).chain(additions).collect() }
}
