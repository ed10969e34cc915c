//! Every file operation of a scenario fails once, in each of several ways; and from each operation on, all of them fail.
//!
//! - Each call returns `Ok` or an error of the file system.
//! - Acknowledged writes stay readable in the same handle, after an open, and (if they were synced) after a crash.
//! - A failed batch is present completely or not at all.
//! - A failed sync is final: writes are refused, reads continue. After any other fault, writes work again once no operation fails.
//! - Failures of background jobs are reported.
//! - The folder contains no files that the store does not need.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tamis::{Clock, Db, Durability, Error, Event, EventListener, ManualClock, Runtime, WriteBatch};
use tamis_vfs::{FaultVfs, MemVfs, Operation, OperationKind, Rule, Vfs};

use crate::{
    scenario::{
        Context, Edit, Entry, Plan, State, Step, apply, difference, is_durable, new_state, read_all, run,
        script, with_filter_steps, with_view_steps,
    },
    support::{FOLDER, SplitMix64, inline_options, small_keyspace, sweep_stride},
};

/// A clock that detects an endless loop.
#[derive(Debug, Default)]
struct PatientClock {
    clock: ManualClock,
    asked: AtomicU64,
}

impl Clock for PatientClock {
    fn now(&self) -> Duration {
        assert!(self.asked.fetch_add(1, Ordering::Relaxed) < 200_000, "the store is in an endless loop");
        self.clock.now()
    }

    fn since_epoch(&self) -> Duration {
        self.clock.since_epoch()
    }

    fn wait(&self, condition: &tamis::Condvar, guard: &mut tamis::MutexGuard<'_, ()>, timeout: Duration) {
        self.clock.wait(condition, guard, timeout);
    }
}

/// Records the events of the store.
#[derive(Debug, Default)]
struct Listener {
    failures: Mutex<Vec<String>>,
    view_failure_count: AtomicU64,
}

impl EventListener for Listener {
    fn on_event(&self, event: &Event) {
        let mut failures = self.failures.lock().unwrap();
        let is_view_failure = matches!(event, Event::ViewFailed { .. });
        self.view_failure_count.fetch_add(u64::from(is_view_failure), Ordering::Relaxed);
        match event {
            Event::JobFailed { job, error } => failures.push(format!("{job}: {error}")),
            Event::FilterCorrupt { reason, .. } | Event::ViewFailed { reason, .. } => {
                failures.push(reason.clone());
            }
            _ => {}
        }
    }
}

/// A step that was tried.
#[derive(Debug, Clone)]
struct Record {
    step: Step,
    /// Shows whether a write is present, independently of other records.
    mark: Vec<u8>,
    is_acknowledged: bool,
    /// A change of the manifest that failed and was found nevertheless: certain after a store was opened with it.
    may_vanish: bool,
}

/// A program, its store, and the acknowledgements that it received.
struct World {
    memory: MemVfs,
    faults: FaultVfs,
    listener: Arc<Listener>,
    db: Option<Db>,
    records: Vec<Record>,
    /// The acknowledged records before this one are durable.
    durable: usize,
    /// The content that the handle returns.
    state: State,
    mark_count: usize,
    error_count: usize,
    /// A sync failed.
    is_refused: bool,
    /// Views that the closed handles have built and rebuilt.
    views: [u64; 2],
}

/// The views that a handle has built and rebuilt.
fn views_of(db: &Db) -> [u64; 2] {
    let statistics = db.statistics();
    [statistics.views_built, statistics.views_rebuilt]
}

/// The acknowledged writes that may be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// Nothing.
    None,
    /// The deferred ones at the end.
    Deferred,
    /// The unsynced ones at the end.
    Unsynced,
}

/// Only errors of the file system are allowed.
fn check_kind(error: &Error) {
    assert!(
        matches!(error, Error::Io { .. } | Error::DiskFull { .. } | Error::WritesRefused { .. }),
        "not an error of the file system: {error:?}"
    );
}

/// A copy of the folder in the state that another process would find.
fn copy(memory: &MemVfs) -> MemVfs {
    let target = MemVfs::new();
    let folder = Path::new(FOLDER);
    target.create_dir_all(folder).unwrap();
    for entry in memory.list(folder).unwrap_or_default() {
        let path = folder.join(entry.name);
        target.create(&path).unwrap().append(&memory.read(&path).unwrap()).unwrap();
    }
    target
}

