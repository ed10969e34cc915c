//! Runs a script with threads and collects their measurements.

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
    Counters, Process, Script, Session, Sink, Store, Values,
    script::{Part, Ready},
    settle,
};
use crate::{BenchError, Context, Row};

#[cfg(test)]
mod tests;

/// Every how many operations a latency is recorded with [`Latencies::OneIn16`].
const SAMPLE_INTERVAL: u64 = 16;
/// Operations between two progress reports of a thread.
const REPORT_INTERVAL: u64 = 1024;
/// Interval at which the waiting thread checks progress and interruption.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum latency of the histograms, in nanoseconds; longer ones count as this one.
const LATENCY_MAX: u64 = 60_000_000_000;
/// Significant digits of the histograms: the relative error is below 0.1 %.
const DIGITS: u8 = 3;

/// Which latencies are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latencies {
    /// All.
    Every,
    /// One operation in 16.
    OneIn16,
}

/// The input of [`drive`].
#[derive(Debug, Clone, Copy)]
pub struct Drive<'a> {
    /// The operations of each thread.
    pub script: &'a Script,
    /// The values to write.
    pub values: &'a Values,
    /// Operations of each thread before the clock starts.
    pub warm_up: u64,
    /// Which latencies are recorded.
    pub latencies: Latencies,
    /// Time limit; the remaining operations are skipped.
    pub time_max: Option<Duration>,
    /// Number of the first value, so that new values of a key differ from earlier ones.
    pub round: usize,
    /// Whether sessions are live: see [`Store::session`].
    pub is_live: bool,
    /// Number of entries that the digest of the answers covers.
    pub digested: u64,
}

impl<'a> Drive<'a> {
    /// Live sessions, without warm-up, time limit and digest of the answers; all latencies are recorded.
    pub fn new(script: &'a Script, values: &'a Values) -> Self {
        let latencies = Latencies::Every;
        Self { script, values, warm_up: 0, latencies, time_max: None, round: 0, is_live: true, digested: 0 }
    }
}

/// The measurements of a run.
#[derive(Debug, Default)]
pub struct Measured {
    /// Timed operations, without those of a background part.
    pub operation_count: u64,
    /// Operations of background parts.
    pub background_count: u64,
    /// Time from the start of the first operation to the end of the last one, in seconds.
    pub seconds: f64,
    /// Reads that found their key, plus entries that scans and ranges read.
    pub found: u64,
    /// Bytes of the entries found.
    pub user_bytes_read: u64,
    /// Bytes of the written keys and values and of the deleted keys.
    pub user_bytes: u64,
    /// Digest of the executed operations, including the warm-up.
    pub digest: u64,
    /// Whether the time limit ended the run before all operations were executed.
    pub is_timed_out: bool,
    /// Timed operations of each part.
    pub done: Vec<u64>,
    /// The entries that the first thread read.
    sink: Sink,
    /// Latencies in nanoseconds by kind of operation, without kinds that did not occur.
    pub latencies: Vec<(OperationKind, Histogram<u64>)>,
    /// Number of operations in each second.
    pub by_second: Vec<u64>,
    /// Growth of the counters of the store during the run.
    pub counters: Counters,
    /// Counters of the store at the start.
    pub counters_before: Counters,
    /// Growth of the counters of the process during the run.
    pub process: Process,
    /// Counters of the process at the start.
    process_before: Process,
}

type HistogramByKind = [Option<Histogram<u64>>; OperationKind::ALL.len()];

/// The counts of one thread.
#[derive(Default)]
struct ThreadCounts {
    is_background: bool,
    operation_count: u64,
    found: u64,
    user_bytes: u64,
    /// Indexed by kind; `None` for kinds that did not occur.
    latencies: HistogramByKind,
    by_second: Vec<u64>,
    end: Duration,
    sink: Sink,
}

/// State shared by the threads and the waiting thread.
#[derive(Default)]
struct Shared {
    done: AtomicU64,
    is_stopped: AtomicBool,
    running: Mutex<Running>,
    ended: Condvar,
}

