//! Threads that work through a script, and what they measured.

use std::{
    sync::{
        Barrier, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use hdrhistogram::Histogram;
use tamis::{Clock as _, SystemClock};
use tamis_workload::OperationKind;

use super::{
    Counters, Process, Script, Session, Store, Values, rest,
    script::{Part, Ready},
};
use crate::{BenchError, Context, Row};

#[cfg(test)]
mod tests;

/// Operations between two looks at the clock where not every latency is recorded.
const SAMPLED: u64 = 16;
/// Operations between two reports of a thread to the one that waits.
const REPORTED: u64 = 1024;
/// How often the waiting thread looks.
const LOOK: Duration = Duration::from_millis(100);
/// The longest latency that is told apart from longer ones, in nanoseconds.
const LATENCY_MAX: u64 = 60_000_000_000;
/// Latencies differ by less than a thousandth from what is recorded.
const DIGITS: u8 = 3;

/// Which latencies are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latencies {
    /// All.
    Every,
    /// That of one operation in 16.
    OneIn16,
}

/// What is driven.
#[derive(Debug, Clone, Copy)]
pub struct Drive<'a> {
    /// The operations of each thread.
    pub script: &'a Script,
    /// What is written.
    pub values: &'a Values,
    /// Operations at the beginning of each thread's part that are done before the clock starts.
    pub warm_up: u64,
    /// Which latencies are recorded.
    pub latencies: Latencies,
    /// The clock stops then even if operations are left.
    pub time_max: Option<Duration>,
    /// Where a new value of a key may differ from those before.
    pub round: usize,
}

/// What was measured.
#[derive(Debug)]
pub struct Measured {
    /// Operations within the time, but for those of a part beside the others.
    pub operation_count: u64,
    /// Operations of parts beside the others.
    pub beside_count: u64,
    /// From the first operation to the end of the last, in seconds.
    pub seconds: f64,
    /// Reads that found their key, and entries that scans and ranges read.
    pub found: u64,
    /// Bytes of the entries that were found.
    pub user_bytes_read: u64,
    /// Bytes of the keys and values that were written, and of the keys that were deleted.
    pub user_bytes: u64,
    /// Digest of the operations that were done, the warm-up included.
    pub digest: u64,
    /// Whether the time was over before all operations were done.
    pub is_cut: bool,
    /// Operations of each part within the time.
    done: Vec<u64>,
    /// Nanoseconds by kind of operation; kinds that did not occur are left out.
    pub latencies: Vec<(OperationKind, Histogram<u64>)>,
    /// Operations in each second.
    pub by_second: Vec<u64>,
    /// The store's counters: what was added within the time.
    pub counters: Counters,
    /// As they stood when the time began.
    pub counters_before: Counters,
    /// The process's counters: what was added within the same time.
    pub process: Process,
    /// As they stood when the time began.
    process_before: Process,
}

type HistogramByKind = [Option<Histogram<u64>>; OperationKind::ALL.len()];

/// What one thread counted.
struct Tally {
    is_beside: bool,
    operation_count: u64,
    found: u64,
    user_bytes: u64,
    /// Indexed by kind; those that did not occur stay empty and cost nothing.
    latencies: HistogramByKind,
    by_second: Vec<u64>,
    end: Duration,
}

/// What threads tell the one that waits for them.
#[derive(Default)]
struct Shared {
    done: AtomicU64,
    is_stopped: AtomicBool,
    running: Mutex<Running>,
    ended: Condvar,
}

/// Threads that did not end yet.
#[derive(Default)]
struct Running {
    all: usize,
    /// Those that others work beside.
    leading: usize,
}

