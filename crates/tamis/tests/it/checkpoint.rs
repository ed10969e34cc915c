//! A checkpoint is the state of the store at one moment: during writes, with threads, and after a power failure.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use tamis::{Db, Durability, Error, OpenMode, Runtime, WriteBatch};
use tamis_vfs::{FaultVfs, MemVfs, OperationKind, Rule, Vfs};

use crate::{
    scenario::{Context, Plan, State, Step, apply, difference, new_state, read_all, run, script},
    support::{FOLDER, inline_options, open_in_memory, open_on, small_keyspace},
};

const COPY: &str = "/copy";

fn open(vfs: &MemVfs, folder: &str) -> tamis::Result<Db> {
    let options = inline_options().mode(OpenMode::Existing);
    Db::open_on(Arc::new(vfs.clone()), folder, options, Runtime::deterministic(7))
}

/// The copy opens, contains `expected`, is intact and accepts writes.
fn check_copy(vfs: &MemVfs, expected: &State) {
    let db = open(vfs, COPY).expect("a checkpoint opens");
    let found = read_all(&db, expected).unwrap();
    assert!(found == *expected, "{}", difference(&found, expected));
    assert!(db.verify().unwrap().is_sound());
    db.put("later", "write").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let db = open(vfs, COPY).unwrap();
    assert_eq!(db.get("later").unwrap().as_deref(), Some(&b"write"[..]));
}

fn steps(seed: u64) -> Vec<Step> {
    let plan = Plan {
        seed,
        step_count: 150,
        key_count: 40,
        value_bytes_max: 6_000,
        has_keyspaces: true,
        has_ingests: true,
    };
    script(plan).into_iter().filter(|step| !matches!(step, Step::Reopen | Step::Kill)).collect()
}

/// While the files of the copy are created, the store continues: writes, flushes, compactions, keyspaces created and dropped.
#[test]
fn a_checkpoint_during_writes_is_consistent() {
    for seed in 0..8 {
        let _context = Context(format!("seed {seed}"));
        let memory = MemVfs::new();
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let db = open_on(Arc::new(faults.clone()), inline_options()).unwrap();
        let all = steps(seed);
        let (before, meanwhile) = all.split_at(all.len() / 2 + seed as usize);
        let mut state = new_state();
        for step in before {
            run(&db, step).unwrap();
            apply(&mut state, step);
        }
        let rest = Mutex::new(meanwhile.to_vec());
        let (other, step_count) = (db.clone(), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&step_count);
        let hook = faults.add_rule(
            Rule::slow(move |_| {
                // The steps of one operation run inside of it; operations of the store itself do not call this.
                let mut rest = rest.lock().unwrap();
                let count = rest.len().min(6);
                let steps: Vec<Step> = rest.drain(..count).collect();
                drop(rest);
                for step in &steps {
                    run(&other, step).unwrap();
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            })
            .on(&[OperationKind::HardLink, OperationKind::Create, OperationKind::Append])
            .path("copy"),
        );
        // A hard link names its source, which is in the store's own folder.
        let report = db.checkpoint(COPY).unwrap();
        faults.remove_rule(hook);
        assert!(report.linked_file_count > 0 && step_count.load(Ordering::Relaxed) > 10, "{report:?}");
        check_copy(&memory, &state);
        // Neither store sees later changes of the other.
        db.compact_range(&db.default_keyspace(), ..).unwrap();
        assert!(db.verify().unwrap().is_sound());
        assert!(db.get("later").unwrap().is_none());
        db.close().unwrap();
        assert!(open(&memory, COPY).unwrap().verify().unwrap().is_sound());
    }
}

/// The log has more segments than the store keeps open, and a flush makes all of them obsolete while they are copied. They were removed, and
/// the checkpoint failed. `verify` reads the log in the same way.
#[test]
fn a_flush_meanwhile_removes_no_segment_that_is_read() {
    for verifies in [false, true] {
        let memory = MemVfs::new();
        let faults = FaultVfs::new(Arc::new(memory.clone()));
        let options = inline_options().log_bytes_max(64 << 20);
        let db = open_on(Arc::new(faults.clone()), options).unwrap();
        let busy = db.create_keyspace("busy", small_keyspace()).unwrap();
        db.put("key", "value").unwrap();
        // Each memtable of 64 KiB begins a segment, and the entry of the other keyspace keeps all of them.
        (0..1_500_u32).for_each(|number| busy.put(number.to_be_bytes(), [7; 1_000]).unwrap());
        let segment_count = || {
            let entries = memory.list(Path::new(FOLDER)).unwrap();
            entries.iter().filter(|entry| entry.name.ends_with(".log")).count()
        };
        assert!(segment_count() > 10, "{}", segment_count());
        let other = db.clone();
        let hook = Rule::slow(move |_| {
            other.flush().unwrap();
            // Another flush finds segments that could not be removed.
            other.put("later", "value").unwrap();
            other.flush().unwrap();
        });
        let first_read = hook.on(&[OperationKind::Open]).path(".log").times(1);
        let rule = faults.add_rule(first_read);
        if verifies {
            let report = db.verify().unwrap();
            assert!(report.is_sound(), "{:?}", report.faults);
        } else {
            db.checkpoint(COPY).unwrap();
            let copy = open(&memory, COPY).unwrap();
            assert_eq!(copy.keyspace("busy").unwrap().range(..).count(), 1_500);
            assert!(copy.get("key").unwrap().is_some() && copy.get("later").unwrap().is_none());
        }
        assert_eq!(faults.hit_count(rule), 1);
        assert!(segment_count() < 3, "they are removed afterwards: {}", segment_count());
        db.close().unwrap();
    }
}

/// The folder was listed, and the length of each of its files queried, while the log was locked: with 50,000 files all writers waited.
#[test]
fn a_checkpoint_does_not_list_the_folder_of_the_store() {
    let faults = FaultVfs::new(Arc::new(MemVfs::new()));
    let db = open_on(Arc::new(faults.clone()), inline_options()).unwrap();
    db.put("key", "value").unwrap();
    let listed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&listed);
    let count = Rule::slow(move |operation| {
        counted.fetch_add(usize::from(operation.path == Path::new(FOLDER)), Ordering::Relaxed);
    });
    faults.add_rule(count.on(&[OperationKind::List]).forever());
    db.checkpoint(COPY).unwrap();
    assert!(db.verify().unwrap().is_sound());
    assert_eq!(listed.load(Ordering::Relaxed), 0);
}

