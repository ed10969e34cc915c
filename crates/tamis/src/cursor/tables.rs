//! The tables of a run as a cursor walks them: each is opened when it is first needed.

use std::sync::Arc;

use super::run::RunSource;
use crate::{cache::table::TableCache, error::Result, table::cursor::TableCursor, version::handle::Table};

/// The tables of a run, or those of them that a scan needs.
#[derive(Debug)]
pub(crate) struct TablesOfRun {
    tables: Vec<Arc<Table>>,
    cache: Arc<TableCache>,
    is_read_once: bool,
}

impl TablesOfRun {
    /// For scans: blocks are kept in the cache.
    pub(crate) fn new(tables: &[Arc<Table>], cache: &Arc<TableCache>) -> Self {
        Self { tables: tables.to_vec(), cache: Arc::clone(cache), is_read_once: false }
    }

    /// For compactions: blocks are not kept.
    pub(crate) fn read_once(tables: &[Arc<Table>], cache: &Arc<TableCache>) -> Self {
        Self { is_read_once: true, ..Self::new(tables, cache) }
    }
}

impl RunSource for TablesOfRun {
    type Cursor = TableCursor;

    fn table_count(&self) -> usize {
        self.tables.len()
    }

    fn smallest_key(&self, table_index: usize) -> &[u8] {
        self.tables.get(table_index).map_or(&[], |table| table.smallest_key())
    }

    fn largest_key(&self, table_index: usize) -> &[u8] {
        self.tables.get(table_index).map_or(&[], |table| table.largest_key())
    }

    fn open_cursor(&self, table_index: usize) -> Result<TableCursor> {
        let table = self.tables.get(table_index).expect("the run cursor asks for tables below the count");
        let reader = self.cache.reader(table)?;
        Ok(if self.is_read_once { reader.cursor_once() } else { reader.cursor() })
    }
}