impl World {
    fn new() -> Self {
        let memory = MemVfs::new();
        Self {
            faults: FaultVfs::new(Arc::new(memory.clone())),
            memory,
            listener: Arc::default(),
            db: None,
            records: Vec::new(),
            durable: 0,
            state: new_state(),
            mark_count: 0,
            error_count: 0,
            is_refused: false,
            views: [0; 2],
        }
    }

    fn open(&self, vfs: Arc<dyn Vfs>) -> tamis::Result<Db> {
        let listener: Arc<dyn EventListener> = Arc::clone(&self.listener) as _;
        let options = inline_options().listener(listener);
        let runtime = Runtime { clock: Arc::new(PatientClock::default()), ..Runtime::deterministic(7) };
        Db::open_on(vfs, FOLDER, options, runtime)
    }

    /// Opens the store if it is not.
    fn reach_db(&mut self) -> Option<Db> {
        if self.db.is_none() {
            match self.open(Arc::new(self.faults.clone())) {
                Ok(db) => {
                    self.db = Some(db);
                    self.records.iter_mut().for_each(|record| record.may_vanish = false);
                }
                Err(error) => self.note_error(&error),
            }
        }
        self.db.clone()
    }

    fn note_error(&mut self, error: &Error) {
        check_kind(error);
        self.error_count += 1;
    }

    /// The step, adapted to the current state: some earlier steps may have failed.
    fn fitting(&mut self, step: &Step) -> Option<Record> {
        self.mark_count += 1;
        let mark = format!("mark/{:04}", self.mark_count).into_bytes();
        let step = match step {
            Step::Write(entries, durability) => {
                let edit = Edit::Put(Arc::from(b"here".as_slice()));
                let marking = Entry { keyspace: "default".to_owned(), key: mark.clone(), edit };
                let known = entries.iter().filter(|entry| self.state.contains_key(&entry.keyspace));
                Some(Step::Write(known.cloned().chain([marking]).collect(), *durability))
            }
            Step::Create(name) => (!self.state.contains_key(name)).then(|| step.clone()),
            Step::Drop(name)
            | Step::Compact(name)
            | Step::RebuildFilters(name, _)
            | Step::CheckFilters(name) => self.state.contains_key(name).then(|| step.clone()),
            Step::Ingest(entries) => {
                let is_known = |entry: &Entry| self.state.contains_key(&entry.keyspace);
                entries.first().is_some_and(is_known).then(|| step.clone())
            }
            _ => Some(step.clone()),
        };
        Some(Record { step: step?, mark, is_acknowledged: false, may_vanish: false })
    }

    fn step(&mut self, step: &Step) {
        let Some(mut record) = self.fitting(step) else { return };
        let step = record.step.clone();
        if matches!(step, Step::Reopen | Step::Kill) {
            self.close();
            return;
        }
        let Some(db) = self.reach_db() else { return };
        let result = match step {
            Step::Verify => db.verify().map(drop),
            _ => run(&db, &step),
        };
        // A table is built outside of the store while writes continue.
        if self.is_refused && !matches!(step, Step::Verify | Step::Ingest(_)) {
            let is_refusal = matches!(result, Err(Error::WritesRefused { .. }));
            assert!(is_refusal, "{step:?} after a failed sync: {result:?}");
        }
        match &result {
            Ok(()) => apply(&mut self.state, &step),
            Err(error) => self.note_error(error),
        }
        self.is_refused |= matches!(db.persist(Durability::Deferred), Err(Error::WritesRefused { .. }));
        record.is_acknowledged = result.is_ok();
        self.records.push(record);
        if result.is_ok() && is_durable(&step) {
            self.durable = self.records.len();
        }
    }

