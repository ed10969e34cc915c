//! The file system of a life: each operation is a hand-over point with a duration, and part of the history.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tamis_vfs::{Access, DirEntry, File, Lock, LockMode, Mapping, OperationKind, Vfs};

use super::Life;

/// The file system of a life.
#[derive(Debug)]
pub struct SimVfs {
    life: Arc<Life>,
    inner: Arc<dyn Vfs>,
}

impl SimVfs {
    /// The file system of a life.
    pub fn new(life: &Arc<Life>) -> Self {
        Self { life: Arc::clone(life), inner: Arc::new(life.faults.clone()) }
    }

    fn open_by(
        &self,
        kind: OperationKind,
        path: &Path,
        open: impl FnOnce(&dyn Vfs) -> io::Result<Arc<dyn File>>,
    ) -> io::Result<Arc<dyn File>> {
        let inner = self.life.run(kind, path, || open(&*self.inner))?;
        Ok(self.wrap(path, inner))
    }

    fn wrap(&self, path: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(SimFile { life: Arc::clone(&self.life), path: path.to_path_buf(), inner })
    }
}

impl Vfs for SimVfs {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_by(OperationKind::Create, path, |inner| inner.create(path))
    }

    fn create_log(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_by(OperationKind::Create, path, |inner| inner.create_log(path))
    }

    fn create_direct(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_by(OperationKind::Create, path, |inner| inner.create_direct(path))
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        self.life.run(OperationKind::Lock, path, || self.inner.is_locked(path))
    }

    fn create_exclusive(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_by(OperationKind::Create, path, |inner| inner.create_exclusive(path))
    }

    fn reuse_log(&self, path: &Path) -> io::Result<Option<Arc<dyn File>>> {
        let inner = self.life.run(OperationKind::Reuse, path, || self.inner.reuse_log(path))?;
        Ok(inner.map(|inner| self.wrap(path, inner)))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        self.open_by(OperationKind::Open, path, |inner| inner.open(path, access))
    }

    fn rename(&self, source: &Path, target: &Path) -> io::Result<()> {
        self.life.run(OperationKind::Rename, source, || self.inner.rename(source, target))
    }

    fn hard_link(&self, source: &Path, target: &Path) -> io::Result<()> {
        self.life.run(OperationKind::HardLink, source, || self.inner.hard_link(source, target))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.life.run(OperationKind::Remove, path, || self.inner.remove(path))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.life.run(OperationKind::CreateDir, path, || self.inner.create_dir_all(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.life.run(OperationKind::List, path, || self.inner.list(path))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.life.run(OperationKind::Exists, path, || self.inner.exists(path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.life.run(OperationKind::SyncDir, path, || self.inner.sync_dir(path))
    }

    fn clone_file(&self, source: &Path, target: &Path) -> io::Result<()> {
        self.life.run(OperationKind::Create, target, || self.inner.clone_file(source, target))
    }

    fn is_only_name(&self, path: &Path) -> io::Result<bool> {
        self.life.run(OperationKind::Exists, path, || self.inner.is_only_name(path))
    }

    fn open_folder(&self, path: &Path) -> io::Result<Arc<dyn Vfs>> {
        let inner = self.life.run(OperationKind::OpenFolder, path, || self.inner.open_folder(path))?;
        Ok(Arc::new(Self { life: Arc::clone(&self.life), inner }))
    }

    fn check_folder(&self) -> io::Result<()> {
        self.inner.check_folder()
    }

    fn is_within(&self, path: &Path, folder: &Path) -> io::Result<bool> {
        self.inner.is_within(path, folder)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn Lock>> {
        self.life.run(OperationKind::Lock, path, || self.inner.lock(path, mode))
    }

    fn free_space(&self, path: &Path) -> io::Result<Option<u64>> {
        self.inner.free_space(path)
    }

    fn open_files_max(&self) -> Option<u64> {
        self.inner.open_files_max()
    }
}

#[derive(Debug)]
struct SimFile {
    life: Arc<Life>,
    path: PathBuf,
    inner: Arc<dyn File>,
}

impl File for SimFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.life.begin(OperationKind::Read, &self.path, (offset, buffer.len()))?;
        self.life.end(self.inner.read_at(offset, buffer))
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.life.begin(OperationKind::Append, &self.path, (0, bytes.len()))?;
        self.life.schedule.record_bytes(bytes);
        self.life.end(self.inner.append(bytes))
    }

    fn sync(&self) -> io::Result<()> {
        self.life.begin(OperationKind::Sync, &self.path, (0, 0))?;
        self.life.end(self.inner.sync())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.life.begin(OperationKind::Truncate, &self.path, (length, 0))?;
        self.life.end(self.inner.truncate(length))
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
