//! A compaction: merges the tables of a plan into new tables of one run, and gives the edit that swaps them.
//!
//! Nothing older than an output may lie above it: the plan's inputs hold, with a key, everything of it in the levels
//! between the newest input and the output. What may lie below decides which tombstones can go.

use std::sync::Arc;

use super::output::{JobContext, Outputs};
use crate::{
    cache::table::TableCache,
    cursor::{Cursor, merge::MergeCursor, run::RunCursor},
    error::Result,
    table::tables_of_run::TablesOfRun,
    version::{
        edit::{Change, RunPlace, VersionEdit},
        handle::Table,
        version::Partition,
    },
};

/// What a compaction reads and where it writes.
#[derive(Debug, Clone)]
pub(crate) struct MergeInputs {
    pub(crate) partition_index: usize,
    /// Runs, newest first, each with its tables in order of keys.
    pub(crate) runs: Vec<(RunPlace, Vec<Arc<Table>>)>,
    pub(crate) output: RunPlace,
    /// Tables of the level below the output within the range of the inputs, in order of keys.
    pub(crate) grandparents: Vec<Arc<Table>>,
}

/// What a compaction did.
#[derive(Debug)]
pub(crate) struct Merged {
    pub(crate) edit: VersionEdit,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
}

/// Merges; the edit puts the result in force.
///
/// # Errors
/// Those of the file system and of damaged inputs; no table is left then.
pub(crate) fn merge(context: &JobContext<'_>, tables: &Arc<TableCache>, inputs: &MergeInputs) -> Result<Merged> {
    let numbers = |tables: &[Arc<Table>]| tables.iter().map(|table| table.number()).collect::<Vec<_>>();
    let replaced: Vec<u64> = inputs.runs.iter().flat_map(|(_, tables)| numbers(tables)).collect();
    let origin = context.origin(inputs.partition_index, inputs.output.level, inputs.output.run_age, replaced.clone());
    let cursors = inputs.runs.iter().map(|(_, run)| RunCursor::new(TablesOfRun::read_once(run.clone(), tables)));
    let mut cursor = MergeCursor::new(cursors.collect());
    cursor.seek_first()?;
    let below = Below::new(context.version.partitions.get(inputs.partition_index), &replaced);
    let mut outputs = Outputs::new(context, origin, &inputs.grandparents);
    outputs.take(&mut cursor, None, &|key| below.is_absent(key))?;
    let mut edit = VersionEdit::default();
    for (place, tables) in &inputs.runs {
        for number in numbers(tables) {
            edit.push(Change::RemoveTable { place: *place, number });
        }
    }
    let mut bytes_written = 0;
    for summary in outputs.finish()? {
        bytes_written += summary.file_bytes;
        edit.push(Change::AddTable { place: inputs.output, summary, filter_file: None });
    }
    let bytes_read = inputs.runs.iter().flat_map(|(_, tables)| tables).map(|table| table.file_bytes()).sum();
    Ok(Merged { edit, bytes_read, bytes_written })
}

/// The tables outside of the job in which something older may lie: all runs older than the newest input that are not
/// wholly inputs. A run above the inputs holds newer entries only, and asking it too would merely keep a tombstone longer.
struct Below {
    runs: Vec<Vec<Arc<Table>>>,
}

impl Below {
    fn new(partition: Option<&Arc<Partition>>, replaced: &[u64]) -> Self {
        let mut has_begun = false;
        let mut runs = Vec::new();
        for (_, run) in partition.iter().flat_map(|partition| partition.runs()) {
            let (inputs, others): (Vec<_>, Vec<_>) =
                run.tables().iter().cloned().partition(|table| replaced.contains(&table.number()));
            has_begun |= !inputs.is_empty();
            if has_begun && !others.is_empty() {
                runs.push(others);
            }
        }
        Self { runs }
    }

    fn is_absent(&self, key: &[u8]) -> bool {
        self.runs.iter().all(|run| {
            let position = run.partition_point(|table| table.largest_key() < key);
            run.get(position).is_none_or(|table| table.smallest_key() > key)
        })
    }
}