    /// Closes the store, and checks the state that the next process will find.
    fn close(&mut self) {
        self.views = self.all_views();
        let Some(db) = self.db.take() else { return };
        let loss = match db.close() {
            Ok(()) => {
                assert!(!self.is_refused, "a close that could not sync says so");
                self.durable = self.records.len();
                Loss::None
            }
            Err(error) => {
                self.note_error(&error);
                Loss::Deferred
            }
        };
        self.is_refused = false;
        let (state, made) = self.read_content(copy(&self.memory), loss);
        self.state = state;
        // A power failure can undo the truncation of a failed write, until the next process has opened the store.
        let may_return = |record: &Record| {
            loss != Loss::None && !record.is_acknowledged && matches!(record.step, Step::Write(..))
        };
        let (mut kept, mut durable) = (Vec::new(), 0);
        for (index, record) in self.records.drain(..).enumerate() {
            let is_found = made.contains(&index);
            let may_vanish = is_found && !record.is_acknowledged || record.may_vanish;
            if is_found || may_return(&record) {
                kept.push(Record { may_vanish, is_acknowledged: is_found, ..record });
                durable += usize::from(index < self.durable);
            }
        }
        (self.records, self.durable) = (kept, durable);
    }

    /// Views that all handles have built and rebuilt.
    fn all_views(&self) -> [u64; 2] {
        let open = self.db.as_ref().map_or([0; 2], views_of);
        [self.views[0] + open[0], self.views[1] + open[1]]
    }

    /// The content of a store in `memory`, and the records that produce it.
    fn read_content(&self, memory: MemVfs, loss: Loss) -> (State, Vec<usize>) {
        let db = self.open(Arc::new(memory)).expect("without faults the store opens");
        let found = read_all(&db, &self.state).expect("without faults the store can be read");
        let report = db.verify().expect("without faults the store can be verified");
        assert!(report.is_sound(), "faults: {:?}", report.faults);
        let records = self.explain(&found, loss);
        (found, records)
    }

    /// The records that produce the found state, if any do.
    fn explain(&self, found: &State, loss: Loss) -> Vec<usize> {
        let is_there = |record: &Record| found["default"].contains_key(&record.mark);
        let mut lost = None;
        for (index, record) in self.records.iter().enumerate() {
            let Step::Write(_, durability) = record.step else { continue };
            let text = || format!("write {} at {durability:?}", String::from_utf8_lossy(&record.mark));
            match (record.is_acknowledged, is_there(record)) {
                (true, true) => assert_eq!(lost, None, "{} survived an earlier one", text()),
                (true, false) => {
                    let may_be_lost = match loss {
                        Loss::None => false,
                        Loss::Deferred => index >= self.durable && durability == Durability::Deferred,
                        Loss::Unsynced => index >= self.durable,
                    };
                    assert!(may_be_lost, "lost, {loss:?} allowed: {}", text());
                    lost = Some(index);
                }
                (false, true) => {
                    let mut later = self.records[index + 1..].iter();
                    let later = later.find(|record| {
                        record.is_acknowledged && matches!(record.step, Step::Write(..)) && is_there(record)
                    });
                    assert!(later.is_none(), "failed, and there along with a later one: {}", text());
                }
                (false, false) => {}
            }
        }
        // Any of the failed changes of the manifest may have happened.
        let is_uncertain = |record: &Record| {
            matches!(record.step, Step::Create(_) | Step::Drop(_) | Step::Ingest(_))
                && (!record.is_acknowledged || loss == Loss::Unsynced && record.may_vanish)
        };
        let failed = self.records.iter().enumerate();
        let failed: Vec<_> = failed.filter(|(_, record)| is_uncertain(record)).collect();
        let mut differences = Vec::new();
        for chosen in 0..1_u32 << failed.len().min(12) {
            let happened: BTreeSet<usize> =
                (0..failed.len()).filter(|bit| chosen >> bit & 1 == 1).map(|bit| failed[bit].0).collect();
            let mut state = new_state();
            let mut made = Vec::new();
            for (index, record) in self.records.iter().enumerate() {
                let is_there = match record.step {
                    Step::Write(..) => is_there(record),
                    _ => !is_uncertain(record) || happened.contains(&index),
                };
                if is_there {
                    apply(&mut state, &record.step);
                    made.push(index);
                }
            }
            if state == *found {
                return made;
            }
            differences.push(difference(found, &state));
        }
        panic!("found what no records make: {differences:#?}");
    }

