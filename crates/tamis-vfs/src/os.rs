//! The files of the operating system: Unix and Windows.
//!
//! This file has what all systems share, `os/unix.rs` and `os/windows.rs` have the rest.
//!
//! 1. A created file keeps its end in an atomic and writes there with a positioned write. So an append costs one system
//!    call, and reads move no file position. Bytes written by a failed append are part of the length;
//!    `truncate` removes them. Log files append without a system call (`os/log.rs`; Linux only).
//! 2. Sync is `fdatasync` on Linux and FreeBSD, `F_FULLFSYNC` on macOS, and `FlushFileBuffers` on Windows. It is never
//!    retried after an error (durability contract, point 4).
//! 3. A mapped file keeps only its mapping; its descriptor is closed.
//! 4. Handles from `open` are read-only: `append` and `truncate` return `PermissionDenied`. `sync` works,
//!    except that a mapped handle, which has no descriptor, returns `Unsupported`.
//! 5. In a forked child, dropping a handle changes nothing: the file and its lock belong to the parent.

use std::{
    fs,
    io::{self, ErrorKind},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use memmap2::Mmap;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use crate::{File, Mapping, fork};

#[cfg(target_os = "linux")]
mod direct;
#[cfg(unix)]
mod lock;
#[cfg(target_os = "linux")]
mod log;
#[cfg(test)]
mod tests;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

/// The operating system's file system.
///
/// ```
/// use tamis_vfs::{Access, OsVfs, Vfs};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("000001.log");
/// let file = OsVfs.create(&path)?;
/// file.append(b"record")?;
/// file.sync()?; // the bytes survive a crash of the machine
/// OsVfs.sync_dir(directory.path())?; // and so does the name
///
/// assert_eq!(OsVfs.open(&path, Access::Mapped)?.mapping().map(|bytes| bytes.to_vec()), Some(b"record".to_vec()));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct OsVfs;

/// The directory that contains `path`; for a bare name, the current directory.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Maps the whole file; `None` for an empty file, which cannot be mapped.
fn map(file: &fs::File, length: u64) -> io::Result<Option<Mmap>> {
    if length == 0 {
        return Ok(None);
    }
    // SAFETY: the mapping is private to this handle and read-only. The compiler assumes that the mapped bytes
    // do not change. The contract of `Access::Mapped` guarantees this: only files that never change are mapped.
    // These are tables. They are complete, synced and renamed before the first open, are never written again,
    // and keep their bytes after their name is removed. A foreign program that writes into the directory of a
    // database breaks this contract; if it truncates a file, the process ends with SIGBUS, as the contract
    // says.
    let mapping = unsafe { Mmap::map(file) }?;
    Ok(Some(mapping))
}

/// Writes at the end of a file and advances the end.
fn append_at(file: &fs::File, end: &AtomicU64, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let offset = end.load(Ordering::Acquire);
        match system::write_at(file, rest, offset) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                end.store(offset + written as u64, Ordering::Release);
                rest = rest.get(written..).unwrap_or_default();
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A file created for appends.
#[derive(Debug)]
struct WriteFile {
    file: fs::File,
    end: AtomicU64,
    is_locked: bool,
    process: fork::Process,
}

impl Drop for WriteFile {
    fn drop(&mut self) {
        // Unlocks explicitly: a forked child may also have the file open and would keep the lock until it
        // exits. The child itself must not unlock the file of its parent.
        if self.is_locked && self.process.is_current() {
            let _ = self.file.unlock();
        }
    }
}

impl WriteFile {
    /// A handle for an empty file.
    fn new(file: fs::File, is_locked: bool) -> Self {
        Self { file, end: AtomicU64::new(0), is_locked, process: fork::Process::current() }
    }

    /// Rejects a truncation that would extend the file.
    fn check_truncation(&self, length: u64) -> io::Result<()> {
        if length > self.end.load(Ordering::Acquire) { Err(ErrorKind::InvalidInput.into()) } else { Ok(()) }
    }
}

impl File for WriteFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        system::read_exact_at(&self.file, buffer, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        append_at(&self.file, &self.end, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.check_truncation(length)?;
        self.file.set_len(length)?;
        self.end.store(length, Ordering::Release);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.end.load(Ordering::Acquire))
    }

    fn mapping(&self) -> Option<&Arc<Mapping>> {
        None
    }

    fn will_need(&self, offset: u64, length: u64) {
        system::advise_will_need(&self.file, offset, length);
    }
}

/// A file opened for positioned reads.
#[derive(Debug)]
struct ReadFile(fs::File);

impl File for ReadFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        system::read_exact_at(&self.0, buffer, offset)
    }

    fn append(&self, _bytes: &[u8]) -> io::Result<()> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn truncate(&self, _length: u64) -> io::Result<()> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn mapping(&self) -> Option<&Arc<Mapping>> {
        None
    }

    fn will_need(&self, offset: u64, length: u64) {
        system::advise_will_need(&self.0, offset, length);
    }
}

/// A file that keeps only its mapping.
#[derive(Debug)]
struct MappedFile {
    mapping: Arc<Mapping>,
}

impl MappedFile {
    fn new(file: &fs::File, length: u64) -> io::Result<Self> {
        Ok(Self { mapping: Arc::new(Mapping::of_file(map(file, length)?)) })
    }
}

impl File for MappedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        crate::read_slice(&self.mapping, offset, buffer)
    }

    fn append(&self, _bytes: &[u8]) -> io::Result<()> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn truncate(&self, _length: u64) -> io::Result<()> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.mapping.len() as u64)
    }

    fn mapping(&self) -> Option<&Arc<Mapping>> {
        Some(&self.mapping)
    }

    fn will_need(&self, offset: u64, length: u64) {
        let Some(mapping) = self.mapping.mapped() else { return };
        let Ok(offset) = usize::try_from(offset) else { return };
        let Some(rest) = mapping.len().checked_sub(offset).filter(|rest| *rest > 0) else { return };
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(rest);
        system::advise_mapping(mapping, offset, length);
    }
}
