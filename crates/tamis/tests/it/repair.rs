//! A store after a loss, repaired: it opens, is sound, takes writes; what it holds is what it held, except where the report says
//! that writes may be lost. No deleted key comes back without being reported. Nothing is deleted from the folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use tamis::{Db, Durability, RepairReport, Runtime};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use crate::{
    scenario::{Context, Plan, State, Step, apply, new_state, read_all, run, script},
    support::{FOLDER, Random, inline_options, open_in_memory, small_keyspace},
};

type Files = BTreeMap<String, Vec<u8>>;

fn files_of(memory: &MemVfs, folder: &str) -> Files {
    let folder = Path::new(folder);
    let entries = memory.list(folder).unwrap_or_default().into_iter().filter(|entry| !entry.is_dir);
    entries.map(|entry| (entry.name.clone(), memory.read(&folder.join(entry.name)).unwrap())).collect()
}

fn folder_of(files: &Files) -> MemVfs {
    let memory = MemVfs::new();
    memory.create_dir_all(Path::new(FOLDER)).unwrap();
    for (name, bytes) in files {
        let file = memory.create(&Path::new(FOLDER).join(name)).unwrap();
        file.append(bytes).unwrap();
        file.sync().unwrap();
    }
    memory.sync_dir(Path::new(FOLDER)).unwrap();
    memory
}

fn repair(memory: &MemVfs) -> RepairReport {
    Db::repair_on(Arc::new(memory.clone()), FOLDER, &Runtime::deterministic(9)).unwrap()
}

/// A store with tables of several levels and a log, closed; what it holds, and all that it ever held.
struct Sample {
    files: Files,
    state: State,
    ever: BTreeSet<(String, Vec<u8>)>,
}

fn sample(seed: u64) -> Sample {
    let memory = MemVfs::new();
    let mut db = open_in_memory(&memory, inline_options()).unwrap();
    let plan = Plan {
        seed,
        step_count: 220,
        key_count: 60,
        value_bytes_max: 5_000,
        has_keyspaces: true,
        has_ingests: seed % 2 == 1,
    };
    let (mut state, mut ever) = (new_state(), BTreeSet::new());
    for step in script(plan) {
        match step {
            Step::Kill | Step::Reopen => {
                db.close().unwrap();
                db = open_in_memory(&memory, inline_options()).unwrap();
            }
            _ => {
                run(&db, &step).unwrap();
                apply(&mut state, &step);
            }
        }
        let names =
            state.iter().flat_map(|(name, entries)| entries.keys().map(|key| (name.clone(), key.clone())));
        ever.extend(names);
    }
    db.persist(Durability::Synced).unwrap();
    db.close().unwrap();
    Sample { files: files_of(&memory, FOLDER), state, ever }
}

impl Sample {
    fn names(&self, suffix: &str) -> Vec<String> {
        self.files.keys().filter(|name| name.ends_with(suffix)).cloned().collect()
    }
}

fn covers(report: &RepairReport, keyspace: &str, key: &[u8], is_back: bool) -> bool {
    report.lost_ranges.iter().any(|range| {
        range.keyspace.as_deref().is_none_or(|name| name == keyspace)
            && range.lower.as_slice() <= key
            && range.upper.as_ref().is_none_or(|upper| key <= upper.as_slice())
            && (range.may_lose_deletes || !is_back)
    })
}

/// Whatever differs from what the store held is reported; gives how many keys do.
fn check_reported(found: &State, sample: &Sample, report: &RepairReport) -> usize {
    let mut differences = 0;
    let names: BTreeSet<_> = found.keys().chain(sample.state.keys()).collect();
    for name in names {
        let none = BTreeMap::new();
        let (is, was) = (found.get(name).unwrap_or(&none), sample.state.get(name).unwrap_or(&none));
        let keys: BTreeSet<_> = is.keys().chain(was.keys()).collect();
        for key in keys.into_iter().filter(|key| is.get(*key) != was.get(*key)) {
            let is_back = is.contains_key(key) && !was.contains_key(key);
            differences += 1;
            let text = String::from_utf8_lossy(key);
            assert!(
                covers(report, name, key, is_back),
                "{name}/{text} differs (back: {is_back}) and is not reported: {:#?}",
                report.lost_ranges
            );
            let was_there = sample.ever.contains(&(name.clone(), key.clone()));
            // A keyspace whose name the lost manifest had goes by its number.
            assert!(
                was_there || name.starts_with("recovered") || name.contains('-'),
                "{name}/{text} never was"
            );
        }
    }
    differences
}

