//! A power failure before every file operation of a scenario, including close and recovery.
//!
//! For each of several possible states of the disk:
//!
//! - No write that was acknowledged as durable is lost, and no earlier one.
//! - Each batch is present completely or not at all; the remaining writes are a prefix of all writes.
//! - Dropped keyspaces and deleted keys do not come back.
//! - Scans and point reads agree, and every file is intact.
//! - The store accepts writes, and keeps them through a second crash.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use tamis::{Db, Durability, Runtime, Views, WriteBatch};
use tamis_vfs::{FaultVfs, MemVfs, Operation, Rule, Vfs};

use crate::{
    scenario::{
        Context, Edit, Entry, Plan, State, Step, apply, difference, is_durable, new_state, read_all, run,
        script, value, with_filter_steps, write, write_to,
    },
    support::{CHANGING, FOLDER, SplitMix64, inline_options, open_on, small_keyspace, sweep_stride},
};

/// One of this many crashes is followed by a crash within recovery.
const RECOVERY_CRASH_INTERVAL: u64 = 7;

fn open(vfs: Arc<dyn Vfs>) -> Db {
    open_on(vfs, inline_options()).expect("the store opens after a crash")
}

/// The progress of the program.
struct Progress {
    steps: Vec<Step>,
    /// Steps that were acknowledged.
    done: usize,
    /// Steps whose writes are all durable.
    durable: usize,
    /// The contents after the durable steps.
    durable_state: State,
    operation_count: u64,
    crash_count: u64,
}

impl Progress {
    fn acknowledge(&mut self, is_durable: bool) {
        self.done += 1;
        if is_durable {
            self.reach(self.done);
        }
    }

    /// All steps before `step` are durable.
    fn reach(&mut self, step: usize) {
        for step in &self.steps[self.durable..step] {
            apply(&mut self.durable_state, step);
        }
        self.durable = step;
    }

    /// Every possible state after a crash now. The log keeps the writes of a prefix of the steps; the manifest keeps all acknowledged
    /// changes. The running step may have happened.
    fn possible(&self) -> Vec<State> {
        let last = (self.done + 1).min(self.steps.len());
        let mut states = Vec::new();
        for made in self.done..=last {
            // Tables are ingested only after all earlier writes are durable.
            let is_taken_in = made > self.done && matches!(self.steps[self.done], Step::Ingest(_));
            let least = if is_taken_in { made } else { self.durable };
            states.extend((least..=made).map(|written| self.catalog_of(written, made)));
        }
        states
    }

    /// The state after the first steps: the writes of `written` of them, and all other changes of `made`.
    fn catalog_of(&self, written: usize, made: usize) -> State {
        let mut state = self.durable_state.clone();
        for (index, step) in (self.durable..).zip(&self.steps[self.durable..made]) {
            if index < written || !matches!(step, Step::Write(..)) {
                apply(&mut state, step);
            }
        }
        state
    }

