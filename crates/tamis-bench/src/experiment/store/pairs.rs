//! Costs and savings of the automatic parts of the store: the same queries in two stores, one with the part and one without, in alternation.
//!
//! | part | with | without |
//! |---|---|---|
//! | `filters` | filters that the store chooses, up to 16 bits per key | Bloom filters of 10 bits |
//! | `gap cache` | false positives are not repeated ([`tamis::Options::gap_cache`]) | they are |
//! | `sample` | queries are sampled ([`tamis::Options::sample_queries`]) | they are not |
//!
//! Both stores are loaded at random and settled, and have had the queries of the point, from which filters are chosen.

use std::{hint::black_box, sync::Arc};

use tamis::{Clock as _, Db, Filters, Keyspace, KeyspaceOptions, Options, WriteBatch};
use tamis_workload::{KeyForm, Permutation, ScrambledZipfian, SplitMix64, mix64};

use super::load::{VALUE_BYTES, blocks_of};
use crate::{Axis, BenchError, Context, Definition, Needs, Plot, Point, Row, Size, limits::median};

/// Size of a write batch, in entries.
const BATCH_ENTRIES: u64 = 1_000;
/// Rounds in which both stores run the queries; the first is not counted.
const ROUNDS: u64 = 6;
/// Width of an empty range, in numbers: the distance of two keys is far greater.
const WIDTH: u64 = 32;
const FORM: KeyForm = KeyForm::Hex;

const FILTERS: &str = "filters";
const GAP_CACHE: &str = "gap cache";
const SAMPLE: &str = "sample";

/// The parts of the store, and the queries with which each is measured.
const POINTS: [(&str, &[&str]); 3] = [
    (FILTERS, &["get", "get-absent", "empty-near", "empty-far", "seek", "seek-50"]),
    (GAP_CACHE, &["empty-near-zipfian"]),
    (SAMPLE, &["get", "empty-near"]),
];

/// The experiment.
pub(super) const AUTOMATIC_PARTS: Definition = Definition {
    name: "store-automatic",
    title: "Costs and savings of chosen filters, the gap cache and the sample of queries",
    source: "",
    about: "Time and blocks of queries in two stores in alternation: with chosen filters and with Bloom filters of 10 bits, with the gap cache and without, with the sample of queries and without. The ratio is that of the times: above 1 the part saves time.",
    points,
    measure,
    plots: &[Plot {
        name: "ratio",
        title: "Time without the part / time with it",
        x: "queries",
        y: "ratio",
        series: "part",
        y_axis: Axis::Log,
        ..Plot::NEW
    }],
    paper: &[],
};

fn points(size: Size) -> Vec<Point> {
    let entries: u64 = size.pick(20_000, 1_000_000, 10_000_000);
    let count: u64 = size.pick(500, 50_000, 200_000);
    let mut points = Vec::new();
    for (part, queries) in POINTS {
        for kind in queries {
            let point = Point::new().with("part", part).with("queries", *kind);
            let needs = Needs { disk_bytes: entries * 960, memory_bytes: entries * 100 + (512 << 20) };
            points.push(point.with("entries", entries).with("count", count).needing(needs));
        }
    }
    points
}

/// The folder of a loaded store, deleted with the last reference; and the time of the load until it was settled.
struct Loaded {
    folder: tempfile::TempDir,
    seconds: f64,
}

/// The number of an entry: distinct, and more than [`WIDTH`] apart for all but few.
fn number_of(index: u64) -> u64 {
    mix64(index)
}

fn key_of(number: u64) -> Vec<u8> {
    let mut key = Vec::new();
    FORM.encode(number, &mut key);
    key
}

fn load(entries: u64, filters: &Filters, context: &mut Context<'_>) -> Result<Loaded, BenchError> {
    let folder = context.scratch()?;
    let keyspace = KeyspaceOptions { filters: filters.clone(), ..KeyspaceOptions::default() };
    let db = Db::open_with(folder.path(), Options { default_keyspace: keyspace, ..Options::default() })?;
    let keyspace = db.default_keyspace();
    let order = Permutation::new(entries, context.seed());
    let mut values = SplitMix64::new(context.seed());
    let start = context.clock().now();
    for first in (0..entries).step_by(BATCH_ENTRIES as usize) {
        let mut batch = WriteBatch::new();
        for place in first..(first + BATCH_ENTRIES).min(entries) {
            let mut value = [0; VALUE_BYTES];
            tamis_workload::fill_value(values.next_u64(), &mut value);
            batch.put(&keyspace, key_of(number_of(order.at(place))), value)?;
        }
        db.write(batch)?;
        context.progress(first as f64 / entries as f64)?;
    }
    db.flush()?;
    db.wait_for_compactions()?;
    let seconds = (context.clock().now() - start).as_secs_f64();
    db.close()?;
    Ok(Loaded { folder, seconds })
}

