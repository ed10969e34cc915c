//! RocksDB in two columns: common settings, and settings of its tuning guide.

use rocksdb::{
    BlockBasedOptions, Cache, DBCompressionType, DBRawIteratorWithThreadMode, DataBlockIndexType, ErrorKind,
    OptimisticTransactionDB, Options, ReadOptions, WaitForCompactOptions, WriteOptions,
};
use tamis_bench::{
    BenchError,
    driver::{Session, Sink, Store},
};

use super::{Compared, Kind, Result, Settings, missing, moves};

/// The column with common settings.
pub const KIND: Kind = Kind {
    name: "rocksdb",
    title: "RocksDB",
    about: "10-bit Bloom filters on all levels, 4 KiB blocks, dynamic levels, LRU cache with indexes and filters in it",
    open: |settings| open(settings, false),
    can_stay_unmerged: true,
    can_defer: true,
    can_direct: true,
    can_transact: true,
    space: 1.8,
    is_default: true,
};

/// The column with tuned settings.
pub const TUNED: Kind = Kind {
    name: "rocksdb-tuned",
    title: "RocksDB, tuned",
    about: "the same with hyper clock cache, format version 7, hash index in data blocks (0.75), pinned indexes and filters of L0, \
            filters sized for the allocator, 2 jobs, 2 subcompactions",
    open: |settings| open(settings, true),
    ..KIND
};

/// The size of a block in the cache, a parameter of the hyper clock cache.
const BLOCK_BYTES: usize = 4096;

struct Rocks {
    db: OptimisticTransactionDB,
    write: WriteOptions,
    is_deferred: bool,
}

fn table_options(settings: &Settings, is_tuned: bool) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_size(BLOCK_BYTES);
    table.set_bloom_filter(10.0, false);
    table.set_cache_index_and_filter_blocks(true);
    let cache_bytes = settings.cache_bytes as usize;
    if is_tuned {
        table.set_block_cache(&Cache::new_hyper_clock_cache(cache_bytes, 0));
        table.set_format_version(7);
        table.set_pin_l0_filter_and_index_blocks_in_cache(true);
        table.set_cache_index_and_filter_blocks_with_high_priority(true);
        table.set_optimize_filters_for_memory(true);
        table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
        table.set_data_block_hash_ratio(0.75);
    } else {
        table.set_block_cache(&Cache::new_lru_cache(cache_bytes));
    }
    table
}

fn open(settings: &Settings, is_tuned: bool) -> Result<Box<dyn Compared>> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::None);
    options.set_write_buffer_size(settings.memtable_bytes as usize);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_manual_wal_flush(settings.is_deferred);
    options.set_disable_auto_compactions(settings.is_unmerged);
    if settings.is_direct {
        options.set_use_direct_reads(true);
        options.set_use_direct_io_for_flush_and_compaction(true);
    }
    if is_tuned {
        options.set_max_background_jobs(2);
        options.set_max_subcompactions(2);
        options.set_bytes_per_sync(1 << 20);
    }
    options.set_block_based_table_factory(&table_options(settings, is_tuned));
    let db = OptimisticTransactionDB::open(&options, &settings.folder).map_err(BenchError::other)?;
    Ok(Box::new(Rocks { db, write: WriteOptions::default(), is_deferred: settings.is_deferred }))
}

impl Store for Rocks {
    fn session(&self, is_live: bool) -> Result<Box<dyn Session + '_>> {
        let kept = (!is_live).then(|| self.db.raw_iterator());
        Ok(Box::new(RocksSession { store: self, read: ReadOptions::default(), kept }))
    }

    fn settle(&self) -> Result<()> {
        self.flush()?;
        self.db.wait_for_compact(&WaitForCompactOptions::default()).map_err(BenchError::other)
    }
}

impl Compared for Rocks {
    fn flush(&self) -> Result<()> {
        if self.is_deferred {
            self.db.flush_wal(false).map_err(BenchError::other)?;
        }
        self.db.flush().map_err(BenchError::other)
    }

