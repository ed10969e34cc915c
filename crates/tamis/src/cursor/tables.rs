//! The tables of a run as a cursor walks them: each is opened when it is first needed.

use std::{ops::Range, sync::Arc};

use tamis_vfs::Access;

use super::{bounded::KeyRange, run::RunSource};
use crate::{
    cache::table::TableCache,
    error::Result,
    table::{cursor::TableCursor, read_ahead::Limits},
    version::{
        handle::Table,
        level::{LEVELED_RUN_AGE, Run},
    },
};

/// The tables of a run, or those of them that a scan needs.
#[derive(Debug)]
pub(crate) struct TablesOfRun {
    run: Arc<Run>,
    needed: Range<usize>,
    cache: Arc<TableCache>,
    is_read_once: bool,
    /// Where a scan's long reads end; not needed for mapped tables, where there are none.
    limits: Option<Arc<dyn Limits>>,
}

impl TablesOfRun {
    /// For scans: the tables at these positions of the run. Blocks are kept in the cache.
    pub(crate) fn new(
        run: &Arc<Run>,
        needed: Range<usize>,
        cache: &Arc<TableCache>,
        range: &Arc<KeyRange>,
    ) -> Self {
        let is_mapped = cache.environment().access == Access::Mapped;
        let limits = (!is_mapped).then(|| Arc::<KeyRange>::clone(range) as Arc<dyn Limits>);
        Self { run: Arc::clone(run), needed, cache: Arc::clone(cache), is_read_once: false, limits }
    }

    /// For compactions: blocks are not kept.
    pub(crate) fn read_once(tables: &[Arc<Table>], cache: &Arc<TableCache>) -> Self {
        let run = Arc::new(Run::of(LEVELED_RUN_AGE, tables));
        Self { run, needed: 0..tables.len(), cache: Arc::clone(cache), is_read_once: true, limits: None }
    }

    fn table(&self, table_index: usize) -> Option<&Arc<Table>> {
        self.run.tables().get(self.needed.clone()).and_then(|tables| tables.get(table_index))
    }
}

impl RunSource for TablesOfRun {
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
        self.run.position(key).clamp(self.needed.start, self.needed.end) - self.needed.start
    }

    fn open_cursor(&self, table_index: usize) -> Result<TableCursor> {
        let table = self.table(table_index).expect("the run cursor asks for tables below the count");
        let reader = self.cache.reader(table)?;
        Ok(match &self.limits {
            _ if self.is_read_once => reader.cursor_once(),
            Some(limits) => reader.cursor_within(limits),
            None => reader.cursor(),
        })
    }

    fn change_cursor(&self, cursor: &mut TableCursor, table_index: usize) -> Result<()> {
        let table = self.table(table_index).expect("the run cursor asks for tables below the count");
        cursor.change_table(&*self.cache.reader(table)?);
        Ok(())
    }
}
