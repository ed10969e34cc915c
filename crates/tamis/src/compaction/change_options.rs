//! Changes the options of an open keyspace ([`crate::Keyspace::set_options`]).
//!
//! 1. Flushes of the keyspace are paused: a flush writes tables, and retains entries in memory, by the options with which it began.
//! 2. One edit changes the options, under [`KeyspaceState::options_lock`]. A compaction holds this lock from the check that the keyspace
//!    has the options of its plan until its edit is installed ([`StoreParts::install_compaction`]): the result of a plan that was picked
//!    for other options is discarded.
//! 3. Compactions, views and filters are picked for the new options, and so the background adapts the tables.
//!
//! Memtables with retained entries are flushed after a change to another layout: the partitions can't be united before.

use super::{background_jobs::BackgroundJobs, plan::Plan};
use crate::{
    error::Result,
    file_name::FileName,
    options::KeyspaceOptions,
    store::{keyspace_state::KeyspaceState, parts::StoreParts},
    version::edit::{Change, VersionEdit},
};

impl BackgroundJobs {
    /// See [`crate::Keyspace::set_options`].
    pub(crate) fn set_options(&self, keyspace: &KeyspaceState, options: KeyspaceOptions) -> Result<()> {
        options.check()?;
        options.check_change(&keyspace.name, &keyspace.options())?;
        let changed = self.store.change_options(keyspace, options);
        if changed.is_ok() && self.keeps_partitions(keyspace) {
            let mut log = self.store.log.lock();
            if let Some(state) = log.as_mut() {
                self.rotate_memtables(state, Some(keyspace));
            }
        }
        self.run_due();
        changed
    }

    /// Whether partitions of another layout can't be united before a flush.
    pub(super) fn keeps_partitions(&self, keyspace: &KeyspaceState) -> bool {
        !keyspace.options().layout.is_partitioned() && !keyspace.retained().is_empty()
    }
}

impl StoreParts {
    fn change_options(&self, keyspace: &KeyspaceState, options: KeyspaceOptions) -> Result<()> {
        let _job = self.context.begin_write_job()?;
        let _pause = self.pause_flushes(keyspace)?;
        let _changing = keyspace.options_lock.lock();
        keyspace.check()?;
        // Another call may have changed them in the meantime.
        options.check_change(&keyspace.name, &keyspace.options())?;
        if *keyspace.options() == options {
            return Ok(());
        }
        let mut edit = VersionEdit::default();
        edit.push(Change::SetOptions { keyspace: keyspace.id.into(), options });
        self.installer.install(edit)?;
        keyspace.update_expire_after();
        Ok(())
    }

    /// Installs the edit of a compaction that wrote `files`; `false` if the keyspace was dropped, or has other options than those of the
    /// plan: the result is discarded then.
    ///
    /// # Errors
    /// Those of the manifest.
    pub(super) fn install_compaction(
        &self,
        keyspace: &KeyspaceState,
        plan: &Plan,
        edit: VersionEdit,
        files: &[FileName],
    ) -> Result<bool> {
        let _unchanged = keyspace.options_lock.lock();
        if keyspace.has_options(&plan.options) {
            return self.installer.install_job(edit, files);
        }
        self.installer.discard(files);
        Ok(false)
    }
}
