//! Writers that are faster than the disk are throttled, memory stays bounded, and nothing waits forever.
//!
//! The disk and the clock of these tests are simulated: the clock advances only while every thread of the database waits. The tests
//! check counts and durations in simulated time, independently of the machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
    sync::{Arc, mpsc},
    thread::{self, ThreadId},
    time::Duration,
};

use parking_lot::{Condvar as GateCondvar, Mutex};
use tamis::{
    Access, Clock, Condvar, Db, Error, Event, EventListener, JoinHandle, Keyspace, KeyspaceOptions,
    ManualClock, MutexGuard, Options, Runtime, Spawner, SystemSpawner, WriteBatch,
};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule};

use crate::support::{FOLDER, SplitMix64, small_keyspace};

/// The real time after which a waiting thread checks the simulated time.
const POLL: Duration = Duration::from_micros(100);

/// The simulated time, which the test's thread advances when all workers wait.
#[derive(Debug, Default)]
struct SimulatedClock {
    state: Mutex<SimulatedState>,
    moved: GateCondvar,
}

#[derive(Debug, Default)]
struct SimulatedState {
    now: Duration,
    /// The number of the current round: each advance of time waits until every waiting worker has confirmed this round.
    round: u64,
    /// Waiting workers: the end of the wait, and the last round that they confirmed.
    waiting: BTreeMap<u64, (Duration, u64)>,
    worker_count: usize,
    /// The test ends: writes to the disk no longer wait.
    has_ended: bool,
    /// When the disk has finished all its work.
    disk_free_at: Duration,
    workers: Vec<(ThreadId, u64)>,
}

impl SimulatedClock {
    /// Advances the time by `by`, in steps at which some worker continues.
    fn advance(&self, by: Duration) {
        let mut state = self.state.lock();
        let target = state.now + by;
        while state.now < target {
            state.round += 1;
            let round = state.round;
            let all_wait = |state: &SimulatedState| {
                let has_confirmed =
                    |(until, confirmed): &(Duration, u64)| *until > state.now && *confirmed >= round;
                state.waiting.values().filter(|wait| has_confirmed(wait)).count() == state.worker_count
            };
            while !all_wait(&state) {
                self.moved.wait_for(&mut state, POLL);
            }
            let next = state.waiting.values().map(|(until, _)| *until).min().unwrap_or(target);
            state.now = next.min(target);
            self.moved.notify_all();
        }
    }

    fn worker(&self) -> Option<u64> {
        let state = self.state.lock();
        let current = thread::current().id();
        state.workers.iter().find(|(thread, _)| *thread == current).map(|(_, worker)| *worker)
    }

    /// Called by the simulated disk: the worker that writes `bytes` waits until they are written.
    fn use_disk(&self, bytes: u64, bytes_per_second: u64) {
        let Some(worker) = self.worker() else { return };
        let mut state = self.state.lock();
        let duration = Duration::from_nanos(bytes * 1_000_000_000 / bytes_per_second);
        let until = state.disk_free_at.max(state.now) + duration;
        state.disk_free_at = until;
        while state.now < until && !state.has_ended {
            let round = state.round;
            state.waiting.insert(worker, (until, round));
            self.moved.wait_for(&mut state, POLL);
        }
        state.waiting.remove(&worker);
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Duration {
        self.state.lock().now
    }

    fn since_epoch(&self) -> Duration {
        self.now()
    }

    fn wait(&self, condition: &Condvar, guard: &mut MutexGuard<'_, ()>, timeout: Duration) {
        let Some(worker) = self.worker() else {
            MutexGuard::unlocked(guard, || self.advance(timeout));
            return;
        };
        let until = self.now() + timeout;
        loop {
            // Woken by the timeout, not by a notification.
            let is_notified = !condition.wait_for(guard, POLL).timed_out();
            let mut state = self.state.lock();
            if is_notified || state.now >= until {
                state.waiting.remove(&worker);
                return;
            }
            let round = state.round;
            state.waiting.insert(worker, (until, round));
        }
    }
}

/// Starts threads and registers them with the clock.
#[derive(Debug)]
struct SimulatedSpawner(Arc<SimulatedClock>);

impl Spawner for SimulatedSpawner {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> std::io::Result<Box<dyn JoinHandle>> {
        self.0.state.lock().worker_count += 1;
        let clock = Arc::clone(&self.0);
        let work = move || {
            let mut state = clock.state.lock();
            let worker = state.workers.len() as u64;
            state.workers.push((thread::current().id(), worker));
            drop(state);
            work();
            let mut state = clock.state.lock();
            state.worker_count -= 1;
            state.waiting.remove(&worker);
        };
        SystemSpawner.spawn(name, Box::new(work))
    }
}

/// Releases the workers when the test ends, so that the database can be closed.
struct EndOnDrop(Arc<SimulatedClock>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.state.lock().has_ended = true;
    }
}

