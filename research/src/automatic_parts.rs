//! Costs and savings of the automatic parts of the store: the same work in two stores, one with the part and one without, in alternation.
//!
//! | part | with | without |
//! |---|---|---|
//! | `filters` | filters that the store chooses, up to 16 bits per key | Bloom filters of 10 bits |
//! | `load` | the same, while entries are written | the same |
//! | `sample` | queries are sampled (`sample_queries`) | they are not |
//!
//! Stores are loaded at random and settled. Those of a pair have had queries of the point, from which filters are chosen. The stores of
//! `sample` are copies of one store: they have the same tables and filters, and no background jobs.

use std::sync::Arc;

use tamis::{Clock as _, Db, Filters, KeyspaceOptions, Options};
use tempfile::TempDir;

use crate::stores::{Shape, operations};
use tamis_bench::{BenchError, Context, Point, Row, VALUE_BYTES, driver::TamisStore, filter::median};

const FILTERS: &str = "filters";
const LOAD: &str = "load";
const SAMPLE: &str = "sample";

/// A part of the store.
struct Part {
    name: &'static str,
    /// Rounds in which both stores do the work; there is one more before, which is not counted.
    rounds: u64,
    /// A round has one of so many of a point's queries.
    share: u64,
}

const PARTS: [Part; 3] = [
    Part { name: FILTERS, rounds: 5, share: 1 },
    Part { name: LOAD, rounds: 3, share: 1 },
    // Costs of a few percent: many short rounds.
    Part { name: SAMPLE, rounds: 60, share: 4 },
];

/// The entries of a store whose filters are chosen, or Bloom filters.
fn shape(entries: u64, is_chosen: bool, options: Options) -> Shape {
    let filters = if is_chosen { Filters::auto(16.0) } else { Filters::bits(10.0) };
    Shape::new(options, KeyspaceOptions::default().filters(filters), entries, VALUE_BYTES)
}

/// A store that was loaded at random, settled and closed.
fn load(shape: &Shape, context: &mut Context<'_>) -> Result<TempDir, BenchError> {
    let folder = context.scratch()?;
    let (store, _) = shape.fill(folder.path(), context)?;
    store.db.close()?;
    Ok(folder)
}

/// Writes a checkpoint of a store into a separate folder.
fn copy(db: &Db, context: &Context<'_>) -> Result<TempDir, BenchError> {
    let folder = context.scratch()?;
    db.checkpoint(folder.path())?;
    Ok(folder)
}

/// Options of a store that is a copy of the other one: its filters stay as they are.
fn options(part: &str, is_with: bool) -> Options {
    Options::default().sample_queries(is_with || part != SAMPLE).workers(0)
}

/// One of the two stores of a point.
struct Side {
    store: TamisStore,
    shape: Shape,
    /// Deleted after the store is closed.
    _folder: TempDir,
    nanoseconds: Vec<f64>,
    blocks: u64,
    found: u64,
}

impl Side {
    /// A copy of the loaded store with such filters; after queries of the point, from which filters are chosen.
    fn prepared(point: &Point, is_chosen: bool, context: &mut Context<'_>) -> Result<Self, BenchError> {
        let (entries, count) = (point.integer("entries")?, point.integer("count")?);
        let shape = shape(entries, is_chosen, Options::default());
        let loaded: Arc<TempDir> =
            context.input(&format!("store {shape:?}"), |context| load(&shape, context))?;
        let original = TamisStore::open(loaded.path(), &shape.options)?;
        let folder = copy(&original.db, context)?;
        original.db.close()?;
        let side = Self::open(folder, shape)?;
        let queries = operations(point.text("queries")?, entries, count, context.seed() ^ 3)?;
        side.shape.run(&side.store, queries, 1, context)?;
        if is_chosen {
            side.store.db.check_filters(&side.store.keyspace)?;
        }
        Ok(side)
    }

    fn open(folder: TempDir, shape: Shape) -> Result<Self, BenchError> {
        let store = TamisStore::open(folder.path(), &shape.options)?;
        Ok(Self { store, shape, _folder: folder, nanoseconds: Vec::new(), blocks: 0, found: 0 })
    }

    fn round(
        &mut self,
        kind: &str,
        count: u64,
        round: u64,
        context: &mut Context<'_>,
    ) -> Result<(), BenchError> {
        let queries = operations(kind, self.shape.entries, count, round)?;
        let measured = self.shape.run(&self.store, queries, 1, context)?;
        if round > 0 {
            let counters = measured.counters;
            self.nanoseconds.push(measured.seconds * 1e9 / count.max(1) as f64);
            self.blocks += counters.blocks_read.unwrap_or(0) + counters.cache_hits.unwrap_or(0);
            self.found += measured.found;
        }
        Ok(())
    }
}

