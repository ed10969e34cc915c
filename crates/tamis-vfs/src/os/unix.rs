//! The files of Unix.
//!
//! 1. `create_dir_all` syncs the parents of new directories immediately. It is called rarely, and callers would
//!    forget it.
//! 2. An open folder keeps its descriptor, and names below its path are looked up from there (`openat` and its
//!    kind). All other names are looked up from the current folder of the process.
//! 3. Systems other than Linux have neither direct I/O nor preallocated logs nor clones of files here: the contracts of
//!    [`Vfs`] allow it.

use std::{
    fs,
    io::{self, ErrorKind},
    num::NonZeroU64,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::{FileExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use memmap2::{Advice, Mmap};
use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use super::{MappedFile, OsVfs, ReadFile, WriteFile, lock, parent_of};
#[cfg(target_os = "linux")]
use super::{direct, log};
use crate::{Access, DirEntry, File, Lock, LockMode, Vfs};

/// Looks names up: from the current folder of the process, or from an open folder.
trait Lookup: std::fmt::Debug + Send + Sync + 'static {
    /// The folder from which the name is looked up, and the name.
    fn at<'a>(&'a self, path: &'a Path) -> At<'a>;

    /// See [`Vfs::check_folder`].
    fn check(&self) -> io::Result<()>;
}

/// A name and the folder from which it is looked up.
type At<'a> = (BorrowedFd<'a>, &'a Path);

impl Lookup for OsVfs {
    fn at<'a>(&'a self, path: &'a Path) -> At<'a> {
        (rustix::fs::CWD, path)
    }

    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The file system with one open folder ([`Vfs::open_folder`]).
#[derive(Debug)]
struct OsFolder {
    directory: fs::File,
    /// The path by which callers name the folder.
    path: PathBuf,
    /// The path without symbolic links: a link that was changed did not replace the folder.
    real_path: Option<PathBuf>,
}

impl Lookup for OsFolder {
    fn at<'a>(&'a self, path: &'a Path) -> At<'a> {
        match path.strip_prefix(&self.path) {
            Ok(rest) if rest.as_os_str().is_empty() => (self.directory.as_fd(), Path::new(".")),
            Ok(rest) => (self.directory.as_fd(), rest),
            Err(_) => (rustix::fs::CWD, path),
        }
    }

    fn check(&self) -> io::Result<()> {
        let folder = self.directory.metadata()?;
        if folder.nlink() == 0 {
            return Err(io::Error::new(ErrorKind::NotFound, "the folder was removed"));
        }
        // Another folder has the name; without the name the folder was moved.
        match self.real_path.as_deref().map(fs::metadata) {
            Some(Ok(named)) if (named.dev(), named.ino()) != (folder.dev(), folder.ino()) => {
                Err(io::Error::new(ErrorKind::NotFound, "the folder was moved and another one has its name"))
            }
            _ => Ok(()),
        }
    }
}

impl<T: Lookup> Vfs for T {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(WriteFile::new(create_new(self.at(path))?, false)))
    }

    fn create_exclusive(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        loop {
            match try_create_exclusive(self.at(path)) {
                Ok(Some(file)) => return Ok(Arc::new(file)),
                // The former owner removed or renamed the file between the two calls.
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::NotFound && is_dir(self.at(parent_of(path))) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn make_readable(&self, path: &Path) -> io::Result<()> {
        let file = open_at(self.at(path), OFlags::RDWR | OFlags::NOFOLLOW)?;
        Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(0o644))?)
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        lock::is_locked(&open_at(self.at(path), OFlags::RDONLY | OFlags::NOFOLLOW)?)
    }

    #[cfg(target_os = "linux")]
    fn create_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(direct::DirectFile::new(create_new(self.at(path))?)))
    }

    #[cfg(target_os = "linux")]
    fn create_log(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(log::LogFile::new(create_new(self.at(path))?)))
    }

    #[cfg(target_os = "linux")]
    fn reuse_log(&self, path: &Path) -> io::Result<Option<Arc<dyn File>>> {
        let file = open_at(self.at(path), OFlags::RDWR)?;
        Ok(log::LogFile::reuse(file)?.map(|file| Arc::new(file) as Arc<dyn File>))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        #[cfg(target_os = "linux")]
        if access == Access::Direct
            && let Some(file) = open_direct(self.at(path))?
        {
            return Ok(Arc::new(direct::DirectReadFile::new(file)));
        }
        let file = open_at(self.at(path), OFlags::RDONLY)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if access == Access::Mapped {
            return Ok(Arc::new(MappedFile::new(&file, metadata.len())?));
        }
        Ok(Arc::new(ReadFile(file)))
    }

    fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        let ((from, source), (to, target)) = (self.at(source), self.at(target));
        Ok(rustix::fs::renameat(from, source, to, target)?)
    }

    fn hard_link(&self, source: &Path, target: &Path) -> io::Result<()> {
        let ((from, source), (to, target)) = (self.at(source), self.at(target));
        // Links the file and not the symbolic link, whose target may change.
        Ok(rustix::fs::linkat(from, source, to, target, AtFlags::SYMLINK_FOLLOW)?)
    }

    #[cfg(target_os = "linux")]
    fn clone_file(&self, source: &Path, target: &Path) -> io::Result<()> {
        let source = open_at(self.at(source), OFlags::RDONLY)?;
        let clone = create_new(self.at(target))?;
        share_blocks(&source, &clone).inspect_err(|_| {
            let _ = self.remove(target);
        })
    }

    fn is_only_name(&self, path: &Path) -> io::Result<bool> {
        let (folder, name) = self.at(path);
        let found = stat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_nlink == 1)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.at(path);
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let missing: Vec<PathBuf> = path
            .ancestors()
            .take_while(|directory| !directory.as_os_str().is_empty() && !is_dir(self.at(directory)))
            .map(Path::to_path_buf)
            .collect();
        for directory in missing.iter().rev() {
            let (folder, name) = self.at(directory);
            match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => self.sync_dir(parent_of(directory))?,
                Err(Errno::EXIST) if is_dir(self.at(directory)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let directory = open_dir(self.at(path))?;
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            // A symbolic link counts as the file that it leads to, or as itself if there is none.
            let found = stat(&directory, name, AtFlags::empty())
                .or_else(|_| stat(&directory, name, AtFlags::SYMLINK_NOFOLLOW));
            let metadata = match found {
                Ok(metadata) => metadata,
                // The file was removed between the two calls.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let is_dir = is_dir_mode(&metadata);
            // Names that are not UTF-8 do not belong to Tamis. They are listed so that a foreign directory is
            // recognized.
            let name = name.to_string_lossy().into_owned();
            let length = if is_dir { 0 } else { u64::try_from(metadata.st_size).unwrap_or_default() };
            entries.push(DirEntry { name, length, is_dir });
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let (folder, name) = self.at(path);
        match stat(folder, name, AtFlags::empty()) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        open_dir(self.at(path))?.sync_all()
    }

    fn open_folder(&self, path: &Path) -> io::Result<Arc<dyn Vfs>> {
        let directory = open_dir(self.at(path))?;
        let real_path = fs::canonicalize(path).ok();
        Ok(Arc::new(OsFolder { directory, path: path.to_path_buf(), real_path }))
    }

    fn check_folder(&self) -> io::Result<()> {
        self.check()
    }

    fn is_within(&self, path: &Path, folder: &Path) -> io::Result<bool> {
        let id = |path: &Path| {
            let (folder, name) = self.at(path);
            stat(folder, name, AtFlags::empty()).map(|found| (found.st_dev, found.st_ino))
        };
        let folder = id(folder)?;
        let mut above = path.to_path_buf();
        while !is_dir(self.at(&above)) {
            above = parent_of(&above).to_path_buf();
        }
        let mut last = None;
        loop {
            let current = id(&above)?;
            // The folder above the root is the root.
            if current == folder || last == Some(current) {
                return Ok(current == folder);
            }
            last = Some(current);
            above.push("..");
        }
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn Lock>> {
        lock::OsLock::take(open_dir(self.at(path))?, mode).map(|lock| Box::new(lock) as Box<dyn Lock>)
    }

    fn free_space(&self, path: &Path) -> io::Result<Option<u64>> {
        let status = rustix::fs::fstatvfs(open_at(self.at(path), OFlags::RDONLY)?)?;
        Ok(Some(status.f_bavail.saturating_mul(status.f_frsize)))
    }

    fn open_files_max(&self) -> Option<u64> {
        rustix::process::getrlimit(rustix::process::Resource::Nofile).current
    }
}

/// Opens a file; with [`OFlags::CREATE`] its permissions are those of the process.
fn open_at((folder, name): At<'_>, flags: OFlags) -> io::Result<fs::File> {
    let mode = Mode::from_raw_mode(0o666);
    let open = || rustix::fs::openat(folder, name, flags | OFlags::CLOEXEC, mode);
    Ok(rustix::io::retry_on_intr(open)?.into())
}

fn open_dir(at: At<'_>) -> io::Result<fs::File> {
    open_at(at, OFlags::RDONLY | OFlags::DIRECTORY)
}

fn create_new(at: At<'_>) -> io::Result<fs::File> {
    open_at(at, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
}

fn stat(folder: impl AsFd, name: impl rustix::path::Arg, flags: AtFlags) -> io::Result<Stat> {
    Ok(rustix::fs::statat(folder, name, flags)?)
}

fn is_dir_mode(metadata: &Stat) -> bool {
    FileType::from_raw_mode(metadata.st_mode) == FileType::Directory
}

fn is_dir((folder, name): At<'_>) -> bool {
    stat(folder, name, AtFlags::empty()).is_ok_and(|found| is_dir_mode(&found))
}

/// Tries once to create a file, or to lock and empty a file that a killed process left. Returns `None` if
/// another process changed the name in the meantime.
fn try_create_exclusive(at: At<'_>) -> io::Result<Option<WriteFile>> {
    // Does not follow a symbolic link: its target was not left by a killed writer.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW;
    let (file, is_new) = match open_at(at, flags | OFlags::CREATE | OFlags::EXCL) {
        Ok(file) => (file, true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => (open_at(at, flags)?, false),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {}
        // On a file system without locks, other writers cannot lock this file either and do not reuse it.
        Err(fs::TryLockError::Error(_)) if is_new => return Ok(Some(WriteFile::new(file, false))),
        Err(_) => return Err(ErrorKind::AlreadyExists.into()),
    }
    let file = WriteFile::new(file, true);
    let (folder, name) = at;
    let (locked, named) = (rustix::fs::fstat(&file.file)?, stat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?);
    if (locked.st_dev, locked.st_ino) != (named.st_dev, named.st_ino) {
        return Ok(None);
    }
    file.file.set_len(0)?;
    Ok(Some(file))
}

/// Gives `target` the content of `source` without a copy of its blocks.
#[cfg(target_os = "linux")]
fn share_blocks(source: &fs::File, target: &fs::File) -> io::Result<()> {
    match rustix::fs::ioctl_ficlone(target, source) {
        // The file system does not support it, or the files are on different ones.
        Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL | Errno::NOTTY | Errno::NOSYS | Errno::PERM) => {
            Err(ErrorKind::Unsupported.into())
        }
        result => Ok(result?),
    }
}

/// Opens a file that bypasses the page cache; `None` if the file system does not support it.
#[cfg(target_os = "linux")]
fn open_direct(at: At<'_>) -> io::Result<Option<fs::File>> {
    match open_at(at, OFlags::RDONLY | OFlags::DIRECT) {
        Ok(file) if file.metadata()?.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(file) => Ok(Some(file)),
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Fills `buffer` with the bytes at `offset`.
pub(super) fn read_exact_at(file: &fs::File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(buffer, offset)
}

/// Writes a prefix of `bytes` at `offset` and returns its length.
pub(super) fn write_at(file: &fs::File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    file.write_at(bytes, offset)
}

/// A hint: an error has no effect.
pub(super) fn advise_will_need(file: &fs::File, offset: u64, length: u64) {
    if let Some(length) = NonZeroU64::new(length) {
        #[cfg(not(target_vendor = "apple"))]
        let _ = rustix::fs::fadvise(file, offset, Some(length), rustix::fs::Advice::WillNeed);
        #[cfg(target_vendor = "apple")]
        let _ = rustix::fs::fcntl_rdadvise(file, offset, length.get());
    }
}

/// A hint: an error has no effect.
pub(super) fn advise_mapping(mapping: &Mmap, offset: usize, length: usize) {
    let _ = mapping.advise_range(Advice::WillNeed, offset, length);
}
