//! Code of the program panics inside of the store: the file system at every operation, the clock at every call, the event listener at
//! every event, on the writing thread and on workers.
//!
//! Each call then returns `Ok` or a typed error. Writes are refused with the text of the panic, reads continue, close returns, and
//! the store opens again with all acknowledged writes.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use tamis::{
    Access, Clock, Db, Durability, Error, Event, EventListener, KeyspaceOptions, ManualClock, Options,
    Runtime, WriteBatch,
};
use tamis_vfs::{FaultVfs, MemVfs, Rule, Vfs};

use crate::support::{FOLDER, inline_options, open_in_memory, small_keyspace, sweep_stride};

const TEXT: &str = "injected panic";

/// Panics when it is counted down to zero.
#[derive(Debug, Clone)]
struct Fuse(Arc<AtomicI64>);

impl Fuse {
    /// Panics at the `nth` call; 0 for never.
    fn new(nth: i64) -> Self {
        Self(Arc::new(AtomicI64::new(nth)))
    }

    fn burn(&self) {
        assert_ne!(self.0.fetch_sub(1, Ordering::SeqCst), 1, "{TEXT}");
    }

    /// Whether the fuse of some call has panicked.
    fn is_burnt(&self, nth: i64) -> bool {
        nth > 0 && self.0.load(Ordering::SeqCst) <= 0
    }
}

#[derive(Debug)]
struct FusedClock {
    fuse: Fuse,
    clock: ManualClock,
}

impl Clock for FusedClock {
    fn now(&self) -> Duration {
        self.fuse.burn();
        self.clock.now()
    }

    fn since_epoch(&self) -> Duration {
        self.clock.since_epoch()
    }

    fn wait(&self, condition: &tamis::Condvar, guard: &mut tamis::MutexGuard<'_, ()>, timeout: Duration) {
        self.fuse.burn();
        condition.wait_for(guard, timeout.min(Duration::from_millis(1)));
        self.clock.advance(timeout);
    }
}

#[derive(Debug)]
struct FusedListener(Fuse);

impl EventListener for FusedListener {
    fn on_event(&self, _: &Event) {
        self.0.burn();
    }
}

/// The panics of one run: the number of the file operation, clock call or event; 0 for none.
#[derive(Debug, Clone, Copy, Default)]
struct Panics {
    file: i64,
    clock: i64,
    event: i64,
}

/// The acknowledged writes of the program.
#[derive(Debug, Default)]
struct Acknowledged {
    entries: BTreeMap<Vec<u8>, Vec<u8>>,
    is_other_keyspace_there: bool,
}

fn check<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Io { source, .. }) => {
            assert!(source.to_string().contains(TEXT), "{source}");
            None
        }
        Err(Error::WritesRefused { cause }) => {
            assert!(cause.contains(TEXT), "{cause}");
            None
        }
        Err(Error::Panicked { message, .. }) => {
            assert_eq!(&*message, TEXT);
            None
        }
        Err(other) => panic!("not an error of a panic: {other:?}"),
    }
}

fn options(workers: usize, listener: Option<Arc<dyn EventListener>>) -> Options {
    let mut options =
        inline_options().workers(workers).table_access(Access::Buffered).default_keyspace(small_keyspace());
    options.listener = listener;
    options
}

/// Writes, flushes, compacts and reads.
fn work(db: &Db, acknowledged: &mut Acknowledged) {
    let other = check(db.create_keyspace("other", KeyspaceOptions::default()));
    acknowledged.is_other_keyspace_there = other.is_some();
    for number in 0..40_u8 {
        let (key, value) = (vec![number % 7, number], vec![number; 8 << 10]);
        let mut batch = WriteBatch::new();
        batch.put(&db.default_keyspace(), &key, &value).unwrap();
        if let Some(other) = &other {
            batch.put(other, [number], "other").unwrap();
        }
        let durability =
            [Durability::Deferred, Durability::Buffered, Durability::Synced][usize::from(number % 3)];
        if check(db.write_with(batch, durability)).is_some() {
            acknowledged.entries.insert(key, value);
        }
    }
    check(db.flush());
    check(db.compact_range(&db.default_keyspace(), ..));
    check(db.rebuild_filters(&db.default_keyspace(), &["blocked-bloom@12".parse().unwrap()]));
    check(db.wait_for_compactions());
    check(db.get([0, 7]));
}

