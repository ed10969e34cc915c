//! The tables of a run for a cursor: each is opened when it is first needed.

use std::{ops::Range, sync::Arc};

use super::{
    bounded::Needed,
    run::{RunCursor, RunSource},
};
use crate::{
    cache::table::TableCache,
    error::{Error, Result},
    observe::{metrics::ReadPlace, query_sample::Positive},
    table::{cursor::TableCursor, read_ahead::Limits, reader::TableReader},
    version::{
        handle::Table,
        level::{LEVELED_RUN_AGE, Run},
    },
    view::run::TableRun,
};

/// State that the cursors of one scan share. Cursors count references to it and not to what it owns: reference counts that
/// many threads change at once move from core to core.
pub(crate) trait ScanContext: Limits + Needed {
    /// A run of the scan.
    fn run(&self, run_index: usize) -> &Run;
    /// The place where the reads of a run are counted.
    fn place(&self, run_index: usize) -> Option<ReadPlace>;
    /// The cache in which its tables are opened.
    fn tables(&self) -> &TableCache;
    /// Records that the sorted view is damaged. No later scan uses it.
    fn record_damaged_view(&self, error: &Error);
    /// Records whether a run that its filters admitted has a key of the scan's range.
    fn record_filter_outcome(&self, run_index: usize, positive: Positive);
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

impl RunCursor<RunTables> {
    /// The table that was opened last.
    pub(super) fn open_table(&self) -> Option<&Table> {
        self.source().table(self.open_index()?).map(Arc::as_ref)
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

    fn open_cursor(&self, table_index: usize) -> Result<Box<TableCursor>> {
        let table = self.table(table_index).expect("the run cursor uses positions below the table count");
        let reader = self.cache().reader(table)?;
        let (scan, run_index) = match &self.owner {
            Owner::Scan { scan, run_index } => (scan, run_index),
            Owner::Job { .. } => return Ok(Box::new(reader.cursor_once())),
        };
        Ok(Box::new(cursor_of_scan(scan, *run_index, reader)))
    }

    fn change_cursor(&self, cursor: &mut TableCursor, table_index: usize) -> Result<()> {
        let table = self.table(table_index).expect("the run cursor uses positions below the table count");
        cursor.change_table(self.cache().reader(table)?);
        Ok(())
    }
}

/// A cursor of a scan over a table of a run.
#[inline]
pub(super) fn cursor_of_scan(
    scan: &Arc<dyn ScanContext>,
    run_index: usize,
    reader: &Arc<TableReader>,
) -> TableCursor {
    // Mapped tables have no long reads that need limits.
    let limits: Option<Arc<dyn Limits>> =
        if reader.is_mapped() { None } else { Some(Arc::<dyn ScanContext>::clone(scan)) };
    reader.cursor_of_scan(limits, scan.place(run_index))
}

/// The open tables of a run, for a job that builds or checks a view.
///
/// # Errors
/// Those of tables that can't be opened.
pub(crate) fn open_run(run: &Run, tables: &TableCache) -> Result<TableRun> {
    let readers = run.tables().iter().map(|table| tables.reader(table).map(Arc::clone));
    Ok(TableRun::new(readers.collect::<Result<_>>()?))
}
