//! Opens of a log with more entries than memtables may have: the open flushes while it replays, keeps what it has flushed if it is
//! killed, and loses nothing in a power failure.

use std::{
    io::ErrorKind,
    path::Path,
    sync::{Arc, Mutex},
};

use tamis::{Db, Durability, Error, Event, EventListener, OpenMode, Options, WriteBatch};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use crate::{
    retain::{self, HOT_COUNT, KEY_COUNT},
    scenario::{Context, State, read_all},
    support::{
        CHANGING, EventLog, FOLDER, Model, SplitMix64, check_entries, inline_options, open_in_memory,
        open_on, small_keyspace, sweep_stride,
    },
};

const MEMTABLE_BYTES: u64 = 64 << 10;
/// The bound of all memtables when the store is opened again.
const LOG_BYTES_MAX: u64 = 1 << 20;
/// A little more than that.
const ENTRY_COUNT: u64 = KEYSPACE_COUNT * BATCH_COUNT;
const KEYSPACE_COUNT: u64 = 24;
const BATCH_COUNT: u64 = 48;

fn options() -> Options {
    // Without compactions.
    let default_keyspace = small_keyspace().level0_runs(64);
    inline_options().default_keyspace(default_keyspace)
}

fn kill(db: Db, memory: &MemVfs) {
    std::mem::forget(db);
    memory.release_locks();
}

/// A store in which tables and further log segments can't be created.
fn open_without_flushes(memory: &MemVfs, options: Options) -> Db {
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let db = open_on(Arc::new(faults.clone()), options).unwrap();
    // Tables are written under temporary names.
    for name in [".tmp", ".log"] {
        let kinds = [OperationKind::Create, OperationKind::Reuse];
        faults.add_rule(Rule::error(ErrorKind::Other).on(&kinds).path(name).forever());
    }
    db
}

/// The log of a killed process has one segment with as many memtables of the default keyspace as writers may have.
fn one_segment_with_many_memtables(memory: &MemVfs) -> Model {
    let db = open_without_flushes(memory, options());
    let mut model = Model::new();
    for number in 0_u64.. {
        let (key, value) = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes(), [number as u8; 1_000]);
        if db.put(key, value).is_err() {
            break;
        }
        model.insert(key.to_vec(), value.to_vec());
    }
    assert!(model.len() as u64 * 1_000 > 4 * MEMTABLE_BYTES, "{} entries", model.len());
    kill(db, memory);
    model
}

/// The log of a killed process has batches of many keyspaces, whose memtables are not full.
fn many_keyspaces(memory: &MemVfs, durability: Durability) -> State {
    let db = open_in_memory(memory, options().log_bytes_max(1 << 30)).unwrap();
    let names: Vec<String> = (0..KEYSPACE_COUNT).map(|number| format!("k{number:02}")).collect();
    let keyspaces: Vec<_> =
        names.iter().map(|name| db.create_keyspace(name, small_keyspace()).unwrap()).collect();
    for number in 0..BATCH_COUNT {
        // Three neighbours share each batch.
        for neighbours in keyspaces.chunks(3) {
            let mut batch = WriteBatch::new();
            for keyspace in neighbours {
                batch.put(keyspace, number.to_be_bytes(), [number as u8; 1_000]).unwrap();
            }
            db.write_with(batch, durability).unwrap();
        }
    }
    let state = read_all(&db, &State::new()).unwrap();
    drop(keyspaces);
    kill(db, memory);
    state
}

fn memtable_bytes(db: &Db) -> u64 {
    db.statistics().keyspaces.iter().map(|keyspace| keyspace.memtable_bytes).sum()
}

/// Bytes of the tables of each flush.
fn flushes_of(log: &EventLog) -> Vec<u64> {
    let flushed = |event: &Event| match event {
        Event::Flushed { bytes, .. } => Some(*bytes),
        _ => None,
    };
    log.0.lock().iter().filter_map(flushed).collect()
}

