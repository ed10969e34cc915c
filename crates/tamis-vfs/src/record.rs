//! A file system that records its operations, for cost tests.
//!
//! It counts every operation, successful or not, per kind and per file name suffix, and logs it with its offset
//! and length. It cannot observe reads through a mapping, which are plain memory loads. So a test of block
//! costs must open tables with [`Access::Buffered`]; for mapped files [`RecordVfs`] counts no bytes.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{Access, DirEntry, File, Lock, LockMode, Mapping, Operation, OperationKind, Vfs};

#[cfg(test)]
mod tests;

/// The log stores this many operations after a reset. The counters are not limited.
const LOG_COUNT_MAX: usize = 1 << 18;

/// Number of operations and of bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations.
    pub count: u64,
    /// Bytes requested by reads and appends; 0 for other kinds.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// A wrapper over any file system that counts and logs operations. Clones share the records.
///
/// ```
/// use std::{path::Path, sync::Arc};
/// use tamis_vfs::{Access, MemVfs, OperationKind, RecordVfs, Vfs};
///
/// let vfs = RecordVfs::new(Arc::new(MemVfs::new()));
/// vfs.create(Path::new("/000001.table"))?.append(&[0; 3 * 4096])?;
/// let table = vfs.open(Path::new("/000001.table"), Access::Buffered)?;
///
/// vfs.reset();
/// table.read_at(4096, &mut [0; 4096])?;
/// assert_eq!(vfs.tally_of(OperationKind::Read, ".table").bytes, 4096);
/// assert_eq!(vfs.blocks_read(".table", 4096), 1);
/// assert_eq!(vfs.operations()[0].offset, 4096);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RecordVfs {
    inner: Arc<dyn Vfs>,
    record: Arc<Record>,
}

#[derive(Debug, Default)]
struct Record {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    log: Vec<Operation>,
    tallies: BTreeMap<(OperationKind, String), Tally>,
}

impl RecordVfs {
    /// Records the operations of `inner`.
    pub fn new(inner: Arc<dyn Vfs>) -> Self {
        Self { inner, record: Arc::default() }
    }

    /// Clears all records. Open files are still recorded.
    pub fn reset(&self) {
        *self.record.state.lock() = State::default();
    }

    /// The first 262,144 operations since the last reset, in order.
    pub fn operations(&self) -> Vec<Operation> {
        self.record.state.lock().log.clone()
    }

    /// All operations of a kind.
    pub fn tally(&self, kind: OperationKind) -> Tally {
        self.sum(|other, _| other == kind)
    }

    /// The operations of a kind on files with a suffix: `.table` matches `000001.table`. A name without a dot
    /// is its own suffix (`CURRENT`).
    pub fn tally_of(&self, kind: OperationKind, suffix: &str) -> Tally {
        self.sum(|other, other_suffix| other == kind && other_suffix == suffix)
    }

    /// How many blocks of this size the logged reads of files with this suffix touched. A block that was read
    /// twice counts twice. Reads through a mapping are not counted.
    pub fn blocks_read(&self, suffix: &str, block_size_bytes: u64) -> u64 {
        let size = block_size_bytes.max(1);
        let state = self.record.state.lock();
        let reads = state.log.iter().filter(|operation| {
            operation.kind == OperationKind::Read
                && operation.length_bytes > 0
                && suffix_of(&operation.path) == suffix
        });
        reads.map(|read| (read.offset + read.length_bytes).div_ceil(size) - read.offset / size).sum()
    }

    fn sum(&self, is_wanted: impl Fn(OperationKind, &str) -> bool) -> Tally {
        let mut total = Tally::default();
        for ((kind, suffix), tally) in &self.record.state.lock().tallies {
            if is_wanted(*kind, suffix) {
                total.add(*tally);
            }
        }
        total
    }

    fn wrap(&self, path: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(RecordFile { inner, record: Arc::clone(&self.record), path: path.to_path_buf() })
    }

    fn note(&self, kind: OperationKind, path: &Path) {
        self.record.note(Operation::new(kind, path));
    }
}

impl Record {
    fn note(&self, operation: Operation) {
        let mut state = self.state.lock();
        let tally = state.tallies.entry((operation.kind, suffix_of(&operation.path))).or_default();
        tally.add(Tally { count: 1, bytes: operation.length_bytes });
        if state.log.len() < LOG_COUNT_MAX {
            state.log.push(operation);
        }
    }
}

