//! The tables of a run for a cursor: each is opened when it is first needed.

use std::{ops::Range, sync::Arc};

use tamis_vfs::Access;

use super::run::RunSource;
use crate::{
    cache::table::TableCache,
    error::Result,
    table::{cursor::TableCursor, read_ahead::Limits},
    version::{
        handle::Table,
        level::{LEVELED_RUN_AGE, Run},
    },
};

/// State that the cursors of one scan share. Cursors count references to it and not to what it owns: reference counts that
/// many threads change at once move from core to core.
pub(crate) trait ScanContext: Limits {
    /// A run of the scan.
    fn run(&self, run_index: usize) -> &Run;
    /// The cache in which its tables are opened.
    fn tables(&self) -> &TableCache;
    /// Records whether a table of a run, whose filters admitted the scan's range, has a key of it.
    fn record_filter_outcome(&self, run_index: usize, is_there: bool);
}

/// The tables of a run, or those of them that a scan needs.
#[derive(Debug)]
pub(crate) struct RunTables {
    needed: Range<usize>,
    owner: Owner,
}

/// The owner of the run.
#[derive(Debug)]
enum Owner {
    Scan { scan: Arc<dyn ScanContext>, run_index: usize },
    Job { run: Run, tables: Arc<TableCache> },
}

impl RunTables {
    /// For scans: the tables at these positions of a run. Their blocks are cached.
    pub(crate) fn of_scan(scan: Arc<dyn ScanContext>, run_index: usize, needed: Range<usize>) -> Self {
        Self { needed, owner: Owner::Scan { scan, run_index } }
    }

    /// For compactions: blocks are not cached.
    pub(crate) fn read_once(tables: &[Arc<Table>], cache: &Arc<TableCache>) -> Self {
        let run = Run::of(LEVELED_RUN_AGE, tables);
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