    /// The handle returns the acknowledged writes and nothing else.
    fn check_handle(&self) {
        let Some(db) = &self.db else { return };
        let found = read_all(db, &self.state).expect("without faults reads continue");
        assert!(found == self.state, "the handle shows another state: {}", difference(&found, &self.state));
    }

    /// The faults end: reads and, unless a sync failed, writes continue in the same handle. In any case the next open finds all
    /// writes that must survive.
    fn check_end(&mut self, random: &mut SplitMix64) {
        self.faults.clear_rules();
        self.check_handle();
        for _ in 0..2 {
            self.read_content(self.memory.crash_clone(random.next_u64()), Loss::Unsynced);
        }
        let entry = |key: &str| Entry {
            keyspace: "default".to_owned(),
            key: key.as_bytes().to_vec(),
            edit: Edit::Put(Arc::from(vec![7; 5_000])),
        };
        for _ in 0..2 {
            let (errors, was_refused) = (self.error_count, self.is_refused);
            self.step(&Step::Write(vec![entry("end")], Durability::Buffered));
            self.step(&Step::Create("end".to_owned()));
            self.step(&Step::Flush);
            self.step(&Step::Write(vec![entry("end")], Durability::Synced));
            assert!(was_refused || self.error_count == errors, "the faults have ended: writes work again");
            self.check_handle();
            self.read_content(self.memory.crash_clone(random.next_u64()), Loss::Unsynced);
            self.close();
        }
        self.check_folder();
    }

    /// Only what the store needs is in the folder after an open.
    fn check_folder(&mut self) {
        let db = self.reach_db().expect("without faults the store opens");
        db.flush().expect("without faults the store can be flushed");
        let mut names: Vec<String> =
            self.memory.list(Path::new(FOLDER)).unwrap().into_iter().map(|entry| entry.name).collect();
        // The quarantine of tables that may contain entries which the log has lost.
        names.retain(|name| name != "quarantine");
        let count = |suffix: &str| names.iter().filter(|name| name.ends_with(suffix)).count();
        let statistics = db.statistics();
        let levels = statistics.keyspaces.iter().flat_map(|keyspace| &keyspace.levels);
        let tables: usize = levels.map(|level| level.table_count).sum();
        let views: usize = statistics.keyspaces.iter().map(|keyspace| keyspace.views.count).sum();
        let counted = (count(".table"), count(".view"), count(".manifest"), count(".log"), names.len());
        let filters = count(".filter");
        assert!(filters <= tables, "left in the folder: {names:?}");
        let expected = (tables, views, 1, 1, tables + views + filters + 3);
        assert_eq!(counted, expected, "left in the folder: {names:?}");
    }
}

const PLAN: Plan = Plan {
    seed: 3,
    step_count: 60,
    key_count: 12,
    value_bytes_max: 20_000,
    has_keyspaces: true,
    has_ingests: false,
};

/// The scenario without faults has built and rebuilt views: a sweep has reached the operations of both.
fn check_views(views: [u64; 2]) {
    assert!(views[0] > 0 && views[1] > 0, "{views:?} views were built and rebuilt");
}

/// Runs the scenario with a fault at the `nth` operation. If there are fewer, returns the views that were built and rebuilt without a fault.
fn run_with(make_rule: &dyn Fn(u64) -> Rule, steps: &[Step], nth: u64) -> Option<[u64; 2]> {
    let mut world = World::new();
    let rule = world.faults.add_rule(make_rule(nth));
    let _context = Context(format!("fault {:?}", make_rule(nth)));
    for step in steps {
        world.step(step);
    }
    let hit_count = world.faults.hit_count(rule);
    let views = world.all_views();
    world.check_end(&mut SplitMix64::new(nth));
    (hit_count == 0).then_some(views)
}

/// Each operation, or each `stride`-th, until no fault occurs; without `TAMIS_SWEEPS=1` a share of them.
fn sweep(stride: u64, make_rule: &dyn Fn(u64) -> Rule) {
    let (_, views) = sweep_steps(&with_view_steps(script(PLAN)), stride, make_rule);
    check_views(views);
}

