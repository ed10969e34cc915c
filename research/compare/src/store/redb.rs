//! redb: a copy-on-write B-tree without a log. A fill uses transactions of 10,000 entries, every fiftieth of them durable; every
//! other write is a separate transaction that is not synced.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};

use super::{Kind, Reader, Settings, Store, missing, moves, should_continue};
use crate::{
    data::{Entries, Key, Value},
    failure::Result,
    sink::Sink,
};

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
/// Entries per transaction of a fill.
const BATCH_COUNT: u64 = 10_000;
/// One of this many transactions is synced.
const SYNC_EVERY: u64 = 50;
/// One of this many single writes is synced.
const SYNC_EVERY_WRITE: u64 = 100_000;

struct Redb {
    db: Database,
    write_count: AtomicU64,
}

fn open(folder: &Path, settings: &Settings) -> Result<Box<dyn Store>> {
    std::fs::create_dir_all(folder)?;
    let mut builder = Database::builder();
    builder.set_cache_size(settings.cache_bytes as usize);
    let db = builder.create(folder.join("redb"))?;
    let store = Redb { db, write_count: AtomicU64::new(0) };
    store.transaction(true, |_| Ok(()))?;
    Ok(Box::new(store))
}

type Table<'a> = redb::Table<'a, &'static [u8], &'static [u8]>;

impl Redb {
    fn transaction(&self, is_synced: bool, write: impl FnOnce(&mut Table<'_>) -> Result<()>) -> Result<()> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(if is_synced { Durability::Immediate } else { Durability::None })?;
        write(&mut transaction.open_table(TABLE)?)?;
        Ok(transaction.commit()?)
    }

    fn table(&self) -> Result<ReadOnlyTable<&'static [u8], &'static [u8]>> {
        Ok(self.db.begin_read()?.open_table(TABLE)?)
    }
}

impl Store for Redb {
    fn reader(&self, is_live: bool) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(RedbReader { store: self, table: self.table()?, is_live }))
    }

    fn put(&self, key: &Key, value: &Value) -> Result<()> {
        let count = self.write_count.fetch_add(1, Ordering::Relaxed) + 1;
        self.transaction(count.is_multiple_of(SYNC_EVERY_WRITE), |table| {
            table.insert(key.as_slice(), value.as_slice())?;
            Ok(())
        })
    }

    fn transfer(&self, keys: &[Key]) -> Result<()> {
        let count = self.write_count.fetch_add(1, Ordering::Relaxed) + 1;
        self.transaction(count.is_multiple_of(SYNC_EVERY_WRITE), |table| {
            let value = |key: &Key| {
                let value = table.get(key.as_slice())?;
                value.map(|value| value.value().to_vec()).ok_or_else(missing)
            };
            let values: Vec<Vec<u8>> = keys.iter().map(value).collect::<Result<_>>()?;
            for ((_, to), value) in moves(keys).zip(values) {
                table.insert(to.as_slice(), value.as_slice())?;
            }
            Ok(())
        })
    }

    fn fill(&self, entries: &mut Entries) -> Result<()> {
        let mut transaction_count = 0_u64;
        while entries.remaining() > 0 {
            transaction_count += 1;
            self.transaction(transaction_count.is_multiple_of(SYNC_EVERY), |table| {
                let mut count = 0;
                while count < BATCH_COUNT
                    && let Some((key, value)) = entries.advance()
                {
                    table.insert(key.as_slice(), value.as_slice())?;
                    count += 1;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.transaction(true, |_| Ok(()))
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        // Its compaction only frees unused pages.
        Ok(())
    }

    fn shape(&self) -> String {
        "one tree".to_owned()
    }
}

struct RedbReader<'a> {
    store: &'a Redb,
    table: ReadOnlyTable<&'static [u8], &'static [u8]>,
    is_live: bool,
}

type Entry = std::result::Result<
    (redb::AccessGuard<'static, &'static [u8]>, redb::AccessGuard<'static, &'static [u8]>),
    redb::StorageError,
>;

/// Passes `count` entries of an iterator to the sink; with `count` 0 the entry of the key.
fn give(mut entries: impl Iterator<Item = Entry>, count: usize, sink: &mut Sink) -> Result<usize> {
    if count == 0 {
        let entry = entries.next().transpose()?;
        sink.key(entry.as_ref().map_or(&[], |(key, _)| key.value()));
        return Ok(usize::from(entry.is_some()));
    }
    let mut given = 0;
    while given < count
        && let Some(entry) = entries.next()
    {
        let (key, value) = entry?;
        sink.entry(|| key.value(), value.value());
        given += 1;
    }
    Ok(given)
}

impl Reader for RedbReader<'_> {
    fn get(&mut self, key: &Key, sink: &mut Sink) -> Result<bool> {
        if self.is_live {
            self.table = self.store.table()?;
        }
        let value = self.table.get(key.as_slice())?;
        if let Some(value) = &value {
            sink.value(value.value());
        }
        Ok(value.is_some())
    }

    fn forward(&mut self, key: &Key, count: usize, is_fresh: bool, sink: &mut Sink) -> Result<usize> {
        if is_fresh {
            self.table = self.store.table()?;
        }
        give(self.table.range(key.as_slice()..)?, count, sink)
    }

    fn backward(&mut self, key: &Key, count: usize, sink: &mut Sink) -> Result<usize> {
        give(self.table.range(..=key.as_slice())?.rev(), count, sink)
    }

    fn range(&mut self, lower: &Key, upper: &Key, sink: &mut Sink) -> Result<usize> {
        give(self.table.range(lower.as_slice()..=upper.as_slice())?, usize::MAX, sink)
    }

    fn all(&mut self, sink: &mut Sink, may_continue: &mut dyn FnMut(u64) -> bool) -> Result<u64> {
        let mut entries = self.table.iter()?;
        let mut count = 0;
        while should_continue(count, may_continue)
            && let Some(entry) = entries.next()
        {
            let (key, value) = entry?;
            sink.entry(|| key.value(), value.value());
            count += 1;
        }
        Ok(count)
    }
}
