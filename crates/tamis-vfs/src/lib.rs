//! The only code of Tamis that touches files.
//!
//! Everything above it sees two traits, [`Vfs`] and [`File`], so that tests can lose power, run out of disk, fail the
//! n-th operation, or count what a read touched.
//!
//! # What is durable after which call
//!
//! 1. Bytes given to [`File::append`] survive the process at once, and the machine only after [`File::sync`] of that
//!    file returned `Ok`.
//! 2. A name made by [`Vfs::create`], [`Vfs::rename`] or [`Vfs::hard_link`], or taken away by [`Vfs::remove`], survives
//!    the machine only after [`Vfs::sync_dir`] of its folder returned `Ok`. Without it either state may be found.
//! 3. A rename within one folder is atomic: a crash leaves the old state or the new one, never both names or none.
//! 4. A failed sync is final for that file: what was appended since the last good sync may or may not be there, and a
//!    later sync that succeeds proves nothing about it.
//! 5. Folders made by [`Vfs::create_dir_all`] survive the machine when it returned `Ok`.
//!
//! Implementations: the operating system ([`OsVfs`]), memory with a crash clone ([`MemVfs`]), and two wrappers over
//! any other: fault injection ([`FaultVfs`]) and recording ([`RecordVfs`]).

use std::{fmt::Debug, io, path::Path, sync::Arc};

mod fault;
mod mem;
mod operation;
mod os;
mod record;
#[cfg(test)]
mod tests;

pub use fault::{Fault, FaultVfs, Rule, RuleId};
pub use mem::MemVfs;
pub use operation::{Operation, OperationKind};
pub use os::OsVfs;
pub use record::{RecordVfs, Tally};

/// How a file is opened for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Positioned reads through the operating system's page cache. What another program does to the file ends in an error of a
    /// read, or in bytes that the reader can check in its own memory. The safe choice where other programs may change files.
    Buffered,
    /// Positioned reads past the page cache. Offset, length and buffer address must be multiples of 4,096; where the
    /// file system refuses direct I/O the file is opened [`Access::Buffered`]. As safe as that.
    Direct,
    /// A read-only mapping of the whole file as it is at open; [`File::mapping`] gives it. A file that is cut short before it is
    /// opened is an error. An I/O error or a truncation by another program under a mapping ends the process (SIGBUS), and a
    /// change shows in bytes that were checked before. So only files that never change are opened so.
    Mapped,
}

/// One entry of a folder, as [`Vfs::list`] gives it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name without the folder.
    pub name: String,
    /// Length in bytes; 0 for folders.
    pub length: u64,
    /// Whether it is a folder.
    pub is_dir: bool,
}

/// An open file. All calls are thread-safe; appends come from one thread at a time.
pub trait File: Debug + Send + Sync {
    /// Fills `buffer` from `offset`. Past the end: [`io::ErrorKind::UnexpectedEof`], and the buffer holds anything.
    /// An empty buffer is filled anywhere.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
    /// Writes `bytes` at the end. After an error any prefix of them may be in the file and counts to its length;
    /// [`File::truncate`] takes it away. A handle from [`Vfs::open`]: [`io::ErrorKind::PermissionDenied`].
    fn append(&self, bytes: &[u8]) -> io::Result<()>;
    /// Makes all appended bytes and the length survive the machine.
    fn sync(&self) -> io::Result<()>;
    /// Cuts the file to `length` bytes; the next append goes there. A greater length than the file's:
    /// [`io::ErrorKind::InvalidInput`]. A handle from [`Vfs::open`]: [`io::ErrorKind::PermissionDenied`].
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// The length in bytes now.
    fn length(&self) -> io::Result<u64>;
    /// The bytes of the file where it was opened [`Access::Mapped`].
    fn mapping(&self) -> Option<&[u8]>;
    /// Tells that `length` bytes at `offset` will be read soon. A hint: errors are not reported.
    fn will_need(&self, offset: u64, length: u64);
}

