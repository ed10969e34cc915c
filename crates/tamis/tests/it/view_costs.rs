//! The cost of views with many runs, and while other jobs run: blocks per seek, runs that are added one by one, flushes and compactions
//! during a build.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

use tamis::{Db, Event, EventListener, Keyspace, Runtime, Views};
use tamis_vfs::{FaultVfs, MemVfs, Operation, OperationKind, Rule, Vfs};

use crate::{
    support::{FOLDER, SplitMix64, key},
    views::{Store, all, all_backward, blocks_touched, fill, value, view_files, views_of},
};

/// The limit of the blocks that a seek reads on average.
const BLOCKS_PER_SEEK: f64 = 1.3;

/// A store with this many runs, and a view that was built over all of them at once.
fn filled(count: u64, run_count: u64) -> (Db, Keyspace) {
    let (db, keyspace) = Store::new(Views::Off).open();
    fill(&db, &keyspace, count, run_count);
    keyspace.set_options(keyspace.options().views(Views::On)).unwrap();
    (db, keyspace)
}

/// The blocks of a seek to an even number below `2 * count`, or behind it, in both directions. All even keys exist.
fn blocks_per_seek(db: &Db, keyspace: &Keyspace, count: u64) -> f64 {
    const SEEKS: u64 = 400;
    let mut random = SplitMix64::new(1);
    let before = blocks_touched(db);
    for turn in 0..SEEKS {
        let sought = random.below(2 * count - 1);
        let mut scan = keyspace.range(..);
        if turn % 2 == 0 {
            scan.seek(key(sought)).unwrap();
            assert!(scan.move_next().unwrap() && scan.key() == key(sought.next_multiple_of(2)));
        } else {
            scan.seek_for_prev(key(sought)).unwrap();
            assert!(scan.move_prev().unwrap() && scan.key() == key(sought / 2 * 2));
        }
    }
    (blocks_touched(db) - before) as f64 / SEEKS as f64
}

#[test]
fn a_seek_reads_about_one_block_at_any_number_of_runs() {
    for run_count in [2, 16, 63] {
        let count = 252 * run_count;
        let (db, keyspace) = filled(count, run_count);
        assert_eq!((views_of(&db).open_count, views_of(&db).run_count as u64), (1, run_count));
        let blocks = blocks_per_seek(&db, &keyspace, count);
        println!("{run_count} runs: {blocks} blocks per seek");
        assert!(blocks <= BLOCKS_PER_SEEK, "{blocks} blocks per seek in {run_count} runs");
    }
}

/// Each flush adds a run to the view, up to the most runs that L0 has.
#[test]
fn each_flush_adds_a_run_to_a_view_of_many_runs() {
    const BEFORE: u64 = 59;
    const AFTER: u64 = 63;
    let count = 6_000;
    let (db, keyspace) = filled(count, BEFORE);
    assert_eq!(views_of(&db).run_count as u64, BEFORE);
    let mut expected = all(&keyspace);
    for run in BEFORE..AFTER {
        // Another version of some keys.
        for number in (run..count).step_by(600) {
            keyspace.put(key(2 * number), value(number, run)).unwrap();
            expected[number as usize].1 = value(number, run);
        }
        db.flush().unwrap();
        assert_eq!((views_of(&db).open_count, views_of(&db).run_count as u64), (1, run + 1));
    }
    let statistics = db.statistics();
    assert_eq!((statistics.views_built, statistics.views_rebuilt), (1, AFTER - BEFORE));
    assert!(all(&keyspace) == expected && all_backward(&keyspace) == expected);
    for (key, value) in expected.iter().step_by(37) {
        assert_eq!(keyspace.get(key).unwrap().as_deref(), Some(value.as_slice()));
    }
    let blocks = blocks_per_seek(&db, &keyspace, count);
    assert!(blocks <= BLOCKS_PER_SEEK, "{blocks} blocks per seek");
    assert!(db.verify().unwrap().is_sound());
}

/// Reports the views that were built: runs, and whether they were rebuilt.
#[derive(Debug, Default)]
struct Listener {
    built: Mutex<Vec<(usize, bool)>>,
    has_failed: AtomicBool,
}

impl EventListener for Listener {
    fn on_event(&self, event: &Event) {
        match event {
            Event::ViewBuilt { run_count, is_rebuilt, .. } => {
                self.built.lock().unwrap().push((*run_count, *is_rebuilt));
            }
            Event::ViewFailed { .. } | Event::JobFailed { .. } => {
                self.has_failed.store(true, Ordering::SeqCst)
            }
            _ => {}
        }
    }
}