fn sweep_of(plan: Plan, stride: u64, make_rule: &dyn Fn(u64) -> Rule) {
    sweep_steps(&script(plan), stride, make_rule);
}

/// Returns the number of the last operation with a fault, and the views that were built and rebuilt without one.
fn sweep_steps(steps: &[Step], stride: u64, make_rule: &dyn Fn(u64) -> Rule) -> (u64, [u64; 2]) {
    let stride = stride * sweep_stride();
    let mut nth = 1;
    let views = loop {
        match run_with(make_rule, steps, nth) {
            Some(views) => break views,
            None => nth += stride,
        }
    };
    println!("{} runs up to {:?}, views built and rebuilt: {views:?}", nth / stride, make_rule(nth));
    (nth.saturating_sub(stride), views)
}

/// Whether the state on disk is unknown after a failure of this operation.
fn is_final(operation: &Operation) -> bool {
    let name = operation.file_name();
    match operation.kind {
        OperationKind::Sync => !name.ends_with(".table"),
        OperationKind::SyncDir => true,
        OperationKind::Rename => {
            operation.target.as_deref().is_some_and(|target| target.ends_with("CURRENT"))
        }
        _ => false,
    }
}

/// Whether the result of the operation does not matter: a read of `verify`, which reports the error itself; a mark that only proves
/// a sync; an old log segment that can't be recycled or removed.
fn may_be_silent(operation: &Operation) -> bool {
    let is_log = |path: &Path| path.to_string_lossy().contains(".log");
    match operation.kind {
        OperationKind::Open | OperationKind::Read | OperationKind::Reuse => true,
        OperationKind::Append => operation.length_bytes == 14,
        OperationKind::Rename => operation.target.as_deref().is_some_and(is_log),
        OperationKind::Remove => is_log(&operation.path),
        _ => false,
    }
}

#[test]
fn each_operation_fails_once() {
    let steps = with_view_steps(script(PLAN));
    let mut seen = BTreeMap::<_, usize>::new();
    let mut view_failure_count = 0;
    for nth in 1.. {
        let mut world = World::new();
        let met = Arc::new(Mutex::new(None));
        let note = Arc::clone(&met);
        world.faults.add_rule(
            Rule::slow(move |operation| *note.lock().unwrap() = Some(operation.clone())).nth(nth).times(1),
        );
        world.faults.add_rule(Rule::error(ErrorKind::Other).nth(nth));
        let mut is_refused = false;
        for step in &steps {
            world.step(step);
            is_refused |= world.is_refused;
        }
        let Some(operation) = met.lock().unwrap().take() else {
            check_views(world.all_views());
            break;
        };
        view_failure_count += world.listener.view_failure_count.load(Ordering::Relaxed);
        let _context = Context(format!("failed: {operation:?}"));
        assert!(!is_refused || is_final(&operation), "writes are refused, and no sync failed");
        let is_reported = world.error_count > 0 || !world.listener.failures.lock().unwrap().is_empty();
        assert!(is_reported || may_be_silent(&operation), "no error or event reports the fault");
        *seen.entry(operation.kind).or_default() += 1;
        world.check_end(&mut SplitMix64::new(nth));
    }
    println!("failed: {seen:?}, views: {view_failure_count}");
    assert!(view_failure_count > 15, "{view_failure_count} builds of views have failed");
}

#[test]
fn each_operation_is_done_and_fails_once() {
    sweep(1, &|nth| Rule::error_after(ErrorKind::Other).nth(nth));
}

#[test]
fn each_append_is_cut_short_once() {
    sweep(1, &|nth| Rule::short_append(13).nth(nth));
    sweep(2, &|nth| Rule::short_append(500).nth(nth));
}

#[test]
fn each_operation_finds_the_disk_full_once() {
    sweep(3, &|nth| Rule::error(ErrorKind::StorageFull).nth(nth));
}

#[test]
fn all_operations_fail_from_one_on() {
    sweep(2, &|nth| Rule::error(ErrorKind::Other).nth(nth).forever());
}

#[test]
fn all_operations_are_done_and_fail_from_one_on() {
    sweep(2, &|nth| Rule::error_after(ErrorKind::Other).nth(nth).forever());
}

