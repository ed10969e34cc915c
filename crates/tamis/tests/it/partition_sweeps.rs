//! A power failure, a killed process and an error at every file operation of each job of the partitioned layout: flushes that add runs, flushes that retain
//! entries, merges, splits, divisions, unions, and changes of the layout.
//!
//! Each scenario is small, so that all of its operations are tried:
//!
//! - After a power failure a store has a prefix of all writes, with all that were synced: none lost, none doubled, no delete revived.
//! - After a killed process it has all writes that had returned, synced or not: the operating system has received them.
//! - After an error, also of a read, the store accepts writes again once no operation fails, unless a sync has failed.
//! - Afterwards it can be flushed and compacted, and is sound.
//!
//! `TAMIS_DEEP=1` tries more parts of unsynced bytes, each failure once and permanently, and more sizes of a full disk.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
    io::ErrorKind,
    path::Path,
    sync::{Arc, Mutex},
};

use tamis::{Db, Durability, Event, EventListener, Layout, Options, Statistics};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use crate::{
    retain,
    scenario::Context,
    support::{
        CHANGING_FILES, FOLDER, Model, SplitMix64, change_options, inline_options, is_deep, open_on,
        sweep_stride,
    },
};

fn hash_of(key: &[u8], value: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, value).hash(&mut hasher);
    hasher.finish()
}

/// A digest of the content of a store, which does not depend on the order of entries.
fn digest_of(db: &Db) -> u64 {
    let hashes = db.range(..).map(|entry| {
        let (key, value) = entry.unwrap();
        hash_of(&key, &value)
    });
    hashes.fold(0, u64::wrapping_add)
}

/// The digests of the contents after each write.
#[derive(Clone)]
struct History {
    model: Model,
    digests: Vec<u64>,
    /// Writes that are certainly on the disk.
    durable: usize,
    /// Writes that have returned without an error.
    acknowledged: usize,
}

impl History {
    fn new(model: &Model) -> Self {
        let digest = model.iter().fold(0, |sum: u64, (key, value)| sum.wrapping_add(hash_of(key, value)));
        Self { model: model.clone(), digests: vec![digest], durable: 0, acknowledged: 0 }
    }

    fn change(&mut self, key: &[u8], value: Option<&[u8]>) {
        let mut digest = *self.digests.last().unwrap();
        if let Some(old) = self.model.remove(key) {
            digest = digest.wrapping_sub(hash_of(key, &old));
        }
        if let Some(value) = value {
            digest = digest.wrapping_add(hash_of(key, value));
            self.model.insert(key.to_vec(), value.to_vec());
        }
        self.digests.push(digest);
    }

    /// The contents after a power failure.
    fn possible(&self) -> Vec<u64> {
        self.digests[self.durable..].to_vec()
    }

    /// The contents after the end of the process: of the last write, which may not have returned, it is unknown whether it is there.
    fn possible_after_kill(&self) -> Vec<u64> {
        assert!(self.digests.len() - self.acknowledged <= 2, "writes come one after another");
        self.digests[self.acknowledged..].to_vec()
    }
}

/// A copy of the files as a new process finds them after this one was killed: with all bytes, synced or not.
fn after_kill(files: &MemVfs) -> MemVfs {
    let (copy, folder) = (MemVfs::new(), Path::new(FOLDER));
    copy.create_dir_all(folder).unwrap();
    for entry in files.list(folder).unwrap().into_iter().filter(|entry| !entry.is_dir) {
        let path = folder.join(&entry.name);
        copy.create(&path).unwrap().append(&files.read(&path).unwrap()).unwrap();
    }
    copy
}

/// Writes to a store, and records before each write what it will contain.
struct Writer<'a> {
    db: &'a Db,
    history: &'a Mutex<History>,
}

