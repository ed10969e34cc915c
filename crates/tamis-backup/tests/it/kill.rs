//! A process is killed while it makes backups, again and again: every listed backup restores exactly the state of its sequence number.
//!
//! The test starts itself as the process that is killed. Entry n is the n-th write, so the sequence number says which entries a backup has.

use std::{
    io::{self, BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use tamis::{Db, OsVfs};
use tamis_backup::{
    BackupOptions, FolderObjects, Keep, NoProgress, Object, Objects, Source, Target, backup, prune, verify,
};
use tamis_workload::SplitMix64;

use crate::support::{is_complete, open, quick_leases, restored_state};

/// Names the folder to the process that is killed.
const FOLDER_VARIABLE: &str = "TAMIS_TEST_BACKUP_FOLDER";

fn target(folder: &Path) -> Target {
    Target::folder(folder.join("target")).with_lease_times(quick_leases())
}

/// Writes a line to standard output before each put and each removal.
#[derive(Debug)]
struct Reported(FolderObjects);

impl Reported {
    fn report(&self) -> io::Result<()> {
        let mut output = io::stdout().lock();
        output.write_all(b"\nchange\n").and_then(|()| output.flush())
    }
}

impl Objects for Reported {
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.report()?;
        self.0.put(name, bytes)
    }
    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.0.get(name)
    }
    fn length(&self, name: &str) -> io::Result<Option<u64>> {
        self.0.length(name)
    }
    fn list(&self, folder: &str) -> io::Result<Vec<Object>> {
        self.0.list(folder)
    }
    fn first_parts(&self) -> io::Result<Vec<String>> {
        self.0.first_parts()
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.report()?;
        self.0.remove(name)
    }
    fn remove_unfinished(&self, folder: &str) -> io::Result<()> {
        self.0.remove_unfinished(folder)
    }
}

fn value(number: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(number);
    vec![random.next_u64() as u8; 100 + random.below(2_000) as usize]
}

fn write(db: &Db, count: u64) {
    let start = db.snapshot().sequence();
    for number in start + 1..=start + count {
        db.put(format!("{:06}", number % 1_000), [&number.to_be_bytes()[..], &value(number)].concat())
            .unwrap();
    }
}

/// The process that is killed; does nothing if the environment variable is not set.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER_VARIABLE) else { return };
    let folder = Path::new(&folder);
    let db = open(&folder.join("store"));
    let objects = Reported(FolderObjects::new(Arc::new(OsVfs), folder.join("target")));
    let target = Target::of_objects(Arc::new(objects), "target").with_lease_times(quick_leases());
    for round in 0.. {
        write(&db, 50);
        if round % 3 == 2 {
            db.flush().unwrap();
        }
        let mut options = BackupOptions::default();
        options.log = round % 2 == 1;
        backup(Source::Db(&db), &target, &options).unwrap();
        if round % 5 == 4 {
            prune(&target, Keep::Count(10), &NoProgress).unwrap();
        }
    }
}

/// The newest write of each key up to a sequence number.
fn check(state: &[(String, Vec<u8>, Vec<u8>)], sequence: u64) {
    assert_eq!(state.len() as u64, sequence.min(1_000), "at sequence number {sequence}");
    for (_, key, found) in state {
        let key: u64 = String::from_utf8_lossy(key).parse().unwrap();
        let number = sequence - (sequence + 1_000 - key) % 1_000;
        let expected = [&number.to_be_bytes()[..], &value(number)].concat();
        assert!(*found == expected, "key {key} at sequence number {sequence}");
    }
}

#[test]
fn each_backup_of_a_killed_process_restores_exactly_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = SplitMix64::new(56);
    let mut listed = 0;
    let listing_count = if is_complete() { 2 } else { 1 };
    for round in 0..25 * listing_count {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child", "--nocapture"])
            .env(FOLDER_VARIABLE, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // A backup changes about ten objects.
        for _ in 0..random.below(40) {
            assert!(lines.by_ref().any(|line| line.unwrap() == "change"), "round {round}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if round % 25 == 24 {
            let backups = target(folder.path()).backups().unwrap();
            assert!(backups.damaged.is_empty());
            for backup in &backups.intact {
                let state = restored_state(
                    &target(folder.path()),
                    &folder.path().join("restored"),
                    Some(&backup.id()),
                );
                check(&state.unwrap(), backup.sequence);
                listed += 1;
            }
        }
    }
    assert!(listed > 4 * listing_count, "{listed} backups were complete");
    let db = open(&folder.path().join("store"));
    let last = backup(Source::Db(&db), &target(folder.path()), &BackupOptions::default()).unwrap().backup;
    let state = restored_state(&target(folder.path()), &folder.path().join("restored"), None).unwrap();
    check(&state, last.sequence);
    prune(&target(folder.path()), Keep::Count(1), &NoProgress).unwrap();
    let report = verify(&target(folder.path()), &NoProgress).unwrap();
    assert!(report.faults.is_empty() && report.unused_object_count == 0, "{report:?}");
    // The killed processes have left no checkpoints.
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
