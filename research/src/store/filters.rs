//! Queries without a result in a store whose filters the store chooses, and with each family at the same memory.
//!
//! A store is loaded once for each kind of keys. For each point it is opened without a sample; the filters of all tables are
//! replaced by those of the point, after a warm-up with queries of the same kind. So families that design themselves, and the store
//! that chooses, know a sample of the queries that are measured.

use std::{hint::black_box, path::Path, sync::Arc};

use tamis::{Clock as _, Db, Filters, Keyspace, KeyspaceOptions, Options, TableFilter, WriteBatch};
use tamis_filter::auto::QueryKind;
use tamis_workload::SplitMix64;

use crate::inputs::{Form, Keys, OwnedQuery};
use tamis_bench::{
    Axis, BenchError, Context, Definition, Needs, Plot, Point, Row, Size, VALUE_BYTES, driver::blocks_of,
};

/// Maximum bits per key.
const BITS: u64 = 16;
/// Size of a write batch, in entries.
const BATCH_ENTRIES: usize = 1_000;
/// The name of the filters that the store chooses.
const AUTO: &str = "auto";
/// The filters of the points; sizes are at most [`BITS`].
const FILTERS: [&str; 9] = [
    AUTO,
    "blocked-bloom@10",
    "blocked-bloom@16",
    "surf:truncate=yes@16",
    "rosetta@16",
    "proteus@16",
    "1pbf@16",
    "2pbf@16",
    "grafite@16",
];
/// Kinds of keys and of queries without a result.
const QUERIES: [(&str, &str); 13] = [
    ("uniform", "uniform_r0"),
    ("uniform", "uniform_r32"),
    ("uniform", "uniform_r1m"),
    ("uniform", "correlated_r32"),
    ("events", "points"),
    ("events", "uniform_r1024"),
    ("events", "correlated_r32"),
    ("domains", "points"),
    ("domains", "prefix_b64"),
    ("emails", "points"),
    ("emails", "prefix_b96"),
    ("composite", "points"),
    ("composite", "ranges"),
];

/// The experiment.
pub(super) const FILTERS_AT_WORK: Definition = Definition {
    name: "store-filters",
    title: "Queries without a result: the filters that the store chooses and each family",
    source: "",
    about: "Blocks read and time of points, ranges and prefixes without a result, in a settled store of 116-byte entries, with the filters that the store chooses and with each family at the same maximum memory.",
    points,
    measure,
    plots: &[
        Plot {
            name: "blocks",
            title: "Blocks read per query",
            x: "filters",
            y: "blocks_per_query",
            series: "queries",
            panel: "keys",
            ..Plot::NEW
        },
        Plot {
            name: "time",
            title: "Nanoseconds per query",
            x: "filters",
            y: "ns_per_query",
            series: "queries",
            panel: "keys",
            y_axis: Axis::Log,
            ..Plot::NEW
        },
    ],
    paper: &[],
};

fn points(size: Size) -> Vec<Point> {
    let entries: u64 = size.pick(20_000, 1_000_000, 10_000_000);
    let queries: u64 = size.pick(2_000, 50_000, 200_000);
    let mut points = Vec::new();
    for (keys, kind) in QUERIES {
        for filters in FILTERS {
            let point = Point::new().with("keys", keys).with("queries", kind).with("filters", filters);
            let needs = Needs { disk_bytes: entries * 480, memory_bytes: entries * 200 + (256 << 20) };
            points.push(point.with("entries", entries).with("count", queries).needing(needs));
        }
    }
    points
}

/// A loaded store; the folder is deleted with the last reference.
struct Loaded {
    folder: tempfile::TempDir,
    keys: Keys,
}

const KEYSPACE: &str = "filters";

fn options() -> KeyspaceOptions {
    KeyspaceOptions { filters: Filters::auto(BITS as f32), ..KeyspaceOptions::default() }
}

