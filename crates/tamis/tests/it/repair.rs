//! Repair after damage or loss: the store opens, is intact, and accepts writes. Its content is the same as before, except in the
//! reported ranges. No deleted key comes back without a report. No file is deleted from the folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use tamis::{Db, Durability, Layout, OpenMode, RepairReport, Runtime};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use crate::{
    retain,
    scenario::{Context, Plan, State, Step, apply, difference, new_state, read_all, run, script},
    support::{
        FOLDER, Model, SplitMix64, check_entries, inline_options, open_in_memory, open_on, small_keyspace,
    },
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

/// A closed store with tables of several levels and a log; its content, and all entries that it ever had.
struct Sample {
    files: Files,
    state: State,
    ever: BTreeSet<(String, Vec<u8>)>,
    has_ingests: bool,
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
    Sample { files: files_of(&memory, FOLDER), state, ever, has_ingests: plan.has_ingests }
}

impl Sample {
    fn names(&self, suffix: &str) -> Vec<String> {
        self.files.keys().filter(|name| name.ends_with(suffix)).cloned().collect()
    }
}

/// A keyspace whose name was in the lost part of the manifest is named by its number, and the report contains this name.
fn covers(report: &RepairReport, keyspace: &str, key: &[u8], is_back: bool) -> bool {
    let is_nameless =
        |name: &str| name.starts_with("recovered-") && report.default_options.iter().any(|n| n == name);
    report.lost_ranges.iter().any(|range| {
        range.keyspace.as_deref().is_none_or(|name| name == keyspace || is_nameless(name))
            && range.lower.as_slice() <= key
            && range.upper.as_ref().is_none_or(|upper| key <= upper.as_slice())
            && (range.may_lose_deletes || !is_back)
    })
}

/// The number of differing keys by keyspace; empty if all are equal.
type Differences = BTreeMap<String, usize>;

/// Every difference to the previous content is reported; returns the number of differing keys.
fn check_reported(found: &State, sample: &Sample, report: &RepairReport) -> Differences {
    let mut differences = Differences::new();
    let names: BTreeSet<_> = found.keys().chain(sample.state.keys()).collect();
    for name in names {
        let none = BTreeMap::new();
        let (is, was) = (found.get(name).unwrap_or(&none), sample.state.get(name).unwrap_or(&none));
        let keys: BTreeSet<_> = is.keys().chain(was.keys()).collect();
        for key in keys.into_iter().filter(|key| is.get(*key) != was.get(*key)) {
            let is_back = is.contains_key(key) && !was.contains_key(key);
            *differences.entry(name.clone()).or_default() += 1;
            let text = String::from_utf8_lossy(key);
            assert!(
                covers(report, name, key, is_back),
                "{name}/{text} differs (back: {is_back}) and is not reported: {:#?}",
                report.lost_ranges
            );
            let was_there = sample.ever.contains(&(name.clone(), key.clone()));
            // A keyspace whose name was in the lost manifest is called by its number.
            assert!(
                was_there || name.starts_with("recovered") || name.contains('-'),
                "{name}/{text} never was"
            );
        }
    }
    differences
}

/// Repairs the store and checks all guarantees; returns the report and the number of differing keys.
fn check(files: &Files, sample: &Sample) -> (RepairReport, Differences) {
    let memory = folder_of(files);
    let report = repair(&memory);
    let kept: BTreeSet<Vec<u8>> = files_of(&memory, FOLDER)
        .into_values()
        .chain(files_of(&memory, "/db/quarantine").into_values())
        .collect();
    for (name, bytes) in files {
        assert!(kept.contains(bytes), "{name} is missing");
    }
    for left in &report.quarantined {
        assert!(memory.exists(&left.file).unwrap(), "{left:?}");
    }
    // The installed tables are durable.
    let memory = memory.crash_clone(3);
    let db = open_in_memory(&memory, inline_options()).unwrap();
    let verified = db.verify().unwrap();
    assert!(verified.is_sound(), "{:?}", verified.faults);
    let found = read_all(&db, &sample.state).unwrap();
    let differences = check_reported(&found, sample, &report);
    db.put("later", "write").unwrap();
    db.create_keyspace("after the repair", small_keyspace()).unwrap().put("key", "value").unwrap();
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    db.close().unwrap();
    assert!(repair(&memory).was_sound(), "a repaired store needs no repair");
    let db = open_in_memory(&memory, inline_options()).unwrap();
    assert_eq!(db.get("later").unwrap().as_deref(), Some(&b"write"[..]));
    assert_eq!(db.keyspace("after the repair").unwrap().get("key").unwrap().as_deref(), Some(&b"value"[..]));
    (report, differences)
}

