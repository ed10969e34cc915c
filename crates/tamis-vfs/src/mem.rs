//! Files in memory, for tests: fast, deterministic, and able to lose power.
//!
//! 1. Clones share one state. Every call takes the state's lock shared (file contents) or exclusive (names), so
//!    [`MemVfs::crash_clone`], which takes it exclusive, sees one moment of all files and names.
//! 2. Contents are shared by reference: mappings and clones cost no copy until the file is next appended to.
//! 3. Paths are taken as given (only `.` is dropped): there is no current folder and no `..`. The roots `/` and the
//!    empty path are always there. Folders survive a crash as soon as they are made.
//! 4. Handles from `open` are for reading: `append` and `truncate` are `PermissionDenied` there. [`Access::Direct`]
//!    refuses unaligned reads, so that a test finds them before a disk does.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, ErrorKind},
    path::{Component, Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::RwLock;

use crate::{Access, DirEntry, File, Lock, Vfs, check_direct, read_slice};

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
/// // The machine loses power: synced bytes are there, of the others what the seed chose.
/// let after = vfs.crash_clone(7);
/// assert!(after.read(Path::new("/log"))?.starts_with(b"synced"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemVfs {
    state: Arc<RwLock<State>>,
}

/// The names of the whole file system.
#[derive(Debug)]
struct State {
    folders: BTreeMap<PathBuf, Folder>,
    locks: BTreeSet<PathBuf>,
}

impl Default for State {
    fn default() -> Self {
        let roots = ["", "/"].map(|root| (PathBuf::from(root), Folder::default()));
        Self { folders: BTreeMap::from(roots), locks: BTreeSet::new() }
    }
}

/// The names of one folder: as they are, as they were at its last sync, and the changes between the two.
#[derive(Debug, Default)]
struct Folder {
    names: BTreeMap<String, Arc<Inode>>,
    durable: BTreeMap<String, Arc<Inode>>,
    pending: Vec<Change>,
}

/// One change of names that a crash keeps or loses as a whole.
#[derive(Debug)]
struct Change {
    removed: Option<String>,
    added: Option<(String, Arc<Inode>)>,
}

impl Folder {
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

/// A file, whatever its names are.
#[derive(Debug, Default)]
struct Inode {
    contents: RwLock<Contents>,
    /// By the handle of [`Vfs::create_exclusive`].
    is_locked: AtomicBool,
}

/// The bytes of a file and what is known to be on the disk.
#[derive(Debug, Default)]
struct Contents {
    bytes: Arc<Vec<u8>>,
    /// The first `synced_length` of `bytes` are on the disk.
    synced_length: usize,
    /// Length after each append since the last sync.
    append_ends: Vec<usize>,
    /// What the disk held when a truncation that was not synced yet cut below it.
    before_truncation: Option<Arc<Vec<u8>>>,
    /// It was made by [`Vfs::create_log`]: a crash may leave zero bytes behind the contents.
    is_log: bool,
    /// What it held before it was used again ([`Vfs::reuse_log`]), until it is synced: a crash may bring parts back.
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
    /// The folder and the name of `path`.
    fn locate(&mut self, path: &Path) -> io::Result<(&mut Folder, String)> {
        if self.folders.contains_key(path) {
            return Err(ErrorKind::IsADirectory.into());
        }
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        let name = name.to_str().ok_or(ErrorKind::InvalidInput)?.to_owned();
        let parent = path.parent().ok_or(ErrorKind::InvalidInput)?;
        Ok((self.folder(parent)?, name))
    }

    fn folder(&mut self, path: &Path) -> io::Result<&mut Folder> {
        if !self.folders.contains_key(path) && self.find(path).is_ok() {
            return Err(ErrorKind::NotADirectory.into());
        }
        Ok(self.folders.get_mut(path).ok_or(ErrorKind::NotFound)?)
    }

    fn find(&mut self, path: &Path) -> io::Result<Arc<Inode>> {
        let (folder, name) = self.locate(path)?;
        Ok(Arc::clone(folder.names.get(&name).ok_or(ErrorKind::NotFound)?))
    }

    fn add(&mut self, path: &Path, inode: Arc<Inode>) -> io::Result<()> {
        if self.folders.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let (folder, name) = self.locate(path)?;
        if folder.names.contains_key(&name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        folder.change(Change { removed: None, added: Some((name, inode)) });
        Ok(())
    }
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

    /// Lets go of all locks, as the operating system does for a process that was killed. Whoever held them is not to
    /// go on.
    ///
    /// ```
    /// use std::path::Path;
    /// use tamis_vfs::{MemVfs, Vfs};
    ///
    /// let vfs = MemVfs::new();
    /// std::mem::forget(vfs.lock(Path::new("/LOCK"))?);
    /// assert!(vfs.lock(Path::new("/LOCK")).is_err());
    /// vfs.release_locks();
    /// assert!(vfs.lock(Path::new("/LOCK")).is_ok());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn release_locks(&self) {
        let mut state = self.state.write();
        state.locks.clear();
        for inode in state.folders.values().flat_map(|folder| folder.names.values()) {
            inode.is_locked.store(false, Ordering::Relaxed);
        }
    }

