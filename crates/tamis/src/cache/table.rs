//! The table cache: opens tables at their first read and keeps them open.
//!
//! Each table of a version has its own [`LazyReader`], so that access to an open table is one atomic load without a lookup.
//! The cache records which tables are open and closes some when more than [`OPEN_COUNT_MAX`] would be open: those
//! that were not used since the last turn of the clock. (Descriptors have a separate limit, `table/open_files.rs`.) A running read
//! keeps its table open; the next read opens a closed table again.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tamis_vfs::Vfs;

use super::{block::BlockCache, pinned_cache::PinnedCache};
use crate::{
    error::Result,
    metrics::Metrics,
    options::Options,
    table::{
        environment::TableEnvironment,
        gap_cache::GapBudget,
        lazy_reader::{LazyReader, NamedTable, OpenTable},
        open_files::OpenFiles,
    },
};

/// The greatest number of open tables.
const OPEN_COUNT_MAX: usize = 800;

/// The share of the cache that known gaps may use in addition to it.
const GAP_SHARE: u64 = 32;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct TableCache {
    environment: Arc<TableEnvironment>,
    open_count_max: usize,
    /// Open tables in the order of the clock.
    open: Mutex<VecDeque<Weak<LazyReader>>>,
}

impl TableCache {
    /// The tables of `folder`, with the access mode of the options.
    pub(crate) fn new(
        vfs: &Arc<dyn Vfs>,
        folder: &Path,
        options: &Options,
        metrics: &Arc<Metrics>,
    ) -> Arc<Self> {
        let pinned_bytes = options.cache_bytes / 100 * u64::from(options.cache_pinned_percent);
        let environment = TableEnvironment {
            vfs: Arc::clone(vfs),
            folder: folder.to_path_buf(),
            access: options.table_access,
            is_paranoid: options.paranoid_reads,
            open_files: OpenFiles::new(&**vfs),
            cache: Arc::new(BlockCache::new(options.cache_bytes - pinned_bytes)),
            pinned_cache: PinnedCache::new(pinned_bytes, metrics, options.listener.clone()),
            gap_budget: Arc::new(GapBudget::new(if options.gap_cache {
                options.cache_bytes / GAP_SHARE
            } else {
                0
            })),
            metrics: Arc::clone(metrics),
            listener: options.listener.clone(),
        };
        Arc::new(Self::with_limit(environment, OPEN_COUNT_MAX))
    }

    fn with_limit(environment: TableEnvironment, open_count_max: usize) -> Self {
        Self { environment: Arc::new(environment), open_count_max, open: Mutex::default() }
    }

    /// The environment of the tables.
    pub(crate) const fn environment(&self) -> &Arc<TableEnvironment> {
        &self.environment
    }

    /// The open table; opened now if it is closed.
    #[inline]
    pub(crate) fn reader(&self, table: &impl NamedTable) -> Result<OpenTable> {
        if let Some(open) = table.slot().get() {
            return Ok(open);
        }
        self.open(table)
    }

    fn open(&self, table: &impl NamedTable) -> Result<OpenTable> {
        let (opened, is_new) = table.slot().open(&self.environment, table)?;
        if is_new {
            self.admit(table.slot());
        }
        Ok(opened)
    }

    /// Records an open table; closes others beyond the limit.
    fn admit(&self, slot: &Arc<LazyReader>) {
        let mut open = self.open.lock();
        open.push_back(Arc::downgrade(slot));
        // The clock visits each table at most twice: first it clears the mark, then it closes the table.
        let mut turns = 2 * open.len();
        while open.len() > self.open_count_max && turns > 0 {
            turns -= 1;
            let Some(first) = open.pop_front() else { return };
            let Some(candidate) = first.upgrade() else { continue };
            if Arc::ptr_eq(&candidate, slot) || candidate.take_mark() {
                open.push_back(first);
            } else {
                candidate.close();
            }
        }
    }

    /// The counters of the database.
    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.environment.metrics
    }

    /// The table and filter files that are read without a mapping.
    pub(crate) fn open_files(&self) -> &OpenFiles {
        &self.environment.open_files
    }

    /// Bytes of indexes and filters in memory.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.environment.pinned_cache.used_bytes()
    }

    /// Memory of the known gaps of all tables.
    pub(crate) fn gap_budget(&self) -> &Arc<GapBudget> {
        &self.environment.gap_budget
    }

    /// Bytes of the cached blocks.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.environment.cache.bytes()
    }
}

#[cfg(test)]
mod tests;
