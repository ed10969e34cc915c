//! The entries of an open database, with the empty key, which abstract-level has and the engine has not.
//!
//! The value of the empty key is the only entry of the keyspace `empty-key`, which the first write of the empty key creates. All other
//! keys are in the default keyspace, as they are, so that other programs read them.

use std::{
    mem,
    sync::{Arc, OnceLock},
};

use tamis::{
    Db, Durability, Error, KEY_LENGTH_MAX, Keyspace, KeyspaceOptions, OpenMode, Options, Slice, Snapshot,
    WriteBatch,
};
use tamis_bindings_common::{
    columns::{ChunkLimit, Parts},
    scan::Direction,
};

use crate::{
    error::Fault,
    packed::{self, Unpacker},
    range::Range,
    scan::EntryScan,
};

const EMPTY_KEYSPACE: &str = "empty-key";
/// The key of the engine for the empty key.
const EMPTY_KEY: &[u8] = b"empty";
/// Bytes of batches that one record of the log contains; a larger batch has its own.
const RECORD_BYTES: usize = 1 << 20;
/// Keys that `clear` deletes with one batch.
const CLEAR_CHUNK: ChunkLimit = ChunkLimit { entry_count: 64 << 10, bytes: 1 << 20 };

/// An open database.
#[derive(Debug)]
pub(crate) struct Entries {
    pub(crate) db: Db,
    pub(crate) keyspace: Keyspace,
    empty: OnceLock<Keyspace>,
}

/// The entries that `clear` deletes: the first ones of a range in a direction.
#[derive(Debug)]
pub(crate) struct Cleared {
    pub(crate) range: Range,
    pub(crate) direction: Direction,
    pub(crate) limit: Option<usize>,
    pub(crate) snapshot: Option<Snapshot>,
}

impl Entries {
    pub(crate) fn open(path: &str, options: Options, error_if_exists: bool) -> Result<Self, Fault> {
        let create_if_missing = options.mode == OpenMode::CreateIfMissing;
        let db = Db::open_with(path, options).map_err(|error| match error {
            Error::NotADatabase { path, found } if !create_if_missing => Fault::new(
                "LEVEL_NOT_A_DATABASE",
                format!(
                    "{}: the database does not exist ({found}); open it with createIfMissing: true to create it",
                    path.display()
                ),
            ),
            error => error.into(),
        })?;
        if error_if_exists && !db.open_report().is_new {
            db.close()?;
            let message = format!("{path}: the database exists; open it with errorIfExists: false");
            return Err(Fault::new("LEVEL_DATABASE_EXISTS", message));
        }
        let keyspace = db.default_keyspace();
        let empty = match db.keyspace(EMPTY_KEYSPACE) {
            Ok(empty) => empty.into(),
            Err(Error::KeyspaceNotFound { .. }) => OnceLock::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(Self { db, keyspace, empty })
    }

    /// The keyspace of a key and its key there; `None` if the key cannot exist.
    #[inline]
    fn place<'a>(&'a self, key: &'a [u8]) -> Option<(&'a Keyspace, &'a [u8])> {
        match key.len() {
            0 => Some((self.empty.get()?, EMPTY_KEY)),
            1..=KEY_LENGTH_MAX => Some((&self.keyspace, key)),
            _ => None,
        }
    }