/// Repairs, and checks everything that must hold; gives the report and the number of keys that differ.
fn check(files: &Files, sample: &Sample) -> (RepairReport, usize) {
    let memory = folder_of(files);
    let report = repair(&memory);
    let kept: BTreeSet<Vec<u8>> =
        files_of(&memory, FOLDER).into_values().chain(files_of(&memory, "/db/lost").into_values()).collect();
    for (name, bytes) in files {
        assert!(kept.contains(bytes), "{name} is gone");
    }
    for left in &report.left_out {
        assert!(memory.exists(&left.file).unwrap(), "{left:?}");
    }
    // What is in force survives the machine.
    let memory = memory.crash_clone(3);
    let db = open_in_memory(&memory, inline_options()).unwrap();
    let verified = db.verify().unwrap();
    assert!(verified.is_sound(), "{:?}", verified.faults);
    let found = read_all(&db, &sample.state).unwrap();
    let differences = check_reported(&found, sample, &report);
    db.put("later", "write").unwrap();
    db.create_keyspace("after the repair", small_keyspace()).unwrap().put("key", "value").unwrap();
    db.compact_range::<&[u8]>(&db.default_keyspace(), ..).unwrap();
    db.close().unwrap();
    assert!(repair(&memory).was_sound(), "a repaired store needs no repair");
    let db = open_in_memory(&memory, inline_options()).unwrap();
    assert_eq!(db.get("later").unwrap().as_deref(), Some(&b"write"[..]));
    assert_eq!(db.keyspace("after the repair").unwrap().get("key").unwrap().as_deref(), Some(&b"value"[..]));
    (report, differences)
}

const SEEDS: std::ops::Range<u64> = 20..26;

#[test]
fn a_sound_store_stays_as_it_is() {
    let sample = sample(20);
    let memory = folder_of(&sample.files);
    let report = repair(&memory);
    assert!(report.was_sound() && report.left_out.is_empty() && report.lost_ranges.is_empty());
    let mut after = files_of(&memory, FOLDER);
    after.remove("LOCK");
    let mut before = sample.files.clone();
    before.remove("LOCK");
    assert!(after == before);
}

#[test]
fn a_lost_current_loses_nothing() {
    for seed in SEEDS {
        let sample = sample(seed);
        for damage in [None, Some(0), Some(9), Some(31)] {
            let _context = Context(format!("seed {seed}, {damage:?}"));
            let mut files = sample.files.clone();
            match damage {
                None => drop(files.remove("CURRENT")),
                Some(place) => files.get_mut("CURRENT").unwrap()[place] ^= 4,
            }
            let (report, differences) = check(&files, &sample);
            assert_eq!((differences, report.lost_ranges.len()), (0, 0), "{report:#?}");
        }
    }
}

#[test]
fn without_a_manifest_the_tables_tell() {
    for seed in SEEDS {
        let _context = Context(format!("seed {seed}"));
        let sample = sample(seed);
        let mut files = sample.files.clone();
        files.retain(|name, _| !name.ends_with(".manifest"));
        let (report, _) = check(&files, &sample);
        assert!(!report.lost_ranges.is_empty(), "that the manifest is gone is reported");
        files.remove("CURRENT");
        check(&files, &sample);
        // Of a store that was closed no table is obsolete: all that has a name is there.
        let memory = folder_of(&files);
        repair(&memory);
        let found = read_all(&open_in_memory(&memory, inline_options()).unwrap(), &State::new()).unwrap();
        if seed % 2 == 0 {
            for (name, entries) in &sample.state {
                let is_named = found.get(name).is_some_and(|found| found == entries);
                let is_nameless = found.keys().any(|name| name.contains("recovered"));
                assert!(is_named || is_nameless || entries.is_empty(), "{name}");
            }
        }
    }
}

#[test]
fn of_a_cut_or_damaged_manifest_the_longest_readable_part_counts() {
    for seed in SEEDS {
        let sample = sample(seed);
        let manifest = sample.names(".manifest").pop().unwrap();
        let length = sample.files[&manifest].len();
        let mut random = Random(seed);
        for _ in 0..10 {
            let place = random.below(length as u64) as usize;
            let _context = Context(format!("seed {seed}, cut at {place} of {length}"));
            let mut files = sample.files.clone();
            files.get_mut(&manifest).unwrap().truncate(place);
            check(&files, &sample);
            let mut files = sample.files.clone();
            files.get_mut(&manifest).unwrap()[place] ^= 0x40;
            check(&files, &sample);
        }
    }
}