    fn handle(&self, inode: Arc<Inode>, role: Role) -> Arc<dyn File> {
        Arc::new(MemFile { state: Arc::clone(&self.state), inode, role })
    }
}

impl Vfs for MemVfs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let inode = Arc::new(Inode::default());
        self.state.write().add(&normal(path), Arc::clone(&inode))?;
        Ok(self.handle(inode, Role::Append))
    }

    fn create_log(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let inode = Arc::new(Inode::default());
        inode.contents.write().is_log = true;
        self.state.write().add(&normal(path), Arc::clone(&inode))?;
        Ok(self.handle(inode, Role::Append))
    }

    fn create_exclusive(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let path = normal(path);
        let mut state = self.state.write();
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

    fn reuse_log(&self, path: &Path) -> io::Result<Option<Arc<dyn File>>> {
        let inode = self.state.write().find(&normal(path))?;
        let mut contents = inode.contents.write();
        // What a crash could have left of the log's own use before counts with what it held last.
        let former = Some(Arc::clone(&contents.bytes));
        *contents = Contents { is_log: true, former, ..Contents::default() };
        drop(contents);
        Ok(Some(self.handle(inode, Role::Append)))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let inode = self.state.write().find(&normal(path))?;
        let role = match access {
            Access::Buffered => Role::Read,
            Access::Direct => Role::ReadAligned,
            Access::Mapped => Role::Mapped(Arc::clone(&inode.contents.read().bytes)),
        };
        Ok(self.handle(inode, role))
    }

    fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        let (source, target) = (normal(source), normal(target));
        let mut state = self.state.write();
        // As the system does: both folders are looked up before the file.
        state.locate(&source)?;
        state.locate(&target)?;
        let inode = state.find(&source)?;
        let (folder, target_name) = state.locate(&target)?;
        // As in POSIX: two names of one file stay as they are.
        if folder.names.get(&target_name).is_some_and(|old| Arc::ptr_eq(old, &inode)) {
            return Ok(());
        }
        let added = Some((target_name, inode));
        if source.parent() == target.parent() {
            let (folder, source_name) = state.locate(&source)?;
            folder.change(Change { removed: Some(source_name), added });
        } else {
            folder.change(Change { removed: None, added });
            let (folder, source_name) = state.locate(&source)?;
            folder.change(Change { removed: Some(source_name), added: None });
        }
        Ok(())
    }

    fn hard_link(&self, source: &Path, target: &Path) -> io::Result<()> {
        let mut state = self.state.write();
        let inode = state.find(&normal(source))?;
        state.add(&normal(target), inode)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.write();
        let (folder, name) = state.locate(&normal(path))?;
        if !folder.names.contains_key(&name) {
            return Err(ErrorKind::NotFound.into());
        }
        folder.change(Change { removed: Some(name), added: None });
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let path = normal(path);
        let mut state = self.state.write();
        for folder in path.ancestors() {
            if !state.folders.contains_key(folder) && state.find(folder).is_ok() {
                let is_last = folder == path;
                let kind = if is_last { ErrorKind::AlreadyExists } else { ErrorKind::NotADirectory };
                return Err(kind.into());
            }
        }
        for folder in path.ancestors() {
            state.folders.entry(folder.to_path_buf()).or_default();
        }
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let path = normal(path);
        let mut state = self.state.write();
        let folder = state.folder(&path)?;
        let files = folder.names.iter().map(|(name, inode)| DirEntry {
            name: name.clone(),
            length: inode.contents.read().bytes.len() as u64,
            is_dir: false,
        });
        let mut entries: Vec<DirEntry> = files.collect();
        let folders = state.folders.keys().filter(|child| child.parent() == Some(&path));
        entries.extend(folders.filter_map(|child| child.file_name()).map(|name| DirEntry {
            name: name.to_string_lossy().into_owned(),
            length: 0,
            is_dir: true,
        }));
        entries.sort_unstable();
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let path = normal(path);
        let mut state = self.state.write();
        Ok(state.folders.contains_key(&path) || state.find(&path).is_ok())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.write();
        let folder = state.folder(&normal(path))?;
        folder.durable = folder.names.clone();
        folder.pending.clear();
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let path = normal(path);
        let mut state = self.state.write();
        match state.find(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => state.add(&path, Arc::default())?,
            other => drop(other?),
        }
        if !state.locks.insert(path.clone()) {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(MemLock { state: Arc::clone(&self.state), path }))
    }

    fn free_space(&self, _path: &Path) -> io::Result<Option<u64>> {
        Ok(None)
    }
}

/// What a handle may do.
#[derive(Debug)]
enum Role {
    Append,
    AppendLocked(#[expect(dead_code, reason = "held until the handle is dropped")] InodeLock),
    Read,
    ReadAligned,
    Mapped(Arc<Vec<u8>>),
}

/// Unlocks the file when it is dropped.
#[derive(Debug)]
struct InodeLock(Arc<Inode>);

impl Drop for InodeLock {
    fn drop(&mut self) {
        self.0.is_locked.store(false, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct MemFile {
    /// Taken shared around every use of the contents, so that a crash clone sees one moment.
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

    fn mapping(&self) -> Option<&[u8]> {
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
    path: PathBuf,
}

impl Lock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.state.write().locks.remove(&self.path);
    }
}