    /// The keyspace of the empty key, which is created if it is missing.
    fn create_empty(&self) -> Result<&Keyspace, Fault> {
        if let Some(keyspace) = self.empty.get() {
            return Ok(keyspace);
        }
        let keyspace = self.db.get_or_create_keyspace(EMPTY_KEYSPACE, KeyspaceOptions::default())?;
        Ok(self.empty.get_or_init(|| keyspace))
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn get(&self, snapshot: Option<&Snapshot>, key: &[u8]) -> Result<Option<Slice>, Fault> {
        let Some((keyspace, key)) = self.place(key) else { return Ok(None) };
        Ok(match snapshot {
            None => keyspace.get(key)?,
            Some(snapshot) => snapshot.get(keyspace, key)?,
        })
    }

    /// The values of keys at one point in time.
    pub(crate) fn multi_get(
        &self,
        snapshot: Option<&Snapshot>,
        keys: &[&[u8]],
    ) -> Result<Vec<Option<Slice>>, Fault> {
        let is_ordinary = |key: &[u8]| (1..=KEY_LENGTH_MAX).contains(&key.len());
        let ordinary: Vec<&[u8]> = keys.iter().copied().filter(|key| is_ordinary(key)).collect();
        let own = if ordinary.len() == keys.len() { None } else { Some(self.db.snapshot()) };
        let snapshot = snapshot.or(own.as_ref());
        let mut found = match snapshot {
            None => self.keyspace.multi_get(ordinary)?,
            Some(snapshot) => snapshot.multi_get(&self.keyspace, ordinary)?,
        }
        .into_iter();
        let value = |key: &&[u8]| {
            if is_ordinary(key) { Ok(found.next().flatten()) } else { self.get(snapshot, key) }
        };
        keys.iter().map(value).collect()
    }

    /// Writes packed batches in their order, several with one record of the log. Returns the code and the message of each batch that
    /// failed, packed, with a mark for each other one; nothing if all are written.
    pub(crate) fn write(&self, batches: &[u8], durability: Durability) -> Result<Vec<u8>, Fault> {
        let (mut unpacker, mut outcomes) = (Unpacker::new(batches), Vec::new());
        let (mut record, mut bytes) = (WriteBatch::new(), 0);
        let mut joined: Vec<usize> = Vec::new();
        while !unpacker.is_empty() {
            let operations = unpacker.bytes()?;
            if bytes + operations.len() > RECORD_BYTES {
                self.write_record(mem::take(&mut record), durability, &joined, &mut outcomes);
                joined.clear();
                bytes = 0;
            }
            match self.batch(operations).and_then(|batch| Ok(join(&mut record, batch)?)) {
                Ok(()) => {
                    joined.push(outcomes.len());
                    outcomes.push(None);
                    bytes += operations.len();
                }
                Err(fault) => outcomes.push(Some(fault)),
            }
        }
        self.write_record(record, durability, &joined, &mut outcomes);
        Ok(packed_faults(&outcomes))
    }

    /// Writes the joined batches; a failure is the outcome of each.
    fn write_record(
        &self,
        record: WriteBatch,
        durability: Durability,
        joined: &[usize],
        outcomes: &mut [Option<Fault>],
    ) {
        if let Err(error) = self.db.write_with(record, durability) {
            for index in joined {
                if let Some(outcome) = outcomes.get_mut(*index) {
                    *outcome = Some(error.clone().into());
                }
            }
        }
    }

    /// Reads the operations of a batch: for each its kind (0: delete, 1: put), its key, and the value of a put.
    fn batch(&self, operations: &[u8]) -> Result<WriteBatch, Fault> {
        let (mut unpacker, mut batch) = (Unpacker::new(operations), WriteBatch::new());
        while !unpacker.is_empty() {
            let (kind, key) = (unpacker.byte()?, unpacker.bytes()?);
            if kind == 0 {
                self.delete(&mut batch, key)?;
                continue;
            }
            let (keyspace, key) =
                if key.is_empty() { (self.create_empty()?, EMPTY_KEY) } else { (&self.keyspace, key) };
            batch.put(keyspace, key, unpacker.bytes()?)?;
        }
        Ok(batch)
    }

    /// Adds the delete of a key; a key that cannot exist needs none.
    fn delete(&self, batch: &mut WriteBatch, key: &[u8]) -> Result<(), Fault> {
        match self.place(key) {
            Some((keyspace, key)) => Ok(batch.delete(keyspace, key)?),
            None => Ok(()),
        }
    }

    /// Deletes a range: by one record, or key by key if there is a limit or a snapshot.
    pub(crate) fn clear(self: &Arc<Self>, cleared: Cleared) -> Result<(), Fault> {
        let Cleared { range, direction, limit, snapshot } = cleared;
        if limit.is_none() && snapshot.is_none() {
            let mut batch = WriteBatch::new();
            if range.contains(b"") {
                self.delete(&mut batch, b"")?;
            }
            batch.delete_range(&self.keyspace, range.bounds())?;
            return Ok(self.db.write(batch)?);
        }
        let snapshot = snapshot.unwrap_or_else(|| self.db.snapshot());
        let mut scan = EntryScan::new(Arc::clone(self), snapshot, range, direction, Parts::Keys);
        let mut remaining = limit.unwrap_or(usize::MAX);
        let mut is_finished = false;
        while !is_finished && remaining > 0 {
            let mut keys = Vec::new();
            let entry_count = remaining.min(CLEAR_CHUNK.entry_count);
            is_finished = scan.fill(ChunkLimit { entry_count, ..CLEAR_CHUNK }, &mut keys)?;
            let (mut batch, mut unpacker) = (WriteBatch::new(), Unpacker::new(&keys));
            while !unpacker.is_empty() {
                self.delete(&mut batch, unpacker.bytes()?)?;
                remaining -= 1;
            }
            self.db.write(batch)?;
        }
        Ok(())
    }

    /// The values of packed keys, packed.
    pub(crate) fn packed_values(&self, snapshot: Option<&Snapshot>, keys: &[u8]) -> Result<Vec<u8>, Fault> {
        let values = self.multi_get(snapshot, &unpack_keys(keys)?)?;
        let mut packed = Vec::with_capacity(
            values.iter().map(|value| value.as_ref().map_or(4, |value| value.len() + 4)).sum(),
        );
        for value in &values {
            match value {
                Some(value) => packed::push(&mut packed, value),
                None => packed::push_absent(&mut packed),
            }
        }
        Ok(packed)
    }

    /// For each of the packed keys a byte: whether it exists.
    pub(crate) fn exist(&self, snapshot: Option<&Snapshot>, keys: &[u8]) -> Result<Vec<u8>, Fault> {
        let values = self.multi_get(snapshot, &unpack_keys(keys)?)?;
        Ok(values.iter().map(|value| u8::from(value.is_some())).collect())
    }
}

/// Appends a batch to a record.
fn join(record: &mut WriteBatch, batch: WriteBatch) -> tamis::Result<()> {
    if record.is_empty() {
        *record = batch;
        return Ok(());
    }
    record.append(&batch)
}

fn packed_faults(outcomes: &[Option<Fault>]) -> Vec<u8> {
    let mut packed = Vec::new();
    if outcomes.iter().all(Option::is_none) {
        return packed;
    }
    for outcome in outcomes {
        match outcome {
            None => packed::push_absent(&mut packed),
            Some(fault) => {
                packed::push(&mut packed, fault.code.as_bytes());
                packed::push(&mut packed, fault.message.as_bytes());
            }
        }
    }
    packed
}

fn unpack_keys(packed: &[u8]) -> Result<Vec<&[u8]>, Fault> {
    let (mut unpacker, mut keys) = (Unpacker::new(packed), Vec::new());
    while !unpacker.is_empty() {
        keys.push(unpacker.bytes()?);
    }
    Ok(keys)
}
