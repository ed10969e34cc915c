//! fjall with its defaults, built without compression: leveled, 4 KiB blocks, filters with a rate of 1 in 10,000 at L0 and 10 bits below.

use std::sync::Arc;

use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, OptimisticTxDatabase, PersistMode, Readable, Snapshot,
    compaction::Leveled,
};
use tamis_bench::{
    BenchError,
    driver::{Session, Sink, Store},
};

use super::{Compared, Kind, Result, Settings, missing, moves};
use crate::usage::wait_until_idle;

/// fjall.
pub const KIND: Kind = Kind {
    name: "fjall",
    title: "fjall",
    about: "defaults: leveled, 4 KiB blocks, filters of 1 in 10,000 at L0 and 10 bits below; log written to the operating system per write",
    open,
    can_stay_unmerged: true,
    can_defer: true,
    can_direct: false,
    can_transact: true,
    space: 1.9,
    is_default: true,
};

struct Fjall {
    transactions: OptimisticTxDatabase,
    db: Database,
    keyspace: Keyspace,
}

fn open(settings: &Settings) -> Result<Box<dyn Compared>> {
    let transactions = OptimisticTxDatabase::builder(&settings.folder)
        .cache_size(settings.cache_bytes)
        .manual_journal_persist(settings.is_deferred)
        .open()
        .map_err(BenchError::other)?;
    let db = transactions.inner().clone();
    let options = || {
        let options = KeyspaceCreateOptions::default()
            .max_memtable_size(settings.memtable_bytes)
            .manual_journal_persist(settings.is_deferred);
        if settings.is_unmerged {
            options.compaction_strategy(Arc::new(Leveled::default().with_l0_threshold(100)))
        } else {
            options
        }
    };
    let keyspace = db.keyspace("compared", options).map_err(BenchError::other)?;
    Ok(Box::new(Fjall { transactions, db, keyspace }))
}

impl Store for Fjall {
    fn session(&self, is_live: bool) -> Result<Box<dyn Session + '_>> {
        let snapshot = (!is_live).then(|| self.db.snapshot());
        Ok(Box::new(FjallSession { keyspace: &self.keyspace, snapshot }))
    }

    fn settle(&self) -> Result<()> {
        self.flush()?;
        while self.db.active_compactions() > 0 || self.db.outstanding_flushes() > 0 {
            wait_until_idle();
        }
        Ok(())
    }
}

impl Compared for Fjall {
    fn flush(&self) -> Result<()> {
        self.db.persist(PersistMode::Buffer).map_err(BenchError::other)?;
        self.keyspace.rotate_memtable_and_wait().map_err(BenchError::other)
    }

    fn compact(&self) -> Result<()> {
        self.keyspace.major_compact().map_err(BenchError::other)
    }

    fn shape(&self) -> String {
        format!("{} tables, {} of them in L0", self.keyspace.table_count(), self.keyspace.l0_table_count())
    }

    fn transfer(&self, keys: &[Vec<u8>]) -> Result<()> {
        loop {
            let mut transaction = self.transactions.write_tx().map_err(BenchError::other)?;
            let value = |key: &Vec<u8>| {
                transaction.get(&self.keyspace, key).map_err(BenchError::other)?.ok_or_else(missing)
            };
            let values = keys.iter().map(value).collect::<Result<Vec<_>>>()?;
            for ((_, to), value) in moves(keys).zip(values) {
                transaction.insert(&self.keyspace, to, value);
            }
            if transaction.commit().map_err(BenchError::other)?.is_ok() {
                return Ok(());
            }
        }
    }
}

struct FjallSession<'a> {
    keyspace: &'a Keyspace,
    /// Of a session that is not live.
    snapshot: Option<Snapshot>,
}

/// Passes up to `limit` entries of an iterator to the sink.
fn give(entries: impl Iterator<Item = fjall::Guard>, limit: u64, sink: &mut Sink) -> Result<u64> {
    let mut given = 0;
    for entry in entries.take(usize::try_from(limit).unwrap_or(usize::MAX)) {
        let (key, value) = entry.into_inner().map_err(BenchError::other)?;
        sink.entry(|| &key, &value);
        given += 1;
    }
    Ok(given)
}

impl FjallSession<'_> {
    /// Its iterators cannot seek: each scan creates one, on the snapshot or on the newest state.
    fn entries<'k>(&self, range: impl std::ops::RangeBounds<&'k [u8]>) -> fjall::Iter {
        match &self.snapshot {
            Some(snapshot) => snapshot.range(self.keyspace, range),
            None => self.keyspace.range(range),
        }
    }
}

impl Session for FjallSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.keyspace.insert(key, value).map_err(BenchError::other)
    }

    fn get(&mut self, key: &[u8], sink: &mut Sink) -> Result<bool> {
        let value = self.keyspace.get(key).map_err(BenchError::other)?;
        Ok(value.map(|value| sink.value(&value)).is_some())
    }

    fn scan(&mut self, lower: &[u8], limit: u64, sink: &mut Sink) -> Result<u64> {
        give(self.entries(lower..), limit, sink)
    }

    fn scan_back(&mut self, upper: &[u8], limit: u64, sink: &mut Sink) -> Result<u64> {
        give(self.entries(..=upper).rev(), limit, sink)
    }

    fn range(&mut self, lower: &[u8], upper: &[u8], sink: &mut Sink) -> Result<u64> {
        give(self.keyspace.range(lower..=upper), u64::MAX, sink)
    }
}
