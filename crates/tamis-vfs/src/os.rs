//! The files of the operating system (Unix).
//!
//! 1. A created file keeps its end in an atomic and writes there with `pwrite`. So an append costs one system
//!    call, and reads move no file position. Bytes written by a failed append are part of the length;
//!    `truncate` removes them. Log files append without a system call (`os/log.rs`; Linux only).
//! 2. Sync is `fdatasync`: it syncs content and length, but not times. It is never retried after an error
//!    (durability contract, point 4).
//! 3. `create_dir_all` syncs the parents of new directories immediately. It is called rarely, and callers would
//!    forget it.
//! 4. A mapped file keeps only its mapping; its descriptor is closed.
//! 5. Handles from `open` are read-only: `append` and `truncate` return `PermissionDenied`. `sync` works,
//!    except that a mapped handle, which has no descriptor, returns `Unsupported`.

use std::{
    fs,
    io::{self, ErrorKind},
    num::NonZeroU64,
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use memmap2::{Advice, Mmap};
use rustix::fs::OFlags;

use crate::{Access, DIRECT_ALIGNMENT_BYTES, DirEntry, File, Lock, Vfs, check_direct};

#[cfg(target_os = "linux")]
mod direct;
#[cfg(target_os = "linux")]
mod log;
#[cfg(test)]
mod tests;

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
/// assert_eq!(OsVfs.open(&path, Access::Mapped)?.mapping(), Some(&b"record"[..]));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct OsVfs;

impl Vfs for OsVfs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Arc::new(WriteFile::new(file, false)))
    }

    fn create_exclusive(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        loop {
            match try_create_exclusive(path) {
                Ok(Some(file)) => return Ok(Arc::new(file)),
                // The former owner removed or renamed the file between the two calls.
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::NotFound && parent_of(path).is_dir() => {}
                Err(error) => return Err(error),
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn create_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Arc::new(direct::DirectFile::new(file)))
    }

    #[cfg(target_os = "linux")]
    fn create_log(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Arc::new(log::LogFile::new(file)))
    }

    #[cfg(target_os = "linux")]
    fn reuse_log(&self, path: &Path) -> io::Result<Option<Arc<dyn File>>> {
        let file = fs::OpenOptions::new().read(true).write(true).open(path)?;
        Ok(log::LogFile::reuse(file)?.map(|file| Arc::new(file) as Arc<dyn File>))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        if access == Access::Direct
            && let Some(file) = open_direct(path)?
        {
            return Ok(Arc::new(ReadFile { file, is_direct: AtomicBool::new(true) }));
        }
        let file = fs::OpenOptions::new().read(true).open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if access == Access::Mapped {
            return Ok(Arc::new(MappedFile { mapping: map(&file, metadata.len())? }));
        }
        Ok(Arc::new(ReadFile { file, is_direct: AtomicBool::new(false) }))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the only code that calls it")]
    fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        fs::rename(source, target)
    }

    fn hard_link(&self, source: &Path, target: &Path) -> io::Result<()> {
        // Links the file and not the symbolic link, whose target may change.
        let here = rustix::fs::CWD;
        Ok(rustix::fs::linkat(here, source, here, target, rustix::fs::AtFlags::SYMLINK_FOLLOW)?)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the only code that calls it")]
    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let missing: Vec<PathBuf> = path
            .ancestors()
            .take_while(|directory| !directory.as_os_str().is_empty() && !directory.is_dir())
            .map(Path::to_path_buf)
            .collect();
        for directory in missing.iter().rev() {
            match fs::create_dir(directory) {
                Ok(()) => self.sync_dir(parent_of(directory))?,
                Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let metadata = match metadata_of(&entry) {
                Ok(metadata) => metadata,
                // The file was removed between the two calls.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let is_dir = metadata.is_dir();
            // Names that are not UTF-8 do not belong to Tamis. They are listed so that a foreign directory is
            // recognized.
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.push(DirEntry { name, length: if is_dir { 0 } else { metadata.len() }, is_dir });
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match path.try_exists() {
            Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(false),
            other => other,
        }
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let directory =
            fs::OpenOptions::new().read(true).custom_flags(OFlags::DIRECTORY.bits() as i32).open(path)?;
        directory.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(OsLock { file })),
            Err(fs::TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn free_space(&self, path: &Path) -> io::Result<Option<u64>> {
        let status = rustix::fs::statvfs(path)?;
        Ok(Some(status.f_bavail.saturating_mul(status.f_frsize)))
    }

    fn open_files_max(&self) -> Option<u64> {
        rustix::process::getrlimit(rustix::process::Resource::Nofile).current
    }
}

/// The metadata of the file that an entry leads to, or of a symbolic link that leads to none. The name is looked up in the open directory
/// and not by its whole path: a listing takes one lookup per file.
fn metadata_of(entry: &fs::DirEntry) -> io::Result<fs::Metadata> {
    let metadata = entry.metadata()?;
    if metadata.is_symlink() { fs::metadata(entry.path()).or(Ok(metadata)) } else { Ok(metadata) }
}

/// The directory that contains `path`; for a bare name, the current directory.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Tries once to create `path`, or to lock and empty a file that a killed process left. Returns `None` if
/// another process changed the name in the meantime.
fn try_create_exclusive(path: &Path) -> io::Result<Option<WriteFile>> {
    let mut options = fs::OpenOptions::new();
    // Does not follow a symbolic link: its target was not left by a killed writer.
    options.read(true).write(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let (file, is_new) = match options.clone().create_new(true).open(path) {
        Ok(file) => (file, true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => (options.open(path)?, false),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {}
        // On a file system without locks, other writers cannot lock this file either and do not reuse it.
        Err(fs::TryLockError::Error(_)) if is_new => return Ok(Some(WriteFile::new(file, false))),
        Err(_) => return Err(ErrorKind::AlreadyExists.into()),
    }
    let file = WriteFile::new(file, true);
    let (locked, named) = (file.file.metadata()?, fs::symlink_metadata(path)?);
    if (locked.dev(), locked.ino()) != (named.dev(), named.ino()) {
        return Ok(None);
    }
    file.file.set_len(0)?;
    Ok(Some(file))
}

/// Opens a file that bypasses the page cache; `None` if the file system does not support it.
fn open_direct(path: &Path) -> io::Result<Option<fs::File>> {
    // All open flags fit into `i32`, the type that the system call takes.
    let flags = OFlags::DIRECT.bits() as i32;
    match fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) if file.metadata()?.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(file) => Ok(Some(file)),
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(None),
        Err(error) => Err(error),
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
        match file.write_at(rest, offset) {
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
}

impl Drop for WriteFile {
    fn drop(&mut self) {
        // Unlocks explicitly: a forked child may also have the file open and would keep the lock until it
        // exits.
        if self.is_locked {
            let _ = self.file.unlock();
        }
    }
}

impl WriteFile {
    /// A handle for an empty file.
    const fn new(file: fs::File, is_locked: bool) -> Self {
        Self { file, end: AtomicU64::new(0), is_locked }
    }

    /// Rejects a truncation that would extend the file.
    fn check_truncation(&self, length: u64) -> io::Result<()> {
        if length > self.end.load(Ordering::Acquire) { Err(ErrorKind::InvalidInput.into()) } else { Ok(()) }
    }
}

impl File for WriteFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
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

    fn mapping(&self) -> Option<&[u8]> {
        None
    }

    fn will_need(&self, offset: u64, length: u64) {
        advise_will_need(&self.file, offset, length);
    }
}

/// A file opened for positioned reads.
#[derive(Debug)]
struct ReadFile {
    file: fs::File,
    is_direct: AtomicBool,
}

impl ReadFile {
    /// Switches to the page cache. Some file systems accept a direct open but then reject direct reads.
    fn disable_direct(&self) -> io::Result<()> {
        let flags = rustix::fs::fcntl_getfl(&self.file)?;
        rustix::fs::fcntl_setfl(&self.file, flags - OFlags::DIRECT)?;
        self.is_direct.store(false, Ordering::Release);
        Ok(())
    }
}

impl File for ReadFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        if !self.is_direct.load(Ordering::Acquire) {
            return self.file.read_exact_at(buffer, offset);
        }
        check_direct(offset, buffer)?;
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, offset + done as u64) {
                // A direct read ends at an unaligned position only at the end of the file.
                Ok(count) if count == 0 || !count.is_multiple_of(DIRECT_ALIGNMENT_BYTES) => {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::InvalidInput => {
                    self.disable_direct()?;
                    return self.file.read_exact_at(buffer, offset);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn append(&self, _bytes: &[u8]) -> io::Result<()> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn truncate(&self, _length: u64) -> io::Result<()> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn mapping(&self) -> Option<&[u8]> {
        None
    }

    fn will_need(&self, offset: u64, length: u64) {
        if !self.is_direct.load(Ordering::Acquire) {
            advise_will_need(&self.file, offset, length);
        }
    }
}

fn advise_will_need(file: &fs::File, offset: u64, length: u64) {
    if let Some(length) = NonZeroU64::new(length) {
        // A hint: an error has no effect.
        let _ = rustix::fs::fadvise(file, offset, Some(length), rustix::fs::Advice::WillNeed);
    }
}

/// A file that keeps only its mapping; `None` if the file is empty.
#[derive(Debug)]
struct MappedFile {
    mapping: Option<Mmap>,
}

impl MappedFile {
    fn bytes(&self) -> &[u8] {
        self.mapping.as_deref().unwrap_or_default()
    }
}

impl File for MappedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        crate::read_slice(self.bytes(), offset, buffer)
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
        Ok(self.bytes().len() as u64)
    }

    fn mapping(&self) -> Option<&[u8]> {
        Some(self.bytes())
    }

    fn will_need(&self, offset: u64, length: u64) {
        let Some(mapping) = &self.mapping else { return };
        let Ok(offset) = usize::try_from(offset) else { return };
        let Some(rest) = mapping.len().checked_sub(offset).filter(|rest| *rest > 0) else { return };
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(rest);
        // A hint: an error has no effect.
        let _ = mapping.advise_range(Advice::WillNeed, offset, length);
    }
}

/// The lock of an open file. It is released explicitly: a forked child may also have the file open and would
/// keep the lock until it exits.
#[derive(Debug)]
struct OsLock {
    file: fs::File,
}

impl Lock for OsLock {}

impl Drop for OsLock {
    fn drop(&mut self) {
        // Closing the file also releases the lock, unless a child has it open.
        let _ = self.file.unlock();
    }
}
