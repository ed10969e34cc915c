//! One pass: the timed operations of a workload on an open store, with one or several threads.
//!
//! 1. Each thread generates its operations. If the workload only reads, it runs other operations of the same kind as warm-up.
//! 2. All threads start together.
//! 3. A thread ends after its last operation or when its time is over; it reads the clock every [`CLOCK_INTERVAL`] operations.
//!
//! The digest covers the results of the first [`DIGEST_COUNT`] operations of the first thread: it must be equal for all stores
//! if the workload only reads. It is 0 if the pass ended earlier.

use std::{sync::Barrier, thread};

use serde::{Deserialize, Serialize};

use crate::{
    clock::Stopwatch,
    data::{Entries, value_of},
    failure::{Failure, Result},
    operations::{Draw, Operation, Verb, draw},
    sink::Sink,
    store::{Reader, Store},
    workload::Action,
};

/// Operations between two readings of the clock.
const CLOCK_INTERVAL: usize = 32;
/// Number of operations whose results are compared between the stores.
const DIGEST_COUNT: usize = 1000;

/// The limits of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Maximum operations per thread.
    pub operation_count: usize,
    /// Maximum seconds.
    pub seconds: f64,
    /// Seconds of warm-up before a read-only pass.
    pub warm_seconds: f64,
}

/// The result of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Number of operations (for a scan or a fill: entries).
    pub operations: u64,
    /// Seconds of the slowest thread.
    pub seconds: f64,
    /// Operations that found their key, or entries that scans returned.
    pub found: u64,
    /// All inserts below this index are done; 0 if nothing was inserted.
    pub inserted_end: u64,
    /// Digest of the results of the first operations.
    pub digest: u64,
}

impl Outcome {
    fn join(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            seconds: self.seconds.max(other.seconds),
            found: self.found + other.found,
            // If the time ended the pass, all items exist only below the position of the slowest thread.
            inserted_end: self.inserted_end.min(other.inserted_end),
            digest: self.digest,
        }
    }
}

/// Runs `work` on `thread_count` threads and combines their results.
fn on_threads(thread_count: u64, work: impl Fn(u64) -> Result<Outcome> + Sync) -> Result<Outcome> {
    if thread_count == 1 {
        return work(0);
    }
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..thread_count).map(|thread| scope.spawn(move || work(thread))).collect();
        let mut outcomes = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Failure::new("a thread of the pass panicked")))
        });
        let first = outcomes.next().unwrap_or_else(|| Ok(Outcome::default()))?;
        outcomes.try_fold(first, |sum, outcome| Ok(sum.join(outcome?)))
    })
}

/// Runs a pass.
pub fn run(
    store: &dyn Store,
    action: Action,
    common: Draw,
    limits: Limits,
    is_strict: bool,
) -> Result<Outcome> {
    let barrier = Barrier::new(common.thread_count as usize);
    on_threads(common.thread_count, |thread| {
        // Each thread reaches the barrier even after a failure, because the others wait there.
        let prepared = Runner::new(store, action, Draw { thread, ..common }, limits, is_strict);
        barrier.wait();
        let mut runner = prepared?;
        if action == Action::Scan { runner.scan(limits) } else { runner.run(limits) }
    })
}

/// Fills a store; keys and values are generated before the clock starts.
pub fn fill(
    store: &dyn Store,
    indexes: std::ops::Range<u64>,
    is_sorted: bool,
    thread_count: u64,
) -> Result<Outcome> {
    let barrier = Barrier::new(thread_count as usize);
    on_threads(thread_count, |thread| {
        let mut entries = Entries::new(indexes.clone(), is_sorted, thread, thread_count);
        let operations = entries.remaining();
        value_of(0);
        barrier.wait();
        let stopwatch = Stopwatch::start();
        store.fill(&mut entries)?;
        Ok(Outcome { operations, seconds: stopwatch.seconds(), ..Outcome::default() })
    })
}