/// Numbers of running threads.
#[derive(Default)]
struct Running {
    all: usize,
    /// Running threads that are not background threads.
    leading: usize,
}

/// Runs the script on a store. Reports progress from 0 to 1.
///
/// # Errors
/// Errors of the store, and [`BenchError::Interrupted`].
pub fn drive(
    store: &dyn Store,
    drive: &Drive<'_>,
    context: &mut Context<'_>,
) -> Result<Measured, BenchError> {
    let parts = drive.script.parts();
    let leading = parts.iter().filter(|part| !part.is_background).count();
    let running = Mutex::new(Running { all: parts.len(), leading });
    let shared = Shared { running, ..Shared::default() };
    let barrier = Barrier::new(parts.len() + 1);
    let clock = SystemClock::default();
    let to_do = |part: &Part| (part.len() as u64).saturating_sub(drive.warm_up);
    let total = parts.iter().filter(|part| !part.is_background).map(to_do).sum::<u64>().max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .iter()
            .enumerate()
            .map(|(number, part)| {
                let (shared, barrier, clock) = (&shared, &barrier, &clock);
                scope.spawn(move || {
                    let worker = Worker { store, drive, part, number, shared, clock };
                    worker.run(StartGuard { barrier, waits_left: WAITS })
                })
            })
            .collect();
        // After the first wait all threads are ready, after the second all run.
        barrier.wait();
        let second = StartGuard { barrier: &barrier, waits_left: WAITS - 1 };
        let (before, process_before) = (store.counters(), Process::now());
        let start = clock.now();
        drop(second);
        let mut outcome = Ok(());
        let mut running = shared.running.lock().unwrap_or_else(PoisonError::into_inner);
        // Checks immediately, so that an interruption also ends a short run.
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
            running =
                shared.ended.wait_timeout(running, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(running);
        let process = Process::now().since(process_before);
        let counters = store.counters().since(before);
        let mut all_counts = Vec::new();
        for thread in threads {
            // Propagates a panic of the store.
            all_counts.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        outcome?;
        let measured = collect(all_counts, start, counters, process);
        Ok(Measured { counters_before: before, process_before, ..measured.of(drive) })
    })
}

fn collect(all_counts: Vec<ThreadCounts>, start: Duration, counters: Counters, process: Process) -> Measured {
    let mut measured = Measured { counters, process, ..Measured::default() };
    for counts in all_counts {
        measured.user_bytes += counts.user_bytes;
        if measured.done.is_empty() {
            measured.sink = counts.sink;
        }
        measured.done.push(counts.operation_count);
        add_latencies(&mut measured, counts.latencies);
        if counts.is_background {
            measured.background_count += counts.operation_count;
            continue;
        }
        measured.operation_count += counts.operation_count;
        measured.found += counts.found;
        measured.seconds = measured.seconds.max(counts.end.saturating_sub(start).as_secs_f64());
        for (second, count) in counts.by_second.into_iter().enumerate() {
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
            // Cannot fail: both histograms have the same bounds.
            Some((_, sum)) => sum.add(&histogram).unwrap_or_default(),
            None => measured.latencies.push((kind, histogram)),
        }
    }
}

/// Number of barrier waits at the start.
const WAITS: u32 = 2;

/// Waits at the start barrier when dropped, also if the warm-up of a thread fails or panics: otherwise the others would wait
/// forever.
struct StartGuard<'a> {
    barrier: &'a Barrier,
    waits_left: u32,
}

impl Drop for StartGuard<'_> {
    fn drop(&mut self) {
        for _ in 0..self.waits_left {
            self.barrier.wait();
        }
    }
}

/// Reports the end of a thread when dropped; a thread that failed stops the others.
struct EndGuard<'a> {
    shared: &'a Shared,
    is_background: bool,
    is_complete: bool,
}

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.shared.is_stopped.store(true, Ordering::Relaxed);
        }
        let mut running = self.shared.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.all -= 1;
        running.leading -= usize::from(!self.is_background);
        if running.leading == 0 {
            // Background threads end with the last other thread.
            self.shared.is_stopped.store(true, Ordering::Relaxed);
        }
        drop(running);
        self.shared.ended.notify_all();
    }
}

