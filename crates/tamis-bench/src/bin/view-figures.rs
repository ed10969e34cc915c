//! Measures the figures that sorted views must meet, on the file system of the machine, and prints them with their limits.
//!
//! The same entries are in eight overlapping runs with a view, in eight runs without one, in one run, and in two settled keyspaces
//! with default options. Each time is a ratio of two of them, measured alternately. `cargo run --release -p tamis-bench --bin
//! view-figures` takes ten million entries and needs a quiet machine and 9 GB of disk; `-- --quick` takes a twentieth of the entries. Exit
//! codes: 0 all limits are met; 1 a limit is missed; 2 the measurement failed or an argument is unknown.

use std::{process::ExitCode, time::Duration};

use tamis::{Clock as _, Db, Filters, Keyspace, KeyspaceOptions, SystemClock, Views, WriteBatch};
use tamis_bench::limits::{self, Limits, Result};
use tamis_workload::{SplitMix64, operations::hex_digits};

const RUNS: u64 = 8;
const STEPS: usize = 50;
const VALUE_BYTES: usize = 100;
/// Speed of a seek through a view relative to a merge of eight tables in the paper (Figure 11, weak locality), and with 50 steps.
const PAPER_SEEK: f64 = 5.1;
const PAPER_SEEK_50: f64 = 2.3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let count = match words.as_slice() {
        [] => 10_000_000,
        ["--quick"] => 500_000,
        _ => {
            eprintln!("usage: view-figures [--quick]");
            return ExitCode::from(2);
        }
    };
    let mut limits = Limits::new();
    let result = Stores::load(count).and_then(|stores| Figures { stores, limits: &mut limits }.measure_all());
    limits.exit_code(&result)
}

/// Keyspaces with the same entries.
struct Stores {
    db: Db,
    viewed: Keyspace,
    merged: Keyspace,
    single: Keyspace,
    settled_with: Keyspace,
    settled_without: Keyspace,
    count: u64,
    clock: SystemClock,
    /// To add the last run to the view of the others.
    rebuild_seconds: f64,
    /// To merge the same runs into one.
    merge_seconds: f64,
    _folder: tempfile::TempDir,
}

/// The n-th key, in the order of loading.
fn key(number: u64) -> [u8; 16] {
    hex_digits(SplitMix64::new(number).next_u64())
}

impl Stores {
    fn load(count: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let db = Db::open(folder.path())?;
        let runs_only = |views| KeyspaceOptions {
            level0_runs: 64,
            memtable_bytes: 1 << 30,
            filters: Filters::bits(10.0),
            views,
            ..KeyspaceOptions::default()
        };
        let settled = |views| KeyspaceOptions { views, ..KeyspaceOptions::default() };
        let create = |name, options| db.create_keyspace(name, options);
        let mut stores = Self {
            viewed: create("viewed", runs_only(Views::On))?,
            merged: create("merged", runs_only(Views::Off))?,
            single: create("single", runs_only(Views::Off))?,
            settled_with: create("settled with views", settled(Views::On))?,
            settled_without: create("settled without views", settled(Views::Off))?,
            count,
            clock: SystemClock::default(),
            rebuild_seconds: 0.0,
            merge_seconds: 0.0,
            _folder: folder,
            db,
        };
        for run in 0..RUNS {
            for keyspace in [&stores.merged, &stores.single] {
                stores.fill(keyspace, run)?;
            }
        }
        let start = stores.clock.now();
        stores.db.compact_range::<&[u8]>(&stores.single, ..)?;
        stores.merge_seconds = (stores.clock.now() - start).as_secs_f64();
        for run in 0..RUNS {
            stores.fill(&stores.viewed, run)?;
            let start = stores.clock.now();
            if run > 0 {
                stores.wait_for_view(run + 1)?;
            }
            stores.rebuild_seconds = (stores.clock.now() - start).as_secs_f64();
        }
        for keyspace in [&stores.settled_with, &stores.settled_without] {
            for run in 0..RUNS {
                stores.fill(keyspace, run)?;
            }
        }
        stores.db.wait_for_compactions()?;
        for (keyspace, expected) in [("viewed", RUNS), ("merged", RUNS), ("single", 1)] {
            let run_count = stores.run_count(keyspace);
            if run_count != expected {
                return Err(format!("{keyspace} has {run_count} runs instead of {expected}").into());
            }
        }
        Ok(stores)
    }

