//! One pass: the operations of a workload on an open store, by one or several threads, against the clock.
//!
//! 1. Each thread draws its operations and, where the workload only reads, runs others of the kind to warm up.
//! 2. All start together.
//! 3. Each ends after its last operation or when its time is over, whichever is first; the clock is looked at every
//!    [`LOOK_EVERY`] operations.
//!
//! The digest is that of the first [`DIGEST_COUNT`] operations of the first thread: where only reads are done it is the same
//! for every store. It is 0 where a pass did not come so far.

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

/// Operations between two looks at the clock.
const LOOK_EVERY: usize = 32;
/// Operations whose answers are compared between the stores.
const DIGEST_COUNT: usize = 1000;

/// How much is done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Operations of each thread.
    pub operation_count: usize,
    /// Seconds.
    pub seconds: f64,
    /// Seconds of warming up before a pass that only reads.
    pub warm_seconds: f64,
}

/// What a pass did.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Operations (of a scan or a fill: entries).
    pub operations: u64,
    /// Seconds, of the slowest thread.
    pub seconds: f64,
    /// Operations that found their key, or entries that scans gave.
    pub found: u64,
    /// Below this index all is there that was to be inserted; 0 where nothing was.
    pub inserted_end: u64,
    /// Of the answers to the first operations.
    pub digest: u64,
}

impl Outcome {
    fn join(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            seconds: self.seconds.max(other.seconds),
            found: self.found + other.found,
            // Where a pass ends with its time, one thread is behind: only below that are all items there.
            inserted_end: self.inserted_end.min(other.inserted_end),
            digest: self.digest,
        }
    }
}

/// Runs `work` on as many threads as there are seeds for, and joins what they did.
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
        // Whatever fails before, each thread comes to the barrier: the others wait there.
        let prepared = Runner::new(store, action, Draw { thread, ..common }, limits, is_strict);
        barrier.wait();
        let mut runner = prepared?;
        if action == Action::Scan { runner.scan(limits) } else { runner.run(limits) }
    })
}

/// Fills a store; keys and values are written out before the clock starts.
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
            operations: Vec::new(),
            sink: Sink::new(is_strict),
            outcome: Outcome::default(),
        };
        // The first value asked for makes them all: not within the time.
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
        for (turn, part) in operations.chunks(LOOK_EVERY).enumerate() {
            for (position, operation) in part.iter().enumerate() {
                let number = turn * LOOK_EVERY + position;
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

    /// Does one operation; the number of entries it gave.
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
