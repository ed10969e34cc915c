//! Promises of sorted views. The same entries are in eight overlapping runs with a view, in eight runs without one, in one run, and
//! in two settled stores with default options.

use std::{sync::Arc, time::Duration};

use tamis::{Clock as _, Filters, KeyspaceOptions, Options, Views};
use tamis_bench::{
    BenchError, Context, Point, Row, VALUE_BYTES,
    driver::{Drive, Script, TamisStore, Values, drive},
};
use tamis_workload::OperationKind;

use super::{Result, median_ratio};
use crate::{
    layouts::statistics,
    stores::{Shape, operation, operations},
};

const RUNS: u64 = 8;
/// The stores of a point.
const VIEWED: &str = "viewed";
const MERGED: &str = "merged";
const SINGLE: &str = "single";
const SETTLED: [(&str, Views); 2] = [("settled with views", Views::On), ("settled without", Views::Off)];

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row> {
    let entries = point.integer("entries")?;
    let stores: Arc<Stores> =
        context.input(&format!("view of {entries}"), |context| Stores::load(entries, context))?;
    let (name, threads) = (point.text("operation")?, point.integer("threads")?);
    if name == "build" {
        let view = statistics(&stores.find(VIEWED)?.store)?.views;
        return Ok(Row::new()
            .with("bytes_per_entry", view.bytes as f64 / entries as f64)
            .with("time_ratio", stores.rebuild_seconds / stores.merge_seconds));
    }
    let keyspaces = point.text("keyspaces")?;
    let Some((first, second)) = keyspaces.split_once(", ") else {
        return Err(BenchError::Other(format!("not two keyspaces: {keyspaces}")));
    };
    let (first, second) = (stores.find(first)?, stores.find(second)?);
    let count = match name {
        "seek-50" | "seek-back-50" | "ycsb-e" => 20_000,
        _ => 100_000,
    };
    let count = count.min(entries / 10);
    let run = |one: &Filled, threads: u64, context: &mut Context<'_>| {
        one.shape.run(&one.store, operations(name, entries, count * threads, 0)?, threads as usize, context)
    };
    if name == "empty-range" {
        // The view gets filters after the first ranges that it admits.
        let built_before = first.store.db.statistics().views_built;
        run(first, 1, context)?;
        let is_built = || first.store.db.statistics().views_built > built_before;
        wait_until(context, "view with filters", is_built)?;
    }
    let ratio =
        median_ratio(|| Ok([run(second, threads, context)?.seconds, run(first, threads, context)?.seconds]))?;
    let counters = run(first, 1, context)?.counters;
    let blocks = counters.blocks_read.unwrap_or(0) + counters.cache_hits.unwrap_or(0);
    Ok(Row::new()
        .with("ratio", ratio)
        .with("blocks", blocks as f64 / count as f64)
        .with("runs_of_second", second.run_count()?))
}

fn wait_until(context: &mut Context<'_>, what: &str, is_built: impl Fn() -> bool) -> Result<()> {
    for _ in 0..120_000 {
        if is_built() {
            return Ok(());
        }
        context.progress(0.5)?;
        std::thread::park_timeout(Duration::from_millis(5));
    }
    Err(BenchError::Other(format!("no {what} was built in ten minutes")))
}

/// A store with all entries.
struct Filled {
    name: &'static str,
    store: TamisStore,
    shape: Shape,
    _folder: tempfile::TempDir,
}

impl Filled {
    fn new(
        name: &'static str,
        keyspace: KeyspaceOptions,
        entries: u64,
        context: &Context<'_>,
    ) -> Result<Self> {
        let folder = context.scratch()?;
        let shape = Shape::new(Options::default(), keyspace, entries, VALUE_BYTES);
        let store = TamisStore::open(folder.path(), &shape.options)?;
        Ok(Self { name, store, shape, _folder: folder })
    }

    /// Writes an eighth of the entries, and flushes.
    fn fill(&self, run: u64, context: &mut Context<'_>) -> Result<()> {
        let entries = self.shape.entries;
        let items = entries * run / RUNS..entries * (run + 1) / RUNS;
        let inserts = items.map(|item| operation(OperationKind::Insert, item));
        let script = Script::deal(inserts, self.shape.form, 1);
        drive(&self.store, &Drive::new(&script, &Values::new(VALUE_BYTES, run)), context)?;
        Ok(self.store.db.flush()?)
    }

    fn run_count(&self) -> Result<u64> {
        Ok(statistics(&self.store)?.levels.iter().map(|level| level.run_count as u64).sum())
    }
}

/// Stores with the same entries.
struct Stores {
    all: Vec<Filled>,
    /// Seconds to add the last run to the view of the others.
    rebuild_seconds: f64,
    /// Seconds to merge the same runs into one.
    merge_seconds: f64,
}

impl Stores {
    fn load(entries: u64, context: &mut Context<'_>) -> Result<Self> {
        let unmerged = |views| {
            KeyspaceOptions::default()
                .level0_runs(64)
                .memtable_bytes(1 << 30)
                .filters(Filters::bits(10.0))
                .views(views)
        };
        let mut stores = Self { all: Vec::new(), rebuild_seconds: 0.0, merge_seconds: 0.0 };
        let kinds =
            [(VIEWED, unmerged(Views::On)), (MERGED, unmerged(Views::Off)), (SINGLE, unmerged(Views::Off))];
        let settled = SETTLED.map(|(name, views)| (name, KeyspaceOptions::default().views(views)));
        for (name, keyspace) in kinds.into_iter().chain(settled) {
            let filled = Filled::new(name, keyspace, entries, context)?;
            for run in 0..RUNS {
                filled.fill(run, context)?;
                let start = context.clock().now();
                if name == VIEWED && run > 0 {
                    let runs = || statistics(&filled.store).map_or(0, |found| found.views.run_count as u64);
                    wait_until(context, "view", || runs() == run + 1)?;
                    stores.rebuild_seconds = (context.clock().now() - start).as_secs_f64();
                }
            }
            if name == SINGLE {
                let start = context.clock().now();
                filled.store.db.compact_range(&filled.store.keyspace, ..)?;
                stores.merge_seconds = (context.clock().now() - start).as_secs_f64();
            }
            filled.store.db.wait_for_compactions()?;
            stores.all.push(filled);
        }
        for (name, expected) in [(VIEWED, RUNS), (MERGED, RUNS), (SINGLE, 1)] {
            let run_count = stores.find(name)?.run_count()?;
            if run_count != expected {
                return Err(BenchError::Other(format!("{run_count} runs instead of {expected}")));
            }
        }
        Ok(stores)
    }

    fn find(&self, name: &str) -> Result<&Filled> {
        let found = self.all.iter().find(|filled| filled.name == name);
        found.ok_or_else(|| BenchError::Other(format!("no store {name:?}")))
    }
}