/// A store on threads whose first build of a view stops when it has written the file.
struct StoppedBuild {
    memory: MemVfs,
    db: Db,
    keyspace: Keyspace,
    listener: Arc<Listener>,
    reached: Receiver<()>,
    resume: SyncSender<()>,
    /// The build has waited for longer than any read takes.
    has_waited: Arc<AtomicBool>,
}

impl StoppedBuild {
    /// Three runs; the build of their view is stopped.
    fn new() -> Self {
        let memory = MemVfs::new();
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let (reach, reached) = sync_channel(1);
        let (resume, wait) = sync_channel(1);
        let has_waited = Arc::new(AtomicBool::new(false));
        let listener = Arc::new(Listener::default());
        let store = filled_on(&memory);
        let (wait, late) = (Mutex::new(wait), Arc::clone(&has_waited));
        let stop = move |_: &Operation| {
            reach.send(()).unwrap();
            let released = wait.lock().unwrap().recv_timeout(Duration::from_secs(60));
            late.store(released.is_err(), Ordering::SeqCst);
        };
        faults.add_rule(Rule::slow(stop).on(&[OperationKind::Rename]).path(".view").times(1));
        let options =
            store.options.clone().workers(2).listener(Arc::clone(&listener) as Arc<dyn EventListener>);
        let runtime = Runtime { seed: 3, ..Runtime::system() };
        let db = Db::open_on(Arc::new(faults), FOLDER, options, runtime).unwrap();
        let keyspace = db.keyspace("k").unwrap();
        keyspace.set_options(keyspace.options().views(Views::On)).unwrap();
        reached.recv().unwrap();
        Self { memory, db, keyspace, listener, reached, resume, has_waited }
    }

    /// Lets the build end, and waits for all jobs.
    fn release(&self) {
        self.resume.send(()).unwrap();
        self.db.wait_for_compactions().unwrap();
        assert!(!self.has_waited.load(Ordering::SeqCst), "a read or a job waited for the build");
        assert!(!self.listener.has_failed.load(Ordering::SeqCst));
        assert!(self.reached.try_recv().is_err(), "one build was stopped");
    }
}

const KEYS: u64 = 3_000;

/// A store in memory with three runs and without a view, closed.
fn filled_on(memory: &MemVfs) -> Store {
    let store = Store { vfs: Arc::new(memory.clone()), ..Store::new(Views::Off) };
    let (db, keyspace) = store.open();
    fill(&db, &keyspace, KEYS, 3);
    drop(keyspace);
    db.close().unwrap();
    store
}

#[test]
fn a_flush_during_a_build_waits_for_nothing_and_joins_the_view() {
    let build = StoppedBuild::new();
    let (db, keyspace) = (&build.db, &build.keyspace);
    let mut expected = all(keyspace);
    keyspace.put(key(1), value(1, 1)).unwrap();
    expected.insert(1, (key(1), value(1, 1)));
    db.flush().unwrap();
    assert!(all(keyspace) == expected && all_backward(keyspace) == expected);
    assert_eq!(
        (views_of(db).count, keyspace.get(key(1)).unwrap().as_deref()),
        (0, Some(value(1, 1).as_slice()))
    );
    build.release();
    assert_eq!(*build.listener.built.lock().unwrap(), [(3, false), (4, true)]);
    assert_eq!((views_of(db).open_count, db.statistics().views_discarded), (1, 0));
    assert!(all(keyspace) == expected && all_backward(keyspace) == expected);
    assert!(db.verify().unwrap().is_sound());
}

#[test]
fn a_compaction_during_a_build_waits_for_nothing_and_discards_the_view() {
    let build = StoppedBuild::new();
    let (db, keyspace) = (&build.db, &build.keyspace);
    let expected = all(keyspace);
    db.compact_range(keyspace, ..).unwrap();
    assert!(all(keyspace) == expected && all_backward(keyspace) == expected);
    build.release();
    assert_eq!((views_of(db).count, db.statistics().views_discarded), (0, 1));
    assert_eq!(*build.listener.built.lock().unwrap(), [], "one run needs no view");
    assert!(all(keyspace) == expected && all_backward(keyspace) == expected);
    let names = build.memory.list(Path::new(FOLDER)).unwrap().into_iter().map(|entry| entry.name);
    assert!(view_files(&build.memory).is_empty() && names.into_iter().all(|name| !name.ends_with(".tmp")));
    assert!(db.verify().unwrap().is_sound());
}
