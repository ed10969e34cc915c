//! An open folder: the handle by which a store uses all of its files.

use std::{io, ops::Deref, path::Path, sync::Arc};

use crate::{Vfs, fork::Process};

/// A file system with one open folder, and the path of this folder ([`Vfs::open_folder`]). Cheap to clone.
///
/// ```
/// use std::path::Path;
/// use tamis_vfs::{Folder, MemVfs, Vfs};
///
/// let vfs = MemVfs::new();
/// vfs.create_dir_all(Path::new("/store"))?;
/// let folder = Folder::open(&vfs, Path::new("/store"))?;
/// vfs.rename_folder(Path::new("/store"), Path::new("/moved"))?;
///
/// folder.create(&folder.path().join("000001.log"))?;
/// assert!(vfs.exists(Path::new("/moved/000001.log"))?);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Folder {
    vfs: Arc<dyn Vfs>,
    path: Arc<Path>,
    process: Process,
}

impl Folder {
    /// Opens a folder.
    ///
    /// # Errors
    /// Those of [`Vfs::open_folder`].
    pub fn open(vfs: &dyn Vfs, path: &Path) -> io::Result<Self> {
        Ok(Self { vfs: vfs.open_folder(path)?, path: path.into(), process: Process::current() })
    }

    /// The path by which the folder was opened: a prefix of the paths of its files.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file system with this folder open.
    pub fn vfs(&self) -> &Arc<dyn Vfs> {
        &self.vfs
    }

    /// The process that opened the folder.
    pub fn process(&self) -> Process {
        self.process
    }

    /// Makes the names in the folder durable.
    ///
    /// # Errors
    /// Those of [`Vfs::sync_dir`].
    pub fn sync(&self) -> io::Result<()> {
        self.vfs.sync_dir(&self.path)
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl Deref for Folder {
    type Target = dyn Vfs;

    fn deref(&self) -> &dyn Vfs {
        &*self.vfs
    }
}
