//! A worker as the driver sees it: a process, to which requests are sent and whose answers are waited for.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    failure::{Failure, Result, while_doing},
    store::Settings,
    worker::{Answer, Request},
};

/// Set by Ctrl-C.
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// The workers that run.
static WORKERS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Ends the workers on Ctrl-C: what was measured before is in the results already.
pub fn watch_for_interrupt() -> Result<()> {
    let handler = || {
        IS_INTERRUPTED.store(true, Ordering::SeqCst);
        for worker in WORKERS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // One that has just ended by itself is no failure.
            let _ = kill_process(*worker, Signal::KILL);
        }
    };
    while_doing(ctrlc::set_handler(handler), "watching for Ctrl-C")
}

/// Whether the user interrupted.
pub fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}

/// A worker with its open store.
pub struct Peer {
    /// The store's name.
    pub store: String,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a worker and opens a store in it.
    pub fn open(folder: &Path, settings: &Settings) -> Result<Self> {
        let program = std::env::current_exe()?;
        let mut child = Command::new(program)
            .arg("worker")
            // One arena: else each thread of a pass gets a fresh one, and first touches of memory are dear.
            .env("MALLOC_ARENA_MAX", "1")
            // Ctrl-C goes to the driver alone.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
            WORKERS.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
        }
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::new("the worker has no pipes"));
        };
        let mut peer = Self { store: settings.store.clone(), child, input, output: BufReader::new(output) };
        peer.ask(&Request::Open { folder: folder.to_owned(), settings: settings.clone() })?;
        Ok(peer)
    }

    /// Sends a request and waits for its answer.
    pub fn ask(&mut self, request: &Request) -> Result<Answer> {
        if is_interrupted() {
            return Err(Failure::new("interrupted"));
        }
        let sent =
            writeln!(self.input, "{}", serde_json::to_string(request)?).and_then(|()| self.input.flush());
        let mut line = String::new();
        let length = sent.and_then(|()| self.output.read_line(&mut line)).unwrap_or(0);
        if length == 0 {
            let reason = if is_interrupted() { "interrupted" } else { "its worker died; see above for why" };
            return Err(Failure(format!("{}: {reason}", self.store)));
        }
        let answer: Answer = serde_json::from_str(&line)?;
        match answer.failure {
            Some(failure) => Err(Failure(format!("{}: {failure}", self.store))),
            None => Ok(answer),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A worker that is gone already needs no closing; results do not depend on how it ends.
        let _ = self.ask(&Request::Close);
        let _ = self.child.wait();
        let own = Pid::from_raw(self.child.id().cast_signed());
        WORKERS.lock().unwrap_or_else(PoisonError::into_inner).retain(|worker| Some(*worker) != own);
    }
}