/// One thread of a pass.
struct Runner<'a> {
    store: &'a dyn Store,
    reader: Box<dyn Reader + 'a>,
    entry_count: u64,
    operations: Vec<Operation>,
    sink: Sink,
    outcome: Outcome,
}

impl<'a> Runner<'a> {
    fn new(store: &'a dyn Store, action: Action, own: Draw, limits: Limits, is_strict: bool) -> Result<Self> {
        let is_live = action.is_writing();
        let count = if action == Action::Scan { 0 } else { limits.operation_count };
        let mut runner = Self {
            store,
            reader: store.reader(is_live)?,
            entry_count: own.entry_count,
            operations: Vec::new(),
            sink: Sink::new(is_strict),
            outcome: Outcome::default(),
        };
        // The first use of a value creates all values, so it happens before the clock starts.
        value_of(0);
        if !is_live && count > 0 && limits.warm_seconds > 0.0 {
            runner.operations = draw(action, count / 10, Draw { seed: !own.seed, ..own });
            runner.run(Limits { seconds: limits.warm_seconds, ..limits })?;
        }
        runner.operations = draw(action, count, own);
        runner.sink = Sink::new(is_strict);
        runner.outcome = Outcome::default();
        Ok(runner)
    }

    fn run(&mut self, limits: Limits) -> Result<Outcome> {
        let operations = std::mem::take(&mut self.operations);
        let stopwatch = Stopwatch::start();
        for (turn, part) in operations.chunks(CLOCK_INTERVAL).enumerate() {
            for (position, operation) in part.iter().enumerate() {
                let number = turn * CLOCK_INTERVAL + position;
                if number == DIGEST_COUNT {
                    self.outcome.digest = self.sink.digest;
                }
                self.outcome.found += self.one(operation, number)?;
            }
            self.outcome.operations += part.len() as u64;
            if stopwatch.seconds() >= limits.seconds {
                break;
            }
        }
        self.outcome.seconds = stopwatch.seconds();
        let digest = self.sink.finish();
        if operations.len() <= DIGEST_COUNT && self.outcome.operations == operations.len() as u64 {
            self.outcome.digest = digest;
        }
        Ok(self.outcome)
    }

    /// Executes one operation; returns the number of entries.
    fn one(&mut self, operation: &Operation, number: usize) -> Result<u64> {
        let Operation { key, verb, length, .. } = operation;
        let count = usize::from(*length);
        let found = match verb {
            Verb::Get => usize::from(self.reader.get(key, &mut self.sink)?),
            Verb::Scan => self.reader.forward(key, count, false, &mut self.sink)?,
            Verb::ScanFresh => self.reader.forward(key, count, true, &mut self.sink)?,
            Verb::ScanBack => self.reader.backward(key, count, &mut self.sink)?,
            Verb::Range => self.reader.range(key, &operation.last(), &mut self.sink)?,
            Verb::Put => self.put(operation, number)?,
            Verb::Transfer => {
                self.store.transfer(&operation.transfer_keys(self.entry_count))?;
                1
            }
            Verb::Modify => {
                let found = usize::from(self.reader.get(key, &mut self.sink)?);
                self.put(operation, number)?;
                found
            }
            Verb::Insert => {
                self.outcome.inserted_end = self.outcome.inserted_end.max(operation.end);
                self.put(operation, number)?
            }
        };
        Ok(found as u64)
    }

    fn put(&self, operation: &Operation, number: usize) -> Result<usize> {
        self.store.put(&operation.key, value_of(number as u64))?;
        Ok(1)
    }

    fn scan(&mut self, limits: Limits) -> Result<Outcome> {
        let stopwatch = Stopwatch::start();
        let count = self.reader.all(&mut self.sink, &mut |_| stopwatch.seconds() < limits.seconds)?;
        self.outcome =
            Outcome { operations: count, found: count, seconds: stopwatch.seconds(), ..self.outcome };
        let digest = self.sink.finish();
        if self.sink.is_strict {
            self.outcome.digest = digest;
        }
        Ok(self.outcome)
    }
}

#[cfg(test)]
mod tests;
