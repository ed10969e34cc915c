//! Tamis with its defaults, which map tables; `tamis-buffered` reads them through the block cache like RocksDB, `tamis-bloom` has only
//! Bloom filters, and `tamis-partitioned` has the partitioned layout.

use std::path::Path;

use tamis::{Access, Db, Durability, Filters, Keyspace, KeyspaceOptions, Layout, Options, Scan, WriteBatch};

use super::{Kind, Reader, Settings, Store, missing, moves, should_continue};
use crate::{
    data::{Key, Value},
    failure::{Failure, Result},
    sink::Sink,
};

/// Tamis with its defaults.
pub const KIND: Kind = Kind {
    name: "tamis",
    title: "Tamis",
    about: "defaults: mapped tables, verified once per block; automatic filters; 2 workers",
    open: |folder, settings| open(folder, settings, Access::Mapped, KeyspaceOptions::default()),
    can_stay_unmerged: true,
    can_defer: true,
    can_direct: true,
    can_transact: true,
    space: 1.6,
    is_default: true,
};

/// Tamis through its block cache.
pub const BUFFERED: Kind = Kind {
    name: "tamis-buffered",
    title: "Tamis, buffered",
    about: "the same, but tables are read through the block cache instead of a mapping",
    open: |folder, settings| open(folder, settings, Access::Buffered, KeyspaceOptions::default()),
    is_default: false,
    ..KIND
};

/// Tamis with Bloom filters only.
pub const BLOOM: Kind = Kind {
    name: "tamis-bloom",
    title: "Tamis, Bloom filters",
    about: "the defaults, with Bloom filters of 10 bits per key instead of automatic filters",
    open: |folder, settings| {
        let filters = Filters::bits(10.0);
        open(folder, settings, Access::Mapped, KeyspaceOptions::default().filters(filters))
    },
    is_default: false,
    ..KIND
};

/// The least size of tables that the store takes.
const TABLE_BYTES_MIN: u64 = 64 << 10;

/// Tamis with the partitioned layout.
pub const PARTITIONED: Kind = Kind {
    name: "tamis-partitioned",
    title: "Tamis, partitioned",
    about: "the defaults, with the partitioned layout and tables of a sixteenth of the memtable",
    open: |folder, settings| {
        let table_bytes = (settings.memtable_bytes / 16).max(TABLE_BYTES_MIN);
        let layout = Layout::partitioned();
        let options = KeyspaceOptions::default().layout(layout).table_bytes(table_bytes);
        open(folder, settings, Access::Mapped, options)
    },
    // A partition with more tables than the layout allows is compacted.
    can_stay_unmerged: false,
    // A split of all partitions at once holds the inputs until it ends.
    space: 2.2,
    is_default: false,
    ..KIND
};

struct Tamis {
    db: Db,
    keyspace: Keyspace,
    is_deferred: bool,
}

fn open(
    folder: &Path,
    settings: &Settings,
    access: Access,
    options: KeyspaceOptions,
) -> Result<Box<dyn Store>> {
    let table_access = if settings.is_direct { Access::Direct } else { access };
    let db = Db::open_with(
        folder,
        Options::default().cache_bytes(settings.cache_bytes).table_access(table_access),
    )?;
    let mut options = options.memtable_bytes(settings.memtable_bytes);
    if settings.is_unmerged {
        options = options.level0_runs(64);
    }
    let keyspace = db.get_or_create_keyspace("compared", options)?;
    Ok(Box::new(Tamis { db, keyspace, is_deferred: settings.is_deferred }))
}

impl Store for Tamis {
    fn reader(&self, _is_live: bool) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(TamisReader { keyspace: &self.keyspace, scan: self.keyspace.range(..) }))
    }

    fn put(&self, key: &Key, value: &Value) -> Result<()> {
        if self.is_deferred {
            let mut batch = WriteBatch::new();
            batch.put(&self.keyspace, key, value)?;
            return Ok(self.db.write_with(batch, Durability::Deferred)?);
        }
        Ok(self.keyspace.put(key, value)?)
    }

    fn transfer(&self, keys: &[Key]) -> Result<()> {
        self.db.transact(|transaction| {
            let values = transaction.multi_get(&self.keyspace, keys)?;
            for ((_, to), value) in moves(keys).zip(values) {
                transaction.put(&self.keyspace, to, value.ok_or_else(missing)?)?;
            }
            Ok::<_, Failure>(())
        })
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db.flush()?)
    }

    fn wait(&self) -> Result<()> {
        Ok(self.db.wait_for_compactions()?)
    }

    fn compact(&self) -> Result<()> {
        Ok(self.db.compact_range(&self.keyspace, ..)?)
    }

    fn shape(&self) -> String {
        let statistics = self.db.statistics();
        let ours = statistics.keyspaces.iter().find(|keyspace| keyspace.name == self.keyspace.name());
        let levels = ours.map_or(&[][..], |keyspace| &keyspace.levels);
        let parts: Vec<String> = levels
            .iter()
            .enumerate()
            .filter(|(_, level)| level.run_count > 0)
            .map(|(number, level)| {
                format!("L{number}: {} runs, {} tables", level.run_count, level.table_count)
            })
            .collect();
        parts.join("; ")
    }
}

struct TamisReader<'a> {
    keyspace: &'a Keyspace,
    scan: Scan,
}

/// Passes `count` entries from the position of the scan to the sink; with `count` 0 the entry of the key.
fn give(scan: &mut Scan, count: usize, sink: &mut Sink) -> Result<usize> {
    if count == 0 {
        let found = scan.move_next()?;
        sink.key(scan.key());
        return Ok(usize::from(found));
    }
    let mut given = 0;
    while given < count && scan.move_next()? {
        sink.entry(|| scan.key(), scan.value());
        given += 1;
    }
    Ok(given)
}

impl Reader for TamisReader<'_> {
    fn get(&mut self, key: &Key, sink: &mut Sink) -> Result<bool> {
        let value = self.keyspace.get(key)?;
        if let Some(value) = &value {
            sink.value(value);
        }
        Ok(value.is_some())
    }

    fn forward(&mut self, key: &Key, count: usize, is_fresh: bool, sink: &mut Sink) -> Result<usize> {
        if is_fresh {
            return give(&mut self.keyspace.range(key.as_slice()..), count, sink);
        }
        self.scan.seek(key)?;
        give(&mut self.scan, count, sink)
    }

    fn backward(&mut self, key: &Key, count: usize, sink: &mut Sink) -> Result<usize> {
        self.scan.seek_for_prev(key)?;
        let mut given = 0;
        while given < count && self.scan.move_prev()? {
            sink.entry(|| self.scan.key(), self.scan.value());
            given += 1;
        }
        Ok(given)
    }

    fn range(&mut self, lower: &Key, upper: &Key, sink: &mut Sink) -> Result<usize> {
        give(&mut self.keyspace.range(lower.as_slice()..=upper.as_slice()), usize::MAX, sink)
    }

    fn all(&mut self, sink: &mut Sink, may_continue: &mut dyn FnMut(u64) -> bool) -> Result<u64> {
        let mut scan = self.keyspace.range(..);
        let mut count = 0;
        while should_continue(count, may_continue) && scan.move_next()? {
            sink.entry(|| scan.key(), scan.value());
            count += 1;
        }
        Ok(count)
    }
}
