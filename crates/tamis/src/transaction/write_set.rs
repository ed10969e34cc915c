//! The writes of an open transaction: the batch that a commit logs, and for each keyspace a memtable with the same entries, which only the
//! transaction reads.

use std::{collections::BTreeMap, sync::Arc};

use super::{key_ranges::KeyRanges, own_writes::OwnWrites};
use crate::{
    batch::{BatchMark, WriteBatch},
    error::{Error, Result},
    key::{Kind, SEQUENCE_MAX, Sequence},
    memtable::Memtable,
    store::keyspace_state::KeyspaceState,
};

/// The writes of a transaction to one keyspace.
struct Written {
    keyspace: Arc<KeyspaceState>,
    memtable: Arc<Memtable>,
    /// The size at which a memtable of the keyspace is rotated.
    limit: u64,
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct WriteSet {
    batch: WriteBatch,
    written: BTreeMap<u32, Written>,
    /// Where savepoints were made, by their numbers, as long as none before them was returned to.
    savepoints: Vec<(u64, BatchMark)>,
}

impl WriteSet {
    /// The number of the last write.
    fn newest(&self) -> Sequence {
        SEQUENCE_MAX + self.batch.len() as u64
    }

    /// The writes to a keyspace, if there are any.
    pub(crate) fn of(&self, keyspace: u32) -> Option<OwnWrites> {
        let written = self.written.get(&keyspace)?;
        Some(OwnWrites { memtable: Arc::clone(&written.memtable), newest: self.newest() })
    }

    /// The newest write to a key.
    pub(crate) fn get(&self, keyspace: u32, key: &[u8]) -> Option<(Kind, &[u8])> {
        let written = self.written.get(&keyspace)?;
        written.memtable.look_up(key, self.newest())
    }

    /// Adds the writes that `add` adds to the batch: one, or none.
    ///
    /// # Errors
    /// Those of `add`; [`Error::BatchTooLarge`] if the writes do not fit into a memtable of the keyspace. The writes stay as they were.
    pub(crate) fn add(
        &mut self,
        keyspace: &Arc<KeyspaceState>,
        add: impl FnOnce(&mut WriteBatch) -> Result<()>,
    ) -> Result<()> {
        let mark = self.batch.mark();
        add(&mut self.batch)?;
        let memory: usize = self.written.values().map(|written| written.memtable.bytes()).sum();
        let length = self.batch.size_bytes().max(memory) as u64;
        let limit = match self.written.get(&keyspace.id) {
            Some(written) => written.limit,
            None => keyspace.options().memtable_bytes,
        };
        if length > limit {
            self.batch.truncate(mark);
            return Err(Error::BatchTooLarge { length, limit });
        }
        let newest = self.newest();
        if let Some(entry) = self.batch.last_unnumbered(mark) {
            let written = self.written.entry(keyspace.id).or_insert_with(|| Written {
                keyspace: Arc::clone(keyspace),
                memtable: keyspace.new_memtable(),
                limit,
            });
            written.memtable.insert(entry.key, newest, entry.kind, entry.value);
        }
        Ok(())
    }

    /// Remembers the writes so far by a number.
    pub(crate) fn set_savepoint(&mut self, number: u64) {
        self.savepoints.push((number, self.batch.mark()));
    }

    /// Removes the writes since a savepoint, which stays; `false` if there is none of this number. Cost: the remaining writes are inserted again, so that scans
    /// keep what they see.
    pub(crate) fn roll_back_to(&mut self, number: u64) -> bool {
        let Some(place) = self.savepoints.iter().position(|(other, _)| *other == number) else {
            return false;
        };
        self.savepoints.truncate(place + 1);
        if let Some((_, mark)) = self.savepoints.last() {
            self.batch.truncate(*mark);
        }
        self.written.values_mut().for_each(|written| written.memtable = written.keyspace.new_memtable());
        for (entry, number) in self.batch.unnumbered().zip(SEQUENCE_MAX + 1..) {
            if let Some(written) = self.written.get(&entry.keyspace) {
                written.memtable.insert(entry.key, number, entry.kind, entry.value);
            }
        }
        true
    }

    /// The keys and ranges of the writes, by keyspace.
    pub(super) fn keys(&self) -> BTreeMap<u32, KeyRanges> {
        let mut keys = BTreeMap::<u32, KeyRanges>::new();
        for entry in self.batch.unnumbered() {
            let ranges = keys.entry(entry.keyspace).or_default();
            match entry.kind {
                Kind::RangeTombstone => ranges.add_range(entry.key, entry.value),
                _ => ranges.add_key(entry.key),
            }
        }
        keys
    }

    /// The batch to commit.
    pub(crate) fn into_batch(self) -> WriteBatch {
        self.batch
    }
}
