//! Installs version edits: makes them durable in the manifest, then publishes the new versions to readers.

use std::sync::Arc;

use crate::{
    context::StoreContext,
    error::{Error, Result},
    file_name::FileName,
    keyspace_state::{KeyspaceRegistry, LoggedMemtable, ReadState},
    version::{
        catalog::Catalog,
        edit::VersionEdit,
        set::{Installed, VersionSet},
        version::KeyspaceVersion,
    },
};

/// See the head of this file.
pub(crate) struct VersionInstaller {
    context: Arc<StoreContext>,
    keyspaces: Arc<KeyspaceRegistry>,
    pub(crate) versions: Arc<VersionSet>,
}

impl VersionInstaller {
    pub(crate) fn new(
        context: &Arc<StoreContext>,
        keyspaces: &Arc<KeyspaceRegistry>,
        versions: &Arc<VersionSet>,
    ) -> Arc<Self> {
        Arc::new(Self {
            context: Arc::clone(context),
            keyspaces: Arc::clone(keyspaces),
            versions: Arc::clone(versions),
        })
    }

    /// Installs an edit.
    ///
    /// # Errors
    /// [`Error::KeyspaceDropped`]; those of the manifest, of which a failed sync is a background error.
    pub(crate) fn install(&self, edit: VersionEdit) -> Result<Arc<Catalog>> {
        self.install_with(edit, |_, read_state, version| ReadState {
            memtable: Arc::clone(&read_state.memtable),
            immutable: read_state.immutable.clone(),
            version: Arc::clone(version),
        })
    }

    /// As [`VersionInstaller::install`], for the edit of a job that wrote `files`: if the manifest certainly does not name them,
    /// they become obsolete. Returns `false` if the keyspace was dropped in the meantime, which is no failure of the job.
    ///
    /// # Errors
    /// Those of the manifest.
    pub(crate) fn install_job(&self, edit: VersionEdit, files: &[FileName]) -> Result<bool> {
        self.finish_job(self.install(edit), files)
    }

    /// As [`VersionInstaller::install_job`], for a flush: its tables replace the memtable `flushed` of a keyspace.
    ///
    /// # Errors
    /// Those of the manifest.
    pub(crate) fn install_flush(
        &self,
        edit: VersionEdit,
        files: &[FileName],
        keyspace: u32,
        flushed: &Arc<LoggedMemtable>,
    ) -> Result<bool> {
        let is_left = |memtable: &&Arc<LoggedMemtable>| !Arc::ptr_eq(memtable, flushed);
        let installed = self.install_with(edit, |id, read_state, version| {
            let immutable = read_state.immutable.iter();
            ReadState {
                memtable: Arc::clone(&read_state.memtable),
                immutable: immutable
                    .filter(|memtable| id != keyspace || is_left(memtable))
                    .cloned()
                    .collect(),
                version: Arc::clone(version),
            }
        });
        self.finish_job(installed, files)
    }

    fn finish_job(&self, installed: Result<Arc<Catalog>>, files: &[FileName]) -> Result<bool> {
        if installed.is_err() {
            self.discard(files);
        }
        match installed {
            Err(Error::KeyspaceDropped) => Ok(false),
            other => other.map(|_| true),
        }
    }

    /// Makes files obsolete that no edit names. After a failed sync the edit may be in the manifest all the same: then they stay.
    pub(crate) fn discard(&self, files: &[FileName]) {
        if self.versions.background_error().is_none() {
            self.versions.obsolete_files().extend(files.iter().copied());
        }
    }

    fn install_with(
        &self,
        edit: VersionEdit,
        change: impl Fn(u32, &ReadState, &Arc<KeyspaceVersion>) -> ReadState,
    ) -> Result<Arc<Catalog>> {
        let now = self.context.runtime.clock.now();
        let publish = |installed: &Installed| {
            let keyspaces = self.keyspaces.load();
            for version in &installed.changed {
                let id = u32::try_from(version.id).ok();
                if let Some(keyspace) = id.and_then(|id| keyspaces.get(&id)) {
                    keyspace.record_replaced(now);
                    keyspace.update_read_state(|read_state| change(keyspace.id, read_state, version));
                }
            }
        };
        let result = self.versions.apply(edit, publish);
        if let (Err(error), true) = (&result, self.versions.background_error().is_some()) {
            self.context.set_background_error(error);
        }
        result
    }
}