#[test]
fn all_changes_fail_from_one_on() {
    let kinds = [OperationKind::Create, OperationKind::Append, OperationKind::Rename, OperationKind::Remove];
    sweep(2, &|nth| Rule::error(ErrorKind::Other).on(&kinds).nth(nth).forever());
    sweep(1, &|nth| Rule::error(ErrorKind::Other).on(&[OperationKind::Append]).nth(nth).forever());
    sweep(1, &|nth| Rule::error(ErrorKind::Other).on(&[OperationKind::Remove]).nth(nth).forever());
    sweep(1, &|nth| Rule::error(ErrorKind::Other).on(&[OperationKind::Rename]).nth(nth).forever());
    sweep(1, &|nth| {
        Rule::error(ErrorKind::Other).on(&[OperationKind::Truncate, OperationKind::Append]).nth(nth).forever()
    });
}

#[test]
fn a_full_disk_at_any_size_loses_no_acknowledged_write() {
    sweep(1, &|nth| Rule::disk_full(nth * 3_100));
}

/// A failed manifest edit may have reached the disk. After a failed drop the keyspace still exists for the program, and later writes to
/// it must not be lost through the drop that was never acknowledged.
#[test]
fn a_failed_drop_loses_no_later_writes() {
    for rule in [Rule::error_after(ErrorKind::Other), Rule::short_append(1 << 20)] {
        let mut world = World::new();
        world.step(&Step::Create("a".to_owned()));
        world.faults.add_rule(rule.on(&[OperationKind::Append]).path(".manifest"));
        world.step(&Step::Drop("a".to_owned()));
        assert_eq!(world.error_count, 1);
        let entry = Entry {
            keyspace: "a".to_owned(),
            key: b"key".to_vec(),
            edit: Edit::Put(Arc::from(b"v".as_slice())),
        };
        world.step(&Step::Write(vec![entry], Durability::Synced));
        assert_eq!(world.error_count, 1);
        assert!(world.state.contains_key("a"));
        for seed in 0..24 {
            let (found, _) = world.read_content(world.memory.crash_clone(seed), Loss::Unsynced);
            assert!(found == world.state, "seed {seed}: {}", difference(&found, &world.state));
        }
        let (found, _) = world.read_content(copy(&world.memory), Loss::None);
        assert!(found == world.state, "{}", difference(&found, &world.state));
    }
}

fn put(key: &[u8], length: usize) -> Step {
    let edit = Edit::Put(Arc::from(vec![1; length]));
    Step::Write(vec![Entry { keyspace: "default".to_owned(), key: key.to_vec(), edit }], Durability::Synced)
}

/// The step function expects that every write after a failed sync is refused; this test shows that it happens.
#[test]
fn a_failed_sync_is_final_and_reads_continue() {
    let end = [Step::Create("z".to_owned()), Step::Flush, put(b"k", 5), Step::Persist(Durability::Synced)];
    for (part, error) in [".log", ".manifest"]
        .into_iter()
        .flat_map(|part| [ErrorKind::Other, ErrorKind::StorageFull].map(|error| (part, error)))
    {
        let mut world = World::new();
        world.step(&put(b"before", 100));
        world.faults.add_rule(Rule::error(error).on(&[OperationKind::Sync]).path(part));
        world.step(if part == ".log" { &end[3] } else { &end[0] });
        if part == ".log" {
            // Nothing was left to be synced.
            world.step(&end[2]);
        }
        assert_eq!((world.error_count, world.is_refused), (1, true), "{part} {error:?}");
        for (index, step) in end.iter().enumerate() {
            world.step(step);
            assert_eq!(world.error_count, 2 + index, "{part} {error:?}: {step:?}");
        }
        world.check_handle();
        world.check_end(&mut SplitMix64::new(1));
    }
}