    /// Writes an eighth of the entries, and flushes.
    fn fill(&self, keyspace: &Keyspace, run: u64) -> Result<()> {
        let mut batch = WriteBatch::new();
        for number in self.count * run / RUNS..self.count * (run + 1) / RUNS {
            let mut value = [0; VALUE_BYTES];
            tamis_workload::fill_value(number, &mut value);
            batch.put(keyspace, key(number), value)?;
            if batch.len() == 1_000 {
                self.db.write(std::mem::take(&mut batch))?;
            }
        }
        self.db.write(batch)?;
        Ok(self.db.flush()?)
    }

    fn run_count(&self, name: &str) -> u64 {
        let keyspaces = self.db.statistics().keyspaces;
        let levels =
            keyspaces.iter().filter(|keyspace| keyspace.name == name).flat_map(|found| &found.levels);
        levels.map(|level| level.run_count as u64).sum()
    }

    fn view_bytes(&self) -> (u64, u64) {
        let keyspaces = self.db.statistics().keyspaces;
        let views = keyspaces.iter().find(|keyspace| keyspace.name == "viewed").map(|found| found.views);
        views.map_or((0, 0), |views| (views.run_count as u64, views.bytes))
    }

    fn wait_for_view(&self, run_count: u64) -> Result<()> {
        self.wait_until("view", || self.view_bytes().0 == run_count)
    }

    fn wait_until(&self, what: &str, is_built: impl Fn() -> bool) -> Result<()> {
        for _ in 0..120_000 {
            if is_built() {
                return Ok(());
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Err(format!("no {what} was built in ten minutes").into())
    }

    /// Blocks that reads have used.
    fn blocks(&self) -> u64 {
        let statistics = self.db.statistics();
        statistics.blocks_read + statistics.cache_hits
    }

    /// Seconds of `count` operations by each of `threads` threads.
    fn seconds(
        &self,
        threads: u64,
        count: u64,
        operation: impl Fn(&mut SplitMix64) -> Result<()> + Sync,
    ) -> Result<f64> {
        limits::seconds(&self.clock, threads, count, |_, random| operation(random))
    }

    /// Blocks that one of `count` operations uses.
    fn blocks_per_operation(
        &self,
        count: u64,
        operation: impl Fn(&mut SplitMix64) -> Result<()> + Sync,
    ) -> Result<f64> {
        let before = self.blocks();
        self.seconds(1, count, operation)?;
        Ok((self.blocks() - before) as f64 / count as f64)
    }

    /// Throughput of `operation` with the first keyspace divided by that with the second: the median of alternating rounds.
    fn ratio(
        &self,
        (first, second): (&Keyspace, &Keyspace),
        (threads, count): (u64, u64),
        operation: impl Fn(&Keyspace, &mut SplitMix64) -> Result<()> + Sync,
    ) -> Result<f64> {
        limits::median_ratio(|| {
            let seconds = |keyspace| self.seconds(threads, count, |random| operation(keyspace, random));
            Ok([seconds(second)?, seconds(first)?])
        })
    }
}

/// Measures and prints.
struct Figures<'a> {
    stores: Stores,
    limits: &'a mut Limits,
}

/// Seeks to a random key, then takes `steps` entries.
fn seek(keyspace: &Keyspace, random: &mut SplitMix64, steps: usize, is_backward: bool) -> Result<()> {
    limits::seek(keyspace, hex_digits(random.next_u64()), steps, is_backward)
}

impl Figures<'_> {
    fn measure_all(mut self) -> Result<()> {
        let bytes = self.stores.view_bytes().1 as f64 / self.stores.count as f64;
        self.limits.at_most("bytes of the view per entry", 3.25, bytes);
        let rebuild = self.stores.rebuild_seconds / self.stores.merge_seconds;
        self.limits.at_most("time of adding an eighth of the data to the view / of a merge", 0.25, rebuild);
        self.seeks()?;
        self.gets()?;
        self.empty_ranges()?;
        self.settled()
    }

