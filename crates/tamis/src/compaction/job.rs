//! A compaction: merges the tables of a plan into new tables of one run, and gives the edit that swaps them.
//!
//! Nothing older than an output may lie above it: a plan's inputs hold, of their key range, everything between the
//! newest input and the output. Tables of its runs with nothing beside them go along as they are, and outputs are cut where they
//! lie ([`Plan::trivial_moves`]). What may lie below ([`Plan::older`]) decides which tombstones can go.

use std::sync::Arc;

use super::{
    plan::Plan,
    table_sink::{JobContext, SplitPoint, TableSink, Written},
};
use crate::{
    cache::table::TableCache,
    cursor::{Cursor, merge::MergeCursor, run::RunCursor, run_tables::RunTables},
    error::Result,
    file_name::FileName,
    version::{
        edit::{Change, VersionEdit},
        handle::Table,
    },
};

/// What a compaction did.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) edit: VersionEdit,
    /// The files that were written.
    pub(crate) files: Vec<FileName>,
    pub(crate) bytes_read: u64,
    pub(crate) written: Written,
}

/// Merges; the edit puts the result in force.
///
/// # Errors
/// Those of the file system and of damaged inputs; no table is left then.
pub(crate) fn merge(context: &JobContext<'_>, tables: &Arc<TableCache>, plan: &Plan) -> Result<Merged> {
    let replaced: Vec<u64> = plan.merged_tables().map(|table| table.number()).collect();
    let place = plan.output_place();
    let origin = context.origin(plan.partition, place, replaced);
    let run = |run: &[Arc<Table>]| RunCursor::new(RunTables::read_once(run, tables));
    let mut cursor = MergeCursor::new(plan.inputs.iter().map(|input| run(&input.tables)).collect());
    cursor.seek_first()?;
    let key_count = plan.merged_tables().map(|table| table.summary().entry_count).sum();
    let mut sink = TableSink::new(context, &origin, (plan.depth, key_count), &plan.grandparents);
    sink.split_at(
        plan.split_keys.iter().map(|key| SplitPoint { key: key.clone(), is_direct: context.is_direct }),
    );
    sink.consume(&mut cursor, None, &|key| plan.older.iter().all(|run| !covers(run, key)))?;
    let mut edit = plan.move_edit();
    let mut files = Vec::new();
    let mut written = Written::default();
    for summary in sink.finish()? {
        written.add(&summary);
        files.push(FileName::Table(summary.number));
        edit.push(Change::AddTable { place, summary, filter_file: None, is_ingested: false });
    }
    Ok(Merged { edit, files, bytes_read: plan.bytes_read, written })
}

/// Whether a table of the run may hold the key.
fn covers(run: &[Arc<Table>], key: &[u8]) -> bool {
    let position = run.partition_point(|table| table.largest_key() < key);
    run.get(position).is_some_and(|table| table.smallest_key() <= key)
}