/// Threads that write while the disk fills up, workers that can't flush, and space that returns.
#[test]
fn writers_continue_after_a_full_disk_has_space_again() {
    let memory = MemVfs::new();
    let faults = FaultVfs::new(Arc::new(memory));
    let options = inline_options().workers(2);
    let open = || Db::open_on(Arc::new(faults.clone()), FOLDER, options.clone(), Runtime::system());
    let db = open().unwrap();
    let keyspaces: Vec<_> =
        ["a", "b"].map(|name| db.create_keyspace(name, small_keyspace()).unwrap()).into_iter().collect();
    let key = |thread: u64, number: u64| format!("{thread}/{number:06}").into_bytes();
    let write = |thread: u64, number: u64| -> tamis::Result<()> {
        let mut batch = WriteBatch::new();
        for keyspace in &keyspaces {
            batch.put(keyspace, key(thread, number), vec![thread as u8; 2_000])?;
        }
        db.write_with(batch, if number.is_multiple_of(4) { Durability::Synced } else { Durability::Buffered })
    };
    let acknowledged = Mutex::new(BTreeSet::new());
    for free_bytes in [300_000, 700_000] {
        faults.add_rule(Rule::disk_full(free_bytes));
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (write, acknowledged) = (&write, &acknowledged);
                scope.spawn(move || {
                    let mut error_count = 0;
                    for number in free_bytes..free_bytes + 2_000 {
                        match write(thread, number) {
                            Ok(()) => drop(acknowledged.lock().unwrap().insert((thread, number))),
                            Err(error) => {
                                assert!(matches!(error, Error::DiskFull { .. }), "{error:?}");
                                error_count += 1;
                            }
                        }
                        if error_count == 5 {
                            return;
                        }
                    }
                    panic!("the disk was never full");
                });
            }
        });
        faults.clear_rules();
        for thread in 0..3 {
            write(thread, 0).expect("space returned");
            acknowledged.lock().unwrap().insert((thread, 0));
        }
        db.flush().expect("space returned");
    }
    let check = |db: &Db| {
        for name in ["a", "b"] {
            let keyspace = db.keyspace(name).unwrap();
            let found: BTreeSet<_> = keyspace.range(..).map(|entry| entry.unwrap().0.to_vec()).collect();
            let expected = acknowledged.lock().unwrap();
            let expected: BTreeSet<_> =
                expected.iter().map(|&(thread, number)| key(thread, number)).collect();
            assert!(found == expected, "{} found, {} acknowledged", found.len(), expected.len());
        }
        assert!(db.verify().unwrap().is_sound());
    };
    check(&db);
    drop(keyspaces);
    db.close().unwrap();
    check(&open().unwrap());
}

#[test]
fn a_fault_at_any_operation_of_an_ingest_loses_nothing() {
    let plan = Plan { seed: 11, step_count: 80, has_ingests: true, ..PLAN };
    assert!(script(plan).iter().filter(|step| matches!(step, Step::Ingest(_))).count() > 1);
    sweep_of(plan, 2, &|nth| Rule::error(ErrorKind::Other).nth(nth));
    sweep_of(plan, 3, &|nth| Rule::error_after(ErrorKind::Other).nth(nth));
    sweep_of(plan, 5, &|nth| Rule::error(ErrorKind::StorageFull).nth(nth).forever());
}

#[test]
fn a_fault_at_any_operation_of_a_filter_replacement_loses_nothing() {
    let steps = with_filter_steps(script(PLAN));
    let mut world = World::new();
    let mut replaced = 0;
    for step in &steps {
        let count = |world: &World| world.db.as_ref().map_or(0, |db| db.statistics().filters_replaced);
        let before = count(&world);
        world.step(step);
        replaced += count(&world).saturating_sub(before);
    }
    assert!(replaced > 1, "{replaced} filters replaced");
    let of_filters = |rule: Rule| rule.path(".filter");
    let (count, _) = sweep_steps(&steps, 1, &|nth| of_filters(Rule::error(ErrorKind::Other)).nth(nth));
    assert!(count > 10, "{count} operations on filter files");
    sweep_steps(&steps, 1, &|nth| of_filters(Rule::error_after(ErrorKind::Other)).nth(nth));
    sweep_steps(&steps, 1, &|nth| of_filters(Rule::error(ErrorKind::StorageFull)).nth(nth).forever());
    sweep_steps(&steps, 3, &|nth| Rule::error(ErrorKind::Other).nth(nth));
    sweep_steps(&steps, 5, &|nth| Rule::error_after(ErrorKind::Other).nth(nth));
}
