//! Files in memory, for tests: fast, deterministic, and with simulated power loss.
//!
//! 1. Clones share one state. Every call takes the lock of the state: shared for file contents, exclusive for
//!    names. [`MemVfs::crash_clone`] takes it exclusively and so copies a consistent state of all files and
//!    names.
//! 2. Contents are reference-counted. Mappings and clones copy nothing until the next append to the file.
//! 3. Paths are used as given; only `.` is removed. There is no current directory and no `..`. The roots `/` and
//!    the empty path always exist. Directories are durable as soon as they are created, renamed or removed.
//! 4. Handles from `open` are read-only: `append` and `truncate` return `PermissionDenied`. [`Access::Direct`]
//!    rejects unaligned reads, so that tests find them before they fail on a real disk.
//! 5. Each directory has a number, which it keeps when it is renamed. Open folders and locks use it.

use std::{
    collections::BTreeMap,
    io::{self, ErrorKind},
    path::{Component, Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::RwLock;

use crate::{Access, DirEntry, File, Lock, LockMode, Mapping, Vfs, check_direct, read_slice};

mod crash;
#[cfg(test)]
mod tests;

/// A file system in memory.
///
/// ```
/// use std::path::Path;
/// use tamis_vfs::{MemVfs, Vfs};
///
/// let vfs = MemVfs::new();
/// let log = vfs.create(Path::new("/log"))?;
/// vfs.sync_dir(Path::new("/"))?;
/// log.append(b"synced")?;
/// log.sync()?;
/// log.append(b"and not synced")?;
///
/// // The machine loses power: synced bytes survive, and the seed decides which others survive.
/// let after = vfs.crash_clone(7);
/// assert!(after.read(Path::new("/log"))?.starts_with(b"synced"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemVfs {
    state: Arc<RwLock<State>>,
    /// The folder of [`Vfs::open_folder`]: the path by which callers name it, and its number.
    folder: Option<(PathBuf, u64)>,
}

/// The names of the whole file system.
#[derive(Debug)]
struct State {
    directories: BTreeMap<PathBuf, Directory>,
    locks: Vec<HeldLock>,
    /// The next number of a directory or of a lock.
    next_id: u64,
}

#[derive(Debug)]
struct HeldLock {
    id: u64,
    directory: u64,
    mode: LockMode,
}

impl Default for State {
    fn default() -> Self {
        let mut state = Self { directories: BTreeMap::new(), locks: Vec::new(), next_id: 0 };
        for root in ["", "/"] {
            state.create_directory(Path::new(root));
        }
        state
    }
}

/// The names of one directory: the current ones, those at the last sync, and the changes between the two.
#[derive(Debug, Default)]
struct Directory {
    id: u64,
    names: BTreeMap<String, Arc<Inode>>,
    durable: BTreeMap<String, Arc<Inode>>,
    pending: Vec<Change>,
}

/// One change of names that a crash keeps or loses atomically.
#[derive(Debug)]
struct Change {
    removed: Option<String>,
    added: Option<(String, Arc<Inode>)>,
}

impl Directory {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.pending.push(change);
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, Arc<Inode>>) {
        if let Some(removed) = &self.removed {
            names.remove(removed);
        }
        if let Some((name, inode)) = &self.added {
            names.insert(name.clone(), Arc::clone(inode));
        }
    }
}

/// A file, independent of its names.
#[derive(Debug, Default)]
struct Inode {
    contents: RwLock<Contents>,
    /// Set by the handle of [`Vfs::create_exclusive`].
    is_locked: AtomicBool,
}

/// The bytes of a file and their durable part.
#[derive(Debug, Default)]
struct Contents {
    bytes: Arc<Vec<u8>>,
    /// The first `synced_length` bytes of `bytes` are durable.
    synced_length: usize,
    /// Length after each append since the last sync.
    append_ends: Vec<usize>,
    /// The durable bytes before a truncation that is not synced yet.
    before_truncation: Option<Arc<Vec<u8>>>,
    /// The file was created by [`Vfs::create_log`]: a crash may leave zero bytes after the contents.
    is_log: bool,
    /// The content before [`Vfs::reuse_log`], until the next sync. A crash may restore parts of it.
    former: Option<Arc<Vec<u8>>>,
}