/// A thread of the run.
struct Worker<'a> {
    store: &'a dyn Store,
    drive: &'a Drive<'a>,
    part: &'a Part,
    number: usize,
    shared: &'a Shared,
    clock: &'a SystemClock,
}

impl Worker<'_> {
    fn run(&self, start: StartGuard<'_>) -> Result<ThreadCounts, BenchError> {
        let is_background = self.part.is_background;
        let mut ending = EndGuard { shared: self.shared, is_background, is_complete: false };
        let rounds = if is_background && self.part.len() > 0 { usize::MAX } else { 1 };
        let mut operations = std::iter::repeat_n((), rounds).flat_map(|()| self.part.iter());
        let mut session = self.store.session(self.drive.is_live)?;
        let mut unused = ThreadCounts::new(self.clock.now(), is_background, 0);
        for (index, ready) in operations.by_ref().take(self.drive.warm_up as usize).enumerate() {
            self.execute(session.as_mut(), ready, index, &mut unused)?;
        }
        drop(start);
        let mut counts = ThreadCounts::new(self.clock.now(), is_background, self.drive.digested);
        self.record(session.as_mut(), operations, &mut counts)?;
        session.finish()?;
        counts.end = self.clock.now();
        ending.is_complete = true;
        Ok(counts)
    }

    /// Executes the operations and records latencies. If all are recorded, the end of an operation is the start of the next one;
    /// otherwise a recorded operation reads the clock twice, and the others do not.
    fn record<'a>(
        &self,
        session: &mut dyn Session,
        operations: impl Iterator<Item = Ready<'a>>,
        counts: &mut ThreadCounts,
    ) -> Result<(), BenchError> {
        let interval = match self.drive.latencies {
            Latencies::Every => 1,
            Latencies::OneIn16 => SAMPLE_INTERVAL,
        };
        let begin = counts.end;
        let (mut before, mut second_end, mut in_second) = (begin, begin + Duration::from_secs(1), 0);
        for (index, ready) in operations.enumerate() {
            let is_recorded = (index as u64 + 1).is_multiple_of(interval);
            if is_recorded && interval > 1 {
                before = self.clock.now();
            }
            self.execute(session, ready, index, counts)?;
            counts.operation_count += 1;
            in_second += 1;
            if !is_recorded {
                continue;
            }
            let now = self.clock.now();
            record(counts, ready.kind, now - before);
            before = now;
            if now >= second_end {
                second_end = next_second(counts, in_second, begin, now);
                in_second = 0;
            }
            if counts.operation_count.is_multiple_of(REPORT_INTERVAL) && self.is_stopped() {
                break;
            }
        }
        add_to_last(counts, in_second);
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        if !self.part.is_background {
            self.shared.done.fetch_add(REPORT_INTERVAL, Ordering::Relaxed);
        }
        self.shared.is_stopped.load(Ordering::Relaxed)
    }

    /// Executes one operation and counts the entries found and the bytes written.
    #[inline]
    fn execute(
        &self,
        session: &mut dyn Session,
        ready: Ready<'_>,
        index: usize,
        counts: &mut ThreadCounts,
    ) -> Result<(), BenchError> {
        let number = index.wrapping_add(self.number << 20).wrapping_add(self.drive.round);
        let mut put = |session: &mut dyn Session| {
            let value = self.drive.values.get(number);
            counts.user_bytes += (ready.key.len() + value.len()) as u64;
            session.put(ready.key, value).map(|()| 0)
        };
        let sink = &mut counts.sink;
        counts.found += match ready.kind {
            OperationKind::Read => u64::from(session.get(ready.key, sink)?),
            OperationKind::Insert | OperationKind::Update => put(session)?,
            OperationKind::ReadModifyWrite => {
                let is_there = session.get(ready.key, sink)?;
                put(session)? + u64::from(is_there)
            }
            OperationKind::Delete => {
                counts.user_bytes += ready.key.len() as u64;
                session.delete(ready.key)?;
                0
            }
            OperationKind::Scan => session.scan(ready.key, u64::from(ready.limit), sink)?,
            OperationKind::ScanBack => session.scan_back(ready.key, u64::from(ready.limit), sink)?,
            OperationKind::Range => session.range(ready.key, ready.upper, sink)?,
        };
        Ok(())
    }
}