/// Drives a store. The share of the context's progress goes from 0 to 1.
///
/// # Errors
/// The store's, and [`BenchError::Interrupted`].
pub fn drive(
    store: &dyn Store,
    drive: &Drive<'_>,
    context: &mut Context<'_>,
) -> Result<Measured, BenchError> {
    let parts = drive.script.parts();
    let leading = parts.iter().filter(|part| !part.is_beside).count();
    let running = Mutex::new(Running { all: parts.len(), leading });
    let shared = Shared { running, ..Shared::default() };
    let barrier = Barrier::new(parts.len() + 1);
    let clock = SystemClock::default();
    let to_do = |part: &Part| (part.len() as u64).saturating_sub(drive.warm_up);
    let total = parts.iter().filter(|part| !part.is_beside).map(to_do).sum::<u64>().max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .iter()
            .enumerate()
            .map(|(number, part)| {
                let (shared, barrier, clock) = (&shared, &barrier, &clock);
                scope.spawn(move || {
                    let worker = Worker { store, drive, part, number, shared, clock };
                    worker.run(Start { barrier, waits_left: WAITS })
                })
            })
            .collect();
        // Of the [`WAITS`]: behind the first all are ready, behind the second all work.
        barrier.wait();
        let second = Start { barrier: &barrier, waits_left: WAITS - 1 };
        let (before, process_before) = (store.counters(), Process::now());
        let start = clock.now();
        drop(second);
        let mut outcome = Ok(());
        let mut running = shared.running.lock().unwrap_or_else(PoisonError::into_inner);
        // The first look comes at once: an interruption counts even where all is done soon.
        loop {
            let share = shared.done.load(Ordering::Relaxed) as f64 / total as f64;
            let share_of_time =
                drive.time_max.map_or(0.0, |time_max| (clock.now() - start).div_duration_f64(time_max));
            let is_late = share_of_time > 1.0;
            let progress = context.progress(share.max(share_of_time));
            if progress.is_err() || is_late {
                shared.is_stopped.store(true, Ordering::Relaxed);
            }
            outcome = outcome.and(progress);
            if running.all == 0 {
                break;
            }
            running = shared.ended.wait_timeout(running, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(running);
        let process = Process::now().since(process_before);
        let counters = store.counters().since(before);
        let mut tallies = Vec::new();
        for thread in threads {
            // A panic of a store is its own message; it goes on here.
            tallies.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        outcome?;
        let measured = collect(tallies, start, counters, process);
        Ok(Measured { counters_before: before, process_before, ..measured.of(drive) })
    })
}

fn collect(tallies: Vec<Tally>, start: Duration, counters: Counters, process: Process) -> Measured {
    let mut measured = Measured {
        operation_count: 0,
        beside_count: 0,
        seconds: 0.0,
        found: 0,
        user_bytes_read: 0,
        user_bytes: 0,
        digest: 0,
        is_cut: false,
        done: Vec::new(),
        latencies: Vec::new(),
        by_second: Vec::new(),
        counters,
        counters_before: Counters::default(),
        process,
        process_before: Process::default(),
    };
    for tally in tallies {
        measured.user_bytes += tally.user_bytes;
        measured.done.push(tally.operation_count);
        add_latencies(&mut measured, tally.latencies);
        if tally.is_beside {
            measured.beside_count += tally.operation_count;
            continue;
        }
        measured.operation_count += tally.operation_count;
        measured.found += tally.found;
        measured.seconds = measured.seconds.max(tally.end.saturating_sub(start).as_secs_f64());
        for (second, count) in tally.by_second.into_iter().enumerate() {
            match measured.by_second.get_mut(second) {
                Some(sum) => *sum += count,
                None => measured.by_second.push(count),
            }
        }
    }
    measured
}

fn add_latencies(measured: &mut Measured, latencies: HistogramByKind) {
    for (kind, histogram) in OperationKind::ALL.into_iter().zip(latencies) {
        let Some(histogram) = histogram else { continue };
        match measured.latencies.iter_mut().find(|(own, _)| *own == kind) {
            // Both have the same bounds: adding can't fail.
            Some((_, sum)) => sum.add(&histogram).unwrap_or_default(),
            None => measured.latencies.push((kind, histogram)),
        }
    }
}

/// How often all threads and the one that waits for them meet at the start.
const WAITS: u32 = 2;

/// The start, at which all wait for each other. A thread whose warm-up fails or panics comes there too: else the others would wait for ever.
struct Start<'a> {
    barrier: &'a Barrier,
    waits_left: u32,
}

impl Drop for Start<'_> {
    fn drop(&mut self) {
        for _ in 0..self.waits_left {
            self.barrier.wait();
        }
    }
}

/// Tells the one that waits that a thread has ended, in whatever way; one that did not come to its end stops the others.
struct Ending<'a> {
    shared: &'a Shared,
    is_beside: bool,
    is_complete: bool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.shared.is_stopped.store(true, Ordering::Relaxed);
        }
        let mut running = self.shared.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.all -= 1;
        running.leading -= usize::from(!self.is_beside);
        if running.leading == 0 {
            // Who works beside nobody is done.
            self.shared.is_stopped.store(true, Ordering::Relaxed);
        }
        drop(running);
        self.shared.ended.notify_all();
    }
}

/// One thread.
struct Worker<'a> {
    store: &'a dyn Store,
    drive: &'a Drive<'a>,
    part: &'a Part,
    number: usize,
    shared: &'a Shared,
    clock: &'a SystemClock,
}

