//! Promises of sorted views. The same entries are in eight overlapping runs with a view, in eight runs without one, in one run, and
//! in two settled keyspaces with default options.

use std::{hint::black_box, sync::Arc, time::Duration};

use tamis::{Clock as _, Db, Filters, Keyspace, KeyspaceOptions, Views};
use tamis_bench::{BenchError, Context, Point, Row, VALUE_BYTES};
use tamis_workload::{SplitMix64, operations::hex_digits};

use super::{Result, blocks, get_present, median_ratio, seconds, seek, statistics_of};
use crate::stores::put_all;

const RUNS: u64 = 8;

pub(crate) fn measure(point: &Point, context: &mut Context<'_>) -> Result<Row> {
    let entries = point.integer("entries")?;
    let stores: Arc<Stores> =
        context.input(&format!("view of {entries}"), |context| Stores::load(entries, context))?;
    let (name, threads) = (point.text("operation")?, point.integer("threads")?);
    if name == "build" {
        let view = statistics_of(&stores.db, "viewed")?.views;
        return Ok(Row::new()
            .with("bytes_per_entry", view.bytes as f64 / entries as f64)
            .with("time_ratio", stores.rebuild_seconds / stores.merge_seconds));
    }
    let keyspaces = point.text("keyspaces")?;
    let Some((first, second)) = keyspaces.split_once(", ") else {
        return Err(BenchError::Other(format!("not two keyspaces: {keyspaces}")));
    };
    let (first, second) = (stores.db.keyspace(first)?, stores.db.keyspace(second)?);
    let operation = |keyspace: &Keyspace, random: &mut SplitMix64| run(name, entries, keyspace, random);
    let count = match name {
        "seek-50" | "seek-back-50" | "ycsb-e" => 20_000,
        _ => 100_000,
    };
    let count = count.min(entries / 10);
    if name == "empty-range" {
        // The view gets filters after the first ranges that it admits.
        let built_before = stores.db.statistics().views_built;
        seconds(1, 100_000, |_, random| operation(&first, random))?;
        wait_until(context, "view with filters", || stores.db.statistics().views_built > built_before)?;
    }
    let ratio = median_ratio(|| {
        context.progress(0.5)?;
        let seconds = |keyspace| seconds(threads, count, |_, random| operation(keyspace, random));
        Ok([seconds(&second)?, seconds(&first)?])
    })?;
    let blocks_before = blocks(&stores.db);
    seconds(1, count, |_, random| operation(&first, random))?;
    let blocks = blocks(&stores.db) - blocks_before;
    let runs = stores.run_count(&second)?;
    Ok(Row::new()
        .with("ratio", ratio)
        .with("blocks", blocks as f64 / count as f64)
        .with("runs_of_second", runs))
}

/// One operation of a kind.
fn run(name: &str, entries: u64, keyspace: &Keyspace, random: &mut SplitMix64) -> Result<()> {
    let number = random.next_u64();
    match name {
        "seek" => seek(keyspace, hex_digits(number), 0, false),
        "seek-50" => seek(keyspace, hex_digits(number), 50, false),
        "seek-back" => seek(keyspace, hex_digits(number), 0, true),
        "seek-back-50" => seek(keyspace, hex_digits(number), 50, true),
        "get" => get_present(keyspace, key(random.below(entries))),
        "get-absent" => {
            black_box(keyspace.get(hex_digits(number))?);
            Ok(())
        }
        "empty-range" => {
            let mut scan = keyspace.range(hex_digits(number)..hex_digits(number.saturating_add(1 << 16)));
            black_box(scan.move_next()?);
            Ok(())
        }
        // Scans of up to 100 entries, and one insert in 20 operations.
        "ycsb-e" => match random.below(20) {
            0 => Ok(keyspace.put(hex_digits(number), [7; VALUE_BYTES])?),
            _ => seek(keyspace, hex_digits(number), random.below(100), false),
        },
        _ => Err(BenchError::Other(format!("unknown operation: {name}"))),
    }
}

/// Keyspaces with the same entries.
struct Stores {
    db: Db,
    entries: u64,
    /// Seconds to add the last run to the view of the others.
    rebuild_seconds: f64,
    /// Seconds to merge the same runs into one.
    merge_seconds: f64,
    _folder: tempfile::TempDir,
}

/// The n-th key, in the order of loading.
fn key(number: u64) -> [u8; 16] {
    hex_digits(SplitMix64::new(number).next_u64())
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

impl Stores {
    fn load(entries: u64, context: &mut Context<'_>) -> Result<Self> {
        let folder = context.scratch()?;
        let db = Db::open(folder.path())?;
        let unmerged = |views| {
            KeyspaceOptions::default()
                .level0_runs(64)
                .memtable_bytes(1 << 30)
                .filters(Filters::bits(10.0))
                .views(views)
        };
        let settled = |views| KeyspaceOptions::default().views(views);
        let viewed = db.create_keyspace("viewed", unmerged(Views::On))?;
        let merged = db.create_keyspace("merged", unmerged(Views::Off))?;
        let single = db.create_keyspace("single", unmerged(Views::Off))?;
        let others = [
            db.create_keyspace("settled with views", settled(Views::On))?,
            db.create_keyspace("settled without", settled(Views::Off))?,
        ];
        let mut stores = Self { db, entries, rebuild_seconds: 0.0, merge_seconds: 0.0, _folder: folder };
        let clock = tamis::SystemClock::default();
        for run in 0..RUNS {
            for keyspace in [&merged, &single].into_iter().chain(&others) {
                stores.fill(keyspace, run, context)?;
                context.progress(run as f64 / RUNS as f64 / 2.0)?;
            }
        }
        let start = clock.now();
        stores.db.compact_range(&single, ..)?;
        stores.merge_seconds = (clock.now() - start).as_secs_f64();
        for run in 0..RUNS {
            stores.fill(&viewed, run, context)?;
            let start = clock.now();
            if run > 0 {
                let is_built = || {
                    statistics_of(&stores.db, "viewed")
                        .is_ok_and(|found| found.views.run_count as u64 == run + 1)
                };
                wait_until(context, "view", is_built)?;
            }
            stores.rebuild_seconds = (clock.now() - start).as_secs_f64();
        }
        stores.db.wait_for_compactions()?;
        for (keyspace, expected) in [(&viewed, RUNS), (&merged, RUNS), (&single, 1)] {
            let run_count = stores.run_count(keyspace)?;
            if run_count != expected {
                return Err(BenchError::Other(format!("{run_count} runs instead of {expected}")));
            }
        }
        Ok(stores)
    }

    /// Writes an eighth of the entries, and flushes.
    fn fill(&self, keyspace: &Keyspace, run: u64, context: &mut Context<'_>) -> Result<()> {
        let numbers = (self.entries * run / RUNS) as usize..(self.entries * (run + 1) / RUNS) as usize;
        put_all((&self.db, keyspace), numbers.map(|number| key(number as u64)), VALUE_BYTES, context)?;
        Ok(self.db.flush()?)
    }

    fn run_count(&self, keyspace: &Keyspace) -> Result<u64> {
        let levels = statistics_of(&self.db, keyspace.name())?.levels;
        Ok(levels.iter().map(|level| level.run_count as u64).sum())
    }
}
