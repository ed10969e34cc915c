//! Merges the tables of a plan into new tables of one run and returns the edit that replaces them.
//!
//! No entry above an output may be older than it: in its key range, a plan includes all runs between its newest input and the
//! output. Tables of these runs that overlap nothing are moved without a rewrite, and outputs are split at them
//! ([`Plan::trivial_moves`]). The tables that may hold older versions ([`Plan::older`]) decide which tombstones are dropped.

use std::sync::Arc;

use super::{
    drop_rules::DropRules,
    job_context::JobContext,
    plan::{Plan, Reason},
    table_sink::{SplitPoint, TableSink, Written},
};
use crate::{
    cache::table::TableCache,
    cursor::{Cursor, merge::MergeCursor, run::RunCursor, run_tables::RunTables},
    error::Result,
    file_name::FileName,
    range_tombstone::{RangeTombstone, compare_uppers, is_below_upper, least_upper},
    sync::sim_fault,
    table::properties::TableSummary,
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

/// The tables that a merge wrote, in key order.
#[derive(Debug)]
pub(super) struct MergedTables {
    pub(super) summaries: Vec<TableSummary>,
    pub(super) bytes_read: u64,
}

/// Merges the inputs of a plan; the returned edit installs the outputs.
///
/// # Errors
/// Those of the file system and of damaged inputs; no table is left then.
pub(crate) fn merge(context: &JobContext<'_>, tables: &Arc<TableCache>, plan: &Plan) -> Result<Merged> {
    let MergedTables { summaries, bytes_read } = merge_inputs(context, tables, plan)?;
    let mut edit = plan.move_edit();
    let mut files = Vec::new();
    let mut written = Written::default();
    for summary in summaries {
        written.add(&summary);
        files.push(FileName::Table(summary.number));
        let place = plan.output_place();
        edit.push(Change::AddTable { place, summary, filter_file: None, is_ingested: false });
    }
    Ok(Merged { edit, files, bytes_read, written })
}

/// Merges the inputs of a plan into new tables.
///
/// # Errors
/// As [`merge`].
pub(super) fn merge_inputs(
    context: &JobContext<'_>,
    tables: &Arc<TableCache>,
    plan: &Plan,
) -> Result<MergedTables> {
    let replaced: Vec<u64> = plan.merged_tables().map(|table| table.number()).collect();
    let origin = context.origin(plan.partition, plan.output_place(), replaced);
    let rules = DropRules::new(
        context.readers.read_points.clone(),
        range_tombstones_of(plan.merged_tables(), tables)?,
    );
    let inputs: Vec<Vec<Arc<Table>>> =
        plan.inputs.iter().map(|input| tables_to_read(&input.tables, &rules)).collect();
    let bytes_read = inputs.iter().flatten().map(|table| table.file_bytes()).sum();
    let key_count = inputs.iter().flatten().map(|table| table.summary().entry_count).sum();
    let run = |run: &Vec<Arc<Table>>| RunCursor::new(RunTables::read_once(run, tables));
    let mut cursor = MergeCursor::new(inputs.iter().map(run).collect());
    cursor.seek_first()?;
    let older_sequence = plan.older.iter().flatten().map(|table| table.summary().largest_sequence).max();
    let kept = rules.kept_range_tombstones(
        |lower, upper| bounding_range_within(plan.older.iter().flatten(), lower, upper),
        older_sequence.unwrap_or(0),
    );
    let mut sink = TableSink::new(context, &origin, (plan.depth, key_count), &plan.grandparents, rules);
    if plan.reason == Reason::SmallTables && !sim_fault!("join-tables-by-file-bytes") {
        sink.write_one_table();
    }
    sink.take_range_tombstones(kept);
    sink.split_at(
        plan.split_keys.iter().map(|key| SplitPoint { key: key.clone(), is_direct: context.is_direct }),
    );
    sink.consume(&mut cursor, None, &|key| plan.older.iter().all(|run| !covers(run, key)))?;
    Ok(MergedTables { summaries: sink.finish()?, bytes_read })
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
        tombstones.extend(reader.range_tombstones().into_iter().flat_map(|fragments| fragments.tombstones()));
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
pub(super) fn bounding_range_within<'a>(
    tables: impl Iterator<Item = &'a Arc<Table>>,
    lower: &[u8],
    upper: &[u8],
) -> Option<(Vec<u8>, Vec<u8>)> {
    let is_within =
        |table: &&Arc<Table>| !table.ends_before(lower) && is_below_upper(table.smallest_key(), upper);
    let mut range: Option<(Vec<u8>, Vec<u8>)> = None;
    for table in tables.filter(is_within) {
        let begin = table.smallest_key().max(lower).to_vec();
        let end = least_upper(&table.upper(), upper).to_vec();
        range = Some(match range {
            None => (begin, end),
            Some((first, last)) => {
                (first.min(begin), if compare_uppers(&last, &end).is_lt() { end } else { last })
            }
        });
    }
    range
}