impl Writer<'_> {
    fn put(&self, number: u64, length: usize) -> tamis::Result<()> {
        let mut history = self.history.lock().unwrap();
        // No two values are equal.
        let mut value = vec![0x5a; length];
        value.extend_from_slice(&(history.digests.len() as u64).to_be_bytes());
        history.change(&number.to_be_bytes(), Some(&value));
        drop(history);
        self.db.put(number.to_be_bytes(), value)?;
        self.note_acknowledged();
        Ok(())
    }

    fn delete(&self, number: u64) -> tamis::Result<()> {
        self.history.lock().unwrap().change(&number.to_be_bytes(), None);
        self.db.delete(number.to_be_bytes())?;
        self.note_acknowledged();
        Ok(())
    }

    fn sync(&self) -> tamis::Result<()> {
        self.db.persist(Durability::Synced)?;
        self.note_durable();
        Ok(())
    }

    fn flush(&self) -> tamis::Result<()> {
        self.db.flush()?;
        self.note_durable();
        Ok(())
    }

    fn note_acknowledged(&self) {
        let mut history = self.history.lock().unwrap();
        history.acknowledged = history.digests.len() - 1;
    }

    fn note_durable(&self) {
        let mut history = self.history.lock().unwrap();
        history.durable = history.digests.len() - 1;
    }
}

struct Scenario {
    name: &'static str,
    /// The store before the job.
    image: MemVfs,
    model: Model,
    layout: Option<Layout>,
    work: fn(&Writer<'_>) -> tamis::Result<()>,
    /// Whether the job has run.
    has_run: fn(&Statistics) -> bool,
}

impl Scenario {
    fn open(&self, files: Arc<dyn Vfs>) -> tamis::Result<Db> {
        self.open_with(files, inline_options())
    }

    fn open_with(&self, files: Arc<dyn Vfs>, options: Options) -> tamis::Result<Db> {
        let db = open_on(files, options)?;
        if let Some(layout) = self.layout {
            change_options(&db, "default", |options| options.layout(layout))?;
        }
        Ok(db)
    }

    /// Opens the store, works and closes it. `at_error` is called when the work has failed, before the store is closed.
    fn run(
        &self,
        files: Arc<dyn Vfs>,
        history: &Mutex<History>,
        at_error: impl FnOnce(),
    ) -> tamis::Result<Statistics> {
        let db = self.open(files)?;
        (self.work)(&Writer { db: &db, history }).inspect_err(|_| at_error())?;
        let statistics = db.statistics();
        db.close()?;
        Ok(statistics)
    }

    /// Checks the content and the further life of a store.
    fn check(&self, files: &MemVfs, possible: &[u64]) {
        let db = self.open(Arc::new(files.clone())).unwrap();
        let found = digest_of(&db);
        let place = possible.iter().rposition(|digest| *digest == found);
        assert!(place.is_some(), "the store has none of {} possible contents", possible.len());
        db.put([0xFF; 9], b"second life").unwrap();
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
        let after = found.wrapping_add(hash_of(&[0xFF; 9], b"second life"));
        assert!(digest_of(&db) == after, "a flush changed the content");
        assert_eq!(db.statistics().jobs_failed, 0);
        let report = db.verify().unwrap();
        assert!(report.is_sound(), "{:?}", report.faults);
        db.close().unwrap();
        assert!(
            digest_of(&self.open(Arc::new(files.clone())).unwrap()) == after,
            "an open changed the content"
        );
    }