impl Worker<'_> {
    fn run(&self, start: Start<'_>) -> Result<Tally, BenchError> {
        let is_beside = self.part.is_beside;
        let mut ending = Ending { shared: self.shared, is_beside, is_complete: false };
        let rounds = if is_beside && self.part.len() > 0 { usize::MAX } else { 1 };
        let mut operations = std::iter::repeat_n((), rounds).flat_map(|()| self.part.iter());
        let mut session = self.store.session()?;
        let mut unused = Tally::new(self.clock.now(), is_beside);
        for (index, ready) in operations.by_ref().take(self.drive.warm_up as usize).enumerate() {
            self.work(session.as_mut(), ready, index, &mut unused)?;
        }
        drop(start);
        let mut tally = Tally::new(self.clock.now(), is_beside);
        match self.drive.latencies {
            Latencies::Every => self.every(session.as_mut(), operations, &mut tally)?,
            Latencies::OneIn16 => self.sampled(session.as_mut(), operations, &mut tally)?,
        }
        tally.end = self.clock.now();
        ending.is_complete = true;
        Ok(tally)
    }

    /// The end of an operation is the beginning of the next.
    fn every<'a>(
        &self,
        session: &mut dyn Session,
        operations: impl Iterator<Item = Ready<'a>>,
        tally: &mut Tally,
    ) -> Result<(), BenchError> {
        let begin = tally.end;
        let mut before = begin;
        let mut second_end = begin + Duration::from_secs(1);
        let mut in_second = 0;
        for (index, ready) in operations.enumerate() {
            self.work(session, ready, index, tally)?;
            let now = self.clock.now();
            record(tally, ready.kind, now - before);
            before = now;
            in_second += 1;
            if now >= second_end {
                second_end = next_second(tally, in_second, begin, now);
                in_second = 0;
            }
            tally.operation_count += 1;
            if tally.operation_count.is_multiple_of(REPORTED) && self.is_stopped() {
                break;
            }
        }
        add_to_last(tally, in_second);
        Ok(())
    }

    /// One operation in 16 is timed: two looks at the clock for it, none for the others.
    fn sampled<'a>(
        &self,
        session: &mut dyn Session,
        mut operations: impl Iterator<Item = Ready<'a>>,
        tally: &mut Tally,
    ) -> Result<(), BenchError> {
        let begin = tally.end;
        let mut second_end = begin + Duration::from_secs(1);
        let mut in_second = 0;
        let mut index = 0;
        'all: loop {
            for _ in 1..SAMPLED {
                let Some(ready) = operations.next() else { break 'all };
                self.work(session, ready, index, tally)?;
                index += 1;
                in_second += 1;
            }
            let Some(ready) = operations.next() else { break };
            let before = self.clock.now();
            self.work(session, ready, index, tally)?;
            let now = self.clock.now();
            record(tally, ready.kind, now - before);
            index += 1;
            in_second += 1;
            if now >= second_end {
                second_end = next_second(tally, in_second, begin, now);
                in_second = 0;
            }
            if (index as u64).is_multiple_of(REPORTED) && self.is_stopped() {
                break;
            }
        }
        tally.operation_count = index as u64;
        add_to_last(tally, in_second);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        if !self.part.is_beside {
            self.shared.done.fetch_add(REPORTED, Ordering::Relaxed);
        }
        self.shared.is_stopped.load(Ordering::Relaxed)
    }

    /// Does one operation and counts what it found and wrote.
    #[inline]
    fn work(
        &self,
        session: &mut dyn Session,
        ready: Ready<'_>,
        index: usize,
        tally: &mut Tally,
    ) -> Result<(), BenchError> {
        let number = index.wrapping_add(self.number << 20).wrapping_add(self.drive.round);
        let mut put = |session: &mut dyn Session| {
            let value = self.drive.values.get(number);
            tally.user_bytes += (ready.key.len() + value.len()) as u64;
            session.put(ready.key, value)
        };
        match ready.kind {
            OperationKind::Read => tally.found += u64::from(session.get(ready.key)?),
            OperationKind::Insert | OperationKind::Update => put(session)?,
            OperationKind::ReadModifyWrite => {
                let is_there = session.get(ready.key)?;
                put(session)?;
                tally.found += u64::from(is_there);
            }
            OperationKind::Delete => {
                tally.user_bytes += ready.key.len() as u64;
                session.delete(ready.key)?;
            }
            OperationKind::Scan => tally.found += session.scan(ready.key, u64::from(ready.limit))?,
            OperationKind::ScanBack => tally.found += session.scan_back(ready.key, u64::from(ready.limit))?,
            OperationKind::Range => tally.found += session.range(ready.key, ready.upper)?,
        }
        Ok(())
    }
}

impl Tally {
    fn new(start: Duration, is_beside: bool) -> Self {
        Self {
            is_beside,
            operation_count: 0,
            found: 0,
            user_bytes: 0,
            latencies: Default::default(),
            by_second: vec![0; 1],
            end: start,
        }
    }
}

