//! Making and dropping keyspaces.
//!
//! Both are manifest edits, synced when the call returns. They run under the `log` lock, so that no write for a
//! keyspace is under way while it goes, and a keyspace is in the manifest before its first entry is in the log.

use std::sync::{Arc, atomic::Ordering};

use crate::{
    engine::{Engine, KeyspaceState, Keyspaces},
    error::{Error, Result},
    options::{DEFAULT_KEYSPACE, KeyspaceOptions},
    version::{
        edit::{Change, VersionEdit},
        set::VersionSet,
    },
};

/// The longest name in bytes.
const NAME_LENGTH_MAX: usize = 255;

impl Engine {
    /// See [`crate::Db::create_keyspace`].
    pub(crate) fn create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Arc<KeyspaceState>> {
        options.check()?;
        if name.is_empty() || name.len() > NAME_LENGTH_MAX {
            return Err(Error::InvalidArgument {
                what: "keyspace name",
                got: format!("{name:?}"),
                expected: "give 1 to 255 bytes".to_owned(),
            });
        }
        let log = self.log.lock();
        self.check_writable()?;
        if self.keyspaces.load().values().any(|state| state.name == name) {
            return Err(Error::KeyspaceExists { name: name.to_owned() });
        }
        // Numbers given out before concern other keyspaces.
        let sequence = log.as_ref().map_or(0, |state| state.last_sequence);
        let edit = new_keyspace(&self.versions, name, &options, sequence);
        let state = self.apply(edit)?;
        let version =
            state.keyspace_named(name).ok_or_else(|| Error::KeyspaceNotFound { name: name.to_owned() })?;
        let keyspace = KeyspaceState::new(Arc::clone(version), &self.pool);
        self.replace_keyspaces(|keyspaces| keyspaces.insert(keyspace.id, Arc::clone(&keyspace)));
        drop(log);
        Ok(keyspace)
    }

    /// See [`crate::Db::drop_keyspace`].
    pub(crate) fn drop_keyspace(&self, name: &str) -> Result<()> {
        if name == DEFAULT_KEYSPACE {
            return Err(Error::InvalidArgument {
                what: "keyspace",
                got: format!("{name:?}"),
                expected: "the default keyspace can't be dropped; name another".to_owned(),
            });
        }
        let log = self.log.lock();
        self.check_writable()?;
        let keyspace = self.keyspaces.load().values().find(|state| state.name == name).cloned();
        let keyspace = keyspace.ok_or_else(|| Error::KeyspaceNotFound { name: name.to_owned() })?;
        let mut edit = VersionEdit::default();
        edit.push(Change::DropKeyspace { keyspace: keyspace.id.into() });
        self.apply(edit)?;
        keyspace.is_dropped.store(true, Ordering::Release);
        self.replace_keyspaces(|keyspaces| keyspaces.remove(&keyspace.id));
        drop(log);
        self.scheduler.wake();
        Ok(())
    }

    fn replace_keyspaces<R>(&self, change: impl Fn(&mut Keyspaces) -> R) {
        self.keyspaces.rcu(|keyspaces| {
            let mut changed = Keyspaces::clone(keyspaces);
            change(&mut changed);
            changed
        });
    }
}

/// The edit that makes a keyspace with one partition; nothing up to `sequence` concerns it.
pub(crate) fn new_keyspace(
    versions: &VersionSet,
    name: &str,
    options: &KeyspaceOptions,
    sequence: u64,
) -> VersionEdit {
    let keyspace = versions.new_keyspace_id();
    let partition = versions.new_partition_id();
    let mut edit = VersionEdit::default();
    edit.push(Change::CreateKeyspace { keyspace, name: name.to_owned(), options: options.clone() });
    edit.push(Change::AddPartition { keyspace, partition, lower: Vec::new(), flushed_sequence: sequence });
    edit
}
