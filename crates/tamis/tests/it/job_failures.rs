//! The result of a background job is known before another thread repeats the job, and only to those that waited for it.

use std::{
    io::ErrorKind,
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use tamis::{Clock, Condvar, Db, Error, Layout, MutexGuard, Runtime, SystemClock};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use crate::support::{FOLDER, inline_options, open_in_memory, small_keyspace};

const WAITER: &str = "waiter";

/// Reports when the thread [`WAITER`] waits.
#[derive(Debug)]
struct ReportingClock {
    clock: SystemClock,
    waits: Mutex<Sender<()>>,
}

impl Clock for ReportingClock {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn since_epoch(&self) -> Duration {
        self.clock.since_epoch()
    }

    fn wait(&self, condition: &Condvar, guard: &mut MutexGuard<'_, ()>, timeout: Duration) {
        if thread::current().name() == Some(WAITER) {
            let _ = self.waits.lock().send(());
        }
        self.clock.wait(condition, guard, timeout);
    }
}

/// A flush fails after a thread has begun to wait for the background. The job had begun before: its cause may be gone, and the second
/// attempt decides.
#[test]
fn a_wait_ignores_the_failure_of_a_job_that_began_before_it() {
    let vfs = FaultVfs::new(Arc::new(MemVfs::new()));
    let (waits, is_waiting) = channel();
    let clock = ReportingClock { clock: SystemClock::default(), waits: Mutex::new(waits) };
    let runtime = Runtime { clock: Arc::new(clock), ..Runtime::deterministic(7) };
    let options = inline_options().workers(2);
    let db = Db::open_on(Arc::new(vfs.clone()), FOLDER, options, runtime).unwrap();
    let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();

    let ((reach, reached), (release, released)) = (channel(), channel::<()>());
    let (reach, released) = (Mutex::new(reach), Mutex::new(released));
    let hold = Rule::slow(move |_| {
        reach.lock().send(()).unwrap();
        released.lock().recv().unwrap();
    });
    let is_table_sync = |rule: Rule| rule.on(&[OperationKind::Sync]).path(".tmp").times(1);
    vfs.add_rule(is_table_sync(hold));
    vfs.add_rule(is_table_sync(Rule::error(ErrorKind::Other)));
    thread::scope(|scope| {
        // More than a memtable: a worker flushes it.
        (0..100_u32).for_each(|number| keyspace.put(number.to_be_bytes(), [7; 1_000]).unwrap());
        reached.recv().unwrap();
        let wait = thread::Builder::new().name(WAITER.to_owned());
        let wait = wait.spawn_scoped(scope, || db.wait_for_compactions()).unwrap();
        is_waiting.recv().unwrap();
        release.send(()).unwrap();
        wait.join().unwrap().unwrap();
    });
    assert_eq!(db.statistics().jobs_failed, 1);
    db.flush().unwrap();
}

/// The claim was released while the panic unwound, before writes were refused: another worker flushed the memtable.
#[test]
fn after_a_panic_no_worker_repeats_the_job() {
    let layout = Layout::Partitioned { tables_per_partition: 4 };
    let default_keyspace = small_keyspace().layout(layout);
    let memory = MemVfs::new();
    let db = open_in_memory(&memory, inline_options().default_keyspace(default_keyspace)).unwrap();
    let put = |db: &Db, step: usize| {
        (0..1_500_u64).step_by(step).for_each(|number| {
            db.put((number * 7_919 % 1_500).to_be_bytes(), [7; 600]).unwrap();
        });
    };
    put(&db, 1);
    db.flush().unwrap();
    db.close().unwrap();
    for _ in 0..50 {
        let faults = FaultVfs::new(Arc::new(memory.crash_clone(0)));
        let panicking = Rule::slow(|_| panic!("injected panic"));
        let vfs: Arc<dyn Vfs> = Arc::new(faults.clone());
        let db = Db::open_on(vfs, FOLDER, inline_options().workers(4), Runtime::system()).unwrap();
        put(&db, 25);
        let rule = faults.add_rule(panicking.on(&[OperationKind::Sync]).path(".tmp"));
        let flushed = db.flush();
        assert!(matches!(flushed, Err(Error::WritesRefused { .. })), "{flushed:?}");
        drop(db);
        assert_eq!(faults.hit_count(rule), 1);
    }
}
