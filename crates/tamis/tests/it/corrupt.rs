//! Every byte of every file of a small store is changed, one at a time. The store always returns correct answers, or an error
//! with the changed file and an offset; never a wrong answer, never a panic.
//!
//! Damage that looks like an interrupted write is truncated and reported: the last record of a log that was not closed, and the
//! last record of the manifest (an empty one, so that nothing is lost).

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use tamis::{Db, Durability, Error, Event, EventListener, OpenMode, Runtime, TableFilter, WriteBatch};
use tamis_vfs::{Access, MemVfs, Vfs};

use crate::{
    scenario::{
        Context, Edit, Entries, Entry, State, difference, keyspace_options, new_state, read_all, value,
        write, write_to,
    },
    support::{FOLDER, SplitMix64, inline_options, open_on, sweep_stride},
};

/// The files of a folder by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Bytes of a record that contains only its mark.
const EMPTY_RECORD_BYTES: usize = 14;
const LOG_HEADER_BYTES: usize = 64;
const KEY_COUNT: u64 = 20;

fn files_of(memory: &MemVfs) -> Files {
    let folder = Path::new(FOLDER);
    let entries = memory.list(folder).unwrap().into_iter();
    entries.map(|entry| (entry.name.clone(), memory.read(&folder.join(entry.name)).unwrap())).collect()
}

fn folder_of(files: &Files) -> MemVfs {
    let memory = MemVfs::new();
    let folder = Path::new(FOLDER);
    memory.create_dir_all(folder).unwrap();
    for (name, bytes) in files {
        memory.create(&folder.join(name)).unwrap().append(bytes).unwrap();
    }
    memory
}

fn open(memory: &MemVfs, table_access: Access) -> tamis::Result<Db> {
    let vfs: Arc<dyn Vfs> = Arc::new(memory.clone());
    let options = inline_options().table_access(table_access);
    open_on(vfs, options)
}

/// A small store and its content.
struct Sample {
    files: Files,
    /// The contents after each write and each change of its keyspaces; the last entry is the current content.
    history: Vec<State>,
}

impl Sample {
    fn state(&self) -> &State {
        self.history.last().unwrap()
    }

    fn names<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = &'a str> {
        self.files.keys().map(String::as_str).filter(move |name| name.ends_with(suffix))
    }

    fn last_log(&self) -> &str {
        self.names(".log").last().unwrap()
    }
}

