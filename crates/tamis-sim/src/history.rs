//! Plays one history: opens the store, lets clients and world make their steps, ends the life, and opens it again.

mod life;
mod trial;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tamis::{
    Db, Error, OpenMode,
    simulation::{install, keyspace_id},
};
use tamis_vfs::{MemVfs, OperationKind, Rule, Vfs};
use tamis_workload::SplitMix64;

use self::trial::{Trial, is_torn};
use crate::{
    check::{self, Difference},
    coverage::Coverage,
    generate,
    model::Model,
    ops::{End, KEYSPACE_COUNT, Op, Profile, Step},
    schedule::Schedule,
    settings,
    store::{Mode, Shared, Store, install_hooks, name_of},
    world::{FOLDER, Life, SimListener, SimVfs},
};

/// Files that a store and a copy of it may have open in some lives.
const OPEN_FILES_MAX: u64 = 240;

/// The version of histories: it changes when a seed no longer means the same history.
pub const HISTORY_VERSION: u32 = 5;

/// All that decides a history.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Decides the order of threads and the durations.
    pub schedule_seed: u64,
    /// The profile of the history.
    pub profile: Profile,
    /// The steps.
    pub steps: Vec<Step>,
}

/// The result of a history.
#[derive(Debug)]
pub struct Outcome {
    /// The hash of all that happened.
    pub hash: u64,
    /// Steps that were made.
    pub step_count: usize,
    /// The failure.
    pub failure: Option<String>,
    /// Coverage.
    pub coverage: Arc<Coverage>,
}

impl Plan {
    /// The plan of a seed; `adjust` may change what the history is like.
    pub fn new(seed: u64, adjust: impl FnOnce(&mut Profile)) -> Self {
        let mut random = SplitMix64::new(tamis_workload::mix64(seed));
        let mut profile = Profile::draw(&mut random);
        adjust(&mut profile);
        let steps = generate::steps(&mut random, &profile);
        Self { schedule_seed: random.next_u64(), profile, steps }
    }

    /// Plays the history. It is given up if it takes `seconds_max` of real time without a step.
    pub fn play(&self, seconds_max: u32) -> Outcome {
        let schedule = Schedule::new(self.schedule_seed);
        let coverage = Arc::new(Coverage::default());
        let shared = Arc::new(Shared {
            schedule: Arc::clone(&schedule),
            coverage: Arc::clone(&coverage),
            model: Mutex::new(Model::timed_by(&schedule)),
            profile: self.profile.clone(),
        });
        let done = Arc::new(AtomicUsize::new(0));
        let history = History { shared, done: Arc::clone(&done), steps: self.steps.clone() };
        let (mut last, mut seconds) = (0, 0);
        schedule.run(
            move || history.play(),
            || {
                let now = done.load(Ordering::Relaxed);
                seconds = if now == last { seconds + 1 } else { 0 };
                last = now;
                if seconds >= seconds_max {
                    schedule.fail(
                        "no step has ended for a long time: a thread waits or loops outside of the schedule"
                            .to_owned(),
                    );
                }
                seconds < seconds_max
            },
        );
        Outcome {
            hash: schedule.hash(),
            step_count: done.load(Ordering::Relaxed),
            failure: schedule.failure(),
            coverage,
        }
    }
}

struct History {
    shared: Arc<Shared>,
    /// Steps that were made, in all lives.
    done: Arc<AtomicUsize>,
    steps: Vec<Step>,
}

/// The steps of one life, and how it ends.
struct Segment<'a> {
    steps: &'a [Step],
    end: End,
}

