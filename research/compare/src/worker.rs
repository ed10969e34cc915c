//! A worker: a separate process per store that executes requests of the driver, one line of JSON each; and the driver's side of it.
//!
//! Separate processes keep memory and written bytes of the stores separate, share no allocator, and isolate crashes. A worker
//! is idle between two requests. Its operations run through [`tamis_bench::driver`].

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use tamis::Clock as _;
use tamis_bench::{
    BenchError, Context, Fields, Row, Silent, Size,
    driver::{Drive, Latencies, Measured, Script, Store, Values, drive},
};

use crate::{
    store::{Compared, Result, Settings, Transfers, open},
    usage,
    workload::{Draw, Source, VALUE_BYTES, Workload, fill_script, workload_named},
};

/// Number of runs of an unmerged fill.
const UNMERGED_RUN_COUNT: u64 = 8;
/// Seconds after which the files of an idle store are read again, so that they stay in the page cache. With direct I/O they are
/// read once, for the cache of the host of a virtual machine.
const WARM_EVERY: Duration = Duration::from_secs(45);
/// Entries whose bytes are compared between the stores, in each read-only pass.
pub const DIGESTED: u64 = 10_000;

/// A request of the driver.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Request {
    /// Fills the store, flushes it and waits until it is idle.
    Fill {
        /// Whether to fill in key order.
        is_sorted: bool,
        /// Threads.
        threads: usize,
    },
    /// Runs a pass of a workload.
    Pass(Pass),
    /// Compacts the store, and waits until it is idle.
    Compact,
}

/// A pass of a workload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pass {
    /// Name of the workload.
    pub workload: String,
    /// Threads.
    pub threads: usize,
    /// Number of current entries.
    pub present: u64,
    /// The seed.
    pub seed: u64,
    /// Maximum operations per thread.
    pub operations: u64,
    /// Maximum seconds.
    pub seconds: f64,
    /// Seconds of warm-up before a read-only pass.
    pub warm_seconds: f64,
}

/// Runs a pass on an open store; `digested` entries are compared. Another pass of the same kind warms up a store that is only read.
pub fn pass(
    store: &dyn Compared,
    entries: u64,
    request: &Pass,
    digested: u64,
    context: &mut Context<'_>,
) -> Result<Row> {
    let Pass { ref workload, threads, present, seed, operations, seconds, warm_seconds } = *request;
    let workload = workload_named(workload)?;
    let operations = if workload.source == Source::FullScan { 1 } else { operations };
    let draw = |operations: u64, seed: u64| {
        let operation_count = operations * threads as u64;
        Draw { entry_count: entries, present_count: present, operation_count, seed }
    };
    let values = Values::new(VALUE_BYTES, 0);
    let mut run = |script: &Script, seconds: f64, digested: u64| -> Result<(Measured, Option<u64>)> {
        let what = Drive {
            latencies: Latencies::OneIn16,
            time_max: Some(Duration::from_secs_f64(seconds)),
            is_live: workload.is_live || workload.is_writing(),
            digested,
            // The values differ from those of the fill.
            round: 1,
            ..Drive::new(script, &values)
        };
        let measured = match workload.source {
            Source::Transfer { is_hot } => {
                drive(&Transfers { store, is_hot, entry_count: entries }, &what, context)?
            }
            _ => drive(store as &dyn Store, &what, context)?,
        };
        let answers = measured.answers(&what);
        Ok((measured, answers))
    };
    if warm_seconds > 0.0 && !workload.is_writing() && operations > 1 {
        run(&workload.script(draw(operations / 10, !seed), threads), warm_seconds, 0)?;
    }
    let drawn = draw(operations, seed);
    let (measured, answers) = run(&workload.script(drawn, threads), seconds, digested)?;
    check_found(workload, &measured)?;
    let rate = match workload.source {
        Source::FullScan => measured.found as f64 / measured.seconds.max(1e-9),
        _ => measured.rate(),
    };
    let row =
        measured.row().with("rate", rate).with("answers", answers.map(|digest| format!("{digest:016x}")));
    Ok(row.with("present", workload.present_after(drawn, &measured.done)))
}

