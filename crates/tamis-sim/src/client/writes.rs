//! The writes of a client.

use std::{
    ops::Bound,
    time::{Duration, SystemTime},
};

use tamis::{
    Durability, Error, Keyspace, WriteBatch,
    simulation::{EntryKind, keyspace_id},
};

use super::{Client, Judgement};
use crate::{
    keys::ValueSpec,
    model::{Entry, half_open, prefix_bounds, split_time},
    operator::Operand,
    ops::{Change, Op},
};

/// The time of an entry that expires.
pub(crate) fn system_time(time: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(time)
}

/// Whether the clock has passed the time of an entry before it was written.
pub(crate) fn is_too_late(error: &Error) -> bool {
    matches!(error, Error::InvalidArgument { what: "time of expiry", .. })
}

impl Client {
    /// The entries of a change, as the store logs them.
    pub(crate) fn entry_of(keyspace: &Keyspace, change: &Change) -> Option<Entry> {
        let keyspace = keyspace_id(keyspace);
        Some(match change {
            Change::Put(key, value) => {
                Entry { keyspace, kind: EntryKind::Put, key: key.clone(), value: value.bytes() }
            }
            Change::PutUntil(key, value, time) => {
                let value = [time.to_le_bytes().to_vec(), value.bytes()].concat();
                Entry { keyspace, kind: EntryKind::PutUntil, key: key.clone(), value }
            }
            Change::Merge(key, number) => {
                let value = Operand::of(*number).encode();
                Entry { keyspace, kind: EntryKind::Merge, key: key.clone(), value }
            }
            Change::Delete(key) => {
                Entry { keyspace, kind: EntryKind::Delete, key: key.clone(), value: Vec::new() }
            }
            Change::DeleteRange(bounds) => {
                let (key, value) = half_open(bounds)?;
                Entry { keyspace, kind: EntryKind::DeleteRange, key, value }
            }
        })
    }

    pub(super) fn write_one(&self, op: &Op) -> Judgement {
        let (number, change) = match op {
            Op::Write(number, change) => (*number, change.clone()),
            Op::DeletePrefix(number, prefix) => (*number, Change::DeleteRange(prefix_bounds(prefix))),
            Op::Clear(number) => (*number, Change::DeleteRange((Bound::Unbounded, Bound::Unbounded))),
            _ => return Ok(()),
        };
        let Some(keyspace) = self.store.keyspace(number) else { return Ok(()) };
        let change = self.timed(&keyspace, &change);
        let entry = Self::entry_of(&keyspace, &change);
        self.write(entry.into_iter().collect(), Durability::Buffered, |entries| match (op, &change) {
            (Op::DeletePrefix(_, prefix), _) => keyspace.delete_prefix(prefix),
            (Op::Clear(_), _) => keyspace.clear(),
            (_, Change::Put(key, _)) => {
                keyspace.put(key, entries.first().map_or(&[][..], |entry| &entry.value))
            }
            (_, Change::PutUntil(key, ..)) => {
                let (time, value) = split_time(entries.first().map_or(&[][..], |entry| &entry.value));
                keyspace.put_until(key, value, system_time(time))
            }
            (_, Change::Merge(key, _)) => {
                keyspace.merge(key, entries.first().map_or(&[][..], |entry| &entry.value))
            }
            (_, Change::Delete(key)) => keyspace.delete(key),
            (_, Change::DeleteRange(bounds)) => keyspace.delete_range(bounds.clone()),
        })
    }

    pub(super) fn delete_each(&self, number: u64, first: u64, count: u64) -> Judgement {
        let (shape, _) = self.keys_of(number);
        let changes: Vec<_> =
            (first..first + count).map(|key| (number, Change::Delete(shape.key_at(key)))).collect();
        self.write_batch(&changes, Durability::Buffered)
    }

    pub(super) fn fill(&self, number: u64, chosen: u64, count: u64) -> Judgement {
        let (shape, key_count) = self.keys_of(number);
        for step in 0..count {
            let number_of_value = tamis_workload::mix64(chosen ^ step);
            let length = 1_000 + (number_of_value % 4_000) as u32;
            let value =
                ValueSpec { number: number_of_value, length, is_regular: number_of_value.is_multiple_of(4) };
            let key = shape.key_at(number_of_value.rotate_left(17) % key_count);
            self.write_one(&Op::Write(number, Change::Put(key, value)))?;
            if self.store.life.is_off() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn write_batch(&self, changes: &[(u64, Change)], durability: Durability) -> Judgement {
        let mut batch = WriteBatch::new();
        let mut entries = Vec::new();
        for (number, change) in changes {
            let Some(keyspace) = self.store.keyspace(*number) else { continue };
            let change = &self.timed(&keyspace, change);
            let entry = Self::entry_of(&keyspace, change);
            let value = entry.as_ref().map_or(&[][..], |entry| &entry.value);
            let added = match change {
                Change::Put(key, _) => batch.put(&keyspace, key, value),
                Change::PutUntil(key, ..) => {
                    let (time, value) = split_time(value);
                    batch.put_until(&keyspace, key, value, system_time(time))
                }
                Change::Merge(key, _) => batch.merge(&keyspace, key, value),
                Change::Delete(key) => batch.delete(&keyspace, key),
                Change::DeleteRange(bounds) => batch.delete_range(&keyspace, bounds.clone()),
            };
            match added {
                Ok(()) => entries.extend(entry),
                Err(error) if is_too_late(&error) => {}
                Err(error) => return Err(format!("a batch refused a valid entry: {error}")),
            }
        }
        self.write(entries, durability, |_| self.store.db.write_with(batch, durability))
    }

    fn write(
        &self,
        entries: Vec<Entry>,
        durability: Durability,
        write: impl FnOnce(&[Entry]) -> tamis::Result<()>,
    ) -> Judgement {
        let shared = &self.store.shared;
        let client = crate::schedule::current();
        shared.model.lock().begin_write(client, entries.clone());
        let result = write(&entries);
        self.record(u64::from(result.is_ok()));
        let mut model = shared.model.lock();
        let ended = model.end_write(client, result.is_ok());
        if self.store.life.is_off() {
            return Ok(());
        }
        let last = ended?;
        if result.is_ok() && durability >= Durability::Buffered {
            model.acknowledge(last, durability == Durability::Synced);
        }
        drop(model);
        match result {
            Ok(()) => Ok(()),
            Err(error) if is_too_late(&error) => Ok(()),
            Err(error) => self.store.judge("a write", &error, None),
        }
    }

    /// A change as it is made now in a keyspace.
    pub(crate) fn timed(&self, keyspace: &Keyspace, change: &Change) -> Change {
        change.timed(keyspace.options().merge.is_some(), self.store.shared.model.lock().time())
    }

    pub(super) fn persist(&self, durability: Durability) -> Judgement {
        let visible = self.store.shared.model.lock().visible();
        let result = self.store.db.persist(durability);
        self.acknowledge_if(visible, result, durability)
    }

    /// If a call has succeeded, what was visible before it is as durable as this.
    pub(crate) fn acknowledge_if(
        &self,
        visible: u64,
        result: tamis::Result<()>,
        durability: Durability,
    ) -> Judgement {
        match result {
            _ if self.store.life.is_off() || self.store.is_read_only => {
                self.judge("a call that makes writes durable", result)
            }
            Ok(()) if durability >= Durability::Buffered => {
                self.store.shared.model.lock().acknowledge(visible, durability == Durability::Synced);
                Ok(())
            }
            Ok(()) => Ok(()),
            Err(error) => self.store.judge("a call that makes writes durable", &error, None),
        }
    }
}
