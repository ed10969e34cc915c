#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::{
    collections::BTreeMap,
    ops::Bound::{Included, Unbounded},
    path::Path,
    sync::{
        RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use tamis_workload::{KeyForm, Workload};

use super::*;
use crate::{Observer, Silent, Size, Value};

/// A fault that a read injects.
#[derive(Default, Clone, Copy, PartialEq)]
enum Fault {
    #[default]
    None,
    Fails,
    Panics,
}

/// A store in an ordered map in memory.
#[derive(Default)]
struct Model {
    entries: RwLock<BTreeMap<Vec<u8>, Vec<u8>>>,
    bytes_written: AtomicU64,
    /// Blocks that [`Store::settle`] wrote.
    blocks_written: AtomicU64,
    fault: Fault,
}

/// Duration of [`Store::settle`].
const SETTLE_SECONDS: f64 = 0.02;

struct ModelSession<'a>(&'a Model);

impl Store for Model {
    fn session(&self, _is_live: bool) -> Result<Box<dyn Session + '_>, BenchError> {
        Ok(Box::new(ModelSession(self)))
    }
    /// Writes a block and takes time, like a compaction.
    fn settle(&self) -> Result<(), BenchError> {
        self.bytes_written.fetch_add(4096, Ordering::Relaxed);
        self.blocks_written.fetch_add(1, Ordering::Relaxed);
        let cpu_seconds = || Process::now().cpu_seconds.unwrap();
        let start = cpu_seconds();
        while cpu_seconds() < start + SETTLE_SECONDS {}
        Ok(())
    }
    fn counters(&self) -> Counters {
        Counters {
            bytes_written: Some(self.bytes_written.load(Ordering::Relaxed)),
            blocks_written: Some(self.blocks_written.load(Ordering::Relaxed)),
            ..Counters::default()
        }
    }
}

impl Session for ModelSession<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        self.0.bytes_written.fetch_add((key.len() + value.len()) as u64, Ordering::Relaxed);
        self.0.entries.write().unwrap().insert(key.to_vec(), value.to_vec());
        Ok(())
    }
    fn delete(&mut self, key: &[u8]) -> Result<(), BenchError> {
        self.0.entries.write().unwrap().remove(key);
        Ok(())
    }
    fn get(&mut self, key: &[u8], sink: &mut Sink) -> Result<bool, BenchError> {
        match self.0.fault {
            Fault::None => {}
            Fault::Fails => return Err(BenchError::other("broken")),
            Fault::Panics => panic!("broken"),
        }
        let entries = self.0.entries.read().unwrap();
        Ok(entries.get(key).map(|value| sink.value(value)).is_some())
    }
    fn scan(&mut self, lower: &[u8], limit: u64, sink: &mut Sink) -> Result<u64, BenchError> {
        let entries = self.0.entries.read().unwrap();
        let found = entries.range::<[u8], _>((Included(lower), Unbounded)).take(limit as usize);
        Ok(found.map(|(key, value)| sink.entry(|| key, value)).count() as u64)
    }
    fn scan_back(&mut self, upper: &[u8], limit: u64, sink: &mut Sink) -> Result<u64, BenchError> {
        let entries = self.0.entries.read().unwrap();
        let found = entries.range::<[u8], _>((Unbounded, Included(upper))).rev().take(limit as usize);
        Ok(found.map(|(key, value)| sink.entry(|| key, value)).count() as u64)
    }
    fn range(&mut self, lower: &[u8], upper: &[u8], sink: &mut Sink) -> Result<u64, BenchError> {
        let entries = self.0.entries.read().unwrap();
        let found = entries.range::<[u8], _>((Included(lower), Included(upper)));
        Ok(found.map(|(key, value)| sink.entry(|| key, value)).count() as u64)
    }
}

fn measured(
    store: &Model,
    name: &str,
    threads: usize,
    latencies: Latencies,
    warm_up: u64,
    observer: &mut dyn Observer,
) -> Result<Measured, BenchError> {
    let workload: Workload = name.parse().unwrap();
    let script = Script::deal(workload.operations(1000, 3000, 7), KeyForm::Hex, threads);
    let values = Values::new(20, 7);
    let what = Drive { warm_up, latencies, ..Drive::new(&script, &values) };
    let mut context = Context::new(Size::Small, 7, Path::new("."), observer);
    drive(store, &what, &mut context)
}