/// Edits are cut off that flushes and compactions had made in the same session.
#[test]
fn compactions_whose_edits_are_lost_revive_nothing_unreported() {
    for seed in 0..30 {
        let memory = MemVfs::new();
        let db = open_in_memory(&memory, inline_options()).unwrap();
        let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
        let mut random = Random(seed);
        let (mut state, mut ever) = (BTreeMap::new(), BTreeSet::new());
        let mut lengths = Vec::new();
        for round in 0..8_u64 {
            for _ in 0..12 {
                let key = format!("key{:02}", random.below(25)).into_bytes();
                if random.below(3) == 0 {
                    keyspace.delete(&key).unwrap();
                    state.remove(&key);
                } else {
                    let value = vec![random.next() as u8; 900];
                    keyspace.put(&key, &value).unwrap();
                    state.insert(key.clone(), Arc::from(value));
                    ever.insert(("k".to_owned(), key));
                }
            }
            db.flush().unwrap();
            if round % 3 == 2 {
                db.compact_range::<&[u8]>(&keyspace, ..).unwrap();
            }
            let manifest =
                files_of(&memory, FOLDER).into_iter().find(|(name, _)| name.ends_with(".manifest"));
            lengths.push(manifest.unwrap().1.len());
        }
        drop(keyspace);
        db.close().unwrap();
        let state = State::from([("default".to_owned(), BTreeMap::new()), ("k".to_owned(), state)]);
        let sample = Sample { files: files_of(&memory, FOLDER), state, ever };
        let manifest = sample.names(".manifest").pop().unwrap();
        for length in lengths {
            let _context = Context(format!("seed {seed}, manifest cut to {length}"));
            let mut files = sample.files.clone();
            files.get_mut(&manifest).unwrap().truncate(length);
            check(&files, &sample);
        }
    }
}

#[test]
fn a_lost_or_damaged_table_is_reported_with_its_range() {
    for seed in SEEDS {
        let sample = sample(seed);
        let mut random = Random(seed);
        for name in sample.names(".table") {
            let _context = Context(format!("seed {seed}, {name}"));
            let mut files = sample.files.clone();
            files.remove(&name);
            let (report, _) = check(&files, &sample);
            assert!(report.lost_ranges.iter().any(|range| range.why.contains(&name)), "{report:#?}");
            let length = sample.files[&name].len();
            for _ in 0..3 {
                let place = random.below(length as u64) as usize;
                let _context = Context(format!("byte {place} of {length}"));
                let mut files = sample.files.clone();
                files.get_mut(&name).unwrap()[place] ^= 1;
                let (report, _) = check_or_padding(&files, &sample, place, &name);
                assert!(report.faults.iter().all(|fault| fault.file.ends_with(&name)), "{report:#?}");
                files.get_mut(&name).unwrap().truncate(place);
                check(&files, &sample);
            }
        }
    }
}

/// Of the zeros between sections nothing depends.
fn check_or_padding(files: &Files, sample: &Sample, place: usize, name: &str) -> (RepairReport, usize) {
    let result = check(files, sample);
    assert!(!result.0.was_sound() || sample.files[name][place] == 0, "the damage at {place} was not found");
    result
}