impl History {
    fn play(&self) {
        let mut disk = MemVfs::new();
        let (mut has_crashed, mut options_number) = (false, 1);
        let is_end = |step: &Step| matches!(step.op, Op::Reopen(..));
        for part in self.steps.split_inclusive(is_end) {
            let (end, next_options) = match part.last().map(|step| &step.op) {
                Some(Op::Reopen(end, options)) => (*end, *options),
                _ => (End::Close, 0),
            };
            let segment = Segment { steps: part, end };
            let Some((life, crashed)) = self.play_life(&segment, disk, has_crashed, options_number) else {
                return;
            };
            has_crashed = crashed;
            disk = life.after_crash.lock().take().unwrap_or_else(|| life.disk.clone());
            disk.release_locks();
            life.restore_bits(&disk);
            options_number = next_options;
            if self.shared.schedule.has_failed() {
                break;
            }
        }
        install(None);
    }

    /// Opens the store; the disk may crash meanwhile. Returns whether the first attempt has succeeded.
    fn open(&self, mut disk: MemVfs, mut has_crashed: bool, number: u64) -> Option<(Store, bool)> {
        let shared = &self.shared;
        let random = &mut SplitMix64::new(number);
        for attempt in 0.. {
            let life = Life::new(&shared.schedule, &shared.coverage, disk.clone());
            if attempt == 0 {
                self.disturb_open(&life, random);
            }
            install_hooks(shared, &life, Mode::Open(has_crashed));
            let names = {
                let model = shared.model.lock();
                let is_certain = |name: &&String| !model.dropping.contains(*name);
                model.names.keys().filter(is_certain).cloned().collect::<Vec<String>>()
            };
            let listener = Arc::new(SimListener(Arc::clone(&life)));
            let options = settings::open(number, &shared.profile, &names, listener);
            let prepare = {
                let (shared, life) = (Arc::clone(shared), Arc::clone(&life));
                Arc::new(move || install_hooks(&shared, &life, Mode::Observe))
            };
            // Several clients may each have a copy open: its store counts its files alone.
            if random.below(4) == 0 && shared.profile.client_count == 1 {
                life.faults.limit_open_files(OPEN_FILES_MAX);
            }
            let vfs: Arc<dyn Vfs> = Arc::new(SimVfs::new(&life));
            let runtime = check::runtime(shared, prepare);
            match Db::open_on(vfs, FOLDER, options.clone(), runtime) {
                Ok(db) => {
                    life.faults.clear_rules();
                    let keyspaces = Mutex::new(BTreeMap::new());
                    let is_read_only = options.mode == OpenMode::Reader;
                    let store =
                        Store { shared: Arc::clone(shared), life, db, options, is_read_only, keyspaces };
                    return Some((store, attempt == 0));
                }
                Err(error) => {
                    shared.coverage.note_error(&error);
                    let has_reason = life.is_off() || life.faults.fault_count() > 0;
                    if !has_reason || attempt > 3 {
                        shared.schedule.fail(format!("an open failed without a reason: {error}"));
                        return None;
                    }
                    if let Some(after) = life.after_crash.lock().take() {
                        (disk, has_crashed) = (after, true);
                    }
                    disk.release_locks();
                }
            }
        }
        None
    }

    /// Some opens have a failing file operation or end by a crash.
    fn disturb_open(&self, life: &Arc<Life>, random: &mut SplitMix64) {
        let profile = &self.shared.profile;
        if profile.has_faults && random.below(4) == 0 {
            let kind = OperationKind::ALL
                .get(random.below(OperationKind::ALL.len() as u64) as usize)
                .copied()
                .unwrap_or(OperationKind::Sync);
            life.faults.add_rule(Rule::error(std::io::ErrorKind::Other).on(&[kind]).nth(1 + random.below(6)));
        }
        if profile.has_crashes && random.below(6) == 0 {
            let (schedule, life) = (Arc::clone(&self.shared.schedule), Arc::clone(life));
            let (time, seed) = (Duration::from_micros(random.below(30_000)), random.next_u64());
            self.shared.schedule.spawn("crash", move || {
                schedule.sleep(time);
                life.crash(seed);
            });
        }
    }

