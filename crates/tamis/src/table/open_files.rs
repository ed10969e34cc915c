//! The open table and filter files of a store that are read without a mapping: at most as many as the limit of the process allows.
//!
//! The descriptor that was not used for longest (by a clock, as in `cache/table.rs`) is closed and opened again at its next read. So
//! a reader stays usable however many files others have open. Its path stays valid: a file is renamed or removed only after its
//! last reader was dropped (`version/handle.rs`). A mapped file needs no descriptor.
//!
//! Cost: one atomic load per read; one open when a closed file is read.

use std::{
    collections::VecDeque,
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tamis_vfs::{Access, File, Vfs};

/// The maximum where the process has no limit.
const UNLIMITED: u64 = 100_000;
/// Descriptors for the log, the manifest, files that jobs write, and the program.
const RESERVED: u64 = 32;
/// The minimum, whatever the limit is.
const COUNT_MIN: u64 = 8;

/// How many table and filter files a store may have open: a quarter of the limit of the process and some more are left for others.
fn count_max_of(process_limit: Option<u64>) -> usize {
    let limit = process_limit.unwrap_or(UNLIMITED).min(UNLIMITED);
    let count = (limit / 4 * 3).saturating_sub(RESERVED).max(limit / 4).max(COUNT_MIN);
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    count_max: usize,
    /// Files with a descriptor, in the order of the clock.
    open: Mutex<VecDeque<Weak<ReopenableFile>>>,
}

impl OpenFiles {
    /// With a maximum that suits the limit of the process.
    pub(crate) fn new(vfs: &dyn Vfs) -> Arc<Self> {
        Self::with_limit(count_max_of(vfs.open_files_max()))
    }

    fn with_limit(count_max: usize) -> Arc<Self> {
        Arc::new(Self { count_max, open: Mutex::default() })
    }

    /// The maximum number of descriptors.
    pub(crate) const fn count_max(&self) -> usize {
        self.count_max
    }

    /// The number of descriptors.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().iter().filter(|file| file.strong_count() > 0).count()
    }

    /// Opens a file. It needs a descriptor only while it is read often, or none if it is mapped.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn open(
        self: &Arc<Self>,
        vfs: &Arc<dyn Vfs>,
        path: &Path,
        access: Access,
    ) -> io::Result<Arc<dyn File>> {
        let file = vfs.open(path, access)?;
        if file.mapping().is_some() {
            return Ok(file);
        }
        let reopenable = Arc::new(ReopenableFile {
            length: file.length()?,
            file: ArcSwapOption::from_pointee(file),
            is_used: AtomicBool::new(true),
            vfs: Arc::clone(vfs),
            path: path.to_path_buf(),
            access,
            open_files: Arc::clone(self),
            opening: Mutex::new(()),
        });
        self.admit(&reopenable);
        Ok(Arc::new(FileReader(reopenable)))
    }

    /// Records a file with a descriptor; closes others beyond the maximum.
    fn admit(&self, file: &Arc<ReopenableFile>) {
        let mut open = self.open.lock();
        open.push_back(Arc::downgrade(file));
        // The clock visits each file at most twice: first it clears the mark, then it closes the file.
        let mut turns = 2 * open.len();
        while open.len() > self.count_max && turns > 0 {
            turns -= 1;
            let Some(first) = open.pop_front() else { return };
            let Some(candidate) = first.upgrade() else { continue };
            if Arc::ptr_eq(&candidate, file) || candidate.is_used.swap(false, Ordering::Relaxed) {
                open.push_back(first);
            } else {
                candidate.file.store(None);
            }
        }
    }
}

/// A file for reading whose descriptor may be closed between two reads.
struct ReopenableFile {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    access: Access,
    length: u64,
    /// `None` while it is closed.
    file: ArcSwapOption<Arc<dyn File>>,
    is_used: AtomicBool,
    open_files: Arc<OpenFiles>,
    /// Locked while it is opened again, so that it is opened once.
    opening: Mutex<()>,
}

impl fmt::Debug for ReopenableFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ReopenableFile({})", self.path.display())
    }
}

impl ReopenableFile {
    /// The open file, if it has a descriptor.
    fn get(&self) -> Option<Arc<Arc<dyn File>>> {
        let file = self.file.load_full()?;
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
        Some(file)
    }

    /// Opens the file again.
    fn reopen(self: &Arc<Self>) -> io::Result<Arc<Arc<dyn File>>> {
        let _opening = self.opening.lock();
        if let Some(file) = self.get() {
            return Ok(file);
        }
        let file = Arc::new(self.vfs.open(&self.path, self.access)?);
        self.file.store(Some(Arc::clone(&file)));
        self.is_used.store(true, Ordering::Relaxed);
        self.open_files.admit(self);
        Ok(file)
    }
}

/// The handle that readers have of a file.
#[derive(Debug)]
struct FileReader(Arc<ReopenableFile>);

impl FileReader {
    fn file(&self) -> io::Result<Arc<Arc<dyn File>>> {
        match self.0.get() {
            Some(file) => Ok(file),
            None => self.0.reopen(),
        }
    }
}

impl File for FileReader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file()?.read_at(offset, buffer)
    }

    fn append(&self, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        self.file()?.sync()
    }

    fn truncate(&self, _length: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    /// The length when it was opened first: table and filter files do not change.
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.length)
    }

    fn mapping(&self) -> Option<&[u8]> {
        None
    }

    fn will_need(&self, offset: u64, length: u64) {
        // A hint, which is not worth an open.
        if let Some(file) = self.0.get() {
            file.will_need(offset, length);
        }
    }
}

#[cfg(test)]
mod tests;
