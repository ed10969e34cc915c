//! Kinds of file operations, used by the fault-injecting and the recording file system.

use std::path::{Path, PathBuf};

/// The kind of a file operation. Querying the length, the free space or the place of a folder, access through a mapping, and hints are
/// not operations: they never fail by injection and are not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperationKind {
    /// [`crate::Vfs::create`].
    Create,
    /// [`crate::Vfs::reuse_log`].
    Reuse,
    /// [`crate::Vfs::open`].
    Open,
    /// [`crate::File::read_at`].
    Read,
    /// [`crate::File::append`].
    Append,
    /// [`crate::File::sync`].
    Sync,
    /// [`crate::File::truncate`].
    Truncate,
    /// [`crate::Vfs::rename`].
    Rename,
    /// [`crate::Vfs::hard_link`].
    HardLink,
    /// [`crate::Vfs::remove`].
    Remove,
    /// [`crate::Vfs::create_dir_all`].
    CreateDir,
    /// [`crate::Vfs::list`].
    List,
    /// [`crate::Vfs::exists`].
    Exists,
    /// [`crate::Vfs::sync_dir`].
    SyncDir,
    /// [`crate::Vfs::open_folder`].
    OpenFolder,
    /// [`crate::Vfs::lock`], [`crate::Vfs::is_locked`].
    Lock,
}

impl OperationKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 16] = [
        Self::Create,
        Self::Reuse,
        Self::Open,
        Self::Read,
        Self::Append,
        Self::Sync,
        Self::Truncate,
        Self::Rename,
        Self::HardLink,
        Self::Remove,
        Self::CreateDir,
        Self::List,
        Self::Exists,
        Self::SyncDir,
        Self::OpenFolder,
        Self::Lock,
    ];
}

/// One operation on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The kind of the operation.
    pub kind: OperationKind,
    /// The file or directory; for a rename or link, the source. For an open file, the path it was opened with.
    pub path: PathBuf,
    /// The new name of a rename or link.
    pub target: Option<PathBuf>,
    /// The offset of a read or append; for a truncation, the new length; otherwise 0.
    pub offset: u64,
    /// How many bytes a read or append requests; otherwise 0.
    pub length_bytes: u64,
}

impl Operation {
    pub(crate) fn new(kind: OperationKind, path: &Path) -> Self {
        Self { kind, path: path.to_path_buf(), target: None, offset: 0, length_bytes: 0 }
    }

    pub(crate) fn with_target(mut self, target: &Path) -> Self {
        self.target = Some(target.to_path_buf());
        self
    }

    pub(crate) fn with_extent(mut self, offset: u64, length: usize) -> Self {
        self.offset = offset;
        self.length_bytes = length as u64;
        self
    }

    /// The name of the file without its directory.
    ///
    /// ```
    /// use std::{path::Path, sync::Arc};
    /// use tamis_vfs::{MemVfs, RecordVfs, Vfs};
    ///
    /// let vfs = RecordVfs::new(Arc::new(MemVfs::new()));
    /// vfs.create(Path::new("/000007.table"))?;
    /// assert_eq!(vfs.operations()[0].file_name(), "000007.table");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn file_name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}
