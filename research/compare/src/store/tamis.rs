//! Tamis with its defaults, which map tables; `tamis-buffered` reads them through the block cache like RocksDB, `tamis-bloom` has only
//! Bloom filters, and `tamis-partitioned` has the partitioned layout.

use tamis::{Access, Durability, Filters, KeyspaceOptions, Layout, Options};
use tamis_bench::{
    BenchError,
    driver::{TamisOptions, TamisStore},
};

use super::{Compared, Kind, Result, Settings, missing, moves};

/// Tamis with its defaults.
pub const KIND: Kind = Kind {
    name: "tamis",
    title: "Tamis",
    about: "defaults: mapped tables, verified once per block; automatic filters; 2 workers",
    open: |settings| open(settings, Access::Mapped, KeyspaceOptions::default()),
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
    open: |settings| open(settings, Access::Buffered, KeyspaceOptions::default()),
    is_default: false,
    ..KIND
};

/// Tamis with Bloom filters only.
pub const BLOOM: Kind = Kind {
    name: "tamis-bloom",
    title: "Tamis, Bloom filters",
    about: "the defaults, with Bloom filters of 10 bits per key instead of automatic filters",
    open: |settings| open(settings, Access::Mapped, KeyspaceOptions::default().filters(Filters::bits(10.0))),
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
    open: |settings| {
        let table_bytes = (settings.memtable_bytes / 16).max(TABLE_BYTES_MIN);
        let layout = Layout::partitioned();
        let options = KeyspaceOptions::default().layout(layout).table_bytes(table_bytes);
        open(settings, Access::Mapped, options)
    },
    // A partition with more tables than the layout allows is compacted.
    can_stay_unmerged: false,
    // A split of all partitions at once holds the inputs until it ends.
    space: 2.2,
    is_default: false,
    ..KIND
};

fn open(settings: &Settings, access: Access, keyspace: KeyspaceOptions) -> Result<Box<dyn Compared>> {
    let table_access = if settings.is_direct { Access::Direct } else { access };
    let mut keyspace = keyspace.memtable_bytes(settings.memtable_bytes);
    if settings.is_unmerged {
        keyspace = keyspace.level0_runs(64);
    }
    let options = TamisOptions {
        options: Options::default().cache_bytes(settings.cache_bytes).table_access(table_access),
        keyspace,
        durability: if settings.is_deferred { Durability::Deferred } else { Durability::Buffered },
    };
    Ok(Box::new(TamisStore::open(&settings.folder, &options)?))
}

impl Compared for TamisStore {
    fn flush(&self) -> Result<()> {
        Ok(self.db.flush()?)
    }

    fn compact(&self) -> Result<()> {
        Ok(self.db.compact_range(&self.keyspace, ..)?)
    }

    fn shape(&self) -> String {
        let statistics = self.db.statistics();
        let ours = statistics.keyspaces.iter().find(|keyspace| keyspace.name == self.keyspace.name());
        let levels = ours.map_or(&[][..], |keyspace| &keyspace.levels).iter().enumerate();
        let filled = levels.filter(|(_, level)| level.run_count > 0);
        let part = |(number, level): (usize, &tamis::LevelStatistics)| {
            format!("L{number}: {} runs, {} tables", level.run_count, level.table_count)
        };
        filled.map(part).collect::<Vec<_>>().join("; ")
    }

    fn transfer(&self, keys: &[Vec<u8>]) -> Result<()> {
        self.db.transact(|transaction| {
            let values = transaction.multi_get(&self.keyspace, keys)?;
            for ((_, to), value) in moves(keys).zip(values) {
                transaction.put(&self.keyspace, to, value.ok_or_else(missing)?)?;
            }
            Ok::<_, BenchError>(())
        })
    }
}
