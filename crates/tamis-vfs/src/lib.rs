//! The file system layer of Tamis. No other crate accesses files.
//!
//! All other code uses two traits, [`Vfs`] and [`File`]. So a test can simulate a power loss or a full disk,
//! fail the n-th operation, or count the blocks that a read touches.
//!
//! # Durability contract
//!
//! 1. Bytes passed to [`File::append`] survive a crash of the process immediately. They survive a crash of the
//!    machine only after [`File::sync`] of that file returned `Ok`.
//! 2. A name added by [`Vfs::create`], [`Vfs::rename`] or [`Vfs::hard_link`], or removed by [`Vfs::remove`], is
//!    durable only after [`Vfs::sync_dir`] of its directory returned `Ok`. Before that, a crash may keep the
//!    change or lose it.
//! 3. A rename within one directory is atomic. After a crash the directory is in the old state or in the new state:
//!    it never has both names, and never none of them.
//! 4. A failed sync is final for that file. Bytes appended since the last successful sync may be lost, and a
//!    later successful sync does not make them durable.
//! 5. Directories created by [`Vfs::create_dir_all`] are durable when it returns `Ok`.
//!
//! Windows cannot sync a directory: there, [`Vfs::sync_dir`] only checks that the directory exists, and points 2 and 5
//! depend on the file system. After a crash of the machine a directory is in the state of some earlier
//! moment.
//!
//! Implementations: the operating system ([`OsVfs`]), memory with simulated crashes ([`MemVfs`]), and two
//! wrappers over any other implementation: fault injection ([`FaultVfs`]) and recording ([`RecordVfs`]).

use std::{fmt::Debug, io, path::Path, sync::Arc};

mod fault;
mod folder;
pub mod fork;
mod mapping;
mod mem;
mod operation;
mod os;
mod record;
#[cfg(test)]
mod tests;

pub use fault::{Fault, FaultVfs, Rule, RuleId};
pub use folder::Folder;
pub use mapping::Mapping;
pub use mem::MemVfs;
pub use operation::{Operation, OperationKind};
pub use os::OsVfs;
pub use record::{RecordVfs, Tally};

/// How a file is opened for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Positioned reads through the operating system's page cache. If another program changes the file, a read
    /// returns an error, or returns bytes that the reader can verify in its own memory. Use this if other
    /// programs may change files.
    Buffered,
    /// Positioned reads that bypass the page cache. Offset, length and buffer address must be multiples of
    /// 4,096. If the file system does not support direct I/O, the file is opened as [`Access::Buffered`].
    /// Equally safe.
    Direct,
    /// A read-only mapping of the whole file with its length at open; [`File::mapping`] returns it. If another
    /// program truncates a mapped file, or the disk has an I/O error, the process ends with SIGBUS. If another
    /// program changes a mapped file, verified bytes change too. So map only files that never change.
    Mapped,
}

/// One entry of a directory, as returned by [`Vfs::list`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name without the directory.
    pub name: String,
    /// Length in bytes; 0 for directories.
    pub length: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// An open file. All methods are thread-safe, but only one thread at a time may append.
pub trait File: Debug + Send + Sync {
    /// Fills `buffer` with the bytes at `offset`. A read past the end returns [`io::ErrorKind::UnexpectedEof`]
    /// and leaves undefined content in the buffer. Reading into an empty buffer succeeds at every offset.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Writes `bytes` at the end of the file. After an error the file may contain any prefix of `bytes`, and
    /// its length includes that prefix; [`File::truncate`] removes it. A handle from [`Vfs::open`] returns
    /// [`io::ErrorKind::PermissionDenied`].
    fn append(&self, bytes: &[u8]) -> io::Result<()>;
    /// Makes all appended bytes and the length durable.
    fn sync(&self) -> io::Result<()>;
    /// Truncates the file to `length` bytes; the next append starts there. A length greater than the file's is
    /// [`io::ErrorKind::InvalidInput`]. A handle from [`Vfs::open`] returns
    /// [`io::ErrorKind::PermissionDenied`].
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// The current length in bytes.
    fn length(&self) -> io::Result<u64>;
    /// The bytes of the file if it was opened with [`Access::Mapped`].
    fn mapping(&self) -> Option<&Arc<Mapping>>;
    /// Prefetches `length` bytes at `offset`, which will be read soon. This is a hint: errors are not reported.
    fn will_need(&self, offset: u64, length: u64);
}

/// The lock of a directory. Dropping it releases the lock.
pub trait Lock: Debug + Send + Sync {}

/// Whether the lock of a directory excludes all other locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Excludes exclusive locks.
    Shared,
    /// Excludes all other locks.
    Exclusive,
}

