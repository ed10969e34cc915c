//! A table file with all its bytes, which still has its temporary name.

use std::{path::PathBuf, sync::Arc};

use tamis_vfs::{File, Vfs};

use crate::error::{Error, Result};

/// See the head of this file. It must be published or discarded.
#[derive(Debug)]
#[must_use]
pub(crate) struct UnpublishedTable {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) file: Arc<dyn File>,
    pub(super) temporary: PathBuf,
    pub(super) target: PathBuf,
}

impl UnpublishedTable {
    /// Syncs the file and gives it its name. The name is durable after a sync of the folder.
    ///
    /// # Errors
    /// Those of the file system; the file is discarded then.
    pub(crate) fn publish(&self) -> Result<()> {
        let synced = self.file.sync().map_err(|source| Error::io("sync", &self.temporary, source));
        let renamed = synced.and_then(|()| {
            let renamed = self.vfs.rename(&self.temporary, &self.target);
            renamed.map_err(|source| Error::io("rename", &self.temporary, source))
        });
        renamed.inspect_err(|_| self.discard())
    }

    /// Removes the file, under either name. One that can't be removed is deleted at the next open.
    pub(crate) fn discard(&self) {
        let _ = self.vfs.remove(&self.temporary);
        let _ = self.vfs.remove(&self.target);
    }
}
