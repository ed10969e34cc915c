//! The worker: a process of its own for each store, which does what the driver says, one line of JSON at a time.
//!
//! Its own process, so that memory and bytes written can be told apart, no allocator is shared, and a store that dies takes
//! no other with it. Between two requests it only waits.

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

/// Parts of a fill whose runs stay apart.
const UNMERGED_RUN_COUNT: u64 = 8;
/// Seconds after which the files of a store that waits are read again, so that they are in the page cache; one that goes past it has
/// them read once, for the cache of the host where the machine is a virtual one.
const WARM_EVERY_SECONDS: f64 = 45.0;

/// What the driver says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Request {
    /// Opens a store, or makes it.
    Open {
        /// Its folder.
        folder: PathBuf,
        /// Its settings.
        settings: Settings,
    },
    /// Fills the store, flushes it and waits until it is quiet.
    Fill {
        /// Entries.
        entry_count: u64,
        /// In the order of keys.
        is_sorted: bool,
        /// Threads.
        thread_count: u64,
    },
    /// Runs a pass of a workload.
    Pass {
        /// Its name.
        workload: String,
        /// What is drawn.
        draw: DrawRequest,
        /// How much is done.
        limits: Limits,
    },
    /// Merges all, and waits until the store is quiet.
    Compact,
    /// Tells what the store is and uses.
    Report,
    /// Closes the store and ends.
    Close,
}

/// What a pass draws from.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct DrawRequest {
    /// Entries that were filled in.
    pub entry_count: u64,
    /// Entries that are there now.
    pub present_count: u64,
    /// The seed.
    pub seed: u64,
    /// Threads.
    pub thread_count: u64,
}

/// What the worker answers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Answer {
    /// What went wrong; all else is empty then.
    pub failure: Option<String>,
    /// What a pass or a fill did.
    pub outcome: Outcome,
    /// Of a fill: seconds with the flush at its end.
    pub seconds_flushed: f64,
    /// Of a fill: seconds until the store was quiet.
    pub seconds_settled: f64,
    /// Of a fill: bytes written for each byte of the user, all of the background included.
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

    /// Waits until the store has nothing to do.
    fn settle(&self) -> Result<()> {
        self.store()?.wait()?;
        usage::wait_for_quiet();
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
            // The next store's turn is not disturbed by what this one still has to merge.
            self.settle()?;
        }
        Ok(Answer { outcome, ..self.answer()? })
    }

    /// Opens the store anew; the closing is not timed.
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

/// Serves requests until the driver closes the pipe or says so.
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