    /// The process was killed, and `found` is the state that the next one found: deferred writes are lost.
    fn forget_lost(&mut self, found: &State) {
        let mut prefixes = (self.durable..=self.done).rev();
        let written = prefixes.find(|written| self.catalog_of(*written, self.done) == *found);
        let written = written.expect("after a kill the store holds a prefix of what was acknowledged");
        for step in &mut self.steps[written..self.done] {
            if let Step::Write(_, durability) = step {
                assert_eq!(
                    *durability,
                    Durability::Deferred,
                    "a kill loses only what was buffered in the process"
                );
                *step = Step::Persist(Durability::Deferred);
            }
        }
    }
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Reads everything and compares it with the possible states.
fn check_one_of(db: &Db, possible: &[State]) -> State {
    let newest = possible.last().expect("something is possible");
    let found = read_all(db, newest).expect("a store that was opened can be read");
    if !possible.contains(&found) {
        let differences: Vec<_> = possible.iter().map(|state| difference(&found, state)).collect();
        panic!("found none of {} possible states: {differences:#?}", possible.len());
    }
    let report = db.verify().expect("a store that was opened can be verified");
    assert!(report.is_sound(), "faults after a crash: {:?}", report.faults);
    found
}

/// The store accepts writes of all kinds, and a second crash keeps those that were synced.
fn check_second_life(vfs: &MemVfs, db: Db, mut state: State, random: &mut SplitMix64) {
    let entries = |state: &State, random: &mut SplitMix64| -> Vec<Entry> {
        let names = state.keys().cloned();
        let entry = |keyspace: String| {
            let key = format!("key{:03}", 3 * random.below(8)).into_bytes();
            let edit = match random.below(12) {
                0 => Edit::DeletePrefix,
                1..4 => Edit::Delete,
                _ => Edit::Put(value(random, 3_000)),
            };
            Entry { keyspace, key, edit }
        };
        names.map(entry).collect()
    };
    if random.below(3) == 0 && !state.contains_key("late") {
        db.create_keyspace("late", small_keyspace()).expect("a keyspace can be made");
        state.insert("late".to_owned(), Default::default());
    }
    for _ in 0..2 {
        let batch = entries(&state, random);
        write(&db, &batch, Durability::Synced).expect("the store takes writes");
        write_to(&mut state, &batch);
    }
    if random.below(4) == 0 {
        db.flush().expect("the store can be flushed");
    }
    let batch = entries(&state, random);
    write(&db, &batch, Durability::Buffered).expect("the store takes writes");
    let mut possible = vec![state.clone()];
    write_to(&mut state, &batch);
    possible.push(state);
    let after = vfs.crash_clone(random.next_u64());
    drop(db);
    let db = open(Arc::new(after));
    check_one_of(&db, &possible);
}

/// A second power failure before each operation of the recovery loses nothing.
fn check_recovery_crashes(crashed: &MemVfs, seed: u64, possible: &[State]) {
    let expected = {
        let copy = crashed.crash_clone(0);
        check_one_of(&open(Arc::new(copy)), possible)
    };
    let memory = crashed.crash_clone(0);
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let random = Mutex::new(SplitMix64::new(seed));
    faults.add_rule(
        Rule::slow(move |operation| {
            if std::thread::panicking() {
                return;
            }
            let _context = Context(format!("recovery, before {operation:?}"));
            let seed = random.lock().unwrap().next_u64();
            check_one_of(&open(Arc::new(memory.crash_clone(seed))), std::slice::from_ref(&expected));
        })
        .on(&CHANGING),
    );
    drop(open(Arc::new(faults)));
}

/// The contents if power fails now.
fn crash(memory: &MemVfs, seed: u64, possible: &[State]) {
    let crashed = memory.crash_clone(seed);
    let mut random = SplitMix64::new(seed);
    if random.below(RECOVERY_CRASH_INTERVAL) == 0 {
        check_recovery_crashes(&crashed, random.next_u64(), possible);
    }
    let db = open(Arc::new(crashed.clone()));
    let found = check_one_of(&db, possible);
    check_second_life(&crashed, db, found, &mut random);
}

/// The steps of a scenario that were started.
#[derive(Debug, Default)]
struct Work {
    flushes: u64,
    compactions: u64,
    verifications: usize,
    kills: usize,
    filters_replaced: u64,
    views_built: u64,
    views_rebuilt: u64,
}

impl Work {
    fn add(&mut self, db: &Db) {
        let statistics = db.statistics();
        assert_eq!(statistics.jobs_failed, 0);
        self.flushes += statistics.flushes;
        self.compactions += statistics.compactions + statistics.trivial_moves;
        self.filters_replaced += statistics.filters_replaced;
        self.views_built += statistics.views_built;
        self.views_rebuilt += statistics.views_rebuilt;
    }
}

/// Runs a scenario with a power failure before every operation, with several seeds each; without `TAMIS_SWEEPS=1` before a share of them.
fn sweep(plan: Plan, seed_count: u64) -> Work {
    sweep_steps(plan, script(plan), seed_count)
}

fn sweep_steps(plan: Plan, steps: Vec<Step>, seed_count: u64) -> Work {
    println!("{plan:?}");
    let memory = MemVfs::new();
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let progress = Arc::new(Mutex::new(Progress {
        steps,
        done: 0,
        durable: 0,
        durable_state: new_state(),
        operation_count: 0,
        crash_count: 0,
    }));
    let (watched, seen) = (memory.clone(), Arc::clone(&progress));
    faults.add_rule(
        Rule::slow(move |operation| {
            if std::thread::panicking() {
                return;
            }
            let mut progress = lock(&seen);
            progress.operation_count += 1;
            if !progress.operation_count.is_multiple_of(sweep_stride()) {
                return;
            }
            let possible = progress.possible();
            for index in 0..seed_count {
                let seed = plan.seed ^ (progress.operation_count << 8 | index);
                progress.crash_count += 1;
                let _context = Context(format!(
                    "{plan:?}, crash seed {seed} before operation {} {operation:?}, {} steps durable, {} done, now {:?}",
                    progress.operation_count,
                    progress.durable,
                    progress.done,
                    progress.steps.get(progress.done)
                ));
                crash(&watched, seed, &possible);
            }
        })
        .on(&CHANGING),
    );
    let vfs: Arc<dyn Vfs> = Arc::new(faults);
    let mut db = open(Arc::clone(&vfs));
    let steps = lock(&progress).steps.clone();
    let mut work = Work::default();
    for (index, step) in steps.iter().enumerate() {
        work.verifications += usize::from(matches!(step, Step::Verify));
        match step {
            Step::Reopen => {
                work.add(&db);
                db.close().expect("close");
                lock(&progress).reach(index);
                db = open(Arc::clone(&vfs));
            }
            Step::Kill => {
                work.add(&db);
                std::mem::forget(db);
                memory.release_locks();
                db = open(Arc::clone(&vfs));
                let found = read_all(&db, &State::new()).expect("the store can be read");
                lock(&progress).forget_lost(&found);
                work.kills += 1;
            }
            _ => run(&db, step).expect("a step without faults"),
        }
        lock(&progress).acknowledge(is_durable(step));
    }
    work.add(&db);
    db.close().expect("close");
    let mut progress = lock(&progress);
    progress.reach(steps.len());
    println!("{} operations, {} crashes, {work:?}", progress.operation_count, progress.crash_count);
    crash(&memory, plan.seed, &progress.possible());
    work
}

#[test]
fn no_crash_loses_synced_writes_or_leaves_half_a_batch() {
    for seed in [5, 9] {
        let plan = Plan {
            seed,
            step_count: 200,
            key_count: 30,
            value_bytes_max: 6_000,
            has_keyspaces: true,
            has_ingests: false,
        };
        let work = sweep(plan, 1);
        assert!(
            work.flushes > 8 && work.compactions > 4 && work.verifications > 0 && work.kills > 0,
            "{work:?}"
        );
        assert!(work.views_built > 1 && work.views_rebuilt > 0, "{work:?}");
    }
}

/// With one keyspace a flush does not sync the log: tables that are newer than the end of the log may survive.
#[test]
fn no_crash_loses_synced_writes_of_a_single_keyspace() {
    for seed in [4, 5] {
        let plan = Plan {
            seed,
            step_count: 200,
            key_count: 30,
            value_bytes_max: 14_000,
            has_keyspaces: false,
            has_ingests: false,
        };
        let work = sweep(plan, 1);
        assert!(work.flushes > 4 && work.compactions > 0 && work.kills > 0, "{work:?}");
    }
}

/// An ingested table is present completely or not at all, and no earlier write is lost or hides its entries.
#[test]
fn no_crash_leaves_a_part_of_an_ingest() {
    for (seed, has_keyspaces) in [(6, true), (7, false)] {
        let plan = Plan {
            seed,
            step_count: 160,
            key_count: 30,
            value_bytes_max: 6_000,
            has_keyspaces,
            has_ingests: true,
        };
        let ingests = script(plan).iter().filter(|step| matches!(step, Step::Ingest(_))).count();
        let work = sweep(plan, 1);
        assert!(ingests > 0 && work.flushes > 2, "{ingests} {work:?}");
    }
}

/// A replaced filter file is installed completely or not at all, and no live one is missing.
#[test]
fn no_crash_within_a_filter_replacement_loses_synced_writes() {
    let plan = Plan {
        seed: 8,
        step_count: 100,
        key_count: 30,
        value_bytes_max: 6_000,
        has_keyspaces: true,
        has_ingests: false,
    };
    let work = sweep_steps(plan, with_filter_steps(script(plan)), 1);
    assert!(work.filters_replaced > 1 && work.kills > 0, "{work:?}");
}

/// A keyspace is created in the manifest, which is synced, while earlier writes may be lost with the end of the log. Its first
/// partition records the sequence number up to which it has no entries in the log; that number was assigned again after the crash,
/// and the next replay skipped the first writes of the keyspace.
#[test]
fn writes_to_a_keyspace_created_after_lost_writes_are_replayed() {
    let memory = MemVfs::new();
    let db = open(Arc::new(memory.clone()));
    for number in 0..100_u32 {
        db.put(number.to_be_bytes(), "lost").unwrap();
    }
    db.create_keyspace("made", small_keyspace()).unwrap();
    let is_lost = |seed: &u64| open(Arc::new(memory.crash_clone(*seed))).first().unwrap().is_none();
    let crashed: Arc<dyn Vfs> = Arc::new(memory.crash_clone((0..).find(is_lost).unwrap()));
    drop(db);
    let db = open(Arc::clone(&crashed));
    db.keyspace("made").unwrap().put("key", "value").unwrap();
    db.close().unwrap();
    let db = open(crashed);
    assert_eq!(db.keyspace("made").unwrap().get("key").unwrap().as_deref(), Some(b"value".as_slice()));
}

/// The contents if power fails before each operation of `work`, with each of these seeds.
fn crashes_in(memory: &MemVfs, faults: &FaultVfs, seeds: u64, work: impl FnOnce()) -> Vec<MemVfs> {
    let found: Arc<Mutex<Vec<MemVfs>>> = Arc::default();
    let (all, memory) = (Arc::clone(&found), memory.clone());
    let take =
        move |_: &Operation| all.lock().unwrap().extend((0..seeds).map(|seed| memory.crash_clone(seed)));
    let rule = faults.add_rule(Rule::slow(take).on(&CHANGING));
    work();
    faults.remove_rule(rule);
    let found = std::mem::take(&mut *found.lock().unwrap());
    assert!(!found.is_empty());
    found
}

/// Four runs get a view, and a fifth is added to it: a crash at each operation of the rebuild loses no answer, and the next open has a
/// view again.
#[test]
fn no_crash_in_a_rebuild_of_a_view_changes_an_answer() {
    let options = small_keyspace().level0_runs(64).views(Views::On);
    let memory = MemVfs::new();
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let db = open(Arc::new(faults.clone()));
    let keyspace = db.create_keyspace("k", options).unwrap();
    let key = |number: u64| format!("key{number:04}");
    let fill = |run: u64| {
        (run..400).step_by(4).for_each(|number| keyspace.put(key(number), key(run * number)).unwrap());
        keyspace.delete(key(3 * run)).unwrap();
    };
    let rebuilt = || db.statistics().views_rebuilt;
    for run in 0..4 {
        fill(run);
        db.flush().unwrap();
    }
    fill(5);
    db.persist(Durability::Synced).unwrap();
    let (expected, before) = (read_all(&db, &State::new()).unwrap(), rebuilt());
    let crashes = crashes_in(&memory, &faults, 8, || db.flush().unwrap());
    assert_eq!((before, rebuilt()), (2, 3));
    let mut opened = [0; 2];
    for crashed in crashes {
        let db = open(Arc::new(crashed));
        check_one_of(&db, std::slice::from_ref(&expected));
        let statistics = db.statistics();
        let views = statistics.keyspaces.iter().find(|keyspace| keyspace.name == "k").unwrap().views;
        // Four, if the log has the entries of the fifth.
        assert!(views.open_count == 1 && views.run_count >= 4, "{views:?}");
        opened[usize::from(statistics.views_rebuilt > 0)] += 1;
    }
    println!("{opened:?} stores without and with a rebuild after the crash");
    assert!(opened.into_iter().all(|count| count > 0), "{opened:?}");
}

/// The header of the first segment had not reached the disk, so the whole log was dropped. The recovery removed both segments before
/// its own was durable: after a second crash only the second segment existed, and the first one was reported as missing.
#[test]
fn a_crash_within_recovery_leaves_no_end_of_a_log_without_its_beginning() {
    let memory = MemVfs::new();
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let db = open(Arc::new(faults.clone()));
    db.put("key", "value").unwrap();
    let crashes = crashes_in(&memory, &faults, 64, || db.flush().unwrap());
    let lengths = |crashed: &MemVfs| -> Vec<u64> {
        let entries = crashed.list(Path::new(FOLDER)).unwrap().into_iter();
        entries.filter(|entry| entry.name.ends_with(".log")).map(|entry| entry.length).collect()
    };
    let is_cut_at_its_front = |crashed: &&MemVfs| match lengths(crashed)[..] {
        [first, second] => first < 64 && second >= 64,
        _ => false,
    };
    let is_there = |memory: MemVfs| open(Arc::new(memory)).first().unwrap().is_some();
    let mut count = 0;
    for crashed in crashes.iter().filter(is_cut_at_its_front).take(20) {
        // From its table, if the flush had written it.
        let expected = is_there(crashed.crash_clone(0));
        let recovered = FaultVfs::new(Arc::new(crashed.clone()));
        let second = crashes_in(crashed, &recovered, 16, || drop(open(Arc::new(recovered.clone()))));
        for crashed in second {
            assert_eq!(is_there(crashed), expected);
            count += 1;
        }
    }
    assert!(count > 1_000, "{count}");
}

/// A flush that writes no table does not sync the folder: the segment that became the first one was lost, although the next one
/// existed.
#[test]
fn a_crash_after_a_flush_without_tables_leaves_no_log_without_its_beginning() {
    let memory = MemVfs::new();
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let db = open(Arc::new(faults.clone()));
    db.delete("key").unwrap();
    db.flush().unwrap();
    assert!(memory.list(Path::new(FOLDER)).unwrap().iter().all(|entry| !entry.name.ends_with(".table")));
    db.put("key", "value").unwrap();
    for crashed in crashes_in(&memory, &faults, 16, || db.flush().unwrap()) {
        open(Arc::new(crashed));
    }
}

/// A replay rotated a memtable in the middle of a batch. The flush of one half survived; the log, which a killed process had not
/// synced, did not.
#[test]
fn no_crash_after_a_kill_leaves_half_a_batch_that_was_replayed() {
    let options = || inline_options().log_bytes_max(1 << 30);
    let open = |memory: &MemVfs| open_on(Arc::new(memory.clone()), options()).unwrap();
    let memory = MemVfs::new();
    let db = open(&memory);
    let keyspace = db.keyspace("default").unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&keyspace, "a", vec![1; keyspace.options().memtable_bytes as usize]).unwrap();
    batch.put(&keyspace, "b", "the other half").unwrap();
    db.write(batch).unwrap();
    drop(keyspace);
    std::mem::forget(db);
    memory.release_locks();
    let db = open(&memory);
    db.put("c", "flushes the full memtable").unwrap();
    assert_eq!(db.statistics().flushes, 1);
    for seed in 0..8 {
        let crashed = open(&memory.crash_clone(seed));
        let is_there = |key: &str| crashed.get(key).unwrap().is_some();
        assert_eq!(is_there("a"), is_there("b"), "seed {seed}");
    }
}