    /// The process is killed before each operation of the share that a sweep tries, and the power fails; `seeds` times, with different parts of the unsynced bytes on the
    /// disk.
    fn kill_and_cut_power(self: &Arc<Self>, seeds: u64) {
        let memory = self.image.crash_clone(0);
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let history = Arc::new(Mutex::new(History::new(&self.model)));
        let (scenario, seen, count) = (Arc::clone(self), Arc::clone(&history), Arc::new(Mutex::new(0)));
        let hook_count = Arc::clone(&count);
        faults.add_rule(
            Rule::slow(move |operation| {
                if std::thread::panicking() {
                    return;
                }
                let number = {
                    let mut count = hook_count.lock().unwrap();
                    *count += 1;
                    *count
                };
                if !u64::is_multiple_of(number, sweep_stride()) {
                    return;
                }
                let (possible, possible_after_kill) = {
                    let history = seen.lock().unwrap();
                    (history.possible(), history.possible_after_kill())
                };
                {
                    let killed =
                        format!("{}: killed before operation {number}: {operation:?}", scenario.name);
                    let _context = Context(killed);
                    scenario.check(&after_kill(&memory), &possible_after_kill);
                }
                for seed in 0..seeds {
                    let _context = Context(format!(
                        "{}: seed {seed} before operation {number}: {operation:?}",
                        scenario.name
                    ));
                    scenario.check(&memory.crash_clone(seed ^ (number << 8)), &possible);
                }
            })
            .on(CHANGING_FILES),
        );
        let statistics = self.run(Arc::new(faults), &history, || {}).unwrap();
        assert!((self.has_run)(&statistics), "{}: {statistics:?}", self.name);
        println!("{}: {} operations", self.name, count.lock().unwrap());
    }