#[test]
fn every_operation_is_executed_for_all_thread_counts_and_latency_modes() {
    for (threads, latencies) in
        [(1, Latencies::Every), (3, Latencies::Every), (1, Latencies::OneIn16), (4, Latencies::OneIn16)]
    {
        let store = Model::default();
        let measure = |name: &str, warm_up: u64| {
            measured(&store, name, threads, latencies, warm_up, &mut Silent).unwrap()
        };
        let fill = measure("fillrandom", 0);
        assert_eq!((fill.operation_count, store.entries.read().unwrap().len()), (3000, 3000));
        assert_eq!((fill.user_bytes, fill.found), (3000 * 36, 0));
        let reads = measure("readrandom", 100);
        let expected = 3000 - 100 * threads as u64;
        assert_eq!((reads.operation_count, reads.found), (expected, expected), "warm-up does not count");
        assert_eq!(measure("readmissing", 0).found, 0);
        assert_eq!(measure("empty-near", 0).found + measure("empty-far", 0).found, 0);
        assert!(measure("seekrandom-10", 0).found > 29_000 && measure("seekreverse-50", 0).found > 140_000);
        let mixed = measure("ycsb-f", 0);
        assert_eq!(mixed.found, 3000);
        let recorded: u64 = mixed.latencies.iter().map(|(_, histogram)| histogram.len()).sum();
        let expected = if latencies == Latencies::Every { 3000..=3000 } else { 3000 / 16 - 4..=3000 / 16 };
        assert!(expected.contains(&recorded), "{recorded}");
        assert_eq!(mixed.by_second.iter().sum::<u64>(), 3000);
        assert!(mixed.latencies.len() == 2 && mixed.seconds > 0.0);
        assert_eq!(mixed.user_bytes_read, 3000 * 36);
        measure("deleterandom", 0);
        assert!(store.entries.read().unwrap().len() < 2300);
        let row = mixed.row();
        assert!(
            row.fields.get("read_p99_99_ns").is_some()
                && row.fields.get("read_modify_write_max_ns").is_some()
        );
    }
}

/// The digest covers the first entries with key and value; it is certain only if all of them were read.
#[test]
fn the_digest_of_the_answers_depends_on_every_entry() {
    let store = Model::default();
    measured(&store, "fillrandom", 1, Latencies::Every, 0, &mut Silent).unwrap();
    let workload: Workload = "seekrandom-10".parse().unwrap();
    let script = Script::deal(workload.operations(1000, 100_000, 7), KeyForm::Hex, 2);
    let values = Values::new(20, 7);
    let digest = |digested: u64, time_max: Option<Duration>| {
        let what = Drive { digested, time_max, ..Drive::new(&script, &values) };
        let mut silent = Silent;
        let mut context = Context::new(Size::Small, 7, Path::new("."), &mut silent);
        drive(&store, &what, &mut context).unwrap().answers(&what)
    };
    let all = digest(u64::MAX, None);
    assert!(all.is_some() && all == digest(u64::MAX, None) && all != digest(100, None));
    assert_eq!(digest(0, None), None);
    assert_eq!(digest(u64::MAX, Some(Duration::ZERO)), None);
    store.entries.write().unwrap().values_mut().for_each(|value| value.push(1));
    assert_ne!(digest(u64::MAX, None), all);
}

#[test]
fn bytes_of_the_warm_up_do_not_count() {
    let store = Model::default();
    let measured = measured(&store, "overwrite", 2, Latencies::Every, 500, &mut Silent).unwrap();
    assert_eq!(measured.user_bytes, 2000 * 36);
    let all = store.counters().since(measured.counters_before);
    assert_eq!(all.bytes_written, Some(measured.user_bytes), "every user byte is written once");
}

/// All counters include the time until the store has settled; rates do not.
#[test]
fn counters_include_the_wait_for_compactions() {
    let store = Model::default();
    let mut measured = measured(&store, "overwrite", 1, Latencies::Every, 0, &mut Silent).unwrap();
    let (seconds, process) = (measured.seconds, measured.process);
    assert_eq!(measured.counters.blocks_written, Some(0));
    let mut silent = Silent;
    let mut context = Context::new(Size::Small, 7, Path::new("."), &mut silent);
    let time = measured.settle(&store, &mut context).unwrap();
    assert_eq!(measured.counters.bytes_written, Some(measured.user_bytes + 4096));
    assert!(
        measured.process.cpu_seconds.unwrap() >= process.cpu_seconds.unwrap() + SETTLE_SECONDS,
        "{process:?} {measured:?}"
    );
    assert!(measured.seconds == seconds && time > Duration::ZERO);
    let row = measured.row();
    assert_eq!(row.fields.get("blocks_written"), Some(&Value::Integer(1)));
    assert_eq!(row.fields.get("operations_by_second"), Some(&Value::from(measured.by_second.as_slice())));
}

