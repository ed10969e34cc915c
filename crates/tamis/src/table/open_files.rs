//! The open table and filter files of a store: at most as many descriptors and mappings as the limits of the process allow.
//!
//! A mapped file needs no descriptor. Systems limit the mappings of a process, too (Linux: to 65,530, which memory allocators
//! share): beyond [`MAPPED_COUNT_MAX`] mapped files, others are read without a mapping.
//!
//! The descriptor that was not used for longest (by a clock) is closed and opened again at its next read. So
//! a reader stays usable however many files others have open. Its path stays valid: a file is renamed or removed only after its
//! last reader was dropped (`version/handle.rs`). The end of the file, which is its footer, is compared: another program may have put
//! another file under the name.
//!
//! Cost: one atomic load per read; one open when a closed file is read.

use std::{
    collections::VecDeque,
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use crate::sync::Mutex;
use arc_swap::ArcSwapOption;
use tamis_vfs::{Access, File, Mapping, Vfs};

use super::{direct_buffer::DirectBuffer, format::FILE_ALIGNMENT};

/// The maximum where the process has no limit.
const UNLIMITED: u64 = 100_000;
/// The minimum for any limit of the process.
const COUNT_MIN: u64 = 8;
/// How many files a store may have mapped.
const MAPPED_COUNT_MAX: usize = 20_000;

/// How many table and filter files a store may have open: a quarter of the limit of the process and some more are left for others.
fn count_max_of(process_limit: Option<u64>) -> usize {
    let limit = process_limit.unwrap_or(UNLIMITED).min(UNLIMITED);
    // Descriptors for the log, the manifest, files that jobs write, and the program.
    let count = (limit / 4 * 3).saturating_sub(32).max(limit / 4).max(COUNT_MIN);
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    count_max: usize,
    mapped_count_max: usize,
    mapped_count: AtomicUsize,
    /// Files with a descriptor, in the order of the clock.
    open: Mutex<VecDeque<Weak<ReopenableFile>>>,
}

impl OpenFiles {
    /// With a maximum that suits the limit of the process.
    pub(crate) fn new(vfs: &dyn Vfs) -> Arc<Self> {
        Self::with_limits(count_max_of(vfs.open_files_max()), MAPPED_COUNT_MAX)
    }

    fn with_limits(count_max: usize, mapped_count_max: usize) -> Arc<Self> {
        Arc::new(Self {
            count_max,
            mapped_count_max,
            mapped_count: AtomicUsize::new(0),
            open: Mutex::default(),
        })
    }

    /// The maximum number of descriptors.
    pub(crate) const fn count_max(&self) -> usize {
        self.count_max
    }

    /// The number of descriptors.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().iter().filter(|file| file.strong_count() > 0).count()
    }

    /// Opens a file. It needs a descriptor only while it is read often, or none if it is mapped. It is not mapped if too many files
    /// are.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn open(
        self: &Arc<Self>,
        vfs: &Arc<dyn Vfs>,
        path: &Path,
        access: Access,
    ) -> io::Result<OpenFile> {
        let mapping = (access == Access::Mapped).then(|| CountedMapping::new(self));
        let access = match &mapping {
            Some(mapping) if mapping.number > self.mapped_count_max => Access::Buffered,
            _ => access,
        };
        let (file, access) = match vfs.open(path, access) {
            // Other parts of the process have mapped as much as the system allows.
            Err(error) if access == Access::Mapped && error.kind() == io::ErrorKind::OutOfMemory => {
                (vfs.open(path, Access::Buffered)?, Access::Buffered)
            }
            opened => (opened?, access),
        };
        if file.mapping().is_some() {
            return Ok(OpenFile { file, access, mapping: mapping.map(Arc::new) });
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
            end: OnceLock::new(),
        });
        self.admit(&reopenable);
        Ok(OpenFile { file: Arc::new(FileReader(reopenable)), access, mapping: None })
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
                candidate.close();
            }
        }
    }
}

/// A file that was opened for reading.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) file: Arc<dyn File>,
    /// How it is read: without a mapping if too many files are mapped.
    pub(super) access: Access,
    pub(super) mapping: Option<Arc<CountedMapping>>,
}

/// A mapping in the count of its store.
#[derive(Debug)]
pub(super) struct CountedMapping {
    open_files: Arc<OpenFiles>,
    /// The number of mappings when it was added.
    number: usize,
}

impl CountedMapping {
    fn new(open_files: &Arc<OpenFiles>) -> Self {
        let number = open_files.mapped_count.fetch_add(1, Ordering::Relaxed) + 1;
        Self { open_files: Arc::clone(open_files), number }
    }
}

impl Drop for CountedMapping {
    fn drop(&mut self) {
        self.open_files.mapped_count.fetch_sub(1, Ordering::Relaxed);
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
    /// The last bytes, read when the file is closed first.
    end: OnceLock<Vec<u8>>,
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

    /// Closes the file and keeps what identifies it.
    fn close(&self) {
        if let Some(file) = self.file.load_full()
            && self.end.get().is_none()
            && let Ok(end) = self.read_end(&**file)
        {
            let _ = self.end.set(end);
        }
        self.file.store(None);
    }

    /// The last bytes of a file of this length.
    fn read_end(&self, file: &dyn File) -> io::Result<Vec<u8>> {
        let start = self.length.saturating_sub(1) / FILE_ALIGNMENT as u64 * FILE_ALIGNMENT as u64;
        let mut buffer = DirectBuffer::zeroed((self.length - start) as usize);
        let bytes = buffer.bytes_mut();
        let length = if self.access == Access::Direct { bytes.len() } else { (self.length - start) as usize };
        let target = bytes.get_mut(..length).unwrap_or_default();
        file.read_at(start, target)?;
        Ok(target.to_vec())
    }

    /// # Errors
    /// Of a file that is not the one that was closed.
    fn check_same(&self, file: &dyn File) -> io::Result<()> {
        let length = file.length()?;
        if length != self.length {
            let text = format!("another file has its name: expected {} bytes, got {length}", self.length);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let Some(expected) = self.end.get() else { return Ok(()) };
        let found = self.read_end(file)?;
        if *expected == found {
            return Ok(());
        }
        let [expected, got] =
            [expected, &found].map(|end| end.last_chunk().map_or(0, |sum| u64::from_le_bytes(*sum)));
        let text =
            format!("another file has its name: expected footer checksum {expected:#018x}, got {got:#018x}");
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    }

    /// Opens the file again.
    fn reopen(self: &Arc<Self>) -> io::Result<Arc<Arc<dyn File>>> {
        let _opening = self.opening.lock();
        if let Some(file) = self.get() {
            return Ok(file);
        }
        let file = Arc::new(self.vfs.open(&self.path, self.access)?);
        self.check_same(&**file)?;
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

    fn mapping(&self) -> Option<&Arc<Mapping>> {
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
