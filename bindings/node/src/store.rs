//! The database of JavaScript: opened, closed, and opened again.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use napi::{Env, Unknown, bindgen_prelude::AsyncTask};
use napi_derive::napi;
use tamis::{Db, Durability};
use tamis_bindings_common::{columns::Parts, report, scan::Direction, statistics_json};

use crate::{
    entries::{Cleared, Entries},
    error::{Fault, Thrown},
    options,
    packed::{Unpacker, filled},
    range::Range,
    scan::{EntryScan, Scan},
    snapshot::Snapshot,
    work::{Answer, Found, Work, spawn},
};

type Promised<T> = AsyncTask<Work<T>>;

/// A database that is open or closed.
#[napi]
#[derive(Debug, Default)]
pub struct Store(Arc<RwLock<Option<Arc<Entries>>>>);

impl Store {
    fn entries(&self) -> Result<Arc<Entries>, Fault> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(Fault::not_open)
    }

    /// Queues work on the open database.
    fn run<T: Answer>(
        &self,
        work: impl FnOnce(&Arc<Entries>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<Promised<T>, Thrown> {
        let entries = self.entries()?;
        Ok(spawn(move || work(&entries)))
    }

    /// Queues work on the open database with a copy of the bytes in `buffer`, at a snapshot or now.
    fn run_with<T: Answer>(
        &self,
        (buffer, length): (&[u8], u32),
        snapshot: Option<&Snapshot>,
        work: impl FnOnce(&Arc<Entries>, Option<tamis::Snapshot>, &[u8]) -> Result<T, Fault> + Send + 'static,
    ) -> Result<Promised<T>, Thrown> {
        let snapshot = snapshot.map(Snapshot::open).transpose()?;
        let bytes = filled(buffer, length)?.to_vec();
        self.run(move |entries| work(entries, snapshot, &bytes))
    }
}

#[napi]
impl Store {
    /// A closed database.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the database in a folder.
    #[napi]
    pub fn open(
        &self,
        path: String,
        options: HashMap<String, Option<String>>,
        error_if_exists: bool,
    ) -> Promised<()> {
        let store = Arc::clone(&self.0);
        spawn(move || {
            let options = options::of_database(options)?;
            let entries = Entries::open(&path, options, error_if_exists)?;
            *store.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(entries));
            Ok(())
        })
    }

    /// Closes the database; the promise resolves when its folder can be opened again.
    #[napi]
    pub fn close(&self) -> Promised<()> {
        let entries = self.0.write().unwrap_or_else(PoisonError::into_inner).take();
        spawn(move || match entries {
            Some(entries) => Ok(entries.db.clone().close()?),
            None => Ok(()),
        })
    }

    /// The value of the key in `buffer`, as a string or a `Buffer`; reads on the thread of the event loop.
    #[napi(catch_unwind)]
    pub fn get_sync<'env>(
        &self,
        env: &'env Env,
        buffer: &[u8],
        length: u32,
        is_text: bool,
        snapshot: Option<&Snapshot>,
    ) -> Result<Unknown<'env>, Thrown> {
        let find = || -> Result<Found, Fault> {
            let snapshot = snapshot.map(Snapshot::open).transpose()?;
            let value = self.entries()?.get(snapshot.as_ref(), filled(buffer, length)?)?;
            Ok(Found { value, is_text })
        };
        find()?.into_js(env).map_err(|error| Thrown::new("LEVEL_ERROR", error.reason))
    }

    /// The value of the packed key in `buffer`, as a string or a `Buffer`.
    #[napi]
    pub fn get(
        &self,
        buffer: &[u8],
        length: u32,
        is_text: bool,
        snapshot: Option<&Snapshot>,
    ) -> Result<Promised<Found>, Thrown> {
        self.run_with((buffer, length), snapshot, move |entries, snapshot, packed| {
            let value = entries.get(snapshot.as_ref(), Unpacker::new(packed).bytes()?)?;
            Ok(Found { value, is_text })
        })
    }

    /// The packed values of the packed keys in `buffer`.
    #[napi]
    pub fn get_many(
        &self,
        buffer: &[u8],
        length: u32,
        snapshot: Option<&Snapshot>,
    ) -> Result<Promised<Vec<u8>>, Thrown> {
        self.run_with((buffer, length), snapshot, |entries, snapshot, keys| {
            entries.packed_values(snapshot.as_ref(), keys)
        })
    }

    /// Whether the key in `buffer` exists.
    #[napi]
    pub fn has(
        &self,
        buffer: &[u8],
        length: u32,
        snapshot: Option<&Snapshot>,
    ) -> Result<Promised<bool>, Thrown> {
        self.run_with((buffer, length), snapshot, |entries, snapshot, key| {
            Ok(entries.get(snapshot.as_ref(), key)?.is_some())
        })
    }

    /// For each of the packed keys in `buffer` a byte: whether it exists.
    #[napi]
    pub fn has_many(
        &self,
        buffer: &[u8],
        length: u32,
        snapshot: Option<&Snapshot>,
    ) -> Result<Promised<Vec<u8>>, Thrown> {
        self.run_with((buffer, length), snapshot, |entries, snapshot, keys| {
            entries.exist(snapshot.as_ref(), keys)
        })
    }

    /// Writes the packed batches in `buffer` in their order; see [`Entries::write`].
    #[napi]
    pub fn write(&self, buffer: &[u8], length: u32, is_synced: bool) -> Result<Promised<Vec<u8>>, Thrown> {
        let durability = if is_synced { Durability::Synced } else { Durability::Buffered };
        self.run_with((buffer, length), None, move |entries, _, batches| entries.write(batches, durability))
    }

    /// Deletes the range in `buffer`; with a limit (from 0) its first entries in the direction.
    #[napi]
    pub fn clear(
        &self,
        buffer: &[u8],
        length: u32,
        is_reverse: bool,
        limit: f64,
        snapshot: Option<&Snapshot>,
    ) -> Result<Promised<()>, Thrown> {
        self.run_with((buffer, length), snapshot, move |entries, snapshot, range| {
            let (range, direction) = (Range::unpack(range)?, direction(is_reverse));
            let limit = (limit >= 0.0).then_some(limit as usize);
            entries.clear(Cleared { range, direction, limit, snapshot })
        })
    }

    /// Compacts the range in `buffer` into the deepest level.
    #[napi]
    pub fn compact(&self, buffer: &[u8], length: u32) -> Result<Promised<()>, Thrown> {
        self.run_with((buffer, length), None, |entries, _, range| {
            Ok(entries.db.compact_range(&entries.keyspace, Range::unpack(range)?.bounds())?)
        })
    }

    /// Changes the layout, the filters or `expireAfter`.
    #[napi]
    pub fn set_options(&self, options: HashMap<String, Option<String>>) -> Result<Promised<()>, Thrown> {
        self.run(move |entries| options::change(&entries.keyspace, options))
    }

    /// Takes a snapshot.
    #[napi(catch_unwind)]
    pub fn snapshot(&self) -> Result<Snapshot, Thrown> {
        Ok(Snapshot::new(self.entries()?.db.snapshot()))
    }

    /// Creates a scan of the range in `buffer`, at a snapshot or now.
    #[napi(catch_unwind)]
    pub fn scan(
        &self,
        buffer: &[u8],
        length: u32,
        is_reverse: bool,
        parts: u32,
        snapshot: Option<&Snapshot>,
    ) -> Result<Scan, Thrown> {
        let create = || -> Result<Scan, Fault> {
            let entries = self.entries()?;
            let snapshot = snapshot.map_or_else(|| Ok(entries.db.snapshot()), Snapshot::open)?;
            let range = Range::unpack(filled(buffer, length)?)?;
            let parts = match parts {
                0 => Parts::Both,
                1 => Parts::Keys,
                _ => Parts::Values,
            };
            Ok(Scan::new(EntryScan::new(entries, snapshot, range, direction(is_reverse), parts)))
        };
        Ok(create()?)
    }

    /// The statistics as JSON.
    #[napi]
    pub fn statistics(&self) -> Result<Promised<String>, Thrown> {
        self.run(|entries| Ok(statistics_json(&entries.db.statistics()).to_string()))
    }

    /// Creates a consistent copy of the database in a new or empty folder; resolves with a report as JSON.
    #[napi]
    pub fn checkpoint(&self, path: String) -> Result<Promised<String>, Thrown> {
        self.run(move |entries| Ok(report::checkpoint(&entries.db.checkpoint(path)?).to_string()))
    }
}

const fn direction(is_reverse: bool) -> Direction {
    if is_reverse { Direction::Backward } else { Direction::Forward }
}

/// Repairs the database in a folder, which is not open; resolves with a report as JSON.
#[napi]
pub fn repair(path: String) -> Promised<String> {
    spawn(move || Ok(report::repair(&Db::repair(path)?).to_string()))
}
