//! Merges the tables of a plan into new tables, usually of one run, and returns the edit that replaces them.
//!
//! No entry above an output may be older than it: in its key range, a plan includes all runs between its newest input and the
//! output. Tables of these runs that overlap nothing are moved without a rewrite, and outputs are split at them
//! ([`Plan::trivial_moves`]). The tables that may hold older versions ([`Plan::older`]) decide which tombstones are dropped.

use std::sync::Arc;

use super::{
    drop_rules::DropRules,
    job_context::JobContext,
    plan::{Plan, PlanOutput},
    table_sink::{SplitPoint, TableSink, Written},
};
use crate::{
    cache::table::TableCache,
    cursor::{Cursor, merge::MergeCursor, run::RunCursor, run_tables::RunTables},
    error::Result,
    file_name::FileName,
    range_tombstone::{RangeTombstone, compare_uppers, is_below_upper, least_upper},
    version::{
        edit::{Change, VersionEdit},
        handle::Table,
    },
};

/// The result of a merge.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) edit: VersionEdit,
    /// The files that it wrote.
    pub(crate) files: Vec<FileName>,
    pub(crate) bytes_read: u64,
    pub(crate) written: Written,
}

/// Merges the inputs of a plan; the returned edit installs the outputs.
///
/// # Errors
/// Those of the file system and of damaged inputs; no table is left then.
pub(crate) fn merge(context: &JobContext<'_>, tables: &Arc<TableCache>, plan: &Plan) -> Result<Merged> {
    let tombstones = range_tombstones_of(plan.merged_tables(), tables)?;
    let rules = DropRules::new(context.read_points.clone(), tombstones.iter().cloned());
    let inputs: Vec<Vec<Arc<Table>>> =
        plan.inputs.iter().map(|input| tables_to_read(&input.tables, &rules)).collect();
    let key_count = inputs.iter().flatten().map(|table| table.summary().entry_count).sum();
    let run = |run: &Vec<Arc<Table>>| RunCursor::new(RunTables::read_once(run, tables));
    let mut cursor = MergeCursor::new(inputs.iter().map(run).collect());
    cursor.seek_first()?;
    let mut merged = Merged {
        edit: plan.move_edit(),
        files: Vec::new(),
        bytes_read: inputs.iter().flatten().map(|table| table.file_bytes()).sum(),
        written: Written::default(),
    };
    let mut lower: &[u8] = &[];
    for output in &plan.outputs {
        let upper = output.upper.as_deref();
        let tombstones = truncated(&tombstones, lower, upper.unwrap_or_default());
        let output = OutputRange { output, tombstones, key_count };
        if let Err(error) = output.write(context, plan, &mut cursor, &mut merged) {
            // No edit names the tables of the outputs before it. One that can't be removed is deleted at the next open.
            for file in &merged.files {
                let _ = context.vfs.remove(&file.path(context.folder));
            }
            return Err(error);
        }
        lower = upper.unwrap_or_default();
    }
    Ok(merged)
}

/// An output of a merge while it is written.
struct OutputRange<'a> {
    output: &'a PlanOutput,
    /// The range tombstones of the job, truncated at the bounds of the output.
    tombstones: Vec<RangeTombstone>,
    /// The maximum number of keys.
    key_count: u64,
}

impl OutputRange<'_> {
    /// Writes the entries from the cursor's position up to the end of the range.
    fn write(
        self,
        context: &JobContext<'_>,
        plan: &Plan,
        cursor: &mut impl Cursor,
        merged: &mut Merged,
    ) -> Result<()> {
        let place = plan.place_of(self.output);
        let replaced = plan.merged_tables().map(|table| table.number()).collect();
        let origin = context.origin(place.partition, place, replaced);
        let rules = DropRules::new(context.read_points.clone(), self.tombstones);
        let older = |lower: &[u8], upper: &[u8]| hull_within(plan.older.iter().flatten(), lower, upper);
        let kept = rules.kept_range_tombstones(older);
        let size = (plan.depth, self.key_count);
        let mut sink = TableSink::new(context, &origin, size, &plan.grandparents, rules);
        sink.take_range_tombstones(kept);
        let split_point = |key: &Vec<u8>| SplitPoint { key: key.clone(), is_direct: context.is_direct };
        sink.split_at(plan.split_keys.iter().map(split_point));
        let is_lowest = |key: &[u8]| plan.older.iter().all(|run| !covers(run, key));
        sink.consume(cursor, self.output.upper.as_deref(), &is_lowest)?;
        for summary in sink.finish()? {
            merged.written.add(&summary);
            merged.files.push(FileName::Table(summary.number));
            merged.edit.push(Change::AddTable { place, summary, filter_file: None, is_ingested: false });
        }
        Ok(())
    }
}

/// The parts of range tombstones within the bounds (an empty upper bound is no bound).
pub(super) fn truncated(tombstones: &[RangeTombstone], lower: &[u8], upper: &[u8]) -> Vec<RangeTombstone> {
    let truncate = |tombstone: &RangeTombstone| RangeTombstone {
        lower: tombstone.lower.as_slice().max(lower).to_vec(),
        upper: least_upper(&tombstone.upper, upper).to_vec(),
        ..tombstone.clone()
    };
    let all = tombstones.iter().map(truncate);
    all.filter(|tombstone| is_below_upper(&tombstone.lower, &tombstone.upper)).collect()
}

/// Whether a table of the run may hold the key.
fn covers(run: &[Arc<Table>], key: &[u8]) -> bool {
    let position = run.partition_point(|table| table.ends_before(key));
    run.get(position).is_some_and(|table| table.smallest_key() <= key)
}

/// All range tombstones of the merged tables.
pub(crate) fn range_tombstones_of<'a>(
    merged: impl Iterator<Item = &'a Arc<Table>>,
    tables: &TableCache,
) -> Result<Vec<RangeTombstone>> {
    let mut tombstones = Vec::new();
    for table in merged.filter(|table| table.has_range_tombstones()) {
        let reader = tables.reader(table)?;
        let fragments = reader.range_tombstones().into_iter().flat_map(|fragments| fragments.list());
        tombstones.extend(fragments.flat_map(|fragment| fragment.tombstones()));
    }
    Ok(tombstones)
}

/// The tables of a run that may hold an entry to keep.
fn tables_to_read(run: &[Arc<Table>], rules: &DropRules) -> Vec<Arc<Table>> {
    let is_deleted = |table: &Arc<Table>| {
        let summary = table.summary();
        rules.covers_all(
            table.smallest_key(),
            &table.upper(),
            (summary.smallest_sequence, summary.largest_sequence),
        )
    };
    run.iter().filter(|table| rules.range_tombstones().is_empty() || !is_deleted(table)).cloned().collect()
}

/// The smallest span that holds all keys which the tables may have within a span; `None` if they have none.
pub(super) fn hull_within<'a>(
    tables: impl Iterator<Item = &'a Arc<Table>>,
    lower: &[u8],
    upper: &[u8],
) -> Option<(Vec<u8>, Vec<u8>)> {
    let is_within =
        |table: &&Arc<Table>| !table.ends_before(lower) && is_below_upper(table.smallest_key(), upper);
    let mut hull: Option<(Vec<u8>, Vec<u8>)> = None;
    for table in tables.filter(is_within) {
        let begin = table.smallest_key().max(lower).to_vec();
        let end = least_upper(&table.upper(), upper).to_vec();
        hull = Some(match hull {
            None => (begin, end),
            Some((first, last)) => {
                (first.min(begin), if compare_uppers(&last, &end).is_lt() { end } else { last })
            }
        });
    }
    hull
}

#[cfg(test)]
mod tests;