/// Tables of three keyspaces (plain; compressed with filter files), views of two keyspaces, of which one was rebuilt, a
/// log of three segments, a manifest with an edit after its first records.
fn sample(is_closed: bool) -> Sample {
    let memory = MemVfs::new();
    let mut random = SplitMix64::new(2);
    let mut state = new_state();
    let mut history = Vec::new();
    let mut db = open(&memory, Access::Mapped).unwrap();
    for name in ["a", "b"] {
        let options = keyspace_options(name).level0_runs(8);
        db.create_keyspace(name, options).unwrap();
        state.insert(name.to_owned(), Entries::new());
    }
    for round in 0..6 {
        for _ in 0..6 {
            let mut entry = |keyspace: &str| {
                let keyspace = keyspace.to_owned();
                let key = format!("key{:02}", random.below(KEY_COUNT)).into_bytes();
                let length = random.below(120);
                let edit = match random.below(12) {
                    0 => Edit::DeletePrefix,
                    1..4 => Edit::Delete,
                    _ => Edit::Put(value(&mut random, length)),
                };
                Entry { keyspace, key, edit }
            };
            let names: &[&str] = match round {
                0 | 1 => &["a", "b"],
                2 => &["a"],
                _ => &["a", "default"],
            };
            let entries: Vec<_> = names.iter().map(|name| entry(name)).collect();
            write(&db, &entries, Durability::Synced).unwrap();
            write_to(&mut state, &entries);
            history.push(state.clone());
        }
        match round {
            0..3 => db.flush().unwrap(),
            3 | 4 => {
                if round == 3 {
                    let statistics = db.statistics();
                    assert_eq!((statistics.views_built, statistics.views_rebuilt), (2, 1));
                    db.rebuild_filters(&db.keyspace("b").unwrap(), &[TableFilter::bits(12.0)]).unwrap();
                }
                db.close().unwrap();
                db = open(&memory, Access::Mapped).unwrap();
            }
            _ => {}
        }
    }
    // A separate change of the manifest, with an event in the log; then the last write.
    let last = db.create_keyspace("c", keyspace_options("c")).unwrap();
    for state in &mut history {
        state.insert("c".to_owned(), Entries::new());
    }
    db.persist(Durability::Synced).unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&last, "last", "write").unwrap();
    db.write_with(batch, Durability::Synced).unwrap();
    let mut state = history.last().cloned().unwrap_or_default();
    state.insert("c".to_owned(), Entries::from([(b"last".to_vec(), b"write".to_vec().into())]));
    history.push(state);
    drop(last);
    if is_closed {
        db.close().unwrap();
    }
    let files = files_of(&memory);
    let count = |suffix: &str| files.keys().filter(|name| name.ends_with(suffix)).count();
    let counts = [".table", ".filter", ".view", ".log", ".manifest"].map(count);
    assert_eq!(counts, [5, 2, 2, 3, 1], "{:?}", files.keys());
    Sample { files, history }
}

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The store can't be opened.
    Refused,
    /// Some reads fail.
    Unreadable,
    /// Only `verify` reports it.
    Verified,
    /// A torn tail was dropped and reported; the rest is correct.
    Truncated,
    /// A view was dropped and built again, and everything is correct.
    Rebuilt,
    /// No report, and everything is correct.
    Right,
}

/// The error is about the file and names the offset.
fn check_error(error: &Error, name: &str) {
    let is_named = |file: &PathBuf| file.file_name().is_some_and(|found| found.to_str() == Some(name));
    let is_right = match error {
        Error::Corruption(found) => is_named(&found.file),
        Error::UnknownEntryKind { file, .. } | Error::UnknownFormat { file, .. } => is_named(file),
        Error::MissingFile { path, .. } => is_named(path),
        _ => false,
    };
    assert!(is_right, "another error: {error:?}");
    let text = error.to_string();
    assert!(!text.contains("Some(") && !text.contains(" { "), "not a message for users: {text}");
}

/// Reads all entries forward, backward and by key: each answer is correct or an error about the file. Returns whether there was
/// an error.
fn check_reads(db: &Db, state: &State, name: &str) -> bool {
    let mut has_error = false;
    let mut note = |error: Error| {
        check_error(&error, name);
        has_error = true;
    };
    assert_eq!(db.keyspace_names(), state.keys().cloned().collect::<Vec<_>>());
    for (keyspace, entries) in state {
        let keyspace = db.keyspace(keyspace).unwrap();
        for is_forward in [true, false] {
            let mut scan = keyspace.range(..);
            let mut expected: Vec<_> = entries.iter().collect();
            if is_forward {
                expected.reverse();
            }
            loop {
                match if is_forward { scan.next() } else { scan.next_back() } {
                    Some(Ok(found)) => {
                        let expected = expected.pop().expect("a scan finds an entry too many");
                        assert_eq!((&*found.0, &*found.1), (expected.0.as_slice(), &**expected.1));
                    }
                    Some(Err(error)) => {
                        note(error);
                        break;
                    }
                    None => {
                        assert!(expected.is_empty(), "a scan ends early: {} are missing", expected.len());
                        break;
                    }
                }
            }
        }
        for number in 0..KEY_COUNT {
            let key = format!("key{number:02}").into_bytes();
            match keyspace.get(&key) {
                Ok(found) => assert_eq!(found.as_deref(), entries.get(&key).map(|value| &**value)),
                Err(error) => note(error),
            }
        }
    }
    has_error
}