/// Runs queries of a kind; returns how many entries they found.
fn run(keyspace: &Keyspace, kind: &str, (entries, count): (u64, u64), seed: u64) -> Result<u64, BenchError> {
    let mut random = SplitMix64::new(seed);
    let zipfian = ScrambledZipfian::new(entries);
    let mut found = 0;
    for _ in 0..count {
        let index =
            if kind == "empty-near-zipfian" { zipfian.draw(&mut random) } else { random.below(entries) };
        let present = number_of(index);
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
    let mut scan = keyspace.range::<&[u8]>(..);
    scan.seek(key_of(number))?;
    let mut found = 0;
    while found < count && scan.move_next()? {
        black_box(scan.value());
        found += 1;
    }
    Ok(found)
}

fn options(part: &str, is_with: bool) -> Options {
    let of = |name: &str| is_with || part != name;
    Options { gap_cache: of(GAP_CACHE), sample_queries: of(SAMPLE), ..Options::default() }
}

/// One of the two stores of a point.
struct Side {
    db: Db,
    nanoseconds: Vec<f64>,
    blocks: u64,
    found: u64,
    load_seconds: f64,
}

impl Side {
    fn open(point: &Point, is_with: bool, context: &mut Context<'_>) -> Result<Self, BenchError> {
        let (part, kind) = (point.text("part")?, point.text("queries")?);
        let entries = point.integer("entries")?;
        let is_bloom = part == FILTERS && !is_with;
        let filters = if is_bloom { Filters::bits(10.0) } else { Filters::auto(16.0) };
        // The stores of a pair have separate folders.
        let label = format!("store of {entries}, {filters:?}, {}", part != FILTERS && !is_with);
        let loaded: Arc<Loaded> = context.input(&label, |context| load(entries, &filters, context))?;
        let db = Db::open_with(loaded.folder.path(), options(part, is_with))?;
        let keyspace = db.default_keyspace();
        run(&keyspace, kind, (entries, point.integer("count")?), context.seed() ^ 3)?;
        if !is_bloom {
            db.check_filters(&keyspace)?;
        }
        Ok(Self { db, nanoseconds: Vec::new(), blocks: 0, found: 0, load_seconds: loaded.seconds })
    }

    fn round(&mut self, point: &Point, round: u64, context: &Context<'_>) -> Result<(), BenchError> {
        let (entries, count) = (point.integer("entries")?, point.integer("count")?);
        let before = (blocks_of(&self.db.statistics()), context.clock().now());
        // The queries that repeat are the same in each round.
        let found = run(&self.db.default_keyspace(), point.text("queries")?, (entries, count), round)?;
        let time = context.clock().now() - before.1;
        if round > 0 {
            self.nanoseconds.push(time.as_nanos() as f64 / count.max(1) as f64);
            self.blocks += blocks_of(&self.db.statistics()) - before.0;
            self.found += found;
        }
        Ok(())
    }
}

fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row, BenchError> {
    let mut with = context.part(0.0..0.4, |context| Side::open(point, true, context))?;
    let mut without = context.part(0.4..0.8, |context| Side::open(point, false, context))?;
    for round in 0..ROUNDS {
        let mut sides = [&mut with, &mut without];
        if round % 2 == 1 {
            sides.reverse();
        }
        for side in sides {
            side.round(point, round, context)?;
        }
        context.progress(0.8 + 0.2 * (round + 1) as f64 / ROUNDS as f64)?;
    }
    if with.found != without.found {
        return Err(BenchError::Other(format!("{} and {} entries found", with.found, without.found)));
    }
    let queries = (point.integer("count")? * (ROUNDS - 1)).max(1) as f64;
    let ratios = with.nanoseconds.iter().zip(&without.nanoseconds).map(|(with, without)| without / with);
    let row = Row::new()
        .with("ratio", median(ratios.collect()))
        .with("ns_with", median(with.nanoseconds))
        .with("ns_without", median(without.nanoseconds))
        .with("blocks_with", with.blocks as f64 / queries)
        .with("blocks_without", without.blocks as f64 / queries)
        .with("load_ratio", without.load_seconds / with.load_seconds);
    with.db.close()?;
    without.db.close()?;
    Ok(row)
}
