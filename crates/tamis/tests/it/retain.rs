//! Entries that a flush of the partitioned layout retains in the next memtable, instead of writing tables for them.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use parking_lot::Mutex;
use tamis::{
    Db, Durability, Event, EventListener, KeyspaceOptions, Layout, Options, Runtime, Snapshot, Statistics,
    WriteBatch,
};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};
use tamis_workload::{SplitMix64, ZipfianComposite};

use crate::{
    scenario::Context,
    support::{
        EventLog, FOLDER, Model, change_options, check_entries, inline_options, is_deep, open_in_memory,
        open_on, put, small_keyspace, sweep_stride,
    },
};

pub(crate) const LAYOUT: Layout = Layout::Partitioned { tables_per_partition: 4 };
/// Keys below this number get most writes.
pub(crate) const HOT_COUNT: u64 = 40;
pub(crate) const KEY_COUNT: u64 = 400;

pub(crate) fn options() -> Options {
    inline_options().default_keyspace(small_keyspace().layout(LAYOUT))
}

/// A store with some partitions, of which most have nearly as many tables as they may have.
pub(crate) fn prepare(vfs: &MemVfs) -> (Db, Model) {
    let db = open_in_memory(vfs, options()).unwrap();
    let (mut model, mut random) = (Model::new(), SplitMix64::new(3));
    for _ in 0..3 * KEY_COUNT {
        put(&db, &mut model, random.below(KEY_COUNT), vec![1; 3_000]);
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    (db, model)
}

/// Overwrites hot keys, and changes a few cold keys a little.
fn write(db: &Db, model: &mut Model, random: &mut SplitMix64, count: u64) {
    for round in 0..count {
        if round % 7 > 0 {
            put(db, model, random.below(HOT_COUNT), vec![round as u8; 3_000]);
            continue;
        }
        let number = HOT_COUNT + random.below(KEY_COUNT - HOT_COUNT);
        if random.below(3) == 0 {
            let key = number.to_be_bytes().to_vec();
            db.delete(&key).unwrap();
            model.remove(&key);
        } else {
            put(db, model, number, round.to_be_bytes().to_vec());
        }
    }
}

#[test]
fn few_entries_of_expensive_partitions_stay_in_memory_until_a_later_flush() {
    let vfs = MemVfs::new();
    let (db, mut model) = prepare(&vfs);
    let mut random = SplitMix64::new(4);
    let before = db.statistics();
    let mut snapshots = Vec::new();
    for _ in 0..6 {
        write(&db, &mut model, &mut random, 60);
        check_entries(&db, &model);
        snapshots.push((db.snapshot(), model.clone()));
        for (snapshot, model) in &snapshots {
            let keyspace = db.default_keyspace();
            let found: Model = snapshot
                .range(&keyspace, ..)
                .map(|entry| entry.unwrap())
                .map(|(key, value)| (key.to_vec(), value.to_vec()))
                .collect();
            assert!(found == *model, "a snapshot has {} entries, not {}", found.len(), model.len());
            for key in 0..KEY_COUNT {
                let key = key.to_be_bytes();
                let found = snapshot.get(&keyspace, key).unwrap();
                assert_eq!(found.as_deref(), model.get(&key[..]).map(Vec::as_slice));
            }
        }
    }
    let statistics = db.statistics();
    let flushes = statistics.flushes - before.flushes;
    let aborted = statistics.partition_decisions.abort.count - before.partition_decisions.abort.count;
    assert!(aborted >= flushes && flushes > 5, "{aborted} partitions aborted by {flushes} flushes");
    let bytes = statistics.retained_bytes - before.retained_bytes;
    let flushed = statistics.flush_bytes_written - before.flush_bytes_written;
    assert!(bytes > 0 && bytes * 100 < flushed * 15, "{bytes} bytes retained, {flushed} flushed");
    assert!(statistics.retained_entries > before.retained_entries);
    // A process that ends has them in the log; one that calls `flush` has them in tables.
    drop(snapshots);
    db.close().unwrap();
    let db = open_in_memory(&vfs, options()).unwrap();
    check_entries(&db, &model);
    db.flush().unwrap();
    check_entries(&db, &model);
    db.close().unwrap();
    let db = open_in_memory(&vfs, options()).unwrap();
    assert_eq!(db.open_report().replayed_entries, 0);
    check_entries(&db, &model);
}

/// The bytes that flushes and compactions write, with and without retained entries: only the layout's own flushes retain.
#[test]
fn retained_entries_save_more_bytes_than_they_take() {
    let written = |flush_each: bool| {
        let vfs = MemVfs::new();
        let (db, mut model) = prepare(&vfs);
        let before = db.statistics();
        let mut random = SplitMix64::new(4);
        for _ in 0..40 {
            write(&db, &mut model, &mut random, 21);
            if flush_each {
                db.flush().unwrap();
            }
        }
        check_entries(&db, &model);
        let after = db.statistics();
        let all = |s: &Statistics| s.log_bytes_written + s.flush_bytes_written + s.compaction_bytes_written;
        (
            all(&after) - all(&before),
            after.partition_decisions.abort.count - before.partition_decisions.abort.count,
        )
    };
    let ((retaining, count), (flushing, none)) = (written(false), written(true));
    assert!(count > 0 && none == 0);
    assert!(retaining * 10 < flushing * 9, "{retaining} bytes written, {flushing} by whole flushes");
}

/// The expected bytes of a flush are those of the entries that it writes.
#[test]
fn flushes_do_not_expect_to_write_the_entries_that_they_retain() {
    let vfs = MemVfs::new();
    let (db, mut model) = prepare(&vfs);
    db.close().unwrap();
    let log = Arc::new(EventLog::default());
    let listener: Arc<dyn EventListener> = Arc::<EventLog>::clone(&log);
    let db = open_in_memory(&vfs, options().listener(listener)).unwrap();
    let mut random = SplitMix64::new(4);
    for round in 0..1_500 {
        let (number, length) = match round % 7 {
            0 => (HOT_COUNT + random.below(KEY_COUNT - HOT_COUNT), 300),
            _ => (random.below(HOT_COUNT), 500),
        };
        put(&db, &mut model, number, vec![round as u8; length]);
    }
    db.flush().unwrap();
    let many = |event: &&Event| matches!(event, Event::EntriesRetained { bytes, .. } if *bytes > 1_000);
    let many_retained = log.0.lock().iter().filter(many).count();
    assert!(many_retained > 2, "{many_retained} flushes retained more than the last entry of a memtable");
    // Each entry is expected once, by the flush that writes it; few are overwritten while they are in memory.
    let statistics = db.statistics();
    let minor = statistics.partition_decisions.minor;
    let (expected, user_bytes) = (minor.bytes_expected - minor.count * 4_096, statistics.user_bytes_written);
    assert!(
        expected <= user_bytes
            && expected * 100 >= user_bytes * 99
            && statistics.retained_bytes * 50 > user_bytes,
        "{expected} expected, {user_bytes} written, {} retained",
        statistics.retained_bytes
    );
    check_entries(&db, &model);
}

/// A change of the layout, an ingest, a checkpoint and a killed process find retained entries in memory or in the log.
#[test]
fn retained_entries_survive_changes_of_the_layout_ingests_and_checkpoints() {
    for layout in [Layout::Leveled, Layout::tiered()] {
        let vfs = MemVfs::new();
        let (db, mut model) = prepare(&vfs);
        let mut random = SplitMix64::new(5);
        while db.statistics().partition_decisions.abort.count == 0 {
            write(&db, &mut model, &mut random, 7);
        }
        db.checkpoint("/copy").unwrap();
        let copied = model.clone();
        let mut table = db.default_keyspace().table_writer("/table").unwrap();
        for number in (0..KEY_COUNT).step_by(3) {
            let key = number.to_be_bytes();
            table.put(key, b"ingested").unwrap();
            model.insert(key.to_vec(), b"ingested".to_vec());
        }
        table.finish().unwrap();
        // A copy of the process that is killed here.
        let killed = vfs.crash_clone(0);
        db.ingest(&db.default_keyspace(), ["/table"]).unwrap();
        check_entries(&db, &model);
        let aborted = db.statistics().partition_decisions.abort.count;
        while db.statistics().partition_decisions.abort.count == aborted {
            write(&db, &mut model, &mut random, 7);
        }
        db.close().unwrap();
        let set_layout = |db: &Db| change_options(db, "default", |options| options.layout(layout)).unwrap();
        let db = open_in_memory(&vfs, inline_options()).unwrap();
        set_layout(&db);
        check_entries(&db, &model);
        db.wait_for_compactions().unwrap();
        let statistics = db.statistics();
        assert_eq!(statistics.jobs_failed, 0);
        let keyspace = statistics.keyspaces.iter().find(|keyspace| keyspace.name == "default").unwrap();
        assert_eq!(keyspace.partition_count, 1, "{layout}");
        check_entries(&db, &model);
        db.close().unwrap();
        let files: Arc<dyn Vfs> = Arc::new(vfs.clone());
        let copy = Db::open_on(files, "/copy", inline_options(), Runtime::deterministic(7)).unwrap();
        set_layout(&copy);
        copy.wait_for_compactions().unwrap();
        check_entries(&copy, &copied);
        let killed = open_in_memory(&killed, inline_options()).unwrap();
        set_layout(&killed);
        killed.wait_for_compactions().unwrap();
        assert!(killed.verify().unwrap().is_sound());
    }
}

/// The log refuses the record of the retained entries, but the disk has it: the flush is tried again without it.
#[test]
fn a_refused_record_of_retained_entries_is_not_replayed() {
    let memory = MemVfs::new();
    let (db, mut model) = prepare(&memory);
    db.close().unwrap();
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let db = open_on(Arc::new(faults.clone()), options()).unwrap();
    let mut random = SplitMix64::new(4);
    let mut refused = 0;
    for round in 0..40_u64 {
        let rule = Rule::error_after(std::io::ErrorKind::Other).on(&[OperationKind::Append]).path(".log");
        let rule = faults.add_rule(rule.nth(round % 30));
        let cut =
            faults.add_rule(Rule::error(std::io::ErrorKind::Other).on(&[OperationKind::Truncate]).forever());
        for number in 0..30 {
            let (number, value) = match number % 7 {
                0 => (HOT_COUNT + random.below(KEY_COUNT - HOT_COUNT), vec![round as u8; 10]),
                _ => (random.below(HOT_COUNT), vec![round as u8; 3_000]),
            };
            let key = number.to_be_bytes();
            match db.put(key, &value) {
                Ok(()) => drop(model.insert(key.to_vec(), value)),
                Err(_) => refused += 1,
            }
        }
        faults.remove_rule(rule);
        faults.remove_rule(cut);
        db.persist(Durability::Synced).unwrap();
        let crashed = open_in_memory(&memory.crash_clone(round), options()).unwrap();
        check_entries(&crashed, &model);
        crashed.flush().unwrap();
        check_entries(&crashed, &model);
    }
    // Refused records of retained entries fail flushes, not writes.
    let statistics = db.statistics();
    assert!(refused > 0 && statistics.jobs_failed > 0, "{refused}, {statistics:?}");
    assert!(statistics.partition_decisions.abort.count > 0);
    check_entries(&db, &model);
}

/// Holds a flush that has retained entries, before it writes its tables: it reports that, and waits.
#[derive(Debug)]
struct RetainGate {
    reached: Mutex<Sender<()>>,
    release: Mutex<Receiver<()>>,
}

impl EventListener for RetainGate {
    fn on_event(&self, event: &Event) {
        // Once the other end is gone, flushes pass.
        if matches!(event, Event::EntriesRetained { .. }) && self.reached.lock().send(()).is_ok() {
            let _ = self.release.lock().recv();
        }
    }
}

/// A store with two workers whose flushes wait at a [`RetainGate`], compared with a map.
struct GatedStore {
    /// Dropped before the store, which waits for its workers, also when a test fails.
    reached: Receiver<()>,
    release: Sender<()>,
    snapshots: Vec<(Snapshot, Model)>,
    memory: MemVfs,
    db: Db,
    model: Model,
    random: SplitMix64,
}

impl GatedStore {
    fn open(image: &MemVfs, model: Model) -> Self {
        let (reached_sender, reached) = channel();
        let (release, release_receiver) = channel();
        let gate = RetainGate { reached: Mutex::new(reached_sender), release: Mutex::new(release_receiver) };
        let memory = image.crash_clone(0);
        let options = options().workers(2).listener(Arc::new(gate));
        let files: Arc<dyn Vfs> = Arc::new(memory.clone());
        let db = Db::open_on(files, FOLDER, options, Runtime::system()).unwrap();
        Self { memory, db, model, snapshots: Vec::new(), random: SplitMix64::new(4), reached, release }
    }

    fn immutable_count(&self) -> usize {
        let statistics = self.db.statistics();
        let keyspace = statistics.keyspaces.iter().find(|keyspace| keyspace.name == "default");
        keyspace.unwrap().immutable_memtable_count
    }

    /// Writes to hot keys, and sometimes to a cold one.
    fn write(&mut self) {
        write(&self.db, &mut self.model, &mut self.random, 1);
        let cold = HOT_COUNT + self.random.below(KEY_COUNT - HOT_COUNT);
        match self.random.below(8) {
            0 => put(&self.db, &mut self.model, cold, self.random.next_u64().to_be_bytes().to_vec()),
            1..6 => put(&self.db, &mut self.model, self.random.below(HOT_COUNT), vec![1; 3_000]),
            _ => {}
        }
    }

    /// Changes many cold keys, whose older entries a flush retains or will retain: overwrites some, and deletes others.
    fn change_cold_keys(&mut self) {
        for number in HOT_COUNT..KEY_COUNT {
            let key = number.to_be_bytes().to_vec();
            match self.random.below(6) {
                0 => put(&self.db, &mut self.model, number, self.random.next_u64().to_be_bytes().to_vec()),
                1 => {
                    self.db.delete(&key).unwrap();
                    self.model.remove(&key);
                }
                _ => {}
            }
        }
    }

    /// Writes until a flush has retained entries and waits.
    fn write_until_retained(&mut self) {
        for _ in 0..5_000 {
            self.write();
            // Entries are retained only if one immutable memtable waits.
            while self.immutable_count() > 0 {
                if self.reached.try_recv().is_ok() {
                    return;
                }
                thread::yield_now();
            }
        }
        panic!("no flush has retained entries");
    }

    fn take_snapshot(&mut self) {
        self.snapshots.push((self.db.snapshot(), self.model.clone()));
    }

    fn check(&self) {
        check_entries(&self.db, &self.model);
        let keyspace = self.db.default_keyspace();
        for (snapshot, model) in &self.snapshots {
            let entries = snapshot.range(&keyspace, ..).map(Result::unwrap);
            let found: Vec<_> = entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            assert!(found.iter().map(|(key, value)| (key, value)).eq(model), "a snapshot has other entries");
        }
        let backward = self.db.range(..).rev().map(Result::unwrap);
        assert!(
            backward.map(|(key, value)| (key.to_vec(), value.to_vec())).eq(self
                .model
                .clone()
                .into_iter()
                .rev())
        );
        for number in 0..KEY_COUNT {
            let key = number.to_be_bytes();
            assert_eq!(self.db.get(key).unwrap().as_deref(), self.model.get(&key[..]).map(Vec::as_slice));
        }
    }

    /// The power fails now.
    fn check_crash(&self, seed: u64) {
        self.db.persist(Durability::Synced).unwrap();
        let crashed = open_in_memory(&self.memory.crash_clone(seed), options()).unwrap();
        check_entries(&crashed, &self.model);
        crashed.flush().unwrap();
        crashed.wait_for_compactions().unwrap();
        check_entries(&crashed, &self.model);
    }
}

/// A flush has retained entries in the current memtable, and its tables are not installed yet. Meanwhile their keys are overwritten and
/// deleted, memtables are filled, a flush is requested, and the power fails.
#[test]
fn writes_between_a_flush_that_retains_entries_and_its_installation_are_kept() {
    let image = MemVfs::new();
    let (db, model) = prepare(&image);
    db.close().unwrap();
    let mut store = GatedStore::open(&image, model);
    for round in 0..12 {
        store.write_until_retained();
        // Both memtables have the retained entries.
        store.check();
        store.take_snapshot();
        store.change_cold_keys();
        store.check();
        if round % 2 == 0 {
            // The memtable that has received the entries becomes immutable, and will be flushed next: it retains entries in a memtable
            // that has newer entries of the same keys.
            let count = store.immutable_count();
            while store.immutable_count() == count {
                store.write();
            }
            store.take_snapshot();
            store.change_cold_keys();
            store.check();
        }
        if round % 3 > 0 {
            store.check_crash(round);
        }
        if round % 4 == 3 {
            thread::scope(|scope| {
                let flush = scope.spawn(|| store.db.flush());
                // The flush waits for the one at the gate. Those after it retain nothing, except for one that may have begun before.
                store.release.send(()).unwrap();
                while !flush.is_finished() {
                    if store.reached.try_recv().is_ok() {
                        store.release.send(()).unwrap();
                    }
                    thread::yield_now();
                }
                flush.join().unwrap().unwrap();
            });
        } else {
            store.release.send(()).unwrap();
        }
        store.check();
        store.snapshots.drain(..store.snapshots.len().saturating_sub(3));
    }
    // Flushes pass from now on.
    let GatedStore { memory, db, model, snapshots, reached, release, .. } = store;
    drop((snapshots, reached, release));
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    check_entries(&db, &model);
    let statistics = db.statistics();
    assert!(statistics.jobs_failed == 0 && statistics.partition_decisions.abort.count > 12, "{statistics:?}");
    db.close().unwrap();
    let db = open_in_memory(&memory, options()).unwrap();
    assert_eq!(db.open_report().replayed_entries, 0);
    check_entries(&db, &model);
}

/// Bytes that a store writes for each byte of updates whose keys share Zipfian prefixes (figure 17 of the REMIX paper).
fn composite_amplification(layout: Layout) -> f64 {
    const COUNT: u64 = 40_000;
    let keyspace = KeyspaceOptions::default().layout(layout).memtable_bytes(512 << 10).table_bytes(64 << 10);
    let options = inline_options().default_keyspace(keyspace).log_bytes_max(8 << 20);
    let db = open_in_memory(&MemVfs::new(), options).unwrap();
    let put = |number: u64, round: u64| {
        let mut value = [0; 100];
        value[..8].copy_from_slice(&tamis_workload::mix64(number ^ round << 32).to_be_bytes());
        db.put(tamis_workload::operations::hex_digits(number), value).unwrap();
    };
    let mut random = SplitMix64::new(3);
    for number in 0..COUNT {
        put(random.below(COUNT), number);
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let all = |statistics: &Statistics| {
        statistics.log_bytes_written + statistics.flush_bytes_written + statistics.compaction_bytes_written
    };
    let before = db.statistics();
    let prefixes = ZipfianComposite::new(COUNT / 16);
    for round in 0..COUNT {
        let drawn = prefixes.draw(&mut random);
        put((drawn >> 16) * 16 + drawn % 16, COUNT + round);
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let after = db.statistics();
    let user_bytes = after.user_bytes_written - before.user_bytes_written;
    (all(&after) - all(&before)) as f64 / user_bytes as f64
}

#[test]
fn skewed_updates_write_less_than_in_the_leveled_layout() {
    let leveled = composite_amplification(Layout::Leveled);
    let partitioned = composite_amplification(Layout::partitioned());
    println!("leveled {leveled:.2}, partitioned {partitioned:.2}");
    assert!(partitioned < 0.75 * leveled, "{partitioned:.2} {leveled:.2}");
}

enum Edit {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

impl Edit {
    fn apply(&self, model: &mut Model) {
        match self {
            Self::Put(key, value) => {
                model.insert(key.clone(), value.clone());
            }
            Self::Delete(key) => {
                model.remove(key);
            }
            Self::DeleteRange(lower, upper) => model.retain(|key, _| key < lower || key >= upper),
        }
    }
}

/// A store that is never flushed by request, compared with a map.
struct World {
    vfs: MemVfs,
    db: Option<Db>,
    model: Model,
    /// The contents that are certainly on the disk, and the batches since.
    durable: Model,
    batches: Vec<Vec<Edit>>,
    snapshots: Vec<(Snapshot, Model)>,
    /// Of all processes.
    partitions_aborted: u64,
    retained_entries: u64,
    /// Processes that retained entries and ended without a close.
    crash_count: u64,
}

impl World {
    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    /// Writes several edits in a batch, or a single edit.
    fn write(&mut self, edits: Vec<Edit>) {
        let keyspace = self.db().default_keyspace();
        let mut batch = WriteBatch::new();
        for edit in &edits {
            match edit {
                Edit::Put(key, value) => batch.put(&keyspace, key, value).unwrap(),
                Edit::Delete(key) => batch.delete(&keyspace, key).unwrap(),
                Edit::DeleteRange(lower, upper) => {
                    batch.delete_range(&keyspace, &lower[..]..&upper[..]).unwrap()
                }
            }
            edit.apply(&mut self.model);
        }
        self.db().write(batch).unwrap();
        self.batches.push(edits);
    }

    fn sync(&mut self) {
        self.db().persist(Durability::Synced).unwrap();
        self.durable = self.model.clone();
        self.batches.clear();
    }

    fn step(&mut self, random: &mut SplitMix64) {
        let cold = HOT_COUNT + random.below(KEY_COUNT - HOT_COUNT);
        let key = |number: u64| number.to_be_bytes().to_vec();
        let hot = key(random.below(HOT_COUNT));
        match random.below(200) {
            0..130 => self.write(vec![Edit::Put(hot, vec![random.next_u64() as u8; 3_000])]),
            130..150 => self.write(vec![Edit::Put(key(cold), random.next_u64().to_be_bytes().to_vec())]),
            150..156 => self.write(vec![Edit::Delete(key(cold))]),
            156..162 => {
                let value = random.next_u64().to_be_bytes().to_vec();
                self.write(vec![Edit::Put(hot, value), Edit::Delete(key(cold))]);
            }
            162..164 => self.write(vec![Edit::DeleteRange(key(cold), key(cold + 1 + random.below(6)))]),
            164..170 if self.snapshots.len() < 3 => {
                self.snapshots.push((self.db().snapshot(), self.model.clone()))
            }
            164..176 => self.check_snapshot(random),
            176..188 => {
                for key in [hot, key(cold)] {
                    assert_eq!(
                        self.db().get(&key).unwrap().as_ref().map(|value| &value[..]),
                        self.model.get(&key).map(|value| &value[..])
                    );
                }
            }
            188..194 => check_entries(self.db(), &self.model),
            194..196 => self.sync(),
            196 => self.cut_power(random),
            197 => self.kill(),
            198 => self.reopen(),
            _ => self.db().wait_for_compactions().unwrap(),
        }
    }

    fn check_snapshot(&mut self, random: &mut SplitMix64) {
        if self.snapshots.is_empty() {
            return;
        }
        let chosen = random.below(self.snapshots.len() as u64) as usize;
        let (snapshot, model) = self.snapshots.swap_remove(chosen);
        let entries = snapshot.range(&self.db().default_keyspace(), ..).map(Result::unwrap);
        let found: Model = entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        assert!(found == model, "a snapshot has {} entries, not {}", found.len(), model.len());
    }

    fn end_process(&mut self, is_crash: bool) -> Db {
        self.snapshots.clear();
        let db = self.db.take().unwrap();
        let statistics = db.statistics();
        assert_eq!(statistics.jobs_failed, 0);
        self.partitions_aborted += statistics.partition_decisions.abort.count;
        self.retained_entries += statistics.retained_entries;
        self.crash_count += u64::from(is_crash && statistics.partition_decisions.abort.count > 0);
        db
    }

    fn open(&mut self) {
        self.db = Some(open_in_memory(&self.vfs, inline_options()).unwrap());
    }

    /// The power fails: a prefix of the batches since the last sync stays.
    fn cut_power(&mut self, random: &mut SplitMix64) {
        let crashed = self.vfs.crash_clone(random.next_u64());
        // Its close must not change the files that are opened next.
        drop(self.end_process(true));
        self.vfs = crashed;
        self.open();
        let entries = self.db().range(..).map(Result::unwrap);
        let found: Model = entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        let mut batches = std::mem::take(&mut self.batches).into_iter();
        while self.durable != found {
            let batch =
                batches.next().expect("the store has a prefix of all batches, with all that were synced");
            batch.iter().for_each(|edit| edit.apply(&mut self.durable));
        }
        self.model = found;
        check_entries(self.db(), &self.model);
        self.sync();
    }

    /// The process ends, and the files stay as they are.
    fn kill(&mut self) {
        std::mem::forget(self.end_process(true));
        self.vfs.release_locks();
        self.open();
        check_entries(self.db(), &self.model);
    }

    fn reopen(&mut self) {
        self.end_process(false).close().unwrap();
        self.open();
        self.sync();
        check_entries(self.db(), &self.model);
    }
}

/// Memtables fill without a requested flush, so that flushes retain entries of cold keys.
#[test]
fn random_operations_and_crashes_with_retained_entries_agree_with_a_map() {
    let image = MemVfs::new();
    let (db, model) = prepare(&image);
    db.close().unwrap();
    let seeds = if is_deep() { 64 } else { 6 };
    for seed in (0..seeds).step_by(sweep_stride() as usize) {
        let _context = Context(format!("seed {seed}"));
        let mut world = World {
            vfs: image.crash_clone(0),
            db: None,
            model: model.clone(),
            durable: model.clone(),
            batches: Vec::new(),
            snapshots: Vec::new(),
            partitions_aborted: 0,
            retained_entries: 0,
            crash_count: 0,
        };
        world.open();
        let mut random = SplitMix64::new(seed);
        for _ in 0..1_500 {
            world.step(&mut random);
        }
        world.reopen();
        assert!(world.partitions_aborted > 20, "{} partitions aborted", world.partitions_aborted);
        assert!(world.retained_entries > 20, "{} entries retained", world.retained_entries);
        assert!(world.crash_count > 5, "{} crashes with retained entries", world.crash_count);
    }
}