#[test]
fn checkpoints_under_threads_hold_a_prefix_and_whole_batches() {
    let memory = MemVfs::new();
    let options = inline_options().workers(2);
    let db = Db::open_on(Arc::new(memory.clone()), FOLDER, options, Runtime::system()).unwrap();
    let keyspaces = ["a", "b"].map(|name| db.create_keyspace(name, small_keyspace()).unwrap());
    let acknowledged: [AtomicU64; 3] = Default::default();
    let is_done = AtomicBool::new(false);
    let key = |thread: usize, number: u64| format!("{thread}/{number:06}");
    std::thread::scope(|scope| {
        for (thread, acknowledged) in acknowledged.iter().enumerate() {
            let (db, keyspaces, is_done) = (&db, &keyspaces, &is_done);
            scope.spawn(move || {
                let mut number = 0;
                while !is_done.load(Ordering::Relaxed) && number < 3_000 {
                    let mut batch = WriteBatch::new();
                    for keyspace in keyspaces {
                        batch.put(keyspace, key(thread, number), vec![thread as u8; 400]).unwrap();
                    }
                    let durability = [Durability::Deferred, Durability::Buffered][number as usize % 2];
                    db.write_with(batch, durability).unwrap();
                    number += 1;
                    acknowledged.store(number, Ordering::SeqCst);
                }
            });
        }
        for round in 0..12 {
            let least = acknowledged.each_ref().map(|count| count.load(Ordering::SeqCst));
            let folder = format!("/copy{round}");
            let report = db.checkpoint(&folder).unwrap();
            let most = acknowledged.each_ref().map(|count| count.load(Ordering::SeqCst) + 1);
            let copy = open(&memory, &folder).unwrap();
            let mut entry_count = 0;
            for thread in 0..3 {
                let [a, b] = ["a", "b"].map(|name| {
                    let keyspace = copy.keyspace(name).unwrap();
                    let keys = keyspace.prefix(format!("{thread}/")).map(|entry| entry.unwrap().0.to_vec());
                    keys.collect::<Vec<_>>()
                });
                assert!(a == b, "half a batch");
                assert!(
                    (least[thread]..=most[thread]).contains(&(a.len() as u64)),
                    "{least:?} {most:?} {}",
                    a.len()
                );
                assert!(
                    (0..).zip(&a).all(|(number, found)| *found == key(thread, number).into_bytes()),
                    "a gap"
                );
                entry_count += 2 * a.len() as u64;
            }
            assert_eq!(
                report.sequence,
                entry_count + 2,
                "each entry and each created keyspace has its own number"
            );
            assert!(copy.verify().unwrap().is_sound());
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

/// A power failure before every operation of a checkpoint: the store loses nothing, and the copy is complete or no database.
#[test]
fn no_crash_leaves_half_a_copy_that_opens() {
    let memory = MemVfs::new();
    let faults = FaultVfs::new(Arc::new(memory.clone()));
    let db = open_on(Arc::new(faults.clone()), inline_options()).unwrap();
    let mut state = new_state();
    for step in steps(3) {
        run(&db, &step).unwrap();
        apply(&mut state, &step);
    }
    db.persist(Durability::Synced).unwrap();
    let (watched, expected, count) = (memory.clone(), state.clone(), Arc::new(AtomicU64::new(0)));
    let crashes = Arc::clone(&count);
    faults.add_rule(Rule::slow(move |operation| {
        if std::thread::panicking() {
            return;
        }
        let seed = crashes.fetch_add(1, Ordering::Relaxed);
        let _context = Context(format!("before operation {seed} {operation:?}"));
        let after = watched.crash_clone(seed);
        match open(&after, COPY).map(drop) {
            Ok(()) => check_copy(&after, &expected),
            Err(Error::NotADatabase { .. } | Error::MissingFile { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        let store = open(&after, FOLDER).unwrap();
        let found = read_all(&store, &expected).unwrap();
        assert!(found == expected, "{}", difference(&found, &expected));
    }));
    db.checkpoint(COPY).unwrap();
    assert!(count.load(Ordering::Relaxed) > 20);
    for seed in 0..8 {
        check_copy(&memory.crash_clone(seed), &state);
    }
}

#[test]
fn a_failed_checkpoint_leaves_no_file_and_changes_no_store() {
    for kind in [std::io::ErrorKind::Other, std::io::ErrorKind::StorageFull] {
        for nth in 1.. {
            let memory = MemVfs::new();
            let faults = FaultVfs::new(Arc::new(memory.clone()));
            let db = open_on(Arc::new(faults.clone()), inline_options()).unwrap();
            db.put("in a table", "1").unwrap();
            db.flush().unwrap();
            db.put("in the log", "2").unwrap();
            let changing = [
                OperationKind::Create,
                OperationKind::Append,
                OperationKind::Sync,
                OperationKind::HardLink,
                OperationKind::SyncDir,
                OperationKind::Rename,
            ];
            let rule = faults.add_rule(Rule::error(kind).on(&changing).nth(nth));
            let result = db.checkpoint(COPY);
            if faults.hit_count(rule) == 0 {
                assert!(result.is_ok() && nth > 5);
                break;
            }
            faults.clear_rules();
            match result {
                // Files that could not be linked were copied.
                Ok(_) => assert_eq!(open(&memory, COPY).unwrap().range(..).count(), 2),
                Err(_) => {
                    let left = memory.list(Path::new(COPY)).unwrap();
                    // A last sync that failed may have completed the copy.
                    assert!(left.is_empty(), "{nth}: {left:?}");
                    db.checkpoint(COPY).unwrap();
                }
            }
            db.put("goes", "on").unwrap();
            assert_eq!(db.range(..).count(), 3);
        }
    }
}

#[test]
fn a_folder_that_holds_something_is_refused() {
    let memory = MemVfs::new();
    let db = open_in_memory(&memory, inline_options()).unwrap();
    db.put("key", "value").unwrap();
    memory.create_dir_all(Path::new("/full")).unwrap();
    memory.create(Path::new("/full/file")).unwrap();
    for folder in ["/full", FOLDER] {
        assert!(matches!(db.checkpoint(folder), Err(Error::InvalidArgument { .. })), "{folder}");
    }
    assert!(matches!(db.checkpoint("/full/file"), Err(Error::Io { .. })));
    db.close().unwrap();
    // A store that is only read can be copied too.
    let db = open_in_memory(&memory, inline_options().mode(OpenMode::Reader)).unwrap();
    db.checkpoint(COPY).unwrap();
    assert_eq!(open(&memory, COPY).unwrap().get("key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// A power failure leaves zeros or a torn record at the end of the log. A read-only open ignores them and keeps them in the file; a checkpoint of it
/// copied them as if they had been synced, and no open could read the copy.
#[test]
fn a_checkpoint_of_a_read_only_store_ends_where_its_log_ends() {
    for seed in 0..40 {
        let _context = Context(format!("seed {seed}"));
        let memory = MemVfs::new();
        let db = open_in_memory(&memory, inline_options()).unwrap();
        db.put("key", "value").unwrap();
        db.persist(Durability::Synced).unwrap();
        db.put("lost", vec![7; 3_000]).unwrap();
        let after = memory.crash_clone(seed);
        let db = open_in_memory(&after, inline_options().mode(OpenMode::Reader)).unwrap();
        let expected = db.range(..).map(Result::unwrap).collect::<Vec<_>>();
        assert!(db.verify().unwrap().is_sound());
        db.checkpoint(COPY).unwrap();
        let copy = open(&after, COPY).unwrap();
        assert!(copy.range(..).map(Result::unwrap).eq(expected));
    }
}
