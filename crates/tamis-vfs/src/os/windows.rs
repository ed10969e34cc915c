//! The files of Windows.
//!
//! 1. **No sync of folders.** Windows has no call for it, so `sync_dir` only checks that the folder exists. A new name, a
//!    rename or a removal reaches the disk with the log of the file system: after a power loss the folder is in the
//!    state of some earlier moment, and names of the last seconds may be missing. The content of a file is durable after
//!    its sync.
//! 2. **An open folder** keeps a handle that does not share deletion: the folder cannot be renamed or removed while it is
//!    open. Names below its path are looked up below the absolute path that it had when it was opened.
//! 3. **The lock** of a folder is a lock of the file [`LOCK_NAME`] in it, which cannot be removed or renamed while it is
//!    open. The file stays afterwards, and `list` does not return it.
//! 4. **Other handles.** Files are opened so that they can be renamed and removed while they are open. A file that is
//!    mapped can be renamed, but its removal fails until the mapping ends.
//!    On file systems without the semantics of POSIX a rename onto an open file fails, too, and a removed file keeps its name until it is closed.
//! 5. An exclusive file is opened without sharing writes, so that a second writer cannot open it. A lock of the file would
//!    also exclude readers.
//! 6. `is_only_name` is false, `free_space` is unknown, and direct files use the page cache: the standard library has no calls for them.

#![expect(clippy::disallowed_methods, reason = "this is what all other code uses")]

use std::{
    borrow::Cow,
    fs::{self, OpenOptions},
    io::{self, ErrorKind},
    os::windows::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use memmap2::Mmap;

use super::{MappedFile, OsVfs, ReadFile, WriteFile, parent_of};
use crate::{Access, DirEntry, File, Lock, LockMode, Vfs};

#[cfg(test)]
mod tests;

/// The file by which a folder is locked.
const LOCK_NAME: &str = ".tamis-lock";

// Values of the Windows interface for `OpenOptionsExt`.
const FILE_SHARE_READ: u32 = 1;
const FILE_SHARE_WRITE: u32 = 2;
const FILE_SHARE_DELETE: u32 = 4;
/// Opens a folder.
const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
/// Opens a symbolic link and not its target.
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
/// Another handle does not share this access.
const ERROR_SHARING_VIOLATION: i32 = 32;

/// Looks names up: from the current folder of the process, or from an open folder.
trait Lookup: std::fmt::Debug + Send + Sync + 'static {
    /// The path that the operating system gets.
    fn at<'a>(&self, path: &'a Path) -> Cow<'a, Path>;
}

impl Lookup for OsVfs {
    fn at<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
        path.into()
    }
}

/// The file system with one open folder ([`Vfs::open_folder`]).
#[derive(Debug)]
struct OsFolder {
    /// Prevents that the folder is renamed or removed.
    _directory: fs::File,
    /// The path by which callers name the folder.
    path: PathBuf,
    /// Absolute, without symbolic links.
    real_path: PathBuf,
}

impl Lookup for OsFolder {
    fn at<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
        match path.strip_prefix(&self.path) {
            Ok(rest) => {
                // By components: an absolute path of this form accepts backslashes only.
                let mut real = self.real_path.clone();
                real.extend(rest.components());
                real.into()
            }
            Err(_) => path.into(),
        }
    }
}

