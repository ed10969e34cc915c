//! The table cache: opens tables at their first read and keeps them open.
//!
//! Each table of a version has its own [`LazyReader`](crate::table::lazy_reader::LazyReader), so that access to an open table is one
//! atomic load without a lookup. Descriptors and mappings have separate limits (`table/open_files.rs`).

use std::sync::Arc;

use tamis_vfs::Folder;

use super::{block::BlockCache, pinned_cache::PinnedCache};
use crate::{
    error::Result,
    observe::metrics::Metrics,
    options::Options,
    store::memory_budget::MemoryBudget,
    table::{
        environment::TableEnvironment, lazy_reader::NamedTable, open_files::OpenFiles, reader::TableReader,
    },
};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct TableCache {
    environment: Arc<TableEnvironment>,
}

impl TableCache {
    /// The tables of `folder`, with the access mode of the options.
    pub(crate) fn new(folder: &Folder, options: &Options, metrics: &Arc<Metrics>) -> Arc<Self> {
        let pinned_bytes = options.cache_bytes / 100 * u64::from(options.cache_pinned_percent);
        let cache = Arc::new(BlockCache::new(options.cache_bytes));
        let blocks = Arc::clone(&cache);
        let budget =
            MemoryBudget::new(options.cache_bytes, pinned_bytes, move |bytes| blocks.set_capacity(bytes));
        let environment = TableEnvironment {
            folder: folder.clone(),
            access: options.table_access,
            open_files: OpenFiles::new(&**folder),
            cache,
            pinned_cache: PinnedCache::new(
                pinned_bytes,
                &Arc::new(budget),
                metrics,
                options.listener.clone(),
            ),
            metrics: Arc::clone(metrics),
            listener: options.listener.clone(),
        };
        Arc::new(Self { environment: Arc::new(environment) })
    }

    /// The environment of the tables.
    pub(crate) const fn environment(&self) -> &Arc<TableEnvironment> {
        &self.environment
    }

    /// The open table; opened now if it is closed.
    #[inline]
    pub(crate) fn reader<'t>(&self, table: &'t impl NamedTable) -> Result<&'t Arc<TableReader>> {
        match table.slot().get() {
            Some(open) => Ok(open),
            None => table.slot().open(&self.environment, table),
        }
    }

    /// The counters of the database.
    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.environment.metrics
    }

    /// The open table and filter files.
    pub(crate) fn open_files(&self) -> &OpenFiles {
        &self.environment.open_files
    }

    /// Bytes of indexes and filters in memory.
    pub(crate) fn pinned_bytes(&self) -> u64 {
        self.environment.pinned_cache.used_bytes()
    }

    /// The memory of pinned values, sampled queries and blocks.
    pub(crate) fn budget(&self) -> &Arc<MemoryBudget> {
        self.environment.pinned_cache.budget()
    }

    /// Bytes of the cached blocks.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.environment.cache.bytes()
    }
}

#[cfg(test)]
mod tests;