/// As [`check`], for a complete log: no reported range covers everything.
fn check_with_log(files: &Files, sample: &Sample) -> (RepairReport, Differences) {
    let (report, differences) = check(files, sample);
    for range in &report.lost_ranges {
        let is_all = range.keyspace.is_none() && range.lower.is_empty() && range.upper.is_none();
        assert!(!is_all, "{report:#?}");
    }
    (report, differences)
}

/// As [`check_with_log`], if all tables exist, too: the default keyspace has its full content. (Other keyspaces may have lost their
/// names with the manifest, and ingested tables their places.)
fn check_with_all(files: &Files, sample: &Sample) -> (RepairReport, Differences) {
    let (report, differences) = check_with_log(files, sample);
    assert!(sample.has_ingests || !differences.contains_key("default"), "{differences:?} {report:#?}");
    (report, differences)
}

const SEEDS: std::ops::Range<u64> = 20..26;

#[test]
fn a_sound_store_stays_as_it_is() {
    let sample = sample(20);
    let memory = folder_of(&sample.files);
    let report = repair(&memory);
    assert!(report.was_sound() && report.quarantined.is_empty() && report.lost_ranges.is_empty());
    let after = files_of(&memory, FOLDER);
    let before = sample.files.clone();
    assert!(after == before);
}

#[test]
fn repair_without_current_loses_no_entry() {
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
            assert!(differences.is_empty() && report.lost_ranges.is_empty(), "{differences:?} {report:#?}");
        }
    }
}

