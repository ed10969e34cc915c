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

use std::{hint::black_box, sync::Arc};

use tamis::{Clock as _, Db, Filters, Keyspace, KeyspaceOptions, Options};
use tamis_workload::{KeyForm, Permutation, SplitMix64, mix64};
use tempfile::TempDir;

use crate::stores::{put_all, settle};
use tamis_bench::{BenchError, Context, Point, Row, VALUE_BYTES, driver::blocks_of, filter::median};

/// Width of an empty range, in numbers: the distance of two keys is far greater.
const WIDTH: u64 = 32;
const FORM: KeyForm = KeyForm::Hex;

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

/// The number of an entry: distinct, and more than [`WIDTH`] apart for all but few.
fn number_of(index: u64) -> u64 {
    mix64(index)
}

fn key_of(number: u64) -> Vec<u8> {
    let mut key = Vec::new();
    FORM.encode(number, &mut key);
    key
}

/// A store that was loaded at random, settled and closed.
fn load(entries: u64, filters: &Filters, context: &mut Context<'_>) -> Result<TempDir, BenchError> {
    let folder = context.scratch()?;
    let keyspace = KeyspaceOptions::default().filters(filters.clone());
    let db = Db::open_with(folder.path(), Options::default().default_keyspace(keyspace))?;
    let order = Permutation::new(entries, context.seed());
    let keys = (0..entries as usize).map(|place| key_of(number_of(order.at(place as u64))));
    put_all((&db, &db.default_keyspace()), keys, VALUE_BYTES, context)?;
    settle(&db)?;
    db.close()?;
    Ok(folder)
}

/// Writes a checkpoint of a store into a separate folder.
fn copy(db: &Db, context: &Context<'_>) -> Result<TempDir, BenchError> {
    let folder = context.scratch()?;
    db.checkpoint(folder.path())?;
    Ok(folder)
}

/// Runs queries of a kind; returns how many entries they found.
fn run(keyspace: &Keyspace, kind: &str, (entries, count): (u64, u64), seed: u64) -> Result<u64, BenchError> {
    let mut random = SplitMix64::new(seed);
    let mut found = 0;
    for _ in 0..count {
        let present = number_of(random.below(entries));
        let other = random.next_u64();
        found += match kind {
            "get" => u64::from(black_box(keyspace.get(key_of(present))?).is_some()),
            "get-absent" => u64::from(black_box(keyspace.get(key_of(other))?).is_some()),
            "seek" => steps(keyspace, other, 1)?,
            "seek-50" => steps(keyspace, other, 51)?,
            _ => {
                let lower = if kind == "empty-far" { other } else { present.wrapping_add(1) };
                let upper = lower.saturating_add(WIDTH - 1);
                let mut scan = keyspace.range(key_of(lower)..=key_of(upper));
                u64::from(scan.move_next()?)
            }
        };
    }
    Ok(found)
}

/// Seeks and takes up to `count` entries.
fn steps(keyspace: &Keyspace, number: u64, count: u64) -> Result<u64, BenchError> {
    let mut scan = keyspace.range(..);
    scan.seek(key_of(number))?;
    let mut found = 0;
    while found < count && scan.move_next()? {
        black_box(scan.value());
        found += 1;
    }
    Ok(found)
}

/// Options of a store that is a copy of the other one: its filters stay as they are.
fn options(part: &str, is_with: bool) -> Options {
    Options::default().sample_queries(is_with || part != SAMPLE).workers(0)
}

fn filters(is_chosen: bool) -> Filters {
    if is_chosen { Filters::auto(16.0) } else { Filters::bits(10.0) }
}

/// One of the two stores of a point.
struct Side {
    db: Db,
    /// Deleted after the store is closed.
    _folder: TempDir,
    nanoseconds: Vec<f64>,
    blocks: u64,
    found: u64,
}

impl Side {
    /// A copy of the loaded store with such filters; after queries of the point, from which filters are chosen.
    fn prepared(point: &Point, is_chosen: bool, context: &mut Context<'_>) -> Result<Self, BenchError> {
        let entries = point.integer("entries")?;
        let filters = filters(is_chosen);
        let loaded: Arc<TempDir> = context
            .input(&format!("store of {entries}, {filters:?}"), |context| load(entries, &filters, context))?;
        let original = Db::open(loaded.path())?;
        let folder = copy(&original, context)?;
        original.close()?;
        let side = Self::open(folder, Options::default())?;
        let keyspace = side.db.default_keyspace();
        run(&keyspace, point.text("queries")?, (entries, point.integer("count")?), context.seed() ^ 3)?;
        if is_chosen {
            side.db.check_filters(&keyspace)?;
        }
        Ok(side)
    }

    fn open(folder: TempDir, options: Options) -> Result<Self, BenchError> {
        let db = Db::open_with(folder.path(), options)?;
        Ok(Self { db, _folder: folder, nanoseconds: Vec::new(), blocks: 0, found: 0 })
    }

    fn round(
        &mut self,
        kind: &str,
        size: (u64, u64),
        round: u64,
        context: &Context<'_>,
    ) -> Result<(), BenchError> {
        let before = (blocks_of(&self.db.statistics()), context.clock().now());
        let found = run(&self.db.default_keyspace(), kind, size, round)?;
        let time = context.clock().now() - before.1;
        if round > 0 {
            self.nanoseconds.push(time.as_nanos() as f64 / size.1.max(1) as f64);
            self.blocks += blocks_of(&self.db.statistics()) - before.0;
            self.found += found;
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
        let folder = copy(&original.db, context)?;
        Side::open(folder, options(part, is_with))
    });
    original.db.close()?;
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
    let (kind, size) = (point.text("queries")?, (point.integer("entries")?, count));
    for round in 0..=part.rounds {
        let mut sides = [&mut with, &mut without];
        if round % 2 == 1 {
            sides.reverse();
        }
        for side in sides {
            side.round(kind, size, round, context)?;
        }
        context.progress(0.8 + 0.2 * (round + 1) as f64 / (part.rounds + 1) as f64)?;
    }
    if with.found != without.found {
        return Err(BenchError::Other(format!("{} and {} entries found", with.found, without.found)));
    }
    let queries = (count * part.rounds) as f64;
    let tables = with.db.table_filters(&with.db.default_keyspace())?;
    // Of the deepest level, which has most of the keys.
    let design = tables.into_iter().flat_map(|table| table.designs).next_back();
    let row = of_times(&with.nanoseconds, &without.nanoseconds)
        .with("blocks_with", with.blocks as f64 / queries)
        .with("blocks_without", without.blocks as f64 / queries)
        .with("design", design.unwrap_or_default());
    with.db.close()?;
    without.db.close()?;
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
        let folder = context.part(share, |context| load(entries, &filters(index == 0), context))?;
        let load_time = context.clock().now() - start;
        // The compaction chooses filters for sampled queries, the load for the assumed ones.
        let db = Db::open(folder.path())?;
        let count = point.integer("count")?;
        run(&db.default_keyspace(), "empty-near", (entries, count), context.seed() ^ 3)?;
        if index == 0 {
            db.check_filters(&db.default_keyspace())?;
        }
        let start = context.clock().now();
        db.compact_range(&db.default_keyspace(), ..)?;
        let compaction_time = context.clock().now() - start;
        db.close()?;
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
