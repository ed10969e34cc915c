//! False-positive reads of a store with elastic filters and memory for half of their units.
//!
//! A store has a hundred tables with disjoint ranges and serves lookups of absent keys; the table of each lookup is drawn from
//! a Zipf (0.99) or a uniform distribution. The cache has space for all indexes and half of the units; the store decides which
//! units it loads. Its false-positive reads are compared with those of
//!
//! - a second store whose plain filters have the same total size and are all in memory, and
//! - the optimal choice of units for the known distribution, on the same filters.
//!
//! The first half of the lookups is warm-up; the second half is counted. The store adapts in both.

use tamis::{Access, Db, Filters, Keyspace, KeyspaceOptions, Options, TableFilter};
use tamis_filter::{AnyFilter, Budget, Digester, FilterSpec, Probe, Samples, bloom::elastic::ElasticFilter};
use tamis_workload::SplitMix64;
use tempfile::TempDir;

use super::{
    levels::false_reads,
    unit_allocation::{TableUnits, best_allocation},
};
use tamis_bench::{BenchError, Context, OperationDigest, Point, Row};

const TABLE_COUNT: usize = 100;

/// A cache that is large enough for everything.
const LARGE_CACHE_BYTES: u64 = 1 << 30;

/// The key of a number in a table; numbers below the number of keys are present.
fn key(table: usize, number: u64) -> [u8; 16] {
    let word = SplitMix64::new(number << 8 | table as u64).next_u64();
    let mut key = [0; 16];
    let (front, back) = key.split_at_mut(8);
    front.copy_from_slice(&(table as u64).to_be_bytes());
    back.copy_from_slice(&word.to_be_bytes());
    key
}

fn sorted_keys(table: usize, key_count: u64) -> Vec<[u8; 16]> {
    let mut keys: Vec<_> = (0..key_count).map(|number| key(table, number)).collect();
    keys.sort_unstable();
    keys
}

/// The filters of all tables, outside of the store, and the optimal number of units per table.
struct Optimum {
    filters: Vec<ElasticFilter<Vec<u8>>>,
    best: Vec<u32>,
    unit_bytes: u64,
}

impl Optimum {
    fn new(point: &Point, shares: &[f64], seed: u64) -> Result<Self, BenchError> {
        let (unit_bits, units) = (point.number("unit_bits")?, point.integer("units")?);
        let key_count = point.integer("keys_per_table")?;
        let spec: FilterSpec = format!("elastic:units={units}").parse()?;
        let (mut filters, mut tables, mut unit_bytes) = (Vec::new(), Vec::new(), 0);
        for (table, share) in shares.iter().enumerate() {
            let mut builder = spec.builder(seed)?;
            sorted_keys(table, key_count).iter().try_for_each(|key| builder.add(key))?;
            let bytes = builder.finish(Budget::bits_per_key(unit_bits * units as f64)?, Samples::NONE)?;
            let filter = AnyFilter::open(bytes).map_err(|error| BenchError::other(error.to_string()))?;
            let AnyFilter::Elastic(filter) = filter else {
                return Err(BenchError::other("an elastic filter was decoded as another family"));
            };
            let header = filter.header();
            unit_bytes = header.unit_bytes();
            tables.push(TableUnits {
                hotness: *share,
                unit_bytes,
                unit_fpr: header.unit_fpr(),
                unit_count: header.unit_count(),
            });
            filters.push(filter);
        }
        let half = unit_bytes * units * TABLE_COUNT as u64 / 2;
        Ok(Self { filters, best: best_allocation(&tables, half), unit_bytes })
    }

    fn admits(&self, table: usize, probe: &Probe<'_>) -> bool {
        let best = self.best.get(table).copied().unwrap_or(0);
        self.filters.get(table).is_none_or(|filter| filter.may_contain_loaded(probe, best))
    }
}

/// A store on disk and its scratch folder.
struct Store {
    db: Db,
    keyspace: Keyspace,
    folder: TempDir,
}

impl Store {
    /// Builds a store of [`TABLE_COUNT`] tables in one run with this filter.
    fn load(filter: TableFilter, key_count: u64, context: &Context<'_>) -> Result<Self, BenchError> {
        let folder = context.scratch()?;
        let store = Self::open(folder, LARGE_CACHE_BYTES, |db| {
            // Large blocks keep the indexes small: the experiment compares filters.
            let options = KeyspaceOptions::default()
                .block_bytes(64 << 10)
                .level0_runs(64)
                .filters(Filters::each([filter]));
            db.create_keyspace("elastic", options)
        })?;
        let mut paths = Vec::new();
        for table in 0..TABLE_COUNT {
            let path = store.folder.path().join(format!("{table}.new"));
            let mut writer = store.keyspace.table_writer(&path)?;
            sorted_keys(table, key_count).iter().try_for_each(|key| writer.put(key, []))?;
            writer.finish()?;
            paths.push(path);
        }
        store.db.ingest(&store.keyspace, &paths)?;
        Ok(store)
    }

    fn open(
        folder: TempDir,
        cache_bytes: u64,
        keyspace: impl FnOnce(&Db) -> tamis::Result<Keyspace>,
    ) -> Result<Self, BenchError> {
        let options = Options::default()
            .workers(0)
            .table_access(Access::Buffered)
            .cache_bytes(cache_bytes)
            .cache_pinned_percent(100);
        let db = Db::open_with(folder.path().join("store"), options)?;
        let keyspace = keyspace(&db)?;
        Ok(Self { db, keyspace, folder })
    }