/// Opens a store whose file `name` was changed, and reads and verifies all of it. Its content may be any of `states`.
fn check(files: &Files, states: &[State], name: &str, access: Access) -> Outcome {
    let memory = folder_of(files);
    let db = match open(&memory, access) {
        Ok(db) => db,
        Err(error) => {
            check_error(&error, name);
            let left = files_of(&memory);
            assert!(left == *files, "a store that is refused stays as it is: {:?}", left.keys());
            return Outcome::Refused;
        }
    };
    let state = match states {
        [state] => state,
        _ => {
            let newest = states.last().unwrap();
            let found = read_all(&db, newest).unwrap();
            let state = states.iter().find(|state| **state == found);
            state.unwrap_or_else(|| panic!("wrong answers: {}", difference(&found, newest)))
        }
    };
    let has_error = check_reads(&db, state, name);
    let report = db.verify().unwrap();
    for fault in &report.faults {
        assert!(fault.file.ends_with(name) && fault.offset.is_some(), "{fault:?}");
    }
    assert!(!has_error || !report.is_sound(), "verify finds what reads find");
    let opened = db.open_report();
    let is_cut = opened.manifest_truncated_bytes > 0
        || opened.wal_truncations.iter().any(|cut| cut.file.ends_with(name));
    match (has_error, report.is_sound(), is_cut) {
        (true, ..) => Outcome::Unreadable,
        (_, false, _) => Outcome::Verified,
        (_, _, true) => Outcome::Truncated,
        _ if db.statistics().views_built > 0 => Outcome::Rebuilt,
        _ => Outcome::Right,
    }
}

/// Flips `bits` of each `stride`-th byte of a file, or of a share of them as in every sweep; returns the outcome for each position.
fn flip(
    sample: &Sample,
    name: &str,
    access: Access,
    stride: usize,
    bits: fn(usize) -> RangeInclusive<u32>,
    state_at: &dyn Fn(usize) -> usize,
) -> Vec<(usize, Outcome)> {
    let mut outcomes = Vec::new();
    let mut files = sample.files.clone();
    for offset in (0..sample.files[name].len()).step_by(stride * sweep_stride() as usize) {
        for bit in bits(offset) {
            let _context = Context(format!("{name} byte {offset} bit {bit}, {access:?}"));
            let change = |files: &mut Files| files.get_mut(name).unwrap()[offset] ^= 1 << bit;
            change(&mut files);
            let state = &sample.history[state_at(offset)];
            outcomes.push((offset, check(&files, std::slice::from_ref(state), name, access)));
            change(&mut files);
        }
    }
    outcomes
}

fn one_bit(offset: usize) -> RangeInclusive<u32> {
    let bit = offset as u32 % 8;
    bit..=bit
}

fn all_bits(_offset: usize) -> RangeInclusive<u32> {
    0..=7
}

/// A flipped bit in a table is detected, except in the zero bytes between its parts.
fn check_table_flips(sample: &Sample, name: &str, access: Access, stride: usize) {
    let last = sample.history.len() - 1;
    for (offset, outcome) in flip(sample, name, access, stride, one_bit, &|_| last) {
        let is_noticed = matches!(outcome, Outcome::Unreadable | Outcome::Verified);
        let may_be_padding = outcome == Outcome::Right && sample.files[name][offset] == 0;
        assert!(is_noticed || may_be_padding, "{name} byte {offset}: {outcome:?}");
    }
}

#[test]
fn a_flipped_byte_of_a_mapped_table_is_an_error_or_changes_nothing() {
    let sample = sample(true);
    for (index, name) in sample.names(".table").enumerate() {
        check_table_flips(&sample, name, Access::Mapped, if index < 2 { 1 } else { 7 });
    }
}

