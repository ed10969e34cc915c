//! Stores of the experiments: options, loading, queries and their costs.

use std::hint::black_box;

use tamis::{
    Access, Clock as _, Db, Filters, Keyspace, KeyspaceOptions, Options, ReadStatistics, Statistics,
    TableFilter,
};
use tamis_filter::auto::QueryKind;
use tamis_workload::SplitMix64;

use crate::{
    inputs::{Keys, OwnedQuery},
    stores,
};
use tamis_bench::{BenchError, Context, Point};

/// Minimum size of memtables and tables.
const PART_BYTES_MIN: u64 = 64 << 10;
/// Minimum size of the cache.
const CACHE_BYTES_MIN: u64 = 256 << 10;
/// The data relative to a memtable or table (fewer tables than in the papers, so that each has a sample of its queries after fewer
/// queries), and relative to the cache, as in the papers.
const DATA_PER_TABLE: u64 = 24;
const DATA_PER_CACHE: u64 = 25;
/// The name of the filters that the store chooses.
pub(super) const AUTO: &str = "auto";
/// The name of a store without filters.
pub(super) const NONE: &str = "none";

/// Entries of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) keys: String,
    pub(super) entries: u64,
    pub(super) value_bytes: u64,
}

impl Shape {
    pub(super) fn of(point: &Point) -> Result<Self, BenchError> {
        Ok(Self {
            keys: point.text("keys")?.to_owned(),
            entries: point.integer("entries")?,
            value_bytes: point.integer("value_bytes")?,
        })
    }

    fn data_bytes(&self) -> u64 {
        self.entries * (self.value_bytes + 16)
    }

    /// Options with these filters.
    pub(super) fn options(&self, access: &str, filters: Filters) -> Options {
        let part = (self.data_bytes() / DATA_PER_TABLE).max(PART_BYTES_MIN);
        Options::default()
            .cache_bytes((self.data_bytes() / DATA_PER_CACHE).max(CACHE_BYTES_MIN))
            .table_access(if access == "mapped" { Access::Mapped } else { Access::Direct })
            .default_keyspace(
                KeyspaceOptions::default().memtable_bytes(part).table_bytes(part).filters(filters),
            )
    }
}

/// The filter of a name in an experiment; `None` for [`NONE`] and [`AUTO`]. `prefix` is the parameter of prefix Bloom filters.
pub(super) fn filter(name: &str, prefix: &str, bits: f64) -> Result<Option<TableFilter>, BenchError> {
    let text = match name {
        NONE | AUTO => return Ok(None),
        // The parameters determine the size.
        "surf-hash" | "surf-real" => format!("{name}:bits=4"),
        "surf" => format!("surf:truncate=yes@{bits}"),
        "prefix-bloom" => format!("prefix-bloom:{prefix}@{bits}"),
        name => format!("{name}@{bits}"),
    };
    Ok(Some(text.parse()?))
}

/// Puts keys in random order.
pub(super) fn put_all(
    db: &Db,
    mut keys: Vec<Vec<u8>>,
    value_bytes: u64,
    context: &mut Context<'_>,
) -> Result<(), BenchError> {
    let mut random = SplitMix64::new(context.seed());
    for index in (1..keys.len()).rev() {
        keys.swap(index, random.below(index as u64 + 1) as usize);
    }
    stores::put_all((db, &db.default_keyspace()), keys.into_iter(), value_bytes as usize, context)
}

/// A settled store; the folder is deleted with the last reference. A store keeps the options with which it was created.
pub(super) struct Loaded {
    pub(super) folder: tempfile::TempDir,
    pub(super) keys: Keys,
}

impl Loaded {
    pub(super) fn load(
        shape: &Shape,
        filters: Filters,
        context: &mut Context<'_>,
    ) -> Result<Self, BenchError> {
        let folder = context.scratch()?;
        let keys = Keys::generate(&shape.keys, shape.entries as usize, context.seed())?;
        let db = Db::open_with(folder.path(), shape.options("direct", filters))?;
        put_all(&db, keys.encoded(), shape.value_bytes, context)?;
        stores::settle(&db)?;
        db.close()?;
        Ok(Self { folder, keys })
    }
}

/// Executes a query, and reads at most its first entry, as the papers do.
pub(super) fn execute(keyspace: &Keyspace, query: &OwnedQuery) -> Result<bool, BenchError> {
    Ok(match query.kind {
        QueryKind::Point => keyspace.get(&query.lower)?.is_some(),
        QueryKind::Prefix => keyspace.prefix(&query.lower).move_next()?,
        _ => keyspace.range(query.lower.as_slice()..=query.upper.as_slice()).move_next()?,
    })
}

/// The costs of queries.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Costs {
    /// Per query.
    pub(super) nanoseconds: f64,
    /// Blocks loaded from files, per query.
    pub(super) blocks_read: f64,
    /// Blocks loaded or found in the cache, per query.
    pub(super) blocks_used: f64,
    /// The share of queries with a result.
    pub(super) found: f64,
    /// The share of false positives of the filters of all tables.
    pub(super) false_positive_rate: f64,
}

/// Runs queries, and returns their costs. Calls `between` before each query, with its number.
pub(super) fn run(
    db: &Db,
    queries: &[OwnedQuery],
    context: &mut Context<'_>,
    mut between: impl FnMut(usize) -> Result<(), BenchError>,
) -> Result<Costs, BenchError> {
    let keyspace = db.default_keyspace();
    let before = (db.statistics(), context.clock().now());
    let mut found = 0;
    for (index, query) in queries.iter().enumerate() {
        between(index)?;
        found += u64::from(execute(&keyspace, black_box(query))?);
        if index % 1_000 == 0 {
            context.progress(index as f64 / queries.len() as f64)?;
        }
    }
    let nanoseconds = (context.clock().now() - before.1).as_nanos() as f64;
    let after = db.statistics();
    let count = queries.len().max(1) as f64;
    let since = |of: fn(&ReadStatistics) -> u64| (of_reads(&after, of) - of_reads(&before.0, of)) as f64;
    let (false_positives, rejected) = (since(|reads| reads.false_positives), since(|reads| reads.rejected));
    Ok(Costs {
        nanoseconds: nanoseconds / count,
        blocks_read: since(|reads| reads.blocks_read) / count,
        blocks_used: since(ReadStatistics::blocks) / count,
        found: found as f64 / count,
        false_positive_rate: false_positives / (false_positives + rejected).max(1.0),
    })
}

/// A sum over the reads of all kinds and levels: without the blocks of compactions and of checks of filters, which run at the same time.
fn of_reads(statistics: &Statistics, of: fn(&ReadStatistics) -> u64) -> u64 {
    let levels = statistics.reads.iter();
    levels.flat_map(|level| [&level.points, &level.ranges, &level.prefixes, &level.seeks]).map(of).sum()
}

/// Replaces the filters of all tables for the sampled queries: by a given one, by none, or by those that the store chooses.
pub(super) fn replace_filters(db: &Db, name: &str, filter: Option<&TableFilter>) -> Result<(), BenchError> {
    let keyspace = db.default_keyspace();
    match filter {
        Some(filter) => db.rebuild_filters(&keyspace, std::slice::from_ref(filter))?,
        None => {
            // Those of an earlier choice must not decide.
            db.rebuild_filters(&keyspace, &[])?;
            if name == AUTO {
                db.check_filters(&keyspace)?;
            }
        }
    }
    Ok(())
}