/// A file system.
pub trait Vfs: Debug + Send + Sync + 'static {
    /// Creates a new, empty file for appends; the handle can also read. If the file exists, the error is
    /// [`io::ErrorKind::AlreadyExists`] and the file is unchanged.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Like [`Vfs::create`], for a log: it expects many small appends, and content from which a reader can find
    /// the end. While the log is open, and after a crash of the process or the machine, other handles may see
    /// zero bytes after the appended bytes: at most a few MiB, or more after [`Vfs::reuse_log`].
    /// [`File::truncate`] and dropping the handle remove them.
    fn create_log(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.create(path)
    }
    /// Like [`Vfs::create`]. Appends bypass the page cache if their offset and length are multiples of 4,096
    /// and the file system supports it.
    fn create_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.create(path)
    }
    /// Like [`Vfs::create`], for a temporary file whose writer may be killed. The handle locks the file until
    /// it is dropped, also after a rename. If the file exists and is not locked, its writer was killed: the
    /// file is truncated to zero bytes and reused. If it is locked, the error is
    /// [`io::ErrorKind::AlreadyExists`] and the file is unchanged. A file system without locks never reuses a
    /// file; this default implementation does not either.
    fn create_exclusive(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.create(path)
    }
    /// Whether a handle of [`Vfs::create_exclusive`], of this or another process, has the file. If the file system does not have
    /// locks that all machines see, the error is [`io::ErrorKind::Unsupported`].
    fn is_locked(&self, path: &Path) -> io::Result<bool>;
    /// Lets all users read a file. Nothing to do in a file system without users.
    fn make_readable(&self, path: &Path) -> io::Result<()> {
        let _ = path;
        Ok(())
    }
    /// Reuses an obsolete log: makes it empty and returns a handle that appends from the beginning. The name
    /// does not change; use [`Vfs::rename`] for that. The log's disk blocks and cached pages are reused, so
    /// appends cost less than to a new file. Other handles see zero bytes after the appended bytes, up to the
    /// former length. After a crash of the machine, old content of the log may appear in that part and in place
    /// of unsynced bytes.
    ///
    /// Returns `None` and leaves the file unchanged if reuse is not possible: the file system does not support
    /// it, or the file has a second hard link. After an error any byte of the file may be zero.
    fn reuse_log(&self, path: &Path) -> io::Result<Option<Arc<dyn File>>> {
        let _ = path;
        Ok(None)
    }
    /// Opens an existing file for reading.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>>;
    /// Reads a whole file that is small by design (`CURRENT`, manifests, logs).
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, Access::Buffered)?;
        let length = file.length()?;
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    }
    /// Renames a file. An existing `target` is replaced.
    fn rename(&self, source: &Path, target: &Path) -> io::Result<()>;
    /// Adds a second name to a file. If `target` exists, the error is [`io::ErrorKind::AlreadyExists`].
    /// Symbolic links are followed: the new name refers to the file itself.
    fn hard_link(&self, source: &Path, target: &Path) -> io::Result<()>;
    /// Creates the file `target` with the content of `source`, whose disk blocks both files share until one of
    /// them is changed. If the file system cannot share blocks, the error is [`io::ErrorKind::Unsupported`]. After
    /// an error there is no `target`. The content is durable after [`File::sync`].
    fn clone_file(&self, source: &Path, target: &Path) -> io::Result<()> {
        let _ = (source, target);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Whether `path` is the only name of a file: it is no symbolic link, and no other hard link leads to the file.
    /// `false` if the file system does not report it.
    fn is_only_name(&self, path: &Path) -> io::Result<bool>;
    /// Removes a name of a file. Open handles and mappings stay readable. On Windows a mapped file cannot be removed:
    /// the error is [`io::ErrorKind::PermissionDenied`] until its mapping is dropped.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory and its missing parents. An existing directory is not an error.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// The entries of a directory, sorted by name.
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>>;
    /// Whether a file or directory with this name exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Opens a directory. Windows refuses to rename or remove an open directory. The result is the same file system, in which `path` and all paths below it, compared
    /// by their components, refer to this directory: also after the directory was renamed, another directory
    /// took its name, or the process changed its current directory. After the directory was removed, operations
    /// below `path` fail with [`io::ErrorKind::NotFound`]. All other paths have the same meaning as before.
    fn open_folder(&self, path: &Path) -> io::Result<Arc<dyn Vfs>>;
    /// Checks that the directory of [`Vfs::open_folder`] was not removed, and that no other directory has its
    /// name (both are [`io::ErrorKind::NotFound`]). A directory that was only renamed passes. Without such a
    /// directory there is nothing to check.
    fn check_folder(&self) -> io::Result<()>;
    /// Whether `path`, or the nearest existing directory above it, is the directory `folder` or is below it:
    /// under any name.
    fn is_within(&self, path: &Path, folder: &Path) -> io::Result<bool>;
    /// Locks a directory. The lock belongs to the directory itself and not to a name. If another handle or
    /// process has a lock that excludes this one, the error is [`io::ErrorKind::WouldBlock`] and its text says
    /// who has it ("for writing by process 4711"); the call does not wait. If the file system cannot lock
    /// directories, the error is [`io::ErrorKind::Unsupported`].
    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn Lock>>;
    /// Bytes that can still be written below `path`; `None` if the file system does not report it.
    fn free_space(&self, path: &Path) -> io::Result<Option<u64>>;
    /// How many files the process may have open; `None` if there is no limit.
    fn open_files_max(&self) -> Option<u64> {
        None
    }
}

/// Required alignment of offset, length and buffer address of reads with [`Access::Direct`].
pub const DIRECT_ALIGNMENT_BYTES: usize = 4096;

/// Returns the same alignment error on every file system.
fn check_direct(offset: u64, buffer: &[u8]) -> io::Result<()> {
    let is_aligned = offset.is_multiple_of(DIRECT_ALIGNMENT_BYTES as u64)
        && buffer.len().is_multiple_of(DIRECT_ALIGNMENT_BYTES)
        && buffer.as_ptr().addr().is_multiple_of(DIRECT_ALIGNMENT_BYTES);
    if is_aligned {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "direct I/O requires offset, length and buffer address to be multiples of 4096",
    ))
}

/// Fills `buffer` with the bytes at `offset` of a file in memory.
fn read_slice(bytes: &[u8], offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    if buffer.is_empty() {
        return Ok(());
    }
    let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
    let end = start.checked_add(buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
    buffer.copy_from_slice(bytes.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
    Ok(())
}