impl Contents {
    fn append(&mut self, bytes: &[u8]) {
        let all = Arc::make_mut(&mut self.bytes);
        all.extend_from_slice(bytes);
        self.append_ends.push(all.len());
    }

    fn sync(&mut self) {
        self.synced_length = self.bytes.len();
        self.append_ends.clear();
        self.before_truncation = None;
        self.former = None;
    }

    fn truncate(&mut self, length: usize) {
        if length < self.synced_length {
            if self.before_truncation.is_none() {
                let durable = self.bytes.get(..self.synced_length).unwrap_or_default();
                self.before_truncation = Some(Arc::new(durable.to_vec()));
            }
            self.synced_length = length;
        }
        Arc::make_mut(&mut self.bytes).truncate(length);
        self.append_ends.retain(|end| *end < length);
        self.append_ends.push(length);
    }
}

impl State {
    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Creates a directory if it is missing.
    fn create_directory(&mut self, path: &Path) {
        if !self.directories.contains_key(path) {
            let directory = Directory { id: self.new_id(), ..Directory::default() };
            self.directories.insert(path.to_path_buf(), directory);
        }
    }

    /// The path of the directory with this number.
    fn path_of(&self, id: u64) -> io::Result<&Path> {
        let mut found = self.directories.iter().filter(|(_, directory)| directory.id == id);
        found.next().map(|(path, _)| path.as_path()).ok_or_else(removed)
    }

    /// The directory and the name of `path`.
    fn locate(&mut self, path: &Path) -> io::Result<(&mut Directory, String)> {
        if self.directories.contains_key(path) {
            return Err(ErrorKind::IsADirectory.into());
        }
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        let name = name.to_str().ok_or(ErrorKind::InvalidInput)?.to_owned();
        let parent = path.parent().ok_or(ErrorKind::InvalidInput)?;
        Ok((self.directory(parent)?, name))
    }

    fn directory(&mut self, path: &Path) -> io::Result<&mut Directory> {
        if !self.directories.contains_key(path) && self.find(path).is_ok() {
            return Err(ErrorKind::NotADirectory.into());
        }
        Ok(self.directories.get_mut(path).ok_or(ErrorKind::NotFound)?)
    }

    fn find(&mut self, path: &Path) -> io::Result<Arc<Inode>> {
        let (directory, name) = self.locate(path)?;
        Ok(Arc::clone(directory.names.get(&name).ok_or(ErrorKind::NotFound)?))
    }

    fn add(&mut self, path: &Path, inode: Arc<Inode>) -> io::Result<()> {
        if self.directories.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let (directory, name) = self.locate(path)?;
        if directory.names.contains_key(&name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        directory.change(Change { removed: None, added: Some((name, inode)) });
        Ok(())
    }
}

fn removed() -> io::Error {
    io::Error::new(ErrorKind::NotFound, "the folder was removed")
}

/// The path `below` a folder, which may be the folder itself.
fn join(folder: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { folder.to_path_buf() } else { folder.join(below) }
}

/// The path without `.` and trailing slashes.
fn normal(path: &Path) -> PathBuf {
    path.components().filter(|component| *component != Component::CurDir).collect()
}

impl MemVfs {
    /// An empty file system.
    pub fn new() -> Self {
        Self::default()
    }

    /// Releases all locks, as the operating system does when a process is killed. The owners of these locks
    /// must not continue to use them.
    ///
    /// ```
    /// use std::path::Path;
    /// use tamis_vfs::{LockMode, MemVfs, Vfs};
    ///
    /// let vfs = MemVfs::new();
    /// std::mem::forget(vfs.lock(Path::new("/"), LockMode::Exclusive)?);
    /// assert!(vfs.lock(Path::new("/"), LockMode::Shared).is_err());
    /// vfs.release_locks();
    /// assert!(vfs.lock(Path::new("/"), LockMode::Shared).is_ok());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn release_locks(&self) {
        let mut state = self.state.write();
        state.locks.clear();
        for inode in state.directories.values().flat_map(|directory| directory.names.values()) {
            inode.is_locked.store(false, Ordering::Relaxed);
        }
    }