#[test]
fn repair_without_a_manifest_uses_the_properties_of_the_tables() {
    for seed in SEEDS {
        let _context = Context(format!("seed {seed}"));
        let sample = sample(seed);
        let mut files = sample.files.clone();
        files.retain(|name, _| !name.ends_with(".manifest"));
        let (report, _) = check_with_all(&files, &sample);
        assert!(!report.lost_ranges.is_empty(), "the missing manifest is reported");
        assert!(!report.default_options.is_empty(), "the missing options are reported");
        files.remove("CURRENT");
        check_with_all(&files, &sample);
        // In a closed store no table is obsolete: every table that is named exists.
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
fn repair_uses_the_longest_readable_part_of_a_manifest() {
    for seed in SEEDS {
        let sample = sample(seed);
        let manifest = sample.names(".manifest").pop().unwrap();
        let length = sample.files[&manifest].len();
        let mut random = SplitMix64::new(seed);
        for _ in 0..10 {
            let place = random.below(length as u64) as usize;
            let _context = Context(format!("seed {seed}, cut at {place} of {length}"));
            let mut files = sample.files.clone();
            files.get_mut(&manifest).unwrap().truncate(place);
            check_with_all(&files, &sample);
            let mut files = sample.files.clone();
            files.get_mut(&manifest).unwrap()[place] ^= 0x40;
            check_with_all(&files, &sample);
        }
    }
}

/// Edits of flushes and compactions of the same session are truncated.
#[test]
fn lost_compaction_edits_revive_no_deleted_key_without_a_report() {
    for seed in 0..30 {
        let memory = MemVfs::new();
        let db = open_in_memory(&memory, inline_options()).unwrap();
        let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
        let mut random = SplitMix64::new(seed);
        let (mut state, mut ever) = (BTreeMap::new(), BTreeSet::new());
        let mut lengths = Vec::new();
        for round in 0..8_u64 {
            for _ in 0..12 {
                let key = format!("key{:02}", random.below(25)).into_bytes();
                if random.below(3) == 0 {
                    keyspace.delete(&key).unwrap();
                    state.remove(&key);
                } else {
                    let value = vec![random.next_u64() as u8; 900];
                    keyspace.put(&key, &value).unwrap();
                    state.insert(key.clone(), Arc::from(value));
                    ever.insert(("k".to_owned(), key));
                }
            }
            db.flush().unwrap();
            if round % 3 == 2 {
                db.compact_range(&keyspace, ..).unwrap();
            }
            let manifest =
                files_of(&memory, FOLDER).into_iter().find(|(name, _)| name.ends_with(".manifest"));
            lengths.push(manifest.unwrap().1.len());
        }
        drop(keyspace);
        db.close().unwrap();
        let state = State::from([("default".to_owned(), BTreeMap::new()), ("k".to_owned(), state)]);
        let sample = Sample { files: files_of(&memory, FOLDER), state, ever, has_ingests: false };
        let manifest = sample.names(".manifest").pop().unwrap();
        for length in lengths {
            let _context = Context(format!("seed {seed}, manifest cut to {length}"));
            let mut files = sample.files.clone();
            files.get_mut(&manifest).unwrap().truncate(length);
            let (report, differences) = check_with_log(&files, &sample);
            assert!(differences.is_empty(), "all tables and the log are there: {differences:?} {report:#?}");
        }
    }
}

#[test]
fn a_lost_or_damaged_table_is_reported_with_its_range() {
    for seed in SEEDS {
        let sample = sample(seed);
        let mut random = SplitMix64::new(seed);
        for name in sample.names(".table") {
            let _context = Context(format!("seed {seed}, {name}"));
            let mut files = sample.files.clone();
            files.remove(&name);
            let (report, _) = check_with_log(&files, &sample);
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

/// The zeros between sections do not matter.
fn check_or_padding(files: &Files, sample: &Sample, place: usize, name: &str) -> (RepairReport, Differences) {
    let result = check_with_log(files, sample);
    assert!(!result.0.was_sound() || sample.files[name][place] == 0, "the damage at {place} was not found");
    result
}

/// One block of a table is damaged: all others are saved.
#[test]
fn repair_keeps_all_undamaged_blocks_of_a_table() {
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
    assert_eq!((report.table_count, report.rewritten_table_count, report.lost_ranges.len()), (1, 1, 1));
    assert!(!report.lost_ranges[0].may_lose_deletes, "the table held none");
    let db = open_in_memory(&memory, inline_options()).unwrap();
    let left = db.range(..).count();
    assert!((1_900..2_000).contains(&left), "{left}");
    for number in 0..2_000_u32 {
        let key = number.to_be_bytes();
        let is_there = db.get(key).unwrap().is_some();
        assert!(is_there || covers(&report, "default", &key, false));
    }
}

#[test]
fn repair_keeps_the_readable_records_of_a_damaged_log() {
    for seed in SEEDS {
        let sample = sample(seed);
        let mut random = SplitMix64::new(seed);
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

/// The loss of the newest segment cannot be detected.
fn check_loss_of_log(files: &Files, sample: &Sample) {
    let last = sample.names(".log").pop().unwrap();
    if files.contains_key(&last) {
        check(files, sample);
    }
}

/// Outputs of a compaction that was not installed, and inputs of an installed one.
#[test]
fn leftovers_of_a_compaction_are_distinguished_from_installed_tables() {
    let mut picture_count = 0;
    for seed in 0..12 {
        let memory = MemVfs::new();
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let db = open_on(Arc::new(faults.clone()), inline_options()).unwrap();
        let keyspace = db.create_keyspace("k", small_keyspace()).unwrap();
        let mut random = SplitMix64::new(seed);
        let (mut state, mut ever) = (BTreeMap::new(), BTreeSet::new());
        for _ in 0..3 {
            for _ in 0..60 {
                let key = format!("key{:02}", random.below(60)).into_bytes();
                if random.below(10) == 0 {
                    keyspace.delete(&key).unwrap();
                    state.remove(&key);
                } else {
                    let value = vec![random.next_u64() as u8; 1_500];
                    keyspace.put(&key, &value).unwrap();
                    state.insert(key.clone(), Arc::from(value));
                    ever.insert(("k".to_owned(), key));
                }
            }
            db.flush().unwrap();
        }
        // Copies of the folder before and after each step of a compaction: outputs not installed yet, inputs not deleted yet.
        let pictures = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (taken, watched) = (Arc::clone(&pictures), memory.clone());
        faults.add_rule(Rule::slow(move |_| taken.lock().unwrap().push(files_of(&watched, FOLDER))).on(&[
            OperationKind::Rename,
            OperationKind::Append,
            OperationKind::Remove,
            OperationKind::SyncDir,
        ]));
        db.compact_range(&keyspace, ..).unwrap();
        faults.clear_rules();
        let state = State::from([("default".to_owned(), BTreeMap::new()), ("k".to_owned(), state)]);
        let pictures = std::mem::take(&mut *pictures.lock().unwrap());
        picture_count += pictures.len();
        for (index, files) in pictures.into_iter().enumerate() {
            let _context = Context(format!("seed {seed}, picture {index}"));
            let sample = Sample { files, state: state.clone(), ever: ever.clone(), has_ingests: false };
            // With the manifest, nothing is lost and no deleted key comes back.
            let memory = folder_of(&sample.files);
            assert!(repair(&memory).was_sound());
            let mut files = sample.files.clone();
            files.retain(|name, _| !name.ends_with(".manifest"));
            let (report, differences) = check_with_log(&files, &sample);
            // All inputs or all outputs exist: either is complete.
            assert!(differences.is_empty(), "{differences:?} {report:#?}");
        }
    }
    assert!(picture_count > 20, "{picture_count}");
}

/// A power failure before each operation of a repair: the next repair finds the same entries.
#[test]
fn an_interrupted_repair_can_be_repeated() {
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

/// The bytes of the current manifest.
fn manifest_of(files: &Files) -> (String, Vec<u8>) {
    let current = &files["CURRENT"];
    let number = u64::from_le_bytes(current[8..16].try_into().unwrap());
    let name = format!("{number:06}.manifest");
    let bytes = files[&name].clone();
    (name, bytes)
}

/// A process was killed, and the manifest is truncated after each of its edits: all entries of the log and the tables are found, and
/// no file that a lost edit had named is deleted, not even if the store opens.
#[test]
fn a_manifest_truncated_after_a_kill_loses_nothing_without_a_report() {
    let mut counts = [0; 2];
    for seed in 0..12 {
        let memory = MemVfs::new();
        let db = open_in_memory(&memory, inline_options()).unwrap();
        let mut random = SplitMix64::new(seed);
        let (mut state, mut ever) = (BTreeMap::new(), BTreeSet::new());
        let mut lengths = BTreeSet::new();
        for round in 0..6_u64 {
            for _ in 0..12 {
                let key = format!("key{:02}", random.below(25)).into_bytes();
                if random.below(3) == 0 {
                    db.delete(&key).unwrap();
                    state.remove(&key);
                } else {
                    let value = vec![random.next_u64() as u8; 300];
                    db.put(&key, &value).unwrap();
                    state.insert(key.clone(), Arc::from(value));
                    ever.insert(("default".to_owned(), key));
                }
                lengths.insert(manifest_of(&files_of(&memory, FOLDER)).1.len());
            }
            if round != 5 {
                db.flush().unwrap();
            }
            if round % 2 == 1 {
                db.compact_range(&db.default_keyspace(), ..).unwrap();
            }
        }
        std::mem::forget(db);
        let state = State::from([("default".to_owned(), state)]);
        let sample = Sample { files: files_of(&memory, FOLDER), state, ever, has_ingests: false };
        let (manifest, bytes) = manifest_of(&sample.files);
        lengths.insert(bytes.len());
        let first = lengths.first().copied().unwrap_or_default() as u64;
        lengths.extend((0..6).map(|_| (first + random.below(bytes.len() as u64 - first)) as usize));
        for length in lengths {
            let _context = Context(format!("seed {seed}, manifest cut to {length} of {}", bytes.len()));
            let mut files = sample.files.clone();
            files.get_mut(&manifest).unwrap().truncate(length);
            let memory = folder_of(&files);
            // A store that opens is complete; an incomplete one does not open.
            match open_in_memory(&memory, inline_options()) {
                Ok(db) => {
                    let found = read_all(&db, &sample.state).unwrap();
                    assert!(found == sample.state, "{}", difference(&found, &sample.state));
                    assert!(db.verify().unwrap().is_sound());
                    counts[0] += 1;
                }
                Err(error) => {
                    assert!(!verified(&files).is_sound(), "verify names it: {error}");
                    let (report, differences) = check(&files, &sample);
                    assert!(differences.is_empty(), "all was readable: {differences:?} {report:#?}");
                    counts[1] += 1;
                }
            }
        }
    }
    assert!(counts[0] > 10 && counts[1] > 10, "{counts:?}");
}

/// The last edit of a killed process replaced partitions, and only its beginning is on the disk: the tables show the content.
#[test]
fn a_torn_last_edit_of_partitions_loses_nothing_without_a_report() {
    let memory = MemVfs::new();
    let db = open_in_memory(&memory, retain::options()).unwrap();
    let mut random = SplitMix64::new(12);
    let (mut state, mut ever) = (BTreeMap::new(), BTreeSet::new());
    let mut samples = Vec::new();
    let changes = |db: &Db| {
        let statistics = db.statistics();
        statistics.partition_decisions.split.count
            + statistics.partition_decisions.divide.count
            + statistics.partition_decisions.unite.count
    };
    for round in 0..700_u64 {
        let (count, length) = (changes(&db), manifest_of(&files_of(&memory, FOLDER)));
        let key = random.below(300).to_be_bytes().to_vec();
        let value = vec![round as u8; 3_000];
        db.put(&key, &value).unwrap();
        state.insert(key.clone(), Arc::from(value));
        ever.insert(("default".to_owned(), key));
        let (before, before_bytes) = length;
        let (manifest, bytes) = manifest_of(&files_of(&memory, FOLDER));
        if changes(&db) > count && manifest == before {
            let state = State::from([("default".to_owned(), state.clone())]);
            let sample =
                Sample { files: files_of(&memory, FOLDER), state, ever: ever.clone(), has_ingests: false };
            samples.push((sample, before_bytes.len(), bytes.len()));
        }
    }
    std::mem::forget(db);
    assert!(samples.len() > 3, "{} samples", samples.len());
    let mut counts = [0; 2];
    for (sample, shortest, longest) in &samples {
        // Within the last edit, at both of its ends, and within earlier ones of the same write.
        let mut lengths = BTreeSet::from([*shortest, longest - 1, longest - 5]);
        lengths.extend((0..4).map(|_| shortest + random.below((longest - shortest) as u64) as usize));
        for length in lengths {
            let _context = Context(format!("manifest of {longest} bytes, torn at {length}"));
            let (manifest, _) = manifest_of(&sample.files);
            let mut files = sample.files.clone();
            files.get_mut(&manifest).unwrap().truncate(length);
            if let Ok(db) = open_in_memory(&folder_of(&files), inline_options()) {
                let found = read_all(&db, &sample.state).unwrap();
                assert!(found == sample.state, "{}", difference(&found, &sample.state));
                assert!(db.verify().unwrap().is_sound());
                counts[0] += 1;
            } else {
                assert!(!verified(&files).is_sound());
                let (report, differences) = check(&files, sample);
                assert!(differences.is_empty(), "all was readable: {differences:?} {report:#?}");
                counts[1] += 1;
            }
        }
    }
    println!("{counts:?}");
    assert!(counts[1] > 0, "{counts:?}");
}

fn verified(files: &Files) -> tamis::VerifyReport {
    Db::verify_folder_on(Arc::new(folder_of(files)), FOLDER).unwrap()
}

/// The drop of a keyspace and the ingest of a table are in no other file: a manifest that is truncated before such an edit is
/// detected, and no file is deleted.
#[test]
fn a_manifest_truncated_before_a_covered_edit_is_detected() {
    for is_ingest in [false, true] {
        let memory = MemVfs::new();
        let db = open_in_memory(&memory, inline_options()).unwrap();
        let keyspace = db.create_keyspace("x", small_keyspace()).unwrap();
        keyspace.put("key", "value").unwrap();
        let before = manifest_of(&files_of(&memory, FOLDER)).1.len();
        let mut state = new_state();
        let ever = BTreeSet::from([("x".to_owned(), b"key".to_vec())]);
        if is_ingest {
            let path = Path::new("/outside.table");
            let mut writer =
                tamis::TableWriter::create_on(Arc::new(memory.clone()), path, &small_keyspace()).unwrap();
            writer.put("key", "from outside").unwrap();
            writer.finish().unwrap();
            db.ingest(&keyspace, [path]).unwrap();
            let entries = BTreeMap::from([(b"key".to_vec(), Arc::from(b"from outside".to_vec()))]);
            state.insert("x".to_owned(), entries);
        } else {
            drop(keyspace);
            db.drop_keyspace("x").unwrap();
        }
        std::mem::forget(db);
        let sample = Sample { files: files_of(&memory, FOLDER), state, ever, has_ingests: is_ingest };
        let (manifest, bytes) = manifest_of(&sample.files);
        assert!(bytes.len() > before);
        let mut files = sample.files.clone();
        files.get_mut(&manifest).unwrap().truncate(before);
        assert!(!verified(&files).is_sound());
        assert!(open_in_memory(&folder_of(&files), inline_options()).is_err());
        let (report, _) = check(&files, &sample);
        assert!(report.lost_ranges.iter().all(|range| range.keyspace.is_some() || range.upper.is_some()));
        // The same with a damaged edit.
        let mut files = sample.files.clone();
        let place = manifest_of(&files).1.len() - 40;
        files.get_mut(&manifest).unwrap()[place] ^= 1;
        assert!(open_in_memory(&folder_of(&files), inline_options()).is_err());
        check(&files, &sample);
    }
}

/// The unsynced log of a killed process is read completely, although its previous segment was removed long ago.
#[test]
fn without_a_manifest_an_unsynced_log_is_kept() {
    for is_closed in [false, true] {
        let memory = MemVfs::new();
        let db = open_in_memory(&memory, inline_options()).unwrap();
        let mut state = BTreeMap::new();
        for (round, letter) in ["a", "z"].into_iter().enumerate() {
            for number in 0..50 {
                let key = format!("{letter}{number:02}");
                db.put(&key, "value").unwrap();
                state.insert(key.into_bytes(), Arc::from(b"value".to_vec()));
            }
            if round == 0 {
                db.flush().unwrap();
            }
        }
        if is_closed {
            db.close().unwrap();
        } else {
            std::mem::forget(db);
        }
        let state = State::from([("default".to_owned(), state)]);
        let sample =
            Sample { files: files_of(&memory, FOLDER), state, ever: BTreeSet::new(), has_ingests: false };
        let mut files = sample.files.clone();
        files.retain(|name, _| !name.ends_with(".manifest"));
        let (report, differences) = check(&files, &sample);
        assert!(differences.is_empty(), "{differences:?} {report:#?}");
        assert_eq!(report.log_entry_count, 50);
        let is_of_keyspace = |range: &tamis::LostRange| range.keyspace.as_deref() == Some("default");
        assert!(report.lost_ranges.iter().all(is_of_keyspace), "the log is whole: {report:#?}");
    }
}

/// A table that the manifest does not name, and that contains entries which the log has lost, is quarantined and not deleted.
#[test]
fn an_open_deletes_no_table_that_may_be_needed() {
    let memory = MemVfs::new();
    let db = open_in_memory(&memory, inline_options()).unwrap();
    let before = files_of(&memory, FOLDER);
    db.put("key", "value").unwrap();
    db.flush().unwrap();
    std::mem::forget(db);
    let after = files_of(&memory, FOLDER);
    let (name, table) = after.iter().find(|(name, _)| name.ends_with(".table")).unwrap();
    for has_log in [false, true] {
        // The power failed before the edit; the unsynced log is lost, or not.
        let mut files = before.clone();
        if has_log {
            let memory = folder_of(&before);
            let db = open_in_memory(&memory, inline_options()).unwrap();
            db.put("key", "value").unwrap();
            std::mem::forget(db);
            files = files_of(&memory, FOLDER);
        }
        files.insert(name.clone(), table.clone());
        assert_eq!(verified(&files).is_sound(), has_log);
        let memory = folder_of(&files);
        let db = open_in_memory(&memory, inline_options()).unwrap();
        let kept = files_of(&memory, "/db/quarantine");
        if has_log {
            assert!(kept.is_empty() && db.open_report().quarantined_files.is_empty());
        } else {
            assert_eq!(kept.into_iter().collect::<Vec<_>>(), [(name.clone(), table.clone())]);
            assert_eq!(db.open_report().quarantined_files, std::slice::from_ref(name));
        }
        assert!(!memory.exists(&Path::new(FOLDER).join(name)).unwrap());
        db.close().unwrap();
        assert!(repair(&memory).was_sound());
    }
}

/// An error of the system is no damage: the repair ends, and the store is unchanged.
#[test]
fn errors_of_the_system_end_a_repair() {
    let sample = sample(20);
    let table = sample.names(".table").pop().unwrap();
    let mut damaged = sample.files.clone();
    damaged.get_mut(&table).unwrap()[100] ^= 1;
    let mut error_count = 0;
    for nth in 1.. {
        let memory = folder_of(&damaged);
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let met = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let note = Arc::clone(&met);
        let kinds = [OperationKind::Open, OperationKind::Read, OperationKind::List];
        let noted = move |_: &tamis_vfs::Operation| note.store(true, std::sync::atomic::Ordering::Relaxed);
        faults.add_rule(Rule::slow(noted).on(&kinds).nth(nth).times(1));
        faults.add_rule(Rule::error(std::io::ErrorKind::PermissionDenied).on(&kinds).nth(nth));
        let result = Db::repair_on(Arc::new(faults), FOLDER, &Runtime::deterministic(9));
        if !met.load(std::sync::atomic::Ordering::Relaxed) {
            break;
        }
        let _context = Context(format!("operation {nth}"));
        if result.is_err() {
            error_count += 1;
        }
        // In any case the content is complete, except for the damaged block.
        let report = repair(&memory);
        let db = open_in_memory(&memory, inline_options()).unwrap();
        let found = read_all(&db, &sample.state).unwrap();
        drop(db);
        let reported = result.as_ref().unwrap_or(&report);
        assert!(reported.faults.iter().all(|fault| fault.file.ends_with(&table)), "{reported:#?}");
        check_reported(&found, &sample, reported);
    }
    assert!(error_count >= 15, "{error_count}");
}

/// Data of a newer program is not damaged: a repair changes nothing.
#[test]
fn repair_keeps_changes_of_a_newer_program() {
    let mut files = sample(20).files;
    let (manifest, bytes) = manifest_of(&files);
    // A frame with a change of tag 60 that must not be ignored.
    let covered = [3_u8, 60, 0, 0];
    let sum = xxhash_rust::xxh3::xxh3_64_with_seed(&covered, bytes.len() as u64);
    let frame = [&[0x50_u8][..], &sum.to_le_bytes(), &covered].concat();
    files.get_mut(&manifest).unwrap().extend(frame);
    let is_refused =
        |error: &tamis::Error| matches!(error, tamis::Error::UnknownChange { kind, .. } if kind == "60");
    let memory = folder_of(&files);
    assert!(open_in_memory(&memory, inline_options()).is_err_and(|error| is_refused(&error)));
    let repaired = Db::repair_on(Arc::new(memory.clone()), FOLDER, &Runtime::deterministic(9));
    assert!(repaired.is_err_and(|error| is_refused(&error)));
    let after = files_of(&memory, FOLDER);
    assert!(after == files);
}

/// The end of the manifest is lost: the tables show where partitions begin, and those that overlap no other are kept as they are.
#[test]
fn a_repair_finds_partitions_by_their_tables() {
    let layout = Layout::Partitioned { tables_per_partition: 4 };
    let keyspace = small_keyspace().layout(layout);
    let options = inline_options().default_keyspace(keyspace);
    let partition_count = |db: &Db| db.statistics().keyspaces.first().unwrap().partition_count;
    let memory = MemVfs::new();
    let db = open_in_memory(&memory, options).unwrap();
    let first_length = manifest_of(&files_of(&memory, FOLDER)).1.len();
    let (mut model, mut random) = (Model::new(), SplitMix64::new(5));
    for round in 0..3_000_u64 {
        let key = random.below(6_000).to_be_bytes().to_vec();
        if round % 7 == 0 {
            db.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let value = vec![round as u8; random.below(800) as usize];
            db.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
    db.compact_range(&db.default_keyspace(), ..).unwrap();
    db.wait_for_compactions().unwrap();
    let before = partition_count(&db);
    assert!(before > 5, "{before}");
    for is_logged in [false, true] {
        if is_logged {
            // Entries of the log are written into tables by partition.
            for number in (0..6_000_u64).step_by(200) {
                db.put(number.to_be_bytes(), "logged").unwrap();
                model.insert(number.to_be_bytes().to_vec(), b"logged".to_vec());
            }
        }
        let mut files = files_of(&memory, FOLDER);
        let (manifest, bytes) = manifest_of(&files);
        assert!(first_length < bytes.len());
        files.get_mut(&manifest).unwrap().truncate(first_length);
        let damaged = folder_of(&files);
        let report = repair(&damaged);
        if !is_logged {
            assert_eq!(report.rewritten_table_count, 0, "{report:#?}");
        }
        let db = open_in_memory(&damaged, inline_options()).unwrap();
        assert_eq!(db.default_keyspace().options().layout, layout);
        check_entries(&db, &model);
        let after = partition_count(&db);
        assert!(after * 2 > before, "{after} of {before}");
        db.close().unwrap();
    }
}

/// No table and no log record is of the default keyspace, and the manifest is lost: the repaired store had no such keyspace, and could not be opened
/// read-only.
#[test]
fn a_repaired_store_has_the_default_keyspace() {
    let memory = MemVfs::new();
    let db = open_in_memory(&memory, inline_options()).unwrap();
    db.create_keyspace("other", small_keyspace()).unwrap().put("key", "value").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let mut files = files_of(&memory, FOLDER);
    files.retain(|name, _| !name.ends_with(".manifest"));
    let memory = folder_of(&files);
    let report = repair(&memory);
    assert!(report.default_options.contains(&"default".to_owned()));
    let db = open_in_memory(&memory, inline_options().mode(OpenMode::Reader)).unwrap();
    assert_eq!(db.default_keyspace().range(..).count(), 0);
    assert_eq!(db.keyspace_names().len(), 2);
}
