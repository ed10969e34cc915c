//! The worker: a separate process per store that executes requests of the driver, one line of JSON each.
//!
//! Separate processes keep memory and written bytes of the stores separate, share no allocator, and isolate crashes. A worker
//! is idle between two requests.

use std::{
    io::{BufRead as _, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    clock::Stopwatch,
    data::ENTRY_BYTES,
    failure::{Failure, Result},
    operations::Draw,
    pass::{self, Limits, Outcome},
    store::{Settings, Store, kind_named},
    usage::{self, Memory},
    workload::{Action, workload_named},
};

/// Number of runs of an unmerged fill.
const UNMERGED_RUN_COUNT: u64 = 8;
/// Seconds after which the files of an idle store are read again, so that they stay in the page cache. With direct I/O they are
/// read once, for the cache of the host of a virtual machine.
const WARM_EVERY_SECONDS: f64 = 45.0;

/// A request of the driver.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Request {
    /// Opens or creates a store.
    Open {
        /// Folder of the store.
        folder: PathBuf,
        /// Settings of the store.
        settings: Settings,
    },
    /// Fills the store, flushes it and waits until it is idle.
    Fill {
        /// Number of entries.
        entry_count: u64,
        /// Whether to fill in key order.
        is_sorted: bool,
        /// Threads.
        thread_count: u64,
    },
    /// Runs a pass of a workload.
    Pass {
        /// Name of the workload.
        workload: String,
        /// Input for generating the operations.
        draw: DrawRequest,
        /// Limits of the pass.
        limits: Limits,
    },
    /// Compacts the store, and waits until it is idle.
    Compact,
    /// Returns the shape of the store and its resources.
    Report,
    /// Closes the store and exits.
    Close,
}

/// Input for generating the operations of a pass.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct DrawRequest {
    /// Number of entries of the fill.
    pub entry_count: u64,
    /// Number of current entries.
    pub present_count: u64,
    /// The seed.
    pub seed: u64,
    /// Threads.
    pub thread_count: u64,
}

/// The answer of a worker.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The error; the other fields are empty then.
    pub failure: Option<String>,
    /// The result of a pass or a fill.
    pub outcome: Outcome,
    /// For a fill: seconds including the flush.
    pub seconds_flushed: f64,
    /// For a fill: seconds until the store was idle.
    pub seconds_settled: f64,
    /// For a fill: bytes written per user byte, including background work.
    pub write_amplification: f64,
    /// Memory of the process.
    pub memory: Memory,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// Levels or runs.
    pub shape: String,
}

struct Worker {
    folder: PathBuf,
    settings: Settings,
    store: Option<Box<dyn Store>>,
    warmed: Option<Stopwatch>,
}

fn open(folder: &Path, settings: &Settings) -> Result<Box<dyn Store>> {
    std::fs::create_dir_all(folder)?;
    (kind_named(&settings.store)?.open)(folder, settings)
}

impl Worker {
    fn store(&self) -> Result<&dyn Store> {
        self.store.as_deref().ok_or_else(|| Failure::new("the store is closed"))
    }

    fn answer(&self) -> Result<Answer> {
        let memory = usage::memory();
        let shape = self.store()?.shape();
        Ok(Answer { memory, disk_bytes: usage::disk_bytes(&self.folder), shape, ..Answer::default() })
    }

    /// Waits until the store has no background work.
    fn settle(&self) -> Result<()> {
        self.store()?.wait()?;
        usage::wait_until_idle();
        Ok(())
    }

    fn fill(&self, entry_count: u64, is_sorted: bool, thread_count: u64) -> Result<Answer> {
        let store = self.store()?;
        let written_before = usage::written_bytes();
        let stopwatch = Stopwatch::start();
        let mut outcome = Outcome::default();
        let mut seconds_flushed = 0.0;
        let part_count = if self.settings.is_unmerged { UNMERGED_RUN_COUNT } else { 1 };
        for part in 0..part_count {
            let indexes = entry_count * part / part_count..entry_count * (part + 1) / part_count;
            let filled = pass::fill(store, indexes, is_sorted, thread_count)?;
            let flush = Stopwatch::start();
            store.flush()?;
            seconds_flushed += filled.seconds + flush.seconds();
            outcome.operations += filled.operations;
            outcome.seconds += filled.seconds;
        }
        self.settle()?;
        let seconds_settled = stopwatch.seconds();
        let written = usage::written_bytes() - written_before;
        let write_amplification = written as f64 / (entry_count * ENTRY_BYTES).max(1) as f64;
        Ok(Answer { outcome, seconds_flushed, seconds_settled, write_amplification, ..self.answer()? })
    }

    fn pass(&mut self, name: &str, request: DrawRequest, limits: Limits) -> Result<Answer> {
        let workload = workload_named(name)?;
        let is_direct = self.settings.is_direct;
        if self.warmed.as_ref().is_none_or(|warmed| !is_direct && warmed.seconds() > WARM_EVERY_SECONDS) {
            usage::warm(&self.folder, is_direct);
            self.warmed = Some(Stopwatch::start());
        }
        if workload.action == Action::Open {
            return self.reopen();
        }
        let DrawRequest { entry_count, present_count, seed, thread_count } = request;
        let draw = Draw { entry_count, present_count, seed, thread: 0, thread_count };
        let outcome = pass::run(self.store()?, workload.action, draw, limits, false)?;
        if workload.action.is_writing() {
            // Waits, so that compactions of this store do not disturb the pass of the next store.
            self.settle()?;
        }
        Ok(Answer { outcome, ..self.answer()? })
    }

    /// Reopens the store; closing is not timed.
    fn reopen(&mut self) -> Result<Answer> {
        self.store = None;
        let stopwatch = Stopwatch::start();
        self.store = Some(open(&self.folder, &self.settings)?);
        let outcome = Outcome { operations: 1, seconds: stopwatch.seconds(), ..Outcome::default() };
        Ok(Answer { outcome, ..self.answer()? })
    }

    fn serve(&mut self, request: Request) -> Result<Answer> {
        match request {
            Request::Open { folder, settings } => {
                self.store = Some(open(&folder, &settings)?);
                (self.folder, self.settings) = (folder, settings);
                self.answer()
            }
            Request::Fill { entry_count, is_sorted, thread_count } => {
                self.fill(entry_count, is_sorted, thread_count)
            }
            Request::Pass { workload, draw, limits } => self.pass(&workload, draw, limits),
            Request::Compact => {
                self.store()?.compact()?;
                self.settle()?;
                self.answer()
            }
            Request::Report => self.answer(),
            Request::Close => {
                self.store = None;
                Ok(Answer::default())
            }
        }
    }
}

/// Serves requests until the driver closes the pipe or sends [`Request::Close`].
pub fn run() -> Result<()> {
    let settings = Settings {
        store: String::new(),
        cache_bytes: 0,
        memtable_bytes: 0,
        is_direct: false,
        is_deferred: false,
        is_unmerged: false,
        data_bytes_max: 0,
    };
    let mut worker = Worker { folder: PathBuf::new(), settings, store: None, warmed: None };
    let (input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    for line in input.lines() {
        let request: Request = serde_json::from_str(&line?)?;
        let is_last = matches!(request, Request::Close);
        let answer = worker
            .serve(request)
            .unwrap_or_else(|failure| Answer { failure: Some(failure.to_string()), ..Answer::default() });
        writeln!(output, "{}", serde_json::to_string(&answer)?)?;
        output.flush()?;
        if is_last {
            break;
        }
    }
    Ok(())
}