    /// Returns the size of all filters and indexes.
    fn pinned_bytes(&self, key_count: u64) -> Result<u64, BenchError> {
        for table in 0..TABLE_COUNT {
            // A lookup of a present key opens the table and loads its index.
            let is_there = self.keyspace.get(key(table, key_count / 2))?.is_some();
            if !is_there {
                return Err(BenchError::other("a stored key was not found"));
            }
        }
        Ok(self.db.statistics().cache_pinned_bytes)
    }

    fn reopen(self, cache_bytes: u64) -> Result<Self, BenchError> {
        let Self { db, keyspace, folder } = self;
        drop(keyspace);
        db.close()?;
        // The capacity for pinned data is a whole percentage of the cache.
        Self::open(folder, cache_bytes.next_multiple_of(100), |db| db.keyspace("elastic"))
    }

    fn false_reads(&self) -> u64 {
        false_reads(&self.db.statistics())
    }

    /// Number of loaded units of elastic filters.
    fn loaded_units(&self) -> Result<u64, BenchError> {
        let loaded = |design: &str| -> Option<u64> {
            design.strip_prefix("elastic: ")?.split(' ').next()?.parse().ok()
        };
        let tables = self.db.table_filters(&self.keyspace)?;
        Ok(tables.iter().flat_map(|table| &table.designs).filter_map(|design| loaded(design)).sum())
    }

    fn look_up(&self, key: &[u8]) -> Result<(), BenchError> {
        match self.keyspace.get(key)? {
            None => Ok(()),
            Some(_) => Err(BenchError::other("an absent key was found")),
        }
    }
}

/// Draws a table by the cumulative distribution.
fn draw(cumulative: &[f64], random: &mut SplitMix64) -> usize {
    let place = random.unit() * cumulative.last().copied().unwrap_or(0.0);
    cumulative.partition_point(|sum| *sum <= place).min(TABLE_COUNT - 1)
}

/// Loads the two stores of a point: with elastic and with plain filters.
fn load(point: &Point, unit_bytes: u64, context: &mut Context<'_>) -> Result<[Store; 2], BenchError> {
    let (unit_bits, units) = (point.number("unit_bits")?, point.integer("units")?);
    let key_count = point.integer("keys_per_table")?;
    let elastic = format!("elastic:units={units}@{}", unit_bits * units as f64).parse()?;
    let elastic = Store::load(elastic, key_count, context)?;
    context.progress(0.1)?;
    let all_units = unit_bytes * units * TABLE_COUNT as u64;
    let index_bytes = elastic.pinned_bytes(key_count)?.saturating_sub(all_units);
    // Units are whole cache lines. The plain filter has as many lines as half of the units; its budget is rounded up to a line.
    let plain_bits = ((unit_bytes * units / 2).saturating_sub(32) * 8) as f64 / key_count as f64;
    let plain = Store::load(TableFilter::bits(plain_bits as f32), key_count, context)?;
    context.progress(0.2)?;
    Ok([elastic.reopen(index_bytes + all_units / 2)?, plain.reopen(LARGE_CACHE_BYTES)?])
}

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let seed = context.seed();
    let is_zipf = point.text("asked")? == "zipf";
    let shares: Vec<f64> =
        (1..=TABLE_COUNT).map(|rank| if is_zipf { (rank as f64).powf(-0.99) } else { 1.0 }).collect();
    let cumulative: Vec<f64> = shares
        .iter()
        .scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        })
        .collect();
    let best = Optimum::new(point, &shares, seed)?;
    let [elastic, plain] = load(point, best.unit_bytes, context)?;
    let (lookup_count, key_count) = (point.integer("lookups")?, point.integer("keys_per_table")?);
    let digester = Digester::new(seed);
    let mut random = SplitMix64::new(seed + 1);
    let (mut taught, mut optimum) = (0, 0_u64);
    let mut digest = OperationDigest::default();
    for lookup in 0..lookup_count {
        if lookup == lookup_count / 2 {
            taught = elastic.false_reads();
        }
        let table = draw(&cumulative, &mut random);
        let key = key(table, key_count + random.below(1 << 40));
        elastic.look_up(&key)?;
        if lookup >= lookup_count / 2 {
            plain.look_up(&key)?;
            optimum += u64::from(best.admits(table, &Probe::new(&key, &digester)));
            digest.add_bytes(&key);
        }
        if lookup % (1 << 18) == 0 {
            context.progress(0.2 + 0.8 * lookup as f64 / lookup_count as f64)?;
        }
    }
    let (learned, plain) = (elastic.false_reads() - taught, plain.false_reads());
    let half_units = point.number("units")? * TABLE_COUNT as f64 / 2.0;
    Ok(Row::new()
        .with("false_reads", learned)
        .with("false_reads_plain", plain)
        .with("false_reads_optimum", optimum)
        .with("of_plain", learned as f64 / (plain as f64).max(1.0))
        .with("of_optimum", learned as f64 / (optimum as f64).max(1.0))
        // Units may use space that the indexes leave: reports whether the store loads more than half of them.
        .with("of_half_memory", elastic.loaded_units()? as f64 / half_units)
        .with_digest(digest.finish()))
}