#[test]
fn a_flipped_byte_of_a_table_that_is_read_is_an_error_or_changes_nothing() {
    let sample = sample(true);
    for access in [Access::Buffered, Access::Direct] {
        for name in sample.names(".table") {
            check_table_flips(&sample, name, access, 9);
        }
    }
}

/// Mappings of the operating system, and damage while the store is closed.
#[test]
fn a_flipped_byte_of_a_table_on_disk_is_an_error_or_changes_nothing() {
    let sample = sample(true);
    let folder = tempfile::tempdir().unwrap();
    let mut random = SplitMix64::new(11);
    for (name, bytes) in &sample.files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let names: Vec<_> = sample.names(".table").collect();
    for _ in 0..40 {
        let name = names[random.below(names.len() as u64) as usize];
        let mut bytes = sample.files[name].clone();
        let offset = random.below(bytes.len() as u64) as usize;
        bytes[offset] ^= 1 << random.below(8);
        std::fs::write(folder.path().join(name), &bytes).unwrap();
        let _context = Context(format!("{name} byte {offset} on disk"));
        for table_access in [Access::Mapped, Access::Buffered, Access::Direct] {
            let options = inline_options().table_access(table_access).mode(OpenMode::Reader);
            let db = Db::open_with(folder.path(), options).unwrap();
            let has_error = check_reads(&db, sample.state(), name);
            let is_sound = db.verify().unwrap().is_sound();
            assert!(if has_error { !is_sound } else { !is_sound || sample.files[name][offset] == 0 });
        }
        std::fs::write(folder.path().join(name), &sample.files[name]).unwrap();
    }
}

/// A filter is derived data: damage costs time, changes no answer, and is reported by `verify`.
#[test]
fn a_flipped_byte_of_a_filter_file_costs_no_answer() {
    let sample = sample(true);
    let last = sample.history.len() - 1;
    for name in sample.names(".filter") {
        for (offset, outcome) in flip(&sample, name, Access::Mapped, 3, one_bit, &|_| last) {
            let may_be_padding = outcome == Outcome::Right && sample.files[name][offset] == 0;
            assert!(outcome == Outcome::Verified || may_be_padding, "{name} byte {offset}: {outcome:?}");
        }
    }
}

/// A view is derived data, too: the open drops a damaged one and builds it again.
#[test]
fn a_flipped_byte_of_a_view_costs_no_answer() {
    let sample = sample(true);
    let last = sample.history.len() - 1;
    for access in [Access::Mapped, Access::Buffered] {
        let mut rebuilt_count = 0_u64;
        for name in sample.names(".view") {
            for (offset, outcome) in flip(&sample, name, access, 3, one_bit, &|_| last) {
                let may_be_padding = outcome == Outcome::Right && sample.files[name][offset] == 0;
                assert!(outcome == Outcome::Rebuilt || may_be_padding, "{name} byte {offset}: {outcome:?}");
                rebuilt_count += u64::from(outcome == Outcome::Rebuilt);
            }
        }
        assert!(rebuilt_count > 200 / sweep_stride(), "{rebuilt_count} views were damaged and built again");
    }
}

