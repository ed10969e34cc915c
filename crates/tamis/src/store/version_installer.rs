//! Installs version edits: makes them durable in the manifest, then publishes the new versions to readers.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    error::{Error, Result},
    file_name::FileName,
    store::{
        context::StoreContext,
        keyspace_state::{KeyspaceRegistry, KeyspaceState, LoggedMemtable, ReadState},
    },
    version::{catalog::Catalog, edit::VersionEdit, set::VersionSet, version::KeyspaceVersion},
};

/// A flush whose tables are written.
pub(crate) struct FinishedFlush {
    pub(crate) keyspace: Arc<KeyspaceState>,
    pub(crate) memtable: Arc<LoggedMemtable>,
    /// Adds the tables to the keyspace.
    pub(crate) edit: VersionEdit,
    /// The bytes that it was expected to write.
    pub(crate) bytes_expected: u64,
    /// The number of partitions for which it wrote tables.
    pub(crate) partition_count: u64,
    /// Whether the tables bypassed the page cache.
    pub(crate) is_direct: bool,
}

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
        self.install_with(edit, |_, read_state, version| {
            read_state.with_sources(&read_state.memtable, read_state.immutable.clone(), version)
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

    /// Installs flushes of different keyspaces by one edit: their tables replace the memtables. Returns the flushes that it
    /// installed, which are all but those of keyspaces that were dropped in the meantime.
    ///
    /// # Errors
    /// Those of the manifest; none of the flushes is installed then.
    pub(crate) fn install_flushes(&self, mut flushes: Vec<FinishedFlush>) -> Result<Vec<FinishedFlush>> {
        while !flushes.is_empty() {
            let mut edit = VersionEdit::default();
            for flush in &flushes {
                edit.changes.extend(flush.edit.changes.iter().cloned());
            }
            let flushed: BTreeMap<u32, &Arc<LoggedMemtable>> =
                flushes.iter().map(|flush| (flush.keyspace.id, &flush.memtable)).collect();
            let installed = self.install_with(edit, |id, read_state, version| {
                let is_left = |memtable: &&Arc<LoggedMemtable>| {
                    flushed.get(&id).is_none_or(|flushed| !Arc::ptr_eq(memtable, flushed))
                };
                let immutable = read_state.immutable.iter().filter(is_left).cloned().collect();
                read_state.with_sources(&read_state.memtable, immutable, version)
            });
            match installed {
                Ok(_) => {
                    self.keyspaces.note_release();
                    break;
                }
                Err(Error::KeyspaceDropped) => {
                    let catalog = self.versions.catalog();
                    let exists =
                        |flush: &mut FinishedFlush| catalog.keyspaces.contains_key(&flush.keyspace.id.into());
                    for dropped in flushes.extract_if(.., |flush| !exists(flush)) {
                        self.discard(&dropped.edit.new_tables());
                    }
                }
                Err(error) => {
                    self.discard_flushes(&flushes);
                    return Err(error);
                }
            }
        }
        Ok(flushes)
    }

    /// As [`VersionInstaller::discard`], for the tables of flushes that are not installed.
    pub(crate) fn discard_flushes(&self, flushes: &[FinishedFlush]) {
        flushes.iter().for_each(|flush| self.discard(&flush.edit.new_tables()));
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

    /// Makes files obsolete that no edit names. After a failed sync the edit may nevertheless be in the manifest: then they stay.
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
        let mut edit = edit;
        edit.persist_time(self.context.expiry.to_persist());
        let now = self.context.runtime.clock.now();
        let publish = |changed: &[Arc<KeyspaceVersion>]| {
            let keyspaces = self.keyspaces.load();
            for version in changed {
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
