//! Handles of files that versions name. A file lives as long as a version or a reader has its handle.
//!
//! 1. A [`FileHandle`] is shared by all versions and readers of the file. When an edit removes the file from the current
//!    version, the handle is marked obsolete. When the last owner drops it, the name goes to the [`ObsoleteFiles`] queue,
//!    from which `VersionSet::delete_obsolete_files` deletes it. Dropping a handle never touches the file.
//! 2. A [`Table`] is one table with one filter file. Replacing the filter makes another `Table` with the same
//!    [`FileHandle`], so that readers of an older version keep the older filter.

use std::{
    collections::BTreeMap,
    fmt, mem,
    ops::Bound,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::{filter_tally::FilterTally, key_bounds::KeyBounds};
use crate::{
    file_name::FileName,
    key::Sequence,
    range_tombstone::{Fragments, key_after},
    sync::Mutex,
    table::{
        lazy_reader::{LazyReader, NamedTable},
        properties::{TableIdentity, TableSummary},
    },
};

/// Queue of unused files that are to be deleted.
#[derive(Debug, Default)]
pub(crate) struct ObsoleteFiles {
    names: Mutex<Vec<FileName>>,
    /// Whether `names` holds some.
    is_filled: AtomicBool,
    /// Bytes of obsolete tables that still have an owner.
    held_bytes: AtomicU64,
}

impl ObsoleteFiles {
    /// Removes and returns all names in the queue.
    pub(crate) fn take(&self) -> Vec<FileName> {
        let mut names = self.names.lock();
        self.is_filled.store(false, Ordering::Release);
        mem::take(&mut *names)
    }

    /// Bytes of tables that no current version names and that can't be deleted yet, because a scan or a handle of a dropped keyspace
    /// has them.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Adds names to the queue.
    pub(crate) fn extend(&self, names: impl IntoIterator<Item = FileName>) {
        let mut queue = self.names.lock();
        queue.extend(names);
        self.is_filled.store(!queue.is_empty(), Ordering::Release);
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.is_filled.load(Ordering::Acquire)
    }
}

/// A file that versions name; see the head of this file.
pub(crate) struct FileHandle {
    name: FileName,
    /// Bytes of a table; 0 for derived files.
    bytes: u64,
    is_obsolete: AtomicBool,
    obsolete_files: Arc<ObsoleteFiles>,
}

impl FileHandle {
    pub(crate) fn new(name: FileName, bytes: u64, obsolete_files: &Arc<ObsoleteFiles>) -> Arc<Self> {
        Arc::new(Self {
            name,
            bytes,
            is_obsolete: AtomicBool::new(false),
            obsolete_files: Arc::clone(obsolete_files),
        })
    }

    pub(crate) const fn name(&self) -> FileName {
        self.name
    }

    /// The current version no longer names the file: it is deleted after the last owner drops the handle.
    pub(crate) fn mark_obsolete(&self) {
        if !self.is_obsolete.swap(true, Ordering::AcqRel) {
            self.obsolete_files.held_bytes.fetch_add(self.bytes, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_obsolete(&self) -> bool {
        self.is_obsolete.load(Ordering::Acquire)
    }
}

impl Drop for FileHandle {
    fn drop(&mut self) {
        if self.is_obsolete() {
            self.obsolete_files.held_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
            self.obsolete_files.extend([self.name]);
        }
    }
}

impl fmt::Debug for FileHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name.name())
    }
}

/// A table as versions name it.
pub(crate) struct Table {
    summary: Arc<TableSummary>,
    filter: Option<Arc<FileHandle>>,
    file: Arc<FileHandle>,
    is_ingested: bool,
    slot: LazyReader,
    filter_tally: FilterTally,
    range_deletes: Arc<RangeDeletes>,
}

/// The range tombstones of a table as the picker sees them.
#[derive(Default)]
struct RangeDeletes {
    /// See [`Table::range_tombstones`].
    fragments: OnceLock<Arc<Fragments>>,
    /// See [`Table::covered_bytes`].
    covered_bytes: Mutex<BTreeMap<u64, u64>>,
}

impl Table {
    /// A table that this store wrote and that was in no version before.
    pub(crate) fn new(
        summary: TableSummary,
        filter_file: Option<u64>,
        obsolete_files: &Arc<ObsoleteFiles>,
    ) -> Arc<Self> {
        Self::from_edit(summary, filter_file, false, obsolete_files)
    }

    /// A table as an edit adds it.
    pub(super) fn from_edit(
        summary: TableSummary,
        filter_file: Option<u64>,
        is_ingested: bool,
        obsolete_files: &Arc<ObsoleteFiles>,
    ) -> Arc<Self> {
        let file = FileHandle::new(FileName::Table(summary.number), summary.file_bytes, obsolete_files);
        let filter = filter_file.map(|number| FileHandle::new(FileName::Filter(number), 0, obsolete_files));
        Arc::new(Self {
            summary: Arc::new(summary),
            filter,
            file,
            is_ingested,
            slot: LazyReader::default(),
            filter_tally: FilterTally::default(),
            range_deletes: Arc::default(),
        })
    }

    /// The same table with another filter file.
    pub(crate) fn with_filter(&self, filter_file: Option<u64>) -> Arc<Self> {
        let obsolete_files = &self.file.obsolete_files;
        Arc::new(Self {
            summary: Arc::clone(&self.summary),
            filter: filter_file.map(|number| FileHandle::new(FileName::Filter(number), 0, obsolete_files)),
            file: Arc::clone(&self.file),
            is_ingested: self.is_ingested,
            slot: LazyReader::with_hotness(self.slot.hotness()),
            filter_tally: self.filter_tally.of_other_filters(),
            range_deletes: Arc::clone(&self.range_deletes),
        })
    }

    pub(crate) fn summary(&self) -> &TableSummary {
        &self.summary
    }

    /// The same, for others that keep it.
    pub(crate) fn shared_summary(&self) -> Arc<TableSummary> {
        Arc::clone(&self.summary)
    }

    pub(crate) fn number(&self) -> u64 {
        self.summary.number
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.summary.file_bytes
    }

    #[inline]
    pub(crate) fn smallest_key(&self) -> &[u8] {
        &self.summary.smallest_key
    }

    #[inline]
    pub(crate) fn largest_key(&self) -> &[u8] {
        &self.summary.largest_key
    }

    /// The end of the table: its last entry, or the end of its last range tombstone.
    pub(crate) fn end(&self) -> Bound<&[u8]> {
        self.summary.end()
    }

    /// The smallest excluded bound above its entries and range tombstones; empty if they have no end.
    pub(crate) fn upper(&self) -> Vec<u8> {
        match self.end() {
            Bound::Included(largest) => key_after(largest).unwrap_or_default(),
            Bound::Excluded(upper) => upper.to_vec(),
            Bound::Unbounded => Vec::new(),
        }
    }

    /// The key range of its entries and range tombstones.
    pub(crate) fn bounds(&self) -> KeyBounds<'_> {
        (Bound::Included(self.smallest_key()), self.end())
    }

    /// Whether `key` is above all entries and range tombstones.
    pub(crate) fn ends_before(&self, key: &[u8]) -> bool {
        self.summary.ends_before(key)
    }

    #[inline]
    pub(crate) fn has_range_tombstones(&self) -> bool {
        self.summary.range_tombstone_count > 0
    }

    /// The range tombstones, for the picker, which does no I/O; `None` if they were not loaded yet.
    pub(crate) fn range_tombstones(&self) -> Option<&Fragments> {
        self.range_deletes.fragments.get().map(Arc::as_ref)
    }

    /// Sets the range tombstones that were read from the table.
    pub(crate) fn set_range_tombstones(&self, fragments: Arc<Fragments>) {
        // Another thread may have set the same ones.
        let _ = self.range_deletes.fragments.set(fragments);
    }

    /// Whether it has range tombstones that were not loaded yet.
    pub(crate) fn needs_range_tombstones(&self) -> bool {
        self.has_range_tombstones() && self.range_deletes.fragments.get().is_none()
    }

    /// The approximate bytes that the range tombstones delete of older tables, by the numbers of these tables, as far as they are known.
    pub(crate) fn covered_bytes(&self) -> BTreeMap<u64, u64> {
        self.range_deletes.covered_bytes.lock().clone()
    }

    pub(crate) fn set_covered_bytes(&self, covered: BTreeMap<u64, u64>) {
        *self.range_deletes.covered_bytes.lock() = covered;
    }

    /// The table's filter file, if it has one.
    pub(crate) fn filter_file(&self) -> Option<u64> {
        self.filter.as_ref().and_then(|handle| handle.name().number())
    }

    /// Whether the table was built outside of the store and ingested.
    pub(crate) const fn is_ingested(&self) -> bool {
        self.is_ingested
    }

    /// How its filters answered.
    #[inline]
    pub(crate) const fn filter_tally(&self) -> &FilterTally {
        &self.filter_tally
    }

    pub(crate) const fn file(&self) -> &Arc<FileHandle> {
        &self.file
    }

    pub(crate) const fn filter(&self) -> Option<&Arc<FileHandle>> {
        self.filter.as_ref()
    }
}

impl NamedTable for Table {
    #[inline]
    fn slot(&self) -> &LazyReader {
        &self.slot
    }

    fn number(&self) -> u64 {
        self.summary.number
    }

    fn filter_file(&self) -> Option<u64> {
        self.filter_file()
    }

    fn ingest_sequence(&self) -> Option<Sequence> {
        self.is_ingested.then_some(self.summary.smallest_sequence)
    }

    fn identity(&self) -> TableIdentity {
        self.summary.identity()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = &self.summary;
        write!(
            formatter,
            "{}:[{}..{}]",
            summary.number,
            summary.smallest_key.escape_ascii(),
            summary.largest_key.escape_ascii()
        )
    }
}

#[cfg(test)]
mod tests;