fn load(name: &str, entries: u64, context: &mut Context<'_>) -> Result<Loaded, BenchError> {
    let folder = context.scratch()?;
    let keys = Keys::generate(name, Form::Hex, entries as usize, context.seed())?;
    let mut encoded = keys.encoded();
    let mut random = SplitMix64::new(context.seed());
    for index in (1..encoded.len()).rev() {
        encoded.swap(index, random.below(index as u64 + 1) as usize);
    }
    let db = Db::open_with(folder.path(), Options::default())?;
    let keyspace = db.create_keyspace(KEYSPACE, options())?;
    let batches = encoded.chunks(BATCH_ENTRIES);
    let batch_count = batches.len();
    for (index, keys) in batches.enumerate() {
        let mut batch = WriteBatch::new();
        for key in keys {
            let mut value = [0; VALUE_BYTES];
            tamis_workload::fill_value(random.next_u64(), &mut value);
            batch.put(&keyspace, key, value)?;
        }
        db.write(batch)?;
        context.progress(0.5 * index as f64 / batch_count as f64)?;
    }
    db.flush()?;
    db.wait_for_compactions()?;
    drop(keyspace);
    db.close()?;
    Ok(Loaded { folder, keys })
}

fn execute(keyspace: &Keyspace, query: &OwnedQuery) -> Result<u64, BenchError> {
    Ok(match query.kind {
        QueryKind::Point => u64::from(keyspace.get(&query.lower)?.is_some()),
        QueryKind::Prefix => count(keyspace.prefix(&query.lower))?,
        _ => count(keyspace.range(query.lower.as_slice()..=query.upper.as_slice()))?,
    })
}

fn count(mut scan: tamis::Scan) -> Result<u64, BenchError> {
    let mut count = 0;
    while scan.move_next()? {
        count += 1;
    }
    Ok(count)
}

fn run(keyspace: &Keyspace, queries: &[OwnedQuery], context: &mut Context<'_>) -> Result<u64, BenchError> {
    let mut found = 0;
    for (index, query) in queries.iter().enumerate() {
        found += execute(keyspace, black_box(query))?;
        if index % 1_000 == 0 {
            context.progress(index as f64 / queries.len() as f64)?;
        }
    }
    Ok(found)
}

/// Removes the sampled queries, so that those of the point before do not decide.
fn remove_sample(folder: &Path) -> Result<(), BenchError> {
    let path = folder.join("SAMPLES");
    #[expect(clippy::disallowed_methods, reason = "a store without its sample is measured")]
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(BenchError::io(&path)(error)),
        _ => Ok(()),
    }
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let (name, kind, filters) = (point.text("keys")?, point.text("queries")?, point.text("filters")?);
    let (entries, count) = (point.integer("entries")?, point.integer("count")? as usize);
    let loaded: Arc<Loaded> = context.input(&format!("store of {entries} {name}"), |context| {
        context.part(0.0..0.6, |context| load(name, entries, context))
    })?;
    remove_sample(loaded.folder.path())?;
    let warm_up = loaded.keys.queries(kind, count / 2, context.seed() ^ 1)?;
    let queries = loaded.keys.queries(kind, count, context.seed() ^ 2)?;
    let db = Db::open_with(loaded.folder.path(), Options::default())?;
    let keyspace = db.keyspace(KEYSPACE)?;
    context.part(0.6..0.7, |context| run(&keyspace, &warm_up, context))?;
    let before = context.clock().now();
    match filters {
        // The filters of the point before must not decide.
        AUTO => {
            db.rebuild_filters(&keyspace, &[])?;
            db.check_filters(&keyspace)?;
        }
        given => db.rebuild_filters(&keyspace, &[given.parse::<TableFilter>()?])?,
    }
    let build_seconds = (context.clock().now() - before).as_secs_f64();
    // Opens the tables, and loads the filters.
    context.part(0.7..0.8, |context| run(&keyspace, &warm_up, context))?;
    let before = (db.statistics(), context.clock().now());
    let found = context.part(0.8..1.0, |context| run(&keyspace, &queries, context))?;
    let nanoseconds = (context.clock().now() - before.1).as_nanos() as f64;
    let after = db.statistics();
    if found > 0 {
        return Err(BenchError::Other(format!("{found} entries found, expected none")));
    }
    let queries = queries.len().max(1) as f64;
    let design = db.table_filters(&keyspace)?.into_iter().flat_map(|table| table.designs).next_back();
    drop(keyspace);
    db.close()?;
    Ok(Row::new()
        .with("blocks_per_query", (blocks_of(&after) - blocks_of(&before.0)) as f64 / queries)
        .with("ns_per_query", nanoseconds / queries)
        .with("build_seconds", build_seconds)
        .with("design", design.unwrap_or_default()))
}