impl<T: Lookup> Vfs for T {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(self.at(path))?;
        Ok(Arc::new(WriteFile::new(file, false)))
    }

    fn create_exclusive(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let path = self.at(path);
        loop {
            match try_create_exclusive(&path) {
                Ok(file) => return Ok(Arc::new(file)),
                // The former owner renamed or removed the file between the two calls.
                Err(error) if error.kind() == ErrorKind::NotFound && parent_of(&path).is_dir() => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        // The owner shares the file with readers only.
        match OpenOptions::new().write(true).open(self.at(path)) {
            Err(error) if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION) => Ok(true),
            opened => opened.map(|_| false),
        }
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let path = self.at(path);
        let opened = if access == Access::Mapped { fs::File::open(&path) } else { open_for_sync(&path) };
        let file = match opened {
            Err(_) if path.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            opened => opened?,
        };
        if access == Access::Mapped {
            let length = file.metadata()?.len();
            return Ok(Arc::new(MappedFile::new(&file, length)?));
        }
        Ok(Arc::new(ReadFile(file)))
    }

    fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        fs::rename(self.at(source), self.at(target))
    }

    fn hard_link(&self, source: &Path, target: &Path) -> io::Result<()> {
        // Links the file and not the symbolic link, whose target may change.
        fs::hard_link(fs::canonicalize(self.at(source))?, self.at(target))
    }

    fn is_only_name(&self, path: &Path) -> io::Result<bool> {
        fs::symlink_metadata(self.at(path)).map(|_| false)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(self.at(path))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(self.at(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let path = self.at(path);
        let mut entries = Vec::new();
        // The error for the content of a file depends on the version of Windows.
        let found = fs::read_dir(&path).map_err(|error| match path.is_file() {
            true => ErrorKind::NotADirectory.into(),
            false => error,
        });
        for entry in found? {
            let entry = entry?;
            if entry.file_name() == LOCK_NAME {
                continue;
            }
            // The folder's own record of an open file has an old length. It is used for a file that cannot be opened.
            let metadata = match fs::metadata(entry.path()).or_else(|_| entry.metadata()) {
                Ok(metadata) => metadata,
                // The file was removed between the two calls.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let is_dir = metadata.is_dir();
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.push(DirEntry { name, length: if is_dir { 0 } else { metadata.len() }, is_dir });
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        fs::exists(self.at(path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        check_dir(&fs::metadata(self.at(path))?)
    }

    fn open_folder(&self, path: &Path) -> io::Result<Arc<dyn Vfs>> {
        let real_path = fs::canonicalize(self.at(path))?;
        let mut options = OpenOptions::new();
        options.read(true).share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE);
        let directory = options.custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(&real_path)?;
        check_dir(&directory.metadata()?)?;
        Ok(Arc::new(OsFolder { _directory: directory, path: path.to_path_buf(), real_path }))
    }

    fn check_folder(&self) -> io::Result<()> {
        // An open folder can be neither renamed nor removed.
        Ok(())
    }

    fn is_within(&self, path: &Path, folder: &Path) -> io::Result<bool> {
        let folder = fs::canonicalize(self.at(folder))?;
        let mut above = path;
        while !self.at(above).is_dir() {
            above = parent_of(above);
        }
        Ok(fs::canonicalize(self.at(above))?.starts_with(folder))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn Lock>> {
        let path = self.at(path);
        check_dir(&fs::metadata(&path)?)?;
        OsLock::take(&path.join(LOCK_NAME), mode).map(|lock| Box::new(lock) as Box<dyn Lock>)
    }

    fn free_space(&self, path: &Path) -> io::Result<Option<u64>> {
        fs::metadata(self.at(path)).map(|_| None)
    }
}

fn check_dir(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_dir() { Ok(()) } else { Err(ErrorKind::NotADirectory.into()) }
}

/// Opens a file for reading and, if its attributes and its other handles permit, for syncing, which requires write access.
fn open_for_sync(path: &Path) -> io::Result<fs::File> {
    OpenOptions::new().read(true).write(true).open(path).or_else(|_| fs::File::open(path))
}

/// Creates a file, or empties one that a killed process left.
fn try_create_exclusive(path: &Path) -> io::Result<WriteFile> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).share_mode(FILE_SHARE_READ | FILE_SHARE_DELETE);
    // Does not follow a symbolic link: its target was not left by a killed writer.
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    let file = match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match options.open(path) {
            Err(error) if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION) => {
                return Err(ErrorKind::AlreadyExists.into());
            }
            opened => opened?,
        },
        created => created?,
    };
    if !file.metadata()?.is_file() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    file.set_len(0)?;
    Ok(WriteFile::new(file, false))
}

/// The lock of a folder.
#[derive(Debug)]
struct OsLock(fs::File);

impl OsLock {
    fn take(path: &Path, mode: LockMode) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // The name cannot be removed while the folder is locked.
        options.read(true).share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE);
        let opened = match mode {
            // A reader may lack the permission to write.
            LockMode::Shared => options.open(path).or_else(|_| options.write(true).create(true).open(path)),
            LockMode::Exclusive => options.write(true).create(true).open(path),
        };
        let file = opened.map_err(|error| io::Error::new(ErrorKind::Unsupported, error))?;
        let locked = match mode {
            LockMode::Shared => file.try_lock_shared(),
            LockMode::Exclusive => file.try_lock(),
        };
        match locked {
            Ok(()) => Ok(Self(file)),
            Err(fs::TryLockError::WouldBlock) => {
                // Another shared lock is possible only if the others are shared.
                let is_shared = mode == LockMode::Exclusive && file.try_lock_shared().is_ok();
                if is_shared {
                    // A failure must not hide that the folder is locked; the file is closed at the end of this call.
                    let _ = file.unlock();
                }
                let purpose = if is_shared { "reading" } else { "writing" };
                Err(io::Error::new(ErrorKind::WouldBlock, format!("for {purpose} by an unknown process")))
            }
            Err(fs::TryLockError::Error(error)) => Err(io::Error::new(ErrorKind::Unsupported, error)),
        }
    }
}

impl Lock for OsLock {}

impl Drop for OsLock {
    fn drop(&mut self) {
        // Closing the file releases the lock at some later time.
        let _ = self.0.unlock();
    }
}

/// Fills `buffer` with the bytes at `offset`.
pub(super) fn read_exact_at(file: &fs::File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.seek_read(rest, offset + done as u64) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes a prefix of `bytes` at `offset` and returns its length.
pub(super) fn write_at(file: &fs::File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    file.seek_write(bytes, offset)
}

/// There is no such hint.
pub(super) fn advise_will_need(_file: &fs::File, _offset: u64, _length: u64) {}

/// There is no such hint in the crate of the mapping.
pub(super) fn advise_mapping(_mapping: &Mmap, _offset: usize, _length: usize) {}