    fn seeks(&mut self) -> Result<()> {
        for threads in [1, 2] {
            for is_backward in [false, true] {
                for steps in [0, STEPS] {
                    let direction = if is_backward { "backward" } else { "forward" };
                    let name = format!("seek + {steps} {direction}, {threads} threads");
                    let count = if steps == 0 { 100_000 } else { 20_000 };
                    let operation = |keyspace: &Keyspace, random: &mut SplitMix64| {
                        seek(keyspace, random, steps, is_backward)
                    };
                    let stores = &self.stores;
                    let single =
                        stores.ratio((&stores.viewed, &stores.single), (threads, count), operation)?;
                    let merged =
                        stores.ratio((&stores.viewed, &stores.merged), (threads, count), operation)?;
                    let blocks =
                        stores.blocks_per_operation(10_000, |random| operation(&stores.viewed, random))?;
                    self.limits.at_least(&format!("{name}: view / one run"), 0.6, single);
                    let merged_min = match (is_backward, steps) {
                        (true, _) => 1.0,
                        (false, 0) => PAPER_SEEK,
                        (false, _) => PAPER_SEEK_50,
                    };
                    self.limits.at_least(&format!("{name}: view / merge"), merged_min, merged);
                    if steps == 0 {
                        self.limits.at_most(&format!("{name}: blocks"), 1.3, blocks);
                    }
                }
            }
        }
        Ok(())
    }

    fn gets(&mut self) -> Result<()> {
        let count = self.stores.count;
        let present = |keyspace: &Keyspace, random: &mut SplitMix64| {
            limits::get_present(keyspace, key(random.below(count)))
        };
        let absent = |keyspace: &Keyspace, random: &mut SplitMix64| {
            std::hint::black_box(keyspace.get(hex_digits(random.next_u64()))?);
            Ok(())
        };
        let stores = &self.stores;
        let pair = (&stores.viewed, &stores.merged);
        let (hit, miss) =
            (stores.ratio(pair, (1, 200_000), present)?, stores.ratio(pair, (1, 200_000), absent)?);
        let blocks = stores.blocks_per_operation(100_000, |random| absent(&stores.viewed, random))?;
        self.limits.at_most("get, absent: blocks", 0.02, blocks);
        self.limits.at_least("get, present: with a view / without", 0.9, hit);
        self.limits.at_least("get, absent: with a view / without", 0.9, miss);
        Ok(())
    }

    /// Seeks, and YCSB E: scans of up to 100 entries, and one insert in 20 operations.
    fn settled(&mut self) -> Result<()> {
        let stores = &self.stores;
        let pair = (&stores.settled_with, &stores.settled_without);
        let seeks = stores.ratio(pair, (1, 100_000), |keyspace, random| seek(keyspace, random, 0, false))?;
        let scans = stores.ratio(pair, (1, 20_000), |keyspace, random| match random.below(20) {
            0 => Ok(keyspace.put(hex_digits(random.next_u64()), [7; VALUE_BYTES])?),
            _ => {
                let steps = random.below(100) as usize;
                seek(keyspace, random, steps, false)
            }
        })?;
        let name = format!("settled store of {} runs", stores.run_count("settled without views"));
        self.limits.at_least(&format!("{name}: seek, with views / without"), 1.5, seeks);
        self.limits.at_least(&format!("{name}: YCSB E, with views / without"), 1.5, scans);
        Ok(())
    }

    fn empty_ranges(&mut self) -> Result<()> {
        let stores = &self.stores;
        let range = |keyspace: &Keyspace, random: &mut SplitMix64| {
            let lower = random.next_u64();
            let mut scan = keyspace.range(hex_digits(lower)..hex_digits(lower.saturating_add(1 << 16)));
            std::hint::black_box(scan.move_next()?);
            Ok(())
        };
        // The view gets filters after the first ranges that it admits.
        let built_before = stores.db.statistics().views_built;
        stores.seconds(1, 100_000, |random| range(&stores.viewed, random))?;
        stores.wait_until("view with filters", || stores.db.statistics().views_built > built_before)?;
        let blocks = stores.blocks_per_operation(100_000, |random| range(&stores.viewed, random))?;
        let ratio = stores.ratio((&stores.viewed, &stores.merged), (1, 100_000), range)?;
        self.limits.at_most("closed empty range: blocks", 0.02, blocks);
        self.limits.at_least("closed empty range: view / merge", 1.0, ratio);
        Ok(())
    }
}
