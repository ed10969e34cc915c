//! A process is killed while its threads write, again and again in the same store: every acknowledged batch is complete.
//!
//! The test starts itself as the process that is killed. That process writes each acknowledgement to its standard output; these
//! lines are the acknowledged batches.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
};

use tamis::{Db, Durability, Keyspace, KeyspaceOptions, Options, TableWriter, WriteBatch};

use crate::{
    scenario::Context,
    support::{SplitMix64, small_keyspace},
};

/// Names the store's folder to the process that is killed.
const FOLDER_VARIABLE: &str = "TAMIS_TEST_KILL_FOLDER";
/// Names the table to the process that is killed while it writes one.
const TABLE_VARIABLE: &str = "TAMIS_TEST_KILL_TABLE";
const THREAD_COUNT: u64 = 3;
const ROUND_COUNT: u64 = 20;
/// Batches of each thread after which the process ends if it is not killed.
const BATCH_COUNT_MAX: u64 = 20_000;

fn open(folder: &Path) -> tamis::Result<(Db, [Keyspace; 2])> {
    let db = Db::open_with(folder, Options::default().cache_bytes(4 << 20))?;
    let left = db.get_or_create_keyspace("left", small_keyspace())?;
    let right = db.get_or_create_keyspace("right", small_keyspace())?;
    Ok((db, [left, right]))
}

fn key(thread: u64, number: u64) -> Vec<u8> {
    format!("{thread}/{number:08}").into_bytes()
}

fn value(thread: u64, number: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(thread << 32 | number);
    vec![random.next_u64() as u8; 8 + random.below(9_000) as usize]
}

/// The number of batches of a thread that exist; each must be complete, and no earlier one may be missing.
fn count_batches(keyspaces: &[Keyspace; 2], thread: u64) -> u64 {
    let [left, right] = keyspaces.each_ref().map(|keyspace| {
        let entries = keyspace.prefix(format!("{thread}/"));
        entries.map(|entry| entry.expect("the store can be read")).collect::<Vec<_>>()
    });
    assert_eq!(left.len(), right.len(), "half a batch of thread {thread}");
    for (number, (left, right)) in (0..).zip(left.iter().zip(&right)) {
        for (found, value) in [(left, value(thread, number)), (right, value(thread + 100, number))] {
            assert_eq!(&*found.0, key(thread, number), "thread {thread}");
            assert!(*found.1 == *value, "the value of batch {number} of thread {thread}");
        }
    }
    left.len() as u64
}

/// The work of a thread of the killed process. Every third batch is not synced: it must survive only a crash of the process.
fn write_batches(db: &Db, keyspaces: &[Keyspace; 2], thread: u64) -> tamis::Result<()> {
    for number in count_batches(keyspaces, thread)..BATCH_COUNT_MAX {
        let [left, right] = keyspaces;
        let mut batch = WriteBatch::new();
        batch.put(left, key(thread, number), value(thread, number))?;
        batch.put(right, key(thread, number), value(thread + 100, number))?;
        let durability = if number.is_multiple_of(3) { Durability::Buffered } else { Durability::Synced };
        db.write_with(batch, durability)?;
        let mut output = std::io::stdout().lock();
        let written = output.write_all(format!("acknowledged {thread} {number}\n").as_bytes());
        if written.and_then(|()| output.flush()).is_err() {
            // The parent no longer reads.
            break;
        }
    }
    Ok(())
}

/// The process that is killed; does nothing if the environment variable is not set.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else { return };
    std::io::stdout().write_all(b"\nopening\n").expect("the parent listens");
    let (db, keyspaces) = open(Path::new(&folder)).expect("the store opens after a kill");
    std::thread::scope(|scope| {
        for thread in 0..THREAD_COUNT {
            let (db, keyspaces) = (&db, &keyspaces);
            scope.spawn(move || write_batches(db, keyspaces, thread).expect("the store takes batches"));
        }
    });
}

