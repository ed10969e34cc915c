//! Times of filter probes and of reads are measured once and kept over a reopening; no answer depends on them.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tamis::{Access, Clock, Condvar, Db, Event, EventListener, ManualClock, MutexGuard, Options, Runtime};
use tamis_vfs::{MemVfs, Vfs};

use crate::support::FOLDER;

/// A clock that advances by a microsecond at each look, and says that it follows real time.
#[derive(Debug, Default)]
struct MachineClock(ManualClock);

impl Clock for MachineClock {
    fn now(&self) -> Duration {
        self.0.advance(Duration::from_micros(1));
        self.0.now()
    }

    fn wait(&self, condition: &Condvar, guard: &mut MutexGuard<'_, ()>, timeout: Duration) {
        self.0.wait(condition, guard, timeout);
    }

    fn is_real_time(&self) -> bool {
        true
    }
}

/// Counts how often the times of probes were measured.
#[derive(Debug, Default)]
struct Measurements(AtomicU64);

impl EventListener for Measurements {
    fn on_event(&self, event: &Event) {
        if matches!(event, Event::ProbeTimesMeasured { .. }) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Machine {
    vfs: MemVfs,
    measurements: Arc<Measurements>,
}

impl Machine {
    /// A machine with a closed store of a thousand keys.
    fn new() -> Self {
        let machine = Self { vfs: MemVfs::new(), measurements: Arc::default() };
        let db = machine.open(Arc::new(ManualClock::default()));
        for number in 0..1_000_u32 {
            db.put((2 * number).to_be_bytes(), "value").unwrap();
        }
        db.flush().unwrap();
        db.close().unwrap();
        machine
    }

    fn open_with(&self, clock: Arc<dyn Clock>, access: Access) -> Db {
        let listener: Arc<dyn EventListener> = Arc::<Measurements>::clone(&self.measurements);
        let options =
            Options { workers: 0, listener: Some(listener), table_access: access, ..Options::default() };
        let runtime = Runtime { clock, ..Runtime::deterministic(1) };
        Db::open_on(Arc::new(self.vfs.clone()), FOLDER, options, runtime).unwrap()
    }

    fn open(&self, clock: Arc<dyn Clock>) -> Db {
        self.open_with(clock, Access::Mapped)
    }

    /// Opens the store, reads present and absent keys, lets due jobs run, and closes it. Returns how often the times of probes were measured.
    fn use_store(&self, clock: Arc<dyn Clock>, reads: u32) -> u64 {
        let before = self.measurements.0.load(Ordering::Relaxed);
        let db = self.open(clock);
        for number in 0..reads {
            let value = db.get((number % 1_999).to_be_bytes()).unwrap();
            assert_eq!(value.is_some(), number % 1_999 % 2 == 0, "{number}");
        }
        db.put("new", "value").unwrap();
        db.flush().unwrap();
        db.close().unwrap();
        self.measurements.0.load(Ordering::Relaxed) - before
    }
}

fn machine_clock() -> Arc<dyn Clock> {
    Arc::new(MachineClock::default())
}

fn samples_path() -> PathBuf {
    Path::new(FOLDER).join("SAMPLES")
}

#[test]
fn probe_times_are_measured_once_per_machine() {
    let machine = Machine::new();
    assert_eq!(machine.use_store(machine_clock(), 100), 0, "a store without a sample needs no exact prices");
    assert_eq!(machine.use_store(machine_clock(), 1_500), 1);
    // Elsewhere the model of the processor is not known, and so not whether the machine is the same.
    let again = u32::from(!cfg!(target_arch = "x86_64"));
    assert_eq!(machine.use_store(machine_clock(), 1_500), again.into(), "they are stored");

    let mut damaged = machine.vfs.read(&samples_path()).unwrap();
    damaged[30] ^= 1;
    machine.vfs.remove(&samples_path()).unwrap();
    machine.vfs.create(&samples_path()).unwrap().append(&damaged).unwrap();
    assert_eq!(machine.use_store(machine_clock(), 1_500), 1, "a damaged file is as good as none");
}

#[test]
fn a_clock_of_a_test_measures_no_probe_times() {
    assert_eq!(Machine::new().use_store(Arc::new(ManualClock::default()), 1_500), 0);
}

#[test]
fn read_times_are_kept_over_a_reopening_with_the_same_access() {
    let machine = Machine::new();
    machine.use_store(machine_clock(), 1_500);
    // Levels that were not read are not in the statistics; one read does not determine a mean.
    let known = |access: Access| {
        let db = machine.open_with(machine_clock(), access);
        assert!(db.get(2_u32.to_be_bytes()).unwrap().is_some());
        db.statistics().filters.iter().map(|level| level.read_nanoseconds).max()
    };
    assert_eq!(known(Access::Mapped), Some(1_000));
    assert_eq!(known(Access::Buffered), Some(0), "another access takes another time");
}
