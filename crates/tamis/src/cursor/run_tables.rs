//! The tables of a run for a cursor: each is opened when it is first needed. A sorted view reads entries by their ordinals.

use std::{ops::Range, sync::Arc};

use tamis_vfs::Access;

use super::run::{RunCursor, RunSource};
use crate::{
    cache::table::TableCache,
    error::{Error, Result},
    key::Sequence,
    table::{cursor::TableCursor, read_ahead::Limits},
    version::{
        handle::Table,
        level::{LEVELED_RUN_AGE, Run},
    },
    view::run::{OrdinalCursor, OrdinalRun, TableRun},
};

/// State that the cursors of one scan share. Cursors count references to it and not to what it owns: reference counts that
/// many threads change at once move from core to core.
pub(crate) trait ScanContext: Limits {
    /// A run of the scan.
    fn run(&self, run_index: usize) -> &Run;
    /// The cache in which its tables are opened.
    fn tables(&self) -> &TableCache;
    /// Records that a sorted view is damaged. No later scan uses it.
    fn record_damaged_view(&self, view_index: usize, error: &Error);
    /// Records whether a table of a run, whose filters admitted the scan's range, has a key of it.
    fn record_filter_outcome(&self, run_index: usize, is_there: bool);
}

/// The tables of a run, or those of them that a scan needs.
#[derive(Debug, Clone)]
pub(crate) struct RunTables {
    needed: Range<usize>,
    owner: Owner,
}

/// The owner of the run.
#[derive(Debug, Clone)]
enum Owner {
    Scan { scan: Arc<dyn ScanContext>, run_index: usize },
    Job { run: Arc<Run>, tables: Arc<TableCache> },
}

impl RunTables {
    /// For scans: the tables at these positions of a run. Their blocks are cached.
    pub(crate) fn of_scan(scan: Arc<dyn ScanContext>, run_index: usize, needed: Range<usize>) -> Self {
        Self { needed, owner: Owner::Scan { scan, run_index } }
    }

    /// For scans: all tables of a run.
    pub(crate) fn whole_run_of_scan(scan: Arc<dyn ScanContext>, run_index: usize) -> Self {
        let needed = 0..scan.run(run_index).tables().len();
        Self::of_scan(scan, run_index, needed)
    }

    /// For compactions: blocks are not cached.
    pub(crate) fn read_once(tables: &[Arc<Table>], cache: &Arc<TableCache>) -> Self {
        let run = Arc::new(Run::of(LEVELED_RUN_AGE, tables));
        Self { needed: 0..tables.len(), owner: Owner::Job { run, tables: Arc::clone(cache) } }
    }

    fn run(&self) -> &Run {
        match &self.owner {
            Owner::Scan { scan, run_index } => scan.run(*run_index),
            Owner::Job { run, .. } => run,
        }
    }

    fn cache(&self) -> &TableCache {
        match &self.owner {
            Owner::Scan { scan, .. } => scan.tables(),
            Owner::Job { tables, .. } => tables,
        }
    }

    fn table(&self, table_index: usize) -> Option<&Arc<Table>> {
        self.run().tables().get(self.needed.clone()).and_then(|tables| tables.get(table_index))
    }
}

impl RunSource for RunTables {
    type Cursor = TableCursor;

    fn table_count(&self) -> usize {
        self.needed.len()
    }

    fn smallest_key(&self, table_index: usize) -> &[u8] {
        self.table(table_index).map_or(&[], |table| table.smallest_key())
    }

    fn largest_key(&self, table_index: usize) -> &[u8] {
        self.table(table_index).map_or(&[], |table| table.largest_key())
    }

    fn position(&self, key: &[u8]) -> usize {
        self.run().position(key).clamp(self.needed.start, self.needed.end) - self.needed.start
    }

    fn open_cursor(&self, table_index: usize) -> Result<TableCursor> {
        let table = self.table(table_index).expect("the run cursor uses positions below the table count");
        let reader = self.cache().reader(table)?;
        Ok(match &self.owner {
            // Mapped tables have no long reads that need limits.
            Owner::Scan { .. } if self.cache().environment().access == Access::Mapped => reader.cursor(),
            Owner::Scan { scan, .. } => reader.cursor_within(Arc::<dyn ScanContext>::clone(scan)),
            Owner::Job { .. } => reader.cursor_once(),
        })
    }

    fn change_cursor(&self, cursor: &mut TableCursor, table_index: usize) -> Result<()> {
        let table = self.table(table_index).expect("the run cursor uses positions below the table count");
        cursor.change_table(&*self.cache().reader(table)?);
        Ok(())
    }
}

/// The open tables of a run, for a job that builds or checks a view.
///
/// # Errors
/// Those of tables that can't be opened.
pub(crate) fn open_run(run: &Run, tables: &TableCache) -> Result<TableRun> {
    let readers = run.tables().iter().map(|table| tables.reader(table).map(|reader| Arc::clone(&reader)));
    Ok(TableRun::new(readers.collect::<Result<_>>()?))
}

/// Only of all tables of a run.
impl OrdinalRun for RunTables {
    type Cursor = RunCursor<Self>;

    fn entry_count(&self) -> u64 {
        self.run().entry_count()
    }

    fn largest_sequence(&self) -> Sequence {
        self.run().sequence_range().1
    }

    fn smallest_sequence(&self) -> Sequence {
        self.run().sequence_range().0
    }

    fn cursor(&self) -> RunCursor<Self> {
        RunCursor::new(self.clone())
    }
}

impl OrdinalCursor for RunCursor<RunTables> {
    fn seek_ordinal(&mut self, ordinal: u64) -> Result<()> {
        let entries_before = self.source().run().entries_before();
        // Of tables without entries at this place, the last table is the one that has entries.
        let table_index = entries_before.partition_point(|&before| before <= ordinal).saturating_sub(1);
        let before = entries_before.get(table_index).copied().unwrap_or_default();
        self.seek_in_table(table_index, |cursor| cursor.seek_number(ordinal - before))
    }
}
