//! Measures a store whose queries change while keys are put, in batches of queries.
//!
//! A run is one input that the points of its batches share. The same run is made on a reference store, which gets the same keys and the same
//! puts at the same points, but only the new queries, from the warm-up on: its sample and its filters are those of the new queries.
//! `ratio_to_new` relates the blocks that a query reads in a batch to those of the same batch there, from the batch on in which
//! at least half of the queries are new. Both sides are increased by one read in a thousand queries, below which a difference does
//! not matter.

use std::sync::Arc;

use tamis::{Db, Filters, TableFilter};
use tamis_workload::SplitMix64;

use super::store::{AUTO, Costs, NONE, Shape, filter, put_all, replace_filters, run};
use crate::{
    inputs::{Keys, OwnedQuery},
    stores::{settle, value},
};
use tamis_bench::{BenchError, Context, Point, Row};

/// Batches of queries in a run.
const BATCH_COUNT: u64 = 20;
/// Reads per query that do not matter.
const READS_MIN: f64 = 0.001;
/// Queries for each put, as in the paper: 60 million queries and 40 million puts.
const QUERIES_PER_PUT: f64 = 1.5;

/// How the queries change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transition {
    /// The share of the new queries grows from 0 to 1.
    Gradual,
    /// In the middle.
    Immediate,
}

/// The batches of a run, and those of the reference store.
struct Timeline {
    batches: Vec<Costs>,
    new: Vec<Costs>,
}

/// The parameters of a run.
struct Run<'a> {
    shape: &'a Shape,
    /// The kinds of queries at the beginning and at the end.
    kinds: (&'a str, &'a str),
    transition: Transition,
    name: &'a str,
    filter: Option<TableFilter>,
    bits: f64,
}

/// Measures a batch.
pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let transition = match point.text("transition")? {
        "gradual" => Transition::Gradual,
        _ => Transition::Immediate,
    };
    let shape = Shape::of(point)?;
    let (first, last) = (point.text("from")?, point.text("to")?);
    let (name, bits) = (point.text("filters")?, point.number("bits")?);
    let label = format!("{transition:?} {shape:?} {first} {last} {name} {bits}");
    let run = Run {
        shape: &shape,
        kinds: (first, last),
        transition,
        name,
        filter: filter(name, "bits=40", bits)?,
        bits,
    };
    let timeline: Arc<Timeline> = context.input(&label, |context| {
        let batches = context.part(0.0..0.5, |context| run.measure(context))?;
        let reference = Run { kinds: (last, last), filter: run.filter.clone(), ..run };
        let new = context.part(0.5..1.0, |context| reference.measure(context))?;
        Ok(Timeline { batches, new })
    })?;
    let batch = point.integer("batch")? as usize;
    let (Some(costs), Some(new)) = (timeline.batches.get(batch), timeline.new.get(batch)) else {
        return Err(BenchError::other(format!("no batch {batch}")));
    };
    let seconds = |costs: &Costs| costs.nanoseconds * 1e-9;
    let count = queries_per_batch(&shape) as f64;
    let cumulative: f64 = timeline.batches.iter().take(batch + 1).map(|costs| seconds(costs) * count).sum();
    let is_new = 2 * batch as u64 >= BATCH_COUNT;
    let ratio = (costs.blocks_used + READS_MIN) / (new.blocks_used + READS_MIN);
    Ok(Row::new()
        .with("ns_per_query", costs.nanoseconds)
        .with("cumulative_seconds", cumulative)
        .with("blocks_per_query", costs.blocks_used)
        .with("false_positive_rate", costs.false_positive_rate)
        .with("new_blocks_per_query", new.blocks_used)
        .with("new_false_positive_rate", new.false_positive_rate)
        .with("ratio_to_new", is_new.then_some(ratio)))
}

fn queries_per_batch(shape: &Shape) -> usize {
    (QUERIES_PER_PUT * 2.0 * shape.entries as f64 / BATCH_COUNT as f64) as usize
}