fn tiny_keyspace() -> KeyspaceOptions {
    KeyspaceOptions::default().memtable_bytes(128 << 10).table_bytes(128 << 10)
}

/// Fills a store on a disk with a number of bytes per second; returns its statistics and the longest time without a write.
fn fill(bytes_per_second: u64, workers: usize, write_bytes: u64) -> (tamis::Statistics, Duration) {
    let clock = Arc::new(SimulatedClock::default());
    let vfs = FaultVfs::new(Arc::new(MemVfs::new()));
    let disk = Arc::clone(&clock);
    let slow =
        move |operation: &tamis_vfs::Operation| disk.use_disk(operation.length_bytes, bytes_per_second);
    // Only writes of tables are slow: they happen outside of all locks, so no worker waits for a lock while another waits for the clock.
    vfs.add_rule(Rule::slow(slow).on(&[OperationKind::Append]).path(".t"));
    let spawner = Arc::new(SimulatedSpawner(Arc::clone(&clock)));
    let runtime = Runtime { clock: Arc::<SimulatedClock>::clone(&clock), spawner, seed: 3 };
    let options = Options::default().workers(workers);
    let db = Db::open_on(Arc::new(vfs), FOLDER, options, runtime).unwrap();
    let keyspace = db.create_keyspace("k", tiny_keyspace()).unwrap();
    let _end = EndOnDrop(Arc::clone(&clock));
    let mut random = SplitMix64::new(9);
    let mut longest = Duration::ZERO;
    for number in 0..write_bytes / 1_000 {
        let before = clock.now();
        keyspace.put(random.next_u64().to_be_bytes(), [number as u8; 992]).unwrap();
        if number % 16 == 0 {
            // The writer itself could write 100 MB a second.
            clock.advance(Duration::from_micros(160));
        }
        longest = longest.max(clock.now() - before);
        let statistics = db.statistics();
        let state = statistics.keyspaces.iter().find(|keyspace| keyspace.name == "k").unwrap();
        assert!(
            state.immutable_memtable_count <= 5,
            "{} immutable memtables",
            state.immutable_memtable_count
        );
        assert!(
            state.memtable_bytes <= (128 << 10) + (64 << 10),
            "a memtable of {} bytes",
            state.memtable_bytes
        );
    }
    let statistics = db.statistics();
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    assert_eq!(keyspace.range(..).count() as u64, write_bytes / 1_000);
    (statistics, longest)
}

#[test]
fn a_fill_faster_than_the_disk_is_throttled_without_a_stop() {
    let (statistics, longest) = fill(4 << 20, 2, 3_000_000);
    assert!(statistics.throttled_writes > 10, "{} writes were slowed", statistics.throttled_writes);
    assert!(statistics.throttled_microseconds > 100_000);
    // Writes stop only until the first flush has measured the disk.
    let stopped = statistics.stopped_microseconds;
    assert!(stopped <= 100_000, "{stopped} us of full stops while the disk works");
    assert!(longest < Duration::from_secs(1), "{longest:?} without a completed write");
}

#[test]
fn a_fill_slower_than_the_disk_is_not_slowed() {
    let (statistics, longest) = fill(1 << 30, 2, 2_000_000);
    assert_eq!((statistics.throttled_writes, statistics.stopped_writes), (0, 0));
    assert!(longest <= Duration::from_micros(160), "{longest:?}");
}

