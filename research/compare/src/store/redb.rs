//! redb: a copy-on-write B-tree without a log. A fill uses transactions of 10,000 entries, every fiftieth of them durable; every
//! other write is a separate transaction that is not synced.

use std::sync::atomic::{AtomicU64, Ordering};

use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};
use tamis_bench::{
    BenchError,
    driver::{Session, Sink, Store},
};

use super::{Compared, Kind, Pending, Result, Settings, missing, moves};

/// redb.
pub const KIND: Kind = Kind {
    name: "redb",
    title: "redb",
    about: "no log; fills in transactions of 10,000 (every fiftieth synced, which frees space), other writes one by one",
    open,
    can_stay_unmerged: false,
    can_defer: false,
    can_direct: false,
    can_transact: true,
    space: 3.5,
    is_default: true,
};

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("compared");
/// One of this many transactions of a fill is synced.
const SYNC_EVERY: u64 = 50;
/// One of this many single writes is synced.
const SYNC_EVERY_WRITE: u64 = 100_000;

struct Redb {
    db: Database,
    transaction_count: AtomicU64,
    is_filling: bool,
}

fn open(settings: &Settings) -> Result<Box<dyn Compared>> {
    let mut builder = Database::builder();
    builder.set_cache_size(settings.cache_bytes as usize);
    let db = builder.create(settings.folder.join("redb")).map_err(BenchError::other)?;
    let store = Redb { db, transaction_count: AtomicU64::new(0), is_filling: settings.is_filling };
    store.flush()?;
    Ok(Box::new(store))
}

type Table<'a> = redb::Table<'a, &'static [u8], &'static [u8]>;
type ReadTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

impl Redb {
    fn transaction(&self, is_synced: bool, write: impl FnOnce(&mut Table<'_>) -> Result<()>) -> Result<()> {
        let mut transaction = self.db.begin_write().map_err(BenchError::other)?;
        let durability = if is_synced { Durability::Immediate } else { Durability::None };
        transaction.set_durability(durability).map_err(BenchError::other)?;
        write(&mut transaction.open_table(TABLE).map_err(BenchError::other)?)?;
        transaction.commit().map_err(BenchError::other)
    }

    /// Writes in a transaction, one of many of which is synced.
    fn write(&self, write: impl FnOnce(&mut Table<'_>) -> Result<()>) -> Result<()> {
        let count = self.transaction_count.fetch_add(1, Ordering::Relaxed) + 1;
        let sync_every = if self.is_filling { SYNC_EVERY } else { SYNC_EVERY_WRITE };
        self.transaction(count.is_multiple_of(sync_every), write)
    }

    fn table(&self) -> Result<ReadTable> {
        let transaction = self.db.begin_read().map_err(BenchError::other)?;
        transaction.open_table(TABLE).map_err(BenchError::other)
    }
}

impl Store for Redb {
    fn session(&self, is_live: bool) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(RedbSession {
            store: self,
            table: None,
            is_live,
            pending: Pending::new(self.is_filling),
        }))
    }

    fn settle(&self) -> Result<()> {
        self.flush()
    }
}

/// Its compaction only frees unused pages, so that there is none here.
impl Compared for Redb {
    fn flush(&self) -> Result<()> {
        self.transaction(true, |_| Ok(()))
    }

    fn transfer(&self, keys: &[Vec<u8>]) -> Result<()> {
        self.write(|table| {
            let value = |key: &Vec<u8>| {
                let value = table.get(key.as_slice()).map_err(BenchError::other)?;
                value.map(|value| value.value().to_vec()).ok_or_else(missing)
            };
            let values: Vec<Vec<u8>> = keys.iter().map(value).collect::<Result<_>>()?;
            for ((_, to), value) in moves(keys).zip(values) {
                table.insert(to, value.as_slice()).map_err(BenchError::other)?;
            }
            Ok(())
        })
    }
}

struct RedbSession<'a> {
    store: &'a Redb,
    table: Option<ReadTable>,
    is_live: bool,
    pending: Pending,
}

type Entry = std::result::Result<
    (redb::AccessGuard<'static, &'static [u8]>, redb::AccessGuard<'static, &'static [u8]>),
    redb::StorageError,
>;

/// Passes up to `limit` entries of an iterator to the sink.
fn give(entries: impl Iterator<Item = Entry>, limit: u64, sink: &mut Sink) -> Result<u64> {
    let mut given = 0;
    for entry in entries.take(usize::try_from(limit).unwrap_or(usize::MAX)) {
        let (key, value) = entry.map_err(BenchError::other)?;
        sink.entry(|| key.value(), value.value());
        given += 1;
    }
    Ok(given)
}

impl RedbSession<'_> {
    /// The kept table, or the newest one.
    fn table(&mut self) -> Result<&ReadTable> {
        if self.is_live {
            self.table = None;
        }
        match &mut self.table {
            Some(table) => Ok(table),
            none => Ok(none.insert(self.store.table()?)),
        }
    }
}

impl Session for RedbSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.pending.add(key, value) { self.finish() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        let Self { store, pending, .. } = self;
        if pending.is_empty() {
            return Ok(());
        }
        store.write(|table| {
            pending.write(|key, value| table.insert(key, value).map(drop).map_err(BenchError::other))
        })
    }

    fn get(&mut self, key: &[u8], sink: &mut Sink) -> Result<bool> {
        let value = self.table()?.get(key).map_err(BenchError::other)?;
        Ok(value.map(|value| sink.value(value.value())).is_some())
    }

    fn scan(&mut self, lower: &[u8], limit: u64, sink: &mut Sink) -> Result<u64> {
        give(self.table()?.range(lower..).map_err(BenchError::other)?, limit, sink)
    }

    fn scan_back(&mut self, upper: &[u8], limit: u64, sink: &mut Sink) -> Result<u64> {
        give(self.table()?.range(..=upper).map_err(BenchError::other)?.rev(), limit, sink)
    }

    fn range(&mut self, lower: &[u8], upper: &[u8], sink: &mut Sink) -> Result<u64> {
        give(self.table()?.range(lower..=upper).map_err(BenchError::other)?, u64::MAX, sink)
    }
}