fn take_varint(bytes: &[u8], offset: &mut usize) -> usize {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[*offset];
        *offset += 1;
        value |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// Start and end of the records of a log.
fn records(bytes: &[u8], mut offset: usize) -> Vec<usize> {
    let mut offsets = vec![offset];
    while offset < bytes.len() {
        let is_marked = bytes[offset] != b'P';
        offset += if is_marked { 4 + 8 } else { 1 + 8 };
        let length = take_varint(bytes, &mut offset);
        if is_marked {
            take_varint(bytes, &mut offset);
        }
        offset += length;
        offsets.push(offset);
    }
    assert_eq!(offset, bytes.len());
    offsets
}

/// Only the last record looks like one that a crash interrupted. In a log that was closed it is empty; otherwise it is the last
/// write.
#[test]
fn a_flipped_bit_of_a_log_is_an_error_or_cuts_its_last_record() {
    for is_closed in [true, false] {
        let sample = sample(is_closed);
        let last_state = sample.history.len() - 1;
        for name in sample.names(".log") {
            let bytes = &sample.files[name];
            let offsets = records(bytes, LOG_HEADER_BYTES);
            let is_last = name == sample.last_log();
            let cut = if is_last { offsets[offsets.len() - 2] } else { bytes.len() };
            let state_at = |offset| if offset >= cut && !is_closed { last_state - 1 } else { last_state };
            for (offset, outcome) in flip(&sample, name, Access::Mapped, 1, all_bits, &state_at) {
                let expected = if offset >= cut { Outcome::Truncated } else { Outcome::Refused };
                assert_eq!(outcome, expected, "{name} byte {offset}");
            }
        }
    }
}

#[test]
fn a_flipped_bit_of_current_or_manifest_is_an_error_or_cuts_an_empty_record() {
    let sample = sample(true);
    let last_state = sample.history.len() - 1;
    for name in sample.names(".manifest").chain(["CURRENT"]) {
        let cut = sample.files[name].len() - if name == "CURRENT" { 0 } else { EMPTY_RECORD_BYTES };
        for (offset, outcome) in flip(&sample, name, Access::Mapped, 1, all_bits, &|_| last_state) {
            let expected = if offset >= cut { Outcome::Truncated } else { Outcome::Refused };
            assert_eq!(outcome, expected, "{name} byte {offset}");
        }
    }
}

/// Records the reported truncations of the log.
#[derive(Debug, Default)]
struct Cuts(Mutex<Vec<(PathBuf, u64, u64)>>);

impl EventListener for Cuts {
    fn on_event(&self, event: &Event) {
        if let Event::WalTruncated { file, offset, bytes } = event {
            self.0.lock().unwrap().push((file.clone(), *offset, *bytes));
        }
    }
}

#[test]
fn a_truncation_of_the_log_is_reported() {
    let sample = sample(false);
    let mut files = sample.files.clone();
    let log = files.get_mut(sample.last_log()).unwrap();
    log.pop();
    let length = log.len() as u64;
    let cuts = Arc::new(Cuts::default());
    let listener: Arc<dyn EventListener> = Arc::clone(&cuts) as _;
    let options = inline_options().listener(listener);
    let vfs: Arc<dyn Vfs> = Arc::new(folder_of(&files));
    let db = open_on(Arc::clone(&vfs), options).unwrap();
    let reported: Vec<_> = db
        .open_report()
        .wal_truncations
        .iter()
        .map(|cut| (cut.file.clone(), cut.offset, cut.bytes))
        .collect();
    assert_eq!(reported.len(), 1);
    assert_eq!(reported[0].1 + reported[0].2, length);
    assert_eq!(*cuts.0.lock().unwrap(), reported);
    // The truncation is permanent: the next open drops nothing.
    db.close().unwrap();
    let db = open_on(vfs, inline_options()).unwrap();
    assert_eq!(db.open_report().wal_truncations, []);
    assert!(read_all(&db, sample.state()).unwrap() == sample.history[sample.history.len() - 2]);
}

/// The possible contents if the end of a file is missing: the earlier records of the last log segment, or the earlier edits of
/// the manifest.
fn states_after_cut(sample: &Sample, name: &str) -> Vec<State> {
    let mut states = sample.history.clone();
    if name.ends_with(".manifest") {
        states = vec![sample.state().clone(), sample.state().clone()];
        states[0].remove("c");
    } else if name != sample.last_log() {
        states = vec![sample.state().clone()];
    }
    states
}

#[test]
fn a_file_that_was_cut_is_an_error_or_a_shorter_history() {
    let sample = sample(true);
    let switched = sample.files["CURRENT"][16..24].first_chunk().copied().map(u64::from_le_bytes).unwrap();
    for (name, bytes) in &sample.files {
        let states = states_after_cut(&sample, name);
        let lengths: BTreeSet<usize> = (0..bytes.len())
            .step_by(1 + bytes.len() / 60)
            .chain([1, bytes.len() - 1, bytes.len() - 2])
            .collect();
        for length in lengths {
            let _context = Context(format!("{name} cut to {length} of {} bytes", bytes.len()));
            let mut files = sample.files.clone();
            files.get_mut(name).unwrap().truncate(length);
            let outcome = check(&files, &states, name, Access::Mapped);
            if name == sample.last_log() {
                // The close has recorded all but the last record, which is empty.
                let offsets = records(bytes, LOG_HEADER_BYTES);
                let expected = match length.cmp(&offsets[offsets.len() - 2]) {
                    Ordering::Less => Outcome::Refused,
                    Ordering::Equal => Outcome::Right,
                    Ordering::Greater => Outcome::Truncated,
                };
                assert_eq!(outcome, expected);
            } else if name.ends_with(".manifest") && length as u64 >= switched {
                let is_whole = records(bytes, 32).contains(&length);
                assert_eq!(outcome, if is_whole { Outcome::Right } else { Outcome::Truncated });
            } else if name.ends_with(".filter") {
                assert_eq!(outcome, Outcome::Verified);
            } else if name.ends_with(".view") {
                assert_eq!(outcome, Outcome::Rebuilt);
            } else {
                assert_eq!(outcome, Outcome::Refused);
            }
        }
    }
}

#[test]
fn bytes_after_the_end_of_a_file_are_an_error_or_ignored() {
    let sample = sample(true);
    for (name, bytes) in &sample.files {
        for garbage in [vec![0; 24], vec![0xA5; 5_000], bytes.clone()] {
            let _context = Context(format!("{name} and {} bytes more", garbage.len()));
            let mut files = sample.files.clone();
            files.get_mut(name).unwrap().extend(&garbage);
            let outcome = check(&files, &[sample.state().clone()], name, Access::Mapped);
            let expected = match name.rsplit_once('.') {
                Some((_, "log")) if name == sample.last_log() && garbage.iter().any(|&byte| byte != 0) => {
                    Outcome::Truncated
                }
                // Zero bytes are space that a killed writer had preallocated; otherwise the next segment contains the end of this one.
                Some((_, "log")) => Outcome::Right,
                Some((_, "view")) => Outcome::Rebuilt,
                Some((_, "manifest")) => Outcome::Truncated,
                Some((_, "filter")) => Outcome::Verified,
                _ => Outcome::Refused,
            };
            assert_eq!(outcome, expected);
        }
    }
}

/// A missing file is named. Only the loss of the last log segment of a killed store is not detected; the rest is complete.
#[test]
fn a_missing_file_is_an_error_that_names_it() {
    for is_closed in [true, false] {
        let sample = sample(is_closed);
        for name in sample.files.keys() {
            let _context = Context(format!("without {name}"));
            let mut files = sample.files.clone();
            files.remove(name);
            let states = states_after_cut(&sample, name);
            if name.ends_with(".filter") {
                let db = open(&folder_of(&files), Access::Mapped).unwrap();
                assert!(!check_reads(&db, sample.state(), name));
                let faults = db.verify().unwrap().faults;
                assert!(faults.len() == 1 && faults[0].file.ends_with(name), "{faults:?}");
                continue;
            }
            let outcome = check(&files, &states, name, Access::Mapped);
            let expected = match name {
                _ if name.ends_with(".view") => Outcome::Rebuilt,
                _ if name == sample.last_log() && !is_closed => Outcome::Right,
                _ => Outcome::Refused,
            };
            assert_eq!(outcome, expected);
        }
    }
}

/// Files contain their own numbers.
#[test]
fn files_that_changed_places_are_errors() {
    let sample = sample(true);
    for suffix in [".table", ".log", ".filter"] {
        let names: Vec<_> = sample.names(suffix).collect();
        for (index, one) in names.iter().enumerate() {
            for other in &names[index + 1..] {
                let _context = Context(format!("{one} and {other} changed places"));
                let mut files = sample.files.clone();
                files.insert((*one).to_owned(), sample.files[*other].clone());
                files.insert((*other).to_owned(), sample.files[*one].clone());
                let Ok(db) = open(&folder_of(&files), Access::Mapped) else { continue };
                let report = db.verify().unwrap();
                let named = |name: &str| report.faults.iter().any(|fault| fault.file.ends_with(name));
                assert!(named(one) && named(other), "{:?}", report.faults);
                let has_error = report.faults.iter().any(|fault| {
                    let name = fault.file.file_name().unwrap().to_str().unwrap();
                    let db = open(&folder_of(&files), Access::Mapped).unwrap();
                    check_swapped_reads(&db, sample.state(), name, [one, other])
                });
                assert_eq!(has_error, suffix == ".table");
            }
        }
    }
}

/// Each answer is correct or an error about one of the two files.
fn check_swapped_reads(db: &Db, state: &State, _name: &str, names: [&str; 2]) -> bool {
    let mut has_error = false;
    for (keyspace, entries) in state {
        let keyspace = db.keyspace(keyspace).unwrap();
        for number in 0..KEY_COUNT {
            let key = format!("key{number:02}").into_bytes();
            match keyspace.get(&key) {
                Ok(found) => assert_eq!(found.as_deref(), entries.get(&key).map(|value| &**value)),
                Err(Error::Corruption(found)) => {
                    assert!(names.iter().any(|name| found.file.ends_with(name)), "{found:?}");
                    has_error = true;
                }
                Err(error) => panic!("another error: {error:?}"),
            }
        }
    }
    has_error
}

#[test]
fn foreign_files_are_reported_and_not_changed() {
    let sample = sample(true);
    let mut files = sample.files.clone();
    let foreign = ["000004.table.copy", "7.log", "README", "x.tmp"];
    for name in foreign {
        files.insert(name.to_owned(), b"of others".to_vec());
    }
    let leftovers = ["000900.table", "000901.tmp", "000902.table.obsolete", "000903.manifest"];
    for leftover in leftovers {
        files.insert(leftover.to_owned(), b"left by a crash".to_vec());
    }
    let memory = folder_of(&files);
    memory.create_dir_all(&Path::new(FOLDER).join("folder")).unwrap();
    let db = open(&memory, Access::Mapped).unwrap();
    assert!(!check_reads(&db, sample.state(), ""));
    let mut reported = db.open_report().foreign_files.clone();
    reported.sort_unstable();
    assert_eq!(reported, ["000004.table.copy", "7.log", "README", "folder", "quarantine", "x.tmp"]);
    // Its content cannot be known.
    assert_eq!(db.open_report().quarantined_files, ["000900.table"]);
    assert_eq!(memory.read(&Path::new(FOLDER).join("quarantine/000900.table")).unwrap(), b"left by a crash");
    db.close().unwrap();
    let names: Vec<_> = memory.list(Path::new(FOLDER)).unwrap().into_iter().map(|entry| entry.name).collect();
    for name in foreign {
        assert_eq!(memory.read(&Path::new(FOLDER).join(name)).unwrap(), b"of others");
    }
    assert!(!names.iter().any(|name| leftovers.contains(&name.as_str())), "{names:?}");

    let others = folder_of(&Files::from([("README".to_owned(), Vec::new())]));
    assert!(matches!(open(&others, Access::Mapped), Err(Error::NotADatabase { .. })));
    assert_eq!(files_of(&others).len(), 1, "nothing was created in a foreign folder");
}

/// Every file in turn with a correct checksum over another version: the file of another program, not damage.
fn check_formats(sample: &Sample, is_older: bool) {
    // The others have no older version.
    let is_concerned = |name: &str| !is_older || name.ends_with(".manifest") || name.ends_with(".log");
    for (name, bytes) in sample.files.iter().filter(|(name, _)| is_concerned(name)) {
        // The offsets of version and checksum, and the seed of the checksum.
        let length = bytes.len();
        let (version, checksum, covered, seed) = match name.rsplit_once('.') {
            None | Some((_, "manifest")) => (4, 24, 0..24, 0),
            Some((_, "log")) => (4, 56, 0..56, 0),
            _ => (length - 56, length - 8, length - 64..length - 8, length as u64 - 64),
        };
        let _context = Context(format!("{name} of another program"));
        let mut files = sample.files.clone();
        let changed = files.get_mut(name).unwrap();
        let known = match name.rsplit_once('.') {
            None => 1,
            Some((_, "view" | "filter" | "log")) => 2,
            // Tables built outside of a store have version 8, as the manifest.
            _ => 8,
        };
        let found = if is_older { 1 } else { known + 1 };
        changed[version] = found;
        let sum = xxhash_rust::xxh3::xxh3_64_with_seed(&changed[covered], seed);
        changed[checksum..checksum + 8].copy_from_slice(&sum.to_le_bytes());
        if name.ends_with(".filter") {
            let db = open(&folder_of(&files), Access::Mapped).unwrap();
            assert!(!check_reads(&db, sample.state(), name));
            let faults = db.verify().unwrap().faults;
            assert!(faults.len() == 1 && faults[0].what.contains("newer program"), "{faults:?}");
            continue;
        }
        if name.ends_with(".view") {
            let db = open(&folder_of(&files), Access::Mapped).unwrap();
            assert!(!check_reads(&db, sample.state(), name));
            assert!(db.verify().unwrap().is_sound(), "the open replaces it");
            continue;
        }
        let error = match open(&folder_of(&files), Access::Mapped) {
            Err(error) => error,
            Ok(db) => {
                let reads = sample.state().keys().map(|name| read_all_of(&db, name));
                reads.filter_map(tamis::Result::err).next().expect("a newer file is refused")
            }
        };
        let is_right = matches!(&error, Error::UnknownFormat { file, found: seen, known: newest }
            if file.ends_with(name) && (*seen, *newest) == (u32::from(found), u32::from(known)));
        assert!(is_right, "{error:?}");
        let advice = if is_older { "an older version of Tamis" } else { "newer program" };
        assert!(error.to_string().contains(advice), "{error}");
        // It is not damage: the repair changes nothing.
        let memory = folder_of(&files);
        let refused = Db::repair_on(Arc::new(memory.clone()), FOLDER, &Runtime::deterministic(9));
        assert!(matches!(refused, Err(Error::UnknownFormat { .. })), "{refused:?}");
    }
}

#[test]
fn newer_formats_are_not_reported_as_damage() {
    check_formats(&sample(true), false);
}

#[test]
fn older_formats_are_not_reported_as_damage() {
    check_formats(&sample(true), true);
}

fn read_all_of(db: &Db, keyspace: &str) -> tamis::Result<()> {
    db.keyspace(keyspace)?.range(..).try_for_each(|entry| entry.map(drop))
}

#[test]
fn an_empty_current_is_damage_and_a_missing_one_is_reported() {
    let sample = sample(true);
    let mut files = sample.files.clone();
    files.insert("CURRENT".to_owned(), Vec::new());
    assert!(matches!(open(&folder_of(&files), Access::Mapped), Err(Error::Corruption(_))));
    files.remove("CURRENT");
    assert!(matches!(open(&folder_of(&files), Access::Mapped), Err(Error::MissingFile { .. })));
    // Without tables and log, the files are those of an interrupted creation.
    files.retain(|name, _| name.ends_with(".manifest"));
    assert!(open(&folder_of(&files), Access::Mapped).unwrap().open_report().is_new);
}
