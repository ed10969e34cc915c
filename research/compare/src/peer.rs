//! The driver's side of a worker: a process that receives requests and returns answers.

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
    while_doing(ctrlc::set_handler(handler), "installing the handler for Ctrl-C")
}

/// Whether the user interrupted.
pub fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}

/// A worker with its open store.
pub struct Peer {
    /// Name of the store.
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
            let reason =
                if is_interrupted() { "interrupted" } else { "its worker died; its error message is above" };
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
        // An ended worker needs no closing; the results do not depend on how it ends.
        let _ = self.ask(&Request::Close);
        let _ = self.child.wait();
        let own = Pid::from_raw(self.child.id().cast_signed());
        WORKERS.lock().unwrap_or_else(PoisonError::into_inner).retain(|worker| Some(*worker) != own);
    }
}