impl ThreadCounts {
    fn new(start: Duration, is_background: bool, digested: u64) -> Self {
        let sink = Sink::new(digested);
        Self { is_background, by_second: vec![0; 1], end: start, sink, ..Self::default() }
    }
}

#[inline]
fn record(counts: &mut ThreadCounts, kind: OperationKind, latency: Duration) {
    let Some(place) = counts.latencies.get_mut(kind as usize) else { return };
    if place.is_none() {
        *place = Histogram::new_with_bounds(1, LATENCY_MAX, DIGITS).ok();
    }
    if let Some(histogram) = place {
        histogram.saturating_record(latency.as_nanos() as u64);
    }
}

/// Ends a second, and following seconds without operations; returns the end of the next one.
#[cold]
fn next_second(counts: &mut ThreadCounts, in_second: u64, begin: Duration, now: Duration) -> Duration {
    add_to_last(counts, in_second);
    let seconds = (now - begin).as_secs() as usize;
    counts.by_second.resize(seconds + 1, 0);
    begin + Duration::from_secs(seconds as u64 + 1)
}

fn add_to_last(counts: &mut ThreadCounts, count: u64) {
    if let Some(last) = counts.by_second.last_mut() {
        *last += count;
    }
}

/// The quantiles in the results.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999), ("p99_99", 0.9999)];

impl Measured {
    /// Adds the values that depend on the operations of the script.
    fn of(mut self, drive: &Drive<'_>) -> Self {
        let entry_bytes = drive.script.key_bytes() + drive.values.value_bytes();
        self.user_bytes_read = self.found * entry_bytes as u64;
        let done: Vec<u64> = self.done.iter().map(|done| done + drive.warm_up).collect();
        let parts = drive.script.parts().iter().zip(&done);
        self.is_timed_out =
            parts.into_iter().any(|(part, &done)| !part.is_background && done < part.len() as u64);
        self.digest = if self.is_timed_out { drive.script.digest_of(&done) } else { drive.script.digest() };
        self
    }

    /// Waits until the store has no background work; returns the time that it took. Adds the background work to all counters; the
    /// time of the operations stays.
    ///
    /// # Errors
    /// As [`settle`](super::settle()).
    pub fn settle(&mut self, store: &dyn Store, context: &mut Context<'_>) -> Result<Duration, BenchError> {
        let start = context.clock().now();
        settle(store, context)?;
        let time = context.clock().now() - start;
        self.counters = store.counters().since(self.counters_before);
        self.process = Process::now().since(self.process_before);
        Ok(time)
    }

    /// The digest of the first entries that the first thread read: equal for all stores that execute the same operations. `None` if
    /// the time limit ended the run before, or no digest was requested.
    pub fn answers(&self, drive: &Drive<'_>) -> Option<u64> {
        let is_certain = self.sink.is_full() || !self.is_timed_out;
        (drive.digested > 0 && is_certain).then(|| self.sink.digest())
    }

    /// Operations per second.
    pub fn rate(&self) -> f64 {
        self.operation_count as f64 / self.seconds.max(1e-9)
    }

    /// The measurements as metrics.
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
        if self.is_timed_out {
            row.fields.set("is_timed_out", true);
        }
        if self.background_count > 0 {
            row.fields.set("background_operations", self.background_count);
            row.fields.set(
                "background_operations_per_second",
                self.background_count as f64 / self.seconds.max(1e-9),
            );
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