/// The file name from its last dot on, or the whole name if it has no dot.
fn suffix_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match name.rfind('.') {
        Some(dot) => name.split_at(dot).1.to_owned(),
        None => name,
    }
}

impl Vfs for RecordVfs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.note(OperationKind::Create, path);
        Ok(self.wrap(path, self.inner.create(path)?))
    }

    fn create_log(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.note(OperationKind::Create, path);
        Ok(self.wrap(path, self.inner.create_log(path)?))
    }

    fn create_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.note(OperationKind::Create, path);
        Ok(self.wrap(path, self.inner.create_direct(path)?))
    }

    fn create_exclusive(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.note(OperationKind::Create, path);
        Ok(self.wrap(path, self.inner.create_exclusive(path)?))
    }

    fn make_readable(&self, path: &Path) -> io::Result<()> {
        self.inner.make_readable(path)
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        self.note(OperationKind::Lock, path);
        self.inner.is_locked(path)
    }

    fn reuse_log(&self, path: &Path) -> io::Result<Option<Arc<dyn File>>> {
        self.note(OperationKind::Reuse, path);
        Ok(self.inner.reuse_log(path)?.map(|file| self.wrap(path, file)))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        self.note(OperationKind::Open, path);
        Ok(self.wrap(path, self.inner.open(path, access)?))
    }

    fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        self.record.note(Operation::new(OperationKind::Rename, source).with_target(target));
        self.inner.rename(source, target)
    }

    fn hard_link(&self, source: &Path, target: &Path) -> io::Result<()> {
        self.record.note(Operation::new(OperationKind::HardLink, source).with_target(target));
        self.inner.hard_link(source, target)
    }

    fn clone_file(&self, source: &Path, target: &Path) -> io::Result<()> {
        self.inner.clone_file(source, target)?;
        self.note(OperationKind::Create, target);
        Ok(())
    }

    fn is_only_name(&self, path: &Path) -> io::Result<bool> {
        self.note(OperationKind::Exists, path);
        self.inner.is_only_name(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.note(OperationKind::Remove, path);
        self.inner.remove(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.note(OperationKind::CreateDir, path);
        self.inner.create_dir_all(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.note(OperationKind::List, path);
        self.inner.list(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.note(OperationKind::Exists, path);
        self.inner.exists(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.note(OperationKind::SyncDir, path);
        self.inner.sync_dir(path)
    }

    fn open_folder(&self, path: &Path) -> io::Result<Arc<dyn Vfs>> {
        self.note(OperationKind::OpenFolder, path);
        let inner = self.inner.open_folder(path)?;
        Ok(Arc::new(Self { inner, record: Arc::clone(&self.record) }))
    }

    fn check_folder(&self) -> io::Result<()> {
        self.inner.check_folder()
    }

    fn is_within(&self, path: &Path, folder: &Path) -> io::Result<bool> {
        self.inner.is_within(path, folder)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn Lock>> {
        self.note(OperationKind::Lock, path);
        self.inner.lock(path, mode)
    }

    fn free_space(&self, path: &Path) -> io::Result<Option<u64>> {
        self.inner.free_space(path)
    }

    fn open_files_max(&self) -> Option<u64> {
        self.inner.open_files_max()
    }
}

#[derive(Debug)]
struct RecordFile {
    inner: Arc<dyn File>,
    record: Arc<Record>,
    path: PathBuf,
}

impl RecordFile {
    fn note(&self, kind: OperationKind, offset: u64, length: usize) {
        self.record.note(Operation::new(kind, &self.path).with_extent(offset, length));
    }
}

impl File for RecordFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.note(OperationKind::Read, offset, buffer.len());
        self.inner.read_at(offset, buffer)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.note(OperationKind::Append, self.inner.length()?, bytes.len());
        self.inner.append(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.note(OperationKind::Sync, 0, 0);
        self.inner.sync()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.note(OperationKind::Truncate, length, 0);
        self.inner.truncate(length)
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn mapping(&self) -> Option<&Arc<Mapping>> {
        self.inner.mapping()
    }

    fn will_need(&self, offset: u64, length: u64) {
        self.inner.will_need(offset, length);
    }
}