/// The acknowledgements of threads, for the check of one crash.
type Picture = (u64, MemVfs, [u64; 3]);

/// Writers in groups and workers: a power failure before every n-th operation of any thread.
#[test]
fn no_crash_under_threads_loses_synced_writes_or_leaves_half_a_batch() {
    const INTERVAL: u64 = 9;
    let key = |thread: usize, number: u64| format!("{thread}/{number:06}").into_bytes();
    let bytes = |thread: usize, number: u64| vec![(number * 3) as u8 ^ thread as u8; 1_500];
    let memory = MemVfs::new();
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let durable: Arc<[AtomicU64; 3]> = Arc::default();
    let pictures: Arc<Mutex<Vec<Picture>>> = Arc::default();
    let options = inline_options().workers(2);
    let db = Db::open_on(Arc::new(faults.clone()), FOLDER, options, Runtime::system()).unwrap();
    let keyspaces = ["a", "b"].map(|name| db.create_keyspace(name, small_keyspace()).unwrap());
    let (acknowledged, taken, count) = (Arc::clone(&durable), Arc::clone(&pictures), AtomicU64::new(0));
    faults.add_rule(
        Rule::slow(move |_| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            if number.is_multiple_of(INTERVAL) {
                // Everything that was acknowledged before the crash must be found.
                let acknowledged = acknowledged.each_ref().map(|count| count.load(Ordering::SeqCst));
                let picture = (number, memory.crash_clone(number), acknowledged);
                taken.lock().unwrap().push(picture);
            }
        })
        .on(&CHANGING),
    );
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (db, keyspaces, durable) = (&db, &keyspaces, &durable);
            scope.spawn(move || {
                for number in 0..150 {
                    let mut batch = WriteBatch::new();
                    for keyspace in keyspaces {
                        batch.put(keyspace, key(thread, number), bytes(thread, number)).unwrap();
                    }
                    let durability =
                        [Durability::Deferred, Durability::Buffered, Durability::Synced][number as usize % 3];
                    db.write_with(batch, durability).unwrap();
                    if durability == Durability::Synced {
                        durable[thread].store(number + 1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    db.wait_for_compactions().unwrap();
    drop((db, keyspaces));
    let pictures = std::mem::take(&mut *pictures.lock().unwrap());
    println!("{} crashes", pictures.len());
    for (number, crashed, durable) in pictures {
        let _context = Context(format!("before operation {number}, durable: {durable:?}"));
        let db = open(Arc::new(crashed));
        let keyspaces = ["a", "b"].map(|name| db.keyspace(name).unwrap());
        for (thread, durable) in durable.into_iter().enumerate() {
            let [a, b] = keyspaces.each_ref().map(|keyspace| {
                let entries = keyspace.prefix(format!("{thread}/")).map(Result::unwrap);
                entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect::<Vec<_>>()
            });
            assert!(a == b, "half a batch of thread {thread}: {} and {}", a.len(), b.len());
            assert!(a.len() as u64 >= durable, "thread {thread}: {} of {durable}", a.len());
            for (number, entry) in (0..).zip(a) {
                assert_eq!(entry, (key(thread, number), bytes(thread, number)));
            }
        }
        assert!(db.verify().unwrap().is_sound());
    }
}