/// The whole segment came into one memtable.
#[test]
fn a_replay_flushes_memtables_that_are_full() {
    for workers in [0, 2] {
        let memory = MemVfs::new();
        let model = one_segment_with_many_memtables(&memory);
        let log = Arc::new(EventLog::default());
        let listener: Arc<dyn EventListener> = Arc::<EventLog>::clone(&log);
        let options = options().workers(workers).listener(listener);
        let db = open_in_memory(&memory, options.clone()).unwrap();
        assert!(memtable_bytes(&db) <= MEMTABLE_BYTES + 2_000, "{} bytes", memtable_bytes(&db));
        let flushes = flushes_of(&log);
        assert!(flushes.len() >= 4, "{flushes:?}");
        assert!(flushes.iter().all(|bytes| *bytes <= MEMTABLE_BYTES + 8_000), "{flushes:?}");
        assert_eq!(db.open_report().replayed_entries, model.len() as u64);
        check_entries(&db, &model);
        kill(db, &memory);
        let db = open_in_memory(&memory, options).unwrap();
        assert!(db.open_report().replayed_entries * 1_000 <= MEMTABLE_BYTES, "{:?}", db.open_report());
        check_entries(&db, &model);
    }
}

/// The memtables of all keyspaces together took as much memory as the log had entries.
#[test]
fn a_replay_bounds_the_memtables_of_all_keyspaces() {
    let memory = MemVfs::new();
    let expected = many_keyspaces(&memory, Durability::Buffered);
    let segment_count = |memory: &MemVfs| {
        let entries = memory.list(Path::new(FOLDER)).unwrap();
        entries.iter().filter(|entry| entry.name.ends_with(".log")).count()
    };
    assert_eq!(segment_count(&memory), 1);
    let log = Arc::new(EventLog::default());
    let listener: Arc<dyn EventListener> = Arc::<EventLog>::clone(&log);
    let options = options().log_bytes_max(LOG_BYTES_MAX).listener(listener);
    let db = open_in_memory(&memory, options.clone()).unwrap();
    // The bound was reached once.
    let flushes = flushes_of(&log);
    assert_eq!(flushes.len() as u64, KEYSPACE_COUNT);
    assert!(flushes.iter().sum::<u64>() <= LOG_BYTES_MAX * 5 / 4, "{flushes:?}");
    assert!(memtable_bytes(&db) <= LOG_BYTES_MAX / 4, "{} bytes", memtable_bytes(&db));
    assert_eq!(read_all(&db, &expected).unwrap(), expected);
    assert_eq!(db.open_report().replayed_entries, ENTRY_COUNT);
    kill(db, &memory);
    let db = open_in_memory(&memory, options).unwrap();
    assert!(db.open_report().replayed_entries < ENTRY_COUNT / 2, "{:?}", db.open_report());
    assert_eq!(read_all(&db, &expected).unwrap(), expected);
}

/// The store has exactly these entries, and every table that the manifest does not name is obsolete.
fn check_synced(db: &Db, model: &Model) {
    check_entries(db, model);
    assert_eq!(db.open_report().quarantined_files, [""; 0]);
}

/// Power fails before each operation of an open of `memory`, which then is opened: the entries that each of these opens replays.
fn check_power_failures(
    memory: &MemVfs,
    options: &Options,
    seeds: u64,
    check: impl Fn(&Db) + Send + Sync + 'static,
) -> Vec<u64> {
    let replayed: Arc<Mutex<Vec<u64>>> = Arc::default();
    let (all, source, reopened) = (Arc::clone(&replayed), memory.clone(), options.clone());
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    faults.add_rule(
        Rule::slow(move |operation| {
            if std::thread::panicking() {
                return;
            }
            for _ in 0..seeds {
                let seed = all.lock().unwrap().len() as u64;
                let _context = Context(format!("seed {seed}, before {operation:?}"));
                let db = open_in_memory(&source.crash_clone(seed), reopened.clone()).unwrap();
                check(&db);
                let report = db.verify().unwrap();
                assert!(report.is_sound(), "{:?}", report.faults);
                all.lock().unwrap().push(db.open_report().replayed_entries);
            }
        })
        .on(&CHANGING),
    );
    let vfs: Arc<dyn Vfs> = Arc::new(faults);
    drop(open_on(vfs, options.clone()).unwrap());
    let replayed = std::mem::take(&mut *replayed.lock().unwrap());
    assert!(replayed.len() as u64 > 40 * seeds, "{replayed:?}");
    replayed
}