    /// Plays one life; returns it, and whether the machine has crashed.
    fn play_life(
        &self,
        segment: &Segment<'_>,
        disk: MemVfs,
        has_crashed: bool,
        number: u64,
    ) -> Option<(Arc<Life>, bool)> {
        let shared = &self.shared;
        let trial = Trial::draw(&disk, number);
        let (store, is_undisturbed) = self.open(disk, has_crashed, number)?;
        let life = Arc::clone(&store.life);
        self.take_over(&store);
        if let Some(trial) =
            trial.filter(|_| is_undisturbed && !life.is_disturbed() && !shared.schedule.has_failed())
        {
            let is_torn = is_torn(store.db.open_report());
            if let Err(message) = trial.run(shared, is_torn) {
                shared.schedule.fail(message);
            }
            install_hooks(shared, &life, Mode::Observe);
        }
        let store = Arc::new(store);
        let is_ended = shared.schedule.has_failed();
        if !is_ended {
            self.run_clients(segment, &store);
        }
        life.faults.clear_rules();
        life.slowness.store(1, Ordering::Relaxed);
        life.listener_panics.store(false, Ordering::Relaxed);
        life.job_panics.store(false, Ordering::Relaxed);
        let is_calm = !life.is_disturbed()
            && !shared.schedule.has_failed()
            && !store.is_read_only
            && !life.is_closing();
        if is_calm && (segment.end == End::Close || shared.schedule.below(4) == 0) {
            match check::quiet(&store) {
                _ if life.is_off() => {}
                Ok(()) => {}
                Err(Difference::Wrong(message)) => shared.schedule.fail(message),
                Err(Difference::Failed(error)) => {
                    shared.schedule.fail(format!("a check of a store without faults failed: {error}"))
                }
            }
        }
        self.end_life(segment.end, store);
        Some((Arc::clone(&life), life.after_crash.lock().is_some()))
    }

    /// Compares what an open has found with the model.
    fn take_over(&self, store: &Store) {
        let shared = &self.shared;
        let check = || -> Result<(), Difference> {
            let mut found = Vec::new();
            for name in store.db.keyspace_names() {
                let keyspace = store.db.keyspace(&name)?;
                found.push((name.clone(), keyspace_id(&keyspace), keyspace.options()));
                if let Some(number) = (0..KEYSPACE_COUNT).find(|number| name_of(*number) == name) {
                    store.keep_keyspace(number, keyspace);
                }
            }
            shared
                .model
                .lock()
                .reconcile(&found, ("default", store.is_read_only))
                .map_err(Difference::Wrong)?;
            check::resolve(shared, &store.db)
        };
        match check() {
            _ if store.life.is_off() => {}
            Ok(()) => {}
            Err(Difference::Wrong(message)) => shared.schedule.fail(format!("after an open: {message}")),
            Err(Difference::Failed(error)) => {
                if let Err(message) = store.judge("a read after an open", &error, None) {
                    shared.schedule.fail(message);
                }
            }
        }
    }

    fn end_life(&self, end: End, store: Arc<Store>) {
        let shared = &self.shared;
        let (life, is_read_only) = (Arc::clone(&store.life), store.is_read_only);
        let handles = std::mem::take(&mut *store.keyspaces.lock());
        drop(handles);
        let Some(store) = Arc::into_inner(store) else {
            return shared.schedule.fail("a thread keeps the store".to_owned());
        };
        let result = match end {
            End::Close => store.db.close(),
            _ => {
                drop(store.db);
                Ok(())
            }
        };
        let mut model = shared.model.lock();
        let visible = model.visible();
        match result {
            _ if life.is_off() || is_read_only => {}
            // A drop does not report errors.
            Ok(()) if end == End::Close || !life.is_disturbed() => model.acknowledge(visible, true),
            Ok(()) | Err(Error::WritesRefused { .. } | Error::Io { .. } | Error::DiskFull { .. }) => {
                drop(model);
                if !life.is_disturbed() {
                    shared.schedule.fail("a close failed without a reason".to_owned());
                }
            }
            Err(error) => {
                drop(model);
                shared.schedule.fail(format!("a close failed: {error}"));
            }
        }
    }
}