/// Rejects wrong results: a present key that was not found, or an empty range that was not empty.
fn check_found(workload: &Workload, measured: &Measured) -> Result<()> {
    let expected = match workload.source {
        Source::Named("readrandom" | "readzipfian" | "ycsb-c") => measured.operation_count,
        Source::Named("readmissing" | "empty-near" | "empty-far") => 0,
        _ => return Ok(()),
    };
    match measured.found == expected {
        true => Ok(()),
        false => Err(BenchError::Other(format!(
            "{} of {expected} entries found in {}; the results of the store are wrong",
            measured.found, workload.name
        ))),
    }
}

/// Fills a store and flushes it; returns the measurement of its last part, and the time with the flushes.
pub fn fill(
    store: &dyn Compared,
    settings: &Settings,
    (is_sorted, threads): (bool, usize),
    context: &mut Context<'_>,
) -> Result<(Measured, Duration)> {
    let values = Values::new(VALUE_BYTES, 0);
    let part_count = if settings.is_unmerged { UNMERGED_RUN_COUNT } else { 1 };
    let (mut last, mut time) = (None, Duration::ZERO);
    for part in 0..part_count {
        let items = settings.entries * part / part_count..settings.entries * (part + 1) / part_count;
        let script = fill_script(items, is_sorted, threads);
        let what = Drive { latencies: Latencies::OneIn16, ..Drive::new(&script, &values) };
        let measured = drive(store as &dyn Store, &what, context)?;
        let start = context.clock().now();
        store.flush()?;
        time += Duration::from_secs_f64(measured.seconds) + (context.clock().now() - start);
        last = Some(measured);
    }
    last.map(|measured| (measured, time)).ok_or_else(|| BenchError::other("no part to fill"))
}

struct Worker<'a> {
    settings: Settings,
    store: Option<Box<dyn Compared>>,
    warmed_at: Option<Duration>,
    context: Context<'a>,
}

/// Waits until the store has no background work.
fn settle(store: &dyn Compared) -> Result<()> {
    store.settle()?;
    usage::wait_until_idle();
    Ok(())
}

impl Worker<'_> {
    fn serve(&mut self, request: &Request) -> Result<Row> {
        let Self { settings, store, warmed_at, context } = self;
        if matches!(request, Request::Pass(pass) if workload_named(&pass.workload)?.source == Source::Open) {
            // Closing is not timed.
            *store = None;
            let start = context.clock().now();
            *store = Some(open(settings)?);
            return Ok(Row::new().with("seconds", (context.clock().now() - start).as_secs_f64()));
        }
        let store = store.as_deref().ok_or_else(|| BenchError::other("the store is closed"))?;
        let row = match request {
            Request::Fill { is_sorted, threads } => {
                let start = context.clock().now();
                let (mut measured, time) = fill(store, settings, (*is_sorted, *threads), context)?;
                settle(store)?;
                // All counters include the background work.
                measured.settle(store as &dyn Store, context)?;
                let rate = measured.operation_count as f64 / time.as_secs_f64().max(1e-9);
                let settled = (context.clock().now() - start).as_secs_f64();
                measured.row().with("rate", rate).with("settled_seconds", settled)
            }
            Request::Pass(request) => {
                let now = context.clock().now();
                if warmed_at.is_none_or(|warmed| !settings.is_direct && now - warmed > WARM_EVERY) {
                    usage::warm(&settings.folder, settings.is_direct);
                    *warmed_at = Some(now);
                }
                let row = pass(store, settings.entries, request, DIGESTED, context)?;
                if workload_named(&request.workload)?.is_writing() {
                    // Waits, so that compactions of this store do not disturb the pass of the next store.
                    settle(store)?;
                }
                row
            }
            Request::Compact => {
                store.compact()?;
                settle(store)?;
                Row::new()
            }
        };
        let row = usage::with_memory(row).with("shape", store.shape());
        Ok(row.with("disk_bytes", usage::disk_bytes(&settings.folder)))
    }
}