/// A held lock of a database folder; dropping it releases the lock.
pub trait Lock: Debug + Send + Sync {}

/// A file system.
pub trait Vfs: Debug + Send + Sync + 'static {
    /// Makes a new, empty file for appending (and reading back). An existing one is
    /// [`io::ErrorKind::AlreadyExists`] and stays as it is.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// As [`Vfs::create`], for a log: many small appends follow, and its contents say where they end. While it is open,
    /// and after a crash of process or machine, other handles may find zero bytes behind what was appended, at most a few MiB (more
    /// after [`Vfs::reuse_log`]); [`File::truncate`] and dropping the handle take them away.
    fn create_log(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.create(path)
    }
    /// As [`Vfs::create`]; appends go past the page cache where their place and length are multiples of 4,096 and the file system
    /// allows it.
    fn create_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.create(path)
    }
    /// As [`Vfs::create`], for a temporary file whose writer may be killed: the handle locks the file until it is dropped, also
    /// after a rename. A file that is there and that no handle locks was left by a killed process: it is emptied and used again.
    /// A locked one is [`io::ErrorKind::AlreadyExists`] and stays as it is. A file system without locks never uses a file again,
    /// and neither does this default.
    fn create_exclusive(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.create(path)
    }
    /// Makes a log that nobody needs or reads any more an empty one, whose handle appends from the beginning; the name stays, to
    /// be changed by [`Vfs::rename`]. What the log takes on the disk and in the page cache is used again, so that appends cost
    /// less than to a new one. Other handles find zero bytes behind what was appended, up to the former length; after
    /// a crash of the machine there, or in place of what was not synced, also what the log held before.
    ///
    /// `None` where that can't be had (a file system or a program's link that forbids it): the file is as it was. After an error
    /// any of its bytes may be zero.
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
    /// Renames a file, replacing `target` if it is there.
    fn rename(&self, source: &Path, target: &Path) -> io::Result<()>;
    /// Gives a file a second name; an existing `target` is [`io::ErrorKind::AlreadyExists`]. A symbolic link is followed: the
    /// new name is one of the file itself.
    fn hard_link(&self, source: &Path, target: &Path) -> io::Result<()>;
    /// Removes a file's name. Open handles and mappings stay readable.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a folder and its parents; an existing folder is no error.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// The entries of a folder, sorted by name.
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>>;
    /// Whether a file or folder of this name is there.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Makes the names in a folder survive the machine.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Takes the exclusive lock that `path` (created when missing) stands for. Held by another handle or process:
    /// [`io::ErrorKind::WouldBlock`], at once.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;
    /// Bytes that can still be written below `path`, where the file system tells.
    fn free_space(&self, path: &Path) -> io::Result<Option<u64>>;
    /// How many files the process may have open; `None` without a limit.
    fn open_files_max(&self) -> Option<u64> {
        None
    }
}

/// The alignment of offset, length and buffer address of reads through [`Access::Direct`].
pub const DIRECT_ALIGNMENT_BYTES: usize = 4096;

/// Refuses what direct I/O does not allow, the same way on every file system.
fn check_direct(offset: u64, buffer: &[u8]) -> io::Result<()> {
    let is_aligned = offset.is_multiple_of(DIRECT_ALIGNMENT_BYTES as u64)
        && buffer.len().is_multiple_of(DIRECT_ALIGNMENT_BYTES)
        && buffer.as_ptr().addr().is_multiple_of(DIRECT_ALIGNMENT_BYTES);
    if is_aligned {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "direct I/O needs offset, length and buffer address at multiples of 4096",
    ))
}

/// Fills `buffer` from `offset` of a file that is in memory.
fn read_slice(bytes: &[u8], offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    if buffer.is_empty() {
        return Ok(());
    }
    let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
    let end = start.checked_add(buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
    buffer.copy_from_slice(bytes.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
    Ok(())
}