#[inline]
fn record(tally: &mut Tally, kind: OperationKind, latency: Duration) {
    let Some(place) = tally.latencies.get_mut(kind as usize) else { return };
    if place.is_none() {
        *place = Histogram::new_with_bounds(1, LATENCY_MAX, DIGITS).ok();
    }
    if let Some(histogram) = place {
        histogram.saturating_record(latency.as_nanos() as u64);
    }
}

/// Closes a second, and those behind it in which nothing ended; when the next one ends.
#[cold]
fn next_second(tally: &mut Tally, in_second: u64, begin: Duration, now: Duration) -> Duration {
    add_to_last(tally, in_second);
    let seconds = (now - begin).as_secs() as usize;
    tally.by_second.resize(seconds + 1, 0);
    begin + Duration::from_secs(seconds as u64 + 1)
}

fn add_to_last(tally: &mut Tally, count: u64) {
    if let Some(last) = tally.by_second.last_mut() {
        *last += count;
    }
}

/// The quantiles that results hold.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999), ("p99_99", 0.9999)];

impl Measured {
    /// With what follows from the operations that were to be done.
    fn of(mut self, drive: &Drive<'_>) -> Self {
        let entry_bytes = drive.script.key_bytes() + drive.values.value_bytes();
        self.user_bytes_read = self.found * entry_bytes as u64;
        let done: Vec<u64> = self.done.iter().map(|done| done + drive.warm_up).collect();
        let parts = drive.script.parts().iter().zip(&done);
        self.is_cut = parts.into_iter().any(|(part, &done)| !part.is_beside && done < part.len() as u64);
        self.digest = if self.is_cut { drive.script.digest_of(&done) } else { drive.script.digest() };
        self
    }

    /// Brings the store to rest and gives how long that took. What the writes still caused meanwhile is added to all counters, so that they are of one
    /// span; the time of the operations stays.
    ///
    /// # Errors
    /// As [`settle`](super::settle).
    pub fn settle(&mut self, store: &dyn Store, context: &mut Context<'_>) -> Result<Duration, BenchError> {
        let start = context.clock().now();
        rest::settle(store, context)?;
        let time = context.clock().now() - start;
        self.counters = store.counters().since(self.counters_before);
        self.process = Process::now().since(self.process_before);
        Ok(time)
    }

    /// Operations in a second.
    pub fn rate(&self) -> f64 {
        self.operation_count as f64 / self.seconds.max(1e-9)
    }

    /// All of it as metrics.
    pub fn row(&self) -> Row {
        let operations = (self.operation_count as f64).max(1.0);
        let per_operation = |count: Option<u64>| count.map(|count| count as f64 / operations);
        let times = |bytes: Option<u64>, user_bytes: u64| {
            bytes.filter(|_| user_bytes > 0).map(|bytes| bytes as f64 / user_bytes as f64)
        };
        let mut row = Row::new()
            .with("operations", self.operation_count)
            .with("seconds", self.seconds)
            .with("operations_per_second", self.rate())
            .with("ns_per_operation", 1e9 / self.rate())
            .with("found", self.found)
            .with("cpu_seconds", self.process.cpu_seconds)
            .with("blocks_read", self.counters.blocks_read)
            .with("bytes_read", self.counters.bytes_read)
            .with("cache_hits", self.counters.cache_hits)
            .with("blocks_written", self.counters.blocks_written)
            .with("bytes_written", self.counters.bytes_written)
            .with("disk_bytes_read", self.process.disk_bytes_read)
            .with("disk_bytes_written", self.process.disk_bytes_written)
            .with("blocks_read_per_operation", per_operation(self.counters.blocks_read))
            .with("bytes_read_per_operation", per_operation(self.counters.bytes_read))
            .with("user_bytes_written", self.user_bytes)
            .with("write_amplification", times(self.counters.bytes_written, self.user_bytes))
            .with("disk_write_amplification", times(self.process.disk_bytes_written, self.user_bytes))
            .with("read_amplification", times(self.counters.bytes_read, self.user_bytes_read))
            .with("compaction_bytes_read", self.counters.compaction_bytes_read)
            .with("stall_seconds", self.counters.stall_ns.map(|ns| ns as f64 * 1e-9));
        if self.is_cut {
            row.fields.set("is_cut", true);
        }
        if self.beside_count > 0 {
            row.fields.set("operations_beside", self.beside_count);
            row.fields.set("operations_beside_per_second", self.beside_count as f64 / self.seconds.max(1e-9));
        }
        for (kind, histogram) in &self.latencies {
            for (name, quantile) in QUANTILES {
                row.fields.set(&format!("{}_{name}_ns", kind.name()), histogram.value_at_quantile(quantile));
            }
            row.fields.set(&format!("{}_max_ns", kind.name()), histogram.max());
        }
        row.with("operations_by_second", self.by_second.as_slice()).with_digest(self.digest)
    }
}
