//! `tamis demo`: fills a temporary store with real data, runs every kind of read on it, and prints the cost of each step.
//!
//! The demo checks its results: every step knows how many entries it must find, and the demo fails if the number differs.

mod fill;
mod reads;
mod report;

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use tamis::{Access, Clock as _, Db, Keyspace, KeyspaceOptions, Options, Statistics, SystemClock};
use tamis_bench::Needs;

use crate::{failure::Failure, interrupt, store};

/// Bytes of an event's key.
const EVENT_KEY_BYTES: u64 = 16;
/// Approximate bytes of memory per sampled key.
const SAMPLE_BYTES: u64 = 256;

/// A folder with many files on each system.
const DEFAULT_PATHS: &str = if cfg!(windows) { r"C:\Windows" } else { "/usr" };

const EXAMPLES: &str = "\
Examples:
  tamis demo
  tamis demo --paths /home --keep                       keep the store
  tamis demo --paths /usr/bin --events 20000            takes a second
  tamis demo --access buffered --reads 300000           the same reads through the block cache
  tamis demo --json > demo.json";

/// Fill a temporary store with real data, read it in every way, and print the cost of each step
///
/// The demo fills two keyspaces: `paths` (every path below a folder, with its size and time; keys with long shared
/// prefixes) and `events` (a time series of 2,000 sensors; the key is a 64-bit timestamp and a 64-bit sensor number).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Folder whose paths are loaded
    #[arg(long, default_value = DEFAULT_PATHS, value_name = "DIR")]
    paths: PathBuf,
    /// Number of sensor events
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1_000_000_000))]
    events: u64,
    /// Size of the value of an event
    #[arg(long, default_value_t = 100, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=1_048_576))]
    value_bytes: u32,
    /// Number of reads per step
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    reads: u64,
    /// How table files are read
    #[arg(long, value_enum, default_value_t = AccessName::Mapped)]
    access: AccessName,
    /// Keep the store instead of deleting it at the end
    #[arg(long)]
    keep: bool,
    /// Print the report as a JSON object
    #[arg(long)]
    json: bool,
}

/// The command-line names of [`Access`].
#[derive(Debug, Clone, Copy, ValueEnum)]
enum AccessName {
    /// Memory-mapped
    Mapped,
    /// Through the block cache, with the page cache of the operating system
    Buffered,
    /// Through the block cache, without the page cache (direct I/O)
    Direct,
}

impl AccessName {
    fn options(self) -> Options {
        let table_access = match self {
            Self::Mapped => Access::Mapped,
            Self::Buffered => Access::Buffered,
            Self::Direct => Access::Direct,
        };
        Options::default().table_access(table_access)
    }
}

/// One line of the report.
struct Step {
    name: &'static str,
    operation_count: u64,
    entry_count: u64,
    seconds: f64,
    /// Blocks touched for the first time, and blocks found in memory; `None` for steps that write.
    blocks: Option<(u64, u64)>,
}

/// The counts of one step.
struct StepResult {
    operation_count: u64,
    entry_count: u64,
}

/// The store and the finished steps.
struct Demo {
    db: Db,
    paths: Keyspace,
    events: Keyspace,
    clock: SystemClock,
    steps: Vec<Step>,
}

impl DemoArgs {
    /// Disk for the events (log, tables, and a second copy during compaction) and memory for the samples.
    fn needs(&self) -> Needs {
        let event_bytes = EVENT_KEY_BYTES + u64::from(self.value_bytes);
        Needs {
            disk_bytes: self.events.saturating_mul(event_bytes).saturating_mul(3),
            memory_bytes: self.reads * SAMPLE_BYTES,
        }
    }

    pub(super) fn run(self, output: &mut dyn Write) -> Result<(), Failure> {
        interrupt::install_handler()?;
        if !self.paths.is_dir() {
            return Err(Failure::Input(format!(
                "{}: not a folder; give a folder with --paths",
                self.paths.display()
            )));
        }
        // Fails before anything is loaded if disk or memory is too small.
        self.needs().check(&std::env::temp_dir())?;
        let folder = tempfile::Builder::new().prefix("tamis-demo-").tempdir()?;
        let mut demo = Demo::open(folder.path(), self.access)?;
        let samples = demo.fill(&self)?;
        let write_statistics = demo.db.statistics();
        demo.reopen(folder.path(), self.access)?;
        demo.read(&samples)?;
        let report = report::Report {
            steps: &demo.steps,
            written: &write_statistics,
            read: &demo.db.statistics(),
            files: &store::files(folder.path())?,
            folder: folder.path(),
            source: &self.paths,
            skipped_count: samples.skipped_count,
            is_kept: self.keep,
        };
        if self.json {
            writeln!(output, "{}", report.json())?;
        } else {
            report.show(output)?;
        }
        drop((demo.paths, demo.events));
        demo.db.close()?;
        if self.keep {
            let _ = folder.keep();
            return Ok(());
        }
        Ok(folder.close()?)
    }
}

impl Demo {
    fn open(folder: &Path, access: AccessName) -> Result<Self, Failure> {
        let db = Db::open_with(folder, access.options())?;
        let paths = db.get_or_create_keyspace("paths", KeyspaceOptions::default())?;
        let events = db.get_or_create_keyspace("events", KeyspaceOptions::default())?;
        Ok(Self { db, paths, events, clock: SystemClock::default(), steps: Vec::new() })
    }

    /// Closes and reopens the store.
    fn reopen(&mut self, folder: &Path, access: AccessName) -> Result<(), Failure> {
        self.db.clone().close()?;
        let start = self.clock.now();
        let reopened = Self::open(folder, access)?;
        let seconds = (self.clock.now() - start).as_secs_f64();
        (self.db, self.paths, self.events) = (reopened.db, reopened.paths, reopened.events);
        let name = "close, reopen";
        self.steps.push(Step { name, operation_count: 1, entry_count: 0, seconds, blocks: None });
        Ok(())
    }

    /// Runs a step that writes and records its time.
    fn write_step(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&Self) -> Result<StepResult, Failure>,
    ) -> Result<(), Failure> {
        self.step(name, None, work)?;
        if let Some(step) = self.steps.last_mut() {
            step.blocks = None;
        }
        Ok(())
    }

    /// Runs a step, records its cost, and fails if the number of entries differs from the expected one.
    fn step(
        &mut self,
        name: &'static str,
        expected_count: Option<u64>,
        work: impl FnOnce(&Self) -> Result<StepResult, Failure>,
    ) -> Result<(), Failure> {
        if interrupt::is_interrupted() {
            return Err(Failure::Interrupted(format!("interrupted before: {name}")));
        }
        let (before, start) = (self.db.statistics(), self.clock.now());
        let StepResult { operation_count, entry_count } = work(self)?;
        let seconds = (self.clock.now() - start).as_secs_f64();
        let after = self.db.statistics();
        if expected_count.is_some_and(|expected| expected != entry_count) {
            return Err(Failure::Damage(format!(
                "{name}: found {entry_count} entries, expected {}; this is a bug in Tamis, please report it",
                expected_count.unwrap_or_default()
            )));
        }
        let delta = |get: fn(&Statistics) -> u64| get(&after) - get(&before);
        let blocks =
            Some((delta(|statistics| statistics.blocks_read), delta(|statistics| statistics.cache_hits)));
        self.steps.push(Step { name, operation_count, entry_count, seconds, blocks });
        Ok(())
    }
}
