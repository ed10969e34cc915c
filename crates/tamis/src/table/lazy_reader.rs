//! Where the open reader of one table stands: empty until the table is first read, emptied to save open files.

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
    /// Held while the table is opened, so that it is opened once.
    opening: Mutex<()>,
    /// Set by every use, taken back by the table cache's clock.
    is_used: AtomicBool,
    /// What the table's filters go by; it outlives the reader.
    hotness: Arc<Hotness>,
}

impl fmt::Debug for LazyReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.reader.load().is_some() { "open" } else { "closed" })
    }
}

/// What names a table and has a slot for its reader.
pub(crate) trait NamedTable {
    /// Where the open reader stands.
    fn slot(&self) -> &Arc<LazyReader>;
    /// The file's number.
    fn number(&self) -> u64;
    /// The filter file in force, where there is one beside the table.
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

/// An open table, held for the time of one read.
#[derive(Debug)]
pub(crate) enum OpenTable {
    /// Protected without counting, for as long as this lives.
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
    /// An empty slot of a table that is as much needed as another.
    pub(crate) fn with_hotness(hotness: &Arc<Hotness>) -> Self {
        Self { hotness: Arc::clone(hotness), ..Self::default() }
    }

    /// How much the table's filters are needed.
    pub(crate) const fn hotness(&self) -> &Arc<Hotness> {
        &self.hotness
    }

    /// The reader, where the table is open.
    #[inline]
    pub(crate) fn get(&self) -> Option<OpenTable> {
        let guard = self.reader.load();
        guard.as_ref()?;
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
        Some(OpenTable::Guarded(guard))
    }

    /// Opens the table where no other thread did meanwhile; tells whether it was opened now.
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

    /// Lets go of the reader; who uses it now goes on.
    pub(crate) fn close(&self) {
        self.reader.store(None);
    }
}