#[test]
fn a_background_writer_runs_until_the_readers_end_and_counts_separately() {
    let store = Model::default();
    measured(&store, "fillrandom", 1, Latencies::Every, 0, &mut Silent).unwrap();
    let workload: Workload = "readwhilewriting".parse().unwrap();
    // Its script has only ten writes, so it starts again.
    let script = Script::deal(workload.operations(1000, 200_000, 7), KeyForm::Hex, 1)
        .with_background(workload.writer(1000, 10, 7), KeyForm::Hex);
    let values = Values::new(20, 7);
    for latencies in [Latencies::Every, Latencies::OneIn16] {
        let what = Drive { warm_up: 50, latencies, ..Drive::new(&script, &values) };
        let mut silent = Silent;
        let mut context = Context::new(Size::Small, 7, Path::new("."), &mut silent);
        let measured = drive(&store, &what, &mut context).unwrap();
        assert_eq!((measured.operation_count, measured.found), (200_000 - 50, 200_000 - 50));
        assert_eq!(measured.by_second.iter().sum::<u64>(), measured.operation_count);
        assert!(measured.background_count > 10, "{}", measured.background_count);
        assert_eq!(measured.user_bytes, 36 * measured.background_count);
    }
}

/// The digest of a run that reached its time limit covers the executed operations only.
#[test]
fn the_digest_covers_the_executed_operations() {
    let store = Model::default();
    let workload: Workload = "readrandom".parse().unwrap();
    let operations = |count: u64| workload.operations(1000, 500_000, 7).take(count as usize);
    let deal = |count: u64| Script::deal(operations(count), KeyForm::Hex, 1);
    let (script, values) = (deal(u64::MAX), Values::new(20, 7));
    for (time_max, warm_up) in [(Some(Duration::ZERO), 0), (Some(Duration::ZERO), 5000), (None, 5000)] {
        let what = Drive { warm_up, time_max, ..Drive::new(&script, &values) };
        let mut silent = Silent;
        let mut context = Context::new(Size::Small, 7, Path::new("."), &mut silent);
        let measured = drive(&store, &what, &mut context).unwrap();
        let done = measured.operation_count + warm_up;
        assert_eq!(measured.is_timed_out, done < 500_000);
        assert!(time_max.is_some() || !measured.is_timed_out);
        assert_eq!(measured.digest, deal(done).digest(), "{done} operations");
        assert_eq!(measured.row().fields.get("is_timed_out").is_some(), measured.is_timed_out);
    }
}

#[test]
fn failures_and_interruptions_end_all_threads() {
    for warm_up in [0, 10] {
        let measure = |fault: Fault| {
            let store = Model { fault, ..Model::default() };
            measured(&store, "readrandom", 2, Latencies::Every, warm_up, &mut Silent)
        };
        assert_eq!(measure(Fault::Fails).unwrap_err().to_string(), "broken");
        let panicked = std::panic::catch_unwind(|| measure(Fault::Panics));
        assert!(panicked.is_err(), "a panic of the store is propagated to the caller");
    }
    struct InterruptNow;
    impl Observer for InterruptNow {
        fn is_interrupted(&self) -> bool {
            true
        }
    }
    let ended = measured(&Model::default(), "readrandom", 2, Latencies::Every, 0, &mut InterruptNow);
    assert!(ended.unwrap_err().is_interrupted());
}

#[test]
fn seconds_without_operations_are_zero() {
    let second = Duration::from_secs(1);
    let mut counts = ThreadCounts::new(Duration::ZERO, false, 0);
    let end = next_second(&mut counts, 5, Duration::ZERO, second.mul_f64(1.2));
    assert_eq!((end, counts.by_second.as_slice()), (second * 2, [5, 0].as_slice()));
    let end = next_second(&mut counts, 7, Duration::ZERO, second.mul_f64(4.5));
    add_to_last(&mut counts, 9);
    assert_eq!((end, counts.by_second.as_slice()), (second * 5, [5, 7, 0, 0, 9].as_slice()));
}