    /// Renames a directory with all that it contains, as another program does.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::AlreadyExists`].
    pub fn rename_folder(&self, source: &Path, target: &Path) -> io::Result<()> {
        let (source, target) = (normal(source), normal(target));
        let mut state = self.state.write();
        state.directory(&source)?;
        if state.directories.contains_key(&target) || state.find(&target).is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let directories = std::mem::take(&mut state.directories).into_iter();
        state.directories = directories
            .map(|(path, directory)| match path.strip_prefix(&source) {
                Ok(below) => (join(&target, below), directory),
                Err(_) => (path, directory),
            })
            .collect();
        Ok(())
    }

    /// Removes a directory with all that it contains, as another program does.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`].
    pub fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        let mut state = self.state.write();
        state.directory(&path)?;
        state.directories.retain(|other, _| !other.starts_with(&path));
        Ok(())
    }

    /// The path of a file or directory now.
    fn resolve(&self, state: &State, path: &Path) -> io::Result<PathBuf> {
        let path = normal(path);
        match &self.folder {
            Some((folder, id)) => match path.strip_prefix(folder) {
                Ok(below) => Ok(join(state.path_of(*id)?, below)),
                Err(_) => Ok(path),
            },
            None => Ok(path),
        }
    }

    /// Damages the medium: flips the bits of `mask` in one byte of a file. Mappings keep the bytes that they have.
    ///
    /// ```
    /// use std::path::Path;
    /// use tamis_vfs::{MemVfs, Vfs};
    ///
    /// let vfs = MemVfs::new();
    /// vfs.create(Path::new("/table"))?.append(b"abc")?;
    /// vfs.flip_bits(Path::new("/table"), 1, 0b1)?;
    /// assert_eq!(vfs.read(Path::new("/table"))?, b"acc");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::UnexpectedEof`] for an offset past the end.
    pub fn flip_bits(&self, path: &Path, offset: u64, mask: u8) -> io::Result<()> {
        let inode = self.state.write().find(&normal(path))?;
        let mut contents = inode.contents.write();
        let offset = usize::try_from(offset).map_err(|_| ErrorKind::UnexpectedEof)?;
        let byte = Arc::make_mut(&mut contents.bytes).get_mut(offset).ok_or(ErrorKind::UnexpectedEof)?;
        *byte ^= mask;
        Ok(())
    }

    fn handle(&self, inode: Arc<Inode>, role: Role) -> Arc<dyn File> {
        Arc::new(MemFile { state: Arc::clone(&self.state), inode, role })
    }
}

