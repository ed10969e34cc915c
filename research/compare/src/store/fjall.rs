//! fjall with its defaults, built without compression: leveled, 4 KiB blocks, filters with a rate of 1 in 10,000 at L0 and 10 bits below.

use std::{path::Path, sync::Arc, thread, time::Duration};

use fjall::{
    Database, Keyspace, KeyspaceCreateOptions, OptimisticTxDatabase, PersistMode, Readable, Snapshot,
    compaction::Leveled,
};

use super::{Kind, Reader, Settings, Store, missing, moves, should_continue};
use crate::{
    data::{Key, Value},
    failure::Result,
    sink::Sink,
};

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

fn open(folder: &Path, settings: &Settings) -> Result<Box<dyn Store>> {
    let transactions = OptimisticTxDatabase::builder(folder)
        .cache_size(settings.cache_bytes)
        .manual_journal_persist(settings.is_deferred)
        .open()?;
    let db = transactions.inner().clone();
    let keyspace = db.keyspace("compared", || {
        let options = KeyspaceCreateOptions::default()
            .max_memtable_size(settings.memtable_bytes)
            .manual_journal_persist(settings.is_deferred);
        if settings.is_unmerged {
            options.compaction_strategy(Arc::new(Leveled::default().with_l0_threshold(100)))
        } else {
            options
        }
    })?;
    Ok(Box::new(Fjall { transactions, db, keyspace }))
}

impl Store for Fjall {
    fn reader(&self, _is_live: bool) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(FjallReader { keyspace: &self.keyspace, snapshot: self.db.snapshot() }))
    }

    fn put(&self, key: &Key, value: &Value) -> Result<()> {
        Ok(self.keyspace.insert(key, value)?)
    }

    fn transfer(&self, keys: &[Key]) -> Result<()> {
        loop {
            let mut transaction = self.transactions.write_tx()?;
            let value = |key: &Key| transaction.get(&self.keyspace, key)?.ok_or_else(missing);
            let values = keys.iter().map(value).collect::<Result<Vec<_>>>()?;
            for ((_, to), value) in moves(keys).zip(values) {
                transaction.insert(&self.keyspace, *to, value);
            }
            if transaction.commit()?.is_ok() {
                return Ok(());
            }
        }
    }

    fn flush(&self) -> Result<()> {
        self.db.persist(PersistMode::Buffer)?;
        Ok(self.keyspace.rotate_memtable_and_wait()?)
    }

    #[expect(clippy::disallowed_methods, reason = "the store has no call that waits")]
    fn wait(&self) -> Result<()> {
        let mut quiet_count = 0;
        while quiet_count < 5 {
            thread::sleep(Duration::from_millis(20));
            let is_quiet = self.db.active_compactions() == 0 && self.db.outstanding_flushes() == 0;
            quiet_count = if is_quiet { quiet_count + 1 } else { 0 };
        }
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        Ok(self.keyspace.major_compact()?)
    }

    fn shape(&self) -> String {
        format!("{} tables, {} of them in L0", self.keyspace.table_count(), self.keyspace.l0_table_count())
    }
}

struct FjallReader<'a> {
    keyspace: &'a Keyspace,
    snapshot: Snapshot,
}

/// Passes `count` entries of an iterator to the sink; with `count` 0 the entry of the key.
fn give(mut entries: impl Iterator<Item = fjall::Guard>, count: usize, sink: &mut Sink) -> Result<usize> {
    if count == 0 {
        let key = entries.next().map(fjall::Guard::key).transpose()?;
        sink.key(key.as_deref().unwrap_or_default());
        return Ok(usize::from(key.is_some()));
    }
    let mut given = 0;
    while given < count
        && let Some(entry) = entries.next()
    {
        let (key, value) = entry.into_inner()?;
        sink.entry(|| &key, &value);
        given += 1;
    }
    Ok(given)
}

impl Reader for FjallReader<'_> {
    fn get(&mut self, key: &Key, sink: &mut Sink) -> Result<bool> {
        let value = self.keyspace.get(key)?;
        if let Some(value) = &value {
            sink.value(value);
        }
        Ok(value.is_some())
    }

    fn forward(&mut self, key: &Key, count: usize, is_fresh: bool, sink: &mut Sink) -> Result<usize> {
        // Its iterators cannot seek: each seek creates one, on the kept snapshot or on a new one.
        if is_fresh {
            return give(self.keyspace.range(key.as_slice()..), count, sink);
        }
        give(self.snapshot.range(self.keyspace, key.as_slice()..), count, sink)
    }

    fn backward(&mut self, key: &Key, count: usize, sink: &mut Sink) -> Result<usize> {
        give(self.snapshot.range(self.keyspace, ..=key.as_slice()).rev(), count, sink)
    }

    fn range(&mut self, lower: &Key, upper: &Key, sink: &mut Sink) -> Result<usize> {
        give(self.keyspace.range(lower.as_slice()..=upper.as_slice()), usize::MAX, sink)
    }

    fn all(&mut self, sink: &mut Sink, may_continue: &mut dyn FnMut(u64) -> bool) -> Result<u64> {
        let mut entries = self.keyspace.iter();
        let mut count = 0;
        while should_continue(count, may_continue)
            && let Some(entry) = entries.next()
        {
            let (key, value) = entry.into_inner()?;
            sink.entry(|| &key, &value);
            count += 1;
        }
        Ok(count)
    }
}