/// Queries that are empty with all keys, those that are put during the run included.
fn queries(
    keys: &Keys,
    (first, last): (&str, &str),
    transition: Transition,
    batch: u64,
    count: usize,
    seed: u64,
) -> Result<Vec<OwnedQuery>, BenchError> {
    let seed = seed + 10 * batch;
    let (old, new) = (keys.queries(first, count, seed)?, keys.queries(last, count, seed + 1)?);
    let mut random = SplitMix64::new(seed + 2);
    let start = batch as f64 / BATCH_COUNT as f64;
    let chosen = old.into_iter().zip(new).enumerate().map(|(index, (old, new))| {
        let place = start + index as f64 / (count as f64 * BATCH_COUNT as f64);
        let is_new = match transition {
            Transition::Gradual => random.unit() < place,
            Transition::Immediate => place >= 0.5,
        };
        if is_new { new } else { old }
    });
    Ok(chosen.collect())
}

/// The keys that are stored at first, ascending, and `later` others in random order.
fn divided(keys: Vec<Vec<u8>>, later: usize, random: &mut SplitMix64) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut stored, mut put) = (Vec::new(), Vec::new());
    let mut left = keys.len();
    for key in keys {
        let is_later = random.below(left as u64) < (later - put.len()) as u64;
        if is_later { &mut put } else { &mut stored }.push(key);
        left -= 1;
    }
    for index in (1..put.len()).rev() {
        put.swap(index, random.below(index as u64 + 1) as usize);
    }
    (stored, put)
}

impl Run<'_> {
    /// The costs of each batch.
    fn measure(&self, context: &mut Context<'_>) -> Result<Vec<Costs>, BenchError> {
        let Self { shape, kinds, transition, name, ref filter, bits } = *self;
        let keys = Keys::generate(&shape.keys, 3 * shape.entries as usize, context.seed())?;
        let mut random = SplitMix64::new(context.seed());
        let (stored, put) = divided(keys.encoded(), 2 * shape.entries as usize, &mut random);
        let folder = context.scratch()?;
        let filters = match (filter, name) {
            (Some(filter), _) => Filters::each([filter.clone()]),
            (None, NONE) => Filters::none(),
            (None, _) => Filters::auto(bits as f32),
        };
        let whole = Shape { entries: 3 * shape.entries, ..shape.clone() };
        let db = Db::open_with(folder.path(), whole.options("direct", filters))?;
        put_all(&db, stored, shape.value_bytes, context)?;
        settle(&db)?;
        let count = queries_per_batch(shape);
        let seed = context.seed() + 1_000;
        // The first sample.
        let warm_up = keys.queries(kinds.0, count, seed - 1)?;
        run(&db, &warm_up, context, |_| Ok(()))?;
        rebuild(&db, name, filter.as_ref())?;

        let keyspace = db.default_keyspace();
        let mut batches = Vec::new();
        let mut put = put.into_iter();
        for batch in 0..BATCH_COUNT {
            let queries = queries(&keys, kinds, transition, batch, count, seed)?;
            let mut due = 0.0;
            let costs = run(&db, &queries, context, |_| {
                due += 1.0 / QUERIES_PER_PUT;
                if due >= 1.0 {
                    due -= 1.0;
                    if let Some(key) = put.next() {
                        keyspace.put(key, value(&mut random, shape.value_bytes as usize))?;
                    }
                }
                Ok(())
            })?;
            batches.push(costs);
        }
        db.close()?;
        Ok(batches)
    }
}

/// Builds the filters of all tables for the sampled queries.
fn rebuild(db: &Db, name: &str, filter: Option<&TableFilter>) -> Result<(), BenchError> {
    match name {
        NONE => Ok(()),
        AUTO => {
            // Filters that were given are always replaced, those that were chosen only if others cost much less.
            db.rebuild_filters(&db.default_keyspace(), &[TableFilter::bits(1.0)])?;
            db.check_filters(&db.default_keyspace())?;
            Ok(())
        }
        _ => replace_filters(db, name, filter),
    }
}
