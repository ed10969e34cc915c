//! RocksDB in two columns: common settings, and settings of its tuning guide.

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, DBCompressionType, DBRawIteratorWithThreadMode, DataBlockIndexType, ErrorKind,
    OptimisticTransactionDB, Options, ReadOptions, WaitForCompactOptions, WriteOptions,
};

use super::{Kind, Reader, Settings, Store, missing, moves, should_continue};
use crate::{
    data::{Key, Value},
    failure::Result,
    sink::Sink,
};

/// The column with common settings.
pub const KIND: Kind = Kind {
    name: "rocksdb",
    title: "RocksDB",
    about: "10-bit Bloom filters on all levels, 4 KiB blocks, dynamic levels, LRU cache with indexes and filters in it",
    open: |folder, settings| open(folder, settings, false),
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
    open: |folder, settings| open(folder, settings, true),
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

fn open(folder: &Path, settings: &Settings, is_tuned: bool) -> Result<Box<dyn Store>> {
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
    let db = OptimisticTransactionDB::open(&options, folder)?;
    Ok(Box::new(Rocks { db, write: WriteOptions::default(), is_deferred: settings.is_deferred }))
}

impl Store for Rocks {
    fn reader(&self, _is_live: bool) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(RocksReader { db: &self.db, read: ReadOptions::default(), iterator: None }))
    }

    fn put(&self, key: &Key, value: &Value) -> Result<()> {
        Ok(self.db.put_opt(key, value, &self.write)?)
    }

    fn transfer(&self, keys: &[Key]) -> Result<()> {
        loop {
            let transaction = self.db.transaction();
            let value = |key: &Key| transaction.get_for_update(key, true)?.ok_or_else(missing);
            let values = keys.iter().map(value).collect::<Result<Vec<_>>>()?;
            for ((_, to), value) in moves(keys).zip(values) {
                transaction.put(to, value)?;
            }
            match transaction.commit() {
                Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::TryAgain) => {}
                result => return Ok(result?),
            }
        }
    }

    fn flush(&self) -> Result<()> {
        if self.is_deferred {
            self.db.flush_wal(false)?;
        }
        Ok(self.db.flush()?)
    }

    fn wait(&self) -> Result<()> {
        Ok(self.db.wait_for_compact(&WaitForCompactOptions::default())?)
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
}

type Iterator<'a> = DBRawIteratorWithThreadMode<'a, OptimisticTransactionDB>;

struct RocksReader<'a> {
    db: &'a OptimisticTransactionDB,
    read: ReadOptions,
    iterator: Option<Iterator<'a>>,
}

/// Passes `count` entries from the position of the iterator to the sink; with `count` 0 the entry of the key.
fn give(iterator: &mut Iterator<'_>, count: usize, is_back: bool, sink: &mut Sink) -> Result<usize> {
    if count == 0 {
        let key = iterator.key();
        sink.key(key.unwrap_or_default());
        return Ok(usize::from(key.is_some()));
    }
    let mut given = 0;
    while given < count
        && let Some(value) = iterator.value()
    {
        sink.entry(|| iterator.key().unwrap_or_default(), value);
        given += 1;
        if given < count {
            if is_back { iterator.prev() } else { iterator.next() }
        }
    }
    iterator.status()?;
    Ok(given)
}

impl Reader for RocksReader<'_> {
    fn get(&mut self, key: &Key, sink: &mut Sink) -> Result<bool> {
        let value = self.db.get_pinned_opt(key, &self.read)?;
        if let Some(value) = &value {
            sink.value(value);
        }
        Ok(value.is_some())
    }

    fn forward(&mut self, key: &Key, count: usize, is_fresh: bool, sink: &mut Sink) -> Result<usize> {
        if is_fresh {
            let mut iterator = self.db.raw_iterator();
            iterator.seek(key);
            return give(&mut iterator, count, false, sink);
        }
        let iterator = self.iterator.get_or_insert_with(|| self.db.raw_iterator());
        iterator.seek(key);
        give(iterator, count, false, sink)
    }

    fn backward(&mut self, key: &Key, count: usize, sink: &mut Sink) -> Result<usize> {
        let iterator = self.iterator.get_or_insert_with(|| self.db.raw_iterator());
        iterator.seek_for_prev(key);
        give(iterator, count, true, sink)
    }

    fn range(&mut self, lower: &Key, upper: &Key, sink: &mut Sink) -> Result<usize> {
        // The upper bound is exclusive in RocksDB, so the bound is the next longer key.
        let mut behind = upper.to_vec();
        behind.push(0);
        let mut read = ReadOptions::default();
        read.set_iterate_lower_bound(lower.as_slice());
        read.set_iterate_upper_bound(behind);
        let mut iterator = self.db.raw_iterator_opt(read);
        iterator.seek(lower);
        give(&mut iterator, usize::MAX, false, sink)
    }

    fn all(&mut self, sink: &mut Sink, may_continue: &mut dyn FnMut(u64) -> bool) -> Result<u64> {
        let mut iterator = self.db.raw_iterator();
        iterator.seek_to_first();
        let mut count = 0;
        while should_continue(count, may_continue)
            && let Some(value) = iterator.value()
        {
            sink.entry(|| iterator.key().unwrap_or_default(), value);
            count += 1;
            iterator.next();
        }
        iterator.status()?;
        Ok(count)
    }
}
