//! What all tables of a database share, and what one read cost.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tamis_vfs::{Access, Vfs};

use super::section::Source;
use crate::{
    cache::{
        block::BlockCache,
        pinned_cache::{Pinned, PinnedCache},
    },
    error::{Error, Result},
    events::{Event, EventListener},
    file_name::FileName,
    metrics::Metrics,
};

/// The surroundings of tables: where files are, how they are read, where blocks are kept, whom to tell.
#[derive(Debug)]
pub(crate) struct TableEnvironment {
    pub(crate) vfs: Arc<dyn Vfs>,
    pub(crate) folder: PathBuf,
    pub(crate) access: Access,
    pub(crate) cache: Arc<BlockCache>,
    /// Memory for indexes and filters.
    pub(crate) pinned_cache: Arc<PinnedCache>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) listener: Option<Arc<dyn EventListener>>,
}

impl TableEnvironment {
    /// Opens a file of the folder for reading.
    pub(super) fn open_file(&self, name: FileName) -> Result<Source> {
        let path = name.path(&self.folder);
        open_path(self, &path).map_err(|error| match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Error::MissingFile {
                path,
                advice: "the manifest names it: restore it from a copy, or run `tamis repair`",
            },
            other => other,
        })
    }

    /// A value read from `source` that is held while the pinned cache has room. One of a mapped file always stays: it costs no
    /// memory of ours.
    pub(super) fn keep<T: fmt::Debug + Send + Sync + 'static>(
        &self,
        source: &Source,
        value: T,
        bytes: u64,
    ) -> Pinned<T> {
        if source.file.mapping().is_some() {
            return Pinned::fixed(value);
        }
        Pinned::counted(&self.pinned_cache, &source.path, value, bytes)
    }

    /// Counts and reports a filter that can't be used. Reads go on without it.
    pub(crate) fn report_filter(&self, file: &Path, reason: String) {
        self.metrics.corrupt_filters.add(1);
        if let Some(listener) = &self.listener {
            listener.on_event(&Event::FilterCorrupt { file: file.to_path_buf(), reason });
        }
    }
}

/// Whether a filter, or a part of one, could not be used when it was read after its table had been opened. It is told once and
/// not read again while the table is open.
#[derive(Debug, Default)]
pub(super) struct FilterFault(AtomicBool);

impl FilterFault {
    #[inline]
    pub(super) fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes note of what came of reading it.
    pub(super) fn note<T>(&self, environment: &TableEnvironment, file: &Path, read: Result<T>) -> Result<T> {
        read.inspect_err(|error| {
            if !self.0.swap(true, Ordering::Relaxed) {
                environment.report_filter(file, error.to_string());
            }
        })
    }
}

/// Opens any file for reading.
pub(super) fn open_path(environment: &TableEnvironment, path: &Path) -> Result<Source> {
    let failed = |source: io::Error| Error::io("open", path, source);
    let file = environment.vfs.open(path, environment.access).map_err(failed)?;
    let length = file.length().map_err(failed)?;
    Ok(Source { file, path: path.into(), access: environment.access, length })
}

/// What reads cost, counted without atomics; added to the database's counters at the end of each read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReadCost {
    /// Blocks loaded from the file, and first touches of mapped blocks.
    pub(crate) blocks_read: u64,
    /// Bytes of those blocks in the file, and of others that were read with them.
    pub(crate) bytes_read: u64,
    /// Blocks found in the cache, or mapped and verified before.
    pub(crate) cache_hits: u64,
}

impl ReadCost {
    pub(crate) fn add_to(&self, metrics: &Metrics) {
        metrics.blocks_read.add(self.blocks_read);
        metrics.bytes_read.add(self.bytes_read);
        metrics.cache_hits.add(self.cache_hits);
    }
}