#[test]
fn no_power_failure_in_a_replay_that_flushes_loses_synced_writes() {
    let memory = MemVfs::new();
    let model = one_segment_with_many_memtables(&memory);
    let memory = synced_copy(&memory);
    let count = model.len() as u64;
    let replayed = check_power_failures(&memory, &options(), 2, move |db| check_synced(db, &model));
    assert_eq!(replayed[0], count);
    // Progress.
    let steps = replayed.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(steps >= 4, "{replayed:?}");
    assert!(replayed.last().unwrap() * 1_000 <= MEMTABLE_BYTES + 2_000, "{replayed:?}");
}

/// The files as they are, all of them synced.
fn synced_copy(memory: &MemVfs) -> MemVfs {
    let copy = MemVfs::new();
    let folder = Path::new(FOLDER);
    copy.create_dir_all(folder).unwrap();
    for entry in memory.list(folder).unwrap().into_iter().filter(|entry| !entry.is_dir) {
        let path = folder.join(entry.name);
        let file = copy.create(&path).unwrap();
        file.append(&memory.read(&path).unwrap()).unwrap();
        file.sync().unwrap();
    }
    copy.sync_dir(folder).unwrap();
    copy
}

#[test]
fn no_power_failure_in_a_replay_of_many_keyspaces_loses_synced_writes() {
    let memory = MemVfs::new();
    let expected = many_keyspaces(&memory, Durability::Synced);
    let options = options().log_bytes_max(LOG_BYTES_MAX);
    let check = move |db: &Db| assert_eq!(read_all(db, &expected).unwrap(), expected);
    let replayed = check_power_failures(&memory, &options, 1, check);
    assert_eq!(replayed[0], ENTRY_COUNT);
    assert!(*replayed.last().unwrap() < ENTRY_COUNT / 2, "{replayed:?}");
}

/// The killed process had not synced its writes: the flush of one half of a batch must not survive without the other half.
#[test]
fn no_power_failure_in_a_replay_that_flushes_leaves_half_a_batch() {
    let memory = MemVfs::new();
    many_keyspaces(&memory, Durability::Buffered);
    let options = options().log_bytes_max(LOG_BYTES_MAX);
    let check = |db: &Db| {
        let found = read_all(db, &State::new()).unwrap();
        let batches: Vec<_> =
            found.iter().filter(|(name, _)| name.starts_with('k')).map(|(_, all)| all).collect();
        assert!(batches.chunks(3).all(|shared| shared.iter().all(|entries| entries == &shared[0])));
        // The remaining batches are the first ones.
        let counts: Vec<usize> = batches.iter().map(|entries| entries.len()).collect();
        assert!(
            counts.windows(2).all(|pair| pair[0] >= pair[1] && pair[0] <= counts[counts.len() - 1] + 1),
            "{counts:?}"
        );
    };
    check_power_failures(&memory, &options, 2, check);
}

