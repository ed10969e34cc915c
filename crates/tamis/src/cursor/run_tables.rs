//! The tables of a run as a cursor walks them: each is opened when it is first needed.

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

/// What the cursors of one scan have in common. They count their hold on it alone, and not on what it holds: counts of what many
/// threads use at once go from processor to processor.
pub(crate) trait ScanContext: Limits {
    /// A run that takes part.
    fn run(&self, run_index: usize) -> &Run;
    /// Where its tables are opened.
    fn tables(&self) -> &TableCache;
}

/// The tables of a run, or those of them that a scan needs.
#[derive(Debug)]
pub(crate) struct RunTables {
    needed: Range<usize>,
    holder: Holder,
}

/// Who holds the run.
#[derive(Debug)]
enum Holder {
    Scan { base: Arc<dyn ScanContext>, run_index: usize },
    Job { run: Run, tables: Arc<TableCache> },
}

impl RunTables {
    /// For scans: the tables at these positions of a run. Blocks are kept in the cache.
    pub(crate) fn of_scan(base: Arc<dyn ScanContext>, run_index: usize, needed: Range<usize>) -> Self {
        Self { needed, holder: Holder::Scan { base, run_index } }
    }

    /// For compactions: blocks are not kept.
    pub(crate) fn read_once(tables: &[Arc<Table>], cache: &Arc<TableCache>) -> Self {
        let run = Run::of(LEVELED_RUN_AGE, tables);
        Self { needed: 0..tables.len(), holder: Holder::Job { run, tables: Arc::clone(cache) } }
    }

    fn run(&self) -> &Run {
        match &self.holder {
            Holder::Scan { base, run_index } => base.run(*run_index),
            Holder::Job { run, .. } => run,
        }
    }

    fn cache(&self) -> &TableCache {
        match &self.holder {
            Holder::Scan { base, .. } => base.tables(),
            Holder::Job { tables, .. } => tables,
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
        let table = self.table(table_index).expect("the run cursor asks for tables below the count");
        let reader = self.cache().reader(table)?;
        Ok(match &self.holder {
            // Where tables are mapped there are no long reads that would need limits.
            Holder::Scan { .. } if self.cache().environment().access == Access::Mapped => reader.cursor(),
            Holder::Scan { base, .. } => reader.cursor_within(Arc::<dyn ScanContext>::clone(base)),
            Holder::Job { .. } => reader.cursor_once(),
        })
    }

    fn change_cursor(&self, cursor: &mut TableCursor, table_index: usize) -> Result<()> {
        let table = self.table(table_index).expect("the run cursor asks for tables below the count");
        cursor.change_table(&*self.cache().reader(table)?);
        Ok(())
    }
}