/// Runs the workload with some panics; returns whether one happened.
fn run(workers: usize, panics: Panics) -> bool {
    let memory = MemVfs::new();
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let fuses = [Fuse::new(panics.file), Fuse::new(panics.clock), Fuse::new(panics.event)];
    let [file, clock, event] = fuses.clone();
    faults.add_rule(Rule::slow(move |_| file.burn()));
    let clock = Arc::new(FusedClock { fuse: clock, clock: ManualClock::default() });
    let runtime = Runtime { clock, ..Runtime::deterministic(7) };
    let has_panicked = || {
        let numbers = [panics.file, panics.clock, panics.event];
        fuses.iter().zip(numbers).any(|(fuse, number)| fuse.is_burnt(number))
    };
    let mut acknowledged = Acknowledged::default();
    let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
    let options_now = options(workers, Some(Arc::new(FusedListener(event))));
    if let Some(db) = check(Db::open_on(vfs, FOLDER, options_now, runtime)) {
        work(&db, &mut acknowledged);
        if has_panicked() {
            // The panic of a worker may still be on its way to the background error.
            while db.put("late", "refused").is_ok() {
                std::thread::yield_now();
            }
            assert!(matches!(db.put("late", "refused"), Err(Error::WritesRefused { .. })), "{panics:?}");
            for (key, value) in &acknowledged.entries {
                assert_eq!(db.get(key).unwrap().as_deref(), Some(&**value), "{panics:?}: {key:?}");
            }
        }
        check(db.close());
    }
    let has_panicked = has_panicked();
    faults.clear_rules();
    let db =
        open_in_memory(&memory, options(workers, None)).unwrap_or_else(|error| panic!("{panics:?}: {error}"));
    for (key, value) in &acknowledged.entries {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(&**value), "{panics:?}: {key:?}");
    }
    if acknowledged.is_other_keyspace_there {
        let other = db.keyspace("other").unwrap();
        assert!(other.range(..).count() >= acknowledged.entries.len(), "{panics:?}");
    }
    db.put("late", "accepted").unwrap();
    db.close().unwrap();
    has_panicked
}

/// Runs the workload with a panic at each number until none happens; returns the greatest number that had one.
fn sweep(workers: usize, step: usize, panics: impl Fn(i64) -> Panics) -> i64 {
    let mut numbers = (1_i64..).step_by(step);
    let first = numbers.find(|&number| !run(workers, panics(number)));
    first.map_or(0, |number| number - step as i64)
}

#[test]
fn a_panic_at_any_file_operation_refuses_writes_and_loses_nothing() {
    let stride = sweep_stride() as usize;
    assert!(sweep(0, stride, |file| Panics { file, ..Panics::default() }) > 200);
}

#[test]
fn a_panic_of_a_worker_at_any_file_operation_refuses_writes_and_loses_nothing() {
    assert!(sweep(2, 5, |file| Panics { file, ..Panics::default() }) > 150);
}

#[test]
fn a_panic_at_any_event_refuses_writes_and_loses_nothing() {
    assert!(sweep(0, 1, |event| Panics { event, ..Panics::default() }) > 5);
    assert!(sweep(2, 1, |event| Panics { event, ..Panics::default() }) > 2);
}

#[test]
fn a_panic_at_any_call_of_the_clock_refuses_writes_and_loses_nothing() {
    assert!(sweep(0, 3, |clock| Panics { clock, ..Panics::default() }) > 30);
    assert!(sweep(2, 7, |clock| Panics { clock, ..Panics::default() }) > 35);
}

/// A panic of one thread must not keep the others from the leadership of the write group.
#[test]
fn a_panic_of_a_leader_releases_the_writers_that_wait_for_it() {
    let faults = FaultVfs::new(Arc::new(MemVfs::new()));
    let db = Db::open_on(Arc::new(faults.clone()), Path::new(FOLDER), options(1, None), Runtime::system())
        .unwrap();
    // 1,600 writes in groups of at most eight: there are at least 200 appends.
    let rule = faults.add_rule(Rule::slow(|_| panic!("{TEXT}")).path(".log").nth(100).times(1));
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let db = db.clone();
            scope.spawn(move || {
                for number in 0..200_u8 {
                    let mut batch = WriteBatch::new();
                    batch.put(&db.default_keyspace(), [thread, number], "value").unwrap();
                    let durability = if number % 4 == 0 { Durability::Synced } else { Durability::Buffered };
                    check(db.write_with(batch, durability));
                }
            });
        }
    });
    assert_eq!(faults.hit_count(rule), 1);
    assert!(matches!(db.put("key", "value"), Err(Error::WritesRefused { .. })));
}
