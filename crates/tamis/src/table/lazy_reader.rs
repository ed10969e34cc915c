//! The reader of one table, opened at the first read and kept as long as the table.
//!
//! Other limits bound its memory: the pinned cache that of indexes and filters, `table/open_files.rs` that of descriptors and
//! mappings. So access to an open table is one atomic load, and a read holds no reference count.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use super::{
    environment::TableEnvironment,
    properties::TableIdentity,
    reader::{KnownTable, TableReader},
};
use crate::{cache::hotness::Hotness, error::Result, file_name::FileName, key::Sequence, sync::Mutex};

/// See the head of this file.
#[derive(Default)]
pub(crate) struct LazyReader {
    reader: OnceLock<Arc<TableReader>>,
    /// Locked while the table is opened, so that it is opened once.
    opening: Mutex<()>,
    /// The hotness of the table's filters.
    hotness: Arc<Hotness>,
}

impl fmt::Debug for LazyReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.get().is_some() { "open" } else { "closed" })
    }
}

/// A table with its number and its reader.
pub(crate) trait NamedTable {
    /// The table's reader, open or not.
    fn slot(&self) -> &LazyReader;
    /// The file's number.
    fn number(&self) -> u64;
    /// The table's filter file, if it has one.
    fn filter_file(&self) -> Option<u64>;
    /// The sequence number of all entries of an ingested table; `None` for a table that the store wrote.
    fn ingest_sequence(&self) -> Option<Sequence>;
    /// The identity of its file.
    fn identity(&self) -> TableIdentity;
}

impl<T: NamedTable> NamedTable for Arc<T> {
    #[inline]
    fn slot(&self) -> &LazyReader {
        (**self).slot()
    }

    fn number(&self) -> u64 {
        (**self).number()
    }

    fn filter_file(&self) -> Option<u64> {
        (**self).filter_file()
    }

    fn ingest_sequence(&self) -> Option<Sequence> {
        (**self).ingest_sequence()
    }

    fn identity(&self) -> TableIdentity {
        (**self).identity()
    }
}

impl TableReader {
    /// Opens a table that a version names. A file of this name with another length or content is an error with both.
    pub(crate) fn open_named(
        environment: &Arc<TableEnvironment>,
        table: &impl NamedTable,
    ) -> Result<Arc<Self>> {
        let (number, hotness) = (table.number(), table.slot().hotness());
        let source = environment.open_file(FileName::Table(number))?;
        let known = KnownTable {
            number: Some(number),
            filter_file: table.filter_file(),
            sequence: table.ingest_sequence(),
            identity: Some(table.identity()),
        };
        Self::open_source(environment, source, known, hotness)
    }
}

impl LazyReader {
    /// A closed reader with the hotness of another one.
    pub(crate) fn with_hotness(hotness: &Arc<Hotness>) -> Self {
        Self { hotness: Arc::clone(hotness), ..Self::default() }
    }

    /// The hotness of the table's filters.
    pub(crate) const fn hotness(&self) -> &Arc<Hotness> {
        &self.hotness
    }

    /// The reader, if the table is open.
    #[inline]
    pub(crate) fn get(&self) -> Option<&Arc<TableReader>> {
        self.reader.get()
    }

    /// Opens the table unless another thread did meanwhile.
    pub(crate) fn open(
        &self,
        environment: &Arc<TableEnvironment>,
        table: &impl NamedTable,
    ) -> Result<&Arc<TableReader>> {
        let _opening = self.opening.lock();
        if let Some(open) = self.get() {
            return Ok(open);
        }
        let reader = TableReader::open_named(environment, table)?;
        Ok(self.reader.get_or_init(|| reader))
    }
}