/// Fills six memtables of 8 MiB on a file system that takes `nanoseconds_per_byte` for tables; `order` returns the keys, `meanwhile` is
/// called after each put. Returns the number of flushes, and of those that bypassed the page cache.
fn direct_flushes(
    nanoseconds_per_byte: u64,
    order: impl Fn(u64) -> u64,
    meanwhile: impl Fn(&Keyspace, u64),
) -> [u64; 2] {
    let clock = Arc::new(ManualClock::default());
    let vfs = FaultVfs::new(Arc::new(MemVfs::new()));
    let disk = Arc::clone(&clock);
    let slow = move |operation: &tamis_vfs::Operation| {
        disk.advance(Duration::from_nanos(operation.length_bytes * nanoseconds_per_byte));
    };
    vfs.add_rule(Rule::slow(slow).on(&[OperationKind::Append]).path(".t"));
    let runtime = Runtime { clock: Arc::<ManualClock>::clone(&clock), ..Runtime::deterministic(1) };
    let options = Options::default().workers(0);
    let db = Db::open_on(Arc::new(vfs), FOLDER, options, runtime).unwrap();
    // No tables are joined meanwhile.
    let options = KeyspaceOptions::default().memtable_bytes(8 << 20).table_bytes(8 << 20);
    let keyspace = db.create_keyspace("k", options).unwrap();
    for number in 0..6 * 128 {
        keyspace.put(order(number).to_be_bytes(), vec![number as u8; 64 << 10]).unwrap();
        meanwhile(&keyspace, number);
        clock.advance(Duration::from_micros(300));
    }
    for number in 0..6 * 128 {
        let value = keyspace.get(order(number).to_be_bytes()).unwrap().unwrap();
        assert!(value.len() == 64 << 10 && value.iter().all(|&byte| byte == number as u8));
    }
    let statistics = db.statistics();
    [statistics.flushes, statistics.direct_flushes]
}

#[test]
fn only_a_fast_sequential_fill_bypasses_the_page_cache() {
    let nothing = |_: &Keyspace, _| {};
    // The time to fill a memtable is known after the first one.
    assert_eq!(direct_flushes(10, |number| number, nothing), [6, 5]);
    let at_random = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    assert_eq!(direct_flushes(10, at_random, nothing), [6, 0], "tables overlap");
    let read = |keyspace: &Keyspace, number: u64| {
        assert!((0..8).all(|back| keyspace.get((number * back / 8).to_be_bytes()).unwrap().is_some()));
    };
    assert_eq!(direct_flushes(10, |number| number, read), [6, 0], "the store is read");
}

/// A gate at which a flush waits, and the events that writers receive meanwhile.
#[derive(Debug)]
struct Gate {
    is_open: Mutex<bool>,
    opened: GateCondvar,
}

impl Gate {
    fn pass(&self) {
        let mut is_open = self.is_open.lock();
        while !*is_open {
            self.opened.wait(&mut is_open);
        }
    }

    fn open(&self) {
        *self.is_open.lock() = true;
        self.opened.notify_all();
    }
}

/// Opens the gate when the test ends, however it ends.
struct OpenOnDrop(Arc<Gate>);

impl Drop for OpenOnDrop {
    fn drop(&mut self) {
        self.0.open();
    }
}

#[derive(Debug)]
struct StopListener(Mutex<mpsc::Sender<Signal>>);

#[derive(Debug, PartialEq, Eq)]
enum Signal {
    Stopped,
    Done,
}

impl EventListener for StopListener {
    fn on_event(&self, event: &Event) {
        if matches!(event, Event::BackPressure { microseconds_per_mib: None }) {
            let _ = self.0.lock().send(Signal::Stopped);
        }
    }
}