/// All operations fail from some operation on: the next open replays the rest. No open gets more operations than two thirds of those of a
/// complete one.
#[test]
fn opens_that_are_killed_while_they_replay_make_progress() {
    let memory = MemVfs::new();
    let model = one_segment_with_many_memtables(&memory);
    let open = |memory: &MemVfs, count: u64| {
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let rule = Rule::error(ErrorKind::Other).on(&CHANGING).nth(count).forever();
        faults.add_rule(rule);
        let operations = faults.add_rule(Rule::slow(|_| ()).on(&CHANGING));
        let opened = open_on(Arc::new(faults.clone()), options());
        memory.release_locks();
        (opened, faults.hit_count(operations))
    };
    let (complete, operation_count) = open(&synced_copy(&memory), 1 << 40);
    drop(complete.unwrap());
    let limit = operation_count * 2 / 3;
    for killed_count in 0..10 {
        let (opened, _) = open(&memory, limit);
        if let Ok(db) = opened {
            let replayed = db.open_report().replayed_entries;
            check_entries(&db, &model);
            assert!(killed_count > 0 && replayed < model.len() as u64 * 2 / 3, "{killed_count}: {replayed}");
            return;
        }
    }
    panic!("no open has ended with {limit} of {operation_count} operations");
}

#[test]
fn a_replay_whose_flush_fails_is_an_error_and_loses_nothing() {
    let memory = MemVfs::new();
    let model = one_segment_with_many_memtables(&memory);
    for nth in 1..4 {
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let rule = Rule::error(ErrorKind::StorageFull).on(&[OperationKind::Create]).path(".tmp").nth(nth);
        faults.add_rule(rule.forever());
        let opened = open_on(Arc::new(faults), options());
        let error = opened.map(drop).unwrap_err();
        assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    }
    check_entries(&open_in_memory(&memory, options()).unwrap(), &model);
}

#[test]
fn a_read_only_open_replays_a_long_log_without_a_flush() {
    let memory = MemVfs::new();
    let model = one_segment_with_many_memtables(&memory);
    let files = || {
        let entries = memory.list(Path::new(FOLDER)).unwrap().into_iter();
        entries.filter(|entry| !entry.is_dir).collect::<Vec<_>>()
    };
    let before = files();
    let db = open_in_memory(&memory, options().mode(OpenMode::Reader)).unwrap();
    check_entries(&db, &model);
    assert!(memtable_bytes(&db) > 4 * MEMTABLE_BYTES);
    assert_eq!(files(), before);
}

/// The log has entries of a memtable, newer ones, and then the entries that a flush retained, which failed. A flush between them would write
/// newer versions of a key than the memtable that receives the retained ones.
#[test]
fn a_replay_flushes_no_keyspace_before_its_last_retained_entry() {
    let mut retained_count = 0;
    for seed in (0..30).step_by(sweep_stride() as usize) {
        let _context = Context(format!("seed {seed}"));
        let memory = MemVfs::new();
        let (db, mut model) = retain::prepare(&memory);
        db.close().unwrap();
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let db = open_on(Arc::new(faults.clone()), retain::options());
        let db = db.unwrap();
        let rule = Rule::error(ErrorKind::Other).on(&[OperationKind::Create]).path(".tmp");
        faults.add_rule(rule.nth(1 + seed % 10).forever());
        let mut random = SplitMix64::new(seed);
        for round in 0..1_000_u64 {
            let number = match random.below(7) {
                0 => HOT_COUNT + random.below(KEY_COUNT - HOT_COUNT),
                _ => random.below(HOT_COUNT),
            };
            let value =
                if number < HOT_COUNT { vec![round as u8; 3_000] } else { round.to_be_bytes().to_vec() };
            if db.put(number.to_be_bytes(), &value).is_err() {
                break;
            }
            model.insert(number.to_be_bytes().to_vec(), value);
        }
        retained_count += db.statistics().retained_entries;
        kill(db, &memory);
        let copy = synced_copy(&memory);
        let db = open_in_memory(&copy, retain::options()).unwrap();
        check_entries(&db, &model);
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
        check_entries(&db, &model);
        drop(db);
        if seed % (10 * sweep_stride()) == 0 {
            let check = move |db: &Db| check_synced(db, &model);
            check_power_failures(&synced_copy(&memory), &retain::options(), 1, check);
        }
    }
    assert!(retained_count > 20 / sweep_stride(), "{retained_count}");
}
