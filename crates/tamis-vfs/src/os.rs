//! The operating system's files (Unix).
//!
//! 1. A created file keeps its end in an atomic and writes there (`pwrite`), so an append costs one system call and
//!    reads never move a cursor. What a failed append did write counts to the length; `truncate` takes it away.
//!    The file of a log takes appends without a call (`os/log.rs`; Linux).
//! 2. Sync is `fdatasync`: contents and length, not times. It is never tried again after an error (contract, point 4).
//! 3. Folders that `create_dir_all` makes are synced into their parents at once, for it is rare and else forgotten.
//! 4. A mapped file keeps its mapping only; its descriptor is closed.
//! 5. Handles from `open` are for reading: `append` and `truncate` are `PermissionDenied` there; `sync` works (a
//!    mapped handle has no descriptor left, so there it is `Unsupported`).

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
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("000001.log");
/// let file = OsVfs.create(&path)?;
/// file.append(b"record")?;
/// file.sync()?; // the bytes survive the machine
/// OsVfs.sync_dir(folder.path())?; // and so does the name
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
                // The former holder removed or renamed the file between two calls.
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

    #[expect(clippy::disallowed_methods, reason = "this is the seam")]
    fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        fs::rename(source, target)
    }

    fn hard_link(&self, source: &Path, target: &Path) -> io::Result<()> {
        // What a symbolic link stands for, and not the link: that could change.
        let here = rustix::fs::CWD;
        Ok(rustix::fs::linkat(here, source, here, target, rustix::fs::AtFlags::SYMLINK_FOLLOW)?)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the seam")]
    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let missing: Vec<PathBuf> = path
            .ancestors()
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())
            .map(Path::to_path_buf)
            .collect();
        for folder in missing.iter().rev() {
            match fs::create_dir(folder) {
                Ok(()) => self.sync_dir(parent_of(folder))?,
                Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let metadata = match fs::metadata(entry.path()).or_else(|_| entry.metadata()) {
                Ok(metadata) => metadata,
                // Removed between the two calls.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let is_dir = metadata.is_dir();
            // A name that is not UTF-8 is none of ours; it is listed so that a foreign folder is seen as one.
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
        let folder =
            fs::OpenOptions::new().read(true).custom_flags(OFlags::DIRECTORY.bits() as i32).open(path)?;
        folder.sync_all()
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

/// The folder that holds `path`; a bare name lies in the current one.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// One try to make `path`, or to lock and empty what a killed process left there; `None` if the name was changed meanwhile.
fn try_create_exclusive(path: &Path) -> io::Result<Option<WriteFile>> {
    let mut options = fs::OpenOptions::new();
    // A symbolic link is not followed: what it leads to was not left by a writer.
    options.read(true).write(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let (file, is_new) = match options.clone().create_new(true).open(path) {
        Ok(file) => (file, true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => (options.open(path)?, false),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {}
        // Without locks, another writer can't lock the file either, and leaves it alone.
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

/// Opens past the page cache; `None` where the file system refuses that.
fn open_direct(path: &Path) -> io::Result<Option<fs::File>> {
    // The bits of an open flag fit `i32`: that is the type the system call takes.
    let flags = OFlags::DIRECT.bits() as i32;
    match fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) if file.metadata()?.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(file) => Ok(Some(file)),
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Maps the whole file; `None` for an empty one, which cannot be mapped.
fn map(file: &fs::File, length: u64) -> io::Result<Option<Mmap>> {
    if length == 0 {
        return Ok(None);
    }
    // SAFETY: the mapping is private to this handle and read-only. What the compiler may not see is the file changing
    // below it; the contract of `Access::Mapped` is that only files that never change are opened so: tables, which are
    // complete, synced and renamed into place before anything opens them, are never written again, and keep their
    // bytes after their name is removed. Another program that writes into the folder of a database breaks this and
    // every other promise; a truncation then ends the process by SIGBUS, as the contract says.
    let mapping = unsafe { Mmap::map(file) }?;
    Ok(Some(mapping))
}

/// Writes at the end of a file and moves the end.
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

/// A file made for appending.
#[derive(Debug)]
struct WriteFile {
    file: fs::File,
    end: AtomicU64,
    is_locked: bool,
}

impl Drop for WriteFile {
    fn drop(&mut self) {
        // Explicitly: a forked child may have the file open, too, and would hold the lock until it exits.
        if self.is_locked {
            let _ = self.file.unlock();
        }
    }
}

impl WriteFile {
    /// A handle of an empty file.
    const fn new(file: fs::File, is_locked: bool) -> Self {
        Self { file, end: AtomicU64::new(0), is_locked }
    }

    /// Refuses a cut that would make the file longer.
    fn check_cut(&self, length: u64) -> io::Result<()> {
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
        self.check_cut(length)?;
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
    /// Goes on through the page cache, for a file system that allows to open directly and then refuses to read so.
    fn leave_direct(&self) -> io::Result<()> {
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
                // A direct read stops between aligned positions only at the end of the file.
                Ok(count) if count == 0 || !count.is_multiple_of(DIRECT_ALIGNMENT_BYTES) => {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::InvalidInput => {
                    self.leave_direct()?;
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
        // A hint: what the system answers changes nothing.
        let _ = rustix::fs::fadvise(file, offset, Some(length), rustix::fs::Advice::WillNeed);
    }
}

/// A file that is only its mapping; `None` stands for the empty one.
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
        // A hint: what the system answers changes nothing.
        let _ = mapping.advise_range(Advice::WillNeed, offset, length);
    }
}

/// The lock of an open file. It is released explicitly: a child process that was forked meanwhile has the file open, too, and
/// would hold the lock until it exits.
#[derive(Debug)]
struct OsLock {
    file: fs::File,
}

impl Lock for OsLock {}

impl Drop for OsLock {
    fn drop(&mut self) {
        // Closing the file releases the lock, too, where no child has it.
        let _ = self.file.unlock();
    }
}