/// The store with the part and the one without it.
fn pair(point: &Point, context: &mut Context<'_>) -> Result<[Side; 2], BenchError> {
    let part = point.text("part")?;
    if part == FILTERS {
        let with = context.part(0.0..0.4, |context| Side::prepared(point, true, context))?;
        let without = context.part(0.4..0.8, |context| Side::prepared(point, false, context))?;
        return Ok([with, without]);
    }
    let original = context.part(0.0..0.8, |context| Side::prepared(point, true, context))?;
    let sides = [true, false].map(|is_with| {
        let folder = copy(&original.store.db, context)?;
        Side::open(folder, shape(original.shape.entries, true, options(part, is_with)))
    });
    original.store.db.close()?;
    let [with, without] = sides;
    Ok([with?, without?])
}

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let name = point.text("part")?;
    let part = PARTS.iter().find(|part| part.name == name);
    let part = part.ok_or_else(|| BenchError::Other(format!("no part {name:?}")))?;
    if name == LOAD {
        return measure_load(point, part.rounds, context);
    }
    let [mut with, mut without] = pair(point, context)?;
    let count = (point.integer("count")? / part.share).max(1);
    let kind = point.text("queries")?;
    for round in 0..=part.rounds {
        let mut sides = [&mut with, &mut without];
        if round % 2 == 1 {
            sides.reverse();
        }
        for side in sides {
            side.round(kind, count, round, context)?;
        }
        context.progress(0.8 + 0.2 * (round + 1) as f64 / (part.rounds + 1) as f64)?;
    }
    if with.found != without.found {
        return Err(BenchError::Other(format!("{} and {} entries found", with.found, without.found)));
    }
    let queries = (count * part.rounds) as f64;
    let tables = with.store.db.table_filters(&with.store.keyspace)?;
    // Of the deepest level, which has most of the keys.
    let design = tables.into_iter().flat_map(|table| table.designs).next_back();
    let row = of_times(&with.nanoseconds, &without.nanoseconds)
        .with("blocks_with", with.blocks as f64 / queries)
        .with("blocks_without", without.blocks as f64 / queries)
        .with("design", design.unwrap_or_default());
    with.store.db.close()?;
    without.store.db.close()?;
    Ok(row)
}

/// The time of one round without the part, divided by that with it, and the times.
fn of_times(with: &[f64], without: &[f64]) -> Row {
    Row::new()
        .with("ratio", ratio(with, without))
        .with("ns_with", median(&mut with.to_vec()))
        .with("ns_without", median(&mut without.to_vec()))
}

fn ratio(with: &[f64], without: &[f64]) -> f64 {
    let mut ratios: Vec<f64> = with.iter().zip(without).map(|(with, without)| without / with).collect();
    median(&mut ratios)
}

/// Loads stores with chosen filters and with Bloom filters in turn, and writes all tables of each once more.
fn measure_load(point: &Point, rounds: u64, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let entries = point.integer("entries")?;
    let (mut loads, mut compactions) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let steps = (2 * (rounds + 1)) as f64;
    for step in 0..2 * (rounds + 1) {
        // The order changes in each round.
        let (round, index) = (step / 2, (step + step / 2) as usize % 2);
        let share = step as f64 / steps..(step + 1) as f64 / steps;
        let start = context.clock().now();
        let shape = shape(entries, index == 0, Options::default());
        let folder = context.part(share, |context| load(&shape, context))?;
        let load_time = context.clock().now() - start;
        // The compaction chooses filters for sampled queries, the load for the assumed ones.
        let store = TamisStore::open(folder.path(), &shape.options)?;
        let queries = operations("empty-near", entries, point.integer("count")?, context.seed() ^ 3)?;
        shape.run(&store, queries, 1, context)?;
        if index == 0 {
            store.db.check_filters(&store.keyspace)?;
        }
        let start = context.clock().now();
        store.db.compact_range(&store.keyspace, ..)?;
        let compaction_time = context.clock().now() - start;
        store.db.close()?;
        if round > 0 {
            for (times, time) in [(&mut loads, load_time), (&mut compactions, compaction_time)] {
                if let Some(times) = times.get_mut(index) {
                    times.push(time.as_nanos() as f64 / entries.max(1) as f64);
                }
            }
        }
    }
    let [with, without] = &loads;
    let [compaction_with, compaction_without] = &compactions;
    Ok(of_times(with, without).with("compaction_ratio", ratio(compaction_with, compaction_without)))
}
