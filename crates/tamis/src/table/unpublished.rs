//! A table file with all its bytes, which still has its temporary name.

use std::{path::PathBuf, sync::Arc};

use tamis_vfs::{File, Vfs};

use crate::{
    admin::link::folder_of,
    error::{Error, Result},
};

/// See the head of this file. If it is dropped before it is published, the file is removed.
#[derive(Debug)]
#[must_use]
pub(crate) struct UnpublishedTable {
    vfs: Arc<dyn Vfs>,
    file: Arc<dyn File>,
    temporary: PathBuf,
    target: PathBuf,
    is_published: bool,
}

impl UnpublishedTable {
    pub(super) const fn new(
        vfs: Arc<dyn Vfs>,
        file: Arc<dyn File>,
        temporary: PathBuf,
        target: PathBuf,
    ) -> Self {
        Self { vfs, file, temporary, target, is_published: false }
    }

    /// Syncs the file and gives it its name. The name is durable after a sync of the folder.
    ///
    /// # Errors
    /// Those of the file system; the file is removed then.
    pub(crate) fn publish(mut self) -> Result<()> {
        self.sync_and_rename()?;
        self.is_published = true;
        Ok(())
    }

    /// As [`Self::publish`], with the sync of the folder.
    pub(super) fn publish_durably(mut self) -> Result<()> {
        self.sync_and_rename()?;
        let folder = folder_of(&self.target);
        self.vfs.sync_dir(folder).map_err(|source| Error::io("sync", folder, source))?;
        self.is_published = true;
        Ok(())
    }

    fn sync_and_rename(&self) -> Result<()> {
        self.file.sync().map_err(|source| Error::io("sync", &self.temporary, source))?;
        let renamed = self.vfs.rename(&self.temporary, &self.target);
        renamed.map_err(|source| Error::io("rename", &self.temporary, source))
    }
}

impl Drop for UnpublishedTable {
    fn drop(&mut self) {
        if !self.is_published {
            // After a failed rename it may have either name. One that can't be removed is deleted at the next open.
            let _ = self.vfs.remove(&self.temporary);
            let _ = self.vfs.remove(&self.target);
        }
    }
}
