//! The environment that all tables of a database share, and the cost of one read.

use std::{
    fmt, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tamis_vfs::{Access, Folder};

use super::{open_files::OpenFiles, section::Source};
use crate::{
    cache::{
        block::BlockCache,
        pinned_cache::{Pinned, PinnedCache},
    },
    error::{Error, Result},
    file_name::FileName,
    observe::{
        events::{Event, EventListener},
        metrics::{Metrics, ReadCounters, ReadPlace},
    },
};

/// The environment of tables: folder, access mode, caches, metrics, listener.
#[derive(Debug)]
pub(crate) struct TableEnvironment {
    pub(crate) folder: Folder,
    pub(crate) access: Access,
    /// The open files.
    pub(crate) open_files: Arc<OpenFiles>,
    pub(crate) cache: Arc<BlockCache>,
    /// Memory for indexes and filters.
    pub(crate) pinned_cache: Arc<PinnedCache>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) listener: Option<Arc<dyn EventListener>>,
}

impl TableEnvironment {
    /// Opens a file of the folder for reading.
    pub(crate) fn open_file(&self, name: FileName) -> Result<Source> {
        let path = name.path(&self.folder);
        open_path(self, &path).map_err(|error| match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => Error::MissingFile {
                path,
                advice: "the manifest names it: restore it from a copy, or run `tamis repair`",
            },
            other => other,
        })
    }

    /// A value read from `source` for the pinned cache. A value in a mapped file always stays: it takes none of our memory.
    pub(super) fn pin<T: fmt::Debug + Send + Sync + 'static>(
        &self,
        source: &Source,
        value: T,
        bytes: u64,
    ) -> Pinned<T> {
        if source.uses_sections_in_place() {
            return Pinned::fixed(value);
        }
        Pinned::counted(&self.pinned_cache, &source.path, value, bytes)
    }

    /// Counts and reports a sorted view that can't be used. Reads merge its runs.
    pub(crate) fn report_view(&self, file: &Path, reason: String) {
        self.metrics.views_discarded.add(1);
        if let Some(listener) = &self.listener {
            listener.on_event(&Event::ViewFailed { file: file.to_path_buf(), reason });
        }
    }

    /// Counts and reports a filter that can't be used. Reads continue without it.
    pub(crate) fn report_filter(&self, file: &Path, reason: String) {
        self.metrics.corrupt_filters.add(1);
        if let Some(listener) = &self.listener {
            listener.on_event(&Event::FilterCorrupt { file: file.to_path_buf(), reason });
        }
    }
}

/// Whether a filter, or a part of one, was found to be unusable after its table was opened. It is reported once and not
/// read again while the table is open. Another error than damage may pass: the filter stays evicted, and is read again later.
#[derive(Debug, Default)]
pub(super) struct FilterFault(AtomicBool);

impl FilterFault {
    #[inline]
    pub(super) fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Records the result of reading it.
    pub(super) fn record<T>(
        &self,
        environment: &TableEnvironment,
        file: &Path,
        read: Result<T>,
    ) -> Result<T> {
        read.inspect_err(|error| {
            if error.is_lasting_damage() && !self.0.swap(true, Ordering::Relaxed) {
                environment.report_filter(file, error.to_string());
            }
        })
    }
}

/// Opens any file for reading.
pub(super) fn open_path(environment: &TableEnvironment, path: &Path) -> Result<Source> {
    let failed = |source: io::Error| Error::io("open", path, source);
    let open =
        environment.open_files.open(environment.folder.vfs(), path, environment.access).map_err(failed)?;
    let length = open.file.length().map_err(failed)?;
    Ok(Source::new(open, path, length))
}

/// The cost of reads, counted without atomics; added to the database's counters at the end of each read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReadCost {
    /// Blocks loaded from the file, and mapped blocks used for the first time.
    pub(crate) blocks_read: u64,
    /// Bytes of those blocks in the file, and of others that were read with them.
    pub(crate) bytes_read: u64,
    /// Blocks found in the cache, or mapped and verified before.
    pub(crate) cache_hits: u64,
}

impl ReadCost {
    /// Adds the blocks to those of a kind of reads in a level, and the bytes to those of all reads.
    pub(crate) fn add_to(&mut self, metrics: &Metrics, place: Option<ReadPlace>) {
        match place.and_then(|place| metrics.reads(place)) {
            Some(reads) => self.move_blocks_to(reads),
            None => {
                metrics.other_blocks_read.add(self.blocks_read);
                metrics.other_cache_hits.add(self.cache_hits);
            }
        }
        metrics.bytes_read.add(self.bytes_read);
        *self = Self::default();
    }

    /// Adds the blocks, which are then no longer counted here.
    #[inline]
    pub(crate) fn move_blocks_to(&mut self, reads: &ReadCounters) {
        reads.blocks_read.add(std::mem::take(&mut self.blocks_read));
        reads.cache_hits.add(std::mem::take(&mut self.cache_hits));
    }
}