    fn compact(&self) -> Result<()> {
        self.db.compact_range(None::<&[u8]>, None::<&[u8]>);
        Ok(())
    }

    fn shape(&self) -> String {
        let count = |level: usize| {
            let name = format!("rocksdb.num-files-at-level{level}");
            let count = self.db.property_value(name.as_str()).ok().flatten().unwrap_or_default();
            (count != "0").then(|| format!("L{level}: {count} tables"))
        };
        (0..7).filter_map(count).collect::<Vec<_>>().join("; ")
    }

    fn transfer(&self, keys: &[Vec<u8>]) -> Result<()> {
        loop {
            let transaction = self.db.transaction();
            let value = |key: &Vec<u8>| {
                transaction.get_for_update(key, true).map_err(BenchError::other)?.ok_or_else(missing)
            };
            let values = keys.iter().map(value).collect::<Result<Vec<_>>>()?;
            for ((_, to), value) in moves(keys).zip(values) {
                transaction.put(to, value).map_err(BenchError::other)?;
            }
            match transaction.commit() {
                Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::TryAgain) => {}
                result => return result.map_err(BenchError::other),
            }
        }
    }
}

type Iterator<'a> = DBRawIteratorWithThreadMode<'a, OptimisticTransactionDB>;

struct RocksSession<'a> {
    store: &'a Rocks,
    read: ReadOptions,
    /// The iterator of a session that is not live.
    kept: Option<Iterator<'a>>,
}

/// Passes up to `limit` entries from the position of the iterator to the sink.
fn give(iterator: &mut Iterator<'_>, limit: u64, is_back: bool, sink: &mut Sink) -> Result<u64> {
    let mut given = 0;
    while given < limit
        && let Some((key, value)) = iterator.item()
    {
        sink.entry(|| key, value);
        given += 1;
        if given < limit {
            if is_back { iterator.prev() } else { iterator.next() }
        }
    }
    iterator.status().map_err(BenchError::other)?;
    Ok(given)
}

impl RocksSession<'_> {
    /// Seeks, and passes entries to the sink.
    fn scan_from(&mut self, key: &[u8], limit: u64, is_back: bool, sink: &mut Sink) -> Result<u64> {
        let mut fresh = None;
        let iterator = match &mut self.kept {
            Some(iterator) => iterator,
            None => fresh.insert(self.store.db.raw_iterator()),
        };
        if is_back {
            iterator.seek_for_prev(key)
        } else {
            iterator.seek(key)
        }
        give(iterator, limit, is_back, sink)
    }
}

impl Session for RocksSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.store.db.put_opt(key, value, &self.store.write).map_err(BenchError::other)
    }

    fn get(&mut self, key: &[u8], sink: &mut Sink) -> Result<bool> {
        let value = self.store.db.get_pinned_opt(key, &self.read).map_err(BenchError::other)?;
        Ok(value.map(|value| sink.value(&value)).is_some())
    }

    fn scan(&mut self, lower: &[u8], limit: u64, sink: &mut Sink) -> Result<u64> {
        self.scan_from(lower, limit, false, sink)
    }

    fn scan_back(&mut self, upper: &[u8], limit: u64, sink: &mut Sink) -> Result<u64> {
        self.scan_from(upper, limit, true, sink)
    }

    fn range(&mut self, lower: &[u8], upper: &[u8], sink: &mut Sink) -> Result<u64> {
        // The upper bound is exclusive in RocksDB, so the bound is the next longer key.
        let mut behind = upper.to_vec();
        behind.push(0);
        let mut read = ReadOptions::default();
        read.set_iterate_lower_bound(lower);
        read.set_iterate_upper_bound(behind);
        let mut iterator = self.store.db.raw_iterator_opt(read);
        iterator.seek(lower);
        give(&mut iterator, u64::MAX, false, sink)
    }
}