impl Vfs for MemVfs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let inode = Arc::new(Inode::default());
        let mut state = self.state.write();
        let path = self.resolve(&state, path)?;
        state.add(&path, Arc::clone(&inode))?;
        Ok(self.handle(inode, Role::Append))
    }

    fn create_log(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let inode = Arc::new(Inode::default());
        inode.contents.write().is_log = true;
        let mut state = self.state.write();
        let path = self.resolve(&state, path)?;
        state.add(&path, Arc::clone(&inode))?;
        Ok(self.handle(inode, Role::Append))
    }

    fn create_exclusive(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.write();
        let path = self.resolve(&state, path)?;
        let inode = match state.find(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let inode = Arc::default();
                state.add(&path, Arc::clone(&inode))?;
                inode
            }
            other => other?,
        };
        if inode.is_locked.swap(true, Ordering::Relaxed) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        inode.contents.write().truncate(0);
        drop(state);
        Ok(self.handle(Arc::clone(&inode), Role::AppendLocked(InodeLock(inode))))
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        let mut state = self.state.write();
        let path = self.resolve(&state, path)?;
        Ok(state.find(&path)?.is_locked.load(Ordering::Relaxed))
    }

    fn reuse_log(&self, path: &Path) -> io::Result<Option<Arc<dyn File>>> {
        let mut state = self.state.write();
        let path = self.resolve(&state, path)?;
        let inode = state.find(&path)?;
        let mut contents = inode.contents.write();
        // Includes bytes that a crash could have left from before the last content of the log.
        let former = Some(Arc::clone(&contents.bytes));
        *contents = Contents { is_log: true, former, ..Contents::default() };
        drop(contents);
        Ok(Some(self.handle(inode, Role::Append)))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let mut state = self.state.write();
        let path = self.resolve(&state, path)?;
        let inode = state.find(&path)?;
        let role = match access {
            Access::Buffered => Role::Read,
            Access::Direct => Role::ReadAligned,
            Access::Mapped => {
                Role::Mapped(Arc::new(Mapping::of_memory(Arc::clone(&inode.contents.read().bytes))))
            }
        };
        Ok(self.handle(inode, role))
    }

    fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        let mut state = self.state.write();
        let (source, target) = (self.resolve(&state, source)?, self.resolve(&state, target)?);
        // Same order as in the operating system: both directories are looked up before the file.
        state.locate(&source)?;
        state.locate(&target)?;
        let inode = state.find(&source)?;
        let (directory, target_name) = state.locate(&target)?;
        // POSIX: renaming one name of a file to another name of the same file has no effect.
        if directory.names.get(&target_name).is_some_and(|old| Arc::ptr_eq(old, &inode)) {
            return Ok(());
        }
        let added = Some((target_name, inode));
        if source.parent() == target.parent() {
            let (directory, source_name) = state.locate(&source)?;
            directory.change(Change { removed: Some(source_name), added });
        } else {
            directory.change(Change { removed: None, added });
            let (directory, source_name) = state.locate(&source)?;
            directory.change(Change { removed: Some(source_name), added: None });
        }
        Ok(())
    }

    fn hard_link(&self, source: &Path, target: &Path) -> io::Result<()> {
        let mut state = self.state.write();
        let (source, target) = (self.resolve(&state, source)?, self.resolve(&state, target)?);
        let inode = state.find(&source)?;
        state.add(&target, inode)
    }

    fn is_only_name(&self, path: &Path) -> io::Result<bool> {
        let mut state = self.state.write();
        let path = self.resolve(&state, path)?;
        let inode = state.find(&path)?;
        let names = state.directories.values().flat_map(|directory| directory.names.values());
        Ok(names.filter(|other| Arc::ptr_eq(other, &inode)).count() == 1)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.write();
        let path = self.resolve(&state, path)?;
        let (directory, name) = state.locate(&path)?;
        if !directory.names.contains_key(&name) {
            return Err(ErrorKind::NotFound.into());
        }
        directory.change(Change { removed: Some(name), added: None });
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.write();
        let path = self.resolve(&state, path)?;
        for directory in path.ancestors() {
            if !state.directories.contains_key(directory) && state.find(directory).is_ok() {
                let is_last = directory == path;
                let kind = if is_last { ErrorKind::AlreadyExists } else { ErrorKind::NotADirectory };
                return Err(kind.into());
            }
        }
        for directory in path.ancestors() {
            state.create_directory(directory);
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut state = self.state.write();
        let path = self.resolve(&state, path)?;
        let directory = state.directory(&path)?;
        let files = directory.names.iter().map(|(name, inode)| DirEntry {
            name: name.clone(),
            length: inode.contents.read().bytes.len() as u64,
            is_dir: false,
        });
        let mut entries: Vec<DirEntry> = files.collect();
        let directories = state.directories.keys().filter(|child| child.parent() == Some(&path));
        entries.extend(directories.filter_map(|child| child.file_name()).map(|name| DirEntry {
            name: name.to_string_lossy().into_owned(),
            length: 0,
            is_dir: true,
        }));
        entries.sort_unstable();
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let mut state = self.state.write();
        let path = self.resolve(&state, path)?;
        Ok(state.directories.contains_key(&path) || state.find(&path).is_ok())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.write();
        let path = self.resolve(&state, path)?;
        let directory = state.directory(&path)?;
        directory.durable = directory.names.clone();
        directory.pending.clear();
        Ok(())
    }

    fn open_folder(&self, path: &Path) -> io::Result<Arc<dyn Vfs>> {
        let mut state = self.state.write();
        let found = self.resolve(&state, path)?;
        let id = state.directory(&found)?.id;
        Ok(Arc::new(Self { state: Arc::clone(&self.state), folder: Some((normal(path), id)) }))
    }

    fn check_folder(&self) -> io::Result<()> {
        let Some((path, id)) = &self.folder else { return Ok(()) };
        let state = self.state.read();
        state.path_of(*id)?;
        match state.directories.get(path) {
            Some(other) if other.id != *id => {
                Err(io::Error::new(ErrorKind::NotFound, "the folder was moved and another one has its name"))
            }
            _ => Ok(()),
        }
    }

    fn is_within(&self, path: &Path, folder: &Path) -> io::Result<bool> {
        let state = self.state.read();
        Ok(self.resolve(&state, path)?.starts_with(self.resolve(&state, folder)?))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn Lock>> {
        let mut state = self.state.write();
        let path = self.resolve(&state, path)?;
        let directory = state.directory(&path)?.id;
        let mut held = state.locks.iter().filter(|held| held.directory == directory);
        let is_excluded = |held: &HeldLock| LockMode::Exclusive == mode || held.mode == LockMode::Exclusive;
        if let Some(held) = held.find(|held| is_excluded(held)) {
            let purpose = if held.mode == LockMode::Exclusive { "writing" } else { "reading" };
            return Err(io::Error::new(ErrorKind::WouldBlock, format!("for {purpose} by another handle")));
        }
        let id = state.new_id();
        state.locks.push(HeldLock { id, directory, mode });
        Ok(Box::new(MemLock { state: Arc::clone(&self.state), id }))
    }

    fn free_space(&self, _path: &Path) -> io::Result<Option<u64>> {
        Ok(None)
    }
}

/// The permitted operations of a handle.
#[derive(Debug)]
enum Role {
    Append,
    AppendLocked(#[expect(dead_code, reason = "held until the handle is dropped")] InodeLock),
    Read,
    ReadAligned,
    Mapped(Arc<Mapping>),
}

/// Unlocks the file when dropped.
#[derive(Debug)]
struct InodeLock(Arc<Inode>);

impl Drop for InodeLock {
    fn drop(&mut self) {
        self.0.is_locked.store(false, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct MemFile {
    /// Locked shared for every access to the contents, so that a crash clone is consistent.
    state: Arc<RwLock<State>>,
    inode: Arc<Inode>,
    role: Role,
}

impl MemFile {
    fn check_appendable(&self) -> io::Result<()> {
        if matches!(self.role, Role::Append | Role::AppendLocked(_)) {
            Ok(())
        } else {
            Err(ErrorKind::PermissionDenied.into())
        }
    }
}

impl File for MemFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match &self.role {
            Role::Mapped(bytes) => return read_slice(bytes, offset, buffer),
            Role::ReadAligned => check_direct(offset, buffer)?,
            Role::Append | Role::AppendLocked(_) | Role::Read => {}
        }
        read_slice(&self.inode.contents.read().bytes, offset, buffer)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.check_appendable()?;
        let _moment = self.state.read();
        self.inode.contents.write().append(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        if matches!(self.role, Role::Mapped(_)) {
            return Err(ErrorKind::Unsupported.into());
        }
        let _moment = self.state.read();
        self.inode.contents.write().sync();
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.check_appendable()?;
        let _moment = self.state.read();
        let mut contents = self.inode.contents.write();
        let length = usize::try_from(length).map_err(|_| ErrorKind::InvalidInput)?;
        if length > contents.bytes.len() {
            return Err(ErrorKind::InvalidInput.into());
        }
        contents.truncate(length);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        match &self.role {
            Role::Mapped(bytes) => Ok(bytes.len() as u64),
            _ => Ok(self.inode.contents.read().bytes.len() as u64),
        }
    }

    fn mapping(&self) -> Option<&Arc<Mapping>> {
        match &self.role {
            Role::Mapped(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn will_need(&self, _offset: u64, _length: u64) {}
}

#[derive(Debug)]
struct MemLock {
    state: Arc<RwLock<State>>,
    id: u64,
}

impl Lock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.state.write().locks.retain(|held| held.id != self.id);
    }
}