/// Memtables of a keyspace accumulated without a bound if each batch wrote to another keyspace first.
#[test]
fn a_batch_over_keyspaces_is_throttled_by_each_of_them() {
    for names in [["idle", "busy"], ["busy", "idle"]] {
        let gate = Arc::new(Gate { is_open: Mutex::new(false), opened: GateCondvar::new() });
        let vfs = FaultVfs::new(Arc::new(MemVfs::new()));
        let (sender, signals) = mpsc::channel();
        let listener: Arc<dyn EventListener> = Arc::new(StopListener(Mutex::new(sender.clone())));
        let options = Options::default().workers(1).listener(listener);
        let db = Db::open_on(Arc::new(vfs.clone()), FOLDER, options, Runtime::system()).unwrap();
        let keyspaces = names.map(|name| db.create_keyspace(name, small_keyspace()).unwrap());
        let waiting = Arc::clone(&gate);
        vfs.add_rule(Rule::slow(move |_| waiting.pass()).on(&[OperationKind::Append]).path(".t"));
        thread::scope(|scope| {
            let _open = OpenOnDrop(Arc::clone(&gate));
            scope.spawn(|| {
                // Twelve memtables.
                for index in 0..1_000_u32 {
                    let mut batch = WriteBatch::new();
                    for keyspace in &keyspaces {
                        let length = if keyspace.name() == "busy" { 800 } else { 1 };
                        batch.put(keyspace, index.to_be_bytes(), vec![0; length]).unwrap();
                    }
                    db.write(batch).unwrap();
                }
                let _ = sender.send(Signal::Done);
            });
            let first = signals.recv().unwrap();
            let statistics = db.statistics();
            let busy = statistics.keyspaces.iter().find(|keyspace| keyspace.name == "busy").unwrap();
            assert!(busy.immutable_memtable_count <= 5, "{names:?}: {busy:?}");
            assert_eq!(first, Signal::Stopped);
            // Reads continue; writes continue when the disk does.
            assert_eq!(
                keyspaces[0].get(1_u32.to_be_bytes()).unwrap(),
                keyspaces[0].get([0, 0, 0, 1]).unwrap()
            );
            gate.open();
            while signals.recv().unwrap() != Signal::Done {}
        });
        assert_eq!(keyspaces[0].range(..).count(), 1_000);
        assert!(db.statistics().stopped_writes > 0);
    }
}

#[test]
fn a_write_that_waits_for_a_failing_flush_returns_its_error() {
    let vfs = FaultVfs::new(Arc::new(MemVfs::new()));
    let clock = Arc::new(ManualClock::default());
    let runtime = Runtime { clock: Arc::<ManualClock>::clone(&clock), ..Runtime::deterministic(1) };
    let options = Options::default().workers(0);
    let db = Db::open_on(Arc::new(vfs.clone()), FOLDER, options, runtime).unwrap();
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    let rule =
        vfs.add_rule(Rule::error(ErrorKind::StorageFull).on(&[OperationKind::Create]).path(".t").forever());
    let mut model = BTreeSet::new();
    let refused = (0..10_000_u32).find_map(|index| match keyspace.put(index.to_be_bytes(), [1; 200]) {
        Ok(()) => {
            model.insert(index);
            None
        }
        Err(error) => Some(error),
    });
    assert!(matches!(refused, Some(Error::DiskFull { .. })), "{refused:?}");
    let statistics = db.statistics();
    assert!(statistics.stopped_writes > 0 && statistics.jobs_failed > 0);
    // Five memtables of 64 KiB.
    assert!((500..2_000).contains(&model.len()), "{} writes fitted", model.len());
    assert_eq!(keyspace.range(..).count(), model.len());
    vfs.remove_rule(rule);
    clock.advance(Duration::from_secs(1));
    keyspace.put(77_777_u32.to_be_bytes(), "back").unwrap();
    assert_eq!(keyspace.range(..).count(), model.len() + 1);
    db.flush().unwrap();
}
/// The writing thread retried the deletion of old files forever.
#[test]
fn old_files_that_cannot_be_deleted_stop_no_writer() {
    for kind in [OperationKind::Rename, OperationKind::Remove] {
        let vfs = FaultVfs::new(Arc::new(MemVfs::new()));
        let options = Options::default().workers(0);
        let db = Db::open_on(Arc::new(vfs.clone()), FOLDER, options, Runtime::deterministic(1)).unwrap();
        let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
        let mut random = SplitMix64::new(1);
        let mut keys = BTreeSet::new();
        let mut fill = || {
            for _ in 0..2_000 {
                let key = random.below(1_000).to_be_bytes();
                keyspace.put(key, [7; 100]).unwrap();
                keys.insert(key);
            }
        };
        fill();
        let rule = Rule::error(ErrorKind::PermissionDenied).on(&[kind]).path(".obsolete").forever();
        let rule = vfs.add_rule(rule);
        fill();
        assert!(vfs.hit_count(rule) > 0, "{kind:?}");
        assert_eq!(keyspace.range(..).count(), keys.len());
    }
}