/// An answer of a worker: the metrics, or the error.
type Answer = std::result::Result<Fields, String>;

/// Serves requests until the driver closes the pipe. The first answer is that of opening the store.
pub fn run(settings: &str) -> Result<()> {
    let settings: Settings = serde_json::from_str(settings).map_err(BenchError::other)?;
    let (folder, mut silent) = (settings.folder.clone(), Silent);
    let context = Context::new(Size::Full, 0, &folder, &mut silent);
    let mut worker = Worker { settings, store: None, warmed_at: None, context };
    let mut output = std::io::stdout().lock();
    let mut answer = |row: Result<Row>| -> Result<()> {
        let answer: Answer = row.map(|row| row.fields).map_err(|error| error.to_string());
        writeln!(output, "{}", serde_json::to_string(&answer).map_err(BenchError::other)?)?;
        Ok(output.flush()?)
    };
    answer(open(&worker.settings).map(|store| {
        worker.store = Some(store);
        Row::new()
    }))?;
    for line in std::io::stdin().lock().lines() {
        let request = serde_json::from_str(&line?).map_err(BenchError::other)?;
        answer(worker.serve(&request))?;
    }
    Ok(())
}

/// Set by Ctrl-C.
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The running workers.
static WORKERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Ends the workers on Ctrl-C: finished passes are already in the results.
pub fn watch_for_interrupt() -> Result<()> {
    let handler = || {
        IS_INTERRUPTED.store(true, Ordering::SeqCst);
        for worker in WORKERS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // A worker that has just ended is not a failure.
            let _ = kill_process(*worker, Signal::KILL);
        }
    };
    ctrlc::set_handler(handler).map_err(BenchError::other)
}

/// Whether the user interrupted.
pub fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}

/// The driver's side of a worker with its open store.
pub struct Peer {
    store: String,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a worker and opens a store in it.
    pub fn open(settings: &Settings) -> Result<Self> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program)
            .args(["worker", &serde_json::to_string(settings).map_err(BenchError::other)?])
            // One arena: otherwise each thread of a pass gets a new arena, and its page faults are slow.
            .env("MALLOC_ARENA_MAX", "1")
            // Only the driver receives Ctrl-C.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
            WORKERS.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
        }
        let output = child.stdout.take().ok_or_else(|| BenchError::other("the worker has no pipe"))?;
        let mut peer = Self { store: settings.store.clone(), child, output: BufReader::new(output) };
        peer.answer()?;
        Ok(peer)
    }

    /// Sends a request and waits for its answer.
    pub fn ask(&mut self, request: &Request) -> Result<Fields> {
        let line = serde_json::to_string(request).map_err(BenchError::other)?;
        if let Some(input) = &mut self.child.stdin {
            // A worker that died gives no answer.
            let _ = writeln!(input, "{line}");
        }
        self.answer()
    }

    fn answer(&mut self) -> Result<Fields> {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).unwrap_or(0);
        if is_interrupted() {
            return Err(BenchError::Interrupted);
        }
        let failed = |what: &str| BenchError::Other(format!("{}: {what}", self.store));
        if length == 0 {
            return Err(failed("its worker died; its error message is above"));
        }
        let answer: Answer = serde_json::from_str(&line).map_err(BenchError::other)?;
        answer.map_err(|error| failed(&error))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The worker closes its store and ends; the results do not depend on how it ends.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        let own = Pid::from_raw(self.child.id().cast_signed());
        WORKERS.lock().unwrap_or_else(PoisonError::into_inner).retain(|worker| Some(*worker) != own);
    }
}