    /// Each of these operations fails, once or from then on: the share that a sweep tries, and about `most` of them if there are more.
    fn fail_operations(&self, kinds: &'static [OperationKind], most: u64) {
        let counting = FaultVfs::new(Arc::new(self.image.crash_clone(0)));
        let rule = counting.add_rule(Rule::slow(|_| {}).on(kinds));
        self.run(Arc::new(counting.clone()), &Mutex::new(History::new(&self.model)), || {}).unwrap();
        let count = counting.hit_count(rule);
        assert!(count > 5, "{}: {count} operations", self.name);
        let attempts = if is_deep() { 2 } else { 1 };
        let tried = (0..count).step_by((count / most).max(sweep_stride()) as usize);
        for (nth, attempt) in tried.flat_map(|nth| (0..attempts).map(move |attempt| (nth, attempt))) {
            let is_forever = (nth + attempt) % 2 == 0;
            let _context = Context(format!("{}: operation {nth}, forever: {is_forever}", self.name));
            let memory = self.image.crash_clone(0);
            let faults = FaultVfs::new(Arc::new(memory.clone()));
            let rule = Rule::error(ErrorKind::Other).on(kinds).nth(nth);
            faults.add_rule(if is_forever { rule.forever() } else { rule });
            let history = Mutex::new(History::new(&self.model));
            let mut killed = None;
            let result = self.run(Arc::new(faults), &history, || killed = Some(after_kill(&memory)));
            memory.release_locks();
            let history = history.into_inner().unwrap();
            // The process is killed at the error, or ends without a close, and the power fails then.
            self.check(&killed.unwrap_or_else(|| after_kill(&memory)), &history.possible_after_kill());
            let possible =
                if result.is_ok() { vec![*history.digests.last().unwrap()] } else { history.possible() };
            self.check(&memory.crash_clone(nth), &possible);
        }
    }
}

/// Random writes to all keys, flushed and compacted.
fn image(layout: Layout, key_count: u64, length: usize) -> (MemVfs, Model) {
    let vfs = MemVfs::new();
    let mut options = retain::options();
    options.default_keyspace.layout = layout;
    let files: Arc<dyn Vfs> = Arc::new(vfs.clone());
    let db = open_on(files, options).unwrap();
    let history = Mutex::new(History::new(&Model::new()));
    let writer = Writer { db: &db, history: &history };
    let mut random = SplitMix64::new(3);
    for _ in 0..2 * key_count {
        writer.put(random.below(key_count), length).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    db.close().unwrap();
    (vfs, history.into_inner().unwrap().model)
}

fn scenario(
    name: &'static str,
    key_count: u64,
    work: fn(&Writer<'_>) -> tamis::Result<()>,
    has_run: fn(&Statistics) -> bool,
) -> Scenario {
    let (image, model) = image(retain::LAYOUT, key_count, 4_000);
    Scenario { name, image, model, layout: None, work, has_run }
}

/// Hot keys fill memtables; cold keys change a little.
fn write_hot_and_cold(writer: &Writer<'_>) -> tamis::Result<()> {
    let mut random = SplitMix64::new(5);
    let cold = retain::KEY_COUNT - retain::HOT_COUNT;
    for round in 0..117 {
        match round % 9 {
            0 => writer.put(retain::HOT_COUNT + random.below(cold), 10)?,
            4 => writer.delete(retain::HOT_COUNT + random.below(cold))?,
            8 if round % 2 == 0 => writer.sync()?,
            _ => writer.put(random.below(retain::HOT_COUNT), 3_000)?,
        }
    }
    Ok(())
}

/// A store of another layout that becomes a partitioned one.
fn changed_from(layout: Layout, name: &'static str) -> Scenario {
    let (image, model) = image(layout, 120, 4_000);
    let work = |writer: &Writer<'_>| {
        writer.put(3, 300)?;
        writer.db.wait_for_compactions()
    };
    let has_run = |statistics: &Statistics| {
        statistics.partition_decisions.split.count + statistics.partition_decisions.divide.count > 0
    };
    Scenario { name, image, model, layout: Some(retain::LAYOUT), work, has_run }
}

fn scenarios() -> Vec<Scenario> {
    let image = MemVfs::new();
    let (db, model) = retain::prepare(&image);
    db.close().unwrap();
    let abort = Scenario {
        name: "abort",
        image,
        model,
        layout: None,
        work: write_hot_and_cold,
        has_run: |statistics| statistics.partition_decisions.abort.count > 2,
    };
    let minor = scenario(
        "minor",
        40,
        |writer| {
            (0..6).try_for_each(|number| writer.put(number, 300))?;
            writer.flush()?;
            (6..9).try_for_each(|number| writer.delete(number))
        },
        |statistics| statistics.flushes > 0 && statistics.compactions == 0,
    );
    let major = scenario(
        "major",
        20,
        |writer| {
            for round in 0..4 {
                writer.put(round, 300)?;
                writer.delete(round + 4)?;
                writer.flush()?;
            }
            Ok(())
        },
        |statistics| statistics.compactions > 0,
    );
    let split = scenario(
        "split",
        40,
        |writer| {
            let mut random = SplitMix64::new(9);
            for round in 0..60 {
                writer.put(random.below(60), 4_000)?;
                if round % 20 == 10 {
                    writer.sync()?;
                }
            }
            writer.flush()
        },
        |statistics| statistics.partition_decisions.split.count > 0,
    );
    let divide = scenario(
        "divide",
        20,
        |writer| {
            (100..200).try_for_each(|number| writer.put(number, 4_000))?;
            writer.flush()
        },
        |statistics| statistics.partition_decisions.divide.count > 0,
    );
    let unite = scenario(
        "unite",
        100,
        |writer| {
            for number in (0..90).filter(|number| number % 30 > 1) {
                writer.delete(number)?;
            }
            writer.flush()?;
            writer.db.compact_range(&writer.db.default_keyspace(), ..)?;
            writer.db.wait_for_compactions()
        },
        |statistics| statistics.partition_decisions.unite.count > 0,
    );
    let leveled = Scenario {
        layout: Some(Layout::Leveled),
        ..scenario(
            "partitioned to leveled",
            100,
            |writer| {
                writer.put(3, 300)?;
                writer.db.wait_for_compactions()
            },
            |statistics| statistics.partition_decisions.unite.count > 0,
        )
    };
    let from_leveled = changed_from(Layout::Leveled, "leveled to partitioned");
    let from_tiered = changed_from(Layout::tiered(), "tiered to partitioned");
    vec![abort, minor, major, split, divide, unite, leveled, from_leveled, from_tiered]
}

#[test]
fn no_power_failure_or_kill_in_a_job_loses_writes_or_revives_deleted_ones() {
    for scenario in scenarios() {
        Arc::new(scenario).kill_and_cut_power(if is_deep() { 16 } else { 2 });
    }
}

#[test]
fn no_failed_operation_of_a_job_loses_writes() {
    for scenario in scenarios() {
        scenario.fail_operations(CHANGING_FILES, u64::MAX);
    }
}

#[test]
fn no_failed_read_of_a_job_loses_writes() {
    let most = if is_deep() { u64::MAX } else { 40 };
    for scenario in scenarios() {
        scenario.fail_operations(&[OperationKind::Open, OperationKind::Read], most);
    }
}

/// The disk becomes full at some moment of a split, and has space again after the process has ended.
#[test]
fn a_full_disk_in_a_split_loses_nothing() {
    let split = scenarios().into_iter().find(|scenario| scenario.name == "split").unwrap();
    let mut failed_count = 0;
    for free_bytes in (0..800_000).step_by(if is_deep() { 1_000 } else { 20_000 }) {
        let _context = Context(format!("{free_bytes} bytes free"));
        let memory = split.image.crash_clone(0);
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        faults.add_rule(Rule::disk_full(free_bytes));
        let history = Mutex::new(History::new(&split.model));
        let result = split.run(Arc::new(faults), &history, || {});
        failed_count += usize::from(result.is_err());
        memory.release_locks();
        let history = history.into_inner().unwrap();
        split.check(&memory, &history.possible_after_kill());
    }
    assert!(failed_count > 5, "{failed_count}");
}

/// The names of jobs that failed.
#[derive(Debug, Default)]
struct FailedJobs(Mutex<BTreeSet<&'static str>>);

impl EventListener for FailedJobs {
    fn on_event(&self, event: &Event) {
        if let Event::JobFailed { job, .. } = event {
            self.0.lock().unwrap().insert(job);
        }
    }
}

/// The disk becomes full before or in a split, and the same process has space again later.
#[test]
fn a_split_succeeds_once_a_full_disk_has_space() {
    let split = scenarios().into_iter().find(|scenario| scenario.name == "split").unwrap();
    let (mut failed_count, mut failed_jobs) = (0, BTreeSet::new());
    for free_bytes in (0..800_000).step_by(if is_deep() { 1_000 } else { 20_000 }) {
        let _context = Context(format!("{free_bytes} bytes free"));
        let memory = split.image.crash_clone(0);
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let failed = Arc::new(FailedJobs::default());
        let listener: Arc<dyn EventListener> = Arc::<FailedJobs>::clone(&failed);
        let options = inline_options().listener(listener);
        let files: Arc<dyn Vfs> = Arc::new(faults.clone());
        let db = split.open_with(files, options).unwrap();
        faults.add_rule(Rule::disk_full(free_bytes));
        let history = Mutex::new(History::new(&split.model));
        let writer = Writer { db: &db, history: &history };
        let (mut random, mut refused) = (SplitMix64::new(9), BTreeSet::new());
        for _ in 0..60 {
            let number = random.below(60);
            if writer.put(number, 4_000).is_err() {
                refused.insert(number);
            }
        }
        let has_failed = db.flush().is_err();
        let statistics = db.statistics();
        failed_count += usize::from(has_failed || statistics.jobs_failed > 0);
        failed_jobs.append(&mut failed.0.lock().unwrap());
        faults.clear_rules();
        // It is unknown whether a refused write is there.
        for number in refused {
            writer.put(number, 4_000).expect("space returned");
        }
        for _ in 0..60 {
            writer.put(random.below(60), 4_000).expect("space returned");
        }
        writer.flush().expect("space returned");
        db.wait_for_compactions().expect("space returned");
        assert!(db.statistics().partition_decisions.split.count > 0, "{:?}", db.statistics());
        let newest = *history.lock().unwrap().digests.last().unwrap();
        assert!(digest_of(&db) == newest, "writes are lost");
        assert!(db.verify().unwrap().is_sound());
        db.close().unwrap();
        split.check(&memory.crash_clone(free_bytes), &[newest]);
    }
    assert!(failed_count > 5 && failed_jobs.contains("compact tables"), "{failed_count} {failed_jobs:?}");
}
