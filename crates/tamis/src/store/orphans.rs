//! Tables that the manifest does not name: which are proven obsolete, and which may be the only copy of some entries.
//!
//! An interrupted flush or compaction leaves a table that the manifest does not name. Such a table is obsolete:
//!
//! 1. Its entries up to the flushed sequence number of their partitions are in tables that the manifest names (all of which
//!    exist, or the store does not open), or in the log under a greater number ([`crate::compaction::retain`]).
//! 2. Its other entries are in the log, which keeps them until an edit records that they are in tables.
//! 3. If it was built to be ingested, it counts only once `CURRENT` covers its edit (`version/manifest.rs`, rule 4).
//! 4. If its keyspace was dropped, no entry is needed.
//!
//! Any other table shows that the manifest or the log was longer once: it is never deleted. (A power failure after unsynced writes
//! may leave one, too; these writes were not acknowledged as durable.)

use std::collections::BTreeSet;

use tamis_vfs::{DirEntry, Folder};

use crate::{
    admin::quarantine,
    cache::table::TableCache,
    error::{Error, Result},
    file_name::FileName,
    key::Sequence,
    store::readers::RegisteredReaders,
    table::{properties::TableProperties, reader::TableReader},
    version::{catalog::Catalog, version::KeyspaceVersion},
    wal::reader::ReplayReport,
};

/// The consecutive sequence numbers that the log holds; 1 to 0 if it holds none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogSpan {
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
}

impl LogSpan {
    pub(crate) const NONE: Self = Self { first: 1, last: 0 };

    pub(crate) const fn of(replayed: &ReplayReport) -> Self {
        match replayed.first_sequence {
            0 => Self::NONE,
            first => Self { first, last: replayed.last_sequence },
        }
    }

    /// Whether all entries from `first` to `last` are in it.
    const fn holds(self, first: Sequence, last: Sequence) -> bool {
        self.first <= first && last <= self.last
    }
}

/// Why a table that the state does not name may be needed; `None` if it is proven obsolete.
pub(crate) fn reason_to_keep(found: &TableProperties, state: &Catalog, log: LogSpan) -> Option<String> {
    let (origin, summary) = (&found.origin, &found.summary);
    if origin.database_id == 0 {
        return None;
    }
    if state.database.is_some_and(|(id, _)| id != origin.database_id) {
        return Some("it is of another store".to_owned());
    }
    let flushed = match state.keyspaces.get(&origin.keyspace_id) {
        None if origin.keyspace_id < state.counters.next_keyspace_id => return None,
        None => return Some("it is of a keyspace that the manifest does not know".to_owned()),
        Some(version) => flushed_in(version, &summary.smallest_key, &summary.largest_key),
    };
    let first = summary.smallest_sequence.max(flushed.saturating_add(1));
    if summary.largest_sequence <= flushed || log.holds(first, summary.largest_sequence) {
        return None;
    }
    let last = summary.largest_sequence;
    Some(format!(
        "it holds entries up to sequence number {last} that are neither in tables of the manifest nor in the log"
    ))
}

/// The least flushed sequence number of the partitions that have keys from `smallest` to `largest`: all entries of these keys that were logged
/// up to it are in tables of the manifest, or in the log under a greater number.
fn flushed_in(version: &KeyspaceVersion, smallest: &[u8], largest: &[u8]) -> Sequence {
    let covering = version.partitions.iter().enumerate().filter(|(index, partition)| {
        let begins = partition.lower.as_slice() <= largest;
        begins && version.upper_of(*index).is_none_or(|upper| smallest < upper)
    });
    covering.map(|(_, partition)| partition.flushed_sequence).min().unwrap_or(0)
}

/// The tables of a folder that the state does not name and that are not proven obsolete, with the reasons.
pub(crate) fn find(
    tables: &TableCache,
    entries: &[DirEntry],
    state: &Catalog,
    log: LogSpan,
) -> Vec<(FileName, String)> {
    let named: BTreeSet<u64> =
        state.keyspaces.values().flat_map(|version| version.tables()).map(|table| table.number()).collect();
    let mut found = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is_dir) {
        let Some(name @ FileName::Table(number)) = FileName::parse(&entry.name) else { continue };
        if named.contains(&number) {
            continue;
        }
        let why = match TableReader::open_unnamed(tables.environment(), number, 0) {
            Ok(reader) => reason_to_keep(reader.properties(), state, log),
            Err(error) => {
                Some(format!("the manifest does not name it, and it can't be read: {}", error.cause()))
            }
        };
        found.extend(why.map(|why| (name, why)));
    }
    found
}

/// Moves files of the store to the quarantine folder.
///
/// # Errors
/// The system's; each file has at least one of the two names then.
pub(crate) fn quarantine_files(folder: &Folder, names: &[FileName]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let quarantine = quarantine::create_folder(folder)?;
    for name in names {
        quarantine::link_into(&**folder, &name.path(folder), &quarantine, &name.name())?;
    }
    folder.sync_dir(&quarantine).map_err(|error| Error::io("sync", &quarantine, error))?;
    folder.sync().map_err(|error| Error::io("sync", folder.path(), error))?;
    let readers = RegisteredReaders::find(folder)?;
    // A file that a reader needs keeps its first name until a later open.
    for name in names.iter().filter(|name| !readers.need(**name)) {
        let path = name.path(folder);
        folder.remove(&path).map_err(|error| Error::io("remove", &path, error))?;
    }
    Ok(())
}
