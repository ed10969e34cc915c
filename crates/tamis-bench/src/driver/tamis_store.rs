//! The [`Store`] implementation for Tamis.

use std::path::{Path, PathBuf};

use tamis::{Access, Db, Durability, Keyspace, KeyspaceOptions, Options, Scan, Statistics, WriteBatch};

use super::{Counters, Session, Sink, Store};
use crate::{BenchError, Fields};

/// The keyspace of measurements, because the default one takes its options from the database.
const KEYSPACE: &str = "bench";

/// Options of a measured Tamis store.
#[derive(Debug, Clone)]
pub struct TamisOptions {
    /// Options of the database.
    pub options: Options,
    /// Options of the keyspace.
    pub keyspace: KeyspaceOptions,
    /// Durability of writes.
    pub durability: Durability,
}

/// An open Tamis store.
pub struct TamisStore {
    /// The database.
    pub db: Db,
    /// The measured keyspace.
    pub keyspace: Keyspace,
    durability: Durability,
    folder: PathBuf,
    configuration: Fields,
}

impl TamisStore {
    /// Opens a store in a folder.
    ///
    /// # Errors
    /// Errors of Tamis.
    pub fn open(folder: &Path, options: &TamisOptions) -> Result<Self, BenchError> {
        let db = Db::open_with(folder, options.options.clone())?;
        let keyspace = db.get_or_create_keyspace(KEYSPACE, options.keyspace.clone())?;
        Ok(Self {
            keyspace,
            db,
            durability: options.durability,
            folder: folder.to_owned(),
            configuration: configuration(options),
        })
    }
}

/// Bytes that a store has written to log, tables and views since it was opened.
pub const fn bytes_written(statistics: &Statistics) -> u64 {
    statistics.log_bytes_written
        + statistics.flush_bytes_written
        + statistics.compaction_bytes_written
        + statistics.view_bytes_written
}

/// Blocks that reads touched, from the file or in memory.
pub const fn blocks_of(statistics: &Statistics) -> u64 {
    statistics.blocks_read + statistics.cache_hits
}

fn configuration(options: &TamisOptions) -> Fields {
    let TamisOptions { options, keyspace, durability } = options;
    let mut fields = Fields::default();
    fields.set("store", "tamis");
    fields.set("cache_bytes", options.cache_bytes);
    fields.set(
        "access",
        match options.table_access {
            Access::Mapped => "mapped",
            Access::Buffered => "buffered",
            Access::Direct => "direct",
        },
    );
    fields.set("workers", options.workers);
    fields.set("memtable_bytes", keyspace.memtable_bytes);
    fields.set("block_bytes", keyspace.block_bytes);
    fields.set("table_bytes", keyspace.table_bytes);
    fields.set("compression", format!("{:?}", keyspace.compression));
    fields.set("filters", format!("{:?}", keyspace.filters));
    fields.set("layout", keyspace.layout.to_string());
    fields.set("durability", format!("{durability:?}"));
    fields
}

impl Store for TamisStore {
    fn session(&self, is_live: bool) -> Result<Box<dyn Session + '_>, BenchError> {
        Ok(Box::new(TamisSession { store: self, kept: (!is_live).then(|| self.keyspace.range(..)) }))
    }

    fn settle(&self) -> Result<(), BenchError> {
        self.db.flush()?;
        Ok(self.db.wait_for_compactions()?)
    }

    fn unsettled_bytes(&self) -> u64 {
        self.db.statistics().keyspaces.iter().map(|keyspace| keyspace.pending_compaction_bytes).sum()
    }

    fn close(&self) -> Result<(), BenchError> {
        Ok(self.db.clone().close()?)
    }

    fn counters(&self) -> Counters {
        let statistics = self.db.statistics();
        Counters {
            blocks_read: Some(statistics.blocks_read),
            bytes_read: Some(statistics.bytes_read),
            cache_hits: Some(statistics.cache_hits),
            blocks_written: Some(statistics.flush_blocks_written + statistics.compaction_blocks_written),
            bytes_written: Some(bytes_written(&statistics)),
            compaction_bytes_read: Some(statistics.compaction_bytes_read),
            stall_ns: Some(statistics.throttled_microseconds * 1000),
        }
    }

    fn configuration(&self) -> Fields {
        self.configuration.clone()
    }

    fn folder(&self) -> Option<&Path> {
        Some(&self.folder)
    }
}

/// The session of one thread.
struct TamisSession<'a> {
    store: &'a TamisStore,
    /// The scan of a session that is not live.
    kept: Option<Scan>,
}

/// Passes up to `limit` entries to the sink.
fn take(
    scan: &mut Scan,
    limit: u64,
    step: impl Fn(&mut Scan) -> tamis::Result<bool>,
    sink: &mut Sink,
) -> Result<u64, BenchError> {
    let mut count = 0;
    while count < limit && step(scan)? {
        sink.entry(|| scan.key(), scan.value());
        count += 1;
    }
    Ok(count)
}

impl TamisSession<'_> {
    /// Writes a batch of one change, with the durability of the store.
    fn write(&self, change: impl FnOnce(&mut WriteBatch) -> tamis::Result<()>) -> Result<(), BenchError> {
        let mut batch = WriteBatch::new();
        change(&mut batch)?;
        Ok(self.store.db.write_with(batch, self.store.durability)?)
    }
}

impl Session for TamisSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        match self.store.durability {
            Durability::Buffered => Ok(self.store.keyspace.put(key, value)?),
            _ => self.write(|batch| batch.put(&self.store.keyspace, key, value)),
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), BenchError> {
        match self.store.durability {
            Durability::Buffered => Ok(self.store.keyspace.delete(key)?),
            _ => self.write(|batch| batch.delete(&self.store.keyspace, key)),
        }
    }

    fn get(&mut self, key: &[u8], sink: &mut Sink) -> Result<bool, BenchError> {
        let value = self.store.keyspace.get(key)?;
        Ok(value.map(|value| sink.value(&value)).is_some())
    }

    fn scan(&mut self, lower: &[u8], limit: u64, sink: &mut Sink) -> Result<u64, BenchError> {
        match &mut self.kept {
            Some(scan) => {
                scan.seek(lower)?;
                take(scan, limit, Scan::move_next, sink)
            }
            None => take(&mut self.store.keyspace.range(lower..), limit, Scan::move_next, sink),
        }
    }

    fn scan_back(&mut self, upper: &[u8], limit: u64, sink: &mut Sink) -> Result<u64, BenchError> {
        let mut fresh = None;
        let scan = match &mut self.kept {
            Some(scan) => scan,
            None => fresh.insert(self.store.keyspace.range(..=upper)),
        };
        scan.seek_for_prev(upper)?;
        take(scan, limit, Scan::move_prev, sink)
    }

    fn range(&mut self, lower: &[u8], upper: &[u8], sink: &mut Sink) -> Result<u64, BenchError> {
        take(&mut self.store.keyspace.range(lower..=upper), u64::MAX, Scan::move_next, sink)
    }
}