/// Of a table of many blocks one is damaged: all others are saved.
#[test]
fn of_a_damaged_table_all_but_the_damaged_blocks_are_saved() {
    let memory = MemVfs::new();
    let db = open_in_memory(&memory, inline_options()).unwrap();
    for number in 0..2_000_u32 {
        db.put(number.to_be_bytes(), [7; 60]).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    let mut files = files_of(&memory, FOLDER);
    let table = files.keys().find(|name| name.ends_with(".table")).unwrap().clone();
    files.get_mut(&table).unwrap()[5 * 4_096 + 100] ^= 1;
    let memory = folder_of(&files);
    let report = repair(&memory);
    assert_eq!((report.faults.len(), report.faults[0].offset), (1, Some(5 * 4_096)));
    assert_eq!((report.table_count, report.written_table_count, report.lost_ranges.len()), (1, 1, 1));
    assert!(!report.lost_ranges[0].may_lose_deletes, "the table held none");
    let db = open_in_memory(&memory, inline_options()).unwrap();
    let left = db.range::<&[u8]>(..).count();
    assert!((1_900..2_000).contains(&left), "{left}");
    for number in 0..2_000_u32 {
        let key = number.to_be_bytes();
        let is_there = db.get(key).unwrap().is_some();
        assert!(is_there || covers(&report, "default", &key, false));
    }
}

#[test]
fn a_damaged_log_gives_what_can_be_read() {
    for seed in SEEDS {
        let sample = sample(seed);
        let mut random = Random(seed);
        for name in sample.names(".log") {
            let length = sample.files[&name].len();
            for _ in 0..4 {
                let place = random.below(length as u64) as usize;
                let _context = Context(format!("seed {seed}, byte {place} of {length} of {name}"));
                let mut files = sample.files.clone();
                files.get_mut(&name).unwrap()[place] ^= 2;
                check(&files, &sample);
            }
            let _context = Context(format!("seed {seed}, without {name}"));
            let mut files = sample.files.clone();
            files.remove(&name);
            check_loss_of_log(&files, &sample);
        }
    }
}

/// The newest segment may go without a trace; that is no loss that anything could notice.
fn check_loss_of_log(files: &Files, sample: &Sample) {
    let last = sample.names(".log").pop().unwrap();
    if files.contains_key(&last) {
        check(files, sample);
    }
}

/// Outputs of a compaction that never came into force, and inputs of one that did.
#[test]
fn leftovers_of_a_compaction_are_told_from_what_is_in_force() {
    let mut picture_count = 0;
    for seed in 0..12 {
        let memory = MemVfs::new();
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let db = Db::open_on(Arc::new(faults.clone()), FOLDER, inline_options(), Runtime::deterministic(7))
            .unwrap();
        let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
        let mut random = Random(seed);
        let (mut state, mut ever) = (BTreeMap::new(), BTreeSet::new());
        for _ in 0..3 {
            for _ in 0..60 {
                let key = format!("key{:02}", random.below(60)).into_bytes();
                if random.below(3) == 0 {
                    keyspace.delete(&key).unwrap();
                    state.remove(&key);
                } else {
                    let value = vec![random.next() as u8; 1_500];
                    keyspace.put(&key, &value).unwrap();
                    state.insert(key.clone(), Arc::from(value));
                    ever.insert(("k".to_owned(), key));
                }
            }
            db.flush().unwrap();
        }
        // Pictures before and after each step of a compaction: with outputs not in force, with inputs not yet gone.
        let pictures = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (taken, watched) = (Arc::clone(&pictures), memory.clone());
        faults.add_rule(Rule::slow(move |_| taken.lock().unwrap().push(files_of(&watched, FOLDER))).on(&[
            OperationKind::Rename,
            OperationKind::Append,
            OperationKind::Remove,
            OperationKind::SyncDir,
        ]));
        db.compact_range::<&[u8]>(&keyspace, ..).unwrap();
        faults.clear_rules();
        let state = State::from([("default".to_owned(), BTreeMap::new()), ("k".to_owned(), state)]);
        let pictures = std::mem::take(&mut *pictures.lock().unwrap());
        picture_count += pictures.len();
        for (index, files) in pictures.into_iter().enumerate() {
            let _context = Context(format!("seed {seed}, picture {index}"));
            let sample = Sample { files, state: state.clone(), ever: ever.clone() };
            // With the manifest nothing is lost and nothing comes back.
            let memory = folder_of(&sample.files);
            assert!(repair(&memory).was_sound());
            let mut files = sample.files.clone();
            files.retain(|name, _| !name.ends_with(".manifest"));
            let (report, differences) = check(&files, &sample);
            // All inputs, or all outputs, are there: each makes the whole.
            assert_eq!(differences, 0, "{report:#?}");
        }
    }
    assert!(picture_count > 20, "{picture_count}");
}

/// Power is lost before each operation of a repair: a repair that follows finds as much.
#[test]
fn a_repair_that_was_interrupted_is_done_again() {
    let sample = sample(21);
    let mut files = sample.files.clone();
    files.retain(|name, _| !name.ends_with(".manifest"));
    let memory = folder_of(&files);
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let pictures = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (taken, watched) = (Arc::clone(&pictures), memory.clone());
    faults.add_rule(Rule::slow(move |operation| {
        if !matches!(operation.kind, OperationKind::Read | OperationKind::Open | OperationKind::List) {
            let mut taken = taken.lock().unwrap();
            let seed = taken.len() as u64;
            taken.push(watched.crash_clone(seed));
        }
    }));
    Db::repair_on(Arc::new(faults), FOLDER, &Runtime::deterministic(9)).unwrap();
    let pictures = std::mem::take(&mut *pictures.lock().unwrap());
    assert!(pictures.len() > 20);
    for (index, memory) in pictures.into_iter().enumerate() {
        let _context = Context(format!("before operation {index}"));
        let report = repair(&memory);
        let db = open_in_memory(&memory, inline_options()).unwrap();
        let found = read_all(&db, &sample.state).unwrap();
        if !report.was_sound() {
            check_reported(&found, &sample, &report);
        }
        assert!(db.verify().unwrap().is_sound());
    }
}

#[test]
fn a_folder_without_a_store_is_refused() {
    let memory = MemVfs::new();
    let refused = || Db::repair_on(Arc::new(memory.clone()), FOLDER, &Runtime::deterministic(9));
    assert!(matches!(refused(), Err(tamis::Error::NotADatabase { .. })));
    memory.create_dir_all(Path::new(FOLDER)).unwrap();
    memory.create(Path::new("/db/text")).unwrap();
    assert!(matches!(refused(), Err(tamis::Error::NotADatabase { .. })));
    let other = MemVfs::new();
    let _db = open_in_memory(&other, inline_options()).unwrap();
    let open = Db::repair_on(Arc::new(other.clone()), FOLDER, &Runtime::deterministic(9));
    assert!(matches!(open, Err(tamis::Error::Locked { .. })));
}
