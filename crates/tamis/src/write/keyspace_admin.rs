//! Creates and drops keyspaces.
//!
//! Both are manifest edits that are synced when the call returns. They run under the log's lock, so that no write to a keyspace is
//! in progress while it is dropped, and a keyspace is in the manifest before its first entry is in the log.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use crate::{
    changes::event::LoggedEvent,
    error::{Error, Result},
    key::NAME_LENGTH_MAX,
    options::{DEFAULT_KEYSPACE, KeyspaceOptions},
    store::{
        commit_log::LogState,
        keyspace_state::{KeyspaceResources, KeyspaceState},
        parts::StoreParts,
    },
    version::{
        catalog::Counters,
        edit::{Change, VersionEdit},
        set::VersionSet,
    },
};

/// See the head of this file.
pub(crate) struct KeyspaceAdmin {
    pub(crate) store: Arc<StoreParts>,
    pub(crate) resources: Arc<KeyspaceResources>,
}

impl KeyspaceAdmin {
    /// See [`crate::Db::create_keyspace`].
    pub(crate) fn create(&self, name: &str, options: KeyspaceOptions) -> Result<Arc<KeyspaceState>> {
        options.check()?;
        if name.is_empty() || name.len() > NAME_LENGTH_MAX {
            return Err(Error::InvalidArgument {
                what: "keyspace name",
                got: format!("{name:?} ({} bytes)", name.len()),
                expected: "use 1 to 255 bytes".to_owned(),
            });
        }
        let mut log = self.store.log.lock();
        self.store.context.check_writable()?;
        if self.store.keyspaces.load().values().any(|keyspace| keyspace.name == name) {
            return Err(Error::KeyspaceExists { name: name.to_owned() });
        }
        // Sequence numbers assigned so far belong to other keyspaces.
        let sequence = log.as_ref().map_or(0, |state| state.last_sequence);
        let mut edit = new_keyspace(&self.store.installer.versions, name, &options, sequence);
        edit.push(reserved_up_to(sequence + 1));
        let catalog = self.store.installer.install(edit)?;
        let version =
            catalog.keyspace_named(name).ok_or_else(|| Error::KeyspaceNotFound { name: name.to_owned() })?;
        let keyspace = KeyspaceState::new(Arc::clone(version), &self.resources);
        self.store.keyspaces.insert(&keyspace);
        self.log_events(
            log.as_mut(),
            &[LoggedEvent::KeyspaceCreated { keyspace: keyspace.id, name: name.to_owned() }],
        );
        drop(log);
        Ok(keyspace)
    }

    /// Drops keyspaces by one edit: all or none. See [`crate::Db::drop_keyspaces`].
    pub(crate) fn drop(&self, names: &BTreeSet<&str>) -> Result<()> {
        if names.contains(DEFAULT_KEYSPACE) {
            return Err(Error::InvalidArgument {
                what: "keyspace",
                got: format!("{DEFAULT_KEYSPACE:?}"),
                expected: "the default keyspace can't be dropped; name another one".to_owned(),
            });
        }
        let mut log = self.store.log.lock();
        self.store.context.check_writable()?;
        let keyspaces = self.store.keyspaces.all_named(names)?;
        if keyspaces.is_empty() {
            return Ok(());
        }
        let mut edit = VersionEdit::default();
        for keyspace in &keyspaces {
            edit.push(Change::DropKeyspace { keyspace: keyspace.id.into() });
        }
        let last = log.as_ref().map_or(0, |state| state.last_sequence);
        edit.push(reserved_up_to(last + keyspaces.len() as u64));
        self.store.installer.install(edit)?;
        keyspaces.iter().for_each(|keyspace| keyspace.is_dropped.store(true, Ordering::Release));
        self.store.keyspaces.remove(&keyspaces);
        let dropped = |keyspace: &Arc<KeyspaceState>| LoggedEvent::KeyspaceDropped {
            keyspace: keyspace.id,
            name: keyspace.name.clone(),
        };
        self.log_events(log.as_mut(), &keyspaces.iter().map(dropped).collect::<Vec<_>>());
        drop(log);
        self.store.scheduler.wake();
        Ok(())
    }
}

/// The numbers of the events are not used for anything else, also if a crash loses the events.
fn reserved_up_to(last_sequence: u64) -> Change {
    Change::AdvanceCounters(Counters { last_sequence, ..Counters::default() })
}

impl KeyspaceAdmin {
    /// Logs what the manifest has already. No other commit is in progress.
    fn log_events(&self, state: Option<&mut LogState>, events: &[LoggedEvent]) {
        if let Some(state) = state {
            self.store.log.log_events(state, events);
            self.store.snapshots.publish(state.last_sequence);
        }
    }
}

/// The edit that creates a keyspace with one partition. Sequence numbers up to `sequence` belong to other keyspaces.
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