/// The process that is killed while it writes a table.
#[test]
fn table_writer_child() {
    let Some(path) = std::env::var_os(TABLE_VARIABLE) else { return };
    let mut table =
        TableWriter::create(Path::new(&path), &KeyspaceOptions::default()).expect("no other writes");
    for number in 0..u64::MAX {
        if number == 100_000 {
            std::io::stdout().write_all(b"\nwriting\n").expect("the parent listens");
        }
        // Until it is killed, or the parent is.
        if number > 100_000 && std::io::stdout().write_all(b".").is_err() {
            return;
        }
        table.put(number.to_be_bytes(), [0; 100]).expect("the disk has room");
    }
}

fn start(folder: &Path) -> Child {
    start_child("kill::child", FOLDER_VARIABLE, folder)
}

fn start_child(test: &str, variable: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().expect("the test knows its own file"))
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(variable, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the test can start itself")
}

/// Kills a process a short time after it has opened the store and written a number of acknowledgements; returns all of them.
fn run_and_kill(folder: &Path, wait_count: u64, spin_count: u64) -> Vec<(u64, u64)> {
    let mut process = start(folder);
    let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
    let mut acknowledged = Vec::new();
    let (mut is_alive, mut has_begun) = (true, false);
    loop {
        if is_alive && has_begun && acknowledged.len() as u64 >= wait_count {
            (0..spin_count).for_each(|_| std::hint::spin_loop());
            process.kill().expect("it runs");
            is_alive = false;
        }
        let mut line = String::new();
        let length = output.read_line(&mut line).expect("a pipe can be read");
        if length == 0 {
            break;
        }
        has_begun |= line == "opening\n";
        let numbers = line.strip_suffix('\n').and_then(|line| line.split_once("acknowledged "));
        if let Some((thread, number)) = numbers.and_then(|(_, numbers)| numbers.split_once(' ')) {
            acknowledged.push((thread.parse().unwrap(), number.parse().unwrap()));
        }
    }
    process.wait().expect("it is dead");
    assert!(!is_alive, "the process ended before it was killed");
    acknowledged
}

#[test]
fn every_acknowledged_batch_survives_kill_9() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut random = SplitMix64::new(9);
    let mut counts = [0; THREAD_COUNT as usize];
    for round in 0..ROUND_COUNT {
        let wait_count = if random.below(4) == 0 { 0 } else { random.below(250) };
        let spin_count = random.below(1_000_000);
        let _context = Context(format!("round {round}: {wait_count} acknowledgements, {spin_count} spins"));
        for (thread, number) in run_and_kill(folder.path(), wait_count, spin_count) {
            let count: &mut u64 = &mut counts[thread as usize];
            *count = (*count).max(number + 1);
        }
        let (db, keyspaces) = open(folder.path()).expect("the store opens after a kill");
        for (thread, count) in (0..).zip(&mut counts) {
            let found = count_batches(&keyspaces, thread);
            assert!(found >= *count, "thread {thread}: {found} of {count} acknowledged batches");
            *count = found;
        }
        let report = db.verify().expect("the store can be verified");
        assert!(report.is_sound(), "faults: {:?}", report.faults);
        let cuts = db.open_report().wal_truncations.len();
        println!("round {round}: {counts:?} batches, {cuts} cuts, {} flushes", db.statistics().flushes);
        if random.below(2) == 0 {
            db.close().expect("the store can be closed");
        }
    }
    assert!(counts.iter().sum::<u64>() > 100, "the process was killed too early to write: {counts:?}");
}

/// Its temporary file made every later writer of the same table fail with "file exists".
#[test]
fn a_table_can_be_written_after_its_writer_was_killed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("t.table");
    let mut process = start_child("kill::table_writer_child", TABLE_VARIABLE, &path);
    let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
    let mut line = String::new();
    while line != "writing\n" {
        line.clear();
        assert!(output.read_line(&mut line).expect("a pipe can be read") > 0, "the child ended");
    }
    let begin = || TableWriter::create(&path, &KeyspaceOptions::default());
    let refused = begin().expect_err("the child writes this table").to_string();
    assert!(refused.contains("another writer"), "{refused}");
    process.kill().expect("it runs");
    process.wait().expect("it is dead");
    let names = || std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names().count(), 1, "the killed process left its file");
    let mut table = begin().expect("the file of the killed process is used again");
    table.put("key", "value").unwrap();
    assert_eq!(table.finish().unwrap().entry_count, 1);
    assert_eq!(names().collect::<Vec<_>>(), ["t.table"]);
}