/// Runs at L0 of keyspace "k".
fn level0_runs(db: &Db) -> usize {
    let statistics = db.statistics();
    let keyspace = statistics.keyspaces.iter().find(|keyspace| keyspace.name == "k").unwrap();
    keyspace.levels.first().map_or(0, |level| level.run_count)
}

/// The maximum for `level0_runs: 2`, and the memtables that may be flushed after it.
const LEVEL0_RUNS_MAX: usize = 32 + 5;

/// L0 grew to hundreds of runs while each compaction failed: flushes succeeded, so nothing stopped the writers.
#[test]
fn failing_compactions_stop_writers_before_l0_has_many_runs() {
    for workers in [0, 2] {
        let vfs = FaultVfs::new(Arc::new(MemVfs::new()));
        let options = Options::default().workers(workers).table_access(Access::Buffered);
        let db = Db::open_on(Arc::new(vfs.clone()), FOLDER, options, Runtime::system()).unwrap();
        let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
        let rule =
            vfs.add_rule(Rule::error(ErrorKind::Other).on(&[OperationKind::Read]).path(".t").forever());
        let mut random = SplitMix64::new(5);
        let mut acknowledged = BTreeSet::new();
        let refused = (0..200_000).find_map(|_| {
            let key = random.next_u64().to_be_bytes();
            let error = keyspace.put(key, [1; 1_000]).err();
            if error.is_none() {
                acknowledged.insert(key);
            }
            error
        });
        assert!(matches!(refused, Some(Error::Io { .. })), "{refused:?}");
        assert!(level0_runs(&db) <= LEVEL0_RUNS_MAX, "{} runs", level0_runs(&db));
        assert!(db.statistics().stopped_writes > 0);
        vfs.remove_rule(rule);
        keyspace.put("later", "accepted").unwrap();
        db.wait_for_compactions().unwrap();
        assert!(level0_runs(&db) < 4, "{} runs", level0_runs(&db));
        assert_eq!(keyspace.range(..).count(), acknowledged.len() + 1);
    }
}

#[test]
fn a_hanging_compaction_stops_writers_before_l0_has_many_runs_and_reports_it() {
    let gate = Arc::new(Gate { is_open: Mutex::new(false), opened: GateCondvar::new() });
    let vfs = FaultVfs::new(Arc::new(MemVfs::new()));
    let (sender, signals) = mpsc::channel();
    let listener: Arc<dyn EventListener> = Arc::new(StopListener(Mutex::new(sender.clone())));
    let access = Access::Buffered;
    let options = Options::default().workers(2).table_access(access).listener(listener);
    let db = Db::open_on(Arc::new(vfs.clone()), FOLDER, options, Runtime::system()).unwrap();
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
    let waiting = Arc::clone(&gate);
    vfs.add_rule(Rule::slow(move |_| waiting.pass()).on(&[OperationKind::Read]).path(".t"));
    thread::scope(|scope| {
        let _open = OpenOnDrop(Arc::clone(&gate));
        scope.spawn(|| {
            let mut random = SplitMix64::new(5);
            for _ in 0..4_000 {
                keyspace.put(random.next_u64().to_be_bytes(), [1; 1_000]).unwrap();
            }
            let _ = sender.send(Signal::Done);
        });
        // A stop for a flush may come first; the last one is for L0 and does not end.
        while level0_runs(&db) < 32 {
            assert_eq!(
                signals.recv_timeout(Duration::from_millis(20)).unwrap_or(Signal::Stopped),
                Signal::Stopped
            );
        }
        assert!(level0_runs(&db) <= LEVEL0_RUNS_MAX);
        gate.open();
        while signals.recv().unwrap() != Signal::Done {}
    });
    assert_eq!(keyspace.range(..).count(), 4_000);
    assert!(db.statistics().stopped_writes > 0);
}
