//! The reader of one table, opened at the first read and closed to limit the number of open files.

use std::{
    fmt,
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::{ArcSwapOption, Guard};
use parking_lot::Mutex;

use super::{environment::TableEnvironment, reader::TableReader};
use crate::{cache::hotness::Hotness, error::Result, key::Sequence};

/// See the head of this file.
#[derive(Default)]
pub(crate) struct LazyReader {
    reader: ArcSwapOption<TableReader>,
    /// Locked while the table is opened, so that it is opened once.
    opening: Mutex<()>,
    /// Set by every use, cleared by the clock of the table cache.
    is_used: AtomicBool,
    /// The hotness of the table's filters. It outlives the reader.
    hotness: Arc<Hotness>,
}

impl fmt::Debug for LazyReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.reader.load().is_some() { "open" } else { "closed" })
    }
}

/// A table with its number and its reader.
pub(crate) trait NamedTable {
    /// The table's reader, open or not.
    fn slot(&self) -> &Arc<LazyReader>;
    /// The file's number.
    fn number(&self) -> u64;
    /// The table's filter file, if it has one.
    fn filter_file(&self) -> Option<u64>;
    /// The sequence number of all entries of an ingested table; `None` for a table that the store wrote.
    fn ingest_sequence(&self) -> Option<Sequence>;
}

impl<T: NamedTable> NamedTable for Arc<T> {
    #[inline]
    fn slot(&self) -> &Arc<LazyReader> {
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
}

/// An open table for the time of one read.
#[derive(Debug)]
pub(crate) enum OpenTable {
    /// Protected without a reference count, as long as this lives.
    Guarded(Guard<Option<Arc<TableReader>>>),
    Counted(Arc<TableReader>),
}

impl Deref for OpenTable {
    type Target = Arc<TableReader>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Counted(reader) => reader,
            Self::Guarded(guard) => guard.as_ref().expect("a guard is made for a value that is there"),
        }
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
    pub(crate) fn get(&self) -> Option<OpenTable> {
        let guard = self.reader.load();
        guard.as_ref()?;
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
        Some(OpenTable::Guarded(guard))
    }

    /// Opens the table unless another thread did meanwhile. Returns whether this call opened it.
    pub(crate) fn open(
        &self,
        environment: &Arc<TableEnvironment>,
        table: &impl NamedTable,
    ) -> Result<(OpenTable, bool)> {
        let _opening = self.opening.lock();
        if let Some(open) = self.get() {
            return Ok((open, false));
        }
        let (number, filter_file) = (table.number(), table.filter_file());
        let sequence = table.ingest_sequence();
        let reader = TableReader::open_at(environment, number, filter_file, sequence, &self.hotness)?;
        self.reader.store(Some(Arc::clone(&reader)));
        self.is_used.store(true, Ordering::Relaxed);
        Ok((OpenTable::Counted(reader), true))
    }

    /// Whether it was used since the last call.
    pub(crate) fn take_mark(&self) -> bool {
        self.is_used.swap(false, Ordering::Relaxed)
    }

    /// Drops the reader. Reads that use it continue.
    pub(crate) fn close(&self) {
        self.reader.store(None);
    }
}