/// Names the folder to the process that reads until it is killed.
const READER_VARIABLE: &str = "TAMIS_TEST_KILL_READER";

fn open_reader(folder: &Path) -> (Db, [Keyspace; 2]) {
    let db = Db::open_reader(folder).expect("a reader opens next to any writer");
    let keyspaces = ["left", "right"].map(|name| db.keyspace(name).expect("the writer has created it"));
    (db, keyspaces)
}

/// The process that reads until it is killed.
#[test]
fn reader_child() {
    let Some(folder) = std::env::var_os(READER_VARIABLE) else { return };
    let (db, keyspaces) = open_reader(Path::new(&folder));
    let mut last = [0; THREAD_COUNT as usize];
    // Until it is killed, or the parent is.
    while std::io::stdout().write_all(b"\nread\n").is_ok() {
        for (thread, last) in (0..).zip(&mut last) {
            let count = count_batches(&keyspaces, thread);
            assert!(count >= *last, "thread {thread}: {count} after {last}");
            *last = count;
        }
        db.refresh().expect("the files of a reader stay");
    }
}

/// The next acknowledgement of a writing process.
fn next_acknowledged(output: &mut impl BufRead) -> (u64, u64) {
    loop {
        let mut line = String::new();
        assert!(output.read_line(&mut line).expect("a pipe can be read") > 0, "the writer ended");
        let numbers = line.trim_end().split_once("acknowledged ").and_then(|(_, rest)| rest.split_once(' '));
        if let Some((thread, number)) = numbers {
            return (thread.parse().unwrap(), number.parse().unwrap());
        }
    }
}

#[test]
fn readers_see_each_acknowledged_batch_of_writers_that_are_killed_and_outlive_killed_readers() {
    for seed in 0..if crate::support::is_deep() { 20 } else { 1 } {
        kill_writers_and_readers(seed, 10);
    }
}

fn kill_writers_and_readers(seed: u64, round_count: u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    drop(open(folder.path()).expect("a new store"));
    let mut random = SplitMix64::new(seed);
    let (reader, keyspaces) = open_reader(folder.path());
    let mut counts = [0; THREAD_COUNT as usize];
    for round in 0..round_count {
        let mut writer = start(folder.path());
        let mut output = BufReader::new(writer.stdout.take().expect("it is piped"));
        let mut other = start_child("kill::reader_child", READER_VARIABLE, folder.path());
        for _ in 0..1 + random.below(3) {
            for _ in 0..1 + random.below(60) {
                let (thread, number) = next_acknowledged(&mut output);
                let count: &mut u64 = &mut counts[thread as usize];
                *count = (*count).max(number + 1);
            }
            reader.refresh().expect("the files of a reader stay");
            let (new, of_new) = open_reader(folder.path());
            for (thread, count) in (0..).zip(&counts) {
                for keyspaces in [&keyspaces, &of_new] {
                    let found = count_batches(keyspaces, thread);
                    assert!(found >= *count, "round {round}, thread {thread}: {found} of {count} batches");
                }
            }
            drop(new);
        }
        // One of the two is killed first.
        let (first, second) =
            if random.below(2) == 0 { (&mut writer, &mut other) } else { (&mut other, &mut writer) };
        first.kill().expect("it runs");
        first.wait().expect("it is dead");
        reader.refresh().expect("the files of a reader stay");
        second.kill().expect("it runs");
        second.wait().expect("it is dead");
        if random.below(4) == 0 {
            let (db, _) = open(folder.path()).expect("the store opens after a kill");
            assert_eq!(db.statistics().readers.len(), 1, "the killed reader is gone");
            db.wait_for_compactions().expect("jobs end");
            db.close().expect("the store can be closed");
        }
    }
    drop((reader, keyspaces));
    let (db, _) = open(folder.path()).expect("the store opens after a kill");
    assert_eq!(db.statistics().readers, []);
    assert!(db.verify().expect("the store can be verified").is_sound());
}
