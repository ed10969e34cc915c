//! Events in the log: what changes a store and is no entry, for readers of the change feed.
//!
//! An event is a put into a keyspace that does not exist ([`EVENTS`]), so that a replay skips it (`docs/format/wal.md`, "Events"). It follows the edit of the
//! manifest that it reports. After a crash between the two its sequence number is missing in the log, as the feed finds.

use std::path::PathBuf;

use tamis_vfs::Folder;

use crate::{
    batch::{BatchEntry, WriteBatch},
    coding::{Decoder, put_bytes, put_varint},
    error::Result,
    file_name::FileName,
};

/// The id of the keyspace of events. No keyspace has it: ids are assigned from 1 upward.
pub(crate) const EVENTS: u32 = u32::MAX;

/// The first byte of the key of an event.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Tag {
    Created = 1,
    Dropped = 2,
    Ingested = 3,
}

impl Tag {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Created, Self::Dropped, Self::Ingested].into_iter().find(|tag| *tag as u8 == byte)
    }
}

/// See the head of this file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoggedEvent {
    KeyspaceCreated { keyspace: u32, name: String },
    KeyspaceDropped { keyspace: u32, name: String },
    Ingested { keyspace: u32, tables: Vec<IngestedTable> },
}

/// The numbers of an ingested table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IngestedTable {
    pub(crate) table: u64,
    /// Of its second name, which may be missing. It is above the number of the segment with the event, and below that of the next one: the
    /// name stays as long as that segment.
    pub(crate) copy: u64,
}

impl IngestedTable {
    /// The paths of its two names.
    pub(crate) fn paths(self, folder: &Folder) -> (PathBuf, PathBuf) {
        (FileName::Table(self.table).path(folder), FileName::Ingested(self.copy).path(folder))
    }
}

impl LoggedEvent {
    /// A batch with these events.
    ///
    /// # Errors
    /// As [`WriteBatch::put_in`].
    pub(crate) fn batch(events: &[Self]) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        for event in events {
            let mut value = Vec::new();
            let (tag, keyspace) = match event {
                Self::KeyspaceCreated { keyspace, name } => {
                    put_bytes(&mut value, name.as_bytes());
                    (Tag::Created, keyspace)
                }
                Self::KeyspaceDropped { keyspace, name } => {
                    put_bytes(&mut value, name.as_bytes());
                    (Tag::Dropped, keyspace)
                }
                Self::Ingested { keyspace, tables } => {
                    for IngestedTable { table, copy } in tables {
                        put_varint(&mut value, *table);
                        put_varint(&mut value, *copy);
                    }
                    (Tag::Ingested, keyspace)
                }
            };
            let mut key = vec![tag as u8];
            put_varint(&mut key, u64::from(*keyspace));
            batch.put_in(EVENTS, &key, &value)?;
        }
        Ok(batch)
    }

    /// The event of an entry; `None` for one that this program does not know.
    pub(crate) fn of(entry: &BatchEntry<'_>) -> Option<Self> {
        let mut key = Decoder::new(entry.key);
        let (tag, keyspace) = (Tag::from_byte(key.take_u8()?)?, u32::try_from(key.take_varint()?).ok()?);
        let mut value = Decoder::new(entry.value);
        let mut name = || Some(String::from_utf8_lossy(value.take_bytes()?).into_owned());
        match tag {
            Tag::Created => Some(Self::KeyspaceCreated { keyspace, name: name()? }),
            Tag::Dropped => Some(Self::KeyspaceDropped { keyspace, name: name()? }),
            Tag::Ingested => {
                let mut tables = Vec::new();
                while !value.rest().is_empty() {
                    tables.push(IngestedTable { table: value.take_varint()?, copy: value.take_varint()? });
                }
                Some(Self::Ingested { keyspace, tables })
            }
        }
    }
}

#[cfg(test)]
mod tests;
